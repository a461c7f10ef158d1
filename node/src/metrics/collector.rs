//! Collects the metrics of HTTP, Raft, the store, the model and the process for one scrape.

use std::collections::BTreeSet;
use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openraft::ServerState;
use placement_base::{runtime, world};
use placement_model::cluster::Cluster;
use placement_model::query::capacity::CapacitySums;
use placement_model::query::holds::HoldCounts;
use placement_model::state::Sizes;
use placement_model::types::Timestamp;
use placement_raft_store::{DatabaseNumbers, LogId, StoreMetrics, Views};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelValue, EncodeMetric,
    MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::catalog::*;
use super::holdings::{self, Holdings, Rows};
use super::http::HttpMetrics;
use super::outlook::Outlook;
use super::{exposition, process, providers};
use crate::health::{HealthChecks, SOON};
use crate::partitions::Partitions;
use crate::recent::Recent;
use crate::version::VERSION;
use placement_api::http::{ClaimCounts, LimitCounts};
use placement_api::keystone::Keystone;
use placement_audit::Numbers;
use placement_cluster::leadership::{round_trips, slow_followers};
use placement_cluster::replica::{Replica, index};
use placement_cluster::{ReadMetrics, Running};
use placement_peer::tls::Certificates;
use placement_policy::Policy;
use placement_raft_store::disk_space::DiskSpace;

/// Maximum age of the inventory metrics, if the state has changed since.
const COUNT_AGE_MAX: Duration = Duration::from_secs(5);

/// Upper bounds of the buckets of [`CLAIM_CHOICE`].
const CHOICE_BOUNDS: [u32; 5] = [0, 1, 3, 7, 15];

/// Sources of the metrics of one node.
pub(crate) struct Sources {
    pub(crate) started: SystemTime,
    pub(crate) checks: HealthChecks,
    pub(crate) reads: Arc<ReadMetrics>,
    /// The policies in force, of all partitions.
    pub(crate) policies: Vec<Arc<Policy>>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) audit: Arc<Numbers>,
    pub(crate) keystone: Option<Arc<Keystone>>,
    pub(crate) certificates: Vec<(&'static str, Arc<Certificates>)>,
}

/// All metrics of one node.
pub(crate) struct Metrics {
    sources: Sources,
    pub(crate) http: HttpMetrics,
    disk: Recent<Disk>,
    /// The inventory metrics, with the last entry of the counted state.
    holdings: Recent<(Option<u64>, Arc<Holdings>)>,
    fits: Recent<Arc<Outlook>>,
    trees: Recent<Arc<Outlook>>,
}

/// Values from the disk, which may hang.
#[derive(Clone, Copy)]
pub(crate) struct Disk {
    pub(crate) space: DiskSpace,
    /// Numbers of the log's and the state's database.
    databases: Option<[DatabaseNumbers; 2]>,
}

impl Metrics {
    pub(crate) fn new(sources: Sources) -> Self {
        let tasks = &sources.checks.tasks;
        Self {
            http: HttpMetrics::new(),
            disk: Recent::new(tasks),
            holdings: Recent::new(tasks),
            fits: Recent::new(tasks),
            trees: Recent::new(tasks),
            sources,
        }
    }

    /// When the certificate of each listener or its authority expires, in seconds since 1970.
    pub(crate) fn certificate_ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let shown = self.sources.certificates.iter();
        shown.filter_map(|(listener, shown)| {
            let end = shown.end()?.duration_since(UNIX_EPOCH).ok()?;
            Some((*listener, end.as_secs()))
        })
    }

    /// The problems of the listeners' certificates, each once: several listeners may share files.
    pub(crate) fn certificate_problem(&self, now: SystemTime) -> Option<String> {
        let shown = self.sources.certificates.iter();
        let problems: BTreeSet<String> = shown.filter_map(|(_, one)| one.problem(now)).collect();
        let problems: Vec<String> = problems.into_iter().collect();
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    /// When the certificate that other nodes see expired, in RFC 3339, if it has.
    pub(crate) fn peer_certificate_expired(&self, now: SystemTime) -> Option<String> {
        let mut shown = self.sources.certificates.iter();
        let (_, peer) = shown.find(|(listener, _)| *listener == "peer")?;
        peer.expired(now)
    }

    /// The values from the disk. If reading takes longer than `patience`, the previous values.
    pub(crate) async fn disk(&self, patience: Duration) -> Option<Disk> {
        let HealthChecks { slot, config, .. } = &self.sources.checks;
        let (dir, running) = (config.data_dir.clone(), slot.get());
        let store = running.map(|running| running.store_metrics.clone());
        let read = runtime::blocking(move || Disk {
            space: DiskSpace::measure(&dir),
            databases: store.map(|store| [store.log(), store.state()]),
        });
        self.disk.get(|_, _| false, patience, read).await
    }

    async fn holdings(&self, views: &Views) -> Option<Arc<Holdings>> {
        let (index, views) = (views.applied_index(), views.clone());
        let is_fresh = |age, (of, _): &(Option<u64>, _)| *of == index || age < COUNT_AGE_MAX;
        let count = runtime::blocking(move || {
            let applied = views.current();
            (
                applied.index(),
                Arc::new(Holdings::from_cluster(&applied.cluster)),
            )
        });
        let (_, holdings) = self.holdings.get(is_fresh, SOON, count).await?;
        Some(holdings)
    }

    /// The metric that shows how often the named queries fit in a partition, for
    /// `/metrics/providers`; empty without named queries, and until they are counted.
    pub(crate) async fn free_by_flavor(&self, partition: &str) -> String {
        let running = self.sources.checks.slot.get();
        let fits = async { self.fits(&running.as_ref()?.replica).await };
        fits.await.map_or_else(String::new, |fits| {
            let rows = fits.rows.iter().filter(|([of, _], _)| of == partition);
            providers::free_by_flavor(rows.map(|([_, name], count)| (name.as_str(), *count)))
        })
    }

    /// How often the named queries fit; `None` without named queries.
    async fn fits(&self, replica: &Replica) -> Option<Arc<Outlook>> {
        let sections = &self.sources.partitions.default().api().settings.fits;
        if sections.is_empty() {
            return None;
        }
        let sections = sections.clone();
        let count = move |cluster: &Cluster| Outlook::of_fits(cluster, &sections);
        self.outlook(&self.fits, replica, count).await
    }

    async fn outlook(
        &self,
        known: &Recent<Arc<Outlook>>,
        replica: &Replica,
        count: impl FnOnce(&Cluster) -> Outlook + Send + 'static,
    ) -> Option<Arc<Outlook>> {
        let offload = self.sources.partitions.default().api().offload.clone();
        let views = replica.views.clone();
        let count = async move {
            let count = move || count(&views.current().cluster);
            let counted = world::compute(|work| offload.run_idly(work), count).await;
            Arc::new(counted.unwrap_or_default())
        };
        let is_fresh = |age, outlook: &Arc<Outlook>| outlook.is_fresh(age);
        known.get(is_fresh, SOON, count).await
    }

    /// The outlook of the leader: how often the named queries fit, and trees by what their loss
    /// would mean.
    async fn leaders_outlook(&self, running: Option<&Running>) -> [Option<Arc<Outlook>>; 2] {
        let replica = running.map(|running| &running.replica);
        let leads = |replica: &&Replica| replica.raft_status().state == ServerState::Leader;
        let Some(replica) = replica.map(|replica| &**replica).filter(leads) else {
            return [None, None];
        };
        let trees = self.outlook(&self.trees, replica, Outlook::of_trees);
        tokio::join!(self.fits(replica), trees).into()
    }

    /// The current metrics; slow values are those of the previous scrape.
    pub(crate) async fn encode(self: &Arc<Self>) -> String {
        let running = self.sources.checks.slot.get();
        let holdings = async { self.holdings(&running.as_ref()?.replica.views).await };
        let outlook = self.leaders_outlook(running.as_deref());
        let ready = self.sources.checks.is_ready();
        let (ready, disk, holdings, outlook) =
            tokio::join!(ready, self.disk(SOON), holdings, outlook);
        let mut registry = Registry::default();
        let metrics = self.clone();
        registry.register_collector(Box::new(Scrape {
            metrics,
            running,
            ready,
            disk,
            holdings,
            outlook,
        }));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .expect("writing to a string does not fail");
        exposition::from_openmetrics(&text)
    }
}

/// One response to `/metrics`.
struct Scrape {
    metrics: Arc<Metrics>,
    running: Option<Arc<Running>>,
    ready: bool,
    disk: Option<Disk>,
    holdings: Option<Arc<Holdings>>,
    outlook: [Option<Arc<Outlook>>; 2],
}

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scrape")
    }
}

impl Sources {
    /// The node's name in the cluster; empty until the node has joined one.
    fn name(&self) -> String {
        let known = self.checks.slot.get().and_then(|running| {
            let me = running.replica.me;
            Some(running.replica.member(me)?.name_of(me))
        });
        known.map_or(String::new(), |name| name.to_string())
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = MetricsEncoder { encoder };
        out.put(&READY, u64::from(self.ready))?;
        out.process_metrics(&self.metrics)?;
        out.put(&MEMBER, u64::from(self.running.is_some()))?;
        if let Some(running) = &self.running {
            let clock = &self.metrics.sources.partitions.default().api().clock;
            out.member_metrics(running, world::micros(clock.now()))?;
        }
        if let Some(disk) = &self.disk {
            out.disk(disk)?;
        }
        if let Some(holdings) = &self.holdings {
            out.holdings(holdings)?;
        }
        for (metric, outlook) in [&FITS, &REFUGE_TREES].into_iter().zip(&self.outlook) {
            if let Some(outlook) = outlook {
                out.put_rows(metric, &outlook.rows, |count| *count as f64)?;
            }
        }
        for (metric, value) in process::read() {
            if let Some(value) = value {
                out.put(metric, value)?;
            }
        }
        Ok(())
    }
}

struct MetricsEncoder<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl MetricsEncoder<'_> {
    fn begin(&mut self, metric: &Metric) -> Result<MetricEncoder<'_>, Error> {
        self.encoder
            .encode_descriptor(metric.base, metric.help, metric.unit, metric.kind)
    }

    fn put<V>(&mut self, metric: &Metric, value: V) -> Result<(), Error>
    where
        V: EncodeGaugeValue + EncodeCounterValue,
    {
        write_value(&mut self.begin(metric)?, metric, &value)
    }

    fn put_all<const N: usize>(&mut self, values: [(&Metric, u64); N]) -> Result<(), Error> {
        let mut values = values.into_iter();
        values.try_for_each(|(metric, value)| self.put(metric, value))
    }

    /// Writes a metric whose counter is updated where the event happens.
    fn put_counted(&mut self, metric: &Metric, counted: &impl EncodeMetric) -> Result<(), Error> {
        counted.encode(self.begin(metric)?)
    }

    /// Writes one series for each value of the metric's label.
    fn put_each<L, V>(
        &mut self,
        metric: &Metric,
        series: impl IntoIterator<Item = (L, V)>,
    ) -> Result<(), Error>
    where
        L: EncodeLabelValue,
        V: EncodeGaugeValue + EncodeCounterValue,
    {
        let [label] = metric.labels else {
            panic!("{metric:?} must have exactly one label in the catalog");
        };
        let mut encoder = self.begin(metric)?;
        for (value_of_label, value) in series {
            let labels = [(*label, value_of_label)];
            write_value(&mut encoder.encode_family(&labels)?, metric, &value)?;
        }
        Ok(())
    }

    /// Metrics of every node, in a cluster or not.
    fn process_metrics(&mut self, metrics: &Metrics) -> Result<(), Error> {
        let Metrics { sources, http, .. } = metrics;
        let counts = sources.partitions.counts();
        let [refused, searches, empty] = counts.sums;
        self.put_each(&BUILD_INFO, [(VERSION, 1u64)])?;
        let site = sources.checks.config.node.site();
        self.begin(&SITE)?
            .encode_family(&[
                ("region", site.region.as_str()),
                ("zone", site.zone.as_str()),
                ("name", sources.name().as_str()),
            ])?
            .encode_gauge(&1u64)?;
        self.put_counted(&HTTP_REQUEST_DURATION, &http.requests)?;
        self.put_counted(&HTTP_CONNECTIONS, &http.connections)?;
        self.put_counted(&HTTP_IN_FLIGHT, &http.in_flight)?;
        self.put_counted(&UNAVAILABLE, &http.unavailable)?;
        self.put_counted(&WRITE_REFUSALS, &http.conflicts)?;
        self.put_each(&PARTITION_REQUESTS, counts.requests)?;
        let drained = sources.checks.slot.leaving.is_drained();
        self.put(&DRAINED, u64::from(drained))?;
        let reads = &sources.reads;
        let seconds = now(&reads.micros) as f64 / 1e6;
        self.put(&READ_ROUNDS, now(&reads.rounds))?;
        self.put(&READ_ROUNDS_FAILED, now(&reads.failures))?;
        self.put(&READ_ROUNDS_DURATION, seconds)?;
        self.put(&READS_LINEARIZED, now(&reads.reads))?;
        self.put_each(&HTTP_CALLERS_REFUSED, refused)?;
        self.put_each(&SEARCHES, searches)?;
        self.put_each(&SEARCHES_EMPTY, empty)?;
        self.put(&SEARCHES_WAITING, counts.searches_waiting)?;
        self.claims(counts.claims)?;
        self.limits(counts.limits)?;
        let streams = sources.partitions.default().event_streams();
        self.put(&EVENT_STREAMS, streams as u64)?;
        let results = Keystone::results(sources.keystone.as_deref());
        self.put_each(&KEYSTONE_REQUESTS, results)?;
        let waiting = sources.keystone.as_ref().map_or(0, |it| it.waiting());
        self.put(&KEYSTONE_WAITING, waiting)?;
        let policies = sources.policies.iter();
        let refused = policies.clone().any(|policy| policy.is_refused());
        let mistakes: usize = policies.map(|policy| policy.mistakes().len()).sum();
        let audit = &sources.audit;
        self.put_all([
            (&POLICY_REFUSED, u64::from(refused)),
            (&POLICY_MISTAKES, mistakes as u64),
            (&LOG_LINES_DROPPED, crate::logging::dropped_lines()),
            (&TRACE_SPANS_DROPPED, now(&crate::traces::DROPPED)),
            (&AUDIT_RECORDS, now(&audit.records)),
            (&AUDIT_WRITTEN, now(&audit.bytes)),
            (&AUDIT_RECORDS_LOST, now(&audit.lost)),
            (&AUDIT_FAILED, audit.failed.load(Ordering::Relaxed).into()),
        ])?;
        self.put_counted(&AUDIT_SYNC_DURATION, &audit.sync)?;
        let started = sources
            .started
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64();
        self.put(&PROCESS_START, started)?;
        self.put_each(&CERTIFICATE_END, metrics.certificate_ends())
    }

    fn claims(&mut self, claims: ClaimCounts) -> Result<(), Error> {
        self.put_each(&CLAIMS, claims.outcomes)?;
        self.put_each(&CLAIMS_OVER_CEILING, claims.over_ceiling)?;
        let choices = (0_u32..).zip(claims.choices);
        let sum = choices
            .clone()
            .map(|(choice, count)| f64::from(choice) * count as f64);
        let count = claims.choices.iter().sum();
        let mut buckets: Vec<_> = CHOICE_BOUNDS.map(|bound| (f64::from(bound), 0)).into();
        buckets.push((f64::INFINITY, 0));
        for (choice, count) in choices {
            let bucket = CHOICE_BOUNDS.partition_point(|bound| *bound < choice);
            buckets[bucket].1 += count;
        }
        self.begin(&CLAIM_CHOICE)?
            .encode_histogram::<NoLabelSet>(sum.sum(), count, &buckets, None)
    }

    fn limits(&mut self, limits: LimitCounts) -> Result<(), Error> {
        let metric = &LIMITS_EXCEEDED;
        let mut encoder = self.begin(metric)?;
        for (outcome, counts) in limits.by_outcome() {
            for (resource, count) in counts {
                let values = [resource.as_str(), outcome];
                let labels: Vec<_> = metric.labels.iter().copied().zip(values).collect();
                write_value(&mut encoder.encode_family(&labels)?, metric, &count)?;
            }
        }
        Ok(())
    }

    /// Metrics from the disk.
    fn disk(&mut self, disk: &Disk) -> Result<(), Error> {
        self.put(&DISK_USED, disk.space.used_bytes)?;
        if let Some(free) = disk.space.free_bytes {
            self.put(&DISK_FREE, free)?;
        }
        let Some([log, state]) = disk.databases else {
            return Ok(());
        };
        let both = |of: fn(&DatabaseNumbers) -> u64| [("log", of(&log)), ("state", of(&state))];
        self.put_each(&ROCKSDB_WAL, both(|of| of.wal_bytes))?;
        self.put_each(&ROCKSDB_MEMTABLE, both(|of| of.memtable_bytes))?;
        self.put_each(&ROCKSDB_SST, both(|of| of.sst_bytes))?;
        let pending = both(|of| of.pending_compaction_bytes);
        self.put_each(&ROCKSDB_PENDING_COMPACTION, pending)?;
        let errors = both(|of| of.background_errors);
        self.put_each(&ROCKSDB_BACKGROUND_ERRORS, errors)?;
        self.put(&ROCKSDB_BLOCK_CACHE, log.block_cache_bytes)
    }

    /// Metrics of a member of a cluster at the time `at` of its clock.
    fn member_metrics(&mut self, running: &Running, at: Timestamp) -> Result<(), Error> {
        let (replica, peers, kept) = (&running.replica, &running.peers, &running.kept);
        let ways = peers.round_trips.all().into_iter();
        let means = ways.map(|(peer, way)| (peer, way.mean.as_secs_f64()));
        self.put_each(&PEER_ROUND_TRIP, means)?;
        let lost = peers.lost().borrow().clone();
        let tried = replica.tried().into_iter();
        let up = tried.map(|peer| (peer, u64::from(!lost.contains_key(&peer))));
        self.put_each(&PEER_UP, up)?;
        let too_long = round_trips::too_long(replica, &peers.round_trips);
        self.put(&ROUND_TRIP_TOO_LONG, u64::from(too_long.is_some()))?;
        if let Some(ahead) = running.clock_ahead() {
            self.put(&CLOCK_AHEAD, ahead as f64 / 1e6)?;
        }
        let sent = peers.traffic.all();
        let bytes = sent.iter().map(|(peer, sent)| (*peer, sent.bytes()));
        let packed = bytes.clone().map(|(peer, (_, packed))| (peer, packed));
        self.put_each(&PEER_SENT, packed)?;
        let plain = bytes.map(|(peer, (plain, _))| (peer, plain));
        self.put_each(&PEER_SENT_PLAIN, plain)?;
        self.put(&PEER_FRAMES_DAMAGED, peers.damage.frames())?;
        let level = u64::from(peers.level().0);
        self.put(&FEATURE_LEVEL_AGREED, level)?;
        self.put(&REMOVED, u64::from(replica.is_removed()))?;
        self.raft(replica)?;
        let paces = slow_followers::paces(replica, peers);
        let (slow, _) = slow_followers::slow(&paces);
        let acknowledged = paces.iter().map(|(node, pace)| (*node, pace.acknowledges));
        let seconds = acknowledged.map(|(node, took)| (node, took.as_secs_f64()));
        self.put_each(&RAFT_FOLLOWER_ACKNOWLEDGEMENT, seconds)?;
        let is_slow = |node: &u64| (*node, u64::from(slow.contains(node)));
        self.put_each(&RAFT_FOLLOWER_SLOW, paces.keys().map(is_slow))?;
        self.store(&running.store_metrics)?;
        let waits = running.store_metrics.waits_for_disk().unwrap_or_default();
        self.put(&DISK_WAIT, waits.as_secs_f64())?;
        let numbers = kept.numbers();
        self.put_all([
            (&BACKUP_LAST, numbers.last.unwrap_or(0)),
            (&BACKUP_LOG_INDEX, numbers.logged),
            (&BACKUP_OVERDUE, u64::from(kept.is_overdue())),
            (&BACKUP_LOG_GAPS, numbers.gaps),
            (&BACKUP_FAILURES, numbers.failures),
            (&BACKUP_COPIED, numbers.copied.unwrap_or(0)),
            (&BACKUP_COPY_FAILURES, numbers.copy_failures),
        ])?;
        self.model(replica, at)
    }

    fn raft(&mut self, replica: &Replica) -> Result<(), Error> {
        let raft = replica.raft_status();
        let applied = replica.views.applied_index();
        let known = |index: Option<u64>| index.unwrap_or(0);
        let (last, committed) = (known(raft.last_log_index), index(raft.local_committed));
        let leads = raft.state == ServerState::Leader;
        let failed = replica.failure().is_some();
        self.put_all([
            (&FEATURE_LEVEL, u64::from(replica.level().0)),
            (&RAFT_TERM, raft.current_term),
            (&RAFT_LEADS, u64::from(leads)),
            (&RAFT_VOTERS, replica.voters().len() as u64),
            (&RAFT_LAST_LOG_INDEX, last),
            (&RAFT_COMMITTED_INDEX, known(committed)),
            (&RAFT_APPLIED_INDEX, known(applied)),
            (&RAFT_SNAPSHOT_INDEX, known(index(raft.snapshot))),
            (&RAFT_PURGED_INDEX, known(index(raft.purged))),
            (&LEDGER_FLOOR_INDEX, replica.ledger.floor().index),
            (&LEDGER, replica.ledger.bytes()),
            (&STORAGE_FAILED, u64::from(failed)),
            (&REPLACEMENTS, now(&replica.replacements)),
            (&GIVEN_UP_STREAMS, now(&replica.given_up_streams)),
            (&RAFT_LEADER_CHANGES, now(&replica.leader_changes)),
        ])?;
        let leader = replica.leader_id();
        let members = replica.members().into_keys();
        let leads = members.map(|peer| (peer, u64::from(leader == Some(peer))));
        self.put_each(&RAFT_LEADER, leads)?;
        if let Some(staleness) = replica.freshness.staleness() {
            self.put(&STALENESS, staleness.as_secs_f64())?;
        }
        let Some(matched) = &raft.replication else {
            return Ok(());
        };
        self.put(&RAFT_CAN_LOSE, replica.can_lose())?;
        let lag = |matched: &Option<LogId>| last.saturating_sub(known(index(*matched)));
        let lags = matched.iter().map(|(node, matched)| (*node, lag(matched)));
        self.put_each(&RAFT_FOLLOWER_LAG, lags)
    }

    fn store(&mut self, store: &StoreMetrics) -> Result<(), Error> {
        let counters = &store.counters;
        self.put_all([
            (&RAFT_SNAPSHOTS_FAILED, counters.snapshots_failed.get()),
            (&RAFT_SNAPSHOTS_DAMAGED, counters.snapshots_damaged.get()),
            (&LOG_ENTRIES_SYNCED, counters.synced_entries.get()),
            (&LOG_ENTRIES_APPLIED, counters.applied_entries.get()),
        ])?;
        self.put_counted(&LOG_SYNC_DURATION, &counters.sync)?;
        self.put_counted(&APPLY_DURATION, &counters.apply)
    }

    /// Numbers of objects in each partition. A hold is overdue if it was due before `at`.
    fn model(&mut self, replica: &Replica, at: Timestamp) -> Result<(), Error> {
        let cluster = &replica.views.current().cluster;
        let all = holdings::partitions(cluster);
        let counts: Vec<_> = all
            .map(|(name, state)| (name, (state.sizes(), state.hold_counts(at))))
            .collect();
        type Count = fn(&(Sizes, HoldCounts)) -> usize;
        let columns: [(&Metric, Count); 7] = [
            (&PARTITION_TREES, |(of, _)| of.trees),
            (&PARTITION_PROVIDERS, |(of, _)| of.providers),
            (&PARTITION_CONSUMERS, |(of, _)| of.consumers),
            (&PARTITION_RESOURCE_CLASSES, |(of, _)| of.resource_classes),
            (&PARTITION_TRAITS, |(of, _)| of.traits),
            (&HOLDS, |(_, of)| of.holds),
            (&HOLDS_OVERDUE, |(_, of)| of.overdue),
        ];
        for (metric, of) in columns {
            let series = counts.iter().map(|(name, all)| (*name, of(all) as u64));
            self.put_each(metric, series)?;
        }
        Ok(())
    }

    fn holdings(&mut self, holdings: &Holdings) -> Result<(), Error> {
        type Value = fn(&CapacitySums) -> f64;
        let columns: [(&Metric, Value); 6] = [
            (&INVENTORY_UNITS, |of| of.total as f64),
            (&INVENTORY_RESERVED, |of| of.reserved as f64),
            (&INVENTORY_CAPACITY, |of| of.capacity.as_f64()),
            (&INVENTORY_USED, |of| of.used as f64),
            (&INVENTORY_FREE, |of| of.free as f64),
            (&INVENTORY_LARGEST_FREE, |of| of.largest_free as f64),
        ];
        for (metric, value) in columns {
            self.put_rows(metric, &holdings.classes, value)?;
        }
        let consumers = &holdings.consumers;
        self.put_rows(&CONSUMERS, consumers, |count| *count as f64)
    }

    /// Writes one series for each row.
    fn put_rows<T>(
        &mut self,
        metric: &Metric,
        rows: &Rows<T>,
        value: fn(&T) -> f64,
    ) -> Result<(), Error> {
        let mut encoder = self.begin(metric)?;
        for (names, row) in rows {
            let names = names.iter().map(String::as_str);
            let labels: Vec<_> = metric.labels.iter().copied().zip(names).collect();
            encoder.encode_family(&labels)?.encode_gauge(&value(row))?;
        }
        Ok(())
    }
}

fn now(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn write_value<V>(encoder: &mut MetricEncoder<'_>, metric: &Metric, value: &V) -> Result<(), Error>
where
    V: EncodeGaugeValue + EncodeCounterValue,
{
    let no_exemplar: Option<&Exemplar<NoLabelSet, u64>> = None;
    match metric.kind {
        MetricType::Counter => encoder.encode_counter(value, no_exemplar),
        _ => encoder.encode_gauge(value),
    }
}
