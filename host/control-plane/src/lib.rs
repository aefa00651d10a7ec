//! Starts and stops a real local control plane: etcd, kube-apiserver, kube-scheduler, kube-controller-manager and
//! kwok, which plays the kubelets. Tests, `xtask` and `make run` use it.
//!
//! It blocks and knows no async runtime, so that any caller can use it; from async code call it in `spawn_blocking`.
//! It must never leave a process behind: dropping a [`ControlPlane`] kills what it started, and so does the kernel
//! when the process that holds it dies (see `process.rs`).
//!
//! kwok keeps alive only the nodes that carry the annotation [`FAKE_NODE_ANNOTATION`]`: fake`. What it does to them
//! and to their pods, and the annotations that delay or break it, are at the top of `stages.yaml`.
//!
//! Start reading at `control_plane.rs`; the flags of each server, and why, are in `command.rs`.

mod binary;
mod client;
mod command;
mod component;
mod control_plane;
mod credentials;
mod error;
mod folder;
mod log;
mod options;
mod port;
mod process;
mod readiness;

pub use component::Component;
pub use control_plane::ControlPlane;
pub use error::Error;
pub use options::{Options, User};

/// A node with this annotation, and the value `fake`, is kept alive by kwok.
pub const FAKE_NODE_ANNOTATION: &str = "kwok.x-k8s.io/node";
