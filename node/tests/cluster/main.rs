//! Three nodes in one process, over loopback TCP and real disks.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and run in the real world"
)]

mod clocks;
mod divergence;
mod fixture;
mod health;
mod leadership;
mod membership;
#[path = "../../../tests/local/src/ports.rs"]
#[allow(unreachable_pub, reason = "part of a library as well")]
mod ports;
mod reads;
mod snapshots;
mod standards;
mod storage;
mod threads;

// For `ports`.
use rand as _;
