//! Simulated clusters, in one binary. Two have their own, which cargo runs alone: the seeds have a
//! fixed time, and what compares packets sees them in traces, whose switches are those of the
//! process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
mod losses;
mod mutants;
mod oracle;
mod promises;
mod regions;
mod replay;
mod scenarios;
mod tools;
