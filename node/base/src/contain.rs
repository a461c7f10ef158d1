//! Contains panics: a panic in a request ends only that request.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::Poll;

use futures::FutureExt;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// The error for a request that panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Whether this thread runs a contained part of a request.
pub fn is_contained() -> bool {
    CONTAINED.get()
}

/// Runs a part of a request on this thread and catches a panic in it.
pub fn contain_call<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    let before = CONTAINED.replace(true);
    let result = std::panic::catch_unwind(AssertUnwindSafe(call));
    CONTAINED.set(before);
    result.map_err(|_| Panicked)
}

/// Like [`contain_call`] for a future.
pub async fn contain<F: Future>(part: F) -> Result<F::Output, Panicked> {
    let mut part = pin!(part);
    std::future::poll_fn(|context| match contain_call(|| part.poll_unpin(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}
