//! Numbers of HTTP requests.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
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

/// HTTP requests.
pub(crate) struct HttpMetrics {
    pub(super) requests: Family<HttpLabels, Histogram, fn() -> Histogram>,
    /// Open connections of the REST API.
    pub(crate) connections: Gauge,
    /// Of the partitions other than the default one.
    by_partition: Mutex<BTreeMap<String, Counter>>,
}

impl HttpMetrics {
    pub(super) fn new() -> Self {
        Self {
            requests: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_1, 2.5, 14))
            }),
            connections: Gauge::default(),
            by_partition: Mutex::default(),
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
        // The client chooses the method: unknown ones count together.
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

    /// The counter of a partition's requests.
    pub(crate) fn requests_of(&self, partition: &str) -> Counter {
        let mut known = self.by_partition.lock();
        known.entry(partition.to_owned()).or_default().clone()
    }

    /// How many requests were answered, by partition.
    pub(super) fn by_partition(&self) -> BTreeMap<String, u64> {
        let known = self.by_partition.lock();
        let counts = known.iter();
        counts.map(|(name, of)| (name.clone(), of.get())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_under_its_route_and_a_known_method() {
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
