//! The flags of each server, and why they are not the defaults.

use serde_json::json;

use crate::credentials::Credentials;
use crate::folder::Folder;
use crate::port::Ports;
use crate::{Component, Error, Options};

/// Requests per second that scheduler and controllers may send, far above what two cores can serve: in a measurement
/// of kerf their client-side limits (50 and 20 by default) would be what is measured.
const CLIENT_QPS: u32 = 2_000;
const CLIENT_BURST: u32 = 4_000;

/// Likewise for the server's own limits, which by default share 600 places between all clients.
const REQUESTS_INFLIGHT: u32 = 3_000;

/// How often the node-lifecycle controller looks at nodes (default 5 s): how soon a test sees a taint go.
const NODE_MONITOR_PERIOD: &str = "1s";

/// How many objects kwok works on at once (default 4): kwok must not be what is measured either.
const KWOK_PARALLELISM: u32 = 16;

/// Pod addresses, enough for 4 million pods. They are only shown.
const POD_CIDR: &str = "10.64.0.0/10";
const SERVICE_CIDR: &str = "10.32.0.0/16";

/// What a cluster does on its own as far as an autoscaler can notice it. Off: everything that needs a cloud, a kubelet or
/// a CSI driver (attach-detach, node-ipam, service), and DRA. cronjob is off because a test has no minute to wait.
const CONTROLLERS: &[&str] = &[
    "clusterrole-aggregation-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    // Takes away the not-ready taint; without it no pod binds.
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    // Removes the pods of nodes that are gone.
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
];

/// What each request leaves in the audit log: who, what, which object, with which answer; no bodies.
const AUDITED_VERBS: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

const STAGES: &str = include_str!("stages.yaml");

/// What all commands have in common.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) credentials: &'a Credentials,
    pub(crate) ports: Ports,
    pub(crate) options: &'a Options,
}

impl Setup<'_> {
    /// The arguments of a server, after writing the files that they refer to.
    pub(crate) fn args(&self, component: Component) -> Result<Vec<String>, Error> {
        let mut args = match component {
            Component::Etcd => self.etcd(),
            Component::ApiServer => self.api_server()?,
            Component::Scheduler => self.scheduler()?,
            Component::ControllerManager => self.controller_manager(),
            Component::Kwok => self.kwok()?,
        };
        args.extend(
            self.options
                .extra_args
                .get(&component)
                .into_iter()
                .flatten()
                .cloned(),
        );
        Ok(args)
    }

    fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        vec![
            format!("--data-dir={}", self.folder.path().join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            "--name=kerf".to_owned(),
            format!("--initial-cluster=kerf={peer}"),
            // A killed etcd loses nothing by it, only a killed machine would.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn api_server(&self) -> Result<Vec<String>, Error> {
        let Credentials {
            service_account_key_file,
            service_account_public_key_file,
            token_file,
            ..
        } = self.credentials;
        let mut args = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            "--bind-address=127.0.0.1".to_owned(),
            // Otherwise it looks for another address and fails on a machine without a network.
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--token-auth-file={}", token_file.display()),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!(
                "--service-account-key-file={}",
                service_account_public_key_file.display()
            ),
            format!(
                "--service-account-signing-key-file={}",
                service_account_key_file.display()
            ),
            format!("--service-cluster-ip-range={SERVICE_CIDR}"),
            // The kubernetes Service cannot have a loopback address as its endpoint.
            "--endpoint-reconciler-type=none".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
            format!("--max-requests-inflight={REQUESTS_INFLIGHT}"),
            format!("--max-mutating-requests-inflight={REQUESTS_INFLIGHT}"),
        ];
        args.extend(self.serving());
        if !self.options.runs(Component::ControllerManager) {
            args.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        if self.options.audit_log {
            args.extend(self.audit()?);
        }
        Ok(args)
    }

    fn audit(&self) -> Result<Vec<String>, Error> {
        let mut rules = vec![json!({"level": "Metadata", "verbs": AUDITED_VERBS})];
        let users = &self.options.audited_users;
        if !users.is_empty() {
            rules.insert(0, json!({"level": "Metadata", "users": users}));
        }
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": rules,
        });
        let policy = self
            .folder
            .write("audit-policy.yaml", &policy.to_string())?;
        Ok(vec![
            format!("--audit-policy-file={}", policy.display()),
            format!(
                "--audit-log-path={}",
                self.folder.logs().join("audit.log").display()
            ),
            // In megabytes. At its default of 100 the file is put aside while somebody reads on in it.
            "--audit-log-maxsize=100000".to_owned(),
        ])
    }

    fn scheduler(&self) -> Result<Vec<String>, Error> {
        let config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": self.credentials.admin_kubeconfig,
                "qps": CLIENT_QPS,
                "burst": CLIENT_BURST,
            },
            "leaderElection": {"leaderElect": false},
        });
        let config = self.folder.write("scheduler.yaml", &config.to_string())?;
        let mut args = vec![
            format!("--config={}", config.display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.scheduler),
        ];
        args.extend(self.serving());
        args.extend(self.delegated_auth());
        Ok(args)
    }

    fn controller_manager(&self) -> Vec<String> {
        let Credentials {
            ca_file,
            service_account_key_file,
            admin_kubeconfig,
            ..
        } = self.credentials;
        let mut args = vec![
            format!("--kubeconfig={}", admin_kubeconfig.display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.controller_manager),
            "--leader-elect=false".to_owned(),
            format!("--controllers={}", CONTROLLERS.join(",")),
            format!("--kube-api-qps={CLIENT_QPS}"),
            format!("--kube-api-burst={CLIENT_BURST}"),
            format!("--node-monitor-period={NODE_MONITOR_PERIOD}"),
            format!("--root-ca-file={}", ca_file.display()),
            format!(
                "--service-account-private-key-file={}",
                service_account_key_file.display()
            ),
        ];
        args.extend(self.serving());
        args.extend(self.delegated_auth());
        args
    }

    fn kwok(&self) -> Result<Vec<String>, Error> {
        let config = json!({
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            "options": {
                "podPlayStageParallelism": KWOK_PARALLELISM,
                "nodePlayStageParallelism": KWOK_PARALLELISM,
                "nodeLeaseParallelism": KWOK_PARALLELISM,
                "podsOnNodeSyncParallelism": KWOK_PARALLELISM,
            },
        });
        let config = self
            .folder
            .write("kwok.yaml", &format!("{config}\n---\n{STAGES}"))?;
        Ok(vec![
            format!(
                "--kubeconfig={}",
                self.credentials.admin_kubeconfig.display()
            ),
            format!("--config={}", config.display()),
            format!(
                "--manage-nodes-with-annotation-selector={}=fake",
                crate::FAKE_NODE_ANNOTATION
            ),
            format!(
                "--node-lease-duration-seconds={}",
                self.options.node_lease.as_secs().max(1)
            ),
            format!("--server-address=127.0.0.1:{}", self.ports.kwok),
            format!("--cidr={POD_CIDR}"),
        ])
    }

    fn serving(&self) -> [String; 2] {
        let Credentials {
            certificate_file,
            key_file,
            ..
        } = self.credentials;
        [
            format!("--tls-cert-file={}", certificate_file.display()),
            format!("--tls-private-key-file={}", key_file.display()),
        ]
    }

    /// Whom scheduler and controller manager ask about those who call their own ports.
    fn delegated_auth(&self) -> [String; 3] {
        let kubeconfig = self.credentials.admin_kubeconfig.display();
        [
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            // Client certificates: there are none, and looking for their authority fills the log.
            "--authentication-skip-lookup=true".to_owned(),
        ]
    }
}
