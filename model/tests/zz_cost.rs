#![allow(clippy::all, missing_docs)]
use placement_model::State;
use placement_model::query::candidates::*;
use placement_model::state::change::*;
use placement_model::types::*;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;
use uuid::Uuid;
const NOW: Timestamp = Timestamp(7);
pub fn cloud(trees: u32, consumers: u32, distinct: bool) -> State {
    let mut rows = Vec::new();
    let classes = [
        "VCPU",
        "MEMORY_MB",
        "DISK_GB",
        "PCPU",
        "VGPU",
        "SRIOV_NET_VF",
        "PGPU",
        "CUSTOM_A",
        "CUSTOM_B",
    ];
    for (i, c) in classes.iter().enumerate() {
        rows.push(Change::PutResourceClass(
            ResourceClassId(i as u32),
            NameRow {
                name: c.parse().unwrap(),
                updated_at: NOW,
            },
        ));
    }
    for i in 0..400u32 {
        rows.push(Change::PutTrait(
            TraitId(i),
            NameRow {
                name: format!("CUSTOM_T{i:03}").parse().unwrap(),
                updated_at: NOW,
            },
        ));
    }
    let stock = Inventory {
        total: 64,
        reserved: 2,
        min_unit: 1,
        max_unit: 64,
        step_size: 1,
        allocation_ratio: 4.0,
    };
    for t in 0..trees {
        for k in 0..8u32 {
            let id = t * 8 + k;
            let row = ProviderRow {
                uuid: ProviderUuid(Uuid::from_u128(1 << 64 | u128::from(id))),
                name: ProviderName::try_from(format!("p {id}")).unwrap(),
                generation: Generation(0),
                parent: (k > 0).then_some(ProviderId(t * 8)),
                created_at: NOW,
                updated_at: NOW,
            };
            rows.push(Change::PutProvider(ProviderId(id), row));
            let own: Vec<u32> = match k {
                0 => vec![2],
                1 | 2 => vec![0, 1, 3],
                3 | 4 => vec![4, 6],
                _ => vec![5, 7],
            };
            for c in own {
                rows.push(Change::PutInventory(
                    ProviderId(id),
                    ResourceClassId(c),
                    InventoryRow {
                        inventory: stock,
                        updated_at: NOW,
                    },
                ));
            }
            let traits: BTreeSet<TraitId> = if k == 0 {
                (0..50)
                    .map(|i| TraitId(if distinct { (t * 7 + i * 3) % 400 } else { i }))
                    .collect()
            } else {
                (50..55).map(TraitId).collect()
            };
            rows.push(Change::PutProviderTraits(ProviderId(id), traits));
            if k == 0 {
                let a: BTreeSet<AggregateUuid> = (0..3)
                    .map(|i| {
                        AggregateUuid::from(
                            Uuid::from_u128(u128::from(t / 20 + i * 1000)).to_string(),
                        )
                    })
                    .collect();
                rows.push(Change::PutProviderAggregates(ProviderId(id), a));
            }
        }
    }
    for c in 0..consumers {
        let t = c % trees;
        let a = |p: u32, cl: u32| placement_model::state::change::Amount {
            provider: ProviderId(p),
            class: ResourceClassId(cl),
            units: 1,
        };
        rows.push(Change::PutConsumer(
            ConsumerUuid::from(
                Uuid::from_u128(2 << 64 | u128::from(c) * 7919 % (1 << 40)).to_string(),
            ),
            ConsumerRow {
                generation: Generation(1),
                project: ProjectId::from("p"),
                user: UserId::from("u"),
                consumer_type: Some("INSTANCE".parse().unwrap()),
                allocations: [a(t * 8, 2), a(t * 8 + 1, 0), a(t * 8 + 1, 1)]
                    .into_iter()
                    .collect(),
                updated_at: NOW,
            },
        ));
    }
    State::load(rows).unwrap()
}

fn ask(
    what: &str,
    state: &State,
    resources: &[(&str, u64)],
    named: &[(&str, u64)],
    required: &[&str],
) {
    let mut request = CandidateRequest {
        nested: true,
        mappings: true,
        ..Default::default()
    };
    request.groups.push(RequestGroup {
        resources: resources
            .iter()
            .map(|(c, n)| (c.parse().unwrap(), *n))
            .collect(),
        required: required
            .iter()
            .map(|t| [t.parse().unwrap()].into())
            .collect(),
        ..Default::default()
    });
    if !named.is_empty() {
        for s in ["1", "2"] {
            request.group_policy = Some(GroupPolicy::Isolate);
            request.groups.push(RequestGroup {
                suffix: s.to_owned(),
                resources: named
                    .iter()
                    .map(|(c, n)| (c.parse().unwrap(), *n))
                    .collect(),
                ..Default::default()
            });
        }
    }
    let spell = |_: &CandidateRequest| Some(String::new());
    for _ in 0..3 {
        let t = Instant::now();
        let e = state
            .explain(&request, Box::new(|_| ControlFlow::Continue(())), &spell)
            .unwrap();
        let spent = t.elapsed();
        println!(
            "{what}: {spent:?} {:?} {} of {}, steps {}, {} relaxations {:?}",
            e.verdict,
            e.with_candidates,
            e.trees,
            e.steps,
            e.relaxations.len(),
            e.relaxations
                .iter()
                .map(|r| (r.less[0].atom.kind.name(), r.less[0].enough, r.trees))
                .collect::<Vec<_>>()
        );
    }
}
#[test]
fn cost() {
    let s = cloud(5000, 50000, true);
    ask(
        "nested none by room",
        &s,
        &[("VCPU", 300), ("MEMORY_MB", 4)],
        &[],
        &["CUSTOM_T001"],
    );
    ask(
        "nested some",
        &s,
        &[("VCPU", 30), ("MEMORY_MB", 4), ("DISK_GB", 1)],
        &[("SRIOV_NET_VF", 1)],
        &["CUSTOM_T001"],
    );
    ask(
        "nested unused trait",
        &s,
        &[("VCPU", 30), ("MEMORY_MB", 4), ("DISK_GB", 1)],
        &[("SRIOV_NET_VF", 1)],
        &["CUSTOM_T399", "CUSTOM_T398"],
    );
    ask(
        "nested together",
        &s,
        &[("VCPU", 30), ("DISK_GB", 1)],
        &[("PCPU", 40), ("MEMORY_MB", 200)],
        &[],
    );
    let mut rows = Vec::new();
    drop(s);
    for (i, c) in ["VCPU", "MEMORY_MB", "DISK_GB"].iter().enumerate() {
        rows.push(Change::PutResourceClass(
            ResourceClassId(i as u32),
            NameRow {
                name: c.parse().unwrap(),
                updated_at: NOW,
            },
        ));
    }
    for i in 0..400u32 {
        rows.push(Change::PutTrait(
            TraitId(i),
            NameRow {
                name: format!("CUSTOM_T{i:03}").parse().unwrap(),
                updated_at: NOW,
            },
        ));
    }
    for t in 0..100_000u32 {
        rows.push(Change::PutProvider(
            ProviderId(t),
            ProviderRow {
                uuid: ProviderUuid(Uuid::from_u128(1 << 64 | u128::from(t))),
                name: ProviderName::try_from(format!("p {t}")).unwrap(),
                generation: Generation(0),
                parent: None,
                created_at: NOW,
                updated_at: NOW,
            },
        ));
        for c in 0..3 {
            rows.push(Change::PutInventory(
                ProviderId(t),
                ResourceClassId(c),
                InventoryRow {
                    inventory: Inventory {
                        total: 64 + t % 64,
                        reserved: 0,
                        min_unit: 1,
                        max_unit: 256,
                        step_size: 1,
                        allocation_ratio: 1.0,
                    },
                    updated_at: NOW,
                },
            ));
        }
        rows.push(Change::PutProviderTraits(
            ProviderId(t),
            (0..50).map(|i| TraitId((t * 7 + i * 3) % 398)).collect(),
        ));
    }
    let s = State::load(rows).unwrap();
    let all: &[(&str, u64)] = &[("VCPU", 40), ("MEMORY_MB", 40), ("DISK_GB", 40)];
    ask("flat some", &s, all, &[], &["CUSTOM_T001"]);
    ask("flat none by trait", &s, all, &[], &["CUSTOM_T399"]);
    ask(
        "flat none by room",
        &s,
        &[("VCPU", 200), ("MEMORY_MB", 40), ("DISK_GB", 40)],
        &[],
        &["CUSTOM_T001"],
    );
    ask(
        "flat none by amounts everywhere",
        &s,
        &[("VCPU", 200), ("MEMORY_MB", 40), ("DISK_GB", 40)],
        &[],
        &[],
    );
}
