//! `placementd`: one node of the placement service.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Much is allocated by one thread and freed by another here, which the system's own is slow at.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    placement_node::program::main()
}
