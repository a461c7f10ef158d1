//! A new cluster that begins with the state of a backup.
//!
//! Each of its nodes is made from the same backup, offline, and has the whole state before it
//! starts. The id of the new cluster proves that: half of it is a hash of what the cluster begins
//! with, the backup and the members. An operator who names the id on the next node, with another
//! backup or other members, is refused there. The other half is drawn when the first node is made,
//! so that two clusters from one backup differ, and with them their epochs.
//!
//! The log of the new cluster begins behind the entry that the state has come to, which keeps its
//! index and gets term 0: no vote of the new cluster is older.

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
    ArchiveError, LeftOut, ReadBackup, Replayed, Stamps, Until, newest_before, replay,
};
use crate::data_dir;
use crate::error::{OpenError, Result};
use crate::identity::Identity;
use crate::log::LogDatabase;
use crate::machine::{AppliedState, BackupInfo, SnapshotError, put_in_place};
use crate::options::StoreOptions;
use crate::types::{LogId, Member, Membership, StoredMembership};
use crate::wire::{self, RecordVersion};

/// Why nothing is restored. What was begun is removed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file is no good.
    #[error("{0}: {1}")]
    Backup(PathBuf, SnapshotError),
    /// There is no way to the moment that is asked for.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The data directory cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It would be wrong.
    #[error("nothing is restored: {0}")]
    Refused(String),
}

/// The id of the cluster that begins with a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewCluster {
    /// The first node is made; half of the id is this.
    Drawn(u64),
    /// A further node of this cluster is made.
    Named(Uuid),
}

/// The state that a new cluster begins with.
#[derive(Debug)]
pub struct Backup {
    /// Which cluster it is of, and how far it has come.
    pub info: BackupInfo,
    /// Which newer backups could not be read, and why.
    pub passed_over: Option<String>,
    /// Why it ends before what was asked for, or may.
    pub ends_early: Option<String>,
    /// What the kept log has beyond it.
    pub left_out: Option<LeftOut>,
    /// Why a time does not say what was written before it, if so.
    pub wrong_times: Option<String>,
    /// The state.
    pub applied: AppliedState,
}

impl Backup {
    /// Reads a backup, whole; of a directory, the newest undamaged one that does not go beyond
    /// `until`, and carries out what the log that was kept with it has from there on.
    ///
    /// # Errors
    /// [`RestoreError::Backup`] or [`RestoreError::Archive`].
    pub fn read(from: &Path, until: Until, applier: &dyn Applier) -> Result<Self, RestoreError> {
        let is_dir = from.is_dir();
        if until != Until::End && !is_dir {
            return Err(RestoreError::Refused(format!(
                "{} is of one moment; another one can be chosen of a directory that [backup] has \
                 filled",
                from.display()
            )));
        }
        let ReadBackup {
            of,
            mut applied,
            passed_over,
        } = match is_dir {
            true => newest_before(from, until)?,
            false => ReadBackup::read(from)
                .map_err(|error| RestoreError::Backup(from.to_owned(), error))?,
        };
        let passed_over = passed_over.map(|damaged| {
            format!(
                "an older backup and the log after it are used, since a newer one is damaged: {damaged}"
            )
        });
        let replayed = match is_dir {
            true => replay(from, &of, &mut applied, until, applier)
                .map_err(|error| error.with(passed_over.as_deref()))?,
            false => Replayed::default(),
        };
        Ok(Self {
            info: BackupInfo::of(&of, &applied),
            passed_over,
            wrong_times: wrong_times(&replayed.stamps, until),
            ends_early: replayed.ends_early,
            left_out: replayed.left_out,
            applied,
        })
    }

    /// The state in it.
    pub fn cluster(&self) -> &Cluster {
        &self.applied.cluster
    }

    /// Makes the data directory of a member of a new cluster, which begins with this state.
    /// `members` are all of its voters, with where they reach each other. Nothing counts before the
    /// last step, which names the owner of the directory.
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
            // Joins and replacements of the old cluster do not concern this one.
            Change::PutJoin(node, row) if !mutant!("restore-keeps-tokens") => {
                let over = JoinRow {
                    token: String::new(),
                    nonce: Some(String::new()),
                    replaces: None,
                    ..row
                };
                Some(Change::PutJoin(node, over))
            }
            // The retired numbers were those of nodes that cannot reach this cluster, and its log
            // begins empty: nothing late can come under them.
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
        // The state remembers the starts of its nodes, and the next one must be a later one. The
        // names of log and state become durable with this one, so the owner is never there without
        // them.
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
        // The variant of a UUID takes two bits of the second half, the version four of the first.
        let (_, drawn) = from_halves(0, drawn).as_u64_pair();
        let beginning = (&self.info, members, drawn);
        let hash = xxh3_64(&wire::encode(RecordVersion::FIRST, &beginning));
        let id = from_halves(hash, drawn);
        match cluster {
            NewCluster::Named(named) if named != id => Err(RestoreError::Refused(format!(
                "cluster {named} does not begin with what is to be restored here: another backup, \
                 another moment of it, or other initial_members. All of its nodes must be restored \
                 from the same"
            ))),
            _ => Ok(Identity::of_new_cluster(id, node)),
        }
    }
}

/// The session of a number that no node of the new cluster has had.
const NEVER_STARTED: SessionRow = SessionRow {
    boot: 0,
    answered_below: 0,
};

/// Clocks of nodes may differ by so many microseconds without a warning.
const CLOCKS_DIFFER_MAX: i64 = 5_000_000;

/// What was written before a moment has earlier stamps, and what was written after it later ones,
/// only if clocks were right.
fn wrong_times(stamps: &Stamps, until: Until) -> Option<String> {
    if !matches!(until, Until::Time(_)) {
        return None;
    }
    let seconds = |micros: i64| micros / 1_000_000;
    let ahead = stamps.ahead.filter(|(_, by)| *by > CLOCKS_DIFFER_MAX);
    let ahead = ahead.map(|(stamp, by)| {
        format!(
            "the time in the log is ahead: entry {} is stamped {} s later than this log got it, so the clock of a leader was \
             ahead, or that of the node that made the backup was behind, and what is left out may have been written \
             before the moment that was asked for",
            stamp.index,
            seconds(by)
        )
    });
    let still = stamps.still.filter(|run| run.lasted() > CLOCKS_DIFFER_MAX);
    let still = still.map(|run| {
        format!(
            "the time in the log stood still for {} s: entries {} to {} were written in that time, and each is stamped one \
             microsecond after the one before it, as the clock of a leader was behind; what is restored may have been \
             written after the moment that was asked for",
            seconds(run.lasted()),
            run.first.index,
            run.last.index
        )
    });
    let reasons: Vec<_> = [ahead, still].into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| {
        format!(
            "{}. `placementd inspect kept-log` shows the entries; choose the last one by --until-index instead of --until",
            reasons.join("; ")
        )
    })
}

fn from_halves(high: u64, low: u64) -> Uuid {
    uuid::Builder::from_random_bytes(Uuid::from_u64_pair(high, low).into_bytes()).into_uuid()
}

/// Addresses of the other listeners follow once the cluster runs: the leader asks for them.
fn membership(members: &BTreeMap<u64, String>) -> Membership {
    let voters: BTreeSet<u64> = members.keys().copied().collect();
    let mut nodes: BTreeMap<u64, Member> = BTreeMap::new();
    for (id, peer) in members {
        nodes.entry(*id).or_default().peer.clone_from(peer);
    }
    Membership::new(vec![voters], nodes).expect("every voter is a member")
}
