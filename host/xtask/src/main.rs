//! Developer commands: crds, tidy, run, bench.
fn main() {}
