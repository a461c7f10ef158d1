//! `[[partitions]]`: what this node has for a partition: a listener, a policy, limits. Whose hosts
//! and paths are which is in the state of the cluster.

use std::path::PathBuf;

use placement_model::cluster::RoutedBy;
use placement_model::types::PartitionName;
use placement_raft_store::is_label;

use placement_api::http::{
    ApiSettings, CallerLimits, CallersSection, PolicySettings, PublicAddress,
};
use placement_api::settings::{Invalid, check_address, settings};

settings! {
    /// A cloud that this node serves besides the default one. They are tables of the file only: a
    /// list of tables has no flag, and no variable.
    PartitionSection {
        /// The partition, as `placementctl partitions` names it. Required.
        name: String = String::new(),
        /// Address of a listener of its own, `host:port`; empty: it has none.
        listen: String = String::new(),
        /// The region in which its cloud is.
        region: String = String::new(),
        /// Its policy file, in place of `[policy] file` and `policy_dirs`.
        policy_file: Option<PathBuf> = None,
        /// Requests that are being answered at once, of all its callers; 0: no bound.
        in_flight: usize = 0,
        /// In place of `[callers] user_per_s`, in requests a second.
        user_per_s: Option<u64> = None,
        /// In place of `[callers] address_per_s`, in requests a second.
        address_per_s: Option<u64> = None,
    }
}

impl PartitionSection {
    /// The partition.
    pub(crate) fn name(&self) -> Result<PartitionName, Invalid> {
        let name = self.name.parse::<PartitionName>();
        let name = name.map_err(|wrong| Invalid::new("partitions.name", wrong.to_string()))?;
        match name.is_default() {
            false => Ok(name),
            true => Err(self.invalid(
                "name",
                "is the partition that [api], [policy] and [callers] are for",
            )),
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
        settings.whole = CallerLimits {
            in_flight: self.in_flight,
            per_s: 0,
        };
        let callers = CallersSection {
            user_per_s: self.user_per_s.unwrap_or(settings.users.per_s),
            address_per_s: self.address_per_s.unwrap_or(settings.addresses.per_s),
        };
        (settings.users, settings.addresses) = (callers.users(), callers.addresses());
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
    /// It cannot be used together with the earlier ones.
    pub(crate) fn check(&self, earlier: &[Self]) -> Result<(), Invalid> {
        self.name()?;
        if earlier.iter().any(|other| other.name == self.name) {
            return Err(self.invalid("name", "is given twice: one table has all of it"));
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
                    "{address} is the listener of partition {} already",
                    other.name
                ),
            )),
        }
    }

    /// A setting of this table is wrong.
    pub(crate) fn invalid(&self, key: &str, why: &str) -> Invalid {
        Invalid::new(
            &format!("partitions.{key}"),
            format!("of partition {:?}: {why}", self.name),
        )
    }
}

/// The policies of partitions that have one of their own, by name.
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
