//! Places where a test can stop the process as a crash would. They exist in test builds only (`debug_assertions`);
//! a release build compiles each of them to nothing.
//!
//! A test names one in `KERF_FAILPOINT`; the process then stands still there for good, so that the test can look at
//! the world from outside and send `kill -9`.

/// The instance exists, and nothing in the cluster says so yet.
pub const LAUNCHED_UNRECORDED: &str = "launched-unrecorded";
/// The claim carries its launch token, and the cloud was not called yet.
pub const TOKEN_RECORDED: &str = "token-recorded";
/// The instance is gone, and the claim still has its finalizer.
pub const INSTANCE_DELETED: &str = "instance-deleted";

/// Stands still when `chosen` is this point's `name`.
pub async fn pass(chosen: Option<&str>, name: &str) {
    if cfg!(debug_assertions) && chosen == Some(name) {
        tracing::warn!(%name, "failpoint reached: standing still");
        std::future::pending::<()>().await;
    }
}
