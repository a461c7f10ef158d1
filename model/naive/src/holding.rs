//! Consumers with allocations, for tests of queries about them.

use std::collections::BTreeMap;

use placement_model::command::{
    Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReplaceAllocations,
};
use placement_model::types::{Given, ProviderUuid, Timestamp};
use placement_model::{Outcome, State, apply};

use crate::{Naive, stamped};

/// Amounts by provider and class.
pub type Allocations = BTreeMap<ProviderUuid, BTreeMap<String, u64>>;

/// Gives a consumer these allocations, and this type if there is one.
pub fn command(consumer: &str, of: Option<&str>, allocations: &Allocations) -> Command {
    let on = |(provider, resources): (&ProviderUuid, &BTreeMap<String, u64>)| ProviderAmounts {
        provider: Given::Valid(*provider),
        resources: resources
            .iter()
            .map(|(class, units)| (class.parse().unwrap(), *units))
            .collect(),
    };
    let consumers = vec![ConsumerAllocations {
        consumer: consumer.into(),
        allocations: allocations.iter().map(on).collect(),
        project: "project".into(),
        user: "user".into(),
        generation: ConsumerGeneration::Unchecked,
        consumer_type: of.map_or(ConsumerTypeUpdate::Keep, |name| {
            ConsumerTypeUpdate::Set(name.parse().unwrap())
        }),
    }];
    Command::ReplaceAllocations(ReplaceAllocations { consumers })
}

/// Whether the naive model accepts these allocations; if so, it has them then.
pub fn accepts(naive: &mut Naive, consumer: &str, allocations: &Allocations) -> bool {
    let stamped = stamped(Timestamp(1), None, command(consumer, None, allocations));
    matches!(naive.apply(&stamped), Outcome::Done(_))
}

/// Gives a consumer these allocations and this type, if there is room. Returns whether there is.
pub fn claim(
    state: &mut State,
    consumer: &str,
    of: Option<&str>,
    allocations: &Allocations,
) -> bool {
    let stamped = stamped(Timestamp(1), None, command(consumer, of, allocations));
    let (outcome, changes) = apply(state, &stamped);
    state.commit(&changes);
    matches!(outcome, Outcome::Done(_))
}

/// The allocations of a consumer.
pub fn held(state: &State, consumer: &str) -> Allocations {
    let mut held = Allocations::new();
    for one in state.consumer(&consumer.into()).unwrap().allocations {
        let resources = one.resources.into_iter();
        let resources = resources.map(|(class, units)| (class.as_str().to_owned(), units));
        held.insert(one.provider, resources.collect());
    }
    held
}
