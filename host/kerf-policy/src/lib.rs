//! The WebAssembly policy host.
