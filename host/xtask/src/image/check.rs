//! The image as a runtime uses it: unpacked, its root read-only, its user, its entry point, and the cloud over TLS, whose
//! certificates are checked with what the image brings.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use serde_json::{Value, json};

use super::tls::Gate;
use super::{CERTIFICATES, LAYER};
use crate::demo::child::Child;
use crate::oci::hex_digest;
use crate::process;
use crate::rig::{self, ACCESS_KEY, Build, CLUSTER_ID, NAMESPACE, REGION, Rig};

/// Found by the hosts file alone, so that the program's own look-up of names is tried, too.
const HOST: &str = "ecs.image-check.test";
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";
const RUN: &str = "image-check";
const PODS: usize = 5;
const BOUND_MAX: Duration = Duration::from_secs(120);
/// What a runtime does: $1 is the root, $2 its user, and then the entry point.
const START: &str = r#"set -e
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid --inh-caps=-all \
  -- chroot --userspec="$user" --groups= "$root" "$@""#;

/// Unpacks the layout and runs what is in it.
pub(super) fn run(layout: &Path) -> Result<()> {
    let folder = layout.with_extension("root");
    let image = unpack(layout, &folder)?;
    let mut rig = Rig::start(
        "image-check",
        Build::Dev,
        control_plane::Options::default(),
        WORLD,
    )?;
    let gate = Gate::open(HOST, rig.sim_url())?;
    image.write("etc/hosts", &format!("127.0.0.1 localhost {HOST}\n"))?;
    image.write("kubeconfig", &kubeconfig(&rig))?;
    for place in ["proc", "dev"] {
        std::fs::create_dir_all(image.root.join(place)).context("cannot make a mount point")?;
    }
    image.require_no_trust(&gate)?;
    let bundle = image.root.join(CERTIFICATES.trim_start_matches('/'));
    let bundled = std::fs::read_to_string(&bundle).context("the image has no certificates")?;
    std::fs::write(&bundle, bundled + &gate.authority_pem).context("cannot add the authority")?;

    rig.api.apply(
        &format!("/apis/karpenter.sh/v1/nodepools/{RUN}"),
        &rig::pool(RUN, "ecs.g7.xlarge"),
    )?;
    let log = rig.folder().join("kerf.log");
    let mut kerf = Child::start(Path::new("unshare"), &log, false, |command| {
        image.command(command, &gate, &["controller", "--disable-leader-election"]);
    })?;
    rig.api.post(
        "/apis/apps/v1/namespaces/default/deployments",
        &rig::deployment(RUN, RUN, PODS, "370m"),
    )?;
    let bound = rig.until("every pod bound", BOUND_MAX, |it| {
        if let Some(status) = kerf.ended() {
            bail!("kerf ended: {status}");
        }
        let pods = it.api.list("/api/v1/namespaces/default/pods")?;
        Ok(pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running")
            .count()
            == PODS)
    });
    bound.with_context(|| format!("the log ends with:\n{}", kerf.log_tail()))?;
    println!(
        "{PODS} pods bound; kerf ran as {} from a read-only root, the cloud over TLS",
        image.user
    );
    Ok(())
}

/// An unpacked image.
struct Unpacked {
    root: PathBuf,
    user: String,
    entry_point: Vec<String>,
    environment: Vec<String>,
}

/// Reads the layout as others do: each blob must be what its descriptor says.
fn unpack(layout: &Path, folder: &Path) -> Result<Unpacked> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let index: Value = serde_json::from_slice(&std::fs::read(layout.join("index.json"))?)?;
    let manifest: Value = serde_json::from_slice(&blob(layout, &index["manifests"][0])?.1)?;
    let config: Value = serde_json::from_slice(&blob(layout, &manifest["config"])?.1)?;
    for layer in manifest["layers"].as_array().context("no layers")? {
        if layer["mediaType"] != LAYER {
            bail!("a layer of another kind: {layer}");
        }
        let (path, _) = blob(layout, layer)?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--gzip", "--preserve-permissions", "--file"]);
        process::run(tar.arg(path).arg("--directory").arg(folder))?;
    }
    let texts = |name: &str| -> Vec<String> {
        let list = config["config"][name].as_array();
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    Ok(Unpacked {
        root: folder.to_owned(),
        user: config["config"]["User"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        entry_point: texts("Entrypoint"),
        environment: texts("Env"),
    })
}

fn blob(layout: &Path, descriptor: &Value) -> Result<(PathBuf, Vec<u8>)> {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let path = layout.join("blobs").join(digest.replace(':', "/"));
    let bytes = std::fs::read(&path).with_context(|| format!("no blob {digest}"))?;
    if digest != format!("sha256:{}", hex_digest(&bytes)) || descriptor["size"] != bytes.len() {
        bail!("the blob {digest} is not what its descriptor says");
    }
    Ok((path, bytes))
}

impl Unpacked {
    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// What follows `unshare`.
    fn command(&self, command: &mut Command, gate: &Gate, args: &[&str]) {
        command.args([
            "--mount",
            "--pid",
            "--ipc",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "--",
        ]);
        command
            .args(["sh", "-c", START, "sh"])
            .arg(&self.root)
            .arg(&self.user);
        command.args(&self.entry_point).args(args);
        command.args(["--region", REGION]);
        command.env_clear();
        for pair in &self.environment {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // The shell before the chroot needs the machine's own.
            let value = if name == "PATH" {
                "/usr/sbin:/usr/bin:/sbin:/bin"
            } else {
                value
            };
            command.env(name, value);
        }
        let [id, secret] = ACCESS_KEY;
        command.env("ALIBABA_CLOUD_ACCESS_KEY_ID", id);
        command.env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret);
        for product in ["ECS", "VPC", "CS", "RAM", "STS"] {
            command.env(
                format!("{product}_ENDPOINT"),
                format!("https://{HOST}:{}", gate.port),
            );
        }
        if args.first() == Some(&"controller") {
            command.args(["--namespace", NAMESPACE, "--cluster-id", CLUSTER_ID]);
            command.args([
                "--metrics-address",
                "127.0.0.1:0",
                "--kubeconfig",
                "/kubeconfig",
            ]);
            command.args(["--batch-idle-duration", "300ms"]);
        }
    }

    /// user-reports.md, F33. With the image's own certificates nobody of this name is trusted: what follows would prove nothing otherwise.
    fn require_no_trust(&self, gate: &Gate) -> Result<()> {
        let mut command = Command::new("unshare");
        self.command(&mut command, gate, &["catalog", "pull"]);
        let output = command.output().context("cannot start unshare")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || !said.contains("certificate") {
            bail!("the image takes a certificate that nobody signed, or failed otherwise: {said}");
        }
        Ok(())
    }
}

fn kubeconfig(rig: &Rig) -> String {
    let server = &rig.control_plane;
    let authority = base64::engine::general_purpose::STANDARD.encode(server.ca_pem());
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "local",
        "clusters": [{"name": "local", "cluster": {
            "server": server.server_url(), "certificate-authority-data": authority,
        }}],
        "users": [{"name": "local", "user": {"token": server.token()}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
    });
    config.to_string()
}
