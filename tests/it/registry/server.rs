//! The distribution project's registry, a token server in front of another, and a way to both that can be cut.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::stage::{Stage, tool};

pub(super) const USER: &str = "puller";
pub(super) const PASSWORD: &str = "correct horse";
/// The same for htpasswd, by bcrypt.
const HTPASSWD: &str = "puller:$2a$04$AM.Cir2UxVn7HWyrKrB6k.qz59XfoFqK0/aQ4E0KQgt/IybO5cCye\n";

/// A server of tests/tools/registry; it ends with this value.
pub(super) struct Server {
    process: Child,
    pub(super) port: u16,
    said: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// What it said after it began to listen.
    pub(super) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that is gone already is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The control plane's certificate, which names localhost, and its CA, which no system knows.
pub(super) struct Tls {
    pub(super) roots: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Tls {
    pub(super) fn of(stage: &Stage) -> Self {
        let kubeconfig = stage.control_plane.kubeconfig_path();
        let folder = kubeconfig.parent().unwrap();
        Self {
            roots: folder.join("ca.crt"),
            certificate: folder.join("server.crt"),
            key: folder.join("server.key"),
        }
    }
}

/// A registry that wants user and password, with its artifacts in the folder.
pub(super) fn registry(tls: &Tls, folder: &Path) -> Server {
    let file = folder.join("htpasswd");
    std::fs::write(&file, HTPASSWD).unwrap();
    let auth = format!("htpasswd: {{realm: kerf, path: {}}}", file.display());
    serve(tls, folder, &auth)
}

/// A registry that wants a token, which `tokens` gives, with its artifacts in the folder.
pub(super) fn registry_with_tokens(tls: &Tls, folder: &Path, tokens: &Server) -> Server {
    let auth = format!(
        r#"silly: {{realm: "https://localhost:{}/token", service: tests}}"#,
        tokens.port
    );
    serve(tls, folder, &auth)
}

/// A server that gives tokens to the user.
pub(super) fn tokens(tls: &Tls) -> Server {
    let mut command = Command::new(program());
    command
        .arg("token")
        .args([&tls.certificate, &tls.key])
        .args([USER, PASSWORD]);
    start(command)
}

/// A storage that sends readers on once within itself, and asks for their login.
pub(super) fn storage(tls: &Tls) -> Server {
    let mut command = Command::new(program());
    command.arg("storage").args([&tls.certificate, &tls.key]);
    start(command)
}

/// A registry that sends who is logged in to the storage.
pub(super) fn front(tls: &Tls, storage: &Server) -> Server {
    let mut command = Command::new(program());
    command
        .arg("front")
        .args([&tls.certificate, &tls.key])
        .arg(format!("https://localhost:{}", storage.port));
    start(command)
}

fn serve(tls: &Tls, folder: &Path, auth: &str) -> Server {
    let config = format!(
        "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nauth:\n  {auth}\n\
         http:\n  addr: 127.0.0.1:0\n  secret: of-the-tests\n  tls: {{certificate: {}, key: {}}}\n",
        folder.display(),
        tls.certificate.display(),
        tls.key.display()
    );
    let file = folder.join("config.yaml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(program());
    command
        .arg("serve")
        .arg(file)
        .env("OTEL_TRACES_EXPORTER", "none");
    start(command)
}

fn program() -> PathBuf {
    let program = tool("registry");
    assert!(
        program.is_file(),
        "no {}; run tests/tools/build.sh registry",
        program.display()
    );
    program
}

/// Starts it and waits until it says where it listens.
fn start(mut command: Command) -> Server {
    let mut process = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let port = port_in(&line);
        said.push(line);
        port
    });
    // A full pipe would stop the server.
    let later = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&later);
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            own.lock().unwrap().push(line);
        }
    });
    let port = port.unwrap_or_else(|| panic!("it never listened: {said:?}"));
    Server {
        process,
        port,
        said: later,
    }
}

fn port_in(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("listening on ")?;
    let (_, port) = rest.split_once(':')?;
    let digits = port
        .find(|it: char| !it.is_ascii_digit())
        .unwrap_or(port.len());
    port[..digits].parse().ok()
}

/// A way to a server on which an answer ends after so many bytes.
pub(super) struct Way {
    pub(super) port: u16,
    bytes_max: Arc<AtomicUsize>,
}

impl Way {
    pub(super) fn to(port: u16, bytes_max: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let bytes_max = Arc::new(AtomicUsize::new(bytes_max));
        let limit = Arc::clone(&bytes_max);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let (to, from) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass(client, server, usize::MAX));
                let most = limit.load(Ordering::SeqCst);
                std::thread::spawn(move || pass(from, to, most));
            }
        });
        Self {
            port: own,
            bytes_max,
        }
    }

    /// From the next connection on everything passes.
    pub(super) fn open(&self) {
        self.bytes_max.store(usize::MAX, Ordering::SeqCst);
    }
}

/// Passes on at most so many bytes, and ends both ends.
fn pass(mut from: TcpStream, mut to: TcpStream, mut most: usize) {
    let mut buffer = [0; 4096];
    while most > 0 {
        let want = buffer.len().min(most);
        match from.read(&mut buffer[..want]) {
            Ok(read @ 1..) if to.write_all(&buffer[..read]).is_ok() => most -= read,
            _ => break,
        }
    }
    // The other direction may have ended both before.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
