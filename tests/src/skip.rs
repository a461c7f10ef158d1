//! Reports tests that cannot run on this machine, for `scripts/test` to count. The tests of
//! `raft-store` include this file by its path, as that crate does not depend on this one.

use std::io::Write;

/// Reports that the calling test is skipped; the caller then returns.
///
/// Writes `SKIPPED: WHAT: WHY` to stderr directly, as libtest captures what a passing test prints
/// with `eprintln!`.
///
/// # Panics
/// If `CI` is set and not empty: CI must not skip a test.
#[track_caller]
pub fn skipped(what: &str, why: &str) {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "{what} cannot be skipped where CI is set: {why}");
    // One write, so that no other test's output gets between.
    let line = format!("SKIPPED: {what}: {}\n", why.trim().replace('\n', "; "));
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("stderr is open in a test");
}
