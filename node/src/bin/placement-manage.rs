//! `placement-manage`, for deployment tools that call it.

use std::process::ExitCode;

fn main() -> ExitCode {
    placement_node::stand_ins::manage()
}
