//! Actions that the cluster takes by itself or for a joining node, recorded like operators'
//! actions.

/// One action, carried out or refused.
#[derive(Debug, Clone)]
pub struct InternalAction {
    /// The node that acts, or for which the leader acts.
    pub actor: String,
    /// The changed resource, as a path of the admin API.
    pub path: String,
    /// The action and its result, as text.
    pub detail: String,
    pub done: bool,
}

pub trait ActionLog: Send + Sync {
    fn record(&self, action: InternalAction);
}
