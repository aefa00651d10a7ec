//! The way of one replica to the cloud: bytes pass as they are, and each launch that is asked for is written down.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use jiff::Timestamp;

/// The header that names the action; names of headers are in small letters on the wire or not.
const LAUNCH: &[u8] = b"x-acs-action: runinstances";
const CHUNK_BYTES: usize = 16 * 1024;

/// Ends with the process; nothing but loopback is behind it.
#[derive(Debug)]
pub(super) struct Gate {
    url: String,
    launches: Arc<Mutex<Vec<Timestamp>>>,
}

impl Gate {
    /// Before the cloud at `url`.
    pub(super) fn open(url: &str) -> Result<Self> {
        let target = url
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let own = listener.local_addr().context("no address")?;
        let launches = Arc::<Mutex<Vec<Timestamp>>>::default();
        let log = Arc::clone(&launches);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (target, log) = (target.clone(), Arc::clone(&log));
                std::thread::spawn(move || connect(&client, &target, &log));
            }
        });
        Ok(Self {
            url: format!("http://{own}"),
            launches,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// When launches were asked for.
    pub(super) fn launches(&self) -> Vec<Timestamp> {
        self.launches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Both ways until one side ends.
fn connect(client: &TcpStream, target: &str, log: &Mutex<Vec<Timestamp>>) {
    let Ok(server) = TcpStream::connect(target) else {
        return;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| pass(&server, client, |_| {}));
        let mut tail = Vec::new();
        pass(client, &server, |bytes| {
            let count = count(&mut tail, bytes);
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.extend(std::iter::repeat_n(super::now(), count));
        });
    });
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, mut see: impl FnMut(&[u8])) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        let Some(bytes) = chunk.get(..length) else {
            break;
        };
        see(bytes);
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    // The other side may have ended already.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
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
}
