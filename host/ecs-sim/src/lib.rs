//! A stateful simulator of ECS, VPC, CS, RAM and STS over real HTTP.
//!
//! It speaks the wire and nothing else: signatures, parameters, pages and errors as Alibaba Cloud has them, from
//! public facts, and shares no code with `kerf-cloud`, so that a mistake in one cannot hide a mistake in the other.
//! Instances boot by running their user data; one whose user data is wrong never becomes a node.
//!
//! Start reading at [`EcsSim::start`]; a call's way is in `gateway`, the actions are in `api`, machines in `machine_room`.
//! Tests steer it through [`EcsSim`] or, from another process, over HTTP under `/_sim/` (see `admin`).

mod admin;
mod announced;
mod api;
mod app;
mod calls;
mod catalog;
mod clock;
mod connection;
mod error;
mod faults;
mod gateway;
mod instance;
mod join;
mod keyring;
mod kubelet;
mod machine_room;
mod node;
mod nodes_http;
mod params;
mod planted;
mod quantity;
mod reply;
mod route;
mod signature;
mod sim;
mod state;
mod tokens;
mod user_data;
mod view;
mod wire;
mod world;

pub use announced::{Announced, Notice};
pub use calls::Count;
pub use catalog::{Catalog, CatalogError, InstanceType, Network};
pub use clock::set_clock;
pub use faults::{Effect, Fault, Weather};
pub use kubelet::KubeletError;
pub use planted::Planted;
pub use sim::{EcsSim, Options, StartError};
pub use view::InstanceView;
pub use world::{
    Cidr, Cluster, Image, KeyPair, PrivatePool, SecurityGroup, SoldType, StockRule, Tags, Timing,
    VSwitch, World, WorldError,
};
