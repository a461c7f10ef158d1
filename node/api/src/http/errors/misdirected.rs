//! Requests that are no partition's: they are refused, and no state is asked.

use http::StatusCode;
use placement_model::types::{PartitionName, PathPrefix, RoutePrefix};

use super::code;
use super::error::ApiError;
use crate::backend::Unavailable;

/// Longest part of a host or a path that an error repeats, in characters.
const SHOWN_MAX: usize = 200;

/// Why a request is no partition's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misdirected {
    /// No partition has the host that it asks for.
    Host(Option<String>),
    /// Its path is below no partition's prefix, and it is no path of the default partition's API.
    Path(String),
    /// This node's `[api] prefix` is below that of a partition.
    Prefix {
        /// The partition's.
        partition: RoutePrefix,
        /// This node's.
        api: PathPrefix,
    },
    /// It came by the listener of a partition that does not exist.
    NoPartition(PartitionName),
    /// This node does not know the partitions of its cluster yet.
    Unknown(String),
}

impl From<&Misdirected> for ApiError {
    /// Never 404: Nova would take that for a host that is gone.
    fn from(why: &Misdirected) -> Self {
        let message = match why {
            Misdirected::Host(host) => {
                let host = shown(host.as_deref().unwrap_or_default());
                let message = format!(
                    "No partition of this cluster has the host {host:?}. Use the host of your cloud's endpoint; an \
                     operator gives a partition this one with `placementctl partitions route NAME --host HOST`."
                );
                return Self::new(StatusCode::MISDIRECTED_REQUEST, code::MISDIRECTED, message);
            }
            Misdirected::Path(path) => format!(
                "The path {:?} is below the prefix of no partition of this cluster. Use the path of your cloud's \
                 endpoint; an operator gives a partition this one with `placementctl partitions route NAME --prefix \
                 PATH`.",
                shown(path)
            ),
            Misdirected::Prefix { partition, api } => format!(
                "A partition has the prefix {partition}, and this node has the default partition's API below {api}: \
                 an operator corrects [api] prefix of this node, or gives the partition another prefix."
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
