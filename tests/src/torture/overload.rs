//! Overload: far more requests than a cluster can serve, from clients that time out after two
//! seconds.

use std::fmt;
use std::time::{Duration, Instant};

use placement_client::{Claim, Client, Error};
use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use super::answers::Answers;
use super::{providers, term};
use crate::cluster::Cluster;
use crate::process_cost::Growth;

/// Timeout of a client.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause of a client after an overload answer.
const PAUSE: Duration = Duration::from_millis(100);
/// Tick of the open-loop load.
const TICK: Duration = Duration::from_millis(5);
/// Numbers of clients that are tried to find the peak.
const PEAK_AMONG: [usize; 3] = [32, 64, 128];

/// Kind of load that is raised to ten times its peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Clients that wait for each answer before the next request (closed loop).
    Clients,
    /// Writes per second, sent whatever the outcome of earlier ones (open loop).
    Rate,
}

/// Outcome of an overload.
#[derive(Debug)]
pub struct Overload {
    /// Kind of the load.
    pub load: Load,
    /// Number of clients at the peak.
    pub clients: usize,
    /// Answered writes per second at the peak, before and after.
    pub peak: f64,
    /// Writes per second that were answered in time under ten times the load.
    pub goodput: f64,
    /// Writes per second that were sent under ten times the load.
    pub offered: f64,
    /// Answers to the writes that were not applied.
    pub answers: Answers,
    /// The largest memory growth of a node above its peak-load memory, in bytes.
    pub memory: u64,
    /// Whether there was an election.
    pub election: bool,
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} clients: {:.0} writes/s; {}: {:.0} of {:.0} requests/s, {:.0} % of the peak; {} MiB \
             more{}; answers: {}",
            self.clients,
            self.peak,
            match self.load {
                Load::Clients => "ten times the clients",
                Load::Rate => "ten times the request rate",
            },
            self.goodput,
            self.offered,
            100.0 * self.goodput / self.peak,
            self.memory / (1024 * 1024),
            if self.election { ", an election" } else { "" },
            self.answers
        )
    }
}

/// Finds the peak, then applies ten times the load; each load lasts `each`.
pub async fn overload(
    cluster: &mut Cluster,
    load: Load,
    each: Duration,
) -> anyhow::Result<Overload> {
    let providers = providers(cluster).await?;
    let writers = |count: usize| {
        let nodes = cluster.clients().into_iter().cycle();
        let writers = nodes.zip(providers.iter().copied().cycle()).take(count);
        writers.map(Writer::new).collect::<Vec<_>>()
    };
    let mut best = (0, 0.0);
    for clients in PEAK_AMONG {
        let score = in_turn(writers(clients), each).await;
        if score.answered > best.1 {
            best = (clients, score.answered);
        }
    }
    let (clients, peak_before) = best;
    let (many, few) = (writers(10 * clients), writers(clients));
    let ids = cluster.ids().into_iter();
    let pids: Vec<_> = ids.map(|id| cluster.process(id).pid()).collect();
    let growth = Growth::start(pids)?;
    let term_before = term(cluster).await?;
    let score = match load {
        Load::Clients => in_turn(many, each).await,
        Load::Rate => at_a_rate(&many, 10.0 * peak_before, each).await,
    };
    let memory = growth.most()?;
    // The machine may have become slower or faster in the meantime.
    let peak_after = in_turn(few, each).await.answered;
    Ok(Overload {
        load,
        clients,
        peak: f64::midpoint(peak_before, peak_after),
        goodput: score.answered,
        offered: score.offered,
        answers: score.answers,
        memory,
        election: term(cluster).await? != term_before,
    })
}

/// Result of one load.
struct Score {
    /// Answered writes per second.
    answered: f64,
    /// Sent writes per second.
    offered: f64,
    answers: Answers,
}

/// Counts writes that were applied.
const CARRIED_OUT: &str = "applied";

impl Score {
    fn new(mut answers: Answers, elapsed: Duration) -> Self {
        let all: u64 = answers.0.values().sum();
        let answered = answers.0.remove(CARRIED_OUT).unwrap_or_default();
        Self {
            answered: answered as f64 / elapsed.as_secs_f64(),
            offered: all as f64 / elapsed.as_secs_f64(),
            answers,
        }
    }
}

/// A client that writes to one node.
#[derive(Clone)]
struct Writer {
    client: Client,
    provider: Uuid,
}

impl Writer {
    fn new((client, provider): (Client, Uuid)) -> Self {
        let client = client.with_attempt_timeout(PATIENCE);
        Self {
            client: client.with_patience(Duration::ZERO),
            provider,
        }
    }

    /// Writes once; returns the kind of outcome.
    async fn write(&self) -> &'static str {
        let claim = Claim::by("project", "user").and(self.provider, &[("VCPU", 1)]);
        match self.client.put_allocations(Uuid::new_v4(), &claim).await {
            Ok(()) => CARRIED_OUT,
            Err(Error::OutcomeUnknown { .. }) => "no answer in time, or an unknown outcome",
            Err(Error::NothingCommitted { .. }) => "503, retry",
            Err(_) => "other error",
        }
    }
}

/// Closed loop: each client writes again once it has its answer.
async fn in_turn(writers: Vec<Writer>, each: Duration) -> Score {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in writers {
        tasks.spawn(async move {
            let mut answers = Answers::default();
            while begun.elapsed() < each {
                let how = writer.write().await;
                answers.note(how);
                if how != CARRIED_OUT {
                    sleep(PAUSE).await;
                }
            }
            answers
        });
    }
    let answers = Answers::sum(tasks).await;
    Score::new(answers, begun.elapsed())
}

/// Open loop: the clients take turns to send `per_second` writes per second.
async fn at_a_rate(writers: &[Writer], per_second: f64, each: Duration) -> Score {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    let mut due = writers.iter().cycle();
    let mut sent = 0.0;
    let mut answers = Answers::default();
    while begun.elapsed() < each {
        while sent < per_second * begun.elapsed().as_secs_f64() {
            let writer = due.next().expect("there are writers").clone();
            tasks.spawn(async move { writer.write().await });
            sent += 1.0;
        }
        sleep(TICK).await;
        while let Some(one) = tasks.try_join_next() {
            answers.note(one.expect("a client does not panic"));
        }
    }
    let elapsed = begun.elapsed();
    while let Some(one) = tasks.join_next().await {
        answers.note(one.expect("a client does not panic"));
    }
    Score::new(answers, elapsed)
}
