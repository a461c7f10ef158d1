//! What one run is made of. Every choice follows from the seed, so that the seeds together cover
//! what no single set of choices would.

use std::time::Duration;

use placement_node::Config;
use rand::Rng;
use rand::seq::IndexedRandom;

use crate::seed::Seed;

/// Elections that may fail in a row.
const ELECTIONS: u32 = 10;
/// Requests of the first client until the storm may begin.
const SET_UP_REQUESTS: u32 = 20;
/// Requests that a client may need after the storm until enough of them were writes.
const CALM_REQUESTS: u32 = 50;

/// The choices of one run.
#[derive(Debug, Clone)]
pub struct Parameters {
    /// The seed they follow from.
    pub seed: Seed,
    /// Nodes in the cluster, all of them voters.
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
    /// A snapshot is taken after this many log entries.
    pub snapshot_every: u64,
    /// Log entries that a snapshot leaves in the log.
    pub keep_in_log: u64,
    /// Clients.
    pub clients: usize,
    /// Providers that exist before the storm.
    pub providers: usize,
    /// Units per provider before the storm.
    pub total: u32,
    /// Consumers that contend for them.
    pub consumers: usize,
    /// Longest pause of a client between two requests.
    pub pause_max: Duration,
    /// How long a client waits for an answer.
    pub patience: Duration,
    /// Writes among 100 requests.
    pub writes_percent: u32,
    /// Writes of 100 that check no consumer generation.
    pub unchecked_percent: u32,
    /// How long faults go on.
    pub storm: Duration,
    /// Mean time between two faults.
    pub fault_every: Duration,
    /// Whether one node stays away until the calm is over.
    pub minority_stays_down: bool,
    /// How long a node waits for a leader or a quorum before it answers 503.
    pub wait: Duration,
}

/// How long things may take once nothing fails, in simulated time.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Until the cluster has formed and the first providers are there.
    pub set_up: Duration,
    /// From the end of the storm until every client got its writes through; also until all nodes
    /// have applied the same, and until a node that comes back has.
    pub calm: Duration,
}

impl Parameters {
    /// The bounds that follow from the choices.
    ///
    /// After the storm a client may first have to lose patience with a connection that lost a
    /// packet; so may a node (`silence_ms`), before it can even ask for votes; several elections
    /// may fail; and then the client needs some tens of requests, as it chooses writes at random.
    pub fn bounds(&self) -> Bounds {
        let elections = ELECTIONS * self.election * 2;
        let node = elections + self.silence();
        Bounds {
            set_up: node + SET_UP_REQUESTS * self.request(),
            calm: node + 2 * self.patience + CALM_REQUESTS * (self.pause_max + self.request()),
        }
    }

    /// How long reading everything may take, so many questions of each node, one after the other.
    pub fn scan_max(&self, questions: usize) -> Duration {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.bounds().calm + 2 * questions * self.request()
    }

    /// Slowest that a request is answered while nothing fails: connect, forward to the leader,
    /// replicate, each there and back, and some syncs.
    fn request(&self) -> Duration {
        8 * (self.latency_max + self.tick) + 4 * self.sync_max
    }

    /// How long a node believes in a connection that says nothing.
    fn silence(&self) -> Duration {
        Duration::from_millis(Config::default().peer.silence_ms)
    }
    /// The choices that follow from `seed`.
    pub fn from_seed(seed: Seed) -> Self {
        let random = &mut seed.stream("parameters");
        let ms = Duration::from_millis;
        let nodes = if random.random_bool(0.15) { 5 } else { 3 };
        let heartbeat = ms(*[50, 100, 150].choose(random).expect("not empty"));
        let latency_max = ms(*[2, 5, 10, 30].choose(random).expect("not empty"));
        let sync_max = ms(*[1, 5, 20, 60, 250].choose(random).expect("not empty"));
        Self {
            seed,
            nodes,
            tick: ms(1),
            latency_min: Duration::from_micros(200),
            latency_max,
            sync_min: Duration::from_micros(100),
            sync_max,
            skews: (0..nodes)
                .map(|_| ms(random.random_range(0..4000)))
                .collect(),
            heartbeat,
            election: heartbeat * random.random_range(3..=5),
            snapshot_every: *[15, 40, 100, 1000].choose(random).expect("not empty"),
            keep_in_log: *[0, 5, 50].choose(random).expect("not empty"),
            clients: random.random_range(2..=5),
            providers: random.random_range(1..=3),
            total: random.random_range(2..=8),
            consumers: random.random_range(2..=6),
            pause_max: ms(*[10, 50, 150].choose(random).expect("not empty")),
            patience: ms(*[2000, 7000].choose(random).expect("not empty")),
            writes_percent: *[40, 60, 80].choose(random).expect("not empty"),
            unchecked_percent: *[0, 30, 80].choose(random).expect("not empty"),
            storm: ms(random.random_range(6000..12000)),
            fault_every: ms(*[400, 800, 1600].choose(random).expect("not empty")),
            minority_stays_down: random.random_bool(0.15),
            wait: ms(*[800, 2000, 5000].choose(random).expect("not empty")),
        }
    }
}
