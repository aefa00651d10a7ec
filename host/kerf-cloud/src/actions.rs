//! Each API action with a typed request and reply. Field names are the wire's own, in Rust spelling.
