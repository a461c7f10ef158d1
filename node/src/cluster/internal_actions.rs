//! Actions that the cluster takes by itself or for a joining node, recorded like operators'
//! actions.

/// One action, carried out or refused.
#[derive(Debug, Clone)]
pub(crate) struct InternalAction {
    /// The node that acts, or for which the leader acts.
    pub(crate) actor: String,
    /// The changed resource, as a path of the admin API.
    pub(crate) path: String,
    /// The action and its result, as text.
    pub(crate) detail: String,
    pub(crate) done: bool,
}

pub(crate) trait ActionLog: Send + Sync {
    fn record(&self, action: InternalAction);
}
