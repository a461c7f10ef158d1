//! Starts a new cluster from the state of a backup.
//!
//! Each node of the cluster is created offline from the same backup, and has the whole state before
//! it starts. The cluster id proves this: half of it is a hash of the backup and the members.
//! Creating another node with this id fails if its backup or members differ. The other half is a
//! random number, drawn when the first node is created, so that two clusters from one backup have
//! different ids and epochs.
//!
//! The log of the new cluster begins after the last entry of the state. This entry keeps its index
//! and gets term 0, so it is older than every vote of the new cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openraft::vote::RaftLeaderId;
use openraft::vote::leader_id_adv::LeaderId;
use placement_model::state::change::{JoinRow, SessionRow};
use placement_model::types::PartitionId;
use placement_model::{Change, Cluster, mutant};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::applier::Applier;
use crate::archive::{
    ArchiveError, ReadBackup, Replayed, SkippedEntries, Stamps, Until, newest_before, replay,
};
use crate::data_dir;
use crate::error::{OpenError, Result};
use crate::identity::Identity;
use crate::log::LogDatabase;
use crate::machine::{AppliedState, BackupInfo, SnapshotError, put_in_place};
use crate::options::StoreOptions;
use crate::types::{LogId, Member, Membership, StoredMembership};
use crate::wire::{self, RecordVersion};

/// Why nothing is restored. The data directory is cleared.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup file is unusable.
    #[error("{0}: {1}")]
    Backup(PathBuf, SnapshotError),
    /// The backup directory cannot restore the requested moment.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The data directory cannot be created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The restore would be unsafe.
    #[error("nothing is restored: {0}")]
    Refused(String),
}

/// The id of the cluster that starts from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewCluster {
    /// The first node is created; this random number becomes half of the id.
    Drawn(u64),
    /// Another node of this cluster is created.
    Named(Uuid),
}

/// The state that a new cluster starts from.
#[derive(Debug)]
pub struct Backup {
    /// Cluster and position of the backup.
    pub info: BackupInfo,
    /// The newer backups that cannot be read, with the errors.
    pub passed_over: Option<String>,
    /// Why the restored state may end before the requested moment.
    pub ends_early: Option<String>,
    /// The archived entries that were not restored, because they are after the requested end;
    /// `None` if every entry was restored.
    pub left_out: Option<SkippedEntries>,
    /// Why the timestamps do not show which entries were written before the requested moment;
    /// `None` if they do.
    pub wrong_times: Option<String>,
    /// The restored state with its position.
    pub applied: AppliedState,
}

impl Backup {
    /// Reads a backup file, or restores from a directory: the newest undamaged backup that contains
    /// nothing beyond `until`, and the archived log after it, up to `until`.
    ///
    /// # Errors
    /// [`RestoreError::Backup`] or [`RestoreError::Archive`].
    pub fn read(from: &Path, until: Until, applier: &dyn Applier) -> Result<Self, RestoreError> {
        let is_dir = from.is_dir();
        if until != Until::End && !is_dir {
            return Err(RestoreError::Refused(format!(
                "{} is a single backup; an earlier moment can be chosen only from a directory written by \
                 [backup]",
                from.display()
            )));
        }
        let ReadBackup {
            of,
            mut applied,
            passed_over,
        } = if is_dir {
            newest_before(from, until)?
        } else {
            ReadBackup::read(from).map_err(|error| RestoreError::Backup(from.to_owned(), error))?
        };
        let passed_over = passed_over.map(|damaged| {
            format!(
                "using an older backup and the log after it, because a newer backup is damaged: {damaged}"
            )
        });
        let replayed = if is_dir {
            replay(from, &of, &mut applied, until, applier)
                .map_err(|error| error.with_detail(passed_over.as_deref()))?
        } else {
            Replayed::default()
        };
        Ok(Self {
            info: BackupInfo::new(&of, &applied),
            passed_over,
            wrong_times: wrong_times(&replayed.stamps, until),
            ends_early: replayed.ends_early,
            left_out: replayed.left_out,
            applied,
        })
    }

    /// The restored state, without its position.
    pub fn cluster(&self) -> &Cluster {
        &self.applied.cluster
    }

    /// Creates the data directory of a member of a new cluster that starts from this state.
    /// `members` are all of its voters with their peer addresses. The directory becomes valid only
    /// with the last step, which writes the node's identity.
    ///
    /// # Errors
    /// [`RestoreError`]; the directory is empty again.
    pub fn restore(
        &self,
        options: &StoreOptions,
        node: u64,
        members: &BTreeMap<u64, String>,
        cluster: NewCluster,
    ) -> Result<Identity, RestoreError> {
        let identity = self.identity(node, members, cluster)?;
        if !members.contains_key(&node) {
            let reason = format!("node {node} is not a member of the new cluster");
            return Err(RestoreError::Refused(reason));
        }
        let _lock = data_dir::claim(&options.dir)?;
        self.make(options, members, identity)
            .inspect_err(|_| data_dir::clear(&options.dir))?;
        data_dir::end_restore(&options.dir)?;
        Ok(identity)
    }

    fn make(
        &self,
        options: &StoreOptions,
        members: &BTreeMap<u64, String>,
        identity: Identity,
    ) -> Result<()> {
        let dir = &options.dir;
        let last = LogId::new(LeaderId::new(0, 0), self.info.index);
        let mut applied = self.applied.clone();
        applied.last = Some(last);
        applied.membership = StoredMembership::new(Some(last), membership(members)).into();
        let cluster = &applied.cluster;
        let over = cluster.rows().filter_map(|(_, row)| match row {
            // Joins and replacements of the old cluster do not apply to the new one.
            Change::PutJoin(node, row) if !mutant!("restore-keeps-tokens") => {
                let over = JoinRow {
                    token: String::new(),
                    nonce: Some(String::new()),
                    replaces: None,
                    ..row
                };
                Some(Change::PutJoin(node, over))
            }
            // The retired node ids can be used again. The nodes that had them cannot reach this
            // cluster, and its log begins empty, so no late command of theirs arrives.
            Change::PutSession(node, _) if cluster.is_retired(node) => {
                Some(Change::PutSession(node, NEVER_STARTED))
            }
            _ => None,
        });
        let over = vec![(PartitionId::DEFAULT, over.collect())];
        Arc::make_mut(&mut applied.cluster).commit(&over);
        let cache = options.cache();
        put_in_place(options, &cache, &last, &applied)?;
        let (log, _) = LogDatabase::open(options, &cache)?;
        log.begin_behind_state(applied.record_version(), &last)?;
        // The state contains the number of the last start of each node, and the next start must
        // have a higher one. This write also makes the directory entries of log and state durable,
        // so the identity never exists without them.
        let session =
            (applied.cluster.session(identity.node)).filter(|_| !mutant!("restore-forgets-boots"));
        data_dir::set_boots(dir, session.map_or(0, |session| session.boot).max(1))?;
        data_dir::write_identity(dir, identity)
    }

    fn identity(
        &self,
        node: u64,
        members: &BTreeMap<u64, String>,
        cluster: NewCluster,
    ) -> Result<Identity, RestoreError> {
        let drawn = match cluster {
            NewCluster::Drawn(half) => half,
            NewCluster::Named(named) => named.as_u64_pair().1,
        };
        // The variant of a UUID overwrites two bits of the second half, its version four bits of
        // the first half.
        let (_, drawn) = from_halves(0, drawn).as_u64_pair();
        let beginning = (&self.info, members, drawn);
        let hash = xxh3_64(&wire::encode(RecordVersion::FIRST, &beginning));
        let id = from_halves(hash, drawn);
        match cluster {
            NewCluster::Named(named) if named != id => Err(RestoreError::Refused(format!(
                "cluster {named} was restored from another backup, to another moment, or with other \
                 initial_members. All nodes of a cluster must be restored with the same values"
            ))),
            _ => Ok(Identity::for_new_cluster(id, node)),
        }
    }
}

/// The session of a node id that the new cluster has not used.
const NEVER_STARTED: SessionRow = SessionRow {
    boot: 0,
    answered_below: 0,
};

/// Accepted difference between clocks of nodes, in microseconds.
const CLOCKS_DIFFER_MAX: i64 = 5_000_000;

/// Explains why timestamps do not separate earlier from later writes, if clocks were wrong.
fn wrong_times(stamps: &Stamps, until: Until) -> Option<String> {
    if !matches!(until, Until::Time(_)) {
        return None;
    }
    let seconds = |micros: i64| micros / 1_000_000;
    let ahead = stamps.ahead.filter(|(_, by)| *by > CLOCKS_DIFFER_MAX);
    let ahead = ahead.map(|(stamp, by)| {
        format!(
            "the time in the log is ahead: the timestamp of entry {} is {} s later than the time at which it was archived, so \
             the clock of a leader was ahead, or the clock of the archiving node was behind, and omitted entries may have \
             been written before the requested moment",
            stamp.index,
            seconds(by)
        )
    });
    let still = stamps.still.filter(|run| run.lasted() > CLOCKS_DIFFER_MAX);
    let still = still.map(|run| {
        format!(
            "the time in the log stood still for {} s: entries {} to {} were written in that time, but their timestamps \
             differ by one microsecond each, because the clock of a leader was behind; restored entries may have been \
             written after the requested moment",
            seconds(run.lasted()),
            run.first.index,
            run.last.index
        )
    });
    let reasons: Vec<_> = [ahead, still].into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| {
        format!(
            "{}. `placementd inspect kept-log` shows the entries; select the last one with --until-index instead of --until",
            reasons.join("; ")
        )
    })
}

fn from_halves(high: u64, low: u64) -> Uuid {
    uuid::Builder::from_random_bytes(Uuid::from_u64_pair(high, low).into_bytes()).into_uuid()
}

/// The membership of a new cluster. It contains only peer addresses: when the cluster runs, the
/// leader asks the nodes for the addresses of their other listeners.
fn membership(members: &BTreeMap<u64, String>) -> Membership {
    let voters: BTreeSet<u64> = members.keys().copied().collect();
    let mut nodes: BTreeMap<u64, Member> = BTreeMap::new();
    for (id, peer) in members {
        nodes.entry(*id).or_default().peer.clone_from(peer);
    }
    Membership::new(vec![voters], nodes).expect("every voter is a member")
}
