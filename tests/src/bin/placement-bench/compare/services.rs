//! Services as they run, and how they are measured.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use placement_client::Client;
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::load::Measured;
use placement_tests::process_cost::{cpu_time, memory};

use super::super::upstream::Upstream;
use super::super::{estates, progress};
use super::alone;
use super::bare::Bare;
use super::claims::ClaimLoop;
use super::connection::Connection;
use super::etcd::{Etcd, Sharing};
use super::generator::{self, InTurn, Pace};
use super::measurement::{FULL, IN_TURN, Load, Measurement, Sample, Service, Work};
use super::request;
use super::wrk::{self, Told};

/// How long an answer of ours may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Connections that share a fixed schedule: more than are ever busy below the limit.
const SCHEDULED: usize = FULL;
const WARM_UP_S: u64 = 1;
const WARM_UP: Duration = Duration::from_millis(500);

/// How long things may take.
pub(super) struct Taking {
    /// Seconds of a figure.
    pub(super) seconds: u64,
    /// The same for upstream.
    pub(super) upstream: Duration,
    /// How long one answer of upstream's is waited for.
    pub(super) patience: Duration,
    pub(super) venv: Option<PathBuf>,
}

type Samples = BTreeMap<Measurement, Sample>;

/// A service with its cloud; gone when dropped.
pub(super) enum Running {
    Ours(Ours),
    Upstream(Box<Upstream>),
    Axum(Bare),
    Etcd(Etcd),
    /// Nothing runs but this process.
    Alone,
}

/// placementd: one node or three.
pub(super) struct Ours {
    cluster: Box<Cluster>,
    /// Who is read from.
    asked: u64,
}

/// Processor time so far.
struct Spent {
    all: Duration,
    asked: Option<Duration>,
}

impl Measurement {
    /// Whether wrk makes the load.
    pub(super) fn takes_wrk(self) -> bool {
        let loads = matches!(self.load, Load::Connections(_)) && !self.requests().is_empty();
        let loaded = matches!(
            self.service,
            Service::One | Service::Three { .. } | Service::Axum
        );
        loads && loaded
    }
}

impl Running {
    /// Starts who is measured and fills it with the cloud.
    pub(super) async fn start(
        one: Measurement,
        taking: &Taking,
        samples: &Samples,
    ) -> anyhow::Result<Self> {
        let cloud = one.cloud;
        Ok(match one.service {
            Service::One => Self::Ours(Ours::start(1, "", one).await?),
            Service::Three { randomize } => {
                let config = match randomize {
                    true => "[candidates]\nrandomize = true\n",
                    false => "",
                };
                Self::Ours(Ours::start(3, config, one).await?)
            }
            Service::Upstream => {
                let venv = (taking.venv.as_ref())
                    .context("upstream needs --venv; scripts/bench makes one")?;
                let upstream = Upstream::start(venv).await?;
                cloud.seed_names(&upstream.client()).await?;
                progress("filling upstream's database");
                upstream.put_rows(&cloud.sql())?;
                Self::Upstream(Box::new(upstream))
            }
            Service::Axum => Self::Axum(Bare::start(answer_before(one, samples)?).await?),
            Service::Etcd => Self::Etcd(Etcd::start().await?),
            Service::SerdeJson | Service::Disk => Self::Alone,
        })
    }

    /// Takes one figure.
    pub(super) async fn take(
        &mut self,
        one: Measurement,
        taking: &Taking,
        samples: &Samples,
    ) -> anyhow::Result<Sample> {
        let duration = Duration::from_secs(taking.seconds);
        match self {
            Self::Ours(ours) => ours.take(one, taking, samples).await,
            Self::Upstream(upstream) => take_upstream(upstream, one, taking).await,
            Self::Axum(bare) => {
                let servers = [bare.address()];
                wrk_on(one, &servers, WARM_UP_S).await?;
                let load = || wrk_on(one, &servers, taking.seconds);
                let spent = || Ok(Spent::of_all(bare.cpu_time()?));
                let (told, cost) = costing(spent, load).await?;
                Ok(Sample::of_wrk(&told).costing(&cost))
            }
            Self::Etcd(etcd) => take_etcd(etcd, one, duration).await,
            Self::Alone => take_alone(one, duration, samples).await,
        }
    }
}

/// The answer that another one gave to the same request.
fn answer_before(one: Measurement, samples: &Samples) -> anyhow::Result<&Bytes> {
    let needed = one.needs().context("it needs nobody")?;
    let sample = samples
        .get(&needed)
        .with_context(|| format!("{needed} was not taken"))?;
    Ok(&sample.answer)
}

impl Spent {
    fn of_all(all: Duration) -> Self {
        Self { all, asked: None }
    }

    fn since(self, before: &Self) -> Self {
        let asked = (self.asked.zip(before.asked)).map(|(now, then)| now.saturating_sub(then));
        Self {
            all: self.all.saturating_sub(before.all),
            asked,
        }
    }
}

/// What some work came to, and what processor time it took meanwhile.
async fn costing<T, Fut>(
    mut spent: impl FnMut() -> anyhow::Result<Spent>,
    work: impl FnOnce() -> Fut,
) -> anyhow::Result<(T, Spent)>
where
    Fut: Future<Output = anyhow::Result<T>>,
{
    let before = spent()?;
    let result = work().await?;
    Ok((result, spent()?.since(&before)))
}

/// Load by wrk.
async fn wrk_on(one: Measurement, servers: &[SocketAddr], seconds: u64) -> anyhow::Result<Told> {
    let Load::Connections(connections) = one.load else {
        bail!("wrk keeps no schedule");
    };
    let servers: Vec<_> = (servers.iter()).map(|at| format!("http://{at}")).collect();
    let mut headers = request::headers();
    if one.work == Work::InventoriesLocal {
        headers.push(("Placement-Consistency", "local".to_owned()));
    }
    wrk::run(&servers, connections, seconds, &headers, &one.requests()).await
}

/// Load by threads of ours, until something has happened.
async fn generate(
    one: Measurement,
    servers: &[SocketAddr],
    pace: Pace,
    timeout: Duration,
    until: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Measured> {
    let connections = match one.load {
        Load::Connections(connections) => connections,
        Load::Offered(_) | Load::PerSecond(_) => SCHEDULED,
    };
    let work: Box<dyn generator::Work> = match one.work {
        Work::ClaimLoop => Box::new(ClaimLoop),
        _ => Box::new(InTurn {
            requests: one.requests(),
            // With more connections than threads it closes some without an answer, and it gives up on
            // conflicts of its own making: that is what it does then.
            may_fail: one.service == Service::Upstream && one.work == Work::Write,
        }),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let servers = servers.to_vec();
    let stopped = stop.clone();
    let load = tokio::task::spawn_blocking(move || {
        generator::run(&servers, connections, pace, timeout, &*work, &stopped)
    });
    let ended = until.await;
    stop.store(true, Ordering::Relaxed);
    let measured = load.await.context("the load broke off")??;
    ended?;
    ensure!(!measured.latencies.is_empty(), "not one answer");
    Ok(measured)
}

async fn pass(duration: Duration) -> anyhow::Result<()> {
    tokio::time::sleep(duration).await;
    Ok(())
}

impl Ours {
    async fn start(nodes: u64, config: &str, one: Measurement) -> anyhow::Result<Self> {
        progress(&format!("starting {nodes} nodes"));
        let config = format!("{config}{COUNTED_ONLY}");
        let cluster = Cluster::start_with(nodes, &config).await?;
        let clients: Vec<Client> = cluster.clients();
        one.cloud.seed(&clients, 0..one.cloud.size).await?;
        Ok(Self {
            cluster: Box::new(cluster),
            asked: 1,
        })
    }

    fn address(&self, id: u64) -> anyhow::Result<SocketAddr> {
        Ok(self.cluster.place(id).api().parse()?)
    }

    /// Reads go to one, writes to all.
    fn servers(&self, work: Work) -> anyhow::Result<Vec<SocketAddr>> {
        match work {
            Work::Write | Work::WriteBesideSnapshots | Work::ClaimLoop => {
                let ids = self.cluster.ids();
                ids.into_iter().map(|id| self.address(id)).collect()
            }
            _ => Ok(vec![self.address(self.asked)?]),
        }
    }

    fn spent(&mut self) -> anyhow::Result<Spent> {
        let mut spent = Spent {
            all: Duration::ZERO,
            asked: None,
        };
        for id in self.cluster.ids() {
            let cpu = cpu_time(self.cluster.process(id).pid())?;
            spent.all += cpu;
            if id == self.asked {
                spent.asked = Some(cpu);
            }
        }
        Ok(spent)
    }

    async fn take(
        &mut self,
        one: Measurement,
        taking: &Taking,
        samples: &Samples,
    ) -> anyhow::Result<Sample> {
        // Whoever follows now: the leader may be another one since.
        let followers = self.cluster.followers().await?;
        self.asked = followers.first().copied().unwrap_or(1);
        if one.work == Work::Start {
            return self.start_again().await;
        }
        let servers = self.servers(one.work)?;
        if matches!(one.work, Work::Write | Work::WriteBesideSnapshots) {
            estates::boundless(&self.cluster.client(), IN_TURN.into()).await?;
        }
        let answer = first_answer(one, servers[0]).await?;
        if one.takes_wrk() {
            wrk_on(one, &servers, WARM_UP_S).await?;
        }
        let duration = Duration::from_secs(taking.seconds);
        let before = self.spent()?;
        let sample = if one.takes_wrk() {
            Sample::of_wrk(&wrk_on(one, &servers, taking.seconds).await?)
        } else {
            let pace = pace(one, samples)?;
            let measured = match one.work {
                Work::WriteBesideSnapshots => {
                    let until = snapshots(&self.cluster, duration);
                    generate(one, &servers, pace, TIMEOUT, until).await?
                }
                _ => generate(one, &servers, pace, TIMEOUT, pass(duration)).await?,
            };
            Sample::of(&measured)
        };
        let spent = self.spent()?.since(&before);
        Ok(sample.costing(&spent).answered(answer))
    }

    /// Stops the asked node and starts it again.
    async fn start_again(&mut self) -> anyhow::Result<Sample> {
        let id = self.asked;
        self.cluster.stop_node(id).await?;
        let started = Instant::now();
        self.cluster.start_node(id)?;
        self.cluster.wait_ready(id).await?;
        let took = started.elapsed();
        let pid = self.cluster.process(id).pid();
        let resident = memory(pid)?.resident as f64 / f64::from(1 << 20);
        let mut sample = Sample::of(&Measured {
            elapsed: took,
            latencies: vec![took],
            errors: 0,
            calls: 1,
        });
        sample.resident_mib = Some(resident);
        let all = cpu_time(pid)?;
        Ok(sample.costing(&Spent::of_all(all)))
    }
}

/// Snapshots one after the other for so long, and one at least.
async fn snapshots(cluster: &Cluster, duration: Duration) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut taken = 0;
    while taken == 0 || started.elapsed() < duration {
        cluster.admin_of(1).compact().await?;
        taken += 1;
    }
    progress(&format!(
        "{taken} snapshots in {:.1} s",
        started.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn scheduled(rate: f64) -> Pace {
    let warm_up = WARM_UP;
    Pace::PerSecond { rate, warm_up }
}

fn pace(one: Measurement, samples: &Samples) -> anyhow::Result<Pace> {
    Ok(match one.load {
        Load::Connections(_) => Pace::OneAfterTheOther,
        Load::PerSecond(rate) => scheduled(f64::from(rate)),
        Load::Offered(percent) => {
            let full = one.needs().and_then(|needed| samples.get(&needed));
            let full = full.with_context(|| format!("{one}: its full rate was not taken"))?;
            scheduled(full.per_second * f64::from(percent) / 100.0)
        }
    })
}

/// The answer to the first of the requests, which must be a good one; nothing if there are none.
async fn first_answer(one: Measurement, server: SocketAddr) -> anyhow::Result<Bytes> {
    let Some(request) = one.requests().into_iter().next() else {
        return Ok(Bytes::new());
    };
    let ask = move || Connection::new(server, TIMEOUT).ask(&request.bytes(server));
    let answer = tokio::task::spawn_blocking(ask).await??;
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status < 300, "answered {}: {text}", answer.status);
    let finds = !matches!(one.work, Work::Candidates(_) | Work::Devices(_));
    ensure!(
        finds || text.contains("\"resources\""),
        "no candidate: {text}"
    );
    Ok(answer.body.into())
}

async fn take_upstream(
    upstream: &Upstream,
    one: Measurement,
    taking: &Taking,
) -> anyhow::Result<Sample> {
    if one.work == Work::Write {
        estates::boundless(&upstream.client(), IN_TURN.into()).await?;
    }
    let pace = Pace::OneAfterTheOther;
    let started = Instant::now();
    let spent = || Ok(Spent::of_all(upstream.cpu_time()?));
    let until = pass(taking.upstream);
    // Each request comes to its end, and all count: with few of them in a second, those that a load
    // generator breaks off at the end would count for much.
    let servers = [upstream.address()];
    let load = || generate(one, &servers, pace, taking.patience, until);
    match costing(spent, load).await {
        Ok((measured, cost)) => Ok(Sample::of(&measured).costing(&cost)),
        Err(error) if matches!(one.work, Work::Devices(_)) => {
            progress(&format!("upstream gave up: {error:#}"));
            let passed = started.elapsed().as_secs_f64() * 1000.0;
            Ok(Sample {
                p50_ms: passed,
                p99_ms: passed,
                p999_ms: passed,
                ..Sample::default()
            })
        }
        Err(error) => Err(error),
    }
}

/// Of both ways to share connections, the one in which etcd does more.
async fn take_etcd(etcd: &Etcd, one: Measurement, duration: Duration) -> anyhow::Result<Sample> {
    let Load::Connections(clients) = one.load else {
        bail!("puts keep no schedule");
    };
    let mut best: Option<Sample> = None;
    for sharing in [Sharing::Each, Sharing::All] {
        let spent = || Ok(Spent::of_all(etcd.cpu_time()?));
        let load = || etcd.puts(clients, duration, sharing);
        let (measured, cost) = costing(spent, load).await?;
        let sample = Sample::of(&measured).costing(&cost);
        if best
            .as_ref()
            .is_none_or(|best| best.per_second < sample.per_second)
        {
            best = Some(sample);
        }
    }
    best.context("both ways were tried")
}

async fn take_alone(
    one: Measurement,
    duration: Duration,
    samples: &Samples,
) -> anyhow::Result<Sample> {
    if let Work::Sync(place) = one.work {
        let syncs = tokio::task::spawn_blocking(move || alone::syncs(place, duration));
        return Ok(Sample::of(&syncs.await??));
    }
    let answer = answer_before(one, samples)?.clone();
    let writing = tokio::task::spawn_blocking(move || alone::json_writing(&answer, duration));
    let (measured, each) = writing.await??;
    let mut sample = Sample::of(&measured);
    sample.cpu_ms = Some(each.as_secs_f64() * 1000.0);
    Ok(sample)
}

impl Sample {
    fn of(measured: &Measured) -> Self {
        let ms = |share| measured.quantile(share).as_secs_f64() * 1000.0;
        Self {
            requests: measured.calls,
            failed: measured.errors,
            per_second: measured.per_second(),
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            ended: true,
            ..Self::default()
        }
    }

    fn of_wrk(told: &Told) -> Self {
        Self {
            requests: told.requests,
            per_second: told.per_second,
            p50_ms: told.quantile_ms(0.5),
            p99_ms: told.quantile_ms(0.99),
            p999_ms: told.quantile_ms(0.999),
            ended: true,
            ..Self::default()
        }
    }

    fn costing(mut self, spent: &Spent) -> Self {
        let each = |spent: Duration| spent.as_secs_f64() * 1000.0 / self.requests as f64;
        self.cpu_of_asked_ms = spent.asked.map(each);
        self.cpu_ms = Some(each(spent.all));
        self
    }

    fn answered(mut self, answer: Bytes) -> Self {
        self.answer_bytes = answer.len();
        self.answer = answer;
        self
    }
}
