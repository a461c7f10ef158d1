//! `[[partitions]]`: what this node has for a partition: a listener, a policy, limits. Which hosts and paths are whose
//! is in the state of the cluster.
//!
//! They are tables of the file only: a list of tables has no flag, and no variable.

use std::path::PathBuf;

use placement_model::cluster::RoutedBy;
use placement_model::types::PartitionName;
use placement_raft_store::is_label;
use serde::{Deserialize, Serialize};

use super::load::{check_address, is_loopback};
use super::{Config, ConfigError};
use crate::http::{ApiSettings, CallerLimits, PolicySettings, PublicAddress};

/// One of `[[partitions]]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSection {
    /// The partition, as `placementctl partitions` names it.
    pub name: String,
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
                "is the partition that [api], [policy] and [callers] are for",
            )),
        }
    }

    /// What is different for it of what the API is told.
    pub(crate) fn settings(&self, default: &ApiSettings, by: Option<&RoutedBy>) -> ApiSettings {
        let mut settings = default.clone();
        settings.public = match by {
            Some(RoutedBy::Prefix(prefix)) => default.public.elsewhere(prefix.path()),
            Some(RoutedBy::Host(_) | RoutedBy::AnyHost) | None => PublicAddress {
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

    /// A connection is one partition's.
    pub(super) fn validate_partitions(&self) -> Result<(), ConfigError> {
        for (place, partition) in self.partitions.iter().enumerate() {
            partition.name()?;
            let earlier = &self.partitions[..place];
            if earlier.iter().any(|other| other.name == partition.name) {
                return Err(partition.invalid("name", "is given twice: one table has all of it"));
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
            let address = &partition.listen;
            if address.is_empty() {
                continue;
            }
            check_address("partitions.listen", address, true)?;
            let is_same =
                |other: &&PartitionSection| other.listen == *address && !address.ends_with(":0");
            if let Some(other) = earlier.iter().find(is_same) {
                let words = format!(
                    "{address} is the listener of partition {} already",
                    other.name
                );
                return Err(partition.invalid("listen", &words));
            }
            self.validate_listener(partition, address)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(name: &str, listen: &str) -> PartitionSection {
        PartitionSection {
            name: name.to_owned(),
            listen: listen.to_owned(),
            ..PartitionSection::default()
        }
    }

    fn refused(partitions: Vec<PartitionSection>) -> Option<String> {
        let mut config = Config {
            node_id: 1,
            partitions,
            ..Config::default()
        };
        config.auth.strategy = "noauth2".to_owned();
        config.validate().err().map(|error| error.to_string())
    }

    #[test]
    fn partitions_with_listeners_of_their_own_are_accepted() {
        let two = ["north", "south"].map(|name| partition(name, "127.0.0.1:0"));
        assert_eq!(refused(two.to_vec()), None);
        assert_eq!(refused(vec![partition("north", "")]), None);
    }

    #[test]
    fn a_table_that_cannot_be_used_is_refused_with_the_reason() {
        let listen = |name: &str| partition(name, "127.0.0.1:9000");
        for (partitions, words) in [
            (vec![partition("default", "")], "[api]"),
            (vec![partition("North", "")], "partition name"),
            (vec![listen("north"), partition("north", "")], "given twice"),
            (
                vec![listen("north"), listen("south")],
                "the listener of partition north",
            ),
            (vec![partition("a", "127.0.0.1:8778")], "api.listen already"),
            (
                vec![partition("a", "10.0.0.1:8778")],
                "noauth2 believes whoever asks",
            ),
            (vec![partition("a", "nowhere")], "host:port"),
        ] {
            let error = refused(partitions.clone());
            assert!(
                error.as_ref().is_some_and(|error| error.contains(words)),
                "{partitions:?}: {error:?}"
            );
        }
    }
}
