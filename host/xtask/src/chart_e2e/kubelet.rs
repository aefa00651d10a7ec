//! What a kubelet does with the pods of the Deployment: a process for each, from the pod's own spec.
//!
//! Each has a mount namespace with its projected volumes where the pod wants them, the pod's user, no capability, and
//! the environment and the arguments of the container and nothing else. One thing differs: two pods share an address
//! here, so that both ports are 0. The root file system is not made read-only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use serde_json::{Value, json};

use super::objects::NAMESPACE;
use crate::demo::child::Child;
use crate::rig::Rig;

/// Runs as root in a mount namespace of its own: $1 has the files, $2 is the program, $3 and $4 are user and group.
const START: &str = r#"set -e
mount -t tmpfs tmpfs /run
mkdir -p /var/run/secrets
cp -a "$1/." /var/run/secrets/
touch /run/kerf
mount --bind "$2" /run/kerf
user=$3 group=$4
shift 4
exec setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  --pdeathsig TERM -- /run/kerf "$@""#;
/// All mounts of the chart are below it.
const SECRETS: &str = "/var/run/secrets";
/// Exit code of a process that wants to be started anew.
const RESTART: i32 = 3;
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) struct Kubelet {
    folder: PathBuf,
    /// By the pod's uid, with its name.
    processes: BTreeMap<String, (String, Child)>,
}

impl Kubelet {
    pub(super) fn new(rig: &Rig) -> Result<Self> {
        let folder = rig.folder().join("pods");
        std::fs::create_dir_all(&folder).context("cannot make a folder for pods")?;
        Ok(Self {
            folder,
            processes: BTreeMap::new(),
        })
    }

    pub(super) fn running(&self) -> usize {
        self.processes.len()
    }

    pub(super) fn log_tails(&self) -> String {
        let tails = self.processes.values().map(|(_, child)| child.log_tail());
        tails.collect::<Vec<_>>().join("\n--\n")
    }

    /// kill -9 of a pod's process; the next sync starts it anew, as a kubelet does.
    pub(super) fn kill(&mut self, pod: &str) -> Result<()> {
        let uid = self.processes.iter().find(|(_, (name, _))| name == pod);
        let uid = uid.map(|(uid, _)| uid.clone());
        let (_, child) = uid
            .and_then(|uid| self.processes.remove(&uid))
            .with_context(|| format!("no process for the pod {pod}"))?;
        child.kill();
        Ok(())
    }

    /// Starts what is bound, stops what is going.
    pub(super) fn sync(&mut self, rig: &Rig) -> Result<()> {
        let pods = rig
            .api
            .list(&format!("/api/v1/namespaces/{NAMESPACE}/pods"))?;
        let wanted = pods.iter().filter(|pod| {
            pod["metadata"]["deletionTimestamp"].is_null() && pod["spec"]["nodeName"].is_string()
        });
        let wanted: BTreeMap<String, &Value> = wanted
            .filter_map(|pod| Some((pod["metadata"]["uid"].as_str()?.to_owned(), pod)))
            .collect();
        // Dropping one stops it as a kubelet does: SIGTERM, then time.
        self.processes.retain(|uid, _| wanted.contains_key(uid));
        self.processes.retain(|_, (_, child)| match child.ended() {
            Some(status) => status.code() != Some(RESTART),
            None => true,
        });
        for (name, child) in self.processes.values_mut() {
            if let Some(status) = child.ended() {
                bail!(
                    "pod {name} ended: {status}; its log ends with:\n{}",
                    child.log_tail()
                );
            }
        }
        for (uid, pod) in wanted {
            if !self.processes.contains_key(&uid) {
                let child = self.start(pod, rig)?;
                let name = text(pod, "/metadata/name").to_owned();
                self.processes.insert(uid, (name, child));
            }
        }
        Ok(())
    }

    fn start(&self, pod: &Value, rig: &Rig) -> Result<Child> {
        let name = text(pod, "/metadata/name");
        let files = self.folder.join(name);
        mount(pod, &files, rig)?;
        let container = &pod["spec"]["containers"][0];
        let id = |field: &str| {
            pod["spec"]["securityContext"][field]
                .as_u64()
                .unwrap_or_default()
        };
        let (user, group) = (id("runAsUser"), id("runAsGroup"));
        let mut env = environment(pod, rig)?;
        env.extend(service(&rig.control_plane.server_url())?);
        // The exception.
        env.extend(
            ["METRICS_PORT", "HEALTH_PROBE_PORT"].map(|name| (name.to_owned(), "0".to_owned())),
        );
        let args = container["args"].as_array().cloned().unwrap_or_default();
        let log = self.folder.join(format!("{name}.log"));
        Child::start(Path::new("unshare"), &log, false, |command| {
            command.args([
                "--mount",
                "--propagation",
                "private",
                "--",
                "sh",
                "-c",
                START,
                "sh",
            ]);
            command.arg(&files).arg(rig.program("kerf"));
            command.arg(user.to_string()).arg(group.to_string());
            command.args(args.iter().filter_map(Value::as_str));
            command.env_clear().env("PATH", PATH).envs(env);
        })
    }
}

/// How a pod finds the API server.
fn service(url: &str) -> Result<[(String, String); 2]> {
    let address = url.trim_start_matches("https://");
    let (host, port) = address
        .rsplit_once(':')
        .context("the API server has no port")?;
    Ok([
        ("KUBERNETES_SERVICE_HOST".to_owned(), host.to_owned()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), port.to_owned()),
    ])
}

/// Writes the files of projected volumes.
fn mount(pod: &Value, folder: &Path, rig: &Rig) -> Result<()> {
    let volumes = pod["spec"]["volumes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mounts = pod["spec"]["containers"][0]["volumeMounts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for volume in &volumes {
        let Some(sources) = volume["projected"]["sources"].as_array() else {
            continue;
        };
        let place = mounts.iter().find(|it| it["name"] == volume["name"]);
        let place = place
            .and_then(|it| it["mountPath"].as_str())
            .unwrap_or_default();
        let below = place
            .strip_prefix(SECRETS)
            .with_context(|| format!("a volume at {place}, which is not below {SECRETS}"))?;
        let target = folder.join(below.trim_start_matches('/'));
        std::fs::create_dir_all(&target).context("cannot make a mount point")?;
        for source in sources {
            for (file, content) in project(source, pod, rig)? {
                std::fs::write(target.join(file), content)
                    .context("cannot write a projected file")?;
            }
        }
    }
    Ok(())
}

fn project(source: &Value, pod: &Value, rig: &Rig) -> Result<Vec<(String, String)>> {
    if let Some(token) = source.get("serviceAccountToken") {
        let path = text(token, "/path").to_owned();
        return Ok(vec![(path, request_token(token, pod, rig)?)]);
    }
    if let Some(config_map) = source.get("configMap") {
        let name = text(config_map, "/name");
        let object = rig
            .api
            .get(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"))?;
        let items = config_map["items"].as_array().cloned().unwrap_or_default();
        let content = |item: &Value| {
            let content = object["data"][text(item, "/key")]
                .as_str()
                .unwrap_or_default();
            (text(item, "/path").to_owned(), content.to_owned())
        };
        return Ok(items.iter().map(content).collect());
    }
    let items = source["downwardAPI"]["items"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let content = |item: &Value| {
        let value = field(pod, text(item, "/fieldRef/fieldPath"));
        (text(item, "/path").to_owned(), value)
    };
    Ok(items.iter().map(content).collect())
}

/// As the kubelet asks for it: bound to the pod.
fn request_token(token: &Value, pod: &Value, rig: &Rig) -> Result<String> {
    let account = text(pod, "/spec/serviceAccountName");
    let mut spec = json!({
        "expirationSeconds": token["expirationSeconds"],
        "boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod",
            "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"],
        },
    });
    if let Some(audience) = token["audience"].as_str() {
        spec["audiences"] = json!([audience]);
    }
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let answer = rig.api.post(&path, &request)?;
    Ok(text(&answer, "/status/token").to_owned())
}

fn environment(pod: &Value, rig: &Rig) -> Result<Vec<(String, String)>> {
    let container = &pod["spec"]["containers"][0];
    let entries = container["env"].as_array().cloned().unwrap_or_default();
    // The entries come later and win.
    let mut variables = sources(container, rig)?;
    for entry in &entries {
        let from = &entry["valueFrom"];
        let value = if let Some(path) = from.pointer("/fieldRef/fieldPath").and_then(Value::as_str)
        {
            field(pod, path)
        } else if from.get("resourceFieldRef").is_some() {
            millicores(text(container, "/resources/requests/cpu"))?
        } else if let Some(key) = from.get("secretKeyRef") {
            secret(key, rig)?
        } else if let Some(key) = from.get("configMapKeyRef") {
            let found = config_map(text(key, "/name"), rig)?;
            match found.iter().find(|(name, _)| name == text(key, "/key")) {
                Some((_, value)) => value.clone(),
                None if key["optional"] == true => continue,
                None => bail!("the ConfigMap has no {}", text(key, "/key")),
            }
        } else {
            text(entry, "/value").to_owned()
        };
        variables.push((text(entry, "/name").to_owned(), value));
    }
    Ok(variables)
}

/// All keys of the ConfigMaps and Secrets that `envFrom` names.
fn sources(container: &Value, rig: &Rig) -> Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    for source in container["envFrom"].as_array().into_iter().flatten() {
        if let Some(map) = source.get("configMapRef") {
            variables.extend(config_map(text(map, "/name"), rig)?);
        }
        if let Some(secret) = source.get("secretRef") {
            variables.extend(secret_keys(text(secret, "/name"), rig)?);
        }
    }
    Ok(variables)
}

fn config_map(name: &str, rig: &Rig) -> Result<Vec<(String, String)>> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}");
    let object = rig.api.get(&path)?;
    let data = object["data"].as_object().cloned().unwrap_or_default();
    let pairs = data.into_iter();
    Ok(pairs
        .map(|(key, value)| (key, value.as_str().unwrap_or_default().to_owned()))
        .collect())
}

fn secret_keys(name: &str, rig: &Rig) -> Result<Vec<(String, String)>> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}");
    let object = rig.api.get(&path)?;
    let data = object["data"].as_object().cloned().unwrap_or_default();
    data.keys()
        .map(|key| {
            Ok((
                key.clone(),
                secret(&json!({"name": name, "key": key}), rig)?,
            ))
        })
        .collect()
}

fn millicores(cpu: &str) -> Result<String> {
    match cpu.strip_suffix('m') {
        Some(millis) => Ok(millis.to_owned()),
        None => {
            Ok((cpu.parse::<u32>().with_context(|| format!("cpu {cpu:?}"))? * 1000).to_string())
        }
    }
}

fn secret(key: &Value, rig: &Rig) -> Result<String> {
    let (name, key) = (text(key, "/name"), text(key, "/key"));
    let object = rig
        .api
        .get(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}"))?;
    let encoded = object["data"][key].as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded)?;
    String::from_utf8(bytes).with_context(|| format!("key {key} of the secret {name}"))
}

fn field(pod: &Value, path: &str) -> String {
    text(pod, &format!("/{}", path.replace('.', "/"))).to_owned()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
