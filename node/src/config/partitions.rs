//! `[[partitions]]`: the clouds that this node serves beside the default one, and which requests are theirs.
//!
//! They are tables of the file only: a list of tables has no flag, and no variable.

use std::path::PathBuf;

use placement_model::types::PartitionName;
use placement_raft_store::is_label;
use serde::{Deserialize, Serialize};

use super::load::{check_address, is_loopback};
use super::{Config, ConfigError};
use crate::http::{ApiSettings, CallerLimits, PathPrefix, PolicySettings, PublicAddress};

/// What the API and this node's checks answer at the root: no partition may stand in its way.
const ROOT_PATHS: [&str; 11] = [
    "allocation_candidates",
    "allocations",
    "livez",
    "openapi.json",
    "readyz",
    "reshaper",
    "resource_classes",
    "resource_providers",
    "traits",
    "usages",
    "metrics",
];

/// One of `[[partitions]]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSection {
    /// The partition, as `placementctl partitions` names it.
    pub name: String,
    /// Path below which its API is, on the listener of `[api]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Host that its clients ask for, without a port, on the listener of `[api]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Address of a listener of its own, `host:port`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub listen: String,
    /// The region in which its cloud is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Its policy file, in place of `[policy] file` and `policy_dirs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_file: Option<PathBuf>,
    /// Requests that are being answered at once, of all its callers; 0: no bound.
    #[serde(default)]
    pub in_flight: usize,
    /// In place of `[callers] user_in_flight`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_in_flight: Option<usize>,
    /// In place of `[callers] user_per_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_per_s: Option<u64>,
    /// In place of `[callers] address_in_flight`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_in_flight: Option<usize>,
    /// In place of `[callers] address_per_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_per_s: Option<u64>,
}

/// How requests come to a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Below this path.
    Prefix(PathPrefix),
    /// By this host, in lower case.
    Host(String),
    /// By a listener of its own.
    Listen(String),
}

impl PartitionSection {
    /// The partition.
    pub(crate) fn name(&self) -> Result<PartitionName, ConfigError> {
        let name = self.name.parse::<PartitionName>();
        let name =
            name.map_err(|wrong| ConfigError::invalid("partitions.name", wrong.to_string()))?;
        match name.is_default() {
            false => Ok(name),
            true => Err(self.invalid(
                "name",
                "is what no other partition claims: it cannot be given requests",
            )),
        }
    }

    /// All ways that lead to it; at least one.
    pub(crate) fn ways(&self) -> Result<Vec<Way>, ConfigError> {
        let mut ways = Vec::new();
        if !self.prefix.is_empty() {
            let prefix: PathPrefix =
                (self.prefix.parse()).map_err(|why: &str| self.invalid("prefix", why))?;
            if prefix.is_root() {
                return Err(self.invalid("prefix", "is the root, which is the default partition's"));
            }
            ways.push(Way::Prefix(prefix));
        }
        if !self.host.is_empty() {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
            let has_port = !self.host.ends_with(']') && self.host.contains(':');
            if !self.host.chars().all(fits) || has_port {
                let why = "is not the name or the address of a host, without a port";
                return Err(self.invalid("host", why));
            }
            ways.push(Way::Host(self.host.to_ascii_lowercase()));
        }
        if !self.listen.is_empty() {
            check_address("partitions.listen", &self.listen, true)?;
            ways.push(Way::Listen(self.listen.clone()));
        }
        match ways.is_empty() {
            false => Ok(ways),
            true => Err(self.invalid(
                "prefix",
                "is missing, and so are host and listen: no request would come to it",
            )),
        }
    }

    /// What is different for it of what the API is told.
    pub(crate) fn settings(&self, default: &ApiSettings, way: &Way) -> ApiSettings {
        let mut settings = default.clone();
        settings.public = match way {
            Way::Prefix(prefix) => default.public.elsewhere(prefix),
            Way::Host(_) | Way::Listen(_) => PublicAddress {
                url: None,
                ..default.public.clone()
            },
        };
        if let Some(policy) = self.policy_settings(&settings.policy) {
            settings.policy = policy;
        }
        settings.partition = Some(self.name.clone());
        settings.whole = CallerLimits {
            in_flight: self.in_flight,
            per_s: 0,
        };
        let (users, addresses) = (&mut settings.users, &mut settings.addresses);
        users.in_flight = self.user_in_flight.unwrap_or(users.in_flight);
        users.per_s = self.user_per_s.unwrap_or(users.per_s);
        addresses.in_flight = self.address_in_flight.unwrap_or(addresses.in_flight);
        addresses.per_s = self.address_per_s.unwrap_or(addresses.per_s);
        settings
    }

    /// The policy, if it has one of its own.
    pub(crate) fn policy_settings(&self, default: &PolicySettings) -> Option<PolicySettings> {
        Some(PolicySettings {
            file: Some(self.policy_file.clone()?),
            directories: Vec::new(),
            ..default.clone()
        })
    }

    fn invalid(&self, key: &str, why: &str) -> ConfigError {
        ConfigError::invalid(
            &format!("partitions.{key}"),
            format!("of partition {:?}: {why}", self.name),
        )
    }
}

impl Config {
    /// The policies of partitions that have one of their own, by name.
    pub(crate) fn policies_of_partitions(&self) -> Vec<(String, PolicySettings)> {
        let default = self.policy_settings();
        let own = self.partitions.iter().filter_map(|partition| {
            let settings = partition.policy_settings(&default)?;
            Some((partition.name.clone(), settings))
        });
        own.collect()
    }

    /// No request may be two partitions', and none of the default one may be taken away by chance.
    pub(super) fn validate_partitions(&self) -> Result<(), ConfigError> {
        let public = self.public_address()?;
        let mut seen: Vec<(&PartitionSection, Way)> = Vec::new();
        for (place, partition) in self.partitions.iter().enumerate() {
            partition.name()?;
            let earlier = &self.partitions[..place];
            if earlier.iter().any(|other| other.name == partition.name) {
                return Err(partition.invalid("name", "is given twice: one table has all its ways"));
            }
            if !is_label(&partition.region) {
                return Err(partition.invalid("region", "is not the name of a region"));
            }
            if partition
                .policy_file
                .as_ref()
                .is_some_and(|file| file.as_os_str().is_empty())
            {
                return Err(partition.invalid("policy_file", "is empty"));
            }
            for way in partition.ways()? {
                if let Some((other, _)) = seen.iter().find(|(_, other)| other.meets(&way)) {
                    let words = format!("the same requests are partition {}'s: {way}", other.name);
                    return Err(partition.invalid(way.key(), &words));
                }
                if let Some(words) = way.takes_from(&public.prefix) {
                    return Err(partition.invalid(way.key(), &words));
                }
                if let Way::Listen(address) = &way {
                    self.validate_listener(partition, address)?;
                }
                seen.push((partition, way));
            }
        }
        Ok(())
    }

    fn validate_listener(
        &self,
        partition: &PartitionSection,
        address: &str,
    ) -> Result<(), ConfigError> {
        let others = [
            ("api", &self.api.listen),
            ("peer", &self.peer.listen),
            ("admin", &self.admin.listen),
            ("metrics", &self.metrics.listen),
        ];
        let taken = |other: &str| other == address && !address.ends_with(":0");
        if let Some((key, _)) = others.into_iter().find(|(_, other)| taken(other)) {
            return Err(partition.invalid("listen", &format!("{address} is {key}.listen already")));
        }
        let is_open = self.auth.strategy == "noauth2" && !self.auth.noauth2_beyond_loopback;
        if is_open && !is_loopback(address) {
            let words = format!(
                "noauth2 believes whoever asks, and others reach {address}: use keystone or proxy, or set \
                 auth.noauth2_beyond_loopback"
            );
            return Err(partition.invalid("listen", &words));
        }
        Ok(())
    }
}

impl Way {
    fn key(&self) -> &'static str {
        match self {
            Self::Prefix(_) => "prefix",
            Self::Host(_) => "host",
            Self::Listen(_) => "listen",
        }
    }

    /// Whether a request could come by both.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Prefix(one), Self::Prefix(other)) => one.covers(other) || other.covers(one),
            (Self::Host(one), Self::Host(other)) => one == other,
            (Self::Listen(one), Self::Listen(other)) => one == other && !one.ends_with(":0"),
            _ => false,
        }
    }

    /// What it would take from the default partition, which is below `prefix`.
    fn takes_from(&self, prefix: &PathPrefix) -> Option<String> {
        let Self::Prefix(own) = self else {
            return None;
        };
        if own.covers(prefix) {
            return Some(format!(
                "the default partition is below {own} too: {prefix}"
            ));
        }
        let below = own.as_str().strip_prefix(prefix.as_str())?;
        let first = below.strip_prefix('/')?.split('/').next()?;
        (ROOT_PATHS.contains(&first))
            .then(|| format!("{own} is a path of the default partition's API"))
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(f, "those below {prefix}"),
            Self::Host(host) => write!(f, "those for host {host}"),
            Self::Listen(address) => write!(f, "those to {address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(name: &str, prefix: &str, host: &str, listen: &str) -> PartitionSection {
        PartitionSection {
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            host: host.to_owned(),
            listen: listen.to_owned(),
            ..PartitionSection::default()
        }
    }

    fn refused(api_prefix: &str, partitions: Vec<PartitionSection>) -> Option<String> {
        let mut config = Config {
            node_id: 1,
            partitions,
            ..Config::default()
        };
        config.api.prefix = api_prefix.to_owned();
        config.auth.strategy = "noauth2".to_owned();
        config.validate().err().map(|error| error.to_string())
    }

    #[test]
    fn partitions_with_ways_of_their_own_are_taken() {
        let two = vec![
            partition("north", "/north/placement", "North.example", "127.0.0.1:0"),
            partition("south", "/south/placement", "south.example", "127.0.0.1:0"),
        ];
        assert_eq!(refused("", two.clone()), None);
        assert_eq!(refused("/placement", two), None);
        let below = vec![partition("north", "/placement/north", "", "")];
        assert_eq!(refused("/placement", below), None);
    }

    #[test]
    fn what_could_lead_to_two_partitions_is_refused_in_words() {
        let north = || partition("north", "/north", "", "");
        for (prefix, partitions, words) in [
            (
                "",
                vec![partition("default", "/d", "", "")],
                "no other partition claims",
            ),
            ("", vec![partition("North", "/n", "", "")], "partition name"),
            (
                "",
                vec![partition("north", "", "", "")],
                "no request would come to it",
            ),
            (
                "",
                vec![north(), partition("north", "/n", "", "")],
                "given twice",
            ),
            (
                "",
                vec![north(), partition("south", "/north", "", "")],
                "partition north's",
            ),
            (
                "",
                vec![north(), partition("south", "/north/s", "", "")],
                "partition north's",
            ),
            (
                "",
                vec![partition("north", "/traits/x", "", "")],
                "default partition's API",
            ),
            (
                "/p",
                vec![partition("north", "/p/traits", "", "")],
                "default partition's API",
            ),
            (
                "/p",
                vec![partition("north", "/p", "", "")],
                "the default partition is below",
            ),
            (
                "/p/q",
                vec![partition("north", "/p", "", "")],
                "the default partition is below",
            ),
            ("", vec![partition("north", "/", "", "")], "is the root"),
            ("", vec![partition("north", "north", "", "")], "begin with"),
            (
                "",
                vec![partition("north", "", "a:80", "")],
                "without a port",
            ),
            (
                "",
                vec![
                    partition("a", "", "h.example", ""),
                    partition("b", "", "H.example", ""),
                ],
                "those for host h.example",
            ),
            (
                "",
                vec![partition("a", "", "", "127.0.0.1:8778")],
                "api.listen already",
            ),
            (
                "",
                vec![partition("a", "", "", "10.0.0.1:8778")],
                "noauth2 believes whoever asks",
            ),
            ("", vec![partition("a", "", "", "nowhere")], "host:port"),
        ] {
            let said = refused(prefix, partitions.clone());
            assert!(
                said.as_ref().is_some_and(|said| said.contains(words)),
                "{partitions:?}: {said:?}"
            );
        }
    }
}
