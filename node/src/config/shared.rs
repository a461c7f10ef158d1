//! The settings that should be equal on all nodes of a cluster, for comparison.

use std::collections::BTreeMap;

use super::{Config, PartitionSection, value};
use placement_base::settings::Kind;

/// Sections whose settings are all shared.
const SECTIONS: [&str; 3] = ["auth", "callers", "candidates"];

/// Shared settings of other sections.
const SETTINGS: [&str; 11] = [
    "api.prefix",
    "api.public_url",
    "api.trust_proxy_headers",
    "cluster.autopilot_after_s",
    "cluster.leader_preference",
    "cluster.survive",
    "cluster_id",
    "initial_members",
    "policy.enforce_new_defaults",
    "policy.enforce_scope",
    "raft.round_trip_ms",
];

/// Settings that a node may leave out: it joined later, or is not bound to the cluster yet.
const MAY_BE_EMPTY: [&str; 2] = ["cluster_id", "initial_members"];

impl Config {
    /// The shared settings by `section.key`, with their values. They contain no secrets.
    pub(crate) fn shared(&self) -> BTreeMap<String, String> {
        let table = self.table();
        let mut shared = BTreeMap::new();
        for setting in Self::settings() {
            let path = setting.path();
            let is_shared =
                SECTIONS.contains(&setting.section) || SETTINGS.contains(&path.as_str());
            if !is_shared || matches!(setting.kind, Kind::Secret) {
                continue;
            }
            let value = match value(&table, &setting) {
                // The order of the members has no meaning.
                Some(toml::Value::Array(list)) if path == "initial_members" => {
                    let mut texts: Vec<_> = list.iter().map(ToString::to_string).collect();
                    texts.sort();
                    texts.join(", ")
                }
                value => value.map(ToString::to_string).unwrap_or_default(),
            };
            if !(value.is_empty() && MAY_BE_EMPTY.contains(&path.as_str())) {
                shared.insert(path, value);
            }
        }
        for partition in &self.partitions {
            let PartitionSection { name, .. } = partition;
            let mut share = |key: &str, value: Option<String>| {
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    shared.insert(format!("partitions.{name}.{key}"), value);
                }
            };
            let port = partition.listen.rsplit_once(':');
            share("listen", port.map(|(_, port)| format!("port {port}")));
            share("region", Some(partition.region.clone()));
            let in_flight = partition.in_flight;
            share("in_flight", (in_flight > 0).then(|| in_flight.to_string()));
        }
        for fit in &self.fits {
            shared.insert(format!("fits.{}.query", fit.name), fit.query.clone());
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitions::PartitionSection;
    use placement_base::settings::Text;

    #[test]
    fn shared_settings_exist_and_hold_no_secrets() {
        let config = Config {
            initial_members: ["2=b:1", "1=a:1"]
                .map(|one| Text(one.parse().unwrap()))
                .to_vec(),
            partitions: vec![PartitionSection {
                name: "north".to_owned(),
                listen: "127.0.0.1:9000".to_owned(),
                ..Default::default()
            }],
            ..Config::default()
        };
        let shared = config.shared();
        for path in SETTINGS.iter().filter(|path| **path != "cluster_id") {
            assert!(shared.contains_key(*path), "{path}");
        }
        assert_eq!(shared["initial_members"], r#""1=a:1", "2=b:1""#);
        assert_eq!(shared["partitions.north.listen"], "port 9000");
        assert!(shared.contains_key("callers.user_in_flight"));
        assert!(!shared.keys().any(|path| path.starts_with("keystone")));
        assert!(!shared.contains_key("cluster_id"), "it is not bound");
        assert!(!Config::default().shared().contains_key("initial_members"));
    }
}
