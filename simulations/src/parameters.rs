//! The parameters of a run, all derived from its seed, so that many seeds cover more than any
//! single set of parameters.

use std::time::Duration;

use placement_base::runtime::Limits;
use placement_machine::SchedulingDelay;
use placement_model::types::PartitionId;
use placement_node::Config;
use rand::Rng;

use crate::choice::one_of;
use crate::regions::Regions;
use crate::seed::Seed;
use crate::workload::Choices;

/// Suffix of violations seen by the neighbour's clients.
pub(crate) const IN_THE_NEIGHBOUR: &str = "in the partition of the neighbour";

/// Number of elections that may fail in a row.
const ELECTIONS: u32 = 10;
/// Requests of the first client before the fault phase.
const SET_UP_REQUESTS: u32 = 30;
/// Requests that a client may need after the fault phase to complete enough writes.
const RECOVERY_REQUESTS: u32 = 50;

/// Numbers of initial voters to choose from.
const VOTERS: [u64; 14] = [1, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 5];

/// Time that an operator may spend waiting for answers that were lost.
const OPERATOR: Duration = Duration::from_secs(60);
/// Messages with entries that a node may need, one after the other, to catch up.
const CATCH_UP_MESSAGES: u32 = 50;

/// Parameters of one run.
#[derive(Debug, Clone)]
pub struct Parameters {
    /// The seed of all other parameters.
    pub seed: Seed,
    /// Initial nodes of the cluster, all voters.
    pub nodes: u64,
    /// Simulated time per step.
    pub tick: Duration,
    /// Shortest latency of a message.
    pub latency_min: Duration,
    /// Longest latency of a message without faults.
    pub latency_max: Duration,
    /// Shortest latency of a log sync.
    pub sync_min: Duration,
    /// Longest latency of a log sync without faults.
    pub sync_max: Duration,
    /// Lead of each node's wall clock over simulated time.
    pub skews: Vec<Duration>,
    /// Heartbeat interval of the leader.
    pub heartbeat: Duration,
    /// Shortest election timeout; the longest is twice as long.
    pub election: Duration,
    /// Entries between two snapshots, each of which purges the log.
    pub snapshot_every: u64,
    /// Entries that a snapshot leaves in the log.
    pub keep_in_log: u64,
    /// Number of clients, without the neighbour's.
    pub clients: usize,
    /// Providers created before the fault phase.
    pub providers: usize,
    /// Units per provider before the fault phase.
    pub total: u32,
    /// Consumers that contend for the units.
    pub consumers: usize,
    /// Longest pause of a client between two requests.
    pub pause_max: Duration,
    /// Timeout of a client's request.
    pub patience: Duration,
    /// Number of clients that follow the change stream, from node to node.
    pub watchers: usize,
    /// Whether one of the clients uses our client library.
    pub our_client: OurClient,
    /// Percentage of writes among requests.
    pub writes_percent: u32,
    /// Percentage of writes without a check of the consumer generation.
    pub unchecked_percent: u32,
    /// Percentage of checked claims that are equal to those of other clients.
    pub equal_percent: u32,
    /// Percentage of writes of allocations that a client repeats if they fail.
    pub repeated_percent: u32,
    /// Percentage of claims that have several choices.
    pub choices_percent: u32,
    /// Percentage of claims with several choices that make a hold.
    pub holds_percent: u32,
    /// Percentage of releases that instead replace the limits of projects.
    pub limits_percent: u32,
    /// Duration of the fault phase.
    pub fault_phase: Duration,
    /// Mean time between two faults.
    pub fault_every: Duration,
    /// Whether a minority of nodes stays unavailable until the end of the recovery phase.
    pub minority_stays_down: bool,
    /// Whether the minority is partitioned from the other nodes (true) or powered off (false).
    pub minority_is_cut_off: bool,
    /// How long a node waits for a leader or a quorum before it answers 503.
    pub wait: Duration,
    /// Machines that wait until they are added to the cluster.
    pub spares: u64,
    /// Whether two operators change the cluster concurrently; no node is lost then.
    pub two_operators: bool,
    /// Whether all nodes are lost in the middle of the run and the cluster is restored from a
    /// backup.
    pub is_lost: bool,
    /// Whether the fault phase begins with the first step, before the cluster has formed.
    pub faults_from_the_start: bool,
    /// Which partitions the cluster has.
    pub clouds: Clouds,
    /// Settings of the nodes that have an effect in a short run only if they are small.
    pub knobs: NodeTuning,
    /// Sites of the machines; `None`: all at one place.
    pub regions: Option<Regions>,
}

/// The clouds in a cluster, each in a partition, all with the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clouds {
    /// Only the clients' cloud.
    Alone,
    /// The clients' cloud in the default partition, and a neighbour's in a second one.
    First,
    /// The clients' cloud in a second partition, and a neighbour's in the default one.
    Second,
}

impl Clouds {
    fn from_seed(seed: Seed) -> Self {
        let random = &mut seed.stream("neighbour");
        match (random.random_bool(0.25), random.random_bool(0.4)) {
            (false, _) => Self::Alone,
            (true, false) => Self::First,
            (true, true) => Self::Second,
        }
    }

    /// The partition of the neighbour, if there is one. Its id relies on these partitions being
    /// created first.
    pub fn neighbour(self) -> Option<PartitionId> {
        match self {
            Self::Alone => None,
            Self::First => Some(PartitionId(1)),
            Self::Second => Some(PartitionId::DEFAULT),
        }
    }

    /// The placement partition that the clients use.
    pub fn partition(self) -> PartitionId {
        match self {
            Self::Second => PartitionId(1),
            Self::Alone | Self::First => PartitionId::DEFAULT,
        }
    }
}

/// Whether one of the clients uses our client library, and how the library treats unknown outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OurClient {
    /// No client uses it.
    Absent,
    /// It reports that the outcome of a write is unknown.
    Careful,
    /// It sends the write again.
    Repeating,
}

/// Settings of the nodes, smaller than an operator would set them.
#[derive(Debug, Clone)]
pub struct NodeTuning {
    /// Bytes of log entries in one message.
    pub append_bytes: usize,
    /// Log entries in one message.
    pub append_entries: u64,
    /// Bytes of a snapshot in one message.
    pub chunk_bytes: usize,
    /// Interval at which an idle node asks for the commit index; zero: never.
    pub probe: Duration,
    /// How long a connection may be silent.
    pub silence: Duration,
    /// How long a disk call may take before the node exits. A leader gives up leadership after a
    /// tenth of it. Zero: unlimited.
    pub hung_after: Duration,
    /// Size of the log cache in bytes.
    pub log_cache_bytes: usize,
    /// Number of applied but unwritten row changes that triggers a write.
    pub rows_behind: usize,
    /// Bytes of applied but unwritten change-ledger entries that trigger a write.
    pub ledger_behind: usize,
    /// Bytes of the change ledger that a node keeps.
    pub ledger_bytes: u64,
    /// Sizes that are constants in the product.
    pub limits: Limits,
    /// Scheduling delay of threads.
    pub lateness: SchedulingDelay,
}

impl Default for NodeTuning {
    /// The product's defaults, with a smaller log cache so that entries are also read from disk.
    fn default() -> Self {
        let config = Config::default();
        Self {
            append_bytes: config.raft.append_bytes_max,
            append_entries: config.raft.append_entries_max,
            chunk_bytes: config.raft.snapshot_chunk_bytes,
            probe: Duration::from_millis(config.reads.probe_ms),
            silence: Duration::from_millis(config.peer.silence_ms),
            hung_after: Duration::from_millis(config.disk.hung_after_ms),
            log_cache_bytes: 4 << 10,
            rows_behind: 50,
            ledger_behind: 8 << 20,
            ledger_bytes: 16 << 10,
            limits: Limits::PRODUCT,
            lateness: SchedulingDelay::default(),
        }
    }
}

impl NodeTuning {
    /// Draws the settings from `seed`.
    pub fn from_seed(seed: Seed) -> Self {
        let random = &mut seed.stream("knobs");
        let ms = Duration::from_millis;
        Self {
            append_bytes: one_of(random, &[1 << 10, 16 << 10, 4 << 20]),
            append_entries: one_of(random, &[3, 50, 1000]),
            chunk_bytes: one_of(random, &[1 << 10, 16 << 10, 1 << 20]),
            probe: ms(one_of(random, &[0, 200, 1000])),
            silence: ms(one_of(random, &[400, 1000, 2000])),
            // Longer than any fault, since the exit of a node would end the simulation.
            hung_after: ms(one_of(random, &[0, 30_000])),
            log_cache_bytes: one_of(random, &[0, 4 << 10, 1 << 20]),
            rows_behind: one_of(random, &[1, 50, 16_384]),
            ledger_behind: one_of(&mut seed.stream("ledger-behind"), &[1, 1 << 10, 8 << 20]),
            ledger_bytes: one_of(&mut seed.stream("ledger"), &[0, 2 << 10, 16 << 10, 1 << 20]),
            limits: limits(seed),
            lateness: SchedulingDelay::default(),
        }
    }
}

/// Chooses the product's limits for half of the runs, and for the others limits that the few rows
/// of a run can reach.
fn limits(seed: Seed) -> Limits {
    let random = &mut seed.stream("limits");
    let product = Limits::PRODUCT;
    if random.random_bool(0.5) {
        return product;
    }
    Limits {
        piece: one_of(random, &[64, 1 << 10, product.piece]),
        snapshot_frame: one_of(random, &[1, 200, 2000, product.snapshot_frame]),
        install_batch: one_of(random, &[1, 500, 4000, product.install_batch]),
        log_batch: one_of(random, &[1, 1000, product.log_batch]),
        read_inline: one_of(random, &[0, 500, product.read_inline]),
        rows_buffer: one_of(random, &[2000, 20_000, product.rows_buffer]),
        apply_inline: one_of(random, &[0, product.apply_inline]),
        light_snapshot: one_of(random, &[0, product.light_snapshot]),
        ..product
    }
}

/// Time limits once all faults have ended, in simulated time.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Until the cluster has formed and the first providers exist.
    pub set_up: Duration,
    /// Limit of each step after the fault phase: every client's writes succeed, all nodes have
    /// applied the same entries, a returning node has caught up.
    pub recovery: Duration,
    /// From the end of the fault phase until the ordered membership is reached: one attempt may
    /// still wait for an answer that is lost.
    pub changes: Duration,
}

impl Parameters {
    /// The parameters of the clients' workload.
    pub fn choices(&self) -> Choices {
        Choices {
            seed: self.seed,
            providers: self.providers,
            consumers: self.consumers,
            unchecked_percent: self.unchecked_percent,
            equal_percent: self.equal_percent,
            repeated_percent: self.repeated_percent,
            choices_percent: self.choices_percent,
            holds_percent: self.holds_percent,
            limits_percent: self.limits_percent,
        }
    }

    /// Number of the neighbour's clients.
    pub(crate) fn neighbours(&self) -> usize {
        self.clouds.neighbour().map_or(0, |_| 2)
    }

    /// Time limits derived from the parameters.
    ///
    /// After the fault phase a client may first have to time out on a connection that lost a
    /// packet. A node may have to do the same (`silence_ms`) before it can request votes. Several
    /// elections may fail. Then the client needs tens of requests, as it chooses writes at random.
    pub fn bounds(&self) -> Bounds {
        let elections = ELECTIONS * self.election * 2;
        let node = elections + self.knobs.silence + CATCH_UP_MESSAGES * self.request();
        // Faults may have prevented the cluster from forming until the recovery phase.
        let fault_phase = if self.faults_from_the_start {
            self.fault_phase
        } else {
            Duration::ZERO
        };
        let recovery =
            node + 2 * self.patience + RECOVERY_REQUESTS * (self.pause_max + self.request());
        Bounds {
            set_up: node + fault_phase + 2 * self.patience + SET_UP_REQUESTS * self.request(),
            recovery,
            changes: 2 * recovery + OPERATOR,
        }
    }

    /// How long after the fault phase a connection that a fault broke may stay undetected. If the
    /// leader needed that connection, the nodes elect another leader.
    pub fn settling(&self) -> Duration {
        self.knobs.silence * 5 / 4 + 2 * self.election * 2
    }

    /// Time limit for asking each node `questions` questions, one after the other.
    pub fn scan_max(&self, questions: usize) -> Duration {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.bounds().recovery + 2 * questions * self.request()
    }

    /// Longest time of a request without faults: connect, forward to the leader and replicate, each
    /// a round trip, and some syncs.
    pub(crate) fn request(&self) -> Duration {
        let farthest = self.regions.as_ref().map(Regions::farthest);
        let way = self.latency_max + farthest.unwrap_or_default() / 2;
        8 * (way + self.tick) + 4 * self.sync_max
    }

    /// Number of permanent learners.
    pub fn learners(&self) -> u64 {
        self.regions.as_ref().map_or(0, |regions| regions.learners)
    }

    /// Number of machines for nodes: initial voters, learners and spares.
    pub fn machines(&self) -> u64 {
        self.nodes + self.learners() + self.spares
    }

    /// Whether one node may be lost for good, since all others come back.
    pub fn spares_a_node(&self) -> bool {
        !self.minority_stays_down && !self.faults_from_the_start && self.nodes > 2
    }

    /// The same run, with the loss of the whole cluster in the middle of it. One machine holds a
    /// token of the lost cluster.
    pub fn lost(self) -> Self {
        Self {
            is_lost: true,
            spares: 1,
            two_operators: false,
            minority_stays_down: false,
            faults_from_the_start: false,
            our_client: OurClient::Absent,
            clouds: Clouds::Alone,
            ..self
        }
    }

    /// Draws the parameters from `seed`, with all machines at one place (see `places.rs`).
    pub fn from_seed(seed: Seed) -> Self {
        let random = &mut seed.stream("parameters");
        let ms = Duration::from_millis;
        let nodes = one_of(random, &VOTERS);
        let heartbeat = ms(one_of(random, &[50, 100, 150]));
        let latency_max = ms(one_of(random, &[2, 5, 10, 30]));
        let sync_max = ms(one_of(random, &[1, 5, 20, 60, 250]));
        let faults_from_the_start = seed.stream("early").random_bool(0.1);
        let drawn = Self {
            seed,
            nodes,
            // The number of steps dominates the cost of a run.
            tick: ms(one_of(&mut seed.stream("tick"), &[1, 2, 4, 4])),
            latency_min: Duration::from_micros(200),
            latency_max,
            sync_min: Duration::from_micros(100),
            sync_max,
            skews: (0..nodes)
                .map(|_| ms(random.random_range(0..4000)))
                .collect(),
            heartbeat,
            election: heartbeat * random.random_range(3..=5),
            snapshot_every: one_of(random, &[15, 40, 100, 1000]),
            keep_in_log: one_of(random, &[0, 5, 50]),
            clients: random.random_range(2..=5),
            providers: random.random_range(1..=3),
            total: random.random_range(2..=8),
            consumers: random.random_range(2..=6),
            pause_max: ms(one_of(random, &[10, 50, 150])),
            patience: ms(one_of(random, &[2000, 7000])),
            watchers: 2,
            our_client: one_of(
                &mut seed.stream("our client"),
                &[OurClient::Absent, OurClient::Careful, OurClient::Repeating],
            ),
            writes_percent: one_of(random, &[40, 60, 80]),
            unchecked_percent: one_of(random, &[0, 30, 80]),
            equal_percent: one_of(&mut seed.stream("equal claims"), &[0, 0, 40]),
            repeated_percent: one_of(&mut seed.stream("repeats"), &[0, 50, 100]),
            choices_percent: one_of(&mut seed.stream("choices"), &[0, 20, 50]),
            holds_percent: one_of(&mut seed.stream("holds"), &[0, 0, 40]),
            limits_percent: one_of(&mut seed.stream("limits"), &[0, 0, 40]),
            fault_phase: ms(random.random_range(6000..12000)),
            fault_every: ms(one_of(random, &[400, 800, 1600])),
            // All initial members are needed to form the cluster.
            minority_stays_down: random.random_bool(0.15) && !faults_from_the_start && nodes > 2,
            minority_is_cut_off: seed.stream("cut off").random_bool(0.5),
            wait: ms(one_of(random, &[200, 800, 2000, 5000])),
            spares: 0,
            two_operators: false,
            is_lost: false,
            faults_from_the_start,
            clouds: Clouds::from_seed(seed),
            knobs: NodeTuning::from_seed(seed),
            regions: None,
        };
        // A shorter wait than the longest request would never succeed.
        let wait = drawn.wait.max(2 * drawn.request());
        let members = &mut seed.stream("area members");
        let (changes, two_operators) = (members.random_bool(0.4), members.random_bool(0.5));
        // Two spares grow three voters to five; a single spare replaces a lost node.
        let (spares, two_operators) = match changes && !drawn.minority_stays_down {
            true if two_operators && !drawn.faults_from_the_start => (2, true),
            true => (u64::from(drawn.spares_a_node()), false),
            false => (0, false),
        };
        let is_lost = seed.stream("lost").random_bool(0.1);
        if is_lost && spares == 0 && !drawn.minority_stays_down && !faults_from_the_start {
            let fault_phase = drawn.fault_phase / 2;
            return Self {
                wait,
                fault_phase,
                ..drawn
            }
            .lost();
        }
        Self {
            wait,
            spares,
            two_operators,
            ..drawn
        }
    }
}
