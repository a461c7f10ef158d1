//! Tests of ledger entries: undoing them one after the other, and applying them to a mirror.

#![allow(clippy::unwrap_used)] // test code, helpers included

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{
    Command, CreatePartition, EnsureTrait, RaiseLevel, SyncStandards, WriteId,
};
use placement_model::ledger::LedgerEntry;
use placement_model::state::change::RowKey;
use placement_model::types::{ConsumerUuid, PartitionId, ProviderUuid, Routes, Timestamp};
use placement_model::{Change, Cluster, Level, Outcome, State};
use placement_naive::generate::{self, STANDARD_CLASSES, STANDARD_TRAITS};
use placement_naive::stamped;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Rows of placement by key. Empty sets are not rows.
type Rows = BTreeMap<RowKey, Change>;

fn rows(state: &State) -> Rows {
    let of_placement = |key: &RowKey| {
        !matches!(
            key,
            RowKey::Session(_)
                | RowKey::Counters
                | RowKey::Outcome(..)
                | RowKey::Level
                | RowKey::Join(_)
                | RowKey::Partition(_)
                | RowKey::Limits
        )
    };
    let keyed = state.rows().map(|row| (row.key(), row));
    keyed.filter(|(key, _)| of_placement(key)).collect()
}

/// Applies an entry as a watcher does.
fn follow(mirror: &mut Rows, entry: &LedgerEntry) {
    for row in &entry.rows {
        let key = row.after.key();
        let known = mirror.remove(&key);
        let before = Some(row.before.clone()).filter(is_row);
        assert_eq!(known, before, "the rows before {entry:?}");
        if is_row(&row.after) {
            mirror.insert(key, row.after.clone());
        }
    }
}

fn is_row(change: &Change) -> bool {
    match change {
        Change::Delete(_) => false,
        Change::PutProviderTraits(_, set) => !set.is_empty(),
        Change::PutProviderAggregates(_, set) => !set.is_empty(),
        _ => true,
    }
}

/// A cluster with all its ledger entries.
#[derive(Default)]
struct History {
    cluster: Cluster,
    index: u64,
    entries: Vec<LedgerEntry>,
    /// The rows of the default partition after each entry of the log.
    moments: Vec<Rows>,
}

impl History {
    fn new() -> Self {
        let mut history = Self::default();
        history.moments.push(Rows::new());
        history.run(standards());
        for command in generate::initial_cloud() {
            history.run(command);
        }
        history
    }

    fn state(&self) -> &State {
        self.cluster.default_partition()
    }

    /// Applies a command and returns its ledger entries.
    fn run(&mut self, mut command: Command) -> Vec<LedgerEntry> {
        self.settle(&mut command);
        self.index += 1;
        let write_id = WriteId {
            origin: 9,
            boot: 1,
            sequence: self.index,
            answered_below: self.index,
        };
        let stamped = stamped(Timestamp(self.index as i64), Some(write_id), command);
        let (outcome, changes) = self.cluster.apply(&stamped);
        let made = LedgerEntry::for_command(self.index, &stamped, &self.cluster, &changes);
        let before = self.cluster.clone();
        self.cluster.commit(&changes);
        for entry in &made {
            assert_eq!(entry.index, self.index);
            assert_eq!(entry.at, stamped.at);
            assert_eq!(entry.verb, stamped.command.name());
            let after = self.cluster.partition(entry.partition).unwrap();
            check_undo(entry, before.partition(entry.partition), after);
            check_names(entry, before.partition(entry.partition), after);
        }
        let (was, now) = (self.moments.last().unwrap(), rows(self.state()));
        let is_changed = made.iter().any(|entry| entry.partition.is_default());
        assert_eq!(is_changed, *was != now, "{outcome:?} of {stamped:?}");
        self.moments.push(now);
        self.entries.extend(made.iter().cloned());
        made
    }

    /// Replaces placeholders in a command with the current generations.
    fn settle(&self, command: &mut Command) {
        let state = self.state();
        let of_provider = |uuid: &ProviderUuid| state.provider(uuid).map(|one| one.generation);
        let of_consumer = |uuid: &ConsumerUuid| state.consumer(uuid).map(|one| one.generation);
        generate::settle(command, of_provider, of_consumer, state.limits());
    }

    fn newer_than(&self, index: u64) -> impl Iterator<Item = &LedgerEntry> {
        let own = self
            .entries
            .iter()
            .filter(|entry| entry.partition.is_default());
        own.rev().take_while(move |entry| entry.index > index)
    }
}

fn standards() -> Command {
    Command::SyncStandards(SyncStandards {
        resource_classes: STANDARD_CLASSES.map(|name| name.parse().unwrap()).to_vec(),
        traits: STANDARD_TRAITS.map(|name| name.parse().unwrap()).into(),
    })
}

/// The state before these entries, which are given newest first.
fn as_of<'a>(state: &State, newer: impl IntoIterator<Item = &'a LedgerEntry>) -> State {
    let mut state = state.clone();
    for entry in newer {
        state.commit(&entry.undo());
    }
    state
}

fn check_undo(entry: &LedgerEntry, before: Option<&State>, after: &State) {
    let keys: BTreeSet<_> = entry.rows.iter().map(|row| row.after.key()).collect();
    assert_eq!(keys.len(), entry.rows.len(), "each row occurs once");
    for row in &entry.rows {
        assert_ne!(row.before, row.after);
        assert_eq!(row.before.key(), row.after.key());
    }
    let undone = as_of(after, [entry]);
    assert_eq!(rows(&undone), before.map(rows).unwrap_or_default());
    assert!(undone.agrees_with_recount(), "{entry:?}");
}

/// Checks the names of an entry against the rows after the entry, or before it for deleted rows.
fn check_names(entry: &LedgerEntry, before: Option<&State>, after: &State) {
    let mut known = before.map(rows).unwrap_or_default();
    known.extend(rows(after));
    let sides = (entry.rows.iter()).flat_map(|row| [&row.before, &row.after]);
    for side in sides {
        let (mut providers, mut classes, mut traits) = (Vec::new(), Vec::new(), Vec::new());
        match side {
            Change::PutProvider(id, row) => providers.extend(row.parent.iter().chain([id])),
            Change::PutInventory(id, class, _) | Change::Delete(RowKey::Inventory(id, class)) => {
                providers.push(*id);
                classes.push(*class);
            }
            Change::PutProviderTraits(id, set) => {
                providers.push(*id);
                traits.extend(set);
            }
            Change::PutProviderAggregates(id, _) | Change::Delete(RowKey::Provider(id)) => {
                providers.push(*id);
            }
            Change::PutConsumer(_, row) => {
                providers.extend(row.allocations.iter().map(|amount| amount.provider));
                classes.extend(row.allocations.iter().map(|amount| amount.class));
            }
            Change::PutResourceClass(id, _) | Change::Delete(RowKey::ResourceClass(id)) => {
                classes.push(*id);
            }
            Change::PutTrait(id, _) | Change::Delete(RowKey::Trait(id)) => traits.push(*id),
            _ => {}
        }
        for id in providers {
            let Change::PutProvider(_, row) = &known[&RowKey::Provider(id)] else {
                panic!("{id:?}");
            };
            assert_eq!(entry.names.providers.get(&id), Some(&row.uuid));
        }
        for id in classes {
            let Change::PutResourceClass(_, row) = &known[&RowKey::ResourceClass(id)] else {
                panic!("{id:?}");
            };
            assert_eq!(entry.names.classes.get(&id), Some(&row.name));
        }
        for id in traits {
            let Change::PutTrait(_, row) = &known[&RowKey::Trait(id)] else {
                panic!("{id:?}");
            };
            assert_eq!(entry.names.traits.get(&id), Some(&row.name));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn earlier_states_follow_from_entries(
        steps in vec(generate::command(), 1..100),
        moments in vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let mut history = History::new();
        for command in steps {
            history.run(command);
        }
        for moment in moments {
            let index = moment.index(history.moments.len());
            let then = as_of(history.state(), history.newer_than(index as u64));
            prop_assert_eq!(rows(&then), history.moments[index].clone());
            prop_assert!(then.agrees_with_recount());
        }
        let none = as_of(history.state(), history.newer_than(0));
        prop_assert!(rows(&none).is_empty());
    }

    #[test]
    fn mirror_can_start_at_any_entry(
        steps in vec(generate::command(), 1..100),
        start in any::<prop::sample::Index>(),
    ) {
        let mut history = History::new();
        for command in steps {
            history.run(command);
        }
        let start = start.index(history.moments.len());
        let mut mirror = history.moments[start].clone();
        for entry in history.entries.iter().filter(|entry| entry.index > start as u64) {
            follow(&mut mirror, entry);
            prop_assert_eq!(&mirror, &history.moments[entry.index as usize]);
        }
        prop_assert_eq!(mirror, rows(history.state()));
    }
}

/// Commands can be applied after an undo, and no id is assigned twice.
#[test]
fn undone_ids_are_not_reused() {
    let mut history = History::new();
    let command = Command::EnsureTrait(EnsureTrait {
        name: "CUSTOM_GOES".parse().unwrap(),
    });
    let [made] = &history.run(command.clone())[..] else {
        panic!("expected one entry");
    };
    let first = made.rows[0].after.key();
    let undone: Cluster = as_of(history.state(), [made]).into();
    let (outcome, changes) = undone.apply(&stamped(Timestamp(99), None, command));
    assert!(matches!(outcome, Outcome::Done(_)));
    let [again] = &LedgerEntry::for_command(
        99,
        &stamped(Timestamp(99), None, standards()),
        &undone,
        &changes,
    )[..] else {
        panic!("expected one entry");
    };
    assert_ne!(again.rows[0].after.key(), first);
}

#[test]
fn changes_without_placement_rows_make_no_entry() {
    let mut history = History::new();
    let again = history.run(standards());
    assert_eq!(again, [], "the names already exist");
    let raised = history.run(Command::RaiseLevel(RaiseLevel { to: Level::FIRST }));
    assert_eq!(raised, []);
}

#[test]
fn each_changed_partition_has_an_entry() {
    let mut history = History::new();
    let create = |name: &str| {
        Command::CreatePartition(CreatePartition {
            name: name.parse().unwrap(),
            routes: Routes::default(),
        })
    };
    let made = history.run(create("north"));
    let [north] = &made[..] else {
        panic!("expected one entry with the names of the new partition: {made:?}");
    };
    assert_eq!(north.partition, PartitionId(1));
    let names = STANDARD_CLASSES.len() + STANDARD_TRAITS.len();
    assert_eq!(north.rows.len(), names);
    assert_eq!(north.names.classes.len(), STANDARD_CLASSES.len());

    let Command::SyncStandards(mut more) = standards() else {
        unreachable!("the command is SyncStandards");
    };
    more.traits.insert("HW_NEW".parse().unwrap());
    let made = history.run(Command::SyncStandards(more));
    let partitions: Vec<_> = made.iter().map(|entry| entry.partition).collect();
    assert_eq!(partitions, [PartitionId::DEFAULT, PartitionId(1)]);
    assert!(made.iter().all(|entry| entry.rows.len() == 1));
}

/// Checks that random commands also delete objects.
#[test]
fn many_random_commands_delete_objects() {
    let mut runner = TestRunner::deterministic();
    let (mut providers, mut inventories, mut names, mut consumers) = (0, 0, 0, 0);
    for _ in 0..600 {
        let mut history = History::new();
        let steps = vec(generate::command(), 60).new_tree(&mut runner);
        for command in steps.unwrap().current() {
            for row in history.run(command).iter().flat_map(|entry| &entry.rows) {
                match &row.after {
                    Change::Delete(RowKey::Provider(_)) => providers += 1,
                    Change::Delete(RowKey::Inventory(..)) => inventories += 1,
                    Change::Delete(RowKey::ResourceClass(_) | RowKey::Trait(_)) => names += 1,
                    Change::Delete(RowKey::Consumer(_)) => consumers += 1,
                    _ => {}
                }
            }
        }
    }
    let deleted = [providers, inventories, names, consumers];
    assert!(deleted.iter().all(|count| *count >= 5), "{deleted:?}");
}
