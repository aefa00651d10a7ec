//! Against the real servers: `make control-plane` must have built them.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail it")]

use std::path::Path;
use std::time::{Duration, Instant};

use control_plane::{Component, ControlPlane, FAKE_NODE_ANNOTATION, Options, User};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Ample for two loaded cores; what it waits for takes about a second. Shorter than a node's lease.
const DEADLINE: Duration = Duration::from_secs(30);

struct Client {
    agent: Agent,
    server: String,
    token: String,
}

impl Client {
    fn new(control_plane: &ControlPlane) -> Self {
        let ca = Certificate::from_pem(control_plane.ca_pem().as_bytes()).unwrap();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[ca]))
            .build();
        let config = Agent::config_builder().tls_config(tls).proxy(None);
        Self {
            agent: config.http_status_as_error(false).build().into(),
            server: control_plane.server_url(),
            token: control_plane.token().to_owned(),
        }
    }

    fn post(&self, path: &str, object: &Value) {
        let request = self.agent.post(format!("{}{path}", self.server));
        let request = request.header("Authorization", format!("Bearer {}", self.token));
        let mut answer = request.send_json(object).unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        assert!(answer.status().is_success(), "POST {path}: {body}");
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let request = self.agent.get(format!("{}{path}", self.server));
        let request = request.header("Authorization", format!("Bearer {}", self.token));
        let mut answer = request.call().unwrap();
        (
            answer.status().as_u16(),
            answer.body_mut().read_json().unwrap(),
        )
    }

    fn list(&self, path: &str) -> Vec<Value> {
        self.get(path).1["items"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "annotations": {FAKE_NODE_ANNOTATION: "fake"}},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "64"},
            "allocatable": {"cpu": "7900m", "memory": "30Gi", "pods": "64"},
        },
    })
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn running_on(client: &Client, node: &str) -> usize {
    let runs =
        |pod: &&Value| pod["status"]["phase"] == "Running" && pod["spec"]["nodeName"] == node;
    client.list(PODS).iter().filter(runs).count()
}

/// Also true for a zombie: whoever stopped it must have waited for it.
fn exists(process_id: u32) -> bool {
    Path::new(&format!("/proc/{process_id}")).exists()
}

#[test]
fn pods_run_on_a_node_that_joins_and_nothing_is_left_after_stop() {
    let control_plane = ControlPlane::start(Options::default()).unwrap();
    let client = Client::new(&control_plane);

    client.post("/api/v1/nodes", &node("n1"));
    client.post(DEPLOYMENTS, &deployment("web", 3));

    wait_until("three pods run on n1", || running_on(&client, "n1") == 3);
    let (_, joined) = client.get("/api/v1/nodes/n1");
    assert_eq!(joined["status"]["allocatable"]["cpu"], "7900m");
    assert_eq!(joined["status"]["capacity"]["memory"], "32Gi");
    assert_eq!(joined["spec"]["taints"], Value::Null);

    let process_ids: Vec<_> = Component::ALL
        .map(|component| control_plane.process_id(component).unwrap())
        .into();
    let folder = control_plane.logs_dir();
    control_plane.stop().unwrap();

    assert_eq!(process_ids.into_iter().filter(|id| exists(*id)).count(), 0);
    assert!(!folder.exists());
}

#[test]
fn killed_servers_come_back_with_their_state() {
    let control_plane = ControlPlane::start(Options::default()).unwrap();
    let client = Client::new(&control_plane);
    client.post("/api/v1/nodes", &node("n1"));

    for component in Component::ALL {
        control_plane.kill(component).unwrap();
        assert_eq!(control_plane.process_id(component), None);
        control_plane.restart(component).unwrap();
    }
    client.post(DEPLOYMENTS, &deployment("web", 4));

    wait_until("four pods run on n1", || running_on(&client, "n1") == 4);
}

#[test]
fn users_get_what_rbac_gives_them_and_writes_are_audited() {
    let user = User {
        name: "viewer".to_owned(),
        groups: vec!["kerf-viewers".to_owned()],
        token: "viewer-token".to_owned(),
    };
    let options = Options {
        users: vec![user],
        audit_log: true,
        ..Options::api_server_only()
    };
    let control_plane = ControlPlane::start(options).unwrap();
    let admin = Client::new(&control_plane);
    let viewer = Client {
        token: "viewer-token".to_owned(),
        ..Client::new(&control_plane)
    };
    assert_eq!(viewer.get("/api/v1/nodes").0, 403);

    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "viewers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "kerf-viewers"}],
    });
    admin.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        &binding,
    );

    wait_until("the binding counts", || {
        viewer.get("/api/v1/nodes").0 == 200
    });
    let kubeconfig = control_plane.user_kubeconfig_path("viewer").unwrap();
    assert!(
        std::fs::read_to_string(kubeconfig)
            .unwrap()
            .contains("viewer-token")
    );
    let audit_log = control_plane.logs_dir().join("audit.log");
    wait_until("the write is in the audit log", || {
        std::fs::read_to_string(&audit_log)
            .unwrap_or_default()
            .contains("\"name\":\"viewers\"")
    });
}

#[test]
fn a_server_that_cannot_start_is_named_with_its_log() {
    let mut options = Options::api_server_only();
    options
        .extra_args
        .insert(Component::ApiServer, vec!["--no-such-flag".to_owned()]);

    let err = ControlPlane::start(options).unwrap_err().to_string();

    assert!(
        err.contains("kube-apiserver ended while it was starting"),
        "{err}"
    );
    assert!(err.contains("unknown flag: --no-such-flag"), "{err}");
}

#[test]
fn nothing_is_left_after_a_panic() {
    let (send, receive) = std::sync::mpsc::channel();

    let panicked = std::thread::spawn(move || {
        let control_plane = ControlPlane::start(Options::api_server_only()).unwrap();
        send.send(control_plane.process_id(Component::ApiServer).unwrap())
            .unwrap();
        panic!("on purpose");
    })
    .join();

    assert!(panicked.is_err());
    assert!(!exists(receive.recv().unwrap()));
}
