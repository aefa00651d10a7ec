//! Builds policies out of sources in five languages: what `kerf plugin new` and `kerf plugin build` do, and what CI
//! builds the examples with.
//!
//! Start at [`build`]: it reads the manifest of a policy, runs the toolchain of its language, and makes a component that
//! imports nothing but `kerf:policy/log`.

mod component;
mod contract;
mod error;
mod manifest;
mod project;
mod toolchain;
mod tools;

pub use component::componentize;
pub use contract::write as write_contract;
pub use error::BuildError;
pub use manifest::{Hook, Language, MANIFEST, Manifest};
pub use project::{NewProject, create};
pub use toolchain::build;
pub use tools::{Requirement, Tools, requirements};
