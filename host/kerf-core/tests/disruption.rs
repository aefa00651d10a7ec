//! Scenarios and properties of disruption: Karpenter's behaviour §5, what kerf does better on purpose, and what users
//! reported. Level: pure decisions on snapshots. The table in `disruption/table.rs` says which test proves which rule.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "disruption/candidates.rs"]
mod candidates;
#[path = "disruption/consolidation.rs"]
mod consolidation;
#[path = "disruption/drift.rs"]
mod drift;
#[path = "disruption/kit.rs"]
mod kit;
#[path = "disruption/properties.rs"]
mod properties;
#[path = "disruption/table.rs"]
mod table;
#[path = "disruption/validation.rs"]
mod validation;
