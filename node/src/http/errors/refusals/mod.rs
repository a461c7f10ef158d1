//! What a client hears when the model refuses: the one table from refusals to errors.

mod allocations;
mod inventories;
mod names;
mod resource_providers;

use http::StatusCode;
use placement_model::Refusal;

use crate::http::errors::code;
use crate::http::errors::error::ApiError;
use crate::http::errors::write_kind::WriteKind;

pub(in crate::http) use resource_providers::without_name as provider_without_name;

/// The error of a refusal.
pub(in crate::http) fn refused(write: WriteKind<'_>, refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::ProviderNotFound(uuid) => resource_providers::not_found(write, uuid),
        Refusal::DuplicateProviderUuid(uuid) => resource_providers::duplicate_uuid(uuid),
        Refusal::DuplicateProviderName(name) => resource_providers::duplicate_name(write, &name),
        Refusal::ParentNotFound(_) => resource_providers::parent_not_found(write),
        Refusal::ParentLoop(_) => resource_providers::parent_loop(write),
        Refusal::ReparentForbidden(_) => resource_providers::reparent_forbidden(write),
        Refusal::ProviderHasChildren(uuid) => resource_providers::has_children(uuid),
        Refusal::ProviderInUse(uuid) => resource_providers::in_use(uuid),
        Refusal::ProviderGenerationConflict {
            provider,
            given,
            actual,
        } => resource_providers::generation_conflict(write, provider, given, actual),

        Refusal::ResourceClassNotFound(name) => names::class_not_found(write, &name.to_string()),
        Refusal::ResourceClassExists(name) => names::class_exists(write, &name),
        Refusal::ResourceClassInUse(name) => names::class_in_use(&name),
        Refusal::ResourceClassStandardDelete(name) => names::class_is_standard(&name),
        Refusal::ResourceClassStandardUpdate(name) => names::class_keeps_its_name(&name),
        Refusal::TraitsNotFound(traits) => names::traits_not_found(write, &traits),
        Refusal::TraitInUse(name) => names::trait_in_use(&name),
        Refusal::TraitStandard(name) => names::trait_is_standard(&name),

        Refusal::InventoryExists {
            provider,
            resource_class,
        } => inventories::exists(provider, &resource_class),
        Refusal::InventoryNotFound {
            provider,
            resource_class,
        } => inventories::not_found(write, provider, &resource_class),
        Refusal::InventoryInUse {
            provider,
            resource_classes,
        } => inventories::in_use(write, provider, &resource_classes),
        Refusal::InventoryCapacity {
            provider,
            resource_class,
            may_reserve_all,
        } => inventories::capacity(write, provider, &resource_class, may_reserve_all),

        Refusal::AllocationProviderNotFound(provider) => allocations::provider_not_found(&provider),
        Refusal::ReshapeProviderNotFound(provider) => {
            allocations::reshaped_provider_not_found(&provider)
        }
        Refusal::ConsumerGenerationConflict {
            consumer,
            given,
            actual,
        } => allocations::consumer_generation_conflict(&consumer, given, actual),
        Refusal::ConsumerHasNoAllocations(consumer) => allocations::none_to_delete(&consumer),
        Refusal::AllocationWithoutInventory {
            resource_classes,
            providers,
        } => allocations::without_inventory(&resource_classes, &providers),
        Refusal::AllocationConstraints {
            provider,
            resource_class,
        } => allocations::violates_constraints(provider, &resource_class),
        Refusal::AllocationCapacity {
            provider,
            resource_class,
        } => allocations::exceeds_capacity(provider, &resource_class),

        Refusal::IdsExhausted => ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            code::UNDEFINED,
            refusal.to_string(),
        ),
        // The client asks again, and the name leads to the one that is there now, or to none.
        Refusal::PartitionGone(_) => ApiError::with_new_code(
            StatusCode::SERVICE_UNAVAILABLE,
            code::NO_PARTITION,
            format!("The partition was deleted: {refusal}. Nothing was committed."),
        )
        .retry_after(1),
        // The request is routed anew when the client sends it again.
        Refusal::RoutesChanged(_) => crate::doors::Unavailable::Rerouted.into(),
        // Operators' own: no request of the API comes to them.
        Refusal::PartitionNotFound(_)
        | Refusal::PartitionExists(_)
        | Refusal::PartitionInUse(_)
        | Refusal::PartitionDefault
        | Refusal::RouteTaken { .. }
        | Refusal::DefaultWithoutHost
        | Refusal::DefaultPrefix
        | Refusal::PartitionsExhausted => {
            ApiError::new(StatusCode::CONFLICT, code::UNDEFINED, refusal.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::errors::error::ErrorKind;

    #[test]
    fn a_client_that_repeats_does_not_sleep_until_there_are_ids() {
        let exhausted = refused(WriteKind::AllocateMany, Refusal::IdsExhausted);
        assert_eq!(exhausted.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(exhausted.kind, ErrorKind::Plain);
    }
}
