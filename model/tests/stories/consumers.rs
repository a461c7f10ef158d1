//! Consumers and their allocations.

use placement_model::command::{Command, DeleteAllocations};
use placement_model::outcome::Refusal;
use placement_model::types::{Generation, Inventory};

use crate::cloud::{
    Cloud, class, consumer, create_inventory, given, post, provider, stock, update_inventory,
    wanted,
};

fn cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8), ("MEMORY_MB", 64)]);
    cloud.host("cn2", &[("VCPU", 8), ("MEMORY_MB", 64)]);
    cloud
}

fn capacity_of(name: &str) -> Refusal {
    Refusal::AllocationCapacity(provider(name), class("VCPU"))
}

fn conflict(name: &str, given: Option<i64>, actual: Option<i64>) -> Refusal {
    Refusal::ConsumerGenerationConflict {
        consumer: consumer(name),
        given: given.map(Generation),
        actual: actual.map(Generation),
    }
}

#[test]
fn consumer_generation_starts_at_1_and_empty_consumers_are_deleted() {
    let mut cloud = cloud();
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 1)])]).put());
    assert_eq!(cloud.consumer_generation("vm"), Some(1));
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 2)])]).at(1).put());
    assert_eq!(cloud.consumer_generation("vm"), Some(2));
    cloud.done(wanted("vm", &[]).at(2).put());
    assert_eq!(cloud.consumer_generation("vm"), None);
    let refusal = cloud.refused(wanted("vm", &[("cn1", &[("VCPU", 1)])]).at(3).put());
    assert_eq!(refusal, conflict("vm", Some(3), None));
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 1)])]).put());
    cloud.done(Command::DeleteAllocations(DeleteAllocations {
        consumer: consumer("vm"),
    }));
    assert_eq!(cloud.consumer_generation("vm"), None);
}

#[test]
fn empty_write_of_a_new_consumer_creates_it() {
    let mut cloud = cloud();
    cloud.done(wanted("vm", &[]).put());
    assert_eq!(cloud.consumer_generation("vm"), Some(0));
    assert!(cloud.consumer("vm").unwrap().allocations.is_empty());
    let some = || wanted("vm", &[("cn1", &[("VCPU", 1)])]);
    assert_eq!(cloud.refused(some().put()), conflict("vm", None, Some(0)));
    let delete = Command::DeleteAllocations(DeleteAllocations {
        consumer: consumer("vm"),
    });
    let nothing = Refusal::ConsumerHasNoAllocations(consumer("vm"));
    assert_eq!(cloud.refused(delete), nothing);
    cloud.done(wanted("vm", &[]).at(0).put());
    assert_eq!(cloud.consumer_generation("vm"), Some(0));
    cloud.done(some().at(0).put());
    assert_eq!(cloud.consumer_generation("vm"), Some(1));
}

#[test]
fn unknown_provider_leaves_new_consumers_behind() {
    let mut cloud = cloud();
    let good = || wanted("vm1", &[("cn1", &[("VCPU", 1)])]).of_type("INSTANCE");
    let bad = || wanted("vm2", &[("cn1", &[("VCPU", 1)]), ("ghost", &[("VCPU", 1)])]);
    let refusal = cloud.refused(post([good(), bad()]));
    assert_eq!(refusal, Refusal::AllocationProviderNotFound(given("ghost")));
    for name in ["vm1", "vm2"] {
        assert_eq!(cloud.consumer_generation(name), Some(0), "{name}");
        assert!(
            cloud.consumer(name).unwrap().allocations.is_empty(),
            "{name}"
        );
    }
    assert_eq!(
        cloud
            .consumer("vm1")
            .unwrap()
            .consumer_type
            .map(|t| t.to_string())
            .as_deref(),
        Some("INSTANCE")
    );
    assert_eq!(cloud.refused(good().put()), conflict("vm1", None, Some(0)));
    cloud.done(post([good().at(0)]));
}

#[test]
fn provider_generation_rises_if_named_or_emptied_but_not_if_dropped_or_deleted_from() {
    let mut cloud = cloud();
    assert_eq!((cloud.generation("cn1"), cloud.generation("cn2")), (2, 2));
    let (one, other): (&[_], &[_]) = (&[("VCPU", 1)], &[("VCPU", 1), ("MEMORY_MB", 2)]);
    cloud.done(wanted("vm", &[("cn1", one), ("cn2", other)]).put());
    assert_eq!((cloud.generation("cn1"), cloud.generation("cn2")), (3, 3));
    cloud.done(wanted("vm", &[("cn2", one)]).at(1).put());
    assert_eq!((cloud.generation("cn1"), cloud.generation("cn2")), (3, 4));
    cloud.done(wanted("vm", &[]).at(2).put());
    assert_eq!((cloud.generation("cn1"), cloud.generation("cn2")), (3, 5));
    cloud.done(wanted("vm", &[("cn1", one)]).put());
    cloud.done(Command::DeleteAllocations(DeleteAllocations {
        consumer: consumer("vm"),
    }));
    assert_eq!((cloud.generation("cn1"), cloud.generation("cn2")), (4, 5));
}

#[test]
fn amounts_of_one_request_add_up() {
    let mut cloud = cloud();
    let six: &[_] = &[("VCPU", 6)];
    let both = || {
        [
            wanted("vm1", &[("cn1", six)]),
            wanted("vm2", &[("cn1", six)]),
        ]
    };
    assert_eq!(cloud.refused(post(both())), capacity_of("cn1"));
    assert_eq!(cloud.used("cn1", "VCPU"), 0);
}

#[test]
fn consumer_releases_its_allocations_before_a_new_claim() {
    let mut cloud = cloud();
    cloud.done(wanted("vm1", &[("cn1", &[("VCPU", 6)])]).put());
    cloud.done(wanted("vm1", &[("cn1", &[("VCPU", 8)])]).at(1).put());
    let swap = [
        wanted("vm1", &[("cn2", &[("VCPU", 8)])]).at(2),
        wanted("vm2", &[("cn1", &[("VCPU", 8)])]),
    ];
    cloud.done(post(swap));
    assert_eq!(
        (cloud.used("cn1", "VCPU"), cloud.used("cn2", "VCPU")),
        (8, 8)
    );
}

#[test]
fn usage_above_capacity_may_shrink_or_stay_but_not_grow() {
    let mut cloud = cloud();
    cloud.done(wanted("vm1", &[("cn1", &[("VCPU", 4)])]).put());
    cloud.done(wanted("vm2", &[("cn1", &[("VCPU", 4)])]).put());
    cloud.done(update_inventory(
        "cn1",
        4,
        "VCPU",
        Inventory {
            max_unit: 8,
            ..stock(2)
        },
    ));
    let want = |amount, generation| {
        wanted("vm1", &[("cn1", &[("VCPU", amount)])])
            .at(generation)
            .put()
    };
    cloud.done(want(4, 1));
    assert_eq!(cloud.refused(want(5, 2)), capacity_of("cn1"));
    cloud.done(want(3, 2));
    assert_eq!(cloud.refused(want(4, 3)), capacity_of("cn1"));
    let refusal = cloud.refused(wanted("vm3", &[("cn1", &[("VCPU", 1)])]).put());
    assert_eq!(refusal, capacity_of("cn1"));
}

#[test]
fn units_are_checked_before_capacity() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[]);
    let inventory = Inventory {
        min_unit: 4,
        max_unit: 12,
        step_size: 4,
        ..stock(8)
    };
    cloud.done(create_inventory("cn1", "VCPU", inventory));
    let want = |amount| wanted("vm", &[("cn1", &[("VCPU", amount)])]).put();
    for amount in [1, 2, 6, 16] {
        let refusal = cloud.refused(want(amount));
        assert!(
            matches!(refusal, Refusal::AllocationConstraints { .. }),
            "{amount}"
        );
    }
    assert_eq!(cloud.refused(want(12)), capacity_of("cn1"));
    cloud.done(want(8));
}

#[test]
fn many_consumers_are_written_atomically_including_their_owners() {
    let mut cloud = cloud();
    let one: &[_] = &[("VCPU", 1)];
    cloud.done(
        wanted("vm1", &[("cn1", one)])
            .charged_to("p1", "u1")
            .of_type("INSTANCE")
            .put(),
    );
    let digest = cloud.digest();
    let moved = || {
        wanted("vm1", &[("cn2", one)])
            .charged_to("p2", "u2")
            .of_type("MIGRATION")
            .at(1)
    };
    let too_much = wanted("vm2", &[("cn2", &[("VCPU", 8)])]);
    assert_eq!(cloud.refused(post([moved(), too_much])), capacity_of("cn2"));
    assert_eq!(cloud.digest(), digest);
    cloud.done(moved().put());
    let vm1 = cloud.consumer("vm1").unwrap();
    assert_eq!((vm1.project.as_str(), vm1.user.as_str()), ("p2", "u2"));
    assert_eq!(vm1.consumer_type.unwrap().as_str(), "MIGRATION");
}
