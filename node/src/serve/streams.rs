//! The streams of HTTP/2 connections: each is a task, which ends when its answer is overdue. hyper
//! then resets the stream, whatever its client's windows are.

use std::cell::Cell;
use std::future::pending;

use hyper::rt::Executor;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use placement_base::runtime;

tokio::task_local! {
    /// Sends the deadline of an answer to the task of its stream.
    static DUE: Cell<Option<oneshot::Sender<Instant>>>;
}

/// The executor of streams.
#[derive(Clone, Copy)]
pub(super) struct Streams;

impl Streams {
    /// Sets the deadline of the current stream's answer.
    pub(super) fn end_at(due: Instant) {
        // Other tasks have no stream to reset.
        let announce = DUE.try_with(Cell::take).ok().flatten();
        if let Some(announce) = announce {
            // If the receiver is gone, the stream has ended.
            let _ = announce.send(due);
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let (announce, due) = oneshot::channel();
        let overdue = async {
            match due.await {
                Ok(due) => sleep_until(due).await,
                Err(_) => pending().await,
            }
        };
        drop(runtime::spawn(async move {
            tokio::select! {
                biased;
                () = DUE.scope(Cell::new(Some(announce)), stream) => {}
                () = overdue => {}
            }
        }));
    }
}
