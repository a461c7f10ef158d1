//! Requests that belong to no partition. They are refused before any state is read.

use http::StatusCode;
use placement_model::types::{PartitionName, PathPrefix, RoutePrefix};

use super::code;
use super::error::ApiError;
use placement_base::backend::Unavailable;

/// Maximum length of a host or a path in an error, in characters.
const SHOWN_MAX: usize = 200;

/// The reason why a request belongs to no partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misdirected {
    /// No partition has the requested host.
    Host(Option<String>),
    /// The path is neither below a partition's prefix nor a path of the default partition's API.
    Path(String),
    /// This node's `[api] prefix` is below the prefix of a partition.
    Prefix {
        /// The prefix of that partition.
        partition: RoutePrefix,
        /// The prefix of this node.
        api: PathPrefix,
    },
    /// The request arrived at the listener of a partition that does not exist.
    NoPartition(PartitionName),
    /// This node does not know the partitions of its cluster yet; the text says why.
    Unknown(String),
}

impl From<&Misdirected> for ApiError {
    /// The status is never 404, which Nova would interpret as a missing compute host.
    fn from(why: &Misdirected) -> Self {
        let message = match why {
            Misdirected::Host(host) => {
                let host = shown(host.as_deref().unwrap_or_default());
                let message = format!(
                    "No partition of this cluster has the host {host:?}. Use the host of your cloud's endpoint; an \
                     operator can assign this one to a partition with `placementctl partitions route NAME --host HOST`."
                );
                return Self::new(StatusCode::MISDIRECTED_REQUEST, code::MISDIRECTED, message);
            }
            Misdirected::Path(path) => format!(
                "No partition of this cluster has a prefix that matches the path {:?}. Use the path of your cloud's \
                 endpoint; an operator can assign this one to a partition with `placementctl partitions route NAME --prefix \
                 PATH`.",
                shown(path)
            ),
            Misdirected::Prefix { partition, api } => format!(
                "A partition has the prefix {partition}, and this node serves the default partition's API below {api}. \
                 An operator must correct [api] prefix of this node, or give the partition another prefix."
            ),
            Misdirected::NoPartition(name) => {
                return Unavailable::NoPartition(name.clone()).into();
            }
            Misdirected::Unknown(why) => {
                format!("This node does not know the partitions of its cluster: {why}.")
            }
        };
        Self::unavailable(code::MISDIRECTED, message)
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}
