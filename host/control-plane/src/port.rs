//! Chooses ports for the servers.
//!
//! They are not left to the kernel (port 0), which takes them from the range that it also gives to outgoing connections:
//! while a killed server is down, a client that keeps dialling would sooner or later be given the server's own port as its
//! source port, connect to itself and keep the server from coming back. So they lie below that range.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use crate::Error;

/// Above the ports of well-known servers and below 32768, where Linux starts to give out ports by itself.
const RANGE: Range<u16> = 20_000..32_768;

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
    /// Finds ports that nobody listens on. Control planes that start at the same time begin at different places.
    pub(crate) fn choose() -> Result<Self, Error> {
        let span = u64::from(RANGE.end - RANGE.start);
        let start = RandomState::new().hash_one(std::process::id()) % span;
        let mut free = (0..span)
            .filter_map(|step| u16::try_from((start + step) % span).ok())
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
