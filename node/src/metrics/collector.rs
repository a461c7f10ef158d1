//! Collects the numbers of HTTP, Raft, the store, the model and the process for one answer.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use openraft::ServerState;
use parking_lot::Mutex;
use placement_model::query::capacity::CapacitySums;
use placement_model::state::Sizes;
use placement_raft_store::{DatabaseNumbers, LogId, Site, StoreMetrics};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelValue, EncodeMetric,
    MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::catalog::{self, Metric};
use super::holdings::{self, Holdings, LastCount};
use super::http::HttpMetrics;
use super::{exposition, process};
use crate::cluster::leadership::round_trips;
use crate::cluster::replica::{Replica, index};
use crate::cluster::slot::Slot;
use crate::cluster::{ReadMetrics, Running};
use crate::disk_space::DiskSpace;
use crate::tls::Certificates;
use placement_api::audit::Numbers;
use placement_api::http::{Policy, Service};
use placement_api::keystone::Keystone;

/// What the numbers of one node are read from.
pub(crate) struct Sources {
    pub(crate) slot: Arc<Slot>,
    pub(crate) reads: Arc<ReadMetrics>,
    /// Those in force, of all partitions.
    pub(crate) policies: Vec<Arc<Policy>>,
    /// Of each partition that was asked for.
    pub(crate) counted: Arc<Mutex<Vec<Service>>>,
    pub(crate) audit: Arc<Numbers>,
    pub(crate) keystone: Option<Arc<Keystone>>,
    pub(crate) certificates: Vec<(&'static str, Arc<Certificates>)>,
    pub(crate) site: Site,
}

/// All numbers of one node.
pub(crate) struct Metrics {
    sources: Sources,
    pub(crate) http: HttpMetrics,
    last_count: LastCount,
}

impl Metrics {
    pub(crate) fn new(sources: Sources) -> Self {
        Self {
            sources,
            http: HttpMetrics::new(),
            last_count: LastCount::default(),
        }
    }

    /// When the certificate of a listener or its authority ends, in seconds since 1970.
    pub(crate) fn certificate_ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let shown = self.sources.certificates.iter();
        shown.filter_map(|(listener, shown)| {
            let end = shown.end()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Some((*listener, end.as_secs()))
        })
    }

    /// The numbers now, with the room of the data directory and whether this node is ready as it was just found.
    pub(crate) async fn encode(self: &Arc<Self>, space: DiskSpace, ready: bool) -> String {
        let holdings = match self.sources.slot.get() {
            Some(running) => self.last_count.get(&running.replica.views).await,
            None => Arc::default(),
        };
        let mut registry = Registry::default();
        let metrics = self.clone();
        registry.register_collector(Box::new(Scrape {
            metrics,
            space,
            ready,
            holdings,
        }));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .expect("writing to a string does not fail");
        exposition::from_openmetrics(&text)
    }
}

/// One answer to `/metrics`.
pub(super) struct Scrape {
    pub(super) metrics: Arc<Metrics>,
    /// Room of the data directory now.
    pub(super) space: DiskSpace,
    pub(super) ready: bool,
    pub(super) holdings: Arc<[Holdings]>,
}

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scrape")
    }
}

impl Sources {
    /// As the cluster knows it; empty before it belongs to one.
    fn name(&self) -> String {
        let known = self.slot.get().and_then(|running| {
            let me = running.replica.me;
            Some(running.replica.member(me)?.name_of(me))
        });
        known.map_or(String::new(), |name| name.to_string())
    }

    /// What all partitions have counted together, by the label.
    fn sum<I: IntoIterator<Item = (&'static str, u64)>>(
        &self,
        of: impl Fn(&Service) -> I,
    ) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for (label, count) in self.counted.lock().iter().flat_map(of) {
            *sums.entry(label).or_insert(0) += count;
        }
        sums
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = Out { encoder };
        out.put(&catalog::READY, u64::from(self.ready))?;
        out.of_process(&self.metrics, self.space)?;
        let running = self.metrics.sources.slot.get();
        out.put(&catalog::MEMBER, u64::from(running.is_some()))?;
        if let Some(running) = running.as_deref() {
            out.of_member(running)?;
            out.holdings(&self.holdings)?;
        }
        for (metric, value) in process::read() {
            if let Some(value) = value {
                out.put(metric, value)?;
            }
        }
        Ok(())
    }
}

struct Out<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Out<'_> {
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

    /// One that is counted where it happens.
    fn put_counted(&mut self, metric: &Metric, counted: &impl EncodeMetric) -> Result<(), Error> {
        counted.encode(self.begin(metric)?)
    }

    /// One series for each value of the metric's label.
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
            panic!("{metric:?} has not one label in the catalog");
        };
        let mut encoder = self.begin(metric)?;
        for (value_of_label, value) in series {
            let labels = [(*label, value_of_label)];
            write_value(&mut encoder.encode_family(&labels)?, metric, &value)?;
        }
        Ok(())
    }

    /// What each node has, in a cluster or not.
    fn of_process(&mut self, metrics: &Metrics, space: DiskSpace) -> Result<(), Error> {
        let Metrics { sources, http, .. } = metrics;
        self.put_each(&catalog::BUILD_INFO, [(env!("CARGO_PKG_VERSION"), 1u64)])?;
        self.begin(&catalog::SITE)?
            .encode_family(&[
                ("region", sources.site.region.as_str()),
                ("zone", sources.site.zone.as_str()),
                ("name", sources.name().as_str()),
            ])?
            .encode_gauge(&1u64)?;
        self.put_counted(&catalog::HTTP_REQUEST_DURATION, &http.requests)?;
        self.put_counted(&catalog::HTTP_CONNECTIONS, &http.connections)?;
        self.put_counted(&catalog::HTTP_IN_FLIGHT, &http.in_flight)?;
        self.put_counted(&catalog::UNAVAILABLE, &http.unavailable)?;
        self.put_counted(&catalog::WRITE_REFUSALS, &http.conflicts)?;
        self.put_each(&catalog::PARTITION_REQUESTS, http.by_partition())?;
        let drained = sources.slot.leaving.is_drained();
        self.put(&catalog::DRAINED, u64::from(drained))?;
        let reads = &sources.reads;
        let seconds = now(&reads.micros) as f64 / 1e6;
        self.put(&catalog::READ_ROUNDS, now(&reads.rounds))?;
        self.put(&catalog::READ_ROUNDS_FAILED, now(&reads.failures))?;
        self.put(&catalog::READ_ROUNDS_DURATION, seconds)?;
        self.put(&catalog::READS_LINEARIZED, now(&reads.reads))?;
        let refused = sources.sum(|of| of.callers().refused());
        self.put_each(&catalog::HTTP_CALLERS_REFUSED, refused)?;
        let results = sources.sum(|of| of.searches().results());
        self.put_each(&catalog::SEARCHES, results)?;
        let empty = sources.sum(|of| of.searches().empty());
        self.put_each(&catalog::SEARCHES_EMPTY, empty)?;
        let counted = sources.counted.lock();
        let waiting: usize = counted.iter().map(Service::searches_waiting).sum();
        drop(counted);
        self.put(&catalog::SEARCHES_WAITING, waiting as u64)?;
        let results = Keystone::results(sources.keystone.as_deref());
        self.put_each(&catalog::KEYSTONE_REQUESTS, results)?;
        let waiting = sources.keystone.as_ref().map_or(0, |it| it.waiting());
        self.put(&catalog::KEYSTONE_WAITING, waiting)?;
        let policies = sources.policies.iter();
        let refused = policies.clone().any(|policy| policy.is_refused());
        let mistakes: usize = policies.map(|policy| policy.mistakes().len()).sum();
        let audit = &sources.audit;
        self.put_all([
            (&catalog::POLICY_REFUSED, u64::from(refused)),
            (&catalog::POLICY_MISTAKES, mistakes as u64),
            (&catalog::LOG_LINES_DROPPED, crate::logging::dropped_lines()),
            (
                &catalog::TRACE_SPANS_DROPPED,
                crate::traces::dropped_spans(),
            ),
            (&catalog::AUDIT_RECORDS, now(&audit.records)),
            (&catalog::AUDIT_WRITTEN, now(&audit.bytes)),
            (&catalog::AUDIT_RECORDS_LOST, now(&audit.lost)),
            (
                &catalog::AUDIT_FAILED,
                audit.failed.load(Ordering::Relaxed).into(),
            ),
        ])?;
        self.put_counted(&catalog::AUDIT_SYNC_DURATION, &audit.sync)?;
        self.put_each(&catalog::CERTIFICATE_END, metrics.certificate_ends())?;
        self.put(&catalog::DISK_USED, space.used_bytes)?;
        match space.free_bytes {
            Some(free) => self.put(&catalog::DISK_FREE, free),
            None => Ok(()),
        }
    }

    /// What a member of a cluster has.
    fn of_member(&mut self, running: &Running) -> Result<(), Error> {
        let (replica, peers, kept) = (&running.replica, &running.peers, &running.kept);
        let ways = peers.round_trips.all().into_iter();
        let means = ways.map(|(peer, way)| (peer, way.mean.as_secs_f64()));
        self.put_each(&catalog::PEER_ROUND_TRIP, means)?;
        let lost = peers.lost().borrow().clone();
        let tried = replica.tried().into_iter();
        let up = tried.map(|peer| (peer, u64::from(!lost.contains(&peer))));
        self.put_each(&catalog::PEER_UP, up)?;
        let too_long = round_trips::too_long(replica, &peers.round_trips);
        self.put(&catalog::ROUND_TRIP_TOO_LONG, u64::from(too_long.is_some()))?;
        if let Some(ahead) = running.clock_ahead() {
            self.put(&catalog::CLOCK_AHEAD, ahead as f64 / 1e6)?;
        }
        let sent = peers.traffic.all();
        let bytes = sent.iter().map(|(peer, sent)| (*peer, sent.bytes()));
        let packed = bytes.clone().map(|(peer, (_, packed))| (peer, packed));
        self.put_each(&catalog::PEER_SENT, packed)?;
        let plain = bytes.map(|(peer, (plain, _))| (peer, plain));
        self.put_each(&catalog::PEER_SENT_PLAIN, plain)?;
        self.put(&catalog::PEER_FRAMES_DAMAGED, peers.damage.frames())?;
        let level = u64::from(peers.level().0);
        self.put(&catalog::FEATURE_LEVEL_AGREED, level)?;
        self.put(&catalog::REMOVED, u64::from(replica.is_removed()))?;
        self.raft(replica)?;
        self.store(&running.store_metrics)?;
        let waits = running.store_metrics.waits_for_disk().unwrap_or_default();
        self.put(&catalog::DISK_WAIT, waits.as_secs_f64())?;
        let numbers = kept.numbers();
        self.put_all([
            (&catalog::BACKUP_LAST, numbers.last.unwrap_or(0)),
            (&catalog::BACKUP_LOG_INDEX, numbers.logged),
            (&catalog::BACKUP_OVERDUE, u64::from(kept.is_overdue())),
            (&catalog::BACKUP_LOG_GAPS, numbers.gaps),
            (&catalog::BACKUP_FAILURES, numbers.failures),
            (&catalog::BACKUP_COPIED, numbers.copied.unwrap_or(0)),
            (&catalog::BACKUP_COPY_FAILURES, numbers.copy_failures),
        ])?;
        self.model(replica)
    }

    fn raft(&mut self, replica: &Replica) -> Result<(), Error> {
        let raft = replica.raft_status();
        let applied = replica.views.applied_index();
        let known = |index: Option<u64>| index.unwrap_or(0);
        let (last, committed) = (known(raft.last_log_index), index(raft.local_committed));
        let leads = raft.state == ServerState::Leader;
        let failed = replica.failure().is_some();
        self.put_all([
            (&catalog::FEATURE_LEVEL, u64::from(replica.level().0)),
            (&catalog::RAFT_TERM, raft.current_term),
            (&catalog::RAFT_LEADS, u64::from(leads)),
            (&catalog::RAFT_VOTERS, replica.voters().len() as u64),
            (&catalog::RAFT_LAST_LOG_INDEX, last),
            (&catalog::RAFT_COMMITTED_INDEX, known(committed)),
            (&catalog::RAFT_APPLIED_INDEX, known(applied)),
            (&catalog::RAFT_SNAPSHOT_INDEX, known(index(raft.snapshot))),
            (&catalog::RAFT_PURGED_INDEX, known(index(raft.purged))),
            (&catalog::LEDGER_FLOOR_INDEX, replica.ledger.floor().index),
            (&catalog::LEDGER, replica.ledger.bytes()),
            (&catalog::STORAGE_FAILED, u64::from(failed)),
            (&catalog::REPLACEMENTS, now(&replica.replacements)),
            (&catalog::GIVEN_UP_STREAMS, now(&replica.given_up_streams)),
            (&catalog::RAFT_LEADER_CHANGES, now(&replica.leader_changes)),
        ])?;
        let leader = replica.leader_id();
        let members = replica.members().into_keys();
        let leads = members.map(|peer| (peer, u64::from(leader == Some(peer))));
        self.put_each(&catalog::RAFT_LEADER, leads)?;
        if let Some(staleness) = replica.freshness.staleness() {
            self.put(&catalog::STALENESS, staleness.as_secs_f64())?;
        }
        let Some(matched) = &raft.replication else {
            return Ok(());
        };
        self.put(&catalog::RAFT_CAN_LOSE, replica.can_lose())?;
        let lag = |matched: &Option<LogId>| last.saturating_sub(known(index(*matched)));
        let lags = matched.iter().map(|(node, matched)| (*node, lag(matched)));
        self.put_each(&catalog::RAFT_FOLLOWER_LAG, lags)
    }

    fn store(&mut self, store: &StoreMetrics) -> Result<(), Error> {
        let (log, state, counters) = (store.log(), store.state(), &store.counters);
        let both = |of: fn(&DatabaseNumbers) -> u64| [("log", of(&log)), ("state", of(&state))];
        self.put_each(&catalog::ROCKSDB_WAL, both(|of| of.wal_bytes))?;
        self.put_each(&catalog::ROCKSDB_MEMTABLE, both(|of| of.memtable_bytes))?;
        self.put_each(&catalog::ROCKSDB_SST, both(|of| of.sst_bytes))?;
        let pending = both(|of| of.pending_compaction_bytes);
        self.put_each(&catalog::ROCKSDB_PENDING_COMPACTION, pending)?;
        let errors = both(|of| of.background_errors);
        self.put_each(&catalog::ROCKSDB_BACKGROUND_ERRORS, errors)?;
        self.put_all([
            (
                &catalog::RAFT_SNAPSHOTS_FAILED,
                counters.snapshots_failed.get(),
            ),
            (
                &catalog::RAFT_SNAPSHOTS_DAMAGED,
                counters.snapshots_damaged.get(),
            ),
            (&catalog::ROCKSDB_BLOCK_CACHE, log.block_cache_bytes),
            (&catalog::LOG_ENTRIES_SYNCED, counters.synced_entries.get()),
            (
                &catalog::LOG_ENTRIES_APPLIED,
                counters.applied_entries.get(),
            ),
        ])?;
        self.put_counted(&catalog::LOG_SYNC_DURATION, &counters.sync)?;
        self.put_counted(&catalog::APPLY_DURATION, &counters.apply)
    }

    fn model(&mut self, replica: &Replica) -> Result<(), Error> {
        let cluster = &replica.views.current().cluster;
        let all = holdings::partitions(cluster);
        let sizes: Vec<_> = all.map(|(name, state)| (name, state.sizes())).collect();
        type Size = fn(&Sizes) -> usize;
        let columns: [(&Metric, Size); 5] = [
            (&catalog::PARTITION_TREES, |of| of.trees),
            (&catalog::PARTITION_PROVIDERS, |of| of.providers),
            (&catalog::PARTITION_CONSUMERS, |of| of.consumers),
            (&catalog::PARTITION_RESOURCE_CLASSES, |of| {
                of.resource_classes
            }),
            (&catalog::PARTITION_TRAITS, |of| of.traits),
        ];
        for (metric, of) in columns {
            let series = sizes.iter().map(|(name, sizes)| (*name, of(sizes) as u64));
            self.put_each(metric, series)?;
        }
        Ok(())
    }

    fn holdings(&mut self, partitions: &[Holdings]) -> Result<(), Error> {
        type Value = fn(&CapacitySums) -> f64;
        let columns: [(&Metric, Value); 6] = [
            (&catalog::INVENTORY_UNITS, |of| of.total as f64),
            (&catalog::INVENTORY_RESERVED, |of| of.reserved as f64),
            (&catalog::INVENTORY_CAPACITY, |of| of.capacity.as_f64()),
            (&catalog::INVENTORY_USED, |of| of.used as f64),
            (&catalog::INVENTORY_FREE, |of| of.free as f64),
            (&catalog::INVENTORY_LARGEST_FREE, |of| {
                of.largest_free as f64
            }),
        ];
        for (metric, value) in columns {
            let of = |sums: &CapacitySums| value(sums);
            self.put_by_partition(metric, partitions, |of_one| &of_one.classes, of)?;
        }
        let of = |count: &u64| *count as f64;
        self.put_by_partition(
            &catalog::CONSUMERS,
            partitions,
            |of_one| &of_one.consumers,
            of,
        )
    }

    /// One series for each partition and value of the metric's other label.
    fn put_by_partition<T>(
        &mut self,
        metric: &Metric,
        partitions: &[Holdings],
        rows: fn(&Holdings) -> &Vec<(String, T)>,
        value: impl Fn(&T) -> f64,
    ) -> Result<(), Error> {
        let [partition, label] = metric.labels else {
            panic!("{metric:?} has not two labels in the catalog");
        };
        let mut encoder = self.begin(metric)?;
        for of_one in partitions {
            for (name, row) in rows(of_one) {
                let labels = [
                    (*partition, of_one.partition.as_str()),
                    (*label, name.as_str()),
                ];
                encoder.encode_family(&labels)?.encode_gauge(&value(row))?;
            }
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
