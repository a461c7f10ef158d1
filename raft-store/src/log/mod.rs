//! The Raft log.

use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::{Arc, Weak};

use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use rocksdb::{Cache, DB};

use crate::health::Reporter;
use crate::metrics::Counters;
use crate::open::{DirLock, OpenError};
use crate::options::StoreOptions;
use crate::types::{Entry, LogId, TypeConfig, Vote};

/// openraft's log storage.
#[derive(Debug, Clone)]
pub struct LogStore {}

/// Reads the log; one for each follower that is replicated to.
#[derive(Debug, Clone)]
pub struct LogReader {}

fn absent() -> io::Error {
    io::Error::other("the log is not written yet")
}

impl LogStore {
    pub(crate) fn open(
        _options: &StoreOptions,
        _cache: &Cache,
        _reporter: Reporter,
        _lock: DirLock,
        _counters: Arc<Counters>,
    ) -> Result<Self, OpenError> {
        Ok(Self {})
    }
    pub(crate) fn database(&self) -> Weak<DB> {
        Weak::new()
    }
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        _range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        Err(absent())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Err(absent())
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        Err(absent())
    }

    async fn get_log_reader(&mut self) -> LogReader {
        LogReader {}
    }

    async fn save_vote(&mut self, _vote: &Vote) -> Result<(), io::Error> {
        Err(absent())
    }

    async fn append<I>(
        &mut self,
        _entries: I,
        _callback: IOFlushed<TypeConfig>,
    ) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        Err(absent())
    }

    async fn truncate_after(&mut self, _last: Option<LogId>) -> Result<(), io::Error> {
        Err(absent())
    }

    async fn purge(&mut self, _upto: LogId) -> Result<(), io::Error> {
        Err(absent())
    }
}
