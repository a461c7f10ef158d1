//! Reads what HTTP, Raft, the store, the model and the process say when it is asked for.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use openraft::ServerState;
use parking_lot::Mutex;
use placement_raft_store::{Site, StoreNumbers};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelValue, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::metrics::histogram::Histogram;

use super::catalog::{self, Base, Metric};
use super::http::HttpMetrics;
use super::process::Process;
use crate::cluster::leadership::round_trips;
use crate::cluster::replica::Replica;
use crate::cluster::slot::Slot;
use crate::cluster::{ReadMetrics, Running};
use crate::disk_space::DiskSpace;
use crate::tls::Certificates;
use placement_api::audit::Numbers;
use placement_api::http::{Callers, Policy};
use placement_api::keystone::Keystone;

/// What the numbers of one node are read from.
pub(crate) struct Sources {
    pub(crate) slot: Arc<Slot>,
    pub(crate) reads: Arc<ReadMetrics>,
    /// Those in force, of all partitions.
    pub(crate) policies: Vec<Arc<Policy>>,
    /// Of each partition that was asked for.
    pub(crate) callers: Arc<Mutex<Vec<Arc<Callers>>>>,
    pub(crate) audit: Arc<Numbers>,
    pub(crate) keystone: Option<Arc<Keystone>>,
    pub(crate) certificates: Vec<(&'static str, Arc<Certificates>)>,
    pub(crate) site: Site,
}

/// Reads the numbers of one node.
pub(super) struct NodeCollector {
    pub(super) sources: Sources,
    pub(super) http: HttpMetrics,
    /// Room of the data directory, as it was found last.
    pub(super) space: Arc<Mutex<Option<DiskSpace>>>,
}

impl std::fmt::Debug for NodeCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeCollector")
    }
}

impl NodeCollector {
    /// As the cluster knows it; empty before it belongs to one.
    fn name(&self) -> String {
        let known = self.sources.slot.get().and_then(|running| {
            let me = running.replica.me;
            Some(running.replica.member(me)?.name_of(me))
        });
        known.map_or(String::new(), |name| name.to_string())
    }

    /// How many requests of all partitions were refused, by the limit.
    fn refused(&self) -> BTreeMap<&'static str, u64> {
        let mut refused = BTreeMap::new();
        let all = self.sources.callers.lock();
        for (limit, count) in all.iter().flat_map(|callers| callers.refused()) {
            *refused.entry(limit).or_insert(0) += count;
        }
        refused
    }
}

impl Collector for NodeCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = Out { encoder };
        out.gauges(&catalog::BUILD_INFO, [(env!("CARGO_PKG_VERSION"), 1)])?;
        let name = self.name();
        out.begin(&catalog::SITE)?
            .encode_family(&[
                ("region", self.sources.site.region.as_str()),
                ("zone", self.sources.site.zone.as_str()),
                ("name", name.as_str()),
            ])?
            .encode_gauge(&1u64)?;
        out.http(&self.http)?;
        out.reads(&self.sources.reads)?;
        out.counters(&catalog::HTTP_CALLERS_REFUSED, self.refused())?;
        let waiting = self.sources.keystone.as_ref().map_or(0, |it| it.waiting());
        out.gauge(&catalog::KEYSTONE_WAITING, waiting)?;
        let policies = self.sources.policies.iter();
        let refused = policies.clone().any(|policy| policy.is_refused());
        out.gauge(&catalog::POLICY_REFUSED, u64::from(refused))?;
        let mistakes: usize = policies.map(|policy| policy.mistakes().len()).sum();
        out.gauge(&catalog::POLICY_MISTAKES, mistakes as u64)?;
        out.counter(&catalog::LOG_LINES_DROPPED, crate::logging::dropped_lines())?;
        out.audit(&self.sources.audit)?;
        let ends = (self.sources.certificates.iter()).filter_map(|(door, shown)| {
            let end = shown.end()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Some((*door, end.as_secs()))
        });
        out.gauges(&catalog::CERTIFICATE_END, ends)?;
        let space = *self.space.lock();
        out.gauge(
            &catalog::DISK_USED,
            space.map_or(0, |space| space.used_bytes),
        )?;
        if let Some(free) = space.and_then(|space| space.free_bytes) {
            out.gauge(&catalog::DISK_FREE, free)?;
        }
        let running = self.sources.slot.get();
        out.gauge(&catalog::MEMBER, u64::from(running.is_some()))?;
        if let Some(running) = &running {
            let Running {
                replica,
                store_metrics,
                kept,
                peers,
                ..
            } = &**running;
            let ways = peers.round_trips.all().into_iter();
            out.gauges(
                &catalog::PEER_ROUND_TRIP,
                ways.map(|(peer, way)| (peer, way.mean.as_secs_f64())),
            )?;
            let too_long = round_trips::too_long(replica, &peers.round_trips);
            out.gauge(&catalog::ROUND_TRIP_TOO_LONG, u64::from(too_long.is_some()))?;
            if let Some(ahead) = running.clock_ahead() {
                out.gauge(&catalog::CLOCK_AHEAD, ahead as f64 / 1e6)?;
            }
            let sent = peers.traffic.all();
            let bytes = sent.iter().map(|(peer, sent)| (*peer, sent.bytes()));
            let went_out = bytes.clone().map(|(peer, (_, packed))| (peer, packed));
            out.counters(&catalog::PEER_SENT, went_out)?;
            let plain = bytes.map(|(peer, (plain, _))| (peer, plain));
            out.counters(&catalog::PEER_SENT_PLAIN, plain)?;
            out.counter(&catalog::PEER_FRAMES_DAMAGED, peers.damage.frames())?;
            out.gauge(&catalog::REMOVED, u64::from(replica.is_removed()))?;
            out.raft(replica)?;
            out.store(&store_metrics.read())?;
            let waits = store_metrics.waits_for_disk().unwrap_or_default();
            out.gauge(&catalog::DISK_WAIT, waits.as_secs_f64())?;
            let numbers = kept.numbers();
            out.gauge(&catalog::BACKUP_LAST, numbers.last.unwrap_or(0))?;
            out.gauge(&catalog::BACKUP_LOG_INDEX, numbers.logged)?;
            out.gauge(&catalog::BACKUP_OVERDUE, u64::from(kept.is_overdue()))?;
            out.counter(&catalog::BACKUP_LOG_GAPS, numbers.gaps)?;
            out.counter(&catalog::BACKUP_FAILURES, numbers.failures)?;
            out.gauge(&catalog::BACKUP_COPIED, numbers.copied.unwrap_or(0))?;
            out.counter(&catalog::BACKUP_COPY_FAILURES, numbers.copy_failures)?;
            out.model(replica)?;
        }
        out.process(&Process::read())
    }
}

/// The label of a metric that has one.
fn label(metric: &Metric) -> &'static str {
    metric
        .labels
        .first()
        .expect("asked only of metrics with a label in the catalog")
}

struct Out<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Out<'_> {
    fn begin(&mut self, metric: &Metric) -> Result<MetricEncoder<'_>, Error> {
        let unit = metric.unit.map(Base::unit);
        self.encoder
            .encode_descriptor(metric.base, metric.help, unit, metric.kind)
    }

    fn gauge(&mut self, metric: &Metric, value: impl EncodeGaugeValue) -> Result<(), Error> {
        self.begin(metric)?.encode_gauge(&value)
    }

    /// One series for each value of the metric's label.
    fn gauges(
        &mut self,
        metric: &Metric,
        series: impl IntoIterator<Item = (impl EncodeLabelValue, impl EncodeGaugeValue)>,
    ) -> Result<(), Error> {
        let mut encoder = self.begin(metric)?;
        for (value_of_label, value) in series {
            let labels = [(label(metric), value_of_label)];
            encoder.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counter(&mut self, metric: &Metric, value: u64) -> Result<(), Error> {
        let no_exemplar: Option<&Exemplar<NoLabelSet, u64>> = None;
        self.begin(metric)?.encode_counter(&value, no_exemplar)
    }

    /// One series for each value of the metric's label.
    fn counters(
        &mut self,
        metric: &Metric,
        series: impl IntoIterator<Item = (impl EncodeLabelValue, u64)>,
    ) -> Result<(), Error> {
        let no_exemplar: Option<&Exemplar<NoLabelSet, u64>> = None;
        let mut encoder = self.begin(metric)?;
        for (value_of_label, value) in series {
            let labels = [(label(metric), value_of_label)];
            encoder
                .encode_family(&labels)?
                .encode_counter(&value, no_exemplar)?;
        }
        Ok(())
    }

    fn http(&mut self, http: &HttpMetrics) -> Result<(), Error> {
        let encoder = self.begin(&catalog::HTTP_REQUEST_DURATION)?;
        http.requests.encode(encoder)?;
        let encoder = self.begin(&catalog::HTTP_CONNECTIONS)?;
        http.connections.encode(encoder)?;
        self.counters(&catalog::PARTITION_REQUESTS, http.by_partition())
    }

    fn reads(&mut self, reads: &ReadMetrics) -> Result<(), Error> {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.counter(&catalog::READ_ROUNDS, now(&reads.rounds))?;
        self.counter(&catalog::READ_ROUNDS_FAILED, now(&reads.failures))?;
        let seconds = now(&reads.micros) as f64 / 1e6;
        let no_exemplar: Option<&Exemplar<NoLabelSet, f64>> = None;
        self.begin(&catalog::READ_ROUNDS_DURATION)?
            .encode_counter(&seconds, no_exemplar)?;
        self.counter(&catalog::READS_LINEARIZED, now(&reads.reads))
    }

    fn audit(&mut self, numbers: &Numbers) -> Result<(), Error> {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.counter(&catalog::AUDIT_RECORDS, now(&numbers.records))?;
        self.counter(&catalog::AUDIT_WRITTEN, now(&numbers.bytes))?;
        self.counter(&catalog::AUDIT_RECORDS_LOST, now(&numbers.lost))?;
        let failed = numbers.failed.load(Ordering::Relaxed);
        self.gauge(&catalog::AUDIT_FAILED, u64::from(failed))?;
        self.histogram(&catalog::AUDIT_SYNC_DURATION, &numbers.sync)
    }

    fn raft(&mut self, replica: &Replica) -> Result<(), Error> {
        let raft = replica.raft_status();
        let applied = replica.views.applied_index();
        let known = |index: Option<u64>| index.unwrap_or(0);
        let leads = raft.state == ServerState::Leader;
        let failed = replica.failure().is_some();
        for (metric, value) in [
            (&catalog::FEATURE_LEVEL, u64::from(replica.level().0)),
            (&catalog::RAFT_TERM, raft.term),
            (&catalog::RAFT_LEADS, u64::from(leads)),
            (&catalog::RAFT_LEADER, known(raft.leader)),
            (&catalog::RAFT_LAST_LOG_INDEX, known(raft.last_log)),
            (&catalog::RAFT_COMMITTED_INDEX, known(raft.committed)),
            (&catalog::RAFT_APPLIED_INDEX, known(applied)),
            (&catalog::RAFT_SNAPSHOT_INDEX, known(raft.snapshot)),
            (&catalog::RAFT_PURGED_INDEX, known(raft.purged)),
            (&catalog::STORAGE_FAILED, u64::from(failed)),
        ] {
            self.gauge(metric, value)?;
        }
        self.counter(
            &catalog::REPLACEMENTS,
            replica.replacements.load(Ordering::Relaxed),
        )?;
        self.counter(
            &catalog::GIVEN_UP_STREAMS,
            replica.given_up_streams.load(Ordering::Relaxed),
        )?;
        self.counter(
            &catalog::RAFT_LEADER_CHANGES,
            replica.leader_changes.load(Ordering::Relaxed),
        )?;
        if let Some(staleness) = replica.freshness.staleness() {
            self.gauge(&catalog::STALENESS, staleness.as_secs_f64())?;
        }
        let Some(matched) = &raft.matched else {
            return Ok(());
        };
        let last = known(raft.last_log);
        let lags = matched
            .iter()
            .map(|(node, matched)| (*node, last.saturating_sub(known(*matched))));
        self.gauges(&catalog::RAFT_FOLLOWER_LAG, lags)
    }

    fn store(&mut self, numbers: &StoreNumbers) -> Result<(), Error> {
        let StoreNumbers { log, state, .. } = numbers;
        let both = |log, state| [("log", log), ("state", state)];
        for (metric, values) in [
            (&catalog::ROCKSDB_WAL, both(log.wal_bytes, state.wal_bytes)),
            (
                &catalog::ROCKSDB_MEMTABLE,
                both(log.memtable_bytes, state.memtable_bytes),
            ),
            (&catalog::ROCKSDB_SST, both(log.sst_bytes, state.sst_bytes)),
            (
                &catalog::ROCKSDB_PENDING_COMPACTION,
                both(log.pending_compaction_bytes, state.pending_compaction_bytes),
            ),
        ] {
            self.gauges(metric, values)?;
        }
        self.counters(
            &catalog::ROCKSDB_BACKGROUND_ERRORS,
            both(log.background_errors, state.background_errors),
        )?;
        self.counter(&catalog::RAFT_SNAPSHOTS_FAILED, numbers.snapshots_failed)?;
        self.counter(&catalog::RAFT_SNAPSHOTS_DAMAGED, numbers.snapshots_damaged)?;
        self.gauge(&catalog::ROCKSDB_BLOCK_CACHE, log.block_cache_bytes)?;
        self.histogram(&catalog::LOG_SYNC_DURATION, &numbers.sync)?;
        self.counter(&catalog::LOG_ENTRIES_SYNCED, numbers.synced_entries)?;
        self.histogram(&catalog::APPLY_DURATION, &numbers.apply)?;
        self.counter(&catalog::LOG_ENTRIES_APPLIED, numbers.applied_entries)
    }

    fn histogram(&mut self, metric: &Metric, histogram: &Histogram) -> Result<(), Error> {
        histogram.encode(self.begin(metric)?)
    }

    fn model(&mut self, replica: &Replica) -> Result<(), Error> {
        let cluster = &replica.views.current().cluster;
        let sizes = cluster.default_partition().sizes();
        for (metric, value) in [
            (&catalog::MODEL_TREES, sizes.trees),
            (&catalog::MODEL_PROVIDERS, sizes.providers),
            (&catalog::MODEL_CONSUMERS, sizes.consumers),
            (&catalog::MODEL_RESOURCE_CLASSES, sizes.resource_classes),
            (&catalog::MODEL_TRAITS, sizes.traits),
        ] {
            self.gauge(metric, value)?;
        }
        let others = || {
            let others = cluster.partitions();
            others.map(|(_, row, state)| (row.name.as_str(), state.sizes()))
        };
        let providers = others().map(|(name, sizes)| (name, sizes.providers as u64));
        self.gauges(&catalog::PARTITION_PROVIDERS, providers)?;
        let consumers = others().map(|(name, sizes)| (name, sizes.consumers as u64));
        self.gauges(&catalog::PARTITION_CONSUMERS, consumers)
    }

    fn process(&mut self, process: &Process) -> Result<(), Error> {
        for (metric, value) in [
            (
                &catalog::PROCESS_RESIDENT_MEMORY,
                process.resident_memory_bytes,
            ),
            (&catalog::PROCESS_OPEN_FDS, process.open_fds),
            (&catalog::PROCESS_MAX_FDS, process.max_fds),
        ] {
            if let Some(value) = value {
                self.gauge(metric, value)?;
            }
        }
        Ok(())
    }
}
