//! Standard resource classes and traits of the proposing binary

use std::collections::BTreeSet;

use super::{Decide, Decision, names};
use crate::command::SyncStandards;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::Timestamp;

/// Makes what is missing, and removes nothing: an older binary's shorter list takes nothing away.
impl Decide for SyncStandards {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let mut counters = state.counters();
        let mut changes = Changes::new();
        let mut made = BTreeSet::new();
        for name in &self.resource_classes {
            if state.resource_class_id(name).is_none() && made.insert(name) {
                names::make(name, at, &mut counters, &mut changes)?;
            }
        }
        for name in &self.traits {
            if state.trait_id(name).is_none() {
                names::make(name, at, &mut counters, &mut changes)?;
            }
        }
        if counters != state.counters() {
            changes.push(Change::PutCounters(counters));
        }
        Ok((Reply::Done, changes))
    }
}
