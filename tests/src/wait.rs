//! Waits until an expectation of a test holds.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The longest wait of a test. A busy machine is many times slower, and a generous bound does not
/// prolong a successful wait.
pub const PATIENCE: Duration = Duration::from_secs(240);
/// Pause between two attempts.
const EVERY: Duration = Duration::from_millis(50);

/// Retries until the attempt succeeds or the time limit is reached.
///
/// # Errors
/// The last error.
pub async fn within<T, E>(
    limit: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let begun = Instant::now();
    loop {
        match attempt().await {
            Err(_) if begun.elapsed() < limit => tokio::time::sleep(EVERY).await,
            ended => return ended,
        }
    }
}

/// Waits until the condition holds.
///
/// # Panics
/// If it does not hold within [`PATIENCE`].
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    until_ok(what, async || holds().await.then_some(()).ok_or("no")).await;
}

/// Waits until the attempt succeeds.
///
/// # Panics
/// If it does not succeed within [`PATIENCE`]; shows the last error.
pub async fn until_ok<T, E: Debug>(what: &str, attempt: impl AsyncFnMut() -> Result<T, E>) -> T {
    let ended = within(PATIENCE, attempt).await;
    ended.unwrap_or_else(|error| panic!("waiting for {what}: {error:#?}"))
}

/// Waits until a new certificate with a validity of 0 days has expired. It is still valid during
/// the second of its expiry.
pub async fn until_expired() {
    tokio::time::sleep(Duration::from_millis(2_100)).await;
}
