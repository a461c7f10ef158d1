//! The disk of the log.

use std::{fmt, io, thread};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use rocksdb::DB;

use crate::types::Vote;
use placement_base::platform::here;

/// The disk of the log. Production uses the default methods; simulations override them.
pub trait LogDisk: fmt::Debug + Send + Sync + 'static {
    /// Runs the log's writer.
    ///
    /// # Errors
    /// The thread cannot be started.
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
    /// Disk errors; the durable content is unknown afterwards.
    fn sync(&self, log: &DB) -> io::Result<()> {
        log.flush_wal(true)
            .map_err(|error| io::Error::other(error.into_string()))
    }

    /// Reports the vote with which the log was opened.
    fn opened(&self, _vote: Option<Vote>) {}

    /// Reports a vote that was acknowledged as durable.
    fn acknowledged(&self, _vote: Vote) {}
}

/// RocksDB's syncs, on a dedicated thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RocksDisk;

impl LogDisk for RocksDisk {}
