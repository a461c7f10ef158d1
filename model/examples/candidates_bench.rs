//! What a candidate search costs: `cargo run -p placement-model --example candidates_bench`.
//!
//! Time per query from the plan to the last candidate with names, and summaries included where
//! "answer" says so. Each figure is the median of several runs, after
//! some to warm up.
#![allow(clippy::disallowed_methods)] // It measures time.

use std::time::{Duration, Instant};

use placement_model::State;
use placement_model::query::candidates::{
    CandidateRequest, GenerationStrategy, GroupPolicy, RequestGroup,
};
use placement_model::state::change::{
    Amount, Change, ConsumerRow, InventoryRow, NameRow, ProviderId, ProviderRow, ResourceClassId,
    TraitId,
};
use placement_model::types::{
    ConsumerUuid, Generation, Inventory, ProviderName, ProviderUuid, Timestamp,
};
use uuid::Uuid;

const CLASSES: [&str; 4] = ["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_VF"];
const TRAITS: [&str; 3] = ["MISC_SHARES_VIA_AGGREGATE", "CUSTOM_RARE", "CUSTOM_COMMON"];
const RARE: u32 = 1;
const COMMON: u32 = 2;
const NOW: Timestamp = Timestamp(0);

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
        "{what}: {found} candidates, {steps} steps, search {:.0} µs, answer {:.0} µs",
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

/// Hosts half of whose processors are in use.
fn flat(hosts: u32) -> State {
    let mut changes = names();
    for host in 0..hosts {
        let stocks = [(0, 64), (1, 262_144), (2, 2_000)];
        let mut traits = vec![COMMON];
        if host % 1000 == 500 {
            traits.push(RARE);
        }
        add(&mut changes, host, None, &stocks, &traits);
        claim(&mut changes, host, 0, 32);
    }
    State::load(changes).expect("the rows are whole")
}

/// The same with so many traits for each host, as Nova reports them.
fn flat_with_traits(hosts: u32, traits: u32) -> State {
    let mut changes = names();
    let first = TRAITS.len() as u32;
    let ids: Vec<u32> = (first..first + traits).collect();
    changes.extend(ids.iter().map(|id| {
        let row = NameRow {
            name: format!("HW_CPU_X86_FEATURE_{id}").parse().expect("a trait"),
            updated_at: NOW,
        };
        Change::PutTrait(TraitId(*id), row)
    }));
    for host in 0..hosts {
        let stocks = [(0, 64), (1, 262_144), (2, 2_000)];
        add(&mut changes, host, None, &stocks, &ids);
    }
    State::load(changes).expect("the rows are whole")
}

/// A root with disk, two NUMA nodes with processors and memory, two devices below each.
fn nested(trees: u32) -> State {
    let mut changes = names();
    for tree in 0..trees {
        let root = tree * 7;
        add(&mut changes, root, None, &[(2, 2_000)], &[]);
        for numa in [root + 1, root + 4] {
            add(
                &mut changes,
                numa,
                Some(root),
                &[(0, 32), (1, 131_072)],
                &[],
            );
            add(&mut changes, numa + 1, Some(numa), &[(3, 8)], &[COMMON]);
            add(&mut changes, numa + 2, Some(numa), &[(3, 8)], &[]);
        }
    }
    State::load(changes).expect("the rows are whole")
}

/// A root with processors and so many children with one unit each.
fn pci(hosts: u32, devices: u32) -> State {
    let mut changes = names();
    for host in 0..hosts {
        let root = host * (devices + 1);
        add(&mut changes, root, None, &[(0, 64)], &[]);
        for device in 1..=devices {
            add(&mut changes, root + device, Some(root), &[(3, 1)], &[]);
        }
    }
    State::load(changes).expect("the rows are whole")
}

/// A root with so many children, half of them with processors, half with devices.
fn mixed(children: u32) -> State {
    let mut changes = names();
    add(&mut changes, 0, None, &[], &[]);
    for child in 1..=children {
        add(&mut changes, child, Some(0), &[(child % 2 * 3, 1)], &[]);
    }
    State::load(changes).expect("the rows are whole")
}

fn names() -> Vec<Change> {
    let classes = CLASSES.iter().zip(0..).map(|(name, id)| {
        let row = NameRow {
            name: name.parse().expect("a class"),
            updated_at: NOW,
        };
        Change::PutResourceClass(ResourceClassId(id), row)
    });
    let traits = TRAITS.iter().zip(0..).map(|(name, id)| {
        let row = NameRow {
            name: name.parse().expect("a trait"),
            updated_at: NOW,
        };
        Change::PutTrait(TraitId(id), row)
    });
    classes.chain(traits).collect()
}

fn add(
    changes: &mut Vec<Change>,
    id: u32,
    parent: Option<u32>,
    stocks: &[(u32, u32)],
    traits: &[u32],
) {
    let row = ProviderRow {
        uuid: ProviderUuid(Uuid::from_u128(u128::from(id) + 1)),
        name: ProviderName::try_from(format!("provider{id}")).expect("a name"),
        generation: Generation(0),
        parent: parent.map(ProviderId),
        created_at: NOW,
        updated_at: NOW,
    };
    changes.push(Change::PutProvider(ProviderId(id), row));
    for (class, total) in stocks {
        let inventory = Inventory {
            total: *total,
            reserved: 0,
            min_unit: 1,
            max_unit: *total,
            step_size: 1,
            allocation_ratio: 1.0,
        };
        let row = InventoryRow {
            inventory,
            updated_at: NOW,
        };
        changes.push(Change::PutInventory(
            ProviderId(id),
            ResourceClassId(*class),
            row,
        ));
    }
    let traits = traits.iter().map(|id| TraitId(*id)).collect();
    changes.push(Change::PutProviderTraits(ProviderId(id), traits));
}

fn claim(changes: &mut Vec<Change>, id: u32, class: u32, amount: u64) {
    let held = Amount {
        provider: ProviderId(id),
        class: ResourceClassId(class),
        units: amount,
    };
    let row = ConsumerRow {
        generation: Generation(1),
        project: "project".into(),
        user: "user".into(),
        consumer_type: None,
        allocations: [held].into_iter().collect(),
        updated_at: NOW,
    };
    changes.push(Change::PutConsumer(
        ConsumerUuid::from(format!("consumer{id}")),
        row,
    ));
}
