//! How this node enters its cluster: it forms one, joins one, or resumes with its data.

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

/// The addresses of a node, as others reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Address of the REST API.
    pub api: String,
    /// Address for other nodes.
    pub peer: String,
    /// Address of the admin listener; empty without one.
    pub admin: String,
}

/// Brings this node from an empty directory into a cluster.
pub(crate) struct Bootstrap {
    pub(crate) env: Env,
    pub(crate) config: Arc<Settings>,
    pub(crate) addresses: Addresses,
    pub(crate) slot: Arc<Slot>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) read_metrics: Arc<ReadMetrics>,
    pub(crate) actions: Arc<dyn ActionLog>,
    pub(crate) tasks: Tasks,
    /// Held while the slot is filled, so that it is filled only once.
    pub(crate) joining: Mutex<()>,
}
