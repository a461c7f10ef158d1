//! What the verbs that write to a provider have in common.

use crate::outcome::{Refusal, Reply};
use crate::state::change::{Change, ProviderId, ProviderRow};
use crate::state::tree::Node;
use crate::state::{Place, State};
use crate::types::{Generation, ProviderUuid, Timestamp};

/// A provider that is to be written to, as the state has it.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    state: &'a State,
    pub(super) place: Place,
    pub(super) node: &'a Node,
}

/// The provider that a path names.
pub(super) fn find<'a>(state: &'a State, uuid: &ProviderUuid) -> Result<Found<'a>, Refusal> {
    let place = state.place(uuid).ok_or(Refusal::ProviderNotFound(*uuid))?;
    Ok(Found::at(state, place))
}

impl<'a> Found<'a> {
    /// The provider at a place of this state.
    pub(super) fn at(state: &'a State, place: Place) -> Self {
        Self {
            state,
            place,
            node: state.node(place),
        }
    }

    /// Refuses if the client has seen another generation than there is.
    pub(super) fn check_generation(&self, given: Generation) -> Result<(), Refusal> {
        if given == self.node.generation {
            return Ok(());
        }
        let (provider, actual) = (self.node.uuid, self.node.generation);
        Err(Refusal::ProviderGenerationConflict {
            provider,
            given,
            actual,
        })
    }

    /// The provider's row at its next generation.
    pub(super) fn bump(&self, at: Timestamp) -> Change {
        let tree = self
            .state
            .tree(self.place.tree)
            .expect("a place names a tree that exists");
        let mut row = tree.row(self.place.node);
        row.generation = row.generation.next();
        row.updated_at = at;
        Change::PutProvider(self.node.id, row)
    }

    /// The reply to a write that raised the generation by one.
    pub(super) fn written(&self, at: Timestamp) -> Reply {
        Reply::ProviderWritten {
            generation: self.node.generation.next(),
            at,
        }
    }

    /// The reply to a write that left the generation alone.
    pub(super) fn kept(&self, at: Timestamp) -> Reply {
        Reply::ProviderWritten {
            generation: self.node.generation,
            at,
        }
    }

    /// Whether a provider hangs from this one.
    pub(super) fn has_children(&self) -> bool {
        self.node.subtree_end > self.place.node + 1
    }

    /// The rows of all providers below this one.
    pub(super) fn descendants(&self) -> impl Iterator<Item = (ProviderId, ProviderRow)> {
        let tree = self
            .state
            .tree(self.place.tree)
            .expect("a place names a tree that exists");
        let below = self.place.node + 1..self.node.subtree_end;
        below.map(move |index| (tree.nodes[index as usize].id, tree.row(index)))
    }

    /// Whether a place of the same state is this provider or below it.
    pub(super) fn spans(&self, place: Place) -> bool {
        place.tree == self.place.tree
            && (self.place.node..self.node.subtree_end).contains(&place.node)
    }
}
