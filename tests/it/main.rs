//! The one integration-test binary. Each file states the level of its tests in its first line.

mod crashes;
mod crds;
mod policies;
mod scenarios;
mod stage;
