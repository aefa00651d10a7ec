//! A way to a server that can be cut or held up: bytes pass as they are, and each launch that is asked for is written down.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use jiff::Timestamp;

/// The header that names the action; names of headers are in small letters on the wire or not.
const LAUNCH: &[u8] = b"x-acs-action: runinstances";
const CHUNK_BYTES: usize = 16 * 1024;

/// Whether bytes pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Connections end, and new ones end at once.
    Cut,
    /// Connections stay, and nothing passes.
    HeldUp,
}

/// Ends with the process; nothing but loopback is behind it.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    target: String,
    way: Mutex<Way>,
    way_changed: Condvar,
    launches: Mutex<Vec<Timestamp>>,
    /// The clients' ends, to be closed by a cut.
    clients: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Before the server at `url`, whatever it speaks.
    pub(crate) fn open(url: &str) -> Result<Self> {
        let (_, target) = url.split_once("://").unwrap_or(("", url));
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr().context("no address")?;
        let state = Arc::new(State {
            target: target.trim_end_matches('/').to_owned(),
            way: Mutex::new(Way::Open),
            way_changed: Condvar::new(),
            launches: Mutex::default(),
            clients: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || state.connect(&client));
            }
        });
        Ok(Self { address, state })
    }

    /// `127.0.0.1:port`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a plain HTTP server is reached through this.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// When launches were asked for.
    pub(crate) fn launches(&self) -> Vec<Timestamp> {
        lock(&self.state.launches).clone()
    }

    /// From now on.
    pub(crate) fn set(&self, way: Way) {
        *lock(&self.state.way) = way;
        self.state.way_changed.notify_all();
        if way == Way::Cut {
            self.drop_connections();
        }
    }

    /// Ends what is connected now; new connections are as they were.
    pub(crate) fn drop_connections(&self) {
        for client in lock(&self.state.clients).drain(..) {
            // It may have ended already.
            let _ = client.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    /// Both ways until one side ends.
    fn connect(&self, client: &TcpStream) {
        if *lock(&self.way) == Way::Cut {
            return;
        }
        let (Ok(server), Ok(handle)) = (TcpStream::connect(&self.target), client.try_clone())
        else {
            return;
        };
        lock(&self.clients).push(handle);
        std::thread::scope(|scope| {
            scope.spawn(|| self.pass(&server, client, |_| {}));
            let mut tail = Vec::new();
            self.pass(client, &server, |bytes| {
                let count = count(&mut tail, bytes);
                lock(&self.launches).extend(std::iter::repeat_n(Timestamp::now(), count));
            });
        });
    }

    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, mut see: impl FnMut(&[u8])) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            let Some(bytes) = chunk.get(..length) else {
                break;
            };
            let is_held_up = |way: &mut Way| *way == Way::HeldUp;
            let way = self.way_changed.wait_while(lock(&self.way), is_held_up);
            drop(way.unwrap_or_else(PoisonError::into_inner));
            see(bytes);
            if to.write_all(bytes).is_err() {
                break;
            }
        }
        // The other side may have ended already.
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Launches in these bytes, also one whose header began in the last ones.
fn count(tail: &mut Vec<u8>, bytes: &[u8]) -> usize {
    tail.extend(bytes.iter().map(u8::to_ascii_lowercase));
    let found = tail
        .windows(LAUNCH.len())
        .filter(|it| *it == LAUNCH)
        .count();
    let keep = tail.len().saturating_sub(LAUNCH.len() - 1);
    tail.drain(..keep);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_counted_once_wherever_the_bytes_are_cut() {
        let text = b"POST / HTTP/1.1\r\nX-Acs-Action: RunInstances\r\n\r\nPOST / HTTP/1.1\r\nx-acs-action: DescribeInstances\r\n";
        for cut in 0..text.len() {
            let mut tail = Vec::new();
            let (first, second) = text.split_at(cut);

            assert_eq!(
                count(&mut tail, first) + count(&mut tail, second),
                1,
                "{cut}"
            );
        }
    }

    #[test]
    fn what_is_held_up_passes_when_the_way_is_open_again() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::open(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        relay.set(Way::HeldUp);
        let mut client = TcpStream::connect(relay.address()).unwrap();
        client.write_all(b"hello").unwrap();
        let (mut far, _) = server.accept().unwrap();
        far.set_nonblocking(true).unwrap();
        let early = far.read(&mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(early, Err(std::io::ErrorKind::WouldBlock));

        relay.set(Way::Open);

        far.set_nonblocking(false).unwrap();
        let mut seen = [0; 5];
        far.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, b"hello");
    }

    #[test]
    fn a_cut_ends_what_is_connected_and_what_comes() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::open(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        let mut client = TcpStream::connect(relay.address()).unwrap();
        client.write_all(b"hello").unwrap();
        let (mut far, _) = server.accept().unwrap();
        let mut seen = [0; 5];
        far.read_exact(&mut seen).unwrap();

        relay.set(Way::Cut);

        assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
        let mut late = TcpStream::connect(relay.address()).unwrap();
        assert_eq!(late.read(&mut [0; 1]).unwrap_or(0), 0);
    }
}
