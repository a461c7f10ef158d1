//! Backups: snapshot files that leave the node, and states that come back from them.

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

/// What a backup holds: which cluster it is of, and where in its log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct BackupInfo {
    /// The cluster that it was made of.
    pub cluster: Uuid,
    /// The epoch of that cluster.
    pub epoch: u64,
    /// The last entry that it contains.
    pub index: u64,
    /// The term of that entry.
    pub term: u64,
    /// The digest of the state: that of every node of the cluster at this entry.
    pub digest: String,
    /// The time of its last command.
    pub last_stamp: Option<Timestamp>,
    /// The feature level of the cluster.
    pub level: Level,
}

impl BackupInfo {
    /// What a backup of this state has in its header.
    pub fn of(identity: &Identity, applied: &AppliedState) -> Self {
        Self::of_header(Header::of(identity, applied), applied.cluster.level())
    }

    fn of_header(header: Header, level: Level) -> Self {
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

/// A state that no cluster has come to, for a backup to begin a cluster with. The same state always
/// gives the same.
pub fn imported(cluster: Cluster) -> (Identity, AppliedState) {
    let content = cluster.digest().sum.to_be_bytes();
    let of = uuid::Builder::from_random_bytes(content).into_uuid();
    let applied = AppliedState {
        cluster: cluster.into(),
        last: Some(LogId::new(LeaderId::new(0, 0), 1)),
        ..AppliedState::default()
    };
    (Identity::of_new_cluster(of, 0), applied)
}

/// Reads a backup, whole, and believes nothing; keeps no more of it in memory than a piece.
///
/// # Errors
/// [`SnapshotError`].
pub fn check_backup(source: impl Read) -> Result<BackupInfo, SnapshotError> {
    let mut source = BufReader::with_capacity(1 << 20, source);
    let (header, level) = snapshot_format::check(&mut source)?;
    Ok(BackupInfo::of_header(header, level))
}

/// The state in a backup that comes from elsewhere. Reads it whole, and believes nothing.
///
/// # Errors
/// [`SnapshotError`].
pub fn receive_backup(source: impl Read + Send) -> Result<Arc<Cluster>, SnapshotError> {
    let mut source = BufReader::with_capacity(1 << 20, source);
    let (header, cluster) = snapshot_format::read(&mut source)?;
    Ok(applied_state(header, cluster)?.cluster)
}

/// The time of the last command in a backup, from its header.
pub(crate) fn backup_time(path: &Path) -> Result<Option<Timestamp>, SnapshotError> {
    let mut source = BufReader::new(File::open(path)?);
    Ok(snapshot_format::read_header(&mut source)?.last_stamp)
}

/// The state in a backup, and the cluster and the epoch that it is of.
pub(crate) fn read_backup(path: &Path) -> Result<(Uuid, u64, AppliedState), SnapshotError> {
    let mut source = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (header, state) = snapshot_format::read(&mut source)?;
    let (cluster, epoch) = (header.cluster, header.epoch);
    Ok((cluster, epoch, applied_state(header, state)?))
}

/// Writes a state into a data directory that has none, durably.
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
