//! A test that cannot run on this machine says so, where `scripts/test` sees and counts it.
//! `raft-store`'s tests include this file by its path, since no one depends on this crate.

use std::io::Write;

/// Says that the calling test proves nothing here; the caller then returns.
///
/// Writes `SKIPPED: WHAT: WHY` to stderr itself: libtest swallows what a passing test prints with
/// `eprintln!`.
///
/// # Panics
/// If `CI` is set and not empty: a check that must count may not vanish.
#[track_caller]
pub fn skipped(what: &str, why: &str) {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "{what} cannot be skipped where CI is set: {why}");
    // In one write, so that no other test's line comes in between.
    let line = format!("SKIPPED: {what}: {}\n", why.trim().replace('\n', "; "));
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("stderr is open in a test");
}
