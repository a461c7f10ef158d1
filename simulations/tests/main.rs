//! Simulated clusters, in one binary. Two tests have binaries of their own, which cargo runs alone:
//! the seeds run for a fixed time, and the determinism test compares packets from traces, whose
//! filters are global to the process.

#![allow(clippy::unwrap_used, reason = "a failing unwrap fails the test")]

mod common;
mod losses;
mod mutants;
mod oracle;
mod promises;
mod regions;
mod replay;
mod scenarios;
mod tools;
