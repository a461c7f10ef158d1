//! What a candidate search costs: `cargo run -p placement-model --example candidates_bench`.
//!
//! Time per query from the plan to the last candidate; with names and summaries where "named" says so, as
//! tests ask for them. What it costs to answer as the API does is measured by `scripts/bench compare`.
//! Each figure is the median of several runs, after some to warm up.
#![allow(clippy::disallowed_methods)] // It measures time.

mod estates;

use std::time::{Duration, Instant};

use placement_model::State;
use placement_model::query::candidates::{
    CandidateRequest, GenerationStrategy, GroupPolicy, RequestGroup,
};

use estates::{CLASSES, COMMON, RARE, TRAITS, flat, flat_with_traits, mixed, nested, pci};

fn main() {
    for hosts in [1_000, 10_000, 100_000] {
        let cloud = flat(hosts);
        measure(
            &format!("flat, {hosts} hosts, limit=10"),
            &cloud,
            &flat_request(10),
        );
        let mut rare = flat_request(10);
        rare.groups[0]
            .required
            .push([TRAITS[RARE as usize].parse().expect("a trait")].into());
        measure(
            &format!("flat, {hosts} hosts, limit=10, 1 of 1,000 has the trait"),
            &cloud,
            &rare,
        );
        let mut none = flat_request(10);
        none.groups[0]
            .resources
            .insert("VCPU".parse().expect("a class"), 60);
        measure(
            &format!("flat, {hosts} hosts, limit=10, none has the room"),
            &cloud,
            &none,
        );
        let mut anywhere = flat_request(10);
        anywhere.seed = Some(4711);
        measure(
            &format!("flat, {hosts} hosts, limit=10, begun anywhere"),
            &cloud,
            &anywhere,
        );
        if hosts <= 10_000 {
            measure(
                &format!("flat, {hosts} hosts, no limit"),
                &cloud,
                &flat_request(usize::MAX),
            );
        }
    }
    for traits in [30, 60] {
        let cloud = flat_with_traits(1_000, traits);
        for limit in [10, usize::MAX] {
            measure(
                &format!("flat, 1,000 hosts of {traits} traits, {}", limited(limit)),
                &cloud,
                &flat_request(limit),
            );
        }
    }
    let nested = nested(1_000);
    for limit in [10, usize::MAX] {
        measure(
            &format!("nested, 1,000 trees of 7, {}", limited(limit)),
            &nested,
            &nested_request(limit),
        );
    }
    for hosts in [100, 500] {
        let cloud = pci(hosts, 8);
        for groups in [1, 2, 4, 8] {
            for strategy in [
                GenerationStrategy::DepthFirst,
                GenerationStrategy::BreadthFirst,
            ] {
                let mut request = pci_request(groups, 1000);
                request.strategy = strategy;
                measure(
                    &format!("PCI, {hosts} hosts of 8, {groups} groups, limit=1000, {strategy:?}"),
                    &cloud,
                    &request,
                );
            }
        }
    }
    let cloud = pci(500, 7);
    measure(
        "PCI, 500 hosts of 7, 8 groups (none fits)",
        &cloud,
        &pci_request(8, 1000),
    );
    let wide = pci(1, 1000);
    measure(
        "PCI, 1 host of 1,000, 8 groups, limit=1000",
        &wide,
        &pci_request(8, 1000),
    );
    let mut near = request(vec![group("_A", &[(0, 1)]), group("_B", &[(3, 1)])], 1000);
    near.same_subtree
        .push(["_A".to_owned(), "_B".to_owned()].into());
    measure(
        "1 host of 10,000 of two kinds, same_subtree (none fits)",
        &mixed(10_000),
        &near,
    );
}

fn limited(limit: usize) -> String {
    if limit == usize::MAX {
        "no limit".to_owned()
    } else {
        format!("limit={limit}")
    }
}

/// Prints the time to find the candidates alone, and to give the whole answer.
fn measure(what: &str, state: &State, request: &CandidateRequest) {
    let mut found = 0;
    let mut steps = 0;
    let search = median(|| {
        let mut search = state
            .candidates(request)
            .expect("a request that names what exists");
        found = std::iter::from_fn(|| search.next_candidate()).count();
        steps = search.steps();
    });
    let answer = median(|| {
        let search = state
            .candidates(request)
            .expect("a request that names what exists");
        assert_eq!(search.into_candidates().allocation_requests.len(), found);
    });
    println!(
        "{what}: {found} candidates, {steps} steps, search {:.1} µs, named {:.0} µs",
        search.as_secs_f64() * 1e6,
        answer.as_secs_f64() * 1e6
    );
}

fn median(mut run: impl FnMut()) -> Duration {
    (0..5).for_each(|_| run());
    let mut times: Vec<Duration> = (0..15)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn request(groups: Vec<RequestGroup>, limit: usize) -> CandidateRequest {
    CandidateRequest {
        groups,
        group_policy: Some(GroupPolicy::None),
        limit: Some(limit),
        nested: true,
        mappings: true,
        ..CandidateRequest::default()
    }
}

fn group(suffix: &str, resources: &[(usize, u64)]) -> RequestGroup {
    let amount =
        |(class, amount): &(usize, u64)| (CLASSES[*class].parse().expect("a class"), *amount);
    RequestGroup {
        suffix: suffix.to_owned(),
        resources: resources.iter().map(amount).collect(),
        ..RequestGroup::default()
    }
}

fn flat_request(limit: usize) -> CandidateRequest {
    request(vec![group("", &[(0, 2), (1, 2048), (2, 20)])], limit)
}

fn nested_request(limit: usize) -> CandidateRequest {
    let mut device = group("_DEV", &[(3, 1)]);
    device
        .required
        .push([TRAITS[COMMON as usize].parse().expect("a trait")].into());
    let groups = vec![
        group("", &[(2, 20)]),
        group("_CPU", &[(0, 2), (1, 2048)]),
        device,
    ];
    let mut request = request(groups, limit);
    request
        .same_subtree
        .push(["_CPU".to_owned(), "_DEV".to_owned()].into());
    request
}

fn pci_request(groups: usize, limit: usize) -> CandidateRequest {
    let mut all = vec![group("", &[(0, 1)])];
    all.extend((0..groups).map(|index| group(&format!("_{index}"), &[(3, 1)])));
    request(all, limit)
}
