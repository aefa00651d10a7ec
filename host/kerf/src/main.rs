//! The kerf binary.
fn main() {}
