//! How this node enters its cluster: it forms one, joins one, or resumes with its data.

pub mod bootstrap;
pub mod joining;
pub mod member;
pub mod self_description;

use std::sync::Arc;

use tokio::sync::Mutex;

use super::internal_actions::ActionLog;
use super::running::ReadMetrics;
use super::settings::Settings;
use super::slot::Slot;
use crate::env::Env;
use placement_base::tasks::Tasks;
use placement_peer::raft::peers::Peers;

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
pub struct Bootstrap {
    pub env: Env,
    pub config: Arc<Settings>,
    pub addresses: Addresses,
    pub slot: Arc<Slot>,
    pub peers: Arc<Peers>,
    pub read_metrics: Arc<ReadMetrics>,
    pub actions: Arc<dyn ActionLog>,
    pub tasks: Tasks,
    /// Held while the slot is filled, so that it is filled only once.
    pub joining: Mutex<()>,
}
