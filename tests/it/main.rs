//! The one integration-test binary. Each file states the level of its tests in its first line.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets the unexpected ends"
)]

mod adoption;
mod api_server;
mod capacity;
mod convert;
mod crashes;
mod crds;
mod definitions;
mod disruption;
mod docs;
mod doctor;
mod events;
mod explain;
mod failing_policies;
mod fuzz;
mod groups;
mod hot_settings;
mod installers;
mod interruption;
mod lifecycle;
mod metrics;
mod node_class_fields;
mod plugin;
mod policies;
mod prometheus;
mod registry;
mod release;
mod rules;
mod scenarios;
mod simulate;
mod stage;
mod termination;
mod upstream;
mod validation;
