//! Integration tests live in `it/`; here is what they share with the fuzzer.

pub mod fuzz;
