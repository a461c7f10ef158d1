//! The tables `[[partitions]]`: this node's listener, policy and limits for a partition. The state
//! of the cluster contains the routes.

use std::path::PathBuf;

use placement_model::cluster::RoutedBy;
use placement_model::types::PartitionName;
use placement_raft_store::is_label;

use placement_api::http::{ApiSettings, PublicAddress};
use placement_base::settings::{Invalid, check_address, settings};
use placement_policy::PolicySettings;

settings! {
    /// A cloud that this node serves besides the default one. These tables exist only in the file:
    /// a list of tables has no flag and no variable.
    PartitionSection {
        /// Name of the partition, as in `placementctl partitions`. Required.
        name: String = String::new(),
        /// Address of the partition's own listener, `host:port`; empty: none.
        listen: String = String::new(),
        /// Region of the cloud. `placementctl topology` shows the latency of reads and writes
        /// through the nodes of this region. Empty: it shows no latency.
        region: String = String::new(),
        /// Policy file of the partition, which replaces `[policy] file` and `policy_dirs`.
        policy_file: Option<PathBuf> = None,
        /// Maximum number of concurrent requests to the partition; 0: no limit.
        in_flight: usize = 0,
    }
}

impl PartitionSection {
    /// The name of the partition.
    ///
    /// # Errors
    /// The name is malformed or that of the default partition.
    pub(crate) fn name(&self) -> Result<PartitionName, Invalid> {
        let name = self
            .name
            .parse::<PartitionName>()
            .map_err(|wrong| Invalid::new("partitions.name", wrong.to_string()))?;
        if name.is_default() {
            Err(self.invalid(
                "name",
                "is the default partition, which [api], [policy] and [callers] configure",
            ))
        } else {
            Ok(name)
        }
    }

    /// The API's settings for this partition.
    pub(crate) fn settings(&self, default: &ApiSettings, by: Option<&RoutedBy>) -> ApiSettings {
        let mut settings = default.clone();
        settings.public = match by {
            Some(RoutedBy::Prefix(prefix)) => default.public.elsewhere(prefix.path()),
            Some(RoutedBy::Host(_) | RoutedBy::AnyHost) | None => PublicAddress {
                url: None,
                ..default.public.clone()
            },
        };
        if let Some(policy) = self.policy(&settings.policy) {
            settings.policy = policy;
        }
        settings.partition = Some(self.name.clone());
        settings.in_flight = self.in_flight;
        settings
    }

    /// The policy, if it has one of its own.
    pub(crate) fn policy(&self, default: &PolicySettings) -> Option<PolicySettings> {
        Some(PolicySettings {
            file: Some(self.policy_file.clone()?),
            policy_dirs: Vec::new(),
            ..default.clone()
        })
    }

    /// # Errors
    /// The table is invalid, or conflicts with an earlier one.
    pub(crate) fn check(&self, earlier: &[Self]) -> Result<(), Invalid> {
        self.name()?;
        if earlier.iter().any(|other| other.name == self.name) {
            return Err(self.invalid("name", "is given twice: use one table"));
        }
        if !is_label(&self.region) {
            return Err(self.invalid("region", "is not the name of a region"));
        }
        if (self.policy_file.as_ref()).is_some_and(|file| file.as_os_str().is_empty()) {
            return Err(self.invalid("policy_file", "is empty"));
        }
        let address = &self.listen;
        if address.is_empty() {
            return Ok(());
        }
        check_address("partitions.listen", address, true)?;
        let is_same = |other: &&Self| other.listen == *address && !address.ends_with(":0");
        match earlier.iter().find(is_same) {
            None => Ok(()),
            Some(other) => Err(self.invalid(
                "listen",
                &format!(
                    "{address} is already the listener of partition {}",
                    other.name
                ),
            )),
        }
    }

    /// An error in a setting of this table.
    pub(crate) fn invalid(&self, key: &str, why: &str) -> Invalid {
        Invalid::new(
            &format!("partitions.{key}"),
            format!("of partition {:?}: {why}", self.name),
        )
    }
}

/// The policies of partitions with a policy of their own, by name.
pub(crate) fn own_policies(
    sections: &[PartitionSection],
    default: &PolicySettings,
) -> Vec<(String, PolicySettings)> {
    let own = sections.iter().filter_map(|section| {
        let settings = section.policy(default)?;
        Some((section.name.clone(), settings))
    });
    own.collect()
}
