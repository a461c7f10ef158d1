//! State shared by the log and the state machine of one store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rocksdb::Cache;

use crate::counters::Counters;
use crate::data_dir::{self, DirLock, LOG_DIR};
use crate::error::{OpenError, Result};
use crate::health::Health;
use crate::identity::Identity;
use crate::options::StoreOptions;
use crate::rocks;
use crate::wire::RecordVersion;

/// A locked data directory that has passed the checks of [`Base::enter`].
pub(crate) struct Base {
    pub(crate) identity: Identity,
    pub(crate) options: StoreOptions,
    pub(crate) cache: Cache,
    /// The record version to write, set by the state machine from the feature level.
    version: AtomicU8,
    pub(crate) health: Health,
    pub(crate) counters: Arc<Counters>,
    _lock: DirLock,
}

impl Base {
    /// Locks a data directory and checks that it may be opened.
    pub(crate) fn enter(options: &StoreOptions) -> Result<Arc<Self>> {
        let dir = &options.dir;
        let missing = || OpenError::Missing(dir.clone());
        if !dir.exists() {
            return Err(missing());
        }
        let lock = data_dir::lock(dir)?;
        let identity = data_dir::identity(dir)?.ok_or_else(missing)?;
        check_owner(options, identity)?;
        data_dir::check_left(dir)?;
        // A node that has started before may have voted. Its vote is in its log, so the log must
        // exist.
        let log = dir.join(LOG_DIR);
        if data_dir::boots(dir)? > 0 && !rocks::database_exists(&log) {
            return Err(OpenError::LogGone(log, identity));
        }
        Ok(Arc::new(Self {
            identity,
            options: options.clone(),
            cache: options.cache(),
            version: AtomicU8::new(RecordVersion::FIRST.0),
            health: Health::default(),
            counters: Arc::default(),
            _lock: lock,
        }))
    }

    /// The record version that the store writes.
    pub(crate) fn version(&self) -> RecordVersion {
        RecordVersion(self.version.load(Ordering::Relaxed))
    }

    pub(crate) fn set_version(&self, version: RecordVersion) {
        self.version.store(version.0, Ordering::Relaxed);
    }
}

fn check_owner(options: &StoreOptions, found: Identity) -> Result<()> {
    let dir = options.dir.clone();
    match (options.cluster, options.node) {
        (Some(expected), _) if expected != found.cluster => {
            Err(OpenError::OtherCluster(dir, found, expected))
        }
        (_, Some(expected)) if expected != found.node => {
            Err(OpenError::OtherNode(dir, found, expected))
        }
        _ => Ok(()),
    }
}
