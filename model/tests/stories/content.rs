//! Operator queries about the content of a cloud.

use placement_model::command::{Command, ReplaceProviderAggregates, ReplaceProviderTraits};
use placement_model::query::capacity::{CapacityBy, CapacitySums, ClassCapacity};
use placement_model::query::consumers::ConsumerFilter;
use placement_model::types::{AggregateUuid, Generation, Given, Inventory, Timestamp};

use crate::cloud::{Amounts, Cloud, class, consumer, create_inventory, provider, stock, wanted};

fn with_traits(cloud: &mut Cloud, name: &str, traits: &[&str]) {
    cloud.done(Command::ReplaceProviderTraits(ReplaceProviderTraits {
        provider: provider(name),
        generation: Generation(cloud.generation(name)),
        traits: traits.iter().map(|name| Given::from(*name)).collect(),
    }));
}

fn in_aggregate(cloud: &mut Cloud, name: &str, aggregate: &str) {
    cloud.done(Command::ReplaceProviderAggregates(
        ReplaceProviderAggregates {
            provider: provider(name),
            generation: None,
            aggregates: [AggregateUuid::from(aggregate)].into(),
        },
    ));
}

fn claimed(cloud: &mut Cloud, name: &str, amounts: &[Amounts<'_>]) {
    cloud.done(wanted(name, amounts).of_type("INSTANCE").put());
}

/// Two hosts. The VCPUs of the first belong to its NUMA node, and have reserved units and
/// overcommit.
fn numa_cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("MEMORY_MB", 100)]);
    cloud.child("cn1", "numa1", &[]);
    let vcpus = Inventory {
        reserved: 1,
        max_unit: 6,
        allocation_ratio: 1.5,
        ..stock(8)
    };
    cloud.done(create_inventory("numa1", "VCPU", vcpus));
    cloud.host("cn2", &[("MEMORY_MB", 100), ("VCPU", 4)]);
    cloud
}

fn sums(report: &[ClassCapacity]) -> Vec<(String, String, CapacitySums)> {
    let row = |row: &ClassCapacity| {
        let aggregate = row.aggregate.as_ref().map(ToString::to_string);
        let facet = aggregate
            .or_else(|| row.trait_name.as_ref().map(ToString::to_string))
            .or_else(|| {
                row.provider
                    .as_ref()
                    .map(|one| one.name.as_str().to_owned())
            });
        (
            row.class.to_string(),
            facet.unwrap_or_default(),
            row.sums.clone(),
        )
    };
    report.iter().map(row).collect()
}

fn capacity(
    cloud: &Cloud,
    of: Option<&str>,
    by: CapacityBy,
) -> Vec<(String, String, CapacitySums)> {
    let class = of.map(class);
    let report = cloud.state.capacity(class.as_ref(), by, 100).unwrap();
    sums(&report.capacity)
}

fn capacity_of(totals: &[u32]) -> CapacitySums {
    let mut sums = CapacitySums::default();
    for total in totals {
        sums.providers += 1;
        sums.total += u64::from(*total);
        sums.capacity += stock(*total).capacity();
        sums.free += u64::from(*total);
        sums.largest_free = sums.largest_free.max(u64::from(*total));
    }
    sums
}

#[test]
fn capacity_of_a_class_counts_overcommit_and_what_one_request_can_get() {
    let mut cloud = numa_cloud();
    claimed(&mut cloud, "vm1", &[("numa1", &[("VCPU", 3)])]);
    let mut memory = capacity_of(&[100, 100]);
    memory.free_ranges = vec![0, 0, 0, 0, 0, 0, 0, 2];
    let mut vcpus = capacity_of(&[8, 4]);
    vcpus.free_ranges = vec![0, 0, 0, 2];
    // 7 * 1.5 is truncated to 10.
    vcpus.capacity = stock(14).capacity();
    (vcpus.reserved, vcpus.used, vcpus.free, vcpus.largest_free) = (1, 3, 11, 6);
    let expected = [
        ("MEMORY_MB".to_owned(), String::new(), memory),
        ("VCPU".to_owned(), String::new(), vcpus),
    ];
    assert_eq!(capacity(&cloud, None, CapacityBy::Class), expected);
    let of_vcpus = capacity(&cloud, Some("VCPU"), CapacityBy::Class);
    assert_eq!(of_vcpus, expected[1..]);
    assert_eq!(capacity(&cloud, Some("PCPU"), CapacityBy::Class), []);
    assert_eq!(capacity(&cloud, Some("CUSTOM_NO"), CapacityBy::Class), []);
}

#[test]
fn usage_above_capacity_does_not_reduce_free_units_of_others() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8)]);
    cloud.host("cn2", &[("VCPU", 8)]);
    claimed(&mut cloud, "vm1", &[("cn1", &[("VCPU", 8)])]);
    let less = crate::cloud::update_inventory("cn1", cloud.generation("cn1"), "VCPU", stock(2));
    cloud.done(less);
    let [(_, _, sums)] = &capacity(&cloud, None, CapacityBy::Class)[..] else {
        panic!("expected one class with inventories");
    };
    assert_eq!((sums.used, sums.free, sums.largest_free), (8, 8, 8));
}

#[test]
fn root_lends_its_aggregates_to_its_tree_but_not_its_traits() {
    let mut cloud = numa_cloud();
    in_aggregate(&mut cloud, "cn1", "rack1");
    in_aggregate(&mut cloud, "numa1", "rack2");
    with_traits(&mut cloud, "cn1", &["HW_CPU_X86_AVX"]);
    with_traits(&mut cloud, "cn2", &["HW_CPU_X86_AVX", "HW_CPU_X86_VMX"]);
    let found = |of, by| -> Vec<(String, u64)> {
        let rows = capacity(&cloud, Some(of), by).into_iter();
        rows.map(|(_, facet, sums)| (facet, sums.total)).collect()
    };
    let expected = |all: &[(&str, u64)]| -> Vec<(String, u64)> {
        let all = all.iter();
        all.map(|(facet, total)| ((*facet).to_owned(), *total))
            .collect()
    };
    let by_aggregate = expected(&[("rack1", 8), ("rack2", 8)]);
    assert_eq!(found("VCPU", CapacityBy::Aggregate), by_aggregate);
    assert_eq!(
        found("MEMORY_MB", CapacityBy::Aggregate),
        expected(&[("rack1", 100)])
    );
    let by_trait = expected(&[("HW_CPU_X86_AVX", 4), ("HW_CPU_X86_VMX", 4)]);
    assert_eq!(found("VCPU", CapacityBy::Trait), by_trait);
    let by_trait = expected(&[("HW_CPU_X86_AVX", 200), ("HW_CPU_X86_VMX", 100)]);
    assert_eq!(found("MEMORY_MB", CapacityBy::Trait), by_trait);
}

#[test]
fn tree_has_the_capacity_of_its_providers() {
    let mut cloud = numa_cloud();
    claimed(&mut cloud, "vm1", &[("numa1", &[("VCPU", 3)])]);
    let found = |of, by| -> Vec<(String, u64, u64)> {
        let rows = capacity(&cloud, Some(of), by).into_iter();
        let mut rows: Vec<_> = rows
            .map(|(_, of, sums)| (of, sums.total, sums.used))
            .collect();
        rows.sort();
        rows
    };
    let row = |name: &str, total, used| (name.to_owned(), total, used);
    assert_eq!(
        found("VCPU", CapacityBy::Provider),
        [row("cn2", 4, 0), row("numa1", 8, 3)]
    );
    assert_eq!(
        found("VCPU", CapacityBy::Tree),
        [row("cn1", 8, 3), row("cn2", 4, 0)]
    );
    assert_eq!(
        found("MEMORY_MB", CapacityBy::Tree),
        [row("cn1", 100, 0), row("cn2", 100, 0)]
    );
}

#[test]
fn answer_above_row_limit_is_none() {
    let cloud = numa_cloud();
    assert!(cloud.state.capacity(None, CapacityBy::Class, 2).is_some());
    assert_eq!(cloud.state.capacity(None, CapacityBy::Class, 1), None);
}

/// The names of a page's consumers, and of the start of the next page.
fn page(
    cloud: &Cloud,
    filter: &ConsumerFilter,
    after: Option<&str>,
    limit: usize,
    rows_max: usize,
) -> (Vec<String>, Option<String>) {
    let after = after.map(consumer);
    let page = cloud
        .state
        .consumers(filter, after.as_ref(), limit, rows_max);
    let name = |uuid: &placement_model::types::ConsumerUuid| {
        let known = ["vm1", "vm2", "vm3", "vm4"].into_iter();
        let mut named = known.filter(|name| consumer(name) == *uuid);
        named.next().unwrap().to_owned()
    };
    let found = page.consumers.iter().map(|one| name(&one.uuid));
    (found.collect(), page.next.as_ref().map(name))
}

fn all(cloud: &Cloud, filter: &ConsumerFilter) -> Vec<String> {
    let (found, next) = page(cloud, filter, None, 100, 100);
    assert_eq!(next, None);
    found
}

/// Two hosts, one of them with a NUMA node, shared storage, and consumers of all of them.
fn busy_cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8)]);
    cloud.child("cn1", "numa1", &[("MEMORY_MB", 100)]);
    cloud.host("cn2", &[("VCPU", 8)]);
    cloud.host("nfs", &[("DISK_GB", 100)]);
    with_traits(&mut cloud, "nfs", &["MISC_SHARES_VIA_AGGREGATE"]);
    claimed(
        &mut cloud,
        "vm1",
        &[("cn1", &[("VCPU", 1)]), ("numa1", &[("MEMORY_MB", 5)])],
    );
    claimed(
        &mut cloud,
        "vm2",
        &[("cn2", &[("VCPU", 1)]), ("nfs", &[("DISK_GB", 5)])],
    );
    claimed(
        &mut cloud,
        "vm3",
        &[("cn1", &[("VCPU", 1)]), ("cn2", &[("VCPU", 2)])],
    );
    let other = wanted("vm4", &[("nfs", &[("DISK_GB", 1)])]);
    cloud.done(other.charged_to("q", "u").put());
    cloud
}

#[test]
fn consumers_are_filtered_by_class_and_provider() {
    let cloud = busy_cloud();
    let default = ConsumerFilter::default();
    assert_eq!(all(&cloud, &default), ["vm1", "vm2", "vm3", "vm4"]);
    let of = |name: &str| ConsumerFilter {
        provider: Some(provider(name)),
        ..ConsumerFilter::default()
    };
    assert_eq!(all(&cloud, &of("cn2")), ["vm2", "vm3"]);
    assert_eq!(all(&cloud, &of("nfs")), ["vm2", "vm4"]);
    assert!(all(&cloud, &of("gone")).is_empty());
    let with_class = |name: &str, of: ConsumerFilter| ConsumerFilter {
        class: Some(class(name)),
        ..of
    };
    let of_disk = with_class("DISK_GB", of("cn2"));
    assert!(
        all(&cloud, &of_disk).is_empty(),
        "vm2 has its disk on another provider"
    );
    let memory = with_class("MEMORY_MB", default.clone());
    assert_eq!(all(&cloud, &memory), ["vm1"]);
    let unknown = with_class("CUSTOM_NO", default.clone());
    assert!(all(&cloud, &unknown).is_empty());
    let several = ConsumerFilter {
        several_trees: true,
        ..default
    };
    assert_eq!(
        all(&cloud, &several),
        ["vm3"],
        "shared storage does not count as a second tree"
    );
}

#[test]
fn consumers_are_filtered_by_owner_type_and_time() {
    let cloud = busy_cloud();
    let found = |filter| all(&cloud, &filter);
    let of_project = ConsumerFilter {
        project: Some("q".into()),
        ..ConsumerFilter::default()
    };
    assert_eq!(found(of_project), ["vm4"]);
    let of_user = ConsumerFilter {
        user: Some("user".into()),
        ..ConsumerFilter::default()
    };
    assert_eq!(found(of_user), ["vm1", "vm2", "vm3"]);
    let without_type = ConsumerFilter {
        consumer_type: Some(None),
        ..ConsumerFilter::default()
    };
    assert_eq!(found(without_type), ["vm4"]);
    let written = cloud.consumer("vm2").unwrap().modified;
    let until = |at| ConsumerFilter {
        updated_until: Some(at),
        ..ConsumerFilter::default()
    };
    assert_eq!(found(until(written)), ["vm1", "vm2"]);
    assert_eq!(found(until(Timestamp(written.0 - 1))), ["vm1"]);
}

#[test]
fn page_ends_at_its_limits() {
    let cloud = busy_cloud();
    let filter = ConsumerFilter::default();
    let found = |after, limit, rows_max| page(&cloud, &filter, after, limit, rows_max);
    let names = |all: &[&str]| {
        all.iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let next = |name: &str| Some(name.to_owned());
    assert_eq!(found(None, 2, 100), (names(&["vm1", "vm2"]), next("vm2")));
    assert_eq!(found(Some("vm2"), 2, 100), (names(&["vm3", "vm4"]), None));
    assert_eq!(found(Some("vm4"), 2, 100), (names(&[]), None));
    // A consumer and its two amounts are three rows.
    assert_eq!(found(None, 9, 4), (names(&["vm1", "vm2"]), next("vm2")));
    let none = ConsumerFilter {
        project: Some("q".into()),
        ..ConsumerFilter::default()
    };
    assert_eq!(page(&cloud, &none, None, 9, 3), (names(&[]), next("vm1")));
}

#[test]
fn tree_is_shown_whole_from_any_of_its_providers() {
    let cloud = busy_cloud();
    let tree = cloud.state.tree_with(&provider("numa1")).unwrap();
    assert_eq!(cloud.state.tree_with(&provider("cn1")), Some(tree.clone()));
    assert_eq!(tree.root, provider("cn1"));
    let [host, numa] = &tree.providers[..] else {
        panic!("expected a host and a NUMA node");
    };
    assert_eq!((host.parent, numa.parent), (None, Some(provider("cn1"))));
    assert_eq!((host.holders, numa.holders), (2, 1));
    let vcpus = &host.inventories[&class("VCPU")];
    assert_eq!((vcpus.inventory, vcpus.used), (stock(8), 2));
    assert_eq!(cloud.state.tree_with(&provider("gone")), None);
}
