//! One program for all targets; KERF_FUZZ_TARGET names one, and with KERF_FUZZ_PLANTED its bug is there.
#![no_main]

use std::env;
use std::sync::LazyLock;

use kerf_tests::fuzz::{Planted, TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static CHOSEN: LazyLock<(Target, Planted)> = LazyLock::new(|| {
    let name = env::var("KERF_FUZZ_TARGET").unwrap_or_default();
    let names: Vec<&str> = TARGETS.iter().map(|it| it.name).collect();
    let target = TARGETS.into_iter().find(|it| it.name == name);
    let target =
        target.unwrap_or_else(|| panic!("KERF_FUZZ_TARGET is {name:?}, and there are {names:?}"));
    let planted = match env::var_os("KERF_FUZZ_PLANTED") {
        Some(_) => Planted::Yes,
        None => Planted::No,
    };
    (target, planted)
});

fuzz_target!(|bytes: &[u8]| {
    let (target, planted) = &*CHOSEN;
    (target.run)(bytes, *planted);
});
