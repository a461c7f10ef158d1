//! Numbers of HTTP requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// The route of a request that ended before a route was found.
const NO_ROUTE: &str = "none";

/// What one HTTP request counts under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HttpLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

/// The requests of one partition.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<AtomicU64>);

impl Requests {
    /// One more was answered.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// HTTP requests.
#[derive(Clone)]
pub(crate) struct HttpMetrics {
    pub(super) requests: Family<HttpLabels, Histogram, fn() -> Histogram>,
    pub(super) connections: Gauge,
    /// Of the partitions beside the default one.
    by_partition: Arc<Mutex<BTreeMap<String, Requests>>>,
}

impl HttpMetrics {
    pub(super) fn new() -> Self {
        Self {
            requests: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_1, 2.5, 14))
            }),
            connections: Gauge::default(),
            by_partition: Arc::default(),
        }
    }

    /// One request was answered, by this route if one was found.
    pub(crate) fn answered(
        &self,
        method: &str,
        route: Option<&'static str>,
        status: u16,
        took: Duration,
    ) {
        const METHODS: [&str; 7] = ["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"];
        // Methods are the client's words: unknown ones count together.
        let known = METHODS.into_iter().find(|known| *known == method);
        let labels = HttpLabels {
            method: known.unwrap_or("other"),
            route: route.unwrap_or(NO_ROUTE),
            status,
        };
        self.requests
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// What counts the requests of a partition.
    pub(crate) fn requests_of(&self, partition: &str) -> Requests {
        let mut known = self.by_partition.lock();
        known.entry(partition.to_owned()).or_default().clone()
    }

    /// How many requests were answered, by partition.
    pub(super) fn by_partition(&self) -> Vec<(String, u64)> {
        let known = self.by_partition.lock();
        let now = |requests: &Requests| requests.0.load(Ordering::Relaxed);
        let named = known
            .iter()
            .map(|(name, requests)| (name.clone(), now(requests)));
        named.collect()
    }

    /// Open connections of the REST API.
    pub(crate) fn connections(&self) -> &Gauge {
        &self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_under_the_route_that_served_it_and_no_word_of_the_client() {
        let http = HttpMetrics::new();
        let took = Duration::from_millis(3);
        http.answered("GET", Some("/traits"), 200, took);
        http.answered("BREW", None, 404, took);
        let count = |method, route, status| {
            let labels = HttpLabels {
                method,
                route,
                status,
            };
            http.requests.get(&labels).is_some()
        };
        assert!(count("GET", "/traits", 200));
        assert!(count("other", NO_ROUTE, 404));
    }
}
