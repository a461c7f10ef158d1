//! Expected answers of writes, by outcome.

use placement_model::command::{
    Claim, Command, ConsumerGeneration, CreateInventory, CreateProvider, RenameResourceClass,
    ReplaceInventories, ReplaceProviderAggregates, ReplaceProviderTraits, UpdateInventory,
    UpdateProvider,
};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::types::AggregateUuid;
use serde_json::{Map, Value, json};

use super::question::{class_body, provider_body};
use super::{Expected, PROJECT_OVER_LIMIT, UNDEFINED};
use crate::operation::{Write, chosen, record};

const CONCURRENT: &str = "placement.concurrent_update";
const DUPLICATE: &str = "placement.duplicate_name";

/// The expected answer to a write whose log entry had this outcome.
pub fn expected(write: &Write, outcome: &Outcome) -> Expected {
    match outcome {
        Outcome::Done(reply) => done(write, reply),
        Outcome::Refused(refusal) => {
            let (status, code) = refused(&write.command, refusal);
            Expected::error(status, code, write.minor)
        }
        // A first request must not have this outcome, so no status matches.
        Outcome::AnsweredBefore => Expected::empty(0),
    }
}

fn done(write: &Write, reply: &Reply) -> Expected {
    let minor = write.minor;
    match (&write.command, reply) {
        // A limit that is only reported does not change the answer.
        (_, Reply::OverLimits { reply, .. }) => done(write, reply),
        (Command::CreateProvider(CreateProvider { .. }), Reply::Provider(provider)) => {
            if minor >= 20 {
                Expected::json(200, provider_body(provider, minor))
            } else {
                Expected::empty(201)
            }
        }
        (Command::UpdateProvider(UpdateProvider { .. }), Reply::Provider(provider)) => {
            Expected::json(200, provider_body(provider, minor))
        }
        (
            Command::ReplaceInventories(ReplaceInventories { inventories, .. }),
            Reply::ProviderWritten { generation, .. },
        ) => {
            let records: Map<String, Value> = inventories
                .iter()
                .map(|(class, inventory)| (class.to_string(), record(inventory)))
                .collect();
            let body = json!({
                "resource_provider_generation": generation.0,
                "inventories": records,
            });
            Expected::json(200, body)
        }
        (
            Command::CreateInventory(CreateInventory { inventory, .. })
            | Command::UpdateInventory(UpdateInventory { inventory, .. }),
            Reply::ProviderWritten { generation, .. },
        ) => {
            let mut body = record(inventory);
            body["resource_provider_generation"] = json!(generation.0);
            let is_new = matches!(write.command, Command::CreateInventory(_));
            Expected::json(if is_new { 201 } else { 200 }, body)
        }
        (
            Command::ReplaceProviderTraits(ReplaceProviderTraits { traits, .. }),
            Reply::ProviderWritten { generation, .. },
        ) => {
            let names: Vec<String> = traits.iter().map(ToString::to_string).collect();
            let body = json!({ "traits": names, "resource_provider_generation": generation.0 });
            Expected::json(200, body)
        }
        (
            Command::ReplaceProviderAggregates(ReplaceProviderAggregates { aggregates, .. }),
            Reply::ProviderWritten { generation, .. },
        ) => {
            let list: Vec<&str> = aggregates.iter().map(AggregateUuid::as_str).collect();
            let mut body = json!({ "aggregates": list });
            if minor >= 19 {
                body["resource_provider_generation"] = json!(generation.0);
            }
            Expected::json(200, body)
        }
        (Command::CreateResourceClass(_), _) => Expected::empty(201),
        (
            Command::EnsureTrait(_) | Command::EnsureResourceClass(_),
            Reply::Named { created, .. },
        ) => Expected::empty(if *created { 201 } else { 204 }),
        (Command::RenameResourceClass(RenameResourceClass { new_name, .. }), _) => {
            Expected::json(200, class_body(new_name.as_str()))
        }
        (Command::Claim(claim), Reply::Claimed { choice, repeated }) => {
            claimed(claim, *choice, *repeated)
        }
        (Command::ReplaceLimits(_), Reply::LimitsWritten { generation }) => {
            Expected::json(200, json!({ "generation": generation.0 }))
        }
        _ => Expected::empty(204),
    }
}

fn claimed(claim: &Claim, choice: u32, repeated: bool) -> Expected {
    let mut allocations = chosen(claim, choice as usize);
    for (_, of_consumer) in allocations.as_object_mut().into_iter().flatten() {
        *of_consumer = of_consumer["allocations"].take();
    }
    let mut body = json!({
        "choice": choice,
        "repeated": repeated,
        "allocations": allocations,
    });
    let generations = claim.claimants.iter().map(|claimant| {
        let generation = match claimant.generation {
            ConsumerGeneration::Expect(generation) => generation.0 + 1,
            ConsumerGeneration::New | ConsumerGeneration::Unchecked => 1,
        };
        (claimant.consumer.to_string(), json!(generation))
    });
    let generations: Map<_, _> = generations.collect();
    body["consumer_generations"] = json!(generations);
    let expected = Expected::json(200, body);
    // The consumers of a repeated claim may have been written again with equal allocations.
    if repeated {
        expected.except("consumer_generations")
    } else {
        expected
    }
}

/// Status and code of a refusal; some depend on the command.
fn refused(command: &Command, refusal: &Refusal) -> (u16, &'static str) {
    match refusal {
        Refusal::ProviderNotFound(_) | Refusal::ConsumerHasNoAllocations(_) => (404, UNDEFINED),
        Refusal::AllocationProviderNotFound(_) => (400, UNDEFINED),
        Refusal::ReshapeProviderNotFound(_) => (400, "placement.resource_provider.not_found"),
        Refusal::DuplicateProviderUuid(_) | Refusal::DuplicateProviderName(_) => (409, DUPLICATE),
        Refusal::ParentNotFound(_) | Refusal::ParentLoop(_) | Refusal::ReparentForbidden(_) => {
            (400, UNDEFINED)
        }
        Refusal::ProviderHasChildren(_) => {
            (409, "placement.resource_provider.cannot_delete_parent")
        }
        Refusal::ProviderInUse(_) => (409, "placement.resource_provider.inuse"),
        Refusal::ProviderGenerationConflict { .. }
        | Refusal::ConsumerGenerationConflict { .. }
        | Refusal::LimitsGenerationConflict { .. } => (409, CONCURRENT),
        Refusal::ResourceClassNotFound(_) => match command {
            Command::ReplaceInventories(_)
            | Command::CreateInventory(_)
            | Command::ReplaceAllocations(_)
            | Command::Reshape(_) => (400, UNDEFINED),
            _ => (404, UNDEFINED),
        },
        Refusal::ResourceClassExists(_)
        | Refusal::ResourceClassInUse(_)
        | Refusal::TraitInUse(_) => (409, UNDEFINED),
        Refusal::ResourceClassStandardDelete(_)
        | Refusal::ResourceClassStandardUpdate(_)
        | Refusal::TraitStandard(_)
        | Refusal::InventoryCapacity { .. } => (400, UNDEFINED),
        Refusal::TraitsNotFound(_) => match command {
            Command::ReplaceProviderTraits(_) => (400, UNDEFINED),
            _ => (404, UNDEFINED),
        },
        Refusal::InventoryExists { .. } => (409, CONCURRENT),
        Refusal::InventoryNotFound { .. } => match command {
            Command::DeleteInventory(_) => (404, UNDEFINED),
            _ => (400, UNDEFINED),
        },
        Refusal::InventoryInUse { .. } => match command {
            Command::DeleteInventory(_) => (409, CONCURRENT),
            _ => (409, "placement.inventory.inuse"),
        },
        Refusal::AllocationWithoutInventory { .. }
        | Refusal::AllocationConstraints { .. }
        | Refusal::AllocationCapacity { .. } => (409, UNDEFINED),
        Refusal::ClaimRefused(_) => (409, "placement.claim.no_room"),
        Refusal::OverCeiling { .. } => (409, "placement.claim.over_ceiling"),
        Refusal::GroupBroken { .. } => (409, "placement.claim.group"),
        Refusal::HoldNotFound(_) => (404, "placement.hold.not_found"),
        Refusal::HoldIsDue(_) => (409, "placement.hold.is_due"),
        Refusal::TooManyHolds(_) => (409, "placement.hold.too_many"),
        Refusal::OverLimit(_) => (409, PROJECT_OVER_LIMIT),
        Refusal::IdsExhausted => (503, UNDEFINED),
        Refusal::PartitionGone(_) => (503, "placement.partition.not_found"),
        Refusal::RoutesChanged(_) => (503, "placement.partition.misdirected"),
        Refusal::PartitionNotFound(_)
        | Refusal::PartitionExists(_)
        | Refusal::PartitionInUse(_)
        | Refusal::PartitionDefault
        | Refusal::RouteTaken { .. }
        | Refusal::DefaultWithoutHost
        | Refusal::DefaultPrefix
        | Refusal::PartitionsExhausted
        | Refusal::PartitionRouted(_)
        | Refusal::PartitionNotEmpty { .. }
        | Refusal::ProviderUnfit(..)
        | Refusal::ConsumerUnfit(..) => unreachable!("API clients cannot change partitions"),
    }
}
