//! The replay finds bugs in the rules, and finds no difference for the correct rules.

use placement_model::command::{
    CapacityRule, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreateInventory, CreatePartition, CreateProvider, DeletePartition, ProviderAmounts,
    ReplaceAllocations, RoutePartition, Stamped, WriteId,
};
use placement_model::types::{Given, Inventory, PartitionId, Route, Routes, Timestamp};
use placement_model::{Cluster, standard};
use placement_simulations::mutant::{self, Mutant};
use placement_simulations::replay::{Counts, Difference, ModelPair};

const NORTH: PartitionId = PartitionId(1);
const HOST: &str = "11111111-1111-1111-1111-111111111111";

fn claim(consumer: &str, amount: u64) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: vec![ConsumerAllocations {
            consumer: consumer.into(),
            generation: ConsumerGeneration::New,
            project: "project".into(),
            user: "user".into(),
            consumer_type: ConsumerTypeUpdate::Keep,
            allocations: vec![ProviderAmounts {
                provider: Given::Valid(HOST.parse().unwrap()),
                resources: [(Given::Valid("VCPU".parse().unwrap()), amount)].into(),
            }],
        }],
    })
}

/// A host with four processors in each of two partitions, claims of which one does not fit, and
/// the deletion of one partition.
fn log() -> Vec<Stamped> {
    let host = || {
        let uuid = HOST.parse().unwrap();
        [
            Command::CreateProvider(CreateProvider {
                uuid,
                name: "host".parse().unwrap(),
                parent: None,
            }),
            Command::CreateInventory(CreateInventory {
                provider: uuid,
                resource_class: Given::Valid("VCPU".parse().unwrap()),
                inventory: Inventory {
                    total: 4,
                    reserved: 0,
                    min_unit: 1,
                    max_unit: 4,
                    step_size: 1,
                    allocation_ratio: 1.0,
                },
                capacity_rule: CapacityRule::NotNegative,
            }),
            claim("c1", 3),
            claim("c2", 2),
        ]
    };
    let routes = |prefix: &str| -> Routes {
        let prefix = Route::Prefix(prefix.parse().unwrap());
        vec![prefix].try_into().unwrap()
    };
    let name = || "north".parse().unwrap();
    let create = Command::CreatePartition(CreatePartition {
        name: name(),
        routes: routes("/north"),
    });
    let route = Command::RoutePartition(RoutePartition {
        name: name(),
        routes: routes("/far-north"),
    });
    let delete = |force| {
        Command::DeletePartition(DeletePartition {
            name: name(),
            force,
        })
    };
    let mut commands = vec![(PartitionId::DEFAULT, standard::sync())];
    commands.extend(host().map(|command| (PartitionId::DEFAULT, command)));
    commands.push((PartitionId::DEFAULT, create));
    commands.extend(host().map(|command| (NORTH, command)));
    commands.push((PartitionId::DEFAULT, route));
    // A claim after the partition was routed.
    commands.push((NORTH, claim("c3", 1)));
    commands.push((PartitionId::DEFAULT, delete(false)));
    commands.push((PartitionId::DEFAULT, delete(true)));
    commands.push((NORTH, claim("c4", 1)));
    let stamped = (1..).zip(commands).map(|(number, (partition, command))| {
        let write_id = WriteId {
            origin: 1,
            boot: 1,
            sequence: number,
            answered_below: number.saturating_sub(3),
        };
        Stamped {
            at: Timestamp(number as i64),
            write_id: Some(write_id),
            request_id: None,
            command,
            partition,
            routes: 0,
        }
    });
    let mut log: Vec<_> = stamped.collect();
    // A repeated command.
    log.push(log[log.len() - 2].clone());
    log
}

/// Replays the log with rules that have this bug, and compares the rows after each command. From
/// entry 8 on, a new pair continues: its naive model is loaded from the product's state after entry
/// 7, and its counts start at 0.
fn replayed(bug: Option<Mutant>) -> Result<Counts, Difference> {
    let rules = mutant::rules(bug, 2);
    let mut pair = ModelPair::new(Cluster::default(), &*rules);
    for (index, stamped) in (1..).zip(&log()) {
        if index == 8 {
            pair = ModelPair::new(pair.cluster().clone(), &*rules);
        }
        pair.carry_out(index, stamped)?;
        pair.compare_rows(index)?;
    }
    Ok(pair.counts)
}

#[test]
fn rules_and_naive_model_agree_in_all_partitions() {
    let counts = replayed(None).unwrap();
    // Refusals from entry 8 on.
    assert_eq!(counts.refused, 4, "{counts}");
    assert!(counts.rows > 300, "{counts}");
}

#[test]
fn replay_reports_the_first_difference_of_a_bug() {
    for (bug, index, what) in [
        (Mutant::SkipCapacityCheck, 5, "AllocationCapacity"),
        (Mutant::PartitionForgotten, 7, "DuplicateProviderUuid"),
        (Mutant::DivergingNode, 4, "consumer c1 of partition 0"),
    ] {
        let difference = replayed(Some(bug)).unwrap_err();
        let words = difference.to_string();
        assert_eq!(difference.index, index, "{words}");
        assert!(words.contains(what), "{words}");
    }
}
