//! What the cluster does by itself, or for a node that joins: recorded like what operators do.

/// Something that was done, or was refused.
#[derive(Debug, Clone)]
pub(crate) struct InternalAction {
    /// Which node does it, or for which node it is done.
    pub(crate) actor: String,
    /// What is changed, as a path of the operators' listener.
    pub(crate) path: String,
    /// The action and its result, for a person.
    pub(crate) detail: String,
    pub(crate) done: bool,
}

/// Keeps records of it.
pub(crate) trait ActionLog: Send + Sync {
    fn record(&self, action: InternalAction);
}
