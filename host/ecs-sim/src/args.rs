//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::Timestamp;

/// A simulator of Alibaba Cloud's ECS, VPC, CS, RAM and STS.
#[derive(Debug, clap::Parser)]
#[command(version)]
pub(crate) struct Args {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Cluster in which booted instances become nodes.
    #[arg(long)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Region to be; the world file's or cn-hangzhou if not given.
    #[arg(long)]
    pub(crate) region: Option<String>,
    /// YAML file with the network, images, stock and timing to start with.
    #[arg(long)]
    pub(crate) world: Option<PathBuf>,
    #[arg(long, default_value = "LTAIsim")]
    pub(crate) access_key_id: String,
    #[arg(long, default_value = "simulated", hide_default_value = true)]
    pub(crate) access_key_secret: String,
    /// What the clock shows at the start, for requests that were signed then; the present if not given.
    #[arg(long)]
    pub(crate) now: Option<Timestamp>,
    /// Makes the access key one of a session with this token.
    #[arg(long)]
    pub(crate) security_token: Option<String>,
    /// Print one line of JSON with the address when requests are taken.
    #[arg(long)]
    pub(crate) print_ready: bool,
}
