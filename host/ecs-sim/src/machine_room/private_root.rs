//! A machine's own file system, in which user data runs as root without touching the host.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::user_data::{BootPlan, PlannedFile};

const PRIVATE_ROOT: &str = include_str!("../../data/private_root.sh");
const RUN_PARTS: &str = include_str!("../../data/run_parts.sh");

/// Programs and libraries: links on a merged system, folders elsewhere.
const PROGRAM_FOLDERS: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];
/// What programs need from the host's settings; absent ones are left out.
const SETTING_FOLDERS: &[&str] = &[
    "/etc/ssl",
    "/etc/alternatives",
    "/etc/pki",
    "/etc/ca-certificates",
];
const OWN_FOLDERS: &[&str] = &[
    "dev",
    "etc",
    "home",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "srv",
    "sys",
    "tmp",
    "var/log",
    "var/lib/cloud/data",
    "var/lib/cloud/instance/scripts",
    "var/lib/kubelet",
    "etc/kubernetes",
    "etc/sysctl.d",
    "etc/systemd/system",
];

/// The folders of one machine: `root` is what it sees, next to it is its log.
#[derive(Debug, Clone)]
pub(crate) struct PrivateRoot {
    folder: PathBuf,
}

/// Who the machine is.
#[derive(Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) instance_id: &'a str,
    pub(crate) host_name: &'a str,
    /// A proxy that answers for the metadata address, which a shared network has no room for.
    pub(crate) metadata_proxy: &'a str,
}

impl PrivateRoot {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.folder.join("boot.log")
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Lays out the file system: own folders, identity, the plan's files and scripts.
    pub(crate) fn prepare(
        &self,
        identity: &Identity<'_>,
        plan: &BootPlan,
        user_data: &[u8],
    ) -> io::Result<()> {
        let root = self.root();
        for folder in OWN_FOLDERS {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
        link_or_create(&root)?;
        for device in ["null", "zero", "random", "urandom"] {
            fs::write(root.join("dev").join(device), "")?;
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            symlink(target, root.join("dev").join(name))?;
        }
        let Identity {
            instance_id,
            host_name,
            metadata_proxy: _,
        } = identity;
        let texts = [
            ("etc/hostname", format!("{host_name}\n")),
            ("etc/hosts", format!("127.0.0.1 localhost {host_name}\n")),
            (
                "etc/passwd",
                "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
                    .to_owned(),
            ),
            ("etc/group", "root:x:0:\nnogroup:x:65534:\n".to_owned()),
            (
                "etc/os-release",
                "NAME=\"Alibaba Cloud Linux\"\nID=\"alinux\"\nVERSION_ID=\"3\"\n".to_owned(),
            ),
            ("var/lib/cloud/data/instance-id", format!("{instance_id}\n")),
            ("var/lib/cloud/run-parts.sh", RUN_PARTS.to_owned()),
        ];
        for (path, text) in texts {
            fs::write(root.join(path), text)?;
        }
        fs::write(root.join("var/lib/cloud/instance/user-data.txt"), user_data)?;
        for file in &plan.files {
            write_file(&root, file)?;
        }
        let scripts = root.join("var/lib/cloud/instance/scripts");
        for script in &plan.scripts {
            write_mode(&scripts.join(&script.name), &script.body, 0o700, false)?;
        }
        Ok(())
    }

    /// The process that runs the scripts; it and all its children end when it is killed.
    pub(crate) fn command(&self, identity: &Identity<'_>) -> io::Result<Command> {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        let mut command = Command::new("unshare");
        command
            .args([
                "--mount",
                "--pid",
                "--uts",
                "--ipc",
                "--fork",
                "--kill-child",
                "--",
                "/bin/bash",
                "-c",
                PRIVATE_ROOT,
                "private-root",
            ])
            .arg(self.root())
            .args(
                PROGRAM_FOLDERS
                    .iter()
                    .chain(SETTING_FOLDERS)
                    .filter(|folder| is_real_folder(folder)),
            )
            .env_clear()
            .env(
                "PATH",
                "/opt/ecs-sim/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8")
            .env("http_proxy", identity.metadata_proxy)
            .env("no_proxy", "127.0.0.1,localhost")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        Ok(command)
    }

    pub(crate) fn append_log(&self, line: &str) -> io::Result<()> {
        let mut log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        writeln!(log, "{line}")
    }

    /// A file as the machine would read it. Links that lead out of the machine lead nowhere.
    pub(crate) fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        let root = self.root().canonicalize()?;
        let file = root.join(path.trim_start_matches('/')).canonicalize()?;
        if file.starts_with(&root) {
            fs::read(file)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// Removes the file system; the log stays.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(self.root())
    }
}

fn is_real_folder(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// The places where the host's folders will be mounted, and the links of a merged `/usr`.
fn link_or_create(root: &Path) -> io::Result<()> {
    for folder in PROGRAM_FOLDERS.iter().chain(SETTING_FOLDERS) {
        let inside = root.join(folder.trim_start_matches('/'));
        if let Ok(target) = fs::read_link(folder) {
            // Relative, so that it leads nowhere but into this root, seen from either side.
            symlink(target.strip_prefix("/").unwrap_or(&target), inside)?;
        } else if is_real_folder(folder) {
            fs::create_dir_all(inside)?;
        }
    }
    Ok(())
}

fn write_file(root: &Path, file: &PlannedFile) -> io::Result<()> {
    let inside: PathBuf = Path::new(&file.path)
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect();
    let path = root.join(inside);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    write_mode(&path, &file.content, file.mode, file.append)
}

fn write_mode(path: &Path, content: &[u8], mode: u32, append: bool) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .write(true)
        .append(append)
        .truncate(!append)
        .mode(mode)
        .open(path)?;
    file.write_all(content)
}
