//! The injected dependencies of a node: network, clock, ids, long computations, and the options of
//! the store. The binary passes real implementations and the simulations pass simulated ones; the
//! node cannot distinguish them.

use std::sync::Arc;

use placement_model::command::SyncStandards;
use placement_raft_store::StoreOptions;
use tokio::runtime::Handle;

use placement_base::net::{Net, TokioNet};
use placement_base::world::{Clock, Offload, RealWorld, UuidSource};

/// Everything that a node needs from the outside world.
#[derive(Clone)]
pub struct Env {
    /// Opens listeners and connections.
    pub net: Arc<dyn Net>,
    /// The wall clock, from which the leader takes the timestamps of commands. Timers use tokio's
    /// clock.
    pub clock: Arc<dyn Clock>,
    /// Source of random UUIDs.
    pub ids: Arc<dyn UuidSource>,
    /// The runtime that serves HTTP, so that requests share no thread with Raft. `None`: HTTP runs
    /// on the same runtime as everything else.
    pub requests: Option<Handle>,
    /// Runs long searches, off the threads that serve requests.
    pub offload: Arc<dyn Offload>,
    /// How the store is opened: disk access, and the rules by which commands are applied. The
    /// directory and the node's number come from the configuration.
    pub storage: StoreOptions,
    /// The standard resource classes and traits of this binary. Tests pass those of a newer binary.
    pub standards: SyncStandards,
    /// Whether HTTP responses carry a `Date` header, which is read from the system's clock.
    pub http_date: bool,
}

impl Env {
    /// The real implementations, without a separate runtime for HTTP.
    pub fn production() -> Self {
        let world = Arc::new(RealWorld::default());
        Self {
            net: Arc::new(TokioNet),
            clock: world.clone(),
            ids: world.clone(),
            requests: None,
            offload: world,
            storage: StoreOptions::new(""),
            standards: SyncStandards::from_this_binary(),
            http_date: true,
        }
    }
}
