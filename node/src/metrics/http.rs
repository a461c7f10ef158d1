//! Metrics of HTTP requests.

use std::time::Duration;

use http::{Response, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::last_hour::LastHour;
use placement_api::http::{CONFLICTS, ErrorCode, UNAVAILABLE};

/// Label of a request that ended before a route was found.
const NO_ROUTE: &str = "none";

/// The labels of an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HttpLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

/// The label of an error.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CodeLabel {
    code: &'static str,
}

type ByCode = Family<CodeLabel, Counter>;

/// Each series begins at 0: a series that does not exist yet has no rate.
fn by_code(codes: &[&'static str]) -> ByCode {
    let family = ByCode::default();
    for code in codes {
        drop(family.get_or_create(&CodeLabel { code }));
    }
    family
}

/// A request that is being answered.
pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Metrics of HTTP requests.
pub(crate) struct HttpMetrics {
    pub(super) requests: Family<HttpLabels, Histogram, fn() -> Histogram>,
    /// Open connections of the REST API.
    pub(crate) connections: Gauge,
    pub(super) in_flight: Gauge,
    pub(super) unavailable: ByCode,
    pub(super) conflicts: ByCode,
    last_hour: LastHour,
}

impl HttpMetrics {
    pub(super) fn new() -> Self {
        Self {
            requests: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_1, 2.5, 14))
            }),
            connections: Gauge::default(),
            in_flight: Gauge::default(),
            unavailable: by_code(&UNAVAILABLE),
            conflicts: by_code(&CONFLICTS),
            last_hour: LastHour::new(),
        }
    }

    /// Counts a request as being answered, until the returned value is dropped.
    pub(crate) fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// Counts an answered request, with its route if one was found.
    pub(crate) fn answered<T>(
        &self,
        method: &str,
        route: Option<&'static str>,
        response: &Response<T>,
        took: Duration,
    ) {
        const METHODS: [&str; 7] = ["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"];
        // The client chooses the method: unknown ones count together.
        let known = METHODS.into_iter().find(|known| *known == method);
        let labels = HttpLabels {
            method: known.unwrap_or("other"),
            route: route.unwrap_or(NO_ROUTE),
            status: response.status().as_u16(),
        };
        self.requests
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
        self.last_hour
            .count(response.status() == StatusCode::SERVICE_UNAVAILABLE);
        let by_code = match response.status() {
            StatusCode::SERVICE_UNAVAILABLE => &self.unavailable,
            StatusCode::CONFLICT => &self.conflicts,
            _ => return,
        };
        if let Some(&ErrorCode(code)) = response.extensions().get() {
            by_code.get_or_create(&CodeLabel { code }).inc();
        }
    }

    /// Answered requests in each minute of the last hour, the oldest first, and how many of them
    /// with 503.
    pub(crate) fn by_minute(&self) -> Vec<(u64, u64)> {
        self.last_hour.by_minute()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_counts_under_its_route_and_a_known_method() {
        let http = HttpMetrics::new();
        let took = Duration::from_millis(3);
        let mut response = Response::new(());
        http.answered("GET", Some("/traits"), &response, took);
        *response.status_mut() = StatusCode::NOT_FOUND;
        http.answered("BREW", None, &response, took);
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
