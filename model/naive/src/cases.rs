//! Small random clouds, and random requests that use every feature of the search.

use std::collections::BTreeSet;

use placement_model::query::candidates::{
    CandidateRequest, GenerationStrategy, GroupPolicy, RequestGroup,
};
use placement_model::types::{Given, ProviderUuid};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use uuid::Uuid;

use crate::generate::inventory_of;
use crate::sample_cloud::{
    self, CLASSES, Provider, SHARES, SampleCloud, Stock, TRAITS, Wishes, aggregate, provider,
};

const AGGREGATES: [&str; 3] = ["agg-a", "agg-b", "agg-c"];

fn stock() -> impl Strategy<Value = Stock> {
    let limits = (
        1..=2_u32,
        prop_oneof![4 => Just(8_u32), 1 => 1..=4_u32],
        1..=2_u32,
    );
    let ratio = prop_oneof![5 => Just(1.0), 1 => select(vec![0.5, 1.5, 2.0])];
    let used = prop_oneof![3 => Just(0_u64), 1 => 1..=4_u64];
    (1..=6_u32, 0..=1_u32, limits, ratio, used).prop_map(
        |(total, reserved, (min_unit, max_unit, step_size), ratio, used)| {
            let parts = (total, reserved, min_unit, max_unit, step_size, ratio);
            let inventory = inventory_of(parts);
            Stock { inventory, used }
        },
    )
}

/// Few different values, so that interchangeable providers are common.
fn plain_stock() -> impl Strategy<Value = Stock> {
    prop_oneof![
        2 => (1..=3_u32).prop_map(sample_cloud::units),
        1 => stock(),
    ]
}

#[derive(Debug, Clone)]
struct NodeSeed {
    parent: Index,
    provider: Provider,
}

fn node() -> impl Strategy<Value = NodeSeed> {
    let stocks = prop_oneof![1 => 0..=1_usize, 2 => 2..=3_usize]
        .prop_flat_map(|count| btree_map(select(CLASSES[..3].to_vec()), plain_stock(), count));
    let traits = btree_set(select(TRAITS[1..4].to_vec()), 0..=2);
    let shares = prop::bool::weighted(0.2);
    let aggregates = btree_set(select(AGGREGATES.to_vec()), 0..=2);
    (any::<Index>(), stocks, traits, shares, aggregates).prop_map(
        |(parent, stocks, traits, shares, aggregates)| {
            let mut provider = provider("");
            provider.stocks = stocks
                .into_iter()
                .map(|(class, stock)| (class.to_owned(), stock))
                .collect();
            provider.traits = traits.into_iter().map(str::to_owned).collect();
            provider.aggregates = aggregates.into_iter().map(str::to_owned).collect();
            if shares {
                provider.traits.insert(SHARES.to_owned());
            }
            NodeSeed { parent, provider }
        },
    )
}

/// A host with equal or nearly equal children, which lead to interchangeable providers, dead ends
/// and many answers.
fn devices() -> impl Strategy<Value = Vec<NodeSeed>> {
    let twin_of = vec(prop::bool::weighted(0.8), 4);
    (node(), vec(node(), 2..=4), twin_of).prop_map(|(host, mut devices, twin_of)| {
        for index in 1..devices.len() {
            let class = CLASSES[0].to_owned();
            devices[0]
                .provider
                .stocks
                .entry(class)
                .or_insert(sample_cloud::units(1));
            if twin_of[index] {
                devices[index].provider = devices[index - 1].provider.clone();
            }
        }
        devices.insert(0, host);
        devices
    })
}

/// Several trees. Their providers are created tree by tree or interleaved.
fn clouds() -> impl Strategy<Value = SampleCloud> {
    let tree = prop_oneof![2 => vec(node(), 1..=1), 2 => vec(node(), 1..=5), 1 => devices()];
    (vec(tree, 1..=5), any::<bool>()).prop_map(|(trees, in_turn)| {
        let mut providers: Vec<(usize, Provider)> = Vec::new();
        for (tree, nodes) in trees.into_iter().enumerate() {
            for (index, seed) in nodes.into_iter().enumerate() {
                let mut provider = seed.provider;
                provider.name = format!("tree{tree}-{index}");
                if index > 0 {
                    provider.parent = Some(format!("tree{tree}-{}", seed.parent.index(index)));
                }
                providers.push((if in_turn { index } else { tree }, provider));
            }
        }
        providers.sort_by_key(|(turn, _)| *turn);
        sample_cloud::sample_cloud(providers.into_iter().map(|(_, provider)| provider))
    })
}

/// The conditions of a group. Providers are chosen once the cloud is known.
#[derive(Debug, Clone)]
struct GroupSeed {
    group: RequestGroup,
    in_tree: Option<Option<Index>>,
}

fn group(unnumbered: bool, with_unknowns: bool) -> impl Strategy<Value = GroupSeed> {
    let mut classes = CLASSES[..3].to_vec();
    let mut traits = TRAITS[1..4].to_vec();
    if with_unknowns {
        classes.extend(["CUSTOM_UNKNOWN", "malformed"]);
        traits.extend(["CUSTOM_UNKNOWN", "malformed"]);
    }
    let sizes = if unnumbered { 1..=2 } else { 0..=2 };
    let resources = btree_map(
        select(classes),
        prop_oneof![7 => Just(1_u64), 1 => 2..=3_u64],
        sizes,
    );
    let sometimes = |set| prop_oneof![7 => Just(Vec::new()), 1 => vec(set, 1..=2)];
    let required = sometimes(btree_set(select(traits.clone()), 1..=2).boxed());
    let forbidden = prop_oneof![8 => Just(BTreeSet::new()), 1 => btree_set(select(traits), 1..=1)];
    let mut aggregates = AGGREGATES.to_vec();
    aggregates.push("agg-unknown");
    let member_of = sometimes(btree_set(select(aggregates.clone()), 1..=2).boxed());
    let not_member_of =
        prop_oneof![8 => Just(BTreeSet::new()), 1 => btree_set(select(aggregates), 1..=1)];
    let in_tree = prop_oneof![
        12 => Just(None),
        2 => any::<Index>().prop_map(|index| Some(Some(index))),
        u32::from(with_unknowns) => Just(Some(None)),
    ];
    (
        resources,
        required,
        forbidden,
        member_of,
        not_member_of,
        in_tree,
    )
        .prop_map(
            |(resources, required, forbidden, member_of, not_member_of, in_tree)| {
                let mut group = RequestGroup::default();
                for (class, amount) in resources {
                    group.resources.insert(class.parse().unwrap(), amount);
                }
                for any in required {
                    group
                        .required
                        .push(any.iter().map(|name| name.parse().unwrap()).collect());
                }
                group.forbidden = forbidden.iter().map(|name| name.parse().unwrap()).collect();
                for any in member_of {
                    group
                        .member_of
                        .push(any.iter().map(|name| aggregate(name)).collect());
                }
                group.not_member_of = not_member_of.iter().map(|name| aggregate(name)).collect();
                GroupSeed { group, in_tree }
            },
        )
}

#[derive(Debug, Clone)]
struct RequestSeed {
    groups: Vec<GroupSeed>,
    request: CandidateRequest,
}

fn requests(with_unknowns: bool) -> impl Strategy<Value = RequestSeed> {
    let unnumbered = prop::option::of(group(true, with_unknowns));
    let named = vec(group(false, with_unknowns), 0..=3);
    // Equal groups: each named group may copy the previous one.
    let copies = vec(prop::bool::weighted(0.4), 3);
    let policy = select(vec![
        None,
        Some(GroupPolicy::None),
        Some(GroupPolicy::Isolate),
    ]);
    let root = btree_set(select(TRAITS[1..4].to_vec()), 0..=1);
    let root = (prop::bool::weighted(0.15), root.clone(), root);
    let subtrees = prop_oneof![
        2 => Just(Vec::new()),
        1 => vec(btree_set(1..=3_usize, 1..=3), 1..=2),
    ];
    let modes = (prop::bool::weighted(0.8), any::<bool>(), any::<bool>());
    (unnumbered, named, copies, policy, root, subtrees, modes).prop_map(
        |(unnumbered, mut named, copies, group_policy, root, subtrees, modes)| {
            for index in 1..named.len() {
                if copies[index] {
                    named[index] = named[index - 1].clone();
                }
            }
            for (index, seed) in named.iter_mut().enumerate() {
                seed.group.suffix = format!("{}", index + 1);
            }
            let (nested, breadth_first, unnumbered_last) = modes;
            let mut groups = named;
            let count = groups.len();
            let at = if unnumbered_last { count } else { 0 };
            groups.splice(at..at, unnumbered);
            let mut request = sample_cloud::request([]);
            request.group_policy = group_policy;
            request.nested = nested;
            if breadth_first {
                request.strategy = GenerationStrategy::BreadthFirst;
            }
            if let (true, required, forbidden) = root {
                request.root_required = required.iter().map(|name| name.parse().unwrap()).collect();
                request.root_forbidden =
                    forbidden.iter().map(|name| name.parse().unwrap()).collect();
            }
            for subtree in subtrees {
                let suffixes: BTreeSet<String> = subtree
                    .iter()
                    .filter(|suffix| **suffix <= count)
                    .map(usize::to_string)
                    .collect();
                if !suffixes.is_empty() {
                    request.same_subtree.push(suffixes);
                }
            }
            RequestSeed { groups, request }
        },
    )
}

/// Clouds and requests. With `with_unknowns`, some requests contain unknown names.
pub fn cases(with_unknowns: bool) -> impl Strategy<Value = (SampleCloud, CandidateRequest)> {
    (clouds(), requests(with_unknowns))
        .prop_map(|(sample_cloud, seed)| {
            let mut request = seed.request;
            for mut one in seed.groups {
                one.group.in_tree = one.in_tree.map(|index| match index {
                    Some(index) => {
                        Given::Valid(sample_cloud.uuid(&index.get(&sample_cloud.providers).name))
                    }
                    None => Given::Valid(ProviderUuid(Uuid::from_u128(1))),
                });
                request.groups.push(one.group);
            }
            (sample_cloud, request)
        })
        .prop_filter("a request has groups", |(_, request)| {
            !request.groups.is_empty()
        })
}

/// Several groups that just fit or just do not fit: one host with two NUMA nodes of equal devices,
/// and amounts of two classes. The search then meets dead ends that counting does not detect.
pub fn tight_cases() -> impl Strategy<Value = (SampleCloud, CandidateRequest)> {
    let room = (1..=5_u32, 1..=5_u32);
    let devices = vec((0..=2_usize, any::<Index>(), any::<Index>()), 2..=4);
    let kinds = vec((1..=3_u64, 0..=2_u64, 0..=4_u32), 1..=3);
    let groups = vec(any::<Index>(), 2..=5);
    let modes = (
        vec(room, 1..=2),
        prop::bool::weighted(0.3),
        select(vec![0, 0, 0, 0, 1, 2, 2, 3_usize]),
        prop::bool::weighted(0.15),
    );
    (devices, kinds, groups, modes).prop_map(
        |(devices, kinds, groups, (rooms, isolate, subtree, old))| {
            let mut providers = vec![provider("host").has(CLASSES[0], 2)];
            providers.push(provider("numa0").under("host").bears(TRAITS[1]));
            providers.push(
                provider("numa1")
                    .under("host")
                    .bears(TRAITS[1])
                    .bears(TRAITS[2]),
            );
            for (index, (parent, room, colour)) in devices.iter().enumerate() {
                let (first, second) = room.get(&rooms);
                let parent = ["host", "numa0", "numa1"][*parent];
                providers.push(
                    provider(&format!("device{index}"))
                        .under(parent)
                        .has(CLASSES[1], *first)
                        .has(CLASSES[2], *second)
                        .bears(TRAITS[1 + colour.index(3)]),
                );
            }
            let mut request = sample_cloud::request([]);
            request.nested = !old;
            request.group_policy = isolate.then_some(GroupPolicy::Isolate);
            for (index, kind) in groups.iter().enumerate() {
                let (first, second, wish) = kind.get(&kinds);
                let mut group = sample_cloud::group(&format!("{index}"), &[(CLASSES[1], *first)]);
                if *second > 0 {
                    group.resources.insert(CLASSES[2].parse().unwrap(), *second);
                }
                if *wish == 0 {
                    group = group.required(&[TRAITS[1], TRAITS[2]]);
                }
                request.groups.push(group);
            }
            let suffixes =
                |range: std::ops::Range<usize>| range.map(|index| index.to_string()).collect();
            match subtree {
                0 => {}
                1 => request.same_subtree.push(suffixes(0..groups.len())),
                2 => {
                    let numa = sample_cloud::group("n", &[]).required(&[TRAITS[1]]);
                    request.groups.push(numa);
                    let mut all: BTreeSet<String> = suffixes(0..groups.len());
                    all.insert("n".to_owned());
                    request.same_subtree.push(all);
                }
                _ => {
                    let unnumbered = sample_cloud::group("", &[(CLASSES[0], 1), (CLASSES[1], 1)]);
                    request
                        .groups
                        .push(unnumbered.required(&[TRAITS[3]]).required(&[TRAITS[1]]));
                }
            }
            (sample_cloud::sample_cloud(providers), request)
        },
    )
}
