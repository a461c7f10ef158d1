//! What brings the log to the disk.

use std::{fmt, io, thread};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use rocksdb::DB;

use crate::platform::here;
use crate::types::Vote;

/// The disk of the log. What is given here is the product's.
pub trait LogDisk: fmt::Debug + Send + Sync + 'static {
    /// Runs the log's writer.
    ///
    /// # Errors
    /// There is no thread to be had.
    fn run(&self, writer: BoxFuture<'static, ()>) -> io::Result<Option<thread::JoinHandle<()>>> {
        here(|platform| platform.thread("placement-log", writer))
    }

    /// Waits until the disk can sync.
    fn ready(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// Makes everything durable that was written to the log.
    ///
    /// # Errors
    /// Those of the disk: what is durable is not known then.
    fn sync(&self, log: &DB) -> io::Result<()> {
        log.flush_wal(true)
            .map_err(|error| io::Error::other(error.into_string()))
    }

    /// The log was opened with this vote.
    fn opened(&self, _vote: Option<Vote>) {}

    /// This vote was called durable.
    fn acknowledged(&self, _vote: Vote) {}
}

/// RocksDB's own syncs, on a thread of their own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RocksDisk;

impl LogDisk for RocksDisk {}
