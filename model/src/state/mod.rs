//! The whole placement model as one immutable value: cloning it costs nothing, so a reader keeps
//! the state it started with for as long as it likes.

pub mod change;
pub mod indexes;
pub mod tree;
pub mod tree_set;

use change::Change;

/// The state of the placement model after some prefix of the log.
#[derive(Debug, Clone, Default)]
pub struct State {}

/// A digest of all rows: equal states have equal digests, whatever way they were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest(pub u128);

impl State {
    /// Carries out changes that [`crate::apply`] decided on, or that were read back from disk.
    /// The one place where tables, trees, indexes, running sums and the digest move.
    pub fn commit(&mut self, changes: &[Change]) {
        let _ = changes;
    }

    /// The digest, kept up to date by [`State::commit`].
    pub fn digest(&self) -> Digest {
        Digest::default()
    }

    /// Every row of the state, as the changes that would make it from nothing.
    pub fn rows(&self) -> Box<dyn Iterator<Item = Change> + Send + '_> {
        Box::new(std::iter::empty())
    }
}
