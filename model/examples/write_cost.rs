//! What a write costs: `cargo run -p placement-model --example write_cost`.
//!
//! Claims and releases against a flat cloud and against one host with a thousand children, once
//! with a reader that holds the state before each write (the worst case: every path is copied),
//! once with a reader per batch of 64 writes.

use std::collections::BTreeMap;

use placement_model::command::{
    CapacityRule, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreateProvider, ProviderAmounts, ReplaceAllocations, ReplaceInventories, RequestId, Stamped,
};
use placement_model::types::{
    ConsumerUuid, Generation, Given, Inventory, PartitionId, ProjectId, ProviderName, ProviderUuid,
    Timestamp, UserId,
};
use placement_model::{State, apply, standard};
use uuid::Uuid;

fn main() {
    for (what, roots, children) in [
        ("10,000 hosts", 10_000, 0),
        ("1,000 trees of 7", 1_000, 6),
        ("1 tree of 1,001", 1, 1_000),
    ] {
        let started = cpu_us();
        let (mut state, providers) = cloud(roots, children);
        let made = (cpu_us() - started) / providers.len() as f64;
        println!("{what}: made in {made:.1} µs per provider with four inventories");
        fill(&mut state, &providers);
        for batch in [1, 64] {
            let (applied, written) = claims(&state, &providers, 40_000, batch);
            println!(
                "  a reader per {batch:2} writes: {applied:.1} µs to apply, {written:.1} in all"
            );
        }
        let started = cpu_us();
        let again = State::load(state.rows()).expect("a state's own rows are whole");
        assert_eq!(again.digest(), state.digest());
        let rows = state.rows().count();
        println!(
            "  {rows} rows loaded in {:.0} ms",
            (cpu_us() - started) / 1e3
        );
    }
}

/// CPU time of this process in µs, as a machine that has other things to do spoils wall time.
/// Linux counts it in hundredths of a second.
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this runs on Linux");
    let fields = stat
        .rsplit(')')
        .next()
        .expect("the name ends")
        .split_whitespace();
    let times = fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<f64>().expect("a number"));
    times.sum::<f64>() * 1e4
}

fn run(state: &mut State, command: Command) {
    let stamped = Stamped {
        partition: PartitionId::DEFAULT,
        routes: 0,
        at: Timestamp(1),
        request: None,
        command,
    };
    let (_, changes) = apply(state, &stamped);
    state.commit(&changes);
}

fn cloud(roots: u32, children: u32) -> (State, Vec<ProviderUuid>) {
    let mut state = State::default();
    run(&mut state, standard::sync());
    let mut providers = Vec::new();
    for root in 0..roots {
        for child in 0..=children {
            let uuid = ProviderUuid(Uuid::from_u128(u128::from(root) << 64 | u128::from(child)));
            let parent = ProviderUuid(Uuid::from_u128(u128::from(root) << 64));
            run(
                &mut state,
                Command::CreateProvider(CreateProvider {
                    uuid,
                    name: ProviderName::try_from(uuid.to_string()).expect("short"),
                    parent: (child > 0).then(|| Given::from(parent.to_string())),
                }),
            );
            let inventory = Inventory {
                total: 1_000_000,
                reserved: 0,
                min_unit: 1,
                max_unit: 1_000_000,
                step_size: 1,
                allocation_ratio: 1.0,
            };
            let classes = ["VCPU", "MEMORY_MB", "DISK_GB", "PCI_DEVICE"];
            let classes = classes.map(|name| (name.parse().expect("valid"), inventory));
            run(
                &mut state,
                Command::ReplaceInventories(ReplaceInventories {
                    provider: uuid,
                    generation: Generation(0),
                    inventories: BTreeMap::from(classes),
                    capacity_rule: CapacityRule::Positive,
                }),
            );
            providers.push(uuid);
        }
    }
    (state, providers)
}

fn claim(provider: &ProviderUuid, consumer: u32) -> Command {
    let resources = ["VCPU", "MEMORY_MB"].map(|name| (name.parse().expect("valid"), 2));
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: vec![ConsumerAllocations {
            consumer: ConsumerUuid::from(Uuid::from_u128(u128::from(consumer)).to_string()),
            allocations: vec![ProviderAmounts {
                provider: Given::from(provider.to_string()),
                resources: BTreeMap::from(resources),
            }],
            project: ProjectId::from(format!("project{}", consumer % 100)),
            user: UserId::from(format!("user{}", consumer % 100)),
            generation: ConsumerGeneration::Unchecked,
            consumer_type: ConsumerTypeUpdate::Keep,
        }],
    })
}

/// Fifty thousand consumers, so that the tables are not empty.
fn fill(state: &mut State, providers: &[ProviderUuid]) {
    for consumer in 0..50_000 {
        let provider = &providers[consumer as usize * 7919 % providers.len()];
        run(state, claim(provider, consumer));
    }
}

/// New consumers claim: µs per write spent in apply, and in apply and commit.
fn claims(state: &State, providers: &[ProviderUuid], writes: u32, batch: u32) -> (f64, f64) {
    let commands: Vec<_> = (0..writes)
        .map(|number| {
            let provider = &providers[number as usize * 104_729 % providers.len()];
            let sequence = u64::from(number);
            let answered_below = sequence.saturating_sub(16);
            Stamped {
                partition: PartitionId::DEFAULT,
                routes: 0,
                at: Timestamp(2),
                request: Some(RequestId {
                    origin: 1,
                    boot: 1,
                    sequence,
                    answered_below,
                }),
                command: claim(provider, 100_000 + number),
            }
        })
        .collect();
    let started = cpu_us();
    for command in &commands {
        let _ = std::hint::black_box(apply(state, command));
    }
    let applied = cpu_us() - started;
    let mut state = state.clone();
    let mut reader = state.clone();
    let started = cpu_us();
    for (number, command) in (0_u32..).zip(&commands) {
        if number % batch == 0 {
            reader = state.clone();
        }
        let (_, changes) = apply(&state, command);
        state.commit(&changes);
    }
    let written = cpu_us() - started;
    drop(reader);
    (applied / f64::from(writes), written / f64::from(writes))
}
