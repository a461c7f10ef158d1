//! `placementd`: one node of the placement service.

use std::process::ExitCode;

fn main() -> ExitCode {
    placement_node::program::main()
}
