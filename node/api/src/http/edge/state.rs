//! What all requests share.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::admission::Admission;
use super::callers::Callers;
use super::policy::Policy;
use super::searches::Searches;
use super::settings::ApiSettings;
use super::tail::Tail;
use crate::audit::Audit;
use crate::backend::{LedgerBackend, ReadBackend, Readiness, WriteBackend};
use crate::keystone::Keystone;
use crate::world::{Background, Clock, Offload, UuidSource};

/// What the API stands on.
#[derive(Clone)]
pub struct Api {
    /// Where writes go.
    pub write: Arc<dyn WriteBackend>,
    /// Where reads come from.
    pub read: Arc<dyn ReadBackend>,
    /// What was changed, and when.
    pub ledger: Arc<dyn LedgerBackend>,
    /// Wall clock and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// UUIDs of providers that are created without one, and of requests.
    pub ids: Arc<dyn UuidSource>,
    /// Where long searches run.
    pub offload: Arc<dyn Offload>,
    /// Where streams are written.
    pub background: Arc<dyn Background>,
    /// Whose tokens are, if the settings have callers identified so.
    pub keystone: Option<Arc<Keystone>>,
    /// Who may do what.
    pub policy: Arc<Policy>,
    /// Who did what.
    pub audit: Audit,
    /// Whether this node can serve what it promises.
    pub readiness: Arc<dyn Readiness>,
    /// What the operator chose.
    pub settings: ApiSettings,
}

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Server {
    /// The backend, the outside world, the settings.
    pub(crate) api: Api,
    /// How much each caller may ask.
    pub(crate) callers: Arc<Callers>,
    /// How much is let in at once.
    pub(crate) admission: Admission,
    /// What was lately searched for.
    pub(crate) searches: Arc<Searches>,
    /// What was lately changed. Streams that need the same of it wait for the one that reads it.
    pub(crate) tail: Arc<Mutex<Tail>>,
}

impl Server {
    /// With callers and searches of its own.
    pub(crate) fn new(api: Api, admission: Admission) -> Self {
        Self {
            callers: Arc::new(Callers::new(&api.settings, api.clock.clone())),
            searches: Arc::default(),
            tail: Arc::default(),
            admission,
            api,
        }
    }
}
