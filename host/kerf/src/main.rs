//! The `kerf` binary; all of it is in the library beside it.

/// glibc's keeps what a plan of thousands of pods has freed; how this one gives it back is set in .cargo/config.toml.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    kerf::main()
}
