//! The cluster's configuration: the tables `[node]`, `[cluster]`, `[raft]`, `[disk]` and
//! `[backup]`, and the settings of other tables that the cluster needs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use placement_model::Level;
use placement_raft_store::{LABEL_MAX, NodeName, Site, is_label};
use uuid::Uuid;

use crate::bucket::BackupS3Section;
use crate::topology::Extent;
use crate::waits::Waits;
use placement_base::settings::{Invalid, Text, check_address, settings};

/// The configuration that the cluster uses.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub node_id: u64,
    pub data_dir: PathBuf,
    pub initial_members: Vec<Text<InitialMember>>,
    pub cluster_id: Option<Uuid>,
    /// Whether clients have to connect by TLS.
    pub api_requires_tls: bool,
    /// Whether operators have to connect by TLS.
    pub admin_requires_tls: bool,
    pub node: NodeSection,
    pub cluster: ClusterSection,
    pub disk: DiskSection,
    pub backup: BackupSection,
    pub backup_s3: BackupS3Section,
    pub raft: RaftSection,
}

impl Settings {
    /// How long a request waits for the cluster.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.cluster.wait_ms)
    }
}

settings! {
    /// Name and site of this node.
    NodeSection {
        /// Name of this node for operators and tools: letters, digits, dots, dashes and
        /// underscores, unique in the cluster. Empty: the node keeps the name that the cluster has
        /// stored for it, or `node-NUMBER` if the cluster has stored none.
        name: Text<NodeName> = Text::default(),
        /// Region of this node. Nodes of one region may fail together, independently of other
        /// regions. Empty: unnamed.
        region: String = String::new(),
        /// Zone of this node within its region. Nodes of one zone may fail together. Empty:
        /// unnamed.
        zone: String = String::new(),
    }
}

impl NodeSection {
    /// The site of this node.
    pub fn site(&self) -> Site {
        Site {
            region: self.region.clone(),
            zone: self.zone.clone(),
        }
    }

    /// # Errors
    /// The region or the zone is not a valid label.
    pub fn check(&self) -> Result<(), Invalid> {
        for (key, name) in [("node.region", &self.region), ("node.zone", &self.zone)] {
            if !is_label(name) {
                let message = format!(
                    "{name:?} is not a valid name: use up to {LABEL_MAX} letters, digits, dots, \
                    dashes and underscores"
                );
                return Err(Invalid::new(key, message));
            }
        }
        Ok(())
    }
}

/// One of `initial_members`: `ID=HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InitialMember {
    /// Number of the node.
    pub id: u64,
    /// Address of the node for other nodes.
    pub address: String,
}

impl FromStr for InitialMember {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not of the form ID=HOST:PORT");
        let (id, address) = text.split_once('=').ok_or_else(wrong)?;
        let id = id.trim().parse().ok().filter(|id| *id > 0);
        let address = address.trim();
        check_address("initial_members", address, false).map_err(|invalid| invalid.message)?;
        Ok(Self {
            id: id.ok_or_else(wrong)?,
            address: address.to_owned(),
        })
    }
}

impl fmt::Display for InitialMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.id, self.address)
    }
}

settings! {
    /// Joining, leading and waiting for the cluster.
    ClusterSection {
        /// How long a request waits for a leader, for the outcome of its write, or for the state
        /// that its read needs, before it gets 503, in milliseconds.
        wait_ms: u64 = 5_000,
        /// Highest feature level that this node accepts; 0: the highest of its version. Set it on
        /// one node to keep a downgrade of the whole cluster possible while you try an upgrade. It
        /// does not lower a level that the cluster has reached.
        level_max: u64 = 0,
        /// Nodes of a cluster that this node joins while its data directory is empty: their
        /// addresses for other nodes, `host:port`. Names are resolved for each attempt. Ignored
        /// once this node belongs to a cluster.
        join: Vec<String> = Vec::new(),
        /// File with the join token that `placementctl join-token create` has printed.
        join_token_file: Option<PathBuf> = None,
        /// How long a voter may be unreachable before its vote moves to a learner that has caught
        /// up, in its zone or else in its region, in seconds. The voter stays a member without a
        /// vote. The vote moves only while a majority of the voters is reachable. 0: votes move
        /// only at an operator's request.
        autopilot_after_s: u64 = 0,
        /// Preferred sites of the leader: regions, or `REGION/ZONE`, the best first. Set the same
        /// list on each node. Leadership moves to the first of these sites that has a voter which
        /// is reachable, has caught up and is not drained.
        leader_preference: Vec<String> = Vec::new(),
        /// Failure that the voters must tolerate: the loss of any one `node`, `zone` or `region`.
        /// Set the same value on each node. A change of voters after which the cluster would no
        /// longer tolerate such a loss is refused without `--force`. Unset: no change is refused.
        survive: Option<Extent> = None,
    }
    fixed {
        /// `/readyz` fails when this many log entries are committed but not yet applied on this
        /// node: half of the entries that the log retains.
        ready_lag_max: u64 = 10_000,
        /// Maximum time that a write may have to wait in the queue, in milliseconds. If a node, or
        /// the leader, has more unanswered writes than it recently completed within this time,
        /// further writes are answered 503 immediately. So the waiting writes are answered before
        /// their clients time out. 0: no limit.
        backlog_ms: u64 = 1_000,
        /// Maximum bytes of unanswered writes on the leader; further writes are answered 503.
        backlog_bytes: usize = 64 << 20,
    }
}

impl ClusterSection {
    /// The highest feature level that this node accepts.
    pub fn level_max(&self) -> Level {
        match u32::try_from(self.level_max) {
            Ok(0) | Err(_) => Level::NEWEST,
            Ok(level) => Level::NEWEST.min(Level(level)),
        }
    }

    /// Whether this node joins a cluster if it has no data.
    pub fn joins(&self) -> bool {
        !self.join.is_empty()
    }

    /// # Errors
    /// A setting is invalid.
    pub fn check(&self, raft: &RaftSection) -> Result<(), Invalid> {
        for address in &self.join {
            check_address("cluster.join", address, false)?;
        }
        if self.joins() && self.join_token_file.is_none() {
            let message = "is required with cluster.join";
            return Err(Invalid::new("cluster.join_token_file", message));
        }
        let is_site = |site: &str| {
            let mut names = site.splitn(2, '/');
            names.all(|name| !name.is_empty() && is_label(name))
        };
        if let Some(site) = self.leader_preference.iter().find(|site| !is_site(site)) {
            let message = format!("{site:?} is neither a region nor REGION/ZONE");
            return Err(Invalid::new("cluster.leader_preference", message));
        }
        if self.wait_ms == 0 {
            return Err(Invalid::new("cluster.wait_ms", "must not be 0"));
        }
        let after_ms = self.autopilot_after_s.saturating_mul(1000);
        let least_ms = raft.waits().absence_min().as_millis() as u64;
        if after_ms > 0 && after_ms < least_ms {
            return Err(Invalid::new(
                "cluster.autopilot_after_s",
                format!(
                    "must be 0 or at least three times the longest election timeout, {least_ms} \
                    ms: until then a new leader may not have an answer from each voter"
                ),
            ));
        }
        Ok(())
    }
}

settings! {
    /// Replication: timeouts, log and snapshots of Raft.
    RaftSection {
        /// The longest round trip between two voters, in milliseconds. Heartbeat, election and
        /// connection timeouts are derived from it. 0: the timeouts fit round trips up to 125 ms.
        round_trip_ms: u64 = 0,
        /// The state is written to disk after about this many log entries, and older entries are
        /// removed from the log. If the state is large (over 16 MiB), entries are removed only when
        /// the log is at least half as long as the state. The newest `snapshot_after` of the
        /// entries that could be removed are retained, so that another node that was briefly away
        /// need not receive the whole state.
        snapshot_after: u64 = 20_000,
        /// Maximum rate of sending a snapshot to another node, in bytes a second; 0: no fixed
        /// limit. In any case the rate is at most half of what the network and the disks sustain.
        snapshot_bytes_per_s: u64 = 64 * 1024 * 1024,
    }
    fixed {
        /// Interval between heartbeats of a leader, in milliseconds.
        heartbeat_ms: u64 = 250,
        /// Shortest silence of the leader before an election, in milliseconds.
        election_min_ms: u64 = 1_000,
        /// Longest silence of the leader before an election, in milliseconds. After a heartbeat, a
        /// node waits this long plus a random part of the difference to `election_min_ms`.
        election_max_ms: u64 = 1_500,
        /// Number of log entries retained before the last entry of a snapshot; `None`:
        /// `snapshot_after`.
        log_keep: Option<u64> = None,
        /// Maximum number of log entries in one message.
        append_entries_max: u64 = 1_000,
        /// Maximum bytes of log entries in one message; one entry always fits. A message has at
        /// most 32 MiB.
        append_bytes_max: usize = 4 << 20,
        /// Bytes of a snapshot per message.
        snapshot_chunk_bytes: usize = 1 << 20,
        /// Deadline for sending and installing a snapshot, in milliseconds; the next attempt
        /// resumes where this one ended.
        snapshot_timeout_ms: u64 = 600_000,
        /// A learner may be promoted once it lacks no more than this many log entries: about one
        /// second of writes.
        promote_lag_max: u64 = 1_000,
        /// Maximum length of a command's record in the log, in bytes: the record and its metadata
        /// are sent between nodes in one message, and its rows in one frame of a snapshot.
        command_bytes: usize = 4 << 20,
    }
}

/// Minimum length of the heartbeat interval, in round trips: the heartbeat arrives after a quarter
/// of the interval, and three quarters remain for its answer.
const HEARTBEAT: u64 = 2;
/// Shortest and longest silence of the leader before an election, in heartbeat intervals.
const ELECTION_MIN: u64 = 3;
const ELECTION_MAX: u64 = 6;
/// Time without received data after which a connection is closed, and time limit for opening one,
/// in heartbeat intervals.
const CONNECTION: u64 = 4;

impl RaftSection {
    /// Raises the timeouts to fit `round_trip_ms`, if it is longer than they allow now.
    pub fn follow_round_trip(&mut self) {
        let beat = HEARTBEAT * self.round_trip_ms;
        self.heartbeat_ms = self.heartbeat_ms.max(beat);
        self.election_min_ms = self.election_min_ms.max(ELECTION_MIN * beat);
        self.election_max_ms = self.election_max_ms.max(ELECTION_MAX * beat);
    }

    /// Time limit for a connection's silence and for opening it, given `round_trip_ms`, in
    /// milliseconds.
    pub fn connection_ms(&self) -> u64 {
        CONNECTION * HEARTBEAT * self.round_trip_ms
    }

    /// The longest round trip that the timeouts allow, in milliseconds.
    pub(crate) fn round_trip_max_ms(&self) -> u64 {
        self.heartbeat_ms / HEARTBEAT
    }

    /// How long this cluster waits for elections, leaders and voters.
    pub fn waits(&self) -> Waits {
        Waits {
            election_min: Duration::from_millis(self.election_min_ms),
            election_max: Duration::from_millis(self.election_max_ms),
        }
    }

    /// Number of log entries retained before the last entry of a snapshot.
    pub(crate) fn log_keep(&self) -> u64 {
        self.log_keep.unwrap_or(self.snapshot_after)
    }

    /// # Errors
    /// A setting is invalid.
    pub fn check(&self) -> Result<(), Invalid> {
        const ROUND_TRIP_MAX: u64 = 10_000;
        if self.round_trip_ms > ROUND_TRIP_MAX {
            let message = format!("must be at most {ROUND_TRIP_MAX}");
            return Err(Invalid::new("raft.round_trip_ms", message));
        }
        if self.snapshot_after == 0 {
            return Err(Invalid::new("raft.snapshot_after", "must not be 0"));
        }
        Ok(())
    }
}

settings! {
    /// Free space on the disk.
    DiskSection {
        /// Free space below which a disk is nearly full, in bytes. While the disks of a majority
        /// are nearly full, writes that need space get 507; deletions still work. 0: no disk counts
        /// as nearly full.
        min_free_bytes: u64 = 256 * 1024 * 1024,
        /// How long one disk operation may take before the process ends, in milliseconds. After a
        /// tenth of this time a leader steps down. 0: no limit.
        hung_after_ms: u64 = 30_000,
    }
}

settings! {
    /// Automatic backups of this node.
    BackupSection {
        /// Directory for backups of this node and for the log since the oldest of them; each
        /// cluster and node has a subdirectory of its own. Use a disk that does
        /// not hold `data_dir`. Unset: no backups are made.
        directory: Option<PathBuf> = None,
        /// Interval between backups, in seconds.
        every_s: u64 = 3_600,
        /// How many backups are kept; the oldest is deleted once a new one is complete and
        /// verified.
        keep: u64 = 24,
    }
}

impl BackupSection {
    /// # Errors
    /// A setting is invalid.
    pub fn check(&self, data_dir: &Path, copies: &BackupS3Section) -> Result<(), Invalid> {
        match &self.directory {
            Some(directory) if directory.starts_with(data_dir) => {
                let message = "must not be within data_dir: both would be lost together";
                return Err(Invalid::new("backup.directory", message));
            }
            None if copies.is_used() => {
                let message = "needs backup.directory, whose contents are copied";
                return Err(Invalid::new("backup_s3.bucket", message));
            }
            _ => {}
        }
        for (key, value) in [("backup.every_s", self.every_s), ("backup.keep", self.keep)] {
            if value == 0 {
                return Err(Invalid::new(key, "must not be 0"));
            }
        }
        if copies.is_used() {
            copies.check()
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_a_long_round_trip() {
        for (round_trip_ms, expected) in [
            (0, [250, 1000, 1500, 0]),
            (30, [250, 1000, 1500, 240]),
            (125, [250, 1000, 1500, 1000]),
            (200, [400, 1200, 2400, 1600]),
        ] {
            let mut raft = RaftSection {
                round_trip_ms,
                ..RaftSection::default()
            };
            raft.follow_round_trip();
            let (beat, least, most) = (
                raft.heartbeat_ms,
                raft.election_min_ms,
                raft.election_max_ms,
            );
            assert_eq!([beat, least, most, raft.connection_ms()], expected);
            assert!(raft.round_trip_max_ms() >= round_trip_ms);
        }
    }
}
