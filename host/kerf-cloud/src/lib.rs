//! Alibaba Cloud: the signed client and what is built on it.
//!
//! Three layers, each using only the one before: [`rpc`] signs, sends, retries and throttles one call; [`actions`]
//! gives each API action a typed request and reply; [`provider`] is what the controllers use: resolve a node class,
//! list instance types with prices and stock, make user data, launch, describe and delete.
//!
//! This crate never sees a Kubernetes object and reads no environment: what it needs comes in as values. There is no
//! trait in front of the cloud; tests point the endpoints at a server (`host/ecs-sim`). Start reading at
//! [`provider::Provider`].

pub mod actions;
pub mod error;
pub mod provider;
pub mod ram_policy;
pub mod rpc;

pub use error::{CloudError, ErrorClass};
pub use provider::Provider;
pub use rpc::{Client, ClientConfig, Credentials};
