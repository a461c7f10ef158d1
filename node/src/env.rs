//! The outside world, injected: network, clock, ids and long computations, and how the store is
//! opened. The binary passes the real one, the simulations theirs; the node cannot tell.

use std::sync::Arc;

use placement_model::command::SyncStandards;
use placement_raft_store::StoreOptions;
use tokio::runtime::Handle;

use placement_api::net::{Net, TokioNet};
use placement_api::world::{Clock, Offload, RealWorld, UuidSource};

/// Everything a node needs of the outside world.
#[derive(Clone)]
pub struct Env {
    /// Listens and connects.
    pub net: Arc<dyn Net>,
    /// Tells the wall-clock time that the leader stamps on commands. Timers are tokio's.
    pub clock: Arc<dyn Clock>,
    /// Makes UUIDs.
    pub ids: Arc<dyn UuidSource>,
    /// The runtime that serves HTTP, so that requests share no thread with Raft; `None`: the one
    /// that the node is started on, where all else runs.
    pub requests: Option<Handle>,
    /// Where long searches run.
    pub offload: Arc<dyn Offload>,
    /// How the store is opened: who syncs the disk, who decides on commands. The directory and the
    /// node come from the configuration.
    pub storage: StoreOptions,
    /// The standard resource classes and traits: those of this binary. Tests play a newer one.
    pub standards: SyncStandards,
    /// Whether HTTP responses carry a `Date` header, which is read from the system's clock.
    pub http_date: bool,
}

impl Env {
    /// The real world, but for a runtime that serves HTTP.
    pub fn production() -> Self {
        let world = Arc::new(RealWorld::default());
        Self {
            net: Arc::new(TokioNet),
            clock: world.clone(),
            ids: world.clone(),
            requests: None,
            offload: world,
            storage: StoreOptions::new(""),
            standards: SyncStandards::of_this_binary(),
            http_date: true,
        }
    }
}
