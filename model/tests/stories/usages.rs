//! Usage of projects and users.

use placement_model::types::{ProjectId, UserId};

use crate::cloud::{Cloud, class, wanted};

/// The number of consumers and of VCPUs per type.
fn vcpus(cloud: &Cloud, project: &str, user: Option<&str>) -> Vec<(String, u64, u64)> {
    let user = user.map(UserId::from);
    let mut usages: Vec<_> = cloud
        .state
        .usages(&ProjectId::from(project), user.as_ref())
        .into_iter()
        .map(|(of, usage)| {
            let name = of.map_or("unknown".to_owned(), |name| name.to_string());
            (name, usage.consumer_count, usage.usages[&class("VCPU")])
        })
        .collect();
    usages.sort();
    usages
}

fn expected(all: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    let one = |(name, count, units): &(&str, u64, u64)| ((*name).to_owned(), *count, *units);
    all.iter().map(one).collect()
}

#[test]
fn consumers_are_counted_once_per_type() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8), ("DISK_GB", 9)]);
    cloud.host("cn2", &[("VCPU", 8)]);
    let one: &[(&str, &[(&str, u64)])] = &[("cn1", &[("VCPU", 2)])];
    let both: &[(&str, &[(&str, u64)])] = &[
        ("cn1", &[("VCPU", 1), ("DISK_GB", 3)]),
        ("cn2", &[("VCPU", 2)]),
    ];
    let instance = |name, amounts, user| wanted(name, amounts).charged_to("p", user);
    cloud.done(instance("vm1", both, "u1").of_type("INSTANCE").put());
    cloud.done(instance("vm2", one, "u2").of_type("INSTANCE").put());
    cloud.done(instance("old", one, "u2").unchecked().put());
    let of_u1 = expected(&[("INSTANCE", 1, 3)]);
    let of_u2 = expected(&[("INSTANCE", 1, 2), ("unknown", 1, 2)]);
    let of_all = expected(&[("INSTANCE", 2, 5), ("unknown", 1, 2)]);
    assert_eq!(vcpus(&cloud, "p", None), of_all);
    assert_eq!(vcpus(&cloud, "p", Some("u1")), of_u1);
    assert_eq!(vcpus(&cloud, "p", Some("u2")), of_u2);

    let moved = wanted("vm1", one)
        .charged_to("q", "u1")
        .of_type("MIGRATION");
    cloud.done(moved.at(1).put());
    assert_eq!(vcpus(&cloud, "p", Some("u1")), []);
    assert_eq!(vcpus(&cloud, "q", None), expected(&[("MIGRATION", 1, 2)]));
    cloud.done(wanted("vm1", &[]).at(2).put());
    assert_eq!(vcpus(&cloud, "q", None), []);
}
