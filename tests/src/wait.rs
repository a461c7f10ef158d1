//! Waiting for what a test expects.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The longest wait for what is expected. A machine that runs much else is many times slower, and a
/// wait that succeeds takes no longer for a generous bound.
pub const PATIENCE: Duration = Duration::from_secs(240);
/// How often it is looked.
const EVERY: Duration = Duration::from_millis(50);

/// Tries until this succeeds, for so long.
///
/// # Errors
/// The last one.
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

/// Waits until this holds.
///
/// # Panics
/// If it does not in time.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    until_ok(what, async || holds().await.then_some(()).ok_or("no")).await;
}

/// Waits until this succeeds.
///
/// # Panics
/// If it does not in time; with the last error.
pub async fn until_ok<T, E: Debug>(what: &str, attempt: impl AsyncFnMut() -> Result<T, E>) -> T {
    let ended = within(PATIENCE, attempt).await;
    ended.unwrap_or_else(|error| panic!("waiting for {what}: {error:#?}"))
}
