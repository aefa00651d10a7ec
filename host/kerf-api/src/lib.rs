//! The Kubernetes objects that kerf owns: NodePool, NodeClaim, ECSNodeClass, NodeOverlay, CapacityBuffer.
//!
//! Types for serde, their schemas for the API server, and every name that other programs see. No decisions, no client.
//! Reading never fails on a value of another version: texts stay texts until someone parses them, enums keep what they do
//! not know. Start with [`nodepool`], [`nodeclaim`] and [`ecsnodeclass`]; the names are in [`names`].

#![expect(
    clippy::duplicated_attributes,
    reason = "two printer columns of one kind are not a repetition"
)]
#![expect(
    unreachable_pub,
    reason = "the KubeSchema derive repeats each public struct inside a function"
)]

pub mod capacitybuffer;
pub mod condition;
pub mod crds;
pub mod duration;
pub mod ecsnodeclass;
pub mod explanation;
pub mod memory;
pub mod names;
pub mod nodeclaim;
pub mod nodeoverlay;
pub mod nodepool;
pub mod requirement;
pub mod strength;
pub mod time;

mod open_enum;
mod schema;
