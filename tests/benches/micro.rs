//! What single steps cost, without a server: carrying out a claim, a search for candidates, and a command as
//! bytes. `docs/performance.md` says how to run it.

#![allow(missing_docs, reason = "criterion makes a public function")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use placement_model::command::{
    CapacityRule, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, CreateProvider,
    ProviderAmounts, ReplaceAllocations, ReplaceInventories, RequestId,
};
use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::types::{
    ConsumerUuid, Generation, Given, Inventory, PartitionId, ProjectId, ProviderName, ProviderUuid,
    Timestamp, UserId,
};
use placement_model::{Command, Stamped, State, apply, standard};
use placement_raft_store::wire::{self, RecordVersion};
use uuid::Uuid;

const HOSTS: u32 = 10_000;
const OFFER: [(&str, u32); 3] = [("VCPU", 1_024), ("MEMORY_MB", 262_144), ("DISK_GB", 2_000)];
const ASKED: [(&str, u64); 3] = [("VCPU", 2), ("MEMORY_MB", 2_048), ("DISK_GB", 20)];

criterion_main!(micro);
criterion_group!(micro, writes, searches, codec);

/// Claims of new consumers, spread over all hosts.
fn writes(criterion: &mut Criterion) {
    let cloud = cloud();
    let mut number = 0;
    let mut next = move || {
        number += 1;
        stamped(number, claim(number))
    };
    criterion.bench_function("apply/claim", |bench| {
        bench.iter_batched(
            &mut next,
            |claim| apply(&cloud, &claim),
            BatchSize::SmallInput,
        );
    });
    let mut state = cloud.clone();
    criterion.bench_function("apply/claim, and commit", |bench| {
        bench.iter_batched(
            &mut next,
            |claim| {
                let (outcome, changes) = apply(&state, &claim);
                state.commit(&changes);
                outcome
            },
            BatchSize::SmallInput,
        );
    });
}

/// From the plan to the last candidate with names, and its summaries.
fn searches(criterion: &mut Criterion) {
    let cloud = cloud();
    for limit in [Some(10), Some(1_000), None] {
        let group = RequestGroup {
            resources: (ASKED.iter())
                .map(|&(class, amount)| (class.parse().expect("a class"), amount))
                .collect(),
            ..RequestGroup::default()
        };
        let request = CandidateRequest {
            groups: vec![group],
            group_policy: Some(GroupPolicy::None),
            limit,
            nested: true,
            mappings: true,
            ..CandidateRequest::default()
        };
        let name = match limit {
            Some(limit) => format!("search/{HOSTS} hosts, limit={limit}"),
            None => format!("search/{HOSTS} hosts, no limit"),
        };
        criterion.bench_function(&name, |bench| {
            bench.iter(|| {
                let search = cloud.candidates(&request).expect("it names what exists");
                search.into_candidates()
            });
        });
    }
}

/// A command as it is kept in the log.
fn codec(criterion: &mut Criterion) {
    let command = claim(1);
    criterion.bench_function("codec/a claim written", |bench| {
        bench.iter(|| wire::encode(RecordVersion::COMPACT, black_box(&command)));
    });
    let bytes = wire::encode(RecordVersion::COMPACT, &command);
    criterion.bench_function("codec/a claim read", |bench| {
        bench.iter(|| wire::decode::<Command>(black_box(&bytes)).expect("what was written"));
    });
}

/// Hosts that have room for every claim.
fn cloud() -> State {
    let mut state = State::default();
    let mut run = |number, command| {
        let (_, changes) = apply(&state, &stamped(number, command));
        state.commit(&changes);
    };
    run(0, standard::sync());
    for host in 0..HOSTS {
        let provider = host_uuid(host);
        let name = format!("host-{host}");
        let made = CreateProvider {
            uuid: provider,
            name: ProviderName::try_from(name).expect("a short name"),
            parent: None,
        };
        run(0, Command::CreateProvider(made));
        let offer = OFFER.map(|(class, total)| {
            let inventory = Inventory {
                total,
                reserved: 0,
                min_unit: 1,
                max_unit: total,
                step_size: 1,
                allocation_ratio: 1000.0,
            };
            (class.parse().expect("a class"), inventory)
        });
        let inventories = ReplaceInventories {
            provider,
            generation: Generation(0),
            inventories: BTreeMap::from(offer),
            capacity_rule: CapacityRule::Positive,
        };
        run(0, Command::ReplaceInventories(inventories));
    }
    state
}

fn host_uuid(host: u32) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(u128::from(host) << 64 | 1))
}

/// The claim of a new consumer.
fn claim(number: u64) -> Command {
    let host = u32::try_from(number * 7_919 % u64::from(HOSTS)).expect("one of the hosts");
    let resources = ASKED.map(|(class, amount)| (Given::from(class), amount));
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: vec![ConsumerAllocations {
            consumer: ConsumerUuid::from(Uuid::from_u128(u128::from(number)).to_string()),
            allocations: vec![ProviderAmounts {
                provider: Given::from(host_uuid(host).to_string()),
                resources: BTreeMap::from(resources),
            }],
            project: ProjectId::from("project".to_owned()),
            user: UserId::from("user".to_owned()),
            generation: ConsumerGeneration::New,
            consumer_type: ConsumerTypeUpdate::Set("INSTANCE".parse().expect("a type")),
        }],
    })
}

/// As the leader stamps what one node sends, write after write.
fn stamped(number: u64, command: Command) -> Stamped {
    let request = RequestId {
        origin: 1,
        boot: 1,
        sequence: number,
        answered_below: number.saturating_sub(16),
    };
    Stamped {
        partition: PartitionId::DEFAULT,
        routes: 0,
        at: Timestamp(1),
        request: (number > 0).then_some(request),
        command,
    }
}
