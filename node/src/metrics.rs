//! Metrics for `/metrics`, in Prometheus' text format. `catalog` lists them all.

mod catalog;
mod collector;
mod exposition;
mod holdings;
mod http;
mod last_hour;
mod outlook;
mod process;
mod providers;

pub(crate) use self::collector::{Metrics, Sources};
pub(crate) use self::providers::text as provider_text;
use placement_base::settings::settings;

settings! {
    /// The listener for monitoring.
    MetricsSection {
        /// Address that serves only `/metrics`, `/livez` and `/readyz`, `host:port`, without TLS;
        /// empty: no such listener.
        listen: String = String::new(),
    }
}

/// Content type of Prometheus' text format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use prometheus_client::metrics::MetricType;

    use super::catalog::ALL;
    use super::*;

    fn page() -> String {
        let mut page = "# Metrics\n\n\
            `GET /metrics` on `[metrics] listen` (off by default), on the admin socket and on `[admin] listen`, in\n\
            Prometheus' text format 0.0.4. The metrics of Raft, the store and the model appear once the node belongs to a\n\
            cluster. Units are in the names.\n\n\
            `GET /metrics/providers`, in the same places, returns the inventories of each provider of the default partition\n\
            (`?partition=NAME`: of another one) under the names of openstack-exporter:\n\
            `openstack_placement_resource_{total,reserved,allocation_ratio,usage}{hostname,resourcetype}`. Scrape one node, once\n\
            a minute: a thousand hosts have some 12,000 series. One client at a time gets them, within 60 s; others wait for 5 s,\n\
            and are then refused with 503.\n\n\
            | name and labels | type | meaning |\n|---|---|---|\n"
            .to_owned();
        for metric in ALL {
            let kind = match metric.kind {
                MetricType::Counter => "counter",
                MetricType::Gauge => "gauge",
                MetricType::Histogram => "histogram",
                other => panic!("{other:?} is not in use"),
            };
            let labels = match metric.labels {
                [] => String::new(),
                labels => format!("{{{}}}", labels.join(",")),
            };
            let (name, help) = (metric.name(), metric.help);
            writeln!(page, "| `{name}{labels}` | {kind} | {help} |").unwrap();
        }
        page
    }

    #[test]
    fn page_is_up_to_date() {
        placement_docs::assert_kept("metrics.md", &page());
    }

    /// Source: Prometheus, "Metric and label naming", and the checks of `promtool check metrics`; a
    /// black-box test runs that program itself.
    #[test]
    fn names_follow_the_rules_of_prometheus() {
        let mut names: Vec<String> = ALL.iter().map(catalog::Metric::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ALL.len(), "each name is used once");
        for metric in ALL {
            let name = metric.name();
            let ours = ["placement_", "process_"];
            assert!(ours.iter().any(|prefix| name.starts_with(prefix)), "{name}");
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(name.chars().all(plain), "{name}");
            // Units are base units and come last, before the suffix of a counter.
            for word in metric.base.split('_') {
                let no_word = [
                    "total",
                    "count",
                    "sum",
                    "bucket",
                    "counter",
                    "gauge",
                    "histogram",
                    "seconds",
                    "milliseconds",
                    "microseconds",
                    "ms",
                    "us",
                    "s",
                    "bytes",
                    "kb",
                    "mb",
                    "b",
                ];
                assert!(!no_word.contains(&word), "{word} in {name}");
            }
            let help = metric.help;
            assert!(!help.is_empty() && !help.contains(['|', '\n', '\\', '"']));
        }
    }
}
