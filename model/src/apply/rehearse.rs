//! The features of a binary that rehearses an upgrade
//! ([`Level::REHEARSED`](crate::Level::REHEARSED)): a command, a field of a row, and a rule, each
//! as a later version would add it.

use super::{Decide, Decision};
use crate::command::{CreateProvider, EnsureTrait, Rehearse};
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Counters};
use crate::types::{Generation, Timestamp};

/// Creates a trait, and counts these commands in the new field.
impl Decide for Rehearse {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let ensure = EnsureTrait {
            name: self.name.clone(),
        };
        let (reply, mut changes) = ensure.decide(state, at)?;
        let put = changes.iter().find_map(|change| match change {
            Change::PutCounters(counters) => Some(*counters),
            _ => None,
        });
        let counters = put.unwrap_or(state.counters());
        changes.push(Change::PutCounters(Counters {
            rehearsals: counters.rehearsals + 1,
            ..counters
        }));
        Ok((reply, changes))
    }
}

/// The new rule: a provider starts with generation 1.
pub(super) fn create_provider(command: &CreateProvider, state: &State, at: Timestamp) -> Decision {
    let (mut reply, mut changes) = command.decide(state, at)?;
    if let Reply::Provider(provider) = &mut reply {
        provider.generation = Generation(1);
    }
    for change in &mut changes {
        if let Change::PutProvider(_, row) = change {
            row.generation = Generation(1);
        }
    }
    Ok((reply, changes))
}
