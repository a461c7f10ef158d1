//! Which commands are known to cost little, whatever the state holds.

use crate::cluster::Cluster;
use crate::command::{Command, ConsumerAllocations, Stamped, WriteId};
use crate::state::State;
use crate::state::change::ProviderId;
use crate::state::tree::NodePlace;
use crate::types::ConsumerUuid;

/// Amounts, providers and outcomes that such a command goes through, at most.
const CHEAP_MAX: usize = 128;

impl Cluster {
    /// Whether a command claims or gives back so little that deciding it and carrying it out take some tens of
    /// microseconds. That depends on the state, too: on what its consumers hold, on the trees in which they hold it, and
    /// on the outcomes that are forgotten with it. False for all commands that are no claims.
    pub fn is_cheap(&self, stamped: &Stamped) -> bool {
        let forgotten = forgotten(self.default_partition(), stamped.write_id.as_ref());
        let state = self.partition(stamped.partition);
        let claimed = match (&stamped.command, state) {
            (Command::ReplaceAllocations(replace), Some(state)) => {
                let consumers = replace.consumers.iter();
                consumers.map(|consumer| claimed(state, consumer)).sum()
            }
            (Command::DeleteAllocations(delete), Some(state)) => held(state, &delete.consumer),
            _ => return false,
        };
        forgotten + claimed <= CHEAP_MAX
    }
}

/// What a claim goes through.
fn claimed(state: &State, consumer: &ConsumerAllocations) -> usize {
    let asked = consumer.allocations.iter().map(|asked| {
        let place = state.place_given(&asked.provider);
        1 + asked.resources.len() + providers(state, place)
    });
    asked.sum::<usize>() + held(state, &consumer.consumer)
}

/// What is gone through to give back all that a consumer holds.
fn held(state: &State, consumer: &ConsumerUuid) -> usize {
    let Some(row) = state.consumers.row(consumer) else {
        return 1;
    };
    let amounts = row.allocations.iter().len();
    if amounts > CHEAP_MAX {
        return amounts;
    }
    let trees = row.allocations.by_provider();
    let of = |provider: ProviderId| providers(state, state.place_by_id(provider));
    1 + amounts + trees.map(|(provider, _)| of(provider)).sum::<usize>()
}

/// The providers of a tree, which is copied when one of them changes.
fn providers(state: &State, place: Option<NodePlace>) -> usize {
    let tree = place.and_then(|place| state.tree(place.tree));
    tree.map_or(0, |tree| tree.nodes.len())
}

/// The outcomes that go when one is remembered: all, once the node has started again.
fn forgotten(state: &State, id: Option<&WriteId>) -> usize {
    let Some(id) = id else { return 0 };
    let sessions = &state.sessions;
    let new_boot = (sessions.row(id.origin)).is_some_and(|row| row.boot != id.boot);
    let goes = |sequence: &u64| new_boot || *sequence < id.answered_below;
    let sequences = sessions.sequences(id.origin).take_while(goes);
    sequences.take(CHEAP_MAX + 1).count()
}
