//! Rules of the candidate search, one test per rule.
#![allow(clippy::unwrap_used)] // A panic fails the test.

use std::ops::ControlFlow;

use placement_model::query::UnknownName;
use placement_model::query::candidates::{CandidateRequest, GenerationStrategy, GroupPolicy};
use placement_naive::named::{self, AllocationRequest, Answers};
use placement_naive::sample_cloud::{
    SampleCloud, Stock, Wishes, group, provider, request, sample_cloud, units,
};

/// The answers in order, as text such as `cn1 VCPU:1 MEMORY_MB:512, storage DISK_GB:10`.
fn taken(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Vec<String> {
    let state = sample_cloud.state();
    let answers = named::answers(&state, request).expect("a request with known names");
    let answers = answers.iter();
    answers
        .map(|answer| allocations(sample_cloud, answer))
        .collect()
}

fn allocations(sample_cloud: &SampleCloud, answer: &AllocationRequest) -> String {
    let placed = answer.allocations.iter().map(|placed| {
        let amounts = placed.resources.iter();
        let amounts: Vec<String> = amounts
            .map(|(class, amount)| format!("{class}:{amount}"))
            .collect();
        format!(
            "{} {}",
            sample_cloud.name(placed.provider),
            amounts.join(" ")
        )
    });
    placed.collect::<Vec<_>>().join(", ")
}

/// The mappings in order, as text such as `=cn1 _NET=vf0`.
fn mapped(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Vec<String> {
    let state = sample_cloud.state();
    let answers = named::answers(&state, request).expect("a request with known names");
    answers
        .iter()
        .map(|answer| {
            let groups = answer.mappings.iter().map(|(suffix, providers)| {
                let names: Vec<&str> = providers
                    .iter()
                    .map(|uuid| sample_cloud.name(*uuid))
                    .collect();
                format!("{suffix}={}", names.join("+"))
            });
            groups.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

fn error(sample_cloud: &SampleCloud, request: &CandidateRequest) -> UnknownName {
    match sample_cloud.state().candidates(request, None) {
        Ok(_) => panic!("a request with unknown names is accepted"),
        Err(error) => error,
    }
}

fn summarized(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Vec<String> {
    let state = sample_cloud.state();
    let found = named::candidates(&state, request).unwrap();
    found
        .provider_summaries
        .iter()
        .map(|one| sample_cloud.name(one.provider).to_owned())
        .collect()
}

const NOTHING: &[String] = &[];

/// Two hosts, and a sharing provider with storage for both.
fn shared_storage() -> SampleCloud {
    sample_cloud([
        provider("cn1").has("VCPU", 4).member("agg"),
        provider("cn2").has("VCPU", 4).member("agg"),
        provider("storage").has("DISK_GB", 100).shares_with("agg"),
    ])
}

/// A host with two NUMA nodes, each with a network card below it.
fn numa_host() -> SampleCloud {
    sample_cloud([
        provider("host").has("DISK_GB", 100),
        provider("numa0").under("host").has("VCPU", 4),
        provider("numa1").under("host").has("VCPU", 4),
        provider("nic0").under("numa0").has("CUSTOM_VF", 2),
        provider("nic1").under("numa1").has("CUSTOM_VF", 2),
    ])
}

/// A host with `count` devices of one unit each.
fn devices(count: usize) -> SampleCloud {
    let mut providers = vec![provider("host").has("VCPU", 64)];
    providers.extend((0..count).map(|n| {
        provider(&format!("dev{n}"))
            .under("host")
            .has("CUSTOM_VF", 1)
    }));
    sample_cloud(providers)
}

fn alike_groups(count: usize) -> CandidateRequest {
    let mut request = request((0..count).map(|n| group(&format!("_{n}"), &[("CUSTOM_VF", 1)])));
    request.group_policy = Some(GroupPolicy::None);
    request
}

mod errors_and_their_order {
    use super::*;

    fn unknown_class() -> UnknownName {
        UnknownName::ResourceClass("NOPE".parse().unwrap())
    }

    fn unknown_trait() -> UnknownName {
        UnknownName::Traits(vec!["NOPE".parse().unwrap()])
    }

    #[test]
    fn a_group_without_answer_hides_a_wrong_one_behind_it() {
        let cloud = sample_cloud([provider("cn").has("VCPU", 4)]);
        let hopeless = group("1", &[("VCPU", 9999)]);
        let wrong = group("2", &[("NOPE", 1)]);
        assert_eq!(
            taken(&cloud, &request([hopeless.clone(), wrong.clone()])),
            NOTHING
        );
        assert_eq!(error(&cloud, &request([wrong, hopeless])), unknown_class());
    }

    #[test]
    fn an_aggregate_without_members_is_seen_between_classes_and_traits() {
        let cloud = sample_cloud([provider("cn").has("VCPU", 4)]);
        let unknown = group("", &[("VCPU", 1)]).member_of(&["unknown"]);
        assert_eq!(
            taken(&cloud, &request([unknown.clone().required(&["NOPE"])])),
            NOTHING
        );
        let mut wrong_class = unknown;
        wrong_class.resources.insert("NOPE".parse().unwrap(), 1);
        assert_eq!(error(&cloud, &request([wrong_class])), unknown_class());
    }

    #[test]
    fn roots_come_before_all_groups() {
        let cloud = sample_cloud([provider("cn").has("VCPU", 4)]);
        let mut request = request([group("", &[("NOPE", 1)])]);
        request.root_required.insert("CUSTOM_RED".parse().unwrap());
        assert_eq!(taken(&cloud, &request), NOTHING, "no root has CUSTOM_RED");
        request.root_forbidden.insert("NOPE".parse().unwrap());
        assert_eq!(error(&cloud, &request), unknown_trait());
    }
}

mod the_unnumbered_group {
    use super::*;

    #[test]
    fn spans_the_providers_of_a_tree() {
        let request = request([group("", &[("VCPU", 1), ("DISK_GB", 5)])]);
        assert_eq!(
            taken(&numa_host(), &request),
            [
                "host DISK_GB:5, numa0 VCPU:1",
                "host DISK_GB:5, numa1 VCPU:1"
            ]
        );
    }

    #[test]
    fn takes_what_a_sharing_provider_gives() {
        let request = request([group("", &[("VCPU", 1), ("DISK_GB", 5)])]);
        assert_eq!(
            taken(&shared_storage(), &request),
            [
                "cn1 VCPU:1, storage DISK_GB:5",
                "cn2 VCPU:1, storage DISK_GB:5"
            ]
        );
    }

    #[test]
    fn needs_its_traits_on_the_providers_it_uses_together() {
        let cloud = sample_cloud([
            provider("host").has("DISK_GB", 10).bears("CUSTOM_RED"),
            provider("child")
                .under("host")
                .has("VCPU", 4)
                .bears("CUSTOM_BLUE"),
            provider("idle").under("host").bears("CUSTOM_GREEN"),
        ]);
        let both = group("", &[("VCPU", 1), ("DISK_GB", 5)]);
        let painted = both
            .clone()
            .required(&["CUSTOM_RED"])
            .required(&["CUSTOM_BLUE"]);
        assert_eq!(taken(&cloud, &request([painted])).len(), 1);
        let unused = both.clone().required(&["CUSTOM_GREEN"]);
        assert_eq!(
            taken(&cloud, &request([unused])),
            NOTHING,
            "an unused provider does not count"
        );
        let either = both.clone().required(&["CUSTOM_GREEN", "CUSTOM_BLUE"]);
        assert_eq!(taken(&cloud, &request([either])).len(), 1);
        let no_green = both.clone().without("CUSTOM_GREEN");
        assert_eq!(
            taken(&cloud, &request([no_green])).len(),
            1,
            "a forbidden trait on an unused provider has no effect"
        );
        assert_eq!(
            taken(&cloud, &request([both.without("CUSTOM_BLUE")])),
            NOTHING
        );
    }

    #[test]
    fn is_where_its_root_is_a_member() {
        let cloud = sample_cloud([
            provider("in").member("agg"),
            provider("in-child").under("in").has("VCPU", 4),
            provider("out"),
            provider("out-child").under("out").has("VCPU", 4),
            provider("out-member")
                .under("out")
                .has("VCPU", 4)
                .member("agg"),
        ]);
        let vcpu = group("", &[("VCPU", 1)]);
        assert_eq!(
            taken(
                &cloud,
                &request([vcpu.clone().member_of(&["agg", "unknown"])])
            ),
            ["in-child VCPU:1", "out-member VCPU:1"]
        );
        assert_eq!(
            taken(&cloud, &request([vcpu.not_member_of("agg")])),
            ["out-child VCPU:1"]
        );
    }
}

mod named_groups {
    use super::*;

    #[test]
    fn have_everything_from_one_provider() {
        let cloud = sample_cloud([
            provider("host")
                .has("DISK_GB", 10)
                .bears("CUSTOM_RED")
                .member("agg"),
            provider("child")
                .under("host")
                .has("VCPU", 4)
                .has("MEMORY_MB", 64),
        ]);
        let ask = |group| taken(&cloud, &request([group]));
        assert_eq!(ask(group("1", &[("VCPU", 1), ("DISK_GB", 5)])), NOTHING);
        let child = group("1", &[("VCPU", 1), ("MEMORY_MB", 8)]);
        assert_eq!(ask(child.clone()), ["child MEMORY_MB:8 VCPU:1"]);
        assert_eq!(ask(child.clone().required(&["CUSTOM_RED"])), NOTHING);
        assert_eq!(
            ask(child.clone().member_of(&["agg"])),
            NOTHING,
            "the root's aggregates do not apply to a named group on its child"
        );
        assert_eq!(ask(child.not_member_of("agg")).len(), 1);
    }

    #[test]
    fn may_be_served_in_another_tree_by_a_sharing_provider_below_its_root() {
        // Upstream returns 500 here for the unnumbered group.
        let cloud = sample_cloud([
            provider("host").has("VCPU", 4).member("agg"),
            provider("array"),
            provider("pool")
                .under("array")
                .has("DISK_GB", 100)
                .shares_with("agg"),
        ]);
        let together = request([group("", &[("VCPU", 1), ("DISK_GB", 5)])]);
        assert_eq!(taken(&cloud, &together), ["host VCPU:1, pool DISK_GB:5"]);
        assert_eq!(summarized(&cloud, &together), ["host", "array", "pool"]);
        let apart = request([group("", &[("VCPU", 1)]), group("1", &[("DISK_GB", 5)])]);
        assert_eq!(taken(&cloud, &apart), ["host VCPU:1, pool DISK_GB:5"]);
    }

    #[test]
    fn have_providers_of_their_own_when_isolated() {
        let mut request = request([
            group("", &[("VCPU", 1)]),
            group("1", &[("CUSTOM_VF", 1)]),
            group("2", &[("CUSTOM_VF", 1)]),
        ]);
        request.group_policy = Some(GroupPolicy::Isolate);
        assert_eq!(
            mapped(&numa_host(), &request),
            [
                "=numa0 1=nic0 2=nic1",
                "=numa0 1=nic1 2=nic0",
                "=numa1 1=nic0 2=nic1",
                "=numa1 1=nic1 2=nic0",
            ]
        );
        request.group_policy = Some(GroupPolicy::None);
        assert_eq!(mapped(&numa_host(), &request).len(), 8);
    }

    #[test]
    fn may_share_a_provider_with_the_unnumbered_group_although_isolated() {
        let cloud = sample_cloud([provider("cn").has("VCPU", 4)]);
        let mut request = request([group("", &[("VCPU", 1)]), group("1", &[("VCPU", 2)])]);
        request.group_policy = Some(GroupPolicy::Isolate);
        // Here upstream may return amounts that grow from candidate to candidate.
        assert_eq!(taken(&cloud, &request), ["cn VCPU:3"]);
    }
}

#[test]
fn amounts_beyond_all_bounds_are_too_much() {
    let cloud = sample_cloud([provider("cn").has("VCPU", 4)]);
    let groups = ["1", "2"].map(|suffix| group(suffix, &[("VCPU", u64::MAX)]));
    for count in 1..=2 {
        let mut request = request(groups[..count].to_vec());
        request.group_policy = Some(GroupPolicy::None);
        assert_eq!(taken(&cloud, &request), NOTHING);
    }
}

mod anchors {
    use super::*;

    #[test]
    fn are_all_kept_for_what_is_shared() {
        // Upstream keeps an arbitrary one of the anchors, and loses the answers of the others.
        let mut cloud = shared_storage();
        cloud
            .providers
            .push(provider("cn3").has("VCPU", 4).member("agg"));
        let request = request([group("", &[("DISK_GB", 1)]), group("1", &[("VCPU", 1)])]);
        assert_eq!(
            taken(&cloud, &request),
            [
                "cn1 VCPU:1, storage DISK_GB:1",
                "cn2 VCPU:1, storage DISK_GB:1",
                "storage DISK_GB:1, cn3 VCPU:1",
            ]
        );
    }

    #[test]
    fn come_in_the_order_of_their_creation_or_take_turns() {
        let cloud = sample_cloud([
            provider("b").has("VCPU", 4),
            provider("a").has("VCPU", 4),
            provider("a-child").under("a").has("VCPU", 4),
            provider("b-child").under("b").has("VCPU", 4),
        ]);
        let mut request = request([group("", &[("VCPU", 1)])]);
        assert_eq!(
            taken(&cloud, &request),
            ["b VCPU:1", "b-child VCPU:1", "a VCPU:1", "a-child VCPU:1"]
        );
        request.strategy = GenerationStrategy::BreadthFirst;
        assert_eq!(
            taken(&cloud, &request),
            ["b VCPU:1", "a VCPU:1", "b-child VCPU:1", "a-child VCPU:1"]
        );
        request.limit = Some(2);
        assert_eq!(taken(&cloud, &request), ["b VCPU:1", "a VCPU:1"]);
        assert_eq!(
            summarized(&cloud, &request),
            ["b", "b-child", "a", "a-child"]
        );
    }

    #[test]
    fn are_summarized_with_traits_oldest_first_whatever_their_names() {
        // CUSTOM_RED was created before CUSTOM_BLUE.
        let cloud = sample_cloud([provider("host")
            .has("VCPU", 1)
            .bears("CUSTOM_BLUE")
            .bears("CUSTOM_RED")]);
        let request = request([group("", &[("VCPU", 1)])]);
        let state = cloud.state();
        let found = named::candidates(&state, &request).unwrap();
        let traits: Vec<&str> = found.provider_summaries[0]
            .traits
            .iter()
            .map(|name| name.as_str())
            .collect();
        assert_eq!(traits, ["CUSTOM_RED", "CUSTOM_BLUE"]);
    }

    #[test]
    fn give_their_providers_in_the_order_of_creation_too() {
        let cloud = sample_cloud([
            provider("host"),
            provider("first").under("host"),
            provider("second").under("host").has("VCPU", 1),
            provider("below-first").under("first").has("VCPU", 1),
        ]);
        let request = request([group("", &[("VCPU", 1)])]);
        assert_eq!(
            taken(&cloud, &request),
            ["second VCPU:1", "below-first VCPU:1"]
        );
    }
}

mod same_subtree {
    use super::*;

    fn near(suffixes: &[&str], mut request: CandidateRequest) -> CandidateRequest {
        request.group_policy = Some(GroupPolicy::None);
        request
            .same_subtree
            .push(suffixes.iter().map(|suffix| (*suffix).to_owned()).collect());
        request
    }

    #[test]
    fn keeps_groups_below_one_of_their_providers() {
        let request = near(
            &["_CPU", "_NIC"],
            request([
                group("_CPU", &[("VCPU", 1)]),
                group("_NIC", &[("CUSTOM_VF", 1)]),
            ]),
        );
        assert_eq!(
            mapped(&numa_host(), &request),
            ["_CPU=numa0 _NIC=nic0", "_CPU=numa1 _NIC=nic1"]
        );
    }

    #[test]
    fn does_not_accept_a_common_parent_that_serves_no_group() {
        let cloud = sample_cloud([
            provider("host"),
            provider("a").under("host").has("VCPU", 4),
            provider("b").under("host").has("CUSTOM_VF", 4),
        ]);
        let groups = [group("1", &[("VCPU", 1)]), group("2", &[("CUSTOM_VF", 1)])];
        assert_eq!(
            mapped(&cloud, &near(&["1", "2"], request(groups.clone()))),
            NOTHING
        );
        let mut with_host = cloud.clone();
        with_host.providers[0]
            .traits
            .insert("CUSTOM_RED".to_owned());
        let head = group("_H", &[]).required(&["CUSTOM_RED"]);
        let three = request(groups.into_iter().chain([head]));
        let near = near(&["1", "2", "_H"], three);
        assert_eq!(mapped(&with_host, &near), ["1=a 2=b _H=host"]);
        assert_eq!(taken(&with_host, &near), ["a VCPU:1, b CUSTOM_VF:1"]);
    }

    #[test]
    fn groups_without_resources_need_something_to_look_for() {
        let cloud = sample_cloud([provider("cn")
            .has("VCPU", 4)
            .bears("CUSTOM_RED")
            .member("agg")]);
        let with = |other| {
            let near = near(&["1", "_X"], request([group("1", &[("VCPU", 1)]), other]));
            mapped(&cloud, &near).len()
        };
        let nothing = || group("_X", &[]);
        assert_eq!(with(nothing().required(&["CUSTOM_RED"])), 1);
        assert_eq!(with(nothing().member_of(&["agg"])), 1);
        assert_eq!(with(nothing().without("CUSTOM_BLUE")), 0);
        assert_eq!(with(nothing().not_member_of("unknown")), 0);
        assert_eq!(with(nothing().in_tree(cloud.uuid("cn"))), 0);
    }
}

mod versions {
    use super::*;

    #[test]
    fn before_1_29_nothing_takes_two_providers_of_a_tree() {
        let mut request = request([group("", &[("VCPU", 1), ("DISK_GB", 5)])]);
        request.nested = false;
        assert_eq!(taken(&numa_host(), &request), NOTHING);
        let mut request = super::request([group("", &[("VCPU", 1)])]);
        request.nested = false;
        assert_eq!(
            taken(&numa_host(), &request),
            ["numa0 VCPU:1", "numa1 VCPU:1"]
        );
        assert_eq!(summarized(&numa_host(), &request), ["numa0", "numa1"]);
        assert_eq!(
            taken(&shared_storage(), &request),
            ["cn1 VCPU:1", "cn2 VCPU:1"]
        );
    }

    #[test]
    fn before_1_29_a_limit_does_not_shorten_the_summaries_of_its_trees() {
        let mut cloud = numa_host();
        let full = Stock {
            used: 4,
            ..units(4)
        };
        cloud.providers.extend([
            provider("gpu").under("host").has("CUSTOM_VF", 4),
            provider("full").under("host").stocked("VCPU", full),
            provider("other").has("VCPU", 4),
        ]);
        let mut request = request([group("", &[("VCPU", 1)])]);
        request.nested = false;
        request.limit = Some(1);
        assert_eq!(summarized(&cloud, &request), ["numa0", "numa1"]);
        request.search_max = Some(1);
        assert_eq!(summarized(&cloud, &request), ["numa0"]);
    }

    #[test]
    fn a_summary_tells_capacity_use_traits_and_place() {
        let mut stock = units(8);
        stock.inventory.reserved = 1;
        stock.inventory.allocation_ratio = 1.5;
        stock.used = 3;
        let cloud = sample_cloud([
            provider("cn"),
            provider("child")
                .under("cn")
                .stocked("VCPU", stock)
                .bears("CUSTOM_RED"),
        ]);
        let state = cloud.state();
        let request = request([group("", &[("VCPU", 1)])]);
        let found = named::candidates(&state, &request).unwrap();
        let child = &found.provider_summaries[1];
        let vcpu = child.resources[&"VCPU".parse().unwrap()];
        assert_eq!((vcpu.capacity.small(), vcpu.used), (Some(10), 3));
        assert!(child.traits.contains(&"CUSTOM_RED".parse().unwrap()));
        assert_eq!(
            (child.parent, child.root),
            (Some(cloud.uuid("cn")), cloud.uuid("cn"))
        );
    }

    #[test]
    fn a_capacity_may_be_larger_than_any_integer_type() {
        let mut vast = units(2_147_483_647);
        vast.inventory.allocation_ratio = 3.40282e38;
        vast.used = 3;
        let cloud = sample_cloud([provider("cn").stocked("VCPU", vast)]);
        let state = cloud.state();
        let request = request([group("", &[("VCPU", 2_147_483_647)])]);
        let found = named::candidates(&state, &request).unwrap();
        assert_eq!(found.allocation_requests.len(), 1);
        let vcpu = found.provider_summaries[0].resources[&"VCPU".parse().unwrap()];
        let shown = "730750030368454069204497451323897263056217964544";
        assert_eq!(
            (vcpu.capacity.to_string(), vcpu.used),
            (shown.to_owned(), 3)
        );
        assert_eq!(vcpu.capacity.small(), None);
    }

    #[test]
    fn requests_that_differ_in_mappings_alone_are_answers_of_their_own_at_any_version() {
        let mut request = alike_groups(2);
        for mappings in [true, false] {
            request.mappings = mappings;
            assert_eq!(
                taken(&devices(2), &request),
                [
                    "dev0 CUSTOM_VF:1, dev1 CUSTOM_VF:1",
                    "dev0 CUSTOM_VF:1, dev1 CUSTOM_VF:1"
                ]
            );
        }
    }
}

mod effort {
    use super::*;

    fn steps(sample_cloud: &SampleCloud, request: &CandidateRequest) -> (usize, u64) {
        let state = sample_cloud.state();
        let mut search = state.candidates(request, None).unwrap();
        let found = std::iter::from_fn(|| search.next_candidate()).count();
        (found, search.steps())
    }

    #[test]
    fn every_permutation_is_an_answer_and_nothing_is_tried_in_vain() {
        let (found, steps) = steps(&devices(5), &alike_groups(5));
        assert_eq!(found, 120);
        assert!(steps < 120 * 20, "{steps} steps");
    }

    #[test]
    fn eight_groups_over_seven_devices_end_before_the_first_step() {
        let (found, steps) = steps(&devices(7), &alike_groups(8));
        assert_eq!(found, 0);
        assert!(steps < 5, "{steps} steps");
    }

    #[test]
    fn groups_that_ask_differently_are_counted_together() {
        // Four groups accept any device, four only a red one. Either four alone would fit.
        let mut providers = vec![provider("host")];
        for n in 0..7 {
            let device = provider(&format!("dev{n}"))
                .under("host")
                .has("CUSTOM_VF", 1);
            providers.push(if n < 4 {
                device.bears("CUSTOM_RED")
            } else {
                device
            });
        }
        let mut request = alike_groups(8);
        for group in &mut request.groups[4..] {
            *group = group.clone().required(&["CUSTOM_RED"]);
        }
        let (found, steps) = steps(&sample_cloud(providers), &request);
        assert_eq!(found, 0);
        assert!(steps < 5, "{steps} steps");
    }

    #[test]
    fn what_failed_with_one_device_is_not_tried_with_one_like_it() {
        // Nine groups need a device each, but only eight exist. Sums of amounts do not detect this.
        let mut providers = vec![provider("host")];
        providers.extend((0..8).map(|n| {
            provider(&format!("dev{n}"))
                .under("host")
                .has("CUSTOM_VF", 5)
        }));
        let mut request = request((0..9).map(|n| {
            group(
                &format!("_{n}"),
                &[("CUSTOM_VF", if n < 4 { 4 } else { 3 })],
            )
        }));
        request.group_policy = Some(GroupPolicy::None);
        let (found, steps) = steps(&sample_cloud(providers), &request);
        assert_eq!(found, 0);
        assert!(steps < 200, "{steps} steps");
    }

    #[test]
    fn subtrees_that_are_alike_fail_together() {
        // Each of twelve NUMA nodes has too few devices below it.
        let mut providers = vec![provider("host")];
        for n in 0..12 {
            let numa = format!("numa{n}");
            providers.push(provider(&numa).under("host").has("VCPU", 4));
            for d in 0..3 {
                let device = provider(&format!("{numa}-{d}")).under(&numa);
                providers.push(device.has("CUSTOM_VF", 5).has("CUSTOM_FPGA", 5));
            }
        }
        let mut request = request((0..4).map(|n| {
            let (one, other) = if n < 2 { (4, 1) } else { (1, 4) };
            group(
                &format!("_{n}"),
                &[("CUSTOM_VF", one), ("CUSTOM_FPGA", other)],
            )
        }));
        request.groups.push(group("_CPU", &[("VCPU", 1)]));
        request
            .groups
            .push(group("_5", &[("CUSTOM_VF", 3), ("CUSTOM_FPGA", 3)]));
        request
            .groups
            .push(group("_6", &[("CUSTOM_VF", 3), ("CUSTOM_FPGA", 3)]));
        request.group_policy = Some(GroupPolicy::None);
        let all = request
            .groups
            .iter()
            .map(|group| group.suffix.clone())
            .collect();
        request.same_subtree.push(all);
        let (found, steps) = steps(&sample_cloud(providers), &request);
        assert_eq!(found, 0);
        assert!(steps < 1000, "{steps} steps");
    }

    #[test]
    fn a_limit_opens_as_many_trees_as_it_takes() {
        let hosts =
            |n: u32| sample_cloud((0..n).map(|n| provider(&format!("cn{n}")).has("VCPU", 4)));
        let mut request = request([group("", &[("VCPU", 1)])]);
        request.limit = Some(10);
        let (few, many) = (steps(&hosts(20), &request), steps(&hosts(200), &request));
        assert_eq!(few, many);
    }

    #[test]
    fn hosts_without_room_are_not_opened() {
        let stock = |n| {
            if n == 150 {
                units(64)
            } else {
                Stock {
                    used: 40,
                    ..units(64)
                }
            }
        };
        let cloud =
            sample_cloud((0..200).map(|n| provider(&format!("cn{n}")).stocked("VCPU", stock(n))));
        let (found, steps) = steps(&cloud, &request([group("", &[("VCPU", 30)])]));
        assert_eq!(found, 1);
        assert!(steps < 10, "{steps} steps");
    }

    #[test]
    fn a_watch_may_end_it() {
        let cloud = devices(8);
        let state = cloud.state();
        let request = alike_groups(8);
        let mut calls = 0;
        let watch = Box::new(move |_steps| {
            calls += 1;
            if calls == 3 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let mut search = state.candidates(&request, Some(watch)).unwrap();
        let found = Answers(&mut search).count();
        assert!(search.interrupted());
        assert!(found > 0 && found < 40_320, "{found} found");
        assert!(search.advance().is_none());
    }

    #[test]
    fn an_undisturbed_search_says_so() {
        let cloud = devices(2);
        let state = cloud.state();
        let request = alike_groups(2);
        let mut search = state
            .candidates(&request, Some(Box::new(|_| ControlFlow::Break(()))))
            .unwrap();
        assert_eq!(
            Answers(&mut search).count(),
            2,
            "too short for the watch to be called"
        );
        assert!(!search.interrupted());
    }
}
