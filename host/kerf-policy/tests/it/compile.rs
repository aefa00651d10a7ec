//! The process that compiles: what it gives comes back, and what it dies of is said. A shell stands in for it.

use crate::guest::PREFER_FAMILY;
use kerf_policy::{Artifacts, CompileLimits, Compiler, Engine, Hook, LoadError, Policy};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Left over from an earlier run, or not there.
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn load_with(script: &str, artifacts: Option<&Path>) -> Result<Policy, LoadError> {
    let limits = CompileLimits {
        wall: Duration::from_secs(2),
        ..CompileLimits::default()
    };
    let compiler = Compiler {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        limits,
        artifacts: artifacts.map(|it| Artifacts::open(it).unwrap()),
    };
    let engine = Engine::with_compiler(Some(Arc::new(compiler))).unwrap();
    Policy::load(&engine, PREFER_FAMILY, Hook::InstanceSelection, None)
}

/// A compiler that reads the component and writes what kerf makes of it.
fn good_compiler(name: &str) -> String {
    let code = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&code, kerf_policy::compile(PREFER_FAMILY).unwrap()).unwrap();
    format!("cat >/dev/null; cat {}", code.display())
}

#[test]
fn machine_code_is_kept_and_compiled_once() {
    let folder = folder("kept");
    let compiler = good_compiler("kept.code");

    let first = load_with(&compiler, Some(&folder)).unwrap();
    let second = load_with("exit 1", Some(&folder)).unwrap();

    assert!(!first.is_from_cache());
    assert!(second.is_from_cache());
    assert_eq!(first.metadata(), second.metadata());
}

#[test]
fn without_a_folder_machine_code_comes_through_a_pipe() {
    let policy = load_with(&good_compiler("pipe.code"), None).unwrap();

    assert!(!policy.is_from_cache());
    assert_eq!(policy.metadata().name, "prefer-family");
}

#[test]
fn damaged_machine_code_is_compiled_anew() {
    let folder = folder("damaged");
    let compiler = good_compiler("damaged.code");
    load_with(&compiler, Some(&folder)).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        std::fs::write(entry.unwrap().path(), "damaged").unwrap();
    }

    let policy = load_with(&compiler, Some(&folder)).unwrap();

    assert!(!policy.is_from_cache());
}

#[test]
fn a_folder_that_others_can_enter_is_refused() {
    let folder = folder("open");
    std::fs::create_dir(&folder).unwrap();
    set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();

    let error = Artifacts::open(&folder).unwrap_err().to_string();

    assert!(error.contains("only this user can enter"), "{error}");
}

#[test]
fn a_compiler_that_hangs_is_killed_and_the_message_says_so() {
    let error = load_with("exec sleep 600", None).unwrap_err();

    assert!(matches!(error, LoadError::CompileSlow { .. }), "{error}");
}

#[test]
fn a_compiler_that_dies_is_told_with_its_last_words() {
    let error = |script| load_with(script, None).unwrap_err();

    let out_of_memory = error("echo memory allocation of 7 bytes failed >&2; kill -ABRT $$");
    assert!(
        matches!(out_of_memory, LoadError::CompileMemory { .. }),
        "{out_of_memory}"
    );
    let out_of_time = error("kill -XCPU $$");
    assert!(
        matches!(out_of_time, LoadError::CompileCpu { .. }),
        "{out_of_time}"
    );
    let too_large = error("kill -XFSZ $$");
    assert!(
        matches!(too_large, LoadError::CodeTooLarge { .. }),
        "{too_large}"
    );
    assert_eq!(
        error("echo bad code >&2; exit 1"),
        LoadError::Compile("bad code".into())
    );
    let crashed = error("kill -SEGV $$").to_string();
    assert!(crashed.contains("signal 11"), "{crashed}");
}
