//! Places where a test can stop the process as a crash would. They exist in test builds only (`debug_assertions`);
//! a release build compiles each of them to nothing.
//!
//! A test names one in `KERF_FAILPOINT`; the process then stands still there for good, so that the test can look at
//! the world from outside and send `kill -9`. There is one before or after every write that is seen outside: what is
//! after one write is before the next.

macro_rules! failpoints {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $value;)*

        /// All of them, in the order of a claim's life.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

failpoints! {
    /// The claim exists, and nobody has looked at it yet.
    CLAIM_CREATED = "claim-created";
    /// The claim has its launch group, and the cloud was not called yet.
    TOKEN_CHOSEN = "token-chosen";
    /// The attempt is in the claim, and its call is not sent yet.
    ATTEMPT_RECORDED = "attempt-recorded";
    /// The instance exists, and nothing in the cluster says so yet.
    LAUNCHED_UNRECORDED = "launched-unrecorded";
    /// The claim's instance has just been written down.
    LAUNCH_RECORDED = "launch-recorded";
    /// The Node joined and was not touched yet.
    NODE_JOINED = "node-joined";
    /// The Node is registered, and the claim does not say so yet.
    NODE_REGISTERED = "node-registered";
    /// The Node is labelled as initialised, and the claim does not say so yet.
    NODE_INITIALIZED = "node-initialized";
    /// The claim is being deleted, and nothing was done about it yet.
    DELETION_SEEN = "deletion-seen";
    /// The claim's Nodes are being deleted.
    NODES_DELETED = "nodes-deleted";
    /// The Node is tainted, and no pod was asked to leave.
    NODE_SET_APART = "node-set-apart";
    /// Pods were asked to leave.
    EVICTED = "evicted";
    /// No pod and no volume is left on the Node.
    DRAINED = "drained";
    /// The instance is gone, and the Node still has its finalizer.
    NODE_INSTANCE_DELETED = "node-instance-deleted";
    /// The instance is gone, and the claim still has its finalizer.
    INSTANCE_DELETED = "instance-deleted";
    /// The candidates of a command remember it, and nothing else was done about it.
    COMMAND_RECORDED = "command-recorded";
    /// The candidates' Nodes are tainted, and no replacement exists.
    CANDIDATES_TAINTED = "candidates-tainted";
    /// The first replacement exists.
    REPLACEMENT_CREATED = "replacement-created";
    /// The candidates count as going, and the replacements have not been launched.
    CANDIDATES_MARKED = "candidates-marked";
    /// The replacements are ready, and the candidates are still there.
    REPLACEMENTS_READY = "replacements-ready";
    /// The first candidate was deleted.
    CANDIDATE_DELETED = "candidate-deleted";
    /// A node stays, and nobody was told why.
    KEPT_UNTOLD = "kept-untold";
}

/// Stands still when `chosen` is this point's `name`.
pub async fn pass(chosen: Option<&str>, name: &str) {
    if cfg!(debug_assertions) && chosen == Some(name) {
        tracing::warn!(%name, "failpoint reached: standing still");
        std::future::pending::<()>().await;
    }
}
