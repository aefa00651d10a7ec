//! The cluster index: applies watch events and builds the immutable Snapshot. No client, no runtime.
