//! `placementd-rehearsal`: a possible next version of `placementd`, one feature level ahead.
//! Upgrade tests run it together with `placementd`.

use std::process::ExitCode;

fn main() -> ExitCode {
    placement_node::program::main()
}
