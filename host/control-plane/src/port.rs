//! Chooses ports for the servers.
//!
//! They are not left to the kernel (port 0), which takes them from the range that it also gives to outgoing connections:
//! while a killed server is down, a client that keeps dialling would sooner or later be given the server's own port as its
//! source port, connect to itself and keep the server from coming back. So they lie below that range.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// Above the ports of well-known servers and below 32768, where Linux starts to give out ports by itself.
const RANGE: Range<u16> = 20_000..32_768;

/// How far into the range the search has come. Each process begins somewhere else, and never hands a port out twice before
/// it has been through all of them: a server takes its port seconds after it was chosen.
static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(0) % u64::from(RANGE.end);
    AtomicU32::new(u32::try_from(random).unwrap_or_default())
});

/// The ports of one control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
    pub(crate) scheduler: u16,
    pub(crate) controller_manager: u16,
    pub(crate) kwok: u16,
}

impl Ports {
    /// Finds ports that nobody listens on.
    pub(crate) fn choose() -> Result<Self, Error> {
        let mut free = RANGE
            .map(|_| NEXT.fetch_add(1, Ordering::Relaxed) % u32::from(RANGE.end - RANGE.start))
            .filter_map(|offset| u16::try_from(offset).ok())
            .map(|offset| RANGE.start + offset)
            .filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
        let mut next = || free.next().ok_or(Error::FindPort);
        Ok(Self {
            etcd: next()?,
            etcd_peer: next()?,
            api_server: next()?,
            scheduler: next()?,
            controller_manager: next()?,
            kwok: next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_control_planes_never_get_the_same_port() {
        let all = |ports: Ports| {
            let Ports {
                etcd,
                etcd_peer,
                api_server,
                scheduler,
                controller_manager,
                kwok,
            } = ports;
            [
                etcd,
                etcd_peer,
                api_server,
                scheduler,
                controller_manager,
                kwok,
            ]
        };

        let first = all(Ports::choose().unwrap());
        let second = all(Ports::choose().unwrap());

        assert!(
            first
                .iter()
                .all(|port| RANGE.contains(port) && !second.contains(port))
        );
    }
}
