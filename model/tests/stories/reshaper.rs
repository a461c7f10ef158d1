//! Reshapes move inventories and allocations in one step.

use placement_model::command::Reshape;
use placement_model::outcome::Refusal;
use placement_model::types::Inventory;

use crate::cloud::{Cloud, asked, given, provider, reshape, stock, wanted};

/// A host with one instance, and a child to which the tests move its VGPUs.
fn cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8), ("VGPU", 4)]);
    cloud.child("cn1", "pgpu", &[]);
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 2), ("VGPU", 2)])]).put());
    cloud
}

#[test]
fn a_class_in_use_moves_to_a_child() {
    let mut cloud = cloud();
    assert_eq!((cloud.generation("cn1"), cloud.generation("pgpu")), (3, 0));
    cloud.done(reshape(
        &[("cn1", 3, &[("VCPU", 8)]), ("pgpu", 0, &[("VGPU", 4)])],
        [wanted("vm", &[("cn1", &[("VCPU", 2)]), ("pgpu", &[("VGPU", 2)])]).at(1)],
    ));
    assert_eq!(
        (cloud.used("cn1", "VCPU"), cloud.used("pgpu", "VGPU")),
        (2, 2)
    );
    let (_, left) = cloud.state.inventories(&provider("cn1")).unwrap();
    assert_eq!(left.len(), 1);
    // One increment each for adding the new inventories, moving the allocations, and deleting the
    // old inventories.
    assert_eq!((cloud.generation("cn1"), cloud.generation("pgpu")), (6, 3));
    assert_eq!(cloud.consumer_generation("vm"), Some(2));
}

#[test]
fn unused_provider_that_is_emptied_is_incremented_once() {
    let mut cloud = cloud();
    cloud.host("cn2", &[("VCPU", 8)]);
    cloud.done(reshape(&[("cn2", 1, &[])], []));
    assert_eq!(cloud.generation("cn2"), 2);
    cloud.done(reshape(&[("cn2", 2, &[("VCPU", 4)])], []));
    assert_eq!(cloud.generation("cn2"), 4);
}

#[test]
fn checks_inventories_then_consumers_then_providers_of_allocations() {
    let mut cloud = cloud();
    let bad_consumer = || wanted("vm", &[("ghost", &[("VCPU", 1)])]).at(7);
    let refusal = cloud.refused(reshape(&[("phantom", 0, &[])], [bad_consumer()]));
    assert_eq!(refusal, Refusal::ReshapeProviderNotFound(given("phantom")));
    let refusal = cloud.refused(reshape(&[("cn1", 0, &[])], [bad_consumer()]));
    assert!(matches!(
        refusal,
        Refusal::ProviderGenerationConflict { .. }
    ));
    let refusal = cloud.refused(reshape(&[("cn1", 3, &[])], [bad_consumer()]));
    assert!(matches!(
        refusal,
        Refusal::ConsumerGenerationConflict { .. }
    ));
    let fresh = wanted("new", &[("ghost", &[("VCPU", 1)])]);
    let refusal = cloud.refused(reshape(&[("cn1", 3, &[("CUSTOM_GHOST", 1)])], [fresh]));
    assert_eq!(refusal, Refusal::AllocationProviderNotFound(given("ghost")));
    assert_eq!(
        cloud.consumer_generation("new"),
        Some(0),
        "the new consumer remains"
    );
    let refusal = cloud.refused(reshape(&[("cn1", 3, &[("CUSTOM_GHOST", 1)])], []));
    assert_eq!(
        refusal,
        Refusal::ResourceClassNotFound(asked("CUSTOM_GHOST"))
    );
}

#[test]
fn reserved_amounts_are_not_checked() {
    let mut cloud = cloud();
    let mut command = reshape(&[("pgpu", 0, &[("VGPU", 1)])], []);
    let placement_model::Command::Reshape(Reshape { inventories, .. }) = &mut command else {
        unreachable!("the command is a reshape")
    };
    inventories[0].inventories = [(
        asked("VGPU"),
        Inventory {
            reserved: 9,
            ..stock(1)
        },
    )]
    .into();
    cloud.done(command);
    assert_eq!(cloud.generation("pgpu"), 2);
}
