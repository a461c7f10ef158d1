//! Writes of simulated clients as the commands that the REST API makes of them.

#![allow(clippy::unwrap_used)] // a broken story is a broken test

use std::collections::BTreeMap;

use placement_model::command::{
    CapacityRule, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreateProvider, DeleteAllocations, ProviderAmounts, ReplaceAllocations, ReplaceInventories,
};
use placement_model::types::{Generation, Inventory, ProviderUuid};
use placement_simulations::operation::{Belief, CLASS, CONSUMER_TYPE, Write};

/// The command that says the same as `write`.
pub(crate) fn command(write: &Write) -> Command {
    match write {
        Write::CreateProvider { provider, name } => Command::CreateProvider(CreateProvider {
            uuid: ProviderUuid(*provider),
            name: name.clone().try_into().unwrap(),
            parent: None,
        }),
        Write::SetInventory {
            provider,
            generation,
            total,
            max_unit,
        } => Command::ReplaceInventories(ReplaceInventories {
            provider: ProviderUuid(*provider),
            generation: Generation(*generation),
            inventories: BTreeMap::from([(
                CLASS.parse().unwrap(),
                Inventory {
                    total: *total,
                    reserved: 0,
                    min_unit: 1,
                    max_unit: *max_unit,
                    step_size: 1,
                    allocation_ratio: 1.0,
                },
            )]),
            capacity_rule: CapacityRule::NotNegative,
        }),
        Write::Allocate(claims) => Command::ReplaceAllocations(ReplaceAllocations {
            consumers: claims
                .iter()
                .map(|claim| ConsumerAllocations {
                    consumer: claim.consumer.to_string().into(),
                    allocations: claim
                        .amounts
                        .iter()
                        .map(|(provider, amount)| ProviderAmounts {
                            provider: provider.to_string().into(),
                            resources: BTreeMap::from([(CLASS.parse().unwrap(), *amount)]),
                        })
                        .collect(),
                    project: claim.project.as_str().into(),
                    user: claim.user.as_str().into(),
                    generation: match claim.belief {
                        Belief::Unchecked => ConsumerGeneration::Unchecked,
                        Belief::New => ConsumerGeneration::New,
                        Belief::At(at) => ConsumerGeneration::Expect(Generation(at)),
                    },
                    consumer_type: match claim.belief {
                        Belief::Unchecked => ConsumerTypeUpdate::Keep,
                        _ => ConsumerTypeUpdate::Set(CONSUMER_TYPE.parse().unwrap()),
                    },
                })
                .collect(),
        }),
        Write::Release { consumer } => Command::DeleteAllocations(DeleteAllocations {
            consumer: consumer.to_string().into(),
        }),
        Write::Housekeeping => unreachable!(),
    }
}
