//! Backups: snapshot files stored outside the node, and states loaded from them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use openraft::vote::RaftLeaderId;
use openraft::vote::leader_id_adv::LeaderId;
use placement_model::types::Timestamp;
use placement_model::{Cluster, Level};
use rocksdb::Cache;
use serde::Serialize;
use uuid::Uuid;

use super::database::StateDatabase;
use super::snapshot_dir::{self, applied_state};
use super::snapshot_format::{self, Header, SnapshotError};
use super::views::AppliedState;
use crate::error::Result;
use crate::identity::Identity;
use crate::options::StoreOptions;
use crate::types::LogId;

/// Identity and position of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct BackupInfo {
    /// Id of the cluster whose state it contains.
    pub cluster: Uuid,
    /// The epoch of that cluster.
    pub epoch: u64,
    /// Index of the last entry it contains.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// Digest of the state: equal on every node of the cluster at this entry.
    pub digest: String,
    /// Timestamp of its last command.
    pub last_stamp: Option<Timestamp>,
    /// Feature level of the cluster.
    pub level: Level,
}

impl BackupInfo {
    /// The info of a backup of this state.
    pub fn new(identity: &Identity, applied: &AppliedState) -> Self {
        Self::from_header(Header::new(identity, applied), applied.cluster.level())
    }

    fn from_header(header: Header, level: Level) -> Self {
        let last = header.covers.last;
        Self {
            cluster: header.cluster,
            epoch: header.epoch,
            index: last.map_or(0, |id| id.index),
            term: last.map_or(0, |id| id.term),
            digest: header.digest,
            last_stamp: header.last_stamp,
            level,
        }
    }
}

/// Turns a state that was built outside a cluster into the content of a backup, from which a new
/// cluster can start. Equal states give equal identities.
pub fn imported(cluster: Cluster) -> (Identity, AppliedState) {
    let content = cluster.digest().sum.to_be_bytes();
    let of = uuid::Builder::from_random_bytes(content).into_uuid();
    let applied = AppliedState {
        cluster: cluster.into(),
        last: Some(LogId::new(LeaderId::new(0, 0), 1)),
        ..AppliedState::default()
    };
    (Identity::for_new_cluster(of, 0), applied)
}

/// Verifies a whole backup in constant memory.
///
/// # Errors
/// [`SnapshotError`].
pub fn check_backup(source: impl Read) -> Result<BackupInfo, SnapshotError> {
    let mut source = BufReader::with_capacity(1 << 20, source);
    let (header, level) = snapshot_format::check(&mut source)?;
    Ok(BackupInfo::from_header(header, level))
}

/// Reads and verifies a backup received from elsewhere, and returns its state.
///
/// # Errors
/// [`SnapshotError`].
pub fn receive_backup(source: impl Read + Send) -> Result<Arc<Cluster>, SnapshotError> {
    let mut source = BufReader::with_capacity(1 << 20, source);
    let (header, cluster) = snapshot_format::read(&mut source)?;
    Ok(applied_state(header, cluster)?.cluster)
}

/// Timestamp of the last command in a backup, from its header.
pub(crate) fn backup_time(path: &Path) -> Result<Option<Timestamp>, SnapshotError> {
    let mut source = BufReader::new(File::open(path)?);
    Ok(snapshot_format::read_header(&mut source)?.last_stamp)
}

/// Cluster, epoch and state of a backup.
pub(crate) fn read_backup(path: &Path) -> Result<(Uuid, u64, AppliedState), SnapshotError> {
    let mut source = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (header, state) = snapshot_format::read(&mut source)?;
    let (cluster, epoch) = (header.cluster, header.epoch);
    Ok((cluster, epoch, applied_state(header, state)?))
}

/// Writes a state durably into a data directory without a state.
pub(crate) fn put_in_place(
    options: &StoreOptions,
    cache: &Cache,
    last: &LogId,
    applied: &AppliedState,
) -> Result<()> {
    let database = StateDatabase::open(options, cache)?;
    let replaced = database.replace(&snapshot_dir::name(Some(last)), applied);
    replaced.map_err(|error| database.rocks.failed(&error))
}
