//! How this node comes into its cluster: it forms one, joins one, or resumes with its data.

pub(crate) mod bootstrap;
pub(crate) mod joining;
pub(crate) mod member;
pub(crate) mod self_description;

use std::sync::Arc;

use tokio::sync::Mutex;

use super::internal_actions::ActionLog;
use super::running::ReadMetrics;
use super::settings::Settings;
use super::slot::Slot;
use crate::env::Env;
use crate::rpc::peers::Peers;
use crate::tasks::Tasks;

/// Where others reach a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The REST API.
    pub api: String,
    /// The other nodes.
    pub peer: String,
    /// Operators.
    pub admin: String,
}

/// Takes this node from an empty directory into a cluster.
pub(crate) struct Bootstrap {
    pub(crate) env: Env,
    pub(crate) config: Arc<Settings>,
    pub(crate) addresses: Addresses,
    pub(crate) slot: Arc<Slot>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) read_metrics: Arc<ReadMetrics>,
    pub(crate) actions: Arc<dyn ActionLog>,
    pub(crate) tasks: Tasks,
    /// Held while the slot is filled, so that it is filled once.
    pub(crate) joining: Mutex<()>,
}
