//! Waiting for what a test expects.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The longest wait: a loaded machine is slow.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until this holds.
///
/// # Panics
/// If it does not in time.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    until_ok(
        what,
        async || if holds().await { Ok(()) } else { Err("no") },
    )
    .await;
}

/// Waits until this succeeds.
///
/// # Panics
/// If it does not in time; with the last error.
pub async fn until_ok<T, E: Debug>(
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let begun = Instant::now();
    loop {
        match attempt().await {
            Ok(found) => return found,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "waiting for {what}: {error:#?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
