//! The logs of all nodes, as their stores report them. The data on disk is known from the simulated
//! disks' own events and never from a node's claims.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use placement_raft_store::{Entry, LogEvent, LogId, Payload, Vote};
use xxhash_rust::xxh3::xxh3_64;

/// Identity of a log entry: no other entry may have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    /// The leader that wrote it: term and node.
    pub leader: (u64, u64),
    /// Index in the log.
    pub index: u64,
}

/// Sets of voters, each of which needs a majority: two sets during a membership change.
pub type Voters = Vec<BTreeSet<u64>>;

/// All members, and whether each is a voter.
pub type Members = BTreeMap<u64, bool>;

/// The checked parts of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenEntry {
    /// Identity of the entry.
    pub id: EntryId,
    /// Digest of the content.
    pub digest: u64,
    /// The voters, if this is a membership entry.
    pub voters: Option<Voters>,
    /// The members, if this is a membership entry.
    pub members: Option<Members>,
}

/// An event of a node's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogChange {
    /// The log was opened: the last purged entry, and the entries after it.
    Opened(Option<EntryId>, Vec<WrittenEntry>),
    /// The node voted: term and node of the candidate.
    Voted((u64, u64)),
    /// An entry was appended.
    Appended(WrittenEntry),
    /// The entries after this one were removed.
    Truncated(Option<EntryId>),
    /// The entries up to here were removed, as the state covers them.
    Purged(EntryId),
    /// The entries up to here are on disk.
    Synced(Option<EntryId>),
    /// This vote is on disk.
    VoteSynced(Vote),
    /// The node knows that the entries up to here are committed.
    Committed(EntryId),
    /// A snapshot from another node, which covers the entries up to here, is on disk.
    SnapshotReceived(EntryId),
    /// A received snapshot was removed.
    SnapshotGivenUp(EntryId),
}

/// The log of one node.
#[derive(Debug, Clone, Default)]
pub struct NodeLog {
    /// The entries after the last purged one, by index.
    pub entries: BTreeMap<u64, EntryId>,
    /// The last purged entry.
    pub purged: Option<EntryId>,
    /// Index of the last entry on disk.
    pub durable: Option<u64>,
    /// Voters, by the index of the membership entry.
    pub voters: BTreeMap<u64, Voters>,
    /// Members, by the index of the membership entry.
    pub members: BTreeMap<u64, Members>,
    /// The vote on disk.
    pub vote: Option<Vote>,
    /// The entries removed by the last truncation.
    pub truncated: BTreeMap<u64, EntryId>,
    /// Last entries of the snapshots received from other nodes since the log was opened.
    pub received: BTreeSet<EntryId>,
}

/// The logs of all nodes.
#[derive(Debug, Default)]
pub struct Logs {
    nodes: BTreeMap<u64, NodeLog>,
    /// The logs before they were last opened.
    before: BTreeMap<u64, NodeLog>,
    /// Every entry that some node, with the entry in its log, knew to be committed.
    pub committed: BTreeMap<u64, EntryId>,
    /// Voters, by the index of the committed membership entry.
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

impl From<&Entry> for WrittenEntry {
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

impl From<LogEvent<'_>> for LogChange {
    fn from(event: LogEvent<'_>) -> Self {
        let id = |id: Option<LogId>| id.as_ref().map(EntryId::from);
        match event {
            LogEvent::Opened { purged, entries } => {
                Self::Opened(id(purged), entries.iter().map(WrittenEntry::from).collect())
            }
            LogEvent::Voted(vote) => Self::Voted((vote.leader_id.term, vote.leader_id.node_id)),
            LogEvent::Appended(entry) => Self::Appended(WrittenEntry::from(entry)),
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
    /// The entry before an index; `None` if it is unknown or does not exist.
    pub fn before(&self, index: u64) -> Option<EntryId> {
        let before = index.checked_sub(1)?;
        let purged = self.purged.filter(|purged| purged.index == before);
        self.entries.get(&before).copied().or(purged)
    }

    /// Whether this node has an entry on disk, in its log or covered by its state.
    pub fn has_durably(&self, id: EntryId) -> bool {
        let in_the_state = self.purged.is_some_and(|purged| purged.index >= id.index);
        let in_the_log = self.entries.get(&id.index) == Some(&id);
        in_the_state || (in_the_log && self.durable >= Some(id.index))
    }

    fn take(&mut self, written: &WrittenEntry) {
        self.entries.insert(written.id.index, written.id);
        if let Some(voters) = &written.voters {
            self.voters.insert(written.id.index, voters.clone());
        }
        if let Some(members) = &written.members {
            self.members.insert(written.id.index, members.clone());
        }
    }

    fn note(&mut self, happened: &LogChange) {
        match happened {
            LogChange::Opened(purged, entries) => {
                *self = Self {
                    purged: *purged,
                    durable: entries.last().map(|last| last.id.index),
                    ..Self::default()
                };
                for written in entries {
                    self.take(written);
                }
            }
            LogChange::Appended(written) => self.take(written),
            LogChange::Truncated(last) => {
                let end = last.map_or(0, |last| last.index + 1);
                self.truncated = self.entries.split_off(&end);
                self.voters.split_off(&end);
                self.members.split_off(&end);
                self.durable = self.durable.min(last.map(|last| last.index));
            }
            LogChange::Purged(upto) => {
                self.entries = self.entries.split_off(&(upto.index + 1));
                self.purged = self.purged.max(Some(*upto));
            }
            LogChange::Synced(last) => {
                // The entry may have been truncated since.
                let there = last.filter(|last| self.entries.get(&last.index) == Some(last));
                self.durable = self.durable.max(there.map(|last| last.index));
            }
            LogChange::VoteSynced(vote) => self.vote = Some(*vote),
            LogChange::SnapshotReceived(upto) => {
                self.received.insert(*upto);
            }
            LogChange::SnapshotGivenUp(upto) => {
                self.received.remove(upto);
            }
            LogChange::Voted(_) | LogChange::Committed(_) => {}
        }
    }
}

impl Logs {
    /// The logs of a cluster whose nodes all start with the state at `index`, with these voters.
    pub fn starting_at(index: u64, voters: BTreeSet<u64>) -> Self {
        Self {
            voters: BTreeMap::from([(index, vec![voters])]),
            ..Self::default()
        }
    }

    /// The log of a node; empty if the node is unknown.
    pub fn node(&self, node: u64) -> &NodeLog {
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

    /// The log of a node before it was last opened.
    pub fn before_opening(&self, node: u64) -> Option<&NodeLog> {
        self.before.get(&node)
    }

    /// Records an event of a node's log. Returns the entries that are now known to be committed for
    /// the first time.
    pub fn note(&mut self, node: u64, happened: &LogChange) -> Vec<EntryId> {
        let log = self.nodes.entry(node).or_default();
        if let LogChange::Opened(..) = happened {
            self.before.insert(node, log.clone());
        }
        log.note(happened);
        let LogChange::Committed(upto) = happened else {
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
