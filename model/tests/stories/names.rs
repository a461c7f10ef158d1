//! Resource classes, traits and aggregates.

use std::collections::BTreeSet;

use placement_model::command::{
    Command, CreateResourceClass, DeleteProviderTraits, DeleteResourceClass, DeleteTrait,
    RenameResourceClass, ReplaceProviderAggregates, ReplaceProviderTraits, SyncStandards,
};
use placement_model::outcome::Refusal;
use placement_model::standard;
use placement_model::types::{Generation, Given, TraitName};

use crate::cloud::{Cloud, class, provider};

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
fn standard_names_are_created_once() {
    let mut cloud = Cloud::new();
    let digest = cloud.digest();
    cloud.done(standard::sync());
    assert_eq!(cloud.digest(), digest);
    let classes = cloud.state.resource_classes();
    assert!(
        classes
            .iter()
            .map(|(name, _)| name.as_str())
            .eq(standard::resource_classes())
    );
    assert_eq!(cloud.state.traits(None).len(), standard::traits().count());
}

#[test]
fn new_standard_class_is_listed_before_custom_classes() {
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
fn standard_classes_and_traits_cannot_be_changed() {
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
fn traits_increment_the_generation_only_if_the_set_changes() {
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
fn aggregates_increment_the_generation_only_from_1_19_on() {
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
    let (_, aggregates) = cloud.state.provider_aggregates(&provider("cn1")).unwrap();
    assert_eq!(aggregates.len(), 2, "two spellings are two aggregates");
}
