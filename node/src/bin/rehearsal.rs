//! `placementd-rehearsal`: `placementd` as its next version could be, one feature level ahead.
//! Tests of an upgrade run it together with `placementd`.

use std::process::ExitCode;

fn main() -> ExitCode {
    placement_node::program::main()
}
