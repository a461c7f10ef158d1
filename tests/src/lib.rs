//! What black-box tests and the tools for people are made of: real processes of `placementd`,
//! clusters of them, and a sample cloud.

pub mod authority;
pub mod backups;
pub mod binaries;
pub mod cluster;
pub mod histories;
pub mod host;
pub mod keystone;
pub mod layout;
pub mod link;
pub mod node_process;
pub mod osc;
pub mod ports;
pub mod power;
pub mod private;
pub mod process_cost;
pub mod python;
pub mod s3;
pub mod sample;
pub mod shim;
pub mod skip;
pub mod torture;
pub mod wait;

use std::process::ExitCode;

/// What a tool's `main` returns: an error is printed with its causes, and without the backtrace that
/// `RUST_BACKTRACE` adds to an error that `main` itself returns.
pub fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
