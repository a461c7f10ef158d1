//! What one run is made of. Every choice follows from the seed, so that the seeds together cover
//! what no single set of choices would.

use std::time::Duration;

use placement_machine::Lateness;
use placement_model::types::PartitionId;
use placement_node::Config;
use placement_raft_store::runtime::Limits;
use rand::Rng;

use crate::choice::one_of;
use crate::regions::Regions;
use crate::seed::Seed;
use crate::workload::Choices;

/// Complaints about what the neighbour's clients saw say so.
pub(crate) const IN_THE_NEIGHBOUR: &str = "in the partition of the neighbour";

/// Elections that may fail in a row.
const ELECTIONS: u32 = 10;
/// Requests of the first client until the fault phase may begin.
const SET_UP_REQUESTS: u32 = 30;
/// Requests that a client may need after the fault phase until enough of them were writes.
const RECOVERY_REQUESTS: u32 = 50;

/// How many voters a cluster is formed of.
const VOTERS: [u64; 14] = [1, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 5];

/// How long an operator waits for answers that are lost.
const OPERATOR: Duration = Duration::from_secs(60);
/// Messages with entries that a node may have to take, one after the other, until it has caught up.
const CATCH_UP_MESSAGES: u32 = 50;

/// The choices of one run.
#[derive(Debug, Clone)]
pub struct Parameters {
    /// The seed they follow from.
    pub seed: Seed,
    /// Nodes that form the cluster, all of them voters.
    pub nodes: u64,
    /// Simulated time per step.
    pub tick: Duration,
    /// Fastest a message gets through.
    pub latency_min: Duration,
    /// Slowest a message gets through, faults aside.
    pub latency_max: Duration,
    /// Fastest a sync of the log ends.
    pub sync_min: Duration,
    /// Slowest a sync of the log ends, faults aside.
    pub sync_max: Duration,
    /// How far each node's wall clock is ahead of simulated time.
    pub skews: Vec<Duration>,
    /// Heartbeat interval.
    pub heartbeat: Duration,
    /// Shortest election timeout; the longest is twice as long.
    pub election: Duration,
    /// The log is cut after this many entries.
    pub snapshot_every: u64,
    /// Log entries that a snapshot leaves in the log.
    pub keep_in_log: u64,
    /// Clients.
    pub clients: usize,
    /// Providers that exist before the fault phase.
    pub providers: usize,
    /// Units per provider before the fault phase.
    pub total: u32,
    /// Consumers that contend for them.
    pub consumers: usize,
    /// Longest pause of a client between two requests.
    pub pause_max: Duration,
    /// How long a client waits for an answer.
    pub patience: Duration,
    /// Those who follow what is changed, from node to node.
    pub watchers: usize,
    /// Whether one of the clients is our own.
    pub our_client: OurClient,
    /// Writes among 100 requests.
    pub writes_percent: u32,
    /// Writes of 100 that check no consumer generation.
    pub unchecked_percent: u32,
    /// How long faults go on.
    pub fault_phase: Duration,
    /// Mean time between two faults.
    pub fault_every: Duration,
    /// Whether a minority stays away until the recovery phase is over.
    pub minority_stays_down: bool,
    /// Whether it is cut off from all others then, and not without power.
    pub minority_is_cut_off: bool,
    /// How long a node waits for a leader or a quorum before it answers 503.
    pub wait: Duration,
    /// Machines that wait until they are added to the cluster.
    pub spares: u64,
    /// Whether two operators change the cluster at the same time, and no node is lost.
    pub two_operators: bool,
    /// Whether all nodes are lost in the middle of the run, and the cluster is restored from a
    /// backup.
    pub is_lost: bool,
    /// Whether the fault phase begins with the first step, before the cluster has formed.
    pub faults_from_the_start: bool,
    /// Whose clouds are in the cluster.
    pub clouds: Clouds,
    /// Sizes and times of the nodes that rarely matter, unless they are small.
    pub knobs: Knobs,
    /// Where the machines stand; `None`: all in one place.
    pub regions: Option<Regions>,
}

/// Whose clouds are in a cluster: each in a partition, all over the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clouds {
    /// That of the clients, and no other.
    Alone,
    /// That of the clients in the default partition, and a neighbour's in a second one.
    First,
    /// That of the clients in a second partition, and a neighbour's in the default one.
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

    /// The partition of the neighbour, if there is one. No other is made before these.
    pub fn neighbour(self) -> Option<PartitionId> {
        match self {
            Self::Alone => None,
            Self::First => Some(PartitionId(1)),
            Self::Second => Some(PartitionId::DEFAULT),
        }
    }

    /// The partition of the clients.
    pub fn partition(self) -> PartitionId {
        match self {
            Self::Second => PartitionId(1),
            Self::Alone | Self::First => PartitionId::DEFAULT,
        }
    }
}

/// Whether our own client is among those of a run, and how it treats what may have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OurClient {
    /// It is not there.
    Absent,
    /// It tells that the outcome of a write is not known.
    Careful,
    /// It sends the write again.
    Repeating,
}

/// Settings of the nodes that are drawn smaller than anybody would set them.
#[derive(Debug, Clone)]
pub struct Knobs {
    /// Bytes of log entries in one message.
    pub append_bytes: usize,
    /// Log entries in one message.
    pub append_entries: u64,
    /// Bytes of a snapshot in one message.
    pub chunk_bytes: usize,
    /// How often an idle node asks how far it should be; zero: never.
    pub probe: Duration,
    /// How long a connection may say nothing.
    pub silence: Duration,
    /// How long a call to the disk may take before the node ends, and ten times as long as costs a
    /// leader the leadership; zero: without end.
    pub hung_after: Duration,
    /// Bytes of log entries in memory.
    pub log_cache_bytes: usize,
    /// Changes of rows that are applied before they are written.
    pub rows_behind: usize,
    /// Bytes of what was changed that are kept in memory before they are written.
    pub ledger_behind: usize,
    /// Bytes that a node keeps of what was changed.
    pub ledger_bytes: u64,
    /// Sizes that the product has as constants.
    pub limits: Limits,
    /// How late threads come to their work.
    pub lateness: Lateness,
}

impl Default for Knobs {
    /// As the product has them, but that entries are read from the disk too.
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
            lateness: Lateness::default(),
        }
    }
}

impl Knobs {
    /// The choices that follow from `seed`.
    pub fn from_seed(seed: Seed) -> Self {
        let random = &mut seed.stream("knobs");
        let ms = Duration::from_millis;
        Self {
            append_bytes: one_of(random, &[1 << 10, 16 << 10, 4 << 20]),
            append_entries: one_of(random, &[3, 50, 1000]),
            chunk_bytes: one_of(random, &[1 << 10, 16 << 10, 1 << 20]),
            probe: ms(one_of(random, &[0, 200, 1000])),
            silence: ms(one_of(random, &[400, 1000, 2000])),
            // Longer than any fault, as a process that is ended here is the simulation's own.
            hung_after: ms(one_of(random, &[0, 30_000])),
            log_cache_bytes: one_of(random, &[0, 4 << 10, 1 << 20]),
            rows_behind: one_of(random, &[1, 50, 16_384]),
            ledger_behind: one_of(&mut seed.stream("ledger-behind"), &[1, 1 << 10, 8 << 20]),
            ledger_bytes: one_of(&mut seed.stream("ledger"), &[0, 2 << 10, 16 << 10, 1 << 20]),
            limits: limits(seed),
            lateness: Lateness::default(),
        }
    }
}

/// In half of the runs each is small enough for the few rows that there are, or what the product
/// has.
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

/// How long things may take once nothing fails, in simulated time.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Until the cluster has formed and the first providers are there.
    pub set_up: Duration,
    /// From the end of the fault phase until every client got its writes through; also until all
    /// nodes have applied the same, and until a node that comes back has.
    pub recovery: Duration,
    /// From the end of the fault phase until the cluster has the members that were ordered: one try
    /// may still wait for an answer that does not come.
    pub changes: Duration,
}

impl Parameters {
    /// What the clients are given to choose from.
    pub fn choices(&self) -> Choices {
        Choices {
            seed: self.seed,
            providers: self.providers,
            consumers: self.consumers,
            unchecked_percent: self.unchecked_percent,
        }
    }

    /// Clients of the neighbour.
    pub(crate) fn neighbours(&self) -> usize {
        self.clouds.neighbour().map_or(0, |_| 2)
    }

    /// The bounds that follow from the choices.
    ///
    /// After the fault phase a client may first have to lose patience with a connection that lost a
    /// packet; so may a node (`silence_ms`), before it can even ask for votes; several elections
    /// may fail; and then the client needs some tens of requests, as it chooses writes at random.
    pub fn bounds(&self) -> Bounds {
        let elections = ELECTIONS * self.election * 2;
        let node = elections + self.knobs.silence + CATCH_UP_MESSAGES * self.request();
        // What faults took from the forming comes back with the first recovery phase.
        let fault_phase = match self.faults_from_the_start {
            true => self.fault_phase,
            false => Duration::ZERO,
        };
        let recovery =
            node + 2 * self.patience + RECOVERY_REQUESTS * (self.pause_max + self.request());
        Bounds {
            set_up: node + fault_phase + 2 * self.patience + SET_UP_REQUESTS * self.request(),
            recovery,
            changes: 2 * recovery + OPERATOR,
        }
    }

    /// How long after the fault phase a connection that it left dumb may go unnoticed. If it was
    /// the leader's, who is asked for nothing else by then, another node is elected.
    pub fn settling(&self) -> Duration {
        self.knobs.silence * 5 / 4 + 2 * self.election * 2
    }

    /// How long reading everything may take, so many questions of each node, one after the other.
    pub fn scan_max(&self, questions: usize) -> Duration {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.bounds().recovery + 2 * questions * self.request()
    }

    /// Slowest that a request is answered while nothing fails: connect, forward to the leader,
    /// replicate, each there and back, and some syncs.
    pub(crate) fn request(&self) -> Duration {
        let farthest = self.regions.as_ref().map(Regions::farthest);
        let way = self.latency_max + farthest.unwrap_or_default() / 2;
        8 * (way + self.tick) + 4 * self.sync_max
    }

    /// Learners that stay learners.
    pub fn learners(&self) -> u64 {
        self.regions.as_ref().map_or(0, |regions| regions.learners)
    }

    /// All machines for nodes: those that form the cluster, learners, and spares.
    pub fn machines(&self) -> u64 {
        self.nodes + self.learners() + self.spares
    }

    /// Whether one node may be lost for good: all others come back.
    pub fn spares_a_node(&self) -> bool {
        !self.minority_stays_down && !self.faults_from_the_start && self.nodes > 2
    }

    /// The same run, but that the cluster is lost in the middle of it. A machine waits with a token
    /// of it.
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

    /// The choices that follow from `seed`, in one place (`places.rs`).
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
            // Of all that a run costs, steps cost most.
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
            fault_phase: ms(random.random_range(6000..12000)),
            fault_every: ms(one_of(random, &[400, 800, 1600])),
            // All initial members have to be there until the cluster has formed.
            minority_stays_down: random.random_bool(0.15) && !faults_from_the_start && nodes > 2,
            minority_is_cut_off: seed.stream("cut off").random_bool(0.5),
            wait: ms(one_of(random, &[200, 800, 2000, 5000])),
            spares: 0,
            two_operators: false,
            is_lost: false,
            faults_from_the_start,
            clouds: Clouds::from_seed(seed),
            knobs: Knobs::from_seed(seed),
            regions: None,
        };
        // Who waits less than a request takes is never answered.
        let wait = drawn.wait.max(2 * drawn.request());
        let members = &mut seed.stream("area members");
        let (changes, two_operators) = (members.random_bool(0.4), members.random_bool(0.5));
        // Two grow three voters to five; one is put in the place of a node that is lost.
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
