//! Numbers for `/metrics`, in Prometheus' text format.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openraft::ServerState;
use openraft::async_runtime::watch::WatchReceiver;
use placement_raft_store::{DatabaseNumbers, Histogram as StoreHistogram};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::cluster::group::Group;
use crate::cluster::seat::Seat;

/// What one HTTP request counts under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HttpLabels {
    method: String,
    route: String,
    status: u16,
}

/// HTTP requests.
#[derive(Clone)]
pub(crate) struct HttpMetrics {
    requests: Family<HttpLabels, Histogram, fn() -> Histogram>,
    connections: Gauge,
}

impl HttpMetrics {
    fn new() -> Self {
        Self {
            requests: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_1, 2.5, 14))
            }),
            connections: Gauge::default(),
        }
    }

    /// One request was answered.
    pub(crate) fn answered(&self, method: &str, path: &str, status: u16, took: Duration) {
        // Methods are the client's words: unknown ones count together.
        let method = match method {
            "GET" | "PUT" | "POST" | "DELETE" | "HEAD" | "OPTIONS" | "PATCH" => method,
            _ => "other",
        };
        let labels = HttpLabels {
            method: method.to_owned(),
            route: route(path),
            status,
        };
        self.requests
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// Open connections of the REST API.
    pub(crate) fn connections(&self) -> &Gauge {
        &self.connections
    }
}

/// The route of a path, with what clients choose left out: at most a few dozen.
fn route(path: &str) -> String {
    const NOUNS: [&str; 8] = [
        "resource_providers",
        "resource_classes",
        "traits",
        "allocations",
        "allocation_candidates",
        "usages",
        "reshaper",
        "openapi.json",
    ];
    const PARTS: [&str; 5] = [
        "inventories",
        "usages",
        "aggregates",
        "traits",
        "allocations",
    ];
    let mut segments = path.trim_start_matches('/').split('/');
    let route = match segments.next() {
        Some("") | None => return "/".to_owned(),
        Some(noun) if NOUNS.contains(&noun) => noun,
        Some(_) => return "other".to_owned(),
    };
    match (
        segments.next(),
        segments.next(),
        segments.next(),
        segments.next(),
    ) {
        (None, ..) => format!("/{route}"),
        (Some(_), None, ..) => format!("/{route}/{{id}}"),
        (Some(_), Some(part), None, _) if PARTS.contains(&part) => {
            format!("/{route}/{{id}}/{part}")
        }
        (Some(_), Some(part), Some(_), None) if PARTS.contains(&part) => {
            format!("/{route}/{{id}}/{part}/{{id}}")
        }
        _ => "other".to_owned(),
    }
}

/// Rounds of asking the leader how far reads must be.
#[derive(Debug, Default)]
pub(crate) struct ReadMetrics {
    rounds: AtomicU64,
    reads: AtomicU64,
    failures: AtomicU64,
    micros: AtomicU64,
}

impl ReadMetrics {
    /// One round served this many reads.
    pub(crate) fn round(&self, reads: usize, took: Duration) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.reads.fetch_add(reads as u64, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// One round got no answer.
    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

/// All numbers of one node.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) http: HttpMetrics,
}

impl Metrics {
    pub(crate) fn new(seat: Arc<Seat>, reads: Arc<ReadMetrics>) -> Self {
        let mut registry = Registry::with_prefix("placement");
        let http = HttpMetrics::new();
        registry.register_with_unit(
            "http_request_duration",
            "Time to answer requests of the REST API",
            Unit::Seconds,
            http.requests.clone(),
        );
        registry.register(
            "http_connections",
            "Open connections of the REST API",
            http.connections.clone(),
        );
        registry.register_collector(Box::new(NodeCollector { seat, reads }));
        Self { registry, http }
    }

    /// The numbers now, as Prometheus reads them.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("writing to a string does not fail");
        text
    }
}

/// Reads what Raft, the store and the model say when it is asked for.
struct NodeCollector {
    seat: Arc<Seat>,
    reads: Arc<ReadMetrics>,
}

impl std::fmt::Debug for NodeCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeCollector")
    }
}

impl Collector for NodeCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut out = Out { encoder };
        out.counter(
            "read_rounds",
            "Questions to the leader how far reads must be",
            self.reads.rounds.load(Ordering::Relaxed),
        )?;
        out.counter(
            "read_rounds_failed",
            "Such questions without an answer",
            self.reads.failures.load(Ordering::Relaxed),
        )?;
        out.counter(
            "reads_linearized",
            "Reads that were served by such questions",
            self.reads.reads.load(Ordering::Relaxed),
        )?;
        out.counter(
            "read_rounds_microseconds",
            "Time spent on such questions",
            self.reads.micros.load(Ordering::Relaxed),
        )?;
        let Some(group) = self.seat.now() else {
            return out.gauge("member", "1 if this node belongs to a cluster", 0.0);
        };
        out.gauge("member", "1 if this node belongs to a cluster", 1.0)?;
        out.raft(&group)?;
        out.store(&group)?;
        out.model(&group)
    }
}

struct Out<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Out<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: f64) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::new(value);
        let encoder = self
            .encoder
            .encode_descriptor(name, help, None, gauge.metric_type())?;
        gauge.encode(encoder)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), std::fmt::Error> {
        let counter = ConstCounter::new(value);
        let encoder = self
            .encoder
            .encode_descriptor(name, help, None, counter.metric_type())?;
        counter.encode(encoder)
    }

    fn raft(&mut self, group: &Group) -> Result<(), std::fmt::Error> {
        let metrics = {
            let receiver = group.raft.metrics();
            let metrics = receiver.borrow_watched();
            metrics.clone()
        };
        let known = |index: Option<u64>| index.unwrap_or(0) as f64;
        let committed = metrics.local_committed.map(|id| id.index());
        self.gauge("raft_term", "The term", metrics.current_term as f64)?;
        let leads = metrics.state == ServerState::Leader;
        self.gauge(
            "raft_leads",
            "1 if this node leads",
            f64::from(u8::from(leads)),
        )?;
        self.gauge(
            "raft_leader",
            "The leader's number, 0 if none is known",
            known(metrics.current_leader),
        )?;
        self.gauge(
            "raft_last_log_index",
            "The last entry of this node's log",
            known(metrics.last_log_index),
        )?;
        self.gauge(
            "raft_committed_index",
            "The last entry this node knows to be committed",
            known(committed),
        )?;
        self.gauge(
            "raft_applied_index",
            "The last entry this node has applied",
            known(group.views.applied_index()),
        )?;
        self.gauge(
            "raft_snapshot_index",
            "The last entry of the newest snapshot",
            known(metrics.snapshot.map(|id| id.index())),
        )?;
        self.gauge(
            "raft_purged_index",
            "The last entry purged from the log",
            known(metrics.purged.map(|id| id.index())),
        )?;
        self.gauge(
            "storage_failed",
            "1 if this node's disk has failed",
            f64::from(u8::from(group.failure().is_some())),
        )?;
        if let Some(staleness) = group.freshness.staleness() {
            self.gauge(
                "staleness_seconds",
                "How old this node's state may be at most",
                staleness.as_secs_f64(),
            )?;
        }
        let last = metrics.last_log_index.unwrap_or(0);
        if let Some(replication) = &metrics.replication {
            let lags: Family<NodeLabel, Gauge> = Family::default();
            for (node, matched) in replication {
                let lag = last.saturating_sub(matched.map_or(0, |id| id.index()));
                lags.get_or_create(&NodeLabel { node: *node })
                    .set(i64::try_from(lag).unwrap_or(i64::MAX));
            }
            let encoder = self.encoder.encode_descriptor(
                "raft_follower_lag",
                "Log entries that a node lacks, as the leader knows",
                None,
                lags.metric_type(),
            )?;
            lags.encode(encoder)?;
        }
        Ok(())
    }

    fn store(&mut self, group: &Group) -> Result<(), std::fmt::Error> {
        let numbers = group.store_metrics.read();
        self.database("log", &numbers.log)?;
        self.database("state", &numbers.state)?;
        self.histogram("log_sync", "Time to sync the log", &numbers.sync)?;
        self.histogram("apply", "Time to apply a batch of entries", &numbers.apply)?;
        self.counter(
            "log_entries_synced",
            "Log entries synced",
            numbers.synced_entries,
        )?;
        self.counter(
            "log_entries_applied",
            "Log entries applied",
            numbers.applied_entries,
        )
    }

    fn database(&mut self, name: &str, numbers: &DatabaseNumbers) -> Result<(), std::fmt::Error> {
        for (what, help, value) in [
            (
                "wal_bytes",
                "Bytes of write-ahead log files",
                numbers.wal_bytes,
            ),
            (
                "memtable_bytes",
                "Bytes of write buffers",
                numbers.memtable_bytes,
            ),
            ("sst_bytes", "Bytes of sorted files", numbers.sst_bytes),
            (
                "pending_compaction_bytes",
                "Bytes that compactions must rewrite",
                numbers.pending_compaction_bytes,
            ),
            (
                "block_cache_bytes",
                "Bytes of the block cache in use",
                numbers.block_cache_bytes,
            ),
            (
                "background_errors",
                "Background errors since start",
                numbers.background_errors,
            ),
        ] {
            self.gauge(&format!("rocksdb_{name}_{what}"), help, value as f64)?;
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        histogram: &StoreHistogram,
    ) -> Result<(), std::fmt::Error> {
        let buckets: Vec<(f64, u64)> = histogram
            .buckets
            .iter()
            .map(|(bound, count)| (if bound.is_finite() { *bound } else { f64::MAX }, *count))
            .collect();
        let mut encoder = self.encoder.encode_descriptor(
            name,
            help,
            Some(&Unit::Seconds),
            prometheus_client::metrics::MetricType::Histogram,
        )?;
        encoder.encode_histogram::<prometheus_client::encoding::NoLabelSet>(
            histogram.sum_seconds,
            histogram.count,
            &buckets,
            None,
        )
    }

    fn model(&mut self, group: &Group) -> Result<(), std::fmt::Error> {
        let sizes = group.views.current().state.sizes();
        for (name, help, value) in [
            ("model_trees", "Provider trees", sizes.trees),
            ("model_providers", "Resource providers", sizes.providers),
            ("model_consumers", "Consumers", sizes.consumers),
            (
                "model_resource_classes",
                "Resource classes",
                sizes.resource_classes,
            ),
            ("model_traits", "Traits", sizes.traits),
        ] {
            self.gauge(name, help, value as f64)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabel {
    node: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_choose_makes_no_routes() {
        for (path, expected) in [
            ("/", "/"),
            ("/resource_providers", "/resource_providers"),
            ("/resource_providers/abc", "/resource_providers/{id}"),
            (
                "/resource_providers/abc/inventories/VCPU",
                "/resource_providers/{id}/inventories/{id}",
            ),
            ("/resource_providers/abc/whatever", "other"),
            ("/anything/else", "other"),
            ("/traits/HW_X/inventories/a/b/c", "other"),
        ] {
            assert_eq!(route(path), expected);
        }
    }
}
