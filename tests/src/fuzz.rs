//! What strangers write and kerf reads, as functions of bytes: none of them may panic, hang or grow without bound.
//!
//! `cargo xtask fuzz` runs each for minutes under libFuzzer (the workspace in fuzz/), and the suite `it::fuzz` for a moment.
//! Each has a planted bug, a panic on something that only a deep path sees, to prove that the fuzzer gets there.

mod cloud;
mod cluster;
mod convert;
mod policy;
mod text;
mod user_data;

/// Whether the planted bug of a target is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    No,
    Yes,
}

impl Planted {
    /// Panics if this is the place and the bug is there.
    fn at(self, is_here: bool) {
        assert!(self == Self::No || !is_here, "{MARK}");
    }
}

/// What a planted bug says.
pub const MARK: &str = "the planted bug";

/// Something that reads bytes of strangers.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    /// Reads them.
    pub run: fn(&[u8], Planted),
    /// Good inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 8] = [
    text::QUANTITY,
    text::CRON,
    text::CATALOG,
    cluster::TARGET,
    cloud::TARGET,
    policy::TARGET,
    user_data::TARGET,
    convert::TARGET,
];

/// The text of the input, if it is one.
fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn seeds_of(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|it| it.as_bytes().to_vec()).collect()
}
