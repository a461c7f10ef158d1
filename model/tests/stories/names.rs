//! Resource classes, traits and aggregates.

use std::collections::BTreeSet;

use placement_model::command::{
    Command, CreateResourceClass, DeleteAllocations, DeleteInventories, DeleteProviderTraits,
    DeleteResourceClass, DeleteTrait, EnsureResourceClass, EnsureTrait, RenameResourceClass,
    ReplaceProviderAggregates, ReplaceProviderTraits, SyncStandards,
};
use placement_model::outcome::{Refusal, Reply};
use placement_model::standard;
use placement_model::types::{Generation, Given, TraitName};

use crate::cloud::{Cloud, class, create_inventory, provider, stock, wanted};

fn traits(names: &[&str]) -> BTreeSet<Given<TraitName>> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn set_traits(generation: i64, names: &[&str]) -> Command {
    Command::ReplaceProviderTraits(ReplaceProviderTraits {
        provider: provider("cn1"),
        generation: Generation(generation),
        traits: traits(names),
    })
}

#[test]
fn the_standards_are_there_once_however_often_they_are_synced() {
    let mut cloud = Cloud::new();
    let digest = cloud.digest();
    cloud.done(standard::sync());
    assert_eq!(cloud.digest(), digest);
    let classes = cloud.state.resource_classes();
    assert!(
        classes
            .iter()
            .map(|(name, _)| name.as_str())
            .eq(standard::RESOURCE_CLASSES)
    );
    assert_eq!(cloud.state.traits(None).len(), standard::TRAITS.len());
}

#[test]
fn a_standard_that_a_newer_binary_brings_is_listed_before_custom_classes() {
    let mut cloud = Cloud::new();
    cloud.done(Command::CreateResourceClass(CreateResourceClass {
        name: class("CUSTOM_GOLD"),
    }));
    cloud.done(Command::SyncStandards(SyncStandards {
        resource_classes: vec![class("VCPU"), class("BRAND_NEW")],
        traits: BTreeSet::new(),
    }));
    let names: Vec<_> = cloud
        .state
        .resource_classes()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names[names.len() - 2..],
        [class("BRAND_NEW"), class("CUSTOM_GOLD")]
    );
}

#[test]
fn a_custom_class_comes_is_renamed_in_use_and_goes_when_nobody_has_it() {
    let mut cloud = Cloud::new();
    let (gold, silver) = (class("CUSTOM_GOLD"), class("CUSTOM_SILVER"));
    cloud.done(Command::CreateResourceClass(CreateResourceClass {
        name: gold.clone(),
    }));
    let again = Command::CreateResourceClass(CreateResourceClass { name: gold.clone() });
    assert_eq!(
        cloud.refused(again),
        Refusal::ResourceClassExists(gold.clone())
    );
    let ensured = cloud.done(Command::EnsureResourceClass(EnsureResourceClass {
        name: gold.clone(),
    }));
    assert!(matches!(ensured, Reply::Named { created: false, .. }));

    cloud.host("cn1", &[]);
    cloud.done(create_inventory("cn1", "CUSTOM_GOLD", stock(4)));
    cloud.done(wanted("vm", &[("cn1", &[("CUSTOM_GOLD", 3)])]).put());
    cloud.done(Command::RenameResourceClass(RenameResourceClass {
        name: gold.clone(),
        new_name: silver.clone(),
    }));
    assert_eq!(cloud.used("cn1", "CUSTOM_SILVER"), 3);
    assert_eq!(
        cloud.consumer("vm").unwrap().allocations[0].resources,
        [(silver.clone(), 3)]
    );
    assert_eq!(cloud.state.resource_class(&gold), None);

    let delete = || {
        Command::DeleteResourceClass(DeleteResourceClass {
            name: silver.clone(),
        })
    };
    assert_eq!(
        cloud.refused(delete()),
        Refusal::ResourceClassInUse(silver.clone())
    );
    cloud.done(Command::DeleteAllocations(DeleteAllocations {
        consumer: crate::cloud::consumer("vm"),
    }));
    assert_eq!(
        cloud.refused(delete()),
        Refusal::ResourceClassInUse(silver.clone())
    );
    cloud.done(Command::DeleteInventories(DeleteInventories {
        provider: provider("cn1"),
    }));
    cloud.done(delete());
    assert_eq!(
        cloud.refused(delete()),
        Refusal::ResourceClassNotFound(Given::Valid(silver))
    );
}

#[test]
fn standard_classes_and_traits_stay_as_they_are() {
    let mut cloud = Cloud::new();
    let vcpu = class("VCPU");
    let refusal = cloud.refused(Command::DeleteResourceClass(DeleteResourceClass {
        name: vcpu.clone(),
    }));
    assert_eq!(refusal, Refusal::ResourceClassStandardDelete(vcpu.clone()));
    let new_name = class("CUSTOM_VCPU");
    let refusal = cloud.refused(Command::RenameResourceClass(RenameResourceClass {
        name: vcpu.clone(),
        new_name,
    }));
    assert_eq!(refusal, Refusal::ResourceClassStandardUpdate(vcpu));
    let avx: TraitName = "HW_CPU_X86_AVX2".parse().unwrap();
    let refusal = cloud.refused(Command::DeleteTrait(DeleteTrait { name: avx.clone() }));
    assert_eq!(refusal, Refusal::TraitStandard(avx));
}

#[test]
fn a_trait_cannot_go_while_a_provider_has_it() {
    let mut cloud = Cloud::new();
    let fast: TraitName = "CUSTOM_FAST".parse().unwrap();
    let created = cloud.done(Command::EnsureTrait(EnsureTrait { name: fast.clone() }));
    assert!(matches!(created, Reply::Named { created: true, .. }));
    cloud.host("cn1", &[]);
    cloud.done(set_traits(0, &["CUSTOM_FAST"]));
    let delete = Command::DeleteTrait(DeleteTrait { name: fast.clone() });
    assert_eq!(
        cloud.refused(delete.clone()),
        Refusal::TraitInUse(fast.clone())
    );
    cloud.done(Command::DeleteProviderTraits(DeleteProviderTraits {
        provider: provider("cn1"),
    }));
    cloud.done(delete.clone());
    assert_eq!(
        cloud.refused(delete),
        Refusal::TraitsNotFound(vec![Given::Valid(fast)])
    );
}

#[test]
fn traits_raise_the_generation_only_if_the_set_changes() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[]);
    cloud.done(set_traits(0, &["HW_CPU_X86_AVX2", "HW_CPU_X86_SSE"]));
    cloud.done(set_traits(1, &["HW_CPU_X86_SSE", "HW_CPU_X86_AVX2"]));
    assert_eq!(cloud.generation("cn1"), 1);
    cloud.done(Command::DeleteProviderTraits(DeleteProviderTraits {
        provider: provider("cn1"),
    }));
    cloud.done(Command::DeleteProviderTraits(DeleteProviderTraits {
        provider: provider("cn1"),
    }));
    assert_eq!(cloud.generation("cn1"), 2);
}

#[test]
fn a_wrong_generation_is_found_before_unknown_traits() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[]);
    let refusal = cloud.refused(set_traits(7, &["CUSTOM_GHOST"]));
    assert!(matches!(
        refusal,
        Refusal::ProviderGenerationConflict { .. }
    ));
    let refusal = cloud.refused(set_traits(0, &["CUSTOM_GHOST", "HW_CPU_X86_SSE"]));
    assert_eq!(
        refusal,
        Refusal::TraitsNotFound(vec!["CUSTOM_GHOST".parse().unwrap()])
    );
}

#[test]
fn aggregates_raise_the_generation_always_from_1_19_and_never_before() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[]);
    let set = |generation: Option<i64>| {
        Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
            provider: provider("cn1"),
            generation: generation.map(Generation),
            aggregates: ["Agg".into(), "agg".into()].into(),
        })
    };
    cloud.done(set(None));
    assert_eq!(cloud.generation("cn1"), 0);
    cloud.done(set(Some(0)));
    cloud.done(set(Some(1)));
    assert_eq!(cloud.generation("cn1"), 2);
    let refusal = cloud.refused(set(Some(0)));
    assert!(matches!(
        refusal,
        Refusal::ProviderGenerationConflict { .. }
    ));
    let aggregates = cloud
        .state
        .provider_aggregates(&provider("cn1"))
        .unwrap()
        .aggregates;
    assert_eq!(aggregates.len(), 2, "two spellings are two aggregates");
}
