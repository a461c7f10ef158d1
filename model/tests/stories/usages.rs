//! What projects and users take.

use std::collections::BTreeMap;

use placement_model::types::{ProjectId, UserId};

use crate::cloud::{Cloud, class, wanted};

/// Per type: how many consumers, and how many VCPUs.
fn vcpus(cloud: &Cloud, project: &str, user: Option<&str>) -> BTreeMap<String, (u64, u64)> {
    let user = user.map(UserId::from);
    let usages = cloud.state.usages(&ProjectId::from(project), user.as_ref());
    let name = |name: Option<_>| {
        name.map_or(
            "unknown".to_owned(),
            |name: placement_model::types::ConsumerTypeName| name.to_string(),
        )
    };
    usages
        .into_iter()
        .map(|(of, usage)| {
            (
                name(of),
                (usage.consumer_count, usage.usages[&class("VCPU")]),
            )
        })
        .collect()
}

fn expected(all: &[(&str, u64, u64)]) -> BTreeMap<String, (u64, u64)> {
    all.iter()
        .map(|(name, count, units)| ((*name).to_owned(), (*count, *units)))
        .collect()
}

#[test]
fn consumers_are_counted_once_per_type_however_many_providers_they_use() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8), ("DISK_GB", 9)]);
    cloud.host("cn2", &[("VCPU", 8)]);
    let both: &[(&str, &[(&str, u64)])] = &[
        ("cn1", &[("VCPU", 1), ("DISK_GB", 3)]),
        ("cn2", &[("VCPU", 2)]),
    ];
    cloud.done(
        wanted("vm1", both)
            .charged_to("p", "u1")
            .of_type("INSTANCE")
            .put(),
    );
    let one: &[(&str, &[(&str, u64)])] = &[("cn1", &[("VCPU", 2)])];
    cloud.done(
        wanted("vm2", one)
            .charged_to("p", "u2")
            .of_type("INSTANCE")
            .put(),
    );
    cloud.done(wanted("old", one).charged_to("p", "u2").unchecked().put());
    cloud.done(
        wanted("else", one)
            .charged_to("q", "u1")
            .of_type("INSTANCE")
            .put(),
    );
    assert_eq!(
        vcpus(&cloud, "p", None),
        expected(&[("INSTANCE", 2, 5), ("unknown", 1, 2)])
    );
    assert_eq!(
        vcpus(&cloud, "p", Some("u1")),
        expected(&[("INSTANCE", 1, 3)])
    );
    assert_eq!(
        vcpus(&cloud, "p", Some("u2")),
        expected(&[("INSTANCE", 1, 2), ("unknown", 1, 2)])
    );
    assert_eq!(vcpus(&cloud, "r", None), expected(&[]));

    cloud.done(
        wanted("vm1", one)
            .charged_to("q", "u1")
            .of_type("MIGRATION")
            .at(1)
            .put(),
    );
    assert_eq!(vcpus(&cloud, "p", Some("u1")), expected(&[]));
    assert_eq!(
        vcpus(&cloud, "q", None),
        expected(&[("INSTANCE", 1, 2), ("MIGRATION", 1, 2)])
    );
    cloud.done(wanted("vm1", &[]).at(2).put());
    assert_eq!(vcpus(&cloud, "q", None), expected(&[("INSTANCE", 1, 2)]));
}

#[test]
fn a_consumer_that_holds_nothing_is_not_counted() {
    let mut cloud = Cloud::new();
    cloud.done(
        wanted("vm", &[])
            .charged_to("p", "u")
            .of_type("INSTANCE")
            .put(),
    );
    assert_eq!(vcpus(&cloud, "p", None), expected(&[]));
}
