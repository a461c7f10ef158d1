//! `placementd`: one node of the placement service.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Memory is often allocated on one thread and freed on another, which the system's allocator
/// handles slowly.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    placement_node::program::main()
}
