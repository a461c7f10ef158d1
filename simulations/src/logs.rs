//! The logs of all nodes as their stores keep them, seen from outside. Nothing here
//! believes a node: what is on disk, the disk says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use placement_raft_store::{Entry, LogEvent, LogId, Payload, Vote};
use xxhash_rust::xxh3::xxh3_64;

/// The name of an entry: no other entry may bear it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    /// The leader that wrote it: its term and its node.
    pub leader: (u64, u64),
    /// Its place in the log.
    pub index: u64,
}

/// Sets of voters, each of which must have a majority: two while the membership changes.
pub type Voters = Vec<BTreeSet<u64>>;

/// All members, and whether each has a vote.
pub type Members = BTreeMap<u64, bool>;

/// What is looked at of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its name.
    pub id: EntryId,
    /// Of what it says.
    pub digest: u64,
    /// If it says who votes.
    pub voters: Option<Voters>,
    /// If it says who the members are.
    pub members: Option<Members>,
}

/// What happened to the log of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// It was opened and holds this, behind what was purged.
    Opened(Option<EntryId>, Vec<Written>),
    /// The node votes: for whom, in which term.
    Voted((u64, u64)),
    /// An entry was taken.
    Appended(Written),
    /// What follows was removed.
    Truncated(Option<EntryId>),
    /// Everything up to here was removed, as the state has it.
    Purged(EntryId),
    /// Everything up to here is on disk.
    Synced(Option<EntryId>),
    /// The vote that is on disk.
    VoteSynced(Vote),
    /// The node knows everything up to here to be committed.
    Committed(EntryId),
    /// It has a snapshot of another node on disk that covers everything up to here.
    SnapshotReceived(EntryId),
    /// It has it no more.
    SnapshotGivenUp(EntryId),
}

/// The log of one node.
#[derive(Debug, Clone, Default)]
pub struct NodeLog {
    /// What it holds.
    pub entries: BTreeMap<u64, EntryId>,
    /// What precedes them.
    pub purged: Option<EntryId>,
    /// Up to where it is on disk.
    pub durable: Option<u64>,
    /// Who votes, by the entries that say so.
    pub voters: BTreeMap<u64, Voters>,
    /// Who the members are, by the entries that say so.
    pub members: BTreeMap<u64, Members>,
    /// The vote that is on disk.
    pub vote: Option<Vote>,
    /// What was removed behind the last entry, the last time that anything was.
    pub truncated: BTreeMap<u64, EntryId>,
    /// What the snapshots of other nodes cover that are on disk, since it was last opened.
    pub received: BTreeSet<EntryId>,
}

/// The logs of all nodes.
#[derive(Debug, Default)]
pub struct Logs {
    nodes: BTreeMap<u64, NodeLog>,
    /// The logs as they were before they were last opened.
    before: BTreeMap<u64, NodeLog>,
    /// Every entry that any node knew to be committed while it held it.
    pub committed: BTreeMap<u64, EntryId>,
    /// Who votes, by the committed entries that say so.
    pub voters: BTreeMap<u64, Voters>,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            leader: (term, node),
            index,
        } = self;
        write!(f, "{index} (term {term}, node {node})")
    }
}

impl From<&LogId> for EntryId {
    fn from(id: &LogId) -> Self {
        let leader = id.committed_leader_id();
        Self {
            leader: (leader.term, leader.node_id),
            index: id.index(),
        }
    }
}

impl From<&Entry> for Written {
    fn from(entry: &Entry) -> Self {
        let (content, voters, members) = match &entry.payload {
            Payload::Blank => ("blank".to_owned(), None, None),
            Payload::Normal(logged) => (format!("{:?}", logged.stamped()), None, None),
            Payload::Membership(membership) => {
                let voters = membership.get_joint_config().clone();
                let votes = |node: &u64| voters.iter().any(|set| set.contains(node));
                let nodes = membership.nodes();
                let members = nodes.map(|(node, _)| (*node, votes(node))).collect();
                (format!("{membership:?}"), Some(voters), Some(members))
            }
        };
        Self {
            id: EntryId::from(&entry.log_id),
            digest: xxh3_64(content.as_bytes()),
            voters,
            members,
        }
    }
}

impl From<LogEvent<'_>> for Happened {
    fn from(event: LogEvent<'_>) -> Self {
        let id = |id: Option<LogId>| id.as_ref().map(EntryId::from);
        match event {
            LogEvent::Opened { purged, entries } => {
                Self::Opened(id(purged), entries.iter().map(Written::from).collect())
            }
            LogEvent::Voted(vote) => Self::Voted((vote.leader_id.term, vote.leader_id.node_id)),
            LogEvent::Appended(entry) => Self::Appended(Written::from(entry)),
            LogEvent::Truncated(last) => Self::Truncated(id(last)),
            LogEvent::Purged(upto) => Self::Purged(EntryId::from(&upto)),
            LogEvent::Synced(last) => Self::Synced(id(last)),
            LogEvent::VoteSynced(vote) => Self::VoteSynced(vote),
            LogEvent::Committed(upto) => Self::Committed(EntryId::from(&upto)),
            LogEvent::SnapshotReceived(upto) => Self::SnapshotReceived(EntryId::from(&upto)),
            LogEvent::SnapshotGivenUp(upto) => Self::SnapshotGivenUp(EntryId::from(&upto)),
        }
    }
}

impl NodeLog {
    /// What stands before a place; `None` if that is not known, or nothing does.
    pub fn before(&self, index: u64) -> Option<EntryId> {
        let before = index.checked_sub(1)?;
        let purged = self.purged.filter(|purged| purged.index == before);
        self.entries.get(&before).copied().or(purged)
    }

    /// Whether this node has an entry on disk, in its log or in its state.
    pub fn has_durably(&self, id: EntryId) -> bool {
        let in_the_state = self.purged.is_some_and(|purged| purged.index >= id.index);
        let in_the_log = self.entries.get(&id.index) == Some(&id);
        in_the_state || (in_the_log && self.durable >= Some(id.index))
    }

    fn take(&mut self, written: &Written) {
        self.entries.insert(written.id.index, written.id);
        if let Some(voters) = &written.voters {
            self.voters.insert(written.id.index, voters.clone());
        }
        if let Some(members) = &written.members {
            self.members.insert(written.id.index, members.clone());
        }
    }

    fn note(&mut self, happened: &Happened) {
        match happened {
            Happened::Opened(purged, entries) => {
                *self = Self {
                    purged: *purged,
                    durable: entries.last().map(|last| last.id.index),
                    ..Self::default()
                };
                for written in entries {
                    self.take(written);
                }
            }
            Happened::Appended(written) => self.take(written),
            Happened::Truncated(last) => {
                let end = last.map_or(0, |last| last.index + 1);
                self.truncated = self.entries.split_off(&end);
                self.voters.split_off(&end);
                self.members.split_off(&end);
                self.durable = self.durable.min(last.map(|last| last.index));
            }
            Happened::Purged(upto) => {
                self.entries = self.entries.split_off(&(upto.index + 1));
                self.purged = self.purged.max(Some(*upto));
            }
            Happened::Synced(last) => {
                // What was truncated in between is no longer meant.
                let there = last.filter(|last| self.entries.get(&last.index) == Some(last));
                self.durable = self.durable.max(there.map(|last| last.index));
            }
            Happened::VoteSynced(vote) => self.vote = Some(*vote),
            Happened::SnapshotReceived(upto) => {
                self.received.insert(*upto);
            }
            Happened::SnapshotGivenUp(upto) => {
                self.received.remove(upto);
            }
            Happened::Voted(_) | Happened::Committed(_) => {}
        }
    }
}

impl Logs {
    /// Those of a cluster whose nodes all begin with a state, which says who votes.
    pub fn behind(index: u64, voters: BTreeSet<u64>) -> Self {
        Self {
            voters: BTreeMap::from([(index, vec![voters])]),
            ..Self::default()
        }
    }

    /// The log of a node.
    pub fn of(&self, node: u64) -> &NodeLog {
        const NONE: &NodeLog = &NodeLog {
            entries: BTreeMap::new(),
            purged: None,
            durable: None,
            voters: BTreeMap::new(),
            members: BTreeMap::new(),
            vote: None,
            truncated: BTreeMap::new(),
            received: BTreeSet::new(),
        };
        self.nodes.get(&node).unwrap_or(NONE)
    }

    /// The log of a node as it was before it was last opened.
    pub fn before_opening(&self, node: u64) -> Option<&NodeLog> {
        self.before.get(&node)
    }

    /// Takes in what happened on a node. Returns the entries that no node knew to be committed
    /// before.
    pub fn note(&mut self, node: u64, happened: &Happened) -> Vec<EntryId> {
        let log = self.nodes.entry(node).or_default();
        if let Happened::Opened(..) = happened {
            self.before.insert(node, log.clone());
        }
        log.note(happened);
        let Happened::Committed(upto) = happened else {
            return Vec::new();
        };
        let mut fresh = Vec::new();
        let behind = self.committed.last_key_value().map_or(0, |last| last.0 + 1);
        for (index, id) in log.entries.range(behind.min(upto.index)..=upto.index) {
            if !self.committed.contains_key(index) {
                self.committed.insert(*index, *id);
                fresh.push(*id);
                if let Some(voters) = log.voters.get(index) {
                    self.voters.insert(*index, voters.clone());
                }
            }
        }
        fresh
    }
}
