//! HTTP encoding of changes: a log command, and the microversion of the request that causes it.

use placement_model::command::{
    Claim, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, Counted,
    CreateInventory, CreateProvider, CreateResourceClass, DeleteAllocations, DeleteInventories,
    DeleteInventory, DeleteProvider, DeleteProviderTraits, DeleteResourceClass, DeleteTrait,
    EnsureResourceClass, EnsureTrait, GroupRule, ParentUpdate, RenameResourceClass,
    ReplaceAllocations, ReplaceInventories, ReplaceProviderAggregates, ReplaceProviderTraits,
    Reshape, UpdateInventory, UpdateProvider,
};
use placement_model::types::{
    AggregateUuid, ConsumerUuid, Given, HoldTerm, Inventory, LimitMode, Limits, ProviderUuid,
    ResourceClassName, ResourceLimits,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Request, bare};

/// A client's change.
///
/// The node must turn the request into exactly this command, so that the write can be identified in
/// the log even without an answer. Most bodies contain a value that no other request contains (a
/// user, a name, an aggregate, a `max_unit`).
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The expected command in the log.
    pub command: Command,
    /// Minor part of the microversion `1.minor`, which must support the command.
    pub minor: u8,
    /// The id that the client sends with each attempt of this write. The log entries have it.
    pub request_id: Option<Uuid>,
}

impl Write {
    /// The write as an HTTP request.
    ///
    /// # Panics
    /// If clients cannot cause the command.
    pub fn request(&self) -> Request {
        let minor = self.minor;
        let (method, path, body) = match &self.command {
            Command::CreateProvider(CreateProvider { uuid, name, parent }) => {
                let mut body = json!({ "uuid": uuid.to_string(), "name": name.as_str() });
                if let Some(parent) = parent {
                    body["parent_provider_uuid"] = json!(parent.to_string());
                }
                ("POST", "/resource_providers".to_owned(), Some(body))
            }
            Command::UpdateProvider(UpdateProvider {
                uuid, name, parent, ..
            }) => {
                let mut body = json!({ "name": name.as_str() });
                match parent {
                    ParentUpdate::Keep => {}
                    ParentUpdate::Clear => body["parent_provider_uuid"] = Value::Null,
                    ParentUpdate::Set(parent) => {
                        body["parent_provider_uuid"] = json!(parent.to_string());
                    }
                }
                ("PUT", provider_path(uuid, ""), Some(body))
            }
            Command::DeleteProvider(DeleteProvider { uuid }) => {
                ("DELETE", provider_path(uuid, ""), None)
            }
            Command::ReplaceInventories(ReplaceInventories {
                provider,
                generation,
                inventories,
                ..
            }) => {
                let body = set(generation.0, inventories);
                ("PUT", provider_path(provider, "/inventories"), Some(body))
            }
            Command::CreateInventory(CreateInventory {
                provider,
                resource_class,
                inventory,
                ..
            }) => {
                let mut body = record(inventory);
                body["resource_class"] = json!(resource_class.to_string());
                ("POST", provider_path(provider, "/inventories"), Some(body))
            }
            Command::UpdateInventory(UpdateInventory {
                provider,
                generation,
                resource_class,
                inventory,
                ..
            }) => {
                let mut body = record(inventory);
                body["resource_provider_generation"] = json!(generation.0);
                let path = provider_path(provider, &format!("/inventories/{resource_class}"));
                ("PUT", path, Some(body))
            }
            Command::DeleteInventory(DeleteInventory {
                provider,
                resource_class,
            }) => {
                let path = provider_path(provider, &format!("/inventories/{resource_class}"));
                ("DELETE", path, None)
            }
            Command::DeleteInventories(DeleteInventories { provider }) => {
                ("DELETE", provider_path(provider, "/inventories"), None)
            }
            Command::ReplaceProviderTraits(ReplaceProviderTraits {
                provider,
                generation,
                traits,
            }) => {
                let traits: Vec<String> = traits.iter().map(ToString::to_string).collect();
                let body = json!({
                    "resource_provider_generation": generation.0,
                    "traits": traits,
                });
                ("PUT", provider_path(provider, "/traits"), Some(body))
            }
            Command::DeleteProviderTraits(DeleteProviderTraits { provider }) => {
                ("DELETE", provider_path(provider, "/traits"), None)
            }
            Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
                provider,
                generation,
                aggregates,
            }) => {
                let list: Vec<&str> = aggregates.iter().map(AggregateUuid::as_str).collect();
                let body = match generation {
                    None => json!(list),
                    Some(generation) => json!({
                        "resource_provider_generation": generation.0,
                        "aggregates": list,
                    }),
                };
                ("PUT", provider_path(provider, "/aggregates"), Some(body))
            }
            Command::EnsureTrait(EnsureTrait { name }) => ("PUT", format!("/traits/{name}"), None),
            Command::DeleteTrait(DeleteTrait { name }) => {
                ("DELETE", format!("/traits/{name}"), None)
            }
            Command::CreateResourceClass(CreateResourceClass { name }) => {
                let body = json!({ "name": name.as_str() });
                ("POST", "/resource_classes".to_owned(), Some(body))
            }
            Command::EnsureResourceClass(EnsureResourceClass { name }) => {
                ("PUT", format!("/resource_classes/{name}"), None)
            }
            Command::RenameResourceClass(RenameResourceClass { name, new_name }) => {
                let body = json!({ "name": new_name.as_str() });
                ("PUT", format!("/resource_classes/{name}"), Some(body))
            }
            Command::DeleteResourceClass(DeleteResourceClass { name }) => {
                ("DELETE", format!("/resource_classes/{name}"), None)
            }
            Command::ReplaceAllocations(ReplaceAllocations { consumers }) => {
                match consumers.as_slice() {
                    [one] => {
                        let path = format!("/allocations/{}", one.consumer);
                        ("PUT", path, Some(consumer(one, minor)))
                    }
                    many => {
                        let body = consumers_by_uuid(many, minor);
                        ("POST", "/allocations".to_owned(), Some(body))
                    }
                }
            }
            Command::DeleteAllocations(DeleteAllocations { consumer }) => {
                ("DELETE", format!("/allocations/{consumer}"), None)
            }
            Command::Reshape(Reshape {
                inventories,
                allocations,
            }) => {
                let sets: Map<String, Value> = inventories
                    .iter()
                    .map(|one| {
                        let set = set(one.generation.0, &one.inventories);
                        (one.provider.to_string(), set)
                    })
                    .collect();
                let body = json!({
                    "inventories": sets,
                    "allocations": consumers_by_uuid(allocations, minor),
                });
                ("POST", "/reshaper".to_owned(), Some(body))
            }
            Command::Claim(claim) => {
                let path = "/placementd/v1/claims".to_owned();
                ("POST", path, Some(claim_body(claim)))
            }
            Command::RenewHold(renew) => {
                let path = format!("/placementd/v1/holds/{}", renew.consumer);
                ("PUT", path, Some(term_body(renew.term)))
            }
            Command::ReplaceLimits(replace) => {
                let mut body = limits_body(&replace.limits);
                body["generation"] = json!(replace.generation.0);
                ("PUT", "/placementd/v1/limits".to_owned(), Some(body))
            }
            other => unreachable!("clients cannot cause {}", other.name()),
        };
        Request {
            request_id: self.request_id.map(|id| format!("req-{id}")),
            ..bare(method, path, minor, body)
        }
    }
}

/// The consumers that a write claims for.
pub(crate) fn claims(command: &Command) -> &[ConsumerAllocations] {
    match command {
        Command::ReplaceAllocations(ReplaceAllocations { consumers }) => consumers,
        Command::Reshape(Reshape { allocations, .. }) => allocations,
        _ => &[],
    }
}

/// The consumers that a client's write may change.
pub(crate) fn consumers(command: &Command) -> Vec<&ConsumerUuid> {
    match command {
        Command::DeleteAllocations(DeleteAllocations { consumer }) => vec![consumer],
        Command::Claim(claim) => claim.claimants.iter().map(|one| &one.consumer).collect(),
        command => claims(command).iter().map(|one| &one.consumer).collect(),
    }
}

/// A claim with choices. It has the same form in all microversions.
fn claim_body(claim: &Claim) -> Value {
    let consumers = claim.claimants.iter().map(|one| {
        let mut body = json!({
            "project_id": one.project.as_str(),
            "user_id": one.user.as_str(),
            "consumer_generation": match one.generation {
                ConsumerGeneration::Expect(at) => json!(at.0),
                ConsumerGeneration::New | ConsumerGeneration::Unchecked => Value::Null,
            },
        });
        if let ConsumerTypeUpdate::Set(name) = &one.consumer_type {
            body["consumer_type"] = json!(name.as_str());
        }
        (one.consumer.to_string(), body)
    });
    let consumers: Map<_, _> = consumers.collect();
    let choices = (0..claim.choices.len()).map(|choice| chosen(claim, choice));
    let ceilings = claim.ceilings.iter().map(|ceiling| {
        let projects: Vec<_> = ceiling.projects.iter().map(|one| one.as_str()).collect();
        let mut body = json!({ "projects": projects, "limit": ceiling.limit });
        if let Some(types) = &ceiling.types {
            let types = types
                .iter()
                .map(|name| name.as_ref().map(|name| name.as_str()));
            body["types"] = json!(types.collect::<Vec<_>>());
        }
        match &ceiling.of {
            Counted::Units(class) => body["class"] = json!(class.as_str()),
            Counted::Consumers => body["count"] = json!(true),
        }
        body
    });
    let mut body = json!({
        "consumers": consumers,
        "choices": choices.collect::<Vec<_>>(),
        "ceilings": ceilings.collect::<Vec<_>>(),
        "apart": [],
        "together": [],
    });
    if let Some(hold) = &claim.hold {
        let kept_for: Vec<_> = hold.kept_for.iter().map(ToString::to_string).collect();
        body["hold"] = term_body(hold.term);
        body["hold"]["for"] = json!(kept_for);
    }
    for group in &claim.groups {
        let members: Vec<_> = group.members.iter().map(ToString::to_string).collect();
        let (list, group) = match group.rule {
            GroupRule::Apart { most } => ("apart", json!({ "members": members, "most": most })),
            GroupRule::Together => ("together", json!({ "members": members })),
        };
        let list = body[list].as_array_mut().expect("a list of groups");
        list.push(group);
    }
    body
}

/// The end of a hold.
fn term_body(term: HoldTerm) -> Value {
    match term {
        HoldTerm::Lease { seconds } => json!({ "lease_s": seconds }),
        HoldTerm::Due(due) => json!({ "due": due.rfc3339() }),
        HoldTerm::Open => json!({}),
    }
}

/// Limits without their generation.
fn limits_body(limits: &Limits) -> Value {
    let types = limits
        .types
        .iter()
        .map(|name| name.as_ref().map(|name| name.as_str()));
    let projects = limits.projects.iter().map(|(project, own)| {
        let parent = own.parent.as_ref().map(|parent| parent.as_str());
        let body = json!({ "parent": parent, "limits": resource_limits(&own.limits) });
        (project.to_string(), body)
    });
    json!({
        "mode": match limits.mode {
            LimitMode::Report => "report",
            LimitMode::Enforce => "enforce",
        },
        "types": types.collect::<Vec<_>>(),
        "defaults": resource_limits(&limits.defaults),
        "projects": projects.collect::<Map<_, _>>(),
    })
}

fn resource_limits(limits: &ResourceLimits) -> Map<String, Value> {
    let limits = limits.iter();
    limits
        .map(|(resource, limit)| (resource.to_string(), json!(limit)))
        .collect()
}

/// The allocations of a choice, by consumer.
pub(crate) fn chosen(claim: &Claim, choice: usize) -> Value {
    let of_each = claim.claimants.iter().zip(&claim.choices[choice]);
    let allocations = of_each.map(|(claimant, allocations)| {
        let amounts = allocations.iter().map(|amounts| {
            let resources = amounts.resources.iter();
            let resources = resources.map(|(class, amount)| (class.to_string(), json!(amount)));
            let resources: Map<_, _> = resources.collect();
            (
                amounts.provider.to_string(),
                json!({ "resources": resources }),
            )
        });
        let amounts: Map<_, _> = amounts.collect();
        (
            claimant.consumer.to_string(),
            json!({ "allocations": amounts }),
        )
    });
    Value::Object(allocations.collect())
}

/// The path of a provider or of one of its sub-resources.
fn provider_path(provider: &ProviderUuid, rest: &str) -> String {
    format!("/resource_providers/{provider}{rest}")
}

/// JSON of an inventory with all fields.
pub(crate) fn record(inventory: &Inventory) -> Value {
    json!({
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    })
}

fn set<'a>(
    generation: i64,
    inventories: impl IntoIterator<Item = (&'a Given<ResourceClassName>, &'a Inventory)>,
) -> Value {
    let records: Map<String, Value> = inventories
        .into_iter()
        .map(|(class, inventory)| (class.to_string(), record(inventory)))
        .collect();
    json!({ "resource_provider_generation": generation, "inventories": records })
}

fn consumers_by_uuid(consumers: &[ConsumerAllocations], minor: u8) -> Value {
    let bodies = consumers
        .iter()
        .map(|one| (one.consumer.to_string(), consumer(one, minor)));
    Value::Object(bodies.collect())
}

/// One consumer's allocations: a list below 1.12, then a dict; with project and user from 1.8, the
/// expected generation from 1.28, the consumer type from 1.38.
fn consumer(one: &ConsumerAllocations, minor: u8) -> Value {
    let amounts = one.allocations.iter().map(|amounts| {
        let resources: Map<String, Value> = amounts
            .resources
            .iter()
            .map(|(class, amount)| (class.to_string(), json!(amount)))
            .collect();
        (amounts.provider.to_string(), resources)
    });
    let allocations = if minor >= 12 {
        let dict =
            amounts.map(|(provider, resources)| (provider, json!({ "resources": resources })));
        Value::Object(dict.collect())
    } else {
        let list = amounts.map(|(provider, resources)| {
            json!({ "resource_provider": { "uuid": provider }, "resources": resources })
        });
        Value::Array(list.collect())
    };
    let mut body = json!({ "allocations": allocations });
    if minor >= 8 {
        body["project_id"] = json!(one.project.as_str());
        body["user_id"] = json!(one.user.as_str());
    }
    match one.generation {
        ConsumerGeneration::Unchecked => {}
        ConsumerGeneration::New => body["consumer_generation"] = Value::Null,
        ConsumerGeneration::Expect(at) => body["consumer_generation"] = json!(at.0),
    }
    if let ConsumerTypeUpdate::Set(name) = &one.consumer_type {
        body["consumer_type"] = json!(name.as_str());
    }
    body
}
