//! The state that all requests share.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::admission::Admission;
use super::callers::Callers;
use super::claims::Claims;
use super::limits::ExceededLimits;
use super::searches::Searches;
use super::settings::ApiSettings;
use super::tail::Tail;
use crate::keystone::Keystone;
use placement_audit::Audit;
use placement_base::backend::{LedgerBackend, ReadBackend, Readiness, WriteBackend};
use placement_base::world::{Background, Clock, Offload, UuidSource};
use placement_policy::Policy;

/// The backends, the outside world and the settings of an API.
#[derive(Clone)]
pub struct Api {
    /// Backend to which commands are submitted.
    pub write: Arc<dyn WriteBackend>,
    /// Backend that provides states to read from.
    pub read: Arc<dyn ReadBackend>,
    /// Backend for the change log.
    pub ledger: Arc<dyn LedgerBackend>,
    /// Wall clock and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// Source of UUIDs, for requests and for providers that are created without one.
    pub ids: Arc<dyn UuidSource>,
    /// Runs long computations off the threads that serve requests.
    pub offload: Arc<dyn Offload>,
    /// Runs the tasks that write streams.
    pub background: Arc<dyn Background>,
    /// Validates tokens; `None` unless `[auth] strategy` is `keystone`.
    pub keystone: Option<Arc<Keystone>>,
    /// The policy that authorizes operations.
    pub policy: Arc<Policy>,
    /// The audit log of writes and refusals.
    pub audit: Audit,
    /// Whether this node can serve requests.
    pub readiness: Arc<dyn Readiness>,
    /// The settings of this API.
    pub settings: ApiSettings,
}

/// The state that all requests share.
#[derive(Clone)]
pub(crate) struct Server {
    /// The backends, the outside world and the settings.
    pub(crate) api: Api,
    pub(crate) callers: Arc<Callers>,
    /// The queues of the partition, and the budgets of the process.
    pub(crate) admission: Admission,
    pub(crate) searches: Arc<Searches>,
    pub(crate) claims: Arc<Claims>,
    /// `None` for a copy of the state, whose writes are neither counted nor logged.
    pub(crate) exceeded_limits: Option<Arc<ExceededLimits>>,
    /// The latest changes. Streams that need the same step of changes wait until one of them has
    /// read it.
    pub(crate) tail: Arc<Mutex<Tail>>,
}

impl Server {
    /// A server with its own callers, searches and counters.
    pub(crate) fn new(api: Api, admission: Admission) -> Self {
        Self {
            callers: Arc::new(Callers::new(&api.settings)),
            searches: Arc::default(),
            claims: Arc::default(),
            exceeded_limits: Some(Arc::default()),
            tail: Arc::default(),
            admission,
            api,
        }
    }
}
