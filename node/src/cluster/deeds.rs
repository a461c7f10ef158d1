//! What the cluster does of its own accord, or for a node that joins: told like what operators do.

/// Something that was done, or was not.
#[derive(Debug, Clone)]
pub(crate) struct Deed {
    /// For whom, or by whom.
    pub(crate) who: String,
    /// What is changed, as a path of the operators' door.
    pub(crate) path: String,
    /// In words for a person.
    pub(crate) words: String,
    /// Whether it was done.
    pub(crate) done: bool,
}

/// Who keeps records of it.
pub(crate) trait Deeds: Send + Sync {
    /// Keeps one.
    fn tell(&self, deed: Deed);
}
