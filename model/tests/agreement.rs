//! Compares the model with the naive one: after each random command, outcome and all queries must
//! agree.

#![allow(clippy::unwrap_used)] // test code, helpers included

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{
    Claim, Command, ConsumerGeneration, ReplaceAllocations, SyncStandards, WriteId,
};
use placement_model::outcome::{Refusal, Reply};
use placement_model::query::capacity::CapacityBy;
use placement_model::query::consumers::{ConsumerFilter, ListedConsumer};
use placement_model::query::limits::{LimitFilter, LimitedProject};
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::state::Digest;
use placement_model::state::change::{ResourceClassId, RowKey, TraitId};
use placement_model::state::tree::Node;
use placement_model::state::tree_set::TreeSet;
use placement_model::types::{ConsumerUuid, ProviderUuid, Timestamp};
use placement_model::{Change, Outcome, State, apply};
use placement_naive::generate::{self, STANDARD_CLASSES, STANDARD_TRAITS};
use placement_naive::{Naive, stamped};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Both models side by side.
#[derive(Default)]
struct ModelPair {
    state: State,
    naive: Naive,
    now: i64,
    /// The state after the last committed batch, and the changes since then.
    batched: State,
    batch: Vec<Change>,
    /// The rows as a store contains them: it reads the current values of changed rows from time to
    /// time.
    kept: BTreeMap<RowKey, Change>,
    changed: BTreeSet<RowKey>,
}

impl ModelPair {
    fn new(furnished: bool) -> Self {
        let mut pair = Self::default();
        pair.run(
            None,
            Command::SyncStandards(SyncStandards {
                resource_classes: STANDARD_CLASSES.map(|name| name.parse().unwrap()).to_vec(),
                traits: STANDARD_TRAITS.map(|name| name.parse().unwrap()).into(),
            }),
        );
        for command in generate::initial_cloud().into_iter().filter(|_| furnished) {
            pair.run(None, command);
        }
        pair
    }

    fn run(&mut self, write_id: Option<WriteId>, mut command: Command) -> Outcome {
        self.settle(&mut command);
        self.now += 1;
        // Seconds apart, so that leases end.
        let stamped = stamped(Timestamp(self.now * 1_000_000), write_id, command);
        let (outcome, changes) = apply(&self.state, &stamped);
        assert_eq!(
            (outcome.clone(), changes.clone()),
            apply(&self.state.clone(), &stamped),
            "apply is not deterministic"
        );
        let before = self.state.clone();
        self.state.commit(&changes);
        self.changed.extend(changes.iter().map(Change::key));
        self.batch.extend(changes.iter().cloned());
        if self.now % 5 == 0 {
            self.write_behind();
            // Several commands in one commit, as during log catch-up.
            self.batched.commit(&std::mem::take(&mut self.batch));
            assert_eq!(self.batched.indexes(), self.state.indexes());
            check_indexes(&self.state);
        }
        self.check_effect(&before, &stamped.command, &outcome, &changes);
        assert_eq!(
            outcome,
            self.naive.apply(&stamped),
            "outcome of {stamped:?}"
        );
        outcome
    }

    fn write_behind(&mut self) {
        for key in std::mem::take(&mut self.changed) {
            let row = self.state.row(&key);
            assert_eq!(row.key(), key);
            self.kept.insert(key, row);
        }
    }

    /// Replaces placeholders in a command with the current generations.
    fn settle(&self, command: &mut Command) {
        let of_provider = |uuid: &ProviderUuid| {
            let provider = self.naive.providers.get(uuid);
            provider.map(|provider| provider.generation)
        };
        let of_consumer = |uuid: &ConsumerUuid| {
            let consumer = self.naive.consumers.get(uuid);
            consumer.map(|consumer| consumer.generation)
        };
        generate::settle(command, of_provider, of_consumer, self.state.limits());
    }

    /// Checks invariants that every command must preserve, whether it is applied or refused.
    fn check_effect(
        &self,
        before: &State,
        command: &Command,
        outcome: &Outcome,
        changes: &[Change],
    ) {
        for (_, tree) in before.trees() {
            for old in &tree.nodes {
                if let Some(new) = self.state.node_by_id(old.id) {
                    assert!(
                        old.generation <= new.generation,
                        "a provider's generation fell"
                    );
                }
            }
        }
        if let Outcome::Refused(refusal) = outcome {
            let only_new_consumers = changes.iter().all(|change| match change {
                Change::PutConsumer(name, row) => {
                    before.consumer(name).is_none() && row.allocations.is_empty()
                }
                change => matches!(change.key(), RowKey::Session(_) | RowKey::Outcome(..)),
            });
            assert!(only_new_consumers, "{refusal:?} changed {changes:?}");
            let is_consumer = |change: &Change| matches!(change, Change::PutConsumer(..));
            if matches!(command, Command::Claim(_)) {
                assert!(
                    !changes.iter().any(is_consumer),
                    "a refused claim left a consumer"
                );
            }
        }
        if let Command::ReplaceAllocations(_) | Command::Claim(_) = command {
            for (_, tree) in self.state.trees() {
                for node in &tree.nodes {
                    for stock in &node.inventories {
                        let old = before
                            .node_by_id(node.id)
                            .unwrap()
                            .stock(stock.class)
                            .unwrap();
                        assert!(
                            stock.used as f64 <= stock.inventory.capacity_exact()
                                || stock.used <= old.used,
                            "a claim exceeded the capacity"
                        );
                    }
                }
            }
        }
    }

    fn check_answers(&self, filter: &ProviderFilter) {
        let (state, naive) = (&self.state, &self.naive);
        assert_eq!(state.level(), naive.level);
        for uuid in generate::providers() {
            assert_eq!(state.provider(&uuid), naive.provider(&uuid));
            assert_eq!(state.inventories(&uuid), naive.inventories(&uuid));
            assert_eq!(state.provider_usages(&uuid), naive.provider_usages(&uuid));
            assert_eq!(state.provider_traits(&uuid), naive.provider_traits(&uuid));
            assert_eq!(
                state.provider_aggregates(&uuid),
                naive.provider_aggregates(&uuid)
            );
            let holdings = state
                .provider_holdings(&uuid)
                .map(|(generation, held)| (generation, held.collect()));
            assert_eq!(holdings, naive.provider_holdings(&uuid));
        }
        for consumer in generate::consumers() {
            assert_eq!(state.consumer(&consumer), naive.consumer(&consumer));
        }
        for project in generate::projects() {
            assert_eq!(state.usages(&project, None), naive.usages(&project, None));
            for user in generate::users() {
                let user = Some(&user);
                assert_eq!(state.usages(&project, user), naive.usages(&project, user));
            }
        }
        assert_eq!(state.resource_classes(), naive.resource_classes());
        for associated in [None, Some(true), Some(false)] {
            assert_eq!(state.traits(associated), naive.traits(associated));
        }
        for filter in [&ProviderFilter::default(), filter] {
            let found = state.providers(filter, usize::MAX);
            assert_eq!(found, naive.providers(filter).map(Some), "{filter:?}");
        }
    }

    /// Compares the queries for operators.
    fn check_content(&self, filter: &ConsumerFilter) {
        let (state, naive) = (&self.state, &self.naive);
        let class = filter.class.as_ref();
        for by in [
            CapacityBy::Class,
            CapacityBy::Aggregate,
            CapacityBy::Trait,
            CapacityBy::Provider,
            CapacityBy::Tree,
        ] {
            for class in [None, class] {
                let expected = naive.capacity(class, by);
                let rows = expected.capacity.len();
                assert_eq!(state.capacity(class, by, rows), Some(expected));
                if rows > 0 {
                    assert_eq!(state.capacity(class, by, rows - 1), None);
                }
            }
        }
        for uuid in generate::providers() {
            assert_eq!(state.tree_with(&uuid), naive.tree_with(&uuid));
        }
        for filter in [&ConsumerFilter::default(), filter] {
            let expected = naive.consumers(filter);
            for (limit, rows_max) in [(usize::MAX, usize::MAX), (1, usize::MAX), (2, 3)] {
                let found = all_pages(state, filter, limit, rows_max);
                assert_eq!(found, expected, "{filter:?}");
            }
        }
        let named = filter.project.iter().map(|project| Some(project.clone()));
        for project in named.chain([None]) {
            for over in [false, true] {
                let project = project.clone();
                let filter = LimitFilter { project, over };
                let expected = naive.limit_usages(&filter);
                for (limit, projects_max) in [(usize::MAX, usize::MAX), (1, usize::MAX), (2, 1)] {
                    let found = all_limits(state, &filter, limit, projects_max);
                    assert_eq!(found, expected, "{filter:?}");
                }
            }
        }
    }

    /// Checks that the same rows load into the same state, in any order.
    fn check_reload(&mut self, shuffle: u32) {
        let rows: Vec<_> = self.state.rows().collect();
        self.write_behind();
        let kept = self.kept.values().filter(|row| !is_absence(row)).cloned();
        let of_rows = rows.iter().map(|row| (row.key(), row.clone()));
        assert_eq!(
            kept.map(|row| (row.key(), row)).collect::<BTreeMap<_, _>>(),
            of_rows.collect::<BTreeMap<_, _>>()
        );
        let mut committed = State::default();
        committed.commit(&rows);
        let one_by_one = rows.iter().fold(State::default(), |mut state, row| {
            state.commit(std::slice::from_ref(row));
            state
        });
        let backwards = State::load(rows.iter().rev().cloned()).unwrap();
        let mut shuffled: Vec<_> = (1_u32..).zip(rows.iter().cloned()).collect();
        shuffled.sort_by_key(|(place, _)| place.wrapping_mul(shuffle | 1).reverse_bits());
        let shuffled = State::load(shuffled.into_iter().map(|(_, row)| row)).unwrap();
        for again in [committed, one_by_one, backwards, shuffled] {
            assert_eq!(again.digest(), self.state.digest());
            assert_eq!(again.indexes(), self.state.indexes());
            assert!(again.trees().eq(self.state.trees()));
            assert!(again.rows().eq(self.state.rows()));
            assert_eq!(again.sizes(), self.state.sizes());
            assert!(again.agrees_with_recount());
        }
        assert!(self.state.agrees_with_recount());
        check_trees(&self.state);
        let loaded = Naive::load(self.state.rows());
        assert_eq!(loaded.rows(), self.naive.rows());
        // The loaded model contains the earlier outcomes, so the test continues with it.
        self.naive = loaded;
    }
}

/// All consumers that pass the filter, read page by page.
fn all_pages(
    state: &State,
    filter: &ConsumerFilter,
    limit: usize,
    rows_max: usize,
) -> Vec<ListedConsumer> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = state.consumers(filter, after.as_ref(), limit, rows_max);
        assert!(page.consumers.len() <= limit);
        found.extend(page.consumers);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// All projects with limits that pass the filter, read page by page.
fn all_limits(
    state: &State,
    filter: &LimitFilter,
    limit: usize,
    projects_max: usize,
) -> Vec<LimitedProject> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = state.limit_usages(filter, after.as_ref(), limit, projects_max);
        assert!(page.projects.len() <= limit.min(projects_max));
        found.extend(page.projects);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// Whether a change leaves no row.
fn is_absence(change: &Change) -> bool {
    Digest::from_change(change) == Digest::default()
}

/// Checks preorder, subtree ends and places against the trees.
fn check_trees(state: &State) {
    for (number, tree) in state.trees() {
        assert_eq!(number.root(), tree.root().id);
        for (index, node) in (0_u32..).zip(&tree.nodes) {
            let place = state.place_by_id(node.id).unwrap();
            assert_eq!((place.tree, place.node), (number, index));
            assert_eq!(state.place(&node.uuid), Some(place));
            let is_below = |mut other: u32| loop {
                if other == index {
                    return true;
                }
                match tree.nodes[other as usize].parent {
                    Some(parent) => other = parent,
                    None => return false,
                }
            };
            for other in 0..tree.nodes.len() as u32 {
                let is_within = (index..node.subtree_end).contains(&other);
                assert_eq!(is_within, is_below(other));
            }
            let siblings = tree
                .nodes
                .iter()
                .filter(|other| other.parent == node.parent);
            assert!(siblings.map(|other| other.id).is_sorted());
            assert!(node.inventories.is_sorted_by_key(|stock| stock.class));
        }
    }
}

/// Checks each index against the trees.
fn check_indexes(state: &State) {
    let indexes = state.indexes();
    for (number, tree) in state.trees() {
        let any = |holds: &dyn Fn(&Node) -> bool| tree.nodes.iter().any(|node| holds(node));
        let root = |holds: &dyn Fn(&Node) -> bool| holds(&tree.nodes[0]);
        let is_in = |set: Option<&TreeSet>| set.is_some_and(|set| set.contains(number.0));
        for class in (0..generate::CLASSES.len() as u32 * 2).map(ResourceClassId) {
            let best = tree
                .nodes
                .iter()
                .map(|node| offers(node, class))
                .max()
                .unwrap_or(0);
            for amount in 1..120 {
                let sets = indexes
                    .offering(class, amount)
                    .filter(|set| set.contains(number.0));
                let found = sets.count();
                assert!(found <= 1, "a tree is in one bucket of a class");
                // Exact for small amounts, within one sixteenth for others.
                assert!(found == 1 || best < amount as i64);
                assert!(found == 0 || best + best / 16 >= amount as i64);
            }
        }
        for id in (0..generate::TRAITS.len() as u32 * 2).map(TraitId) {
            let has = |node: &Node| node.traits.contains(&id);
            assert_eq!(is_in(indexes.with_trait(id)), any(&has));
            assert_eq!(is_in(indexes.with_root_trait(id)), root(&has));
        }
        for name in generate::AGGREGATES {
            let aggregate = name.into();
            let has = |node: &Node| node.aggregates.contains(&aggregate);
            assert_eq!(is_in(indexes.with_member(&aggregate)), any(&has));
            assert_eq!(is_in(indexes.with_root_member(&aggregate)), root(&has));
        }
        assert_eq!(indexes.nested().contains(number.0), tree.nodes.len() > 1);
    }
}

fn offers(node: &Node, class: ResourceClassId) -> i64 {
    let stock = node.inventories.iter().find(|stock| stock.class == class);
    stock.map_or(0, |stock| {
        let free = stock.inventory.capacity_exact().floor() - stock.used as f64;
        free.min(f64::from(stock.inventory.max_unit)) as i64
    })
}

fn request() -> impl Strategy<Value = Option<WriteId>> {
    let id = (1_u64..3, 0_u64..3, 0_u64..12, 0_u64..8).prop_map(
        |(origin, boot, sequence, answered_below)| WriteId {
            origin,
            boot,
            sequence,
            answered_below,
        },
    );
    proptest::option::weighted(0.3, id)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn model_agrees_with_naive_model(
        furnished in proptest::bool::weighted(0.8),
        steps in vec(
            (request(), generate::command(), generate::filter(), generate::consumer_filter()),
            1..120,
        ),
        shuffle in any::<u32>(),
    ) {
        let mut pair = ModelPair::new(furnished);
        for (request, command, filter, consumers) in steps {
            pair.run(request, command);
            pair.check_answers(&filter);
            pair.check_content(&consumers);
        }
        pair.check_reload(shuffle);
    }

    #[test]
    fn command_sent_twice_is_applied_once(
        steps in vec(generate::command(), 1..60),
    ) {
        let mut pair = ModelPair::new(true);
        for (sequence, command) in (1_u64..).zip(steps) {
            // No command retires this node.
            let id = WriteId { origin: 99, boot: 1, sequence, answered_below: sequence };
            let first = pair.run(Some(id), command.clone());
            let digest = pair.state.digest();
            prop_assert_eq!(pair.run(Some(id), command), first);
            prop_assert_eq!(pair.state.digest(), digest);
        }
    }

    #[test]
    fn no_command_makes_the_model_panic(
        steps in vec((request(), generate::hostile_command()), 1..80),
    ) {
        let mut state = ModelPair::new(true).state;
        for (at, (request, command)) in (1_i64..).zip(steps) {
            let stamped = stamped(Timestamp(at), request, command);
            let (_, changes) = apply(&state, &stamped);
            state.commit(&changes);
        }
        let loaded = State::load(state.rows()).unwrap();
        prop_assert_eq!(loaded.digest(), state.digest());
        prop_assert!(loaded.trees().eq(state.trees()));
        check_trees(&state);
    }
}

/// Claims between other commands, 20,000 in total, half of them under limits. Each claim that is
/// applied is repeated with its choices in reverse order, which must change nothing.
#[test]
fn claims_agree_with_naive_model() {
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let steps = vec((generate::claim(), generate::command()), 40);
    let runs = (
        proptest::option::weighted(0.5, generate::replace_limits()),
        steps,
    );
    for _ in 0..500 {
        let (limits, steps) = runs.new_tree(&mut runner).unwrap().current();
        let mut pair = ModelPair::new(true);
        if let Some(limits) = limits {
            pair.run(None, Command::ReplaceLimits(limits));
        }
        for (claim, command) in steps {
            let outcome = pair.run(None, Command::Claim(claim.clone()));
            *outcomes.entry(kind_of(&outcome)).or_default() += 1;
            // The edge rejects choices without allocations, which delete their consumer.
            if let Outcome::Done(reply) = outcome
                && let (Reply::Claimed { choice, .. }, _) = reply.split_excesses()
                && claim.choices[choice as usize]
                    .iter()
                    .all(|one| !one.is_empty())
            {
                let digest = pair.state.digest();
                let repeated = pair.run(None, Command::Claim(as_new(claim)));
                *outcomes.entry(kind_of(&repeated)).or_default() += 1;
                assert_eq!(kind_of(&repeated), "repeated");
                assert_eq!(pair.state.digest(), digest);
            }
            pair.run(None, command);
        }
        pair.check_reload(7);
    }
    println!("{outcomes:?}");
    let kinds = [
        "claimed the first",
        "claimed another",
        "repeated",
        "no room",
        "ceiling",
        "group",
        "generation",
        "reported",
        "limit",
    ];
    for kind in kinds {
        let count = outcomes.get(kind).copied().unwrap_or(0);
        assert!(count > 200, "{kind}: only {count} of {outcomes:?}");
    }
}

fn as_new(mut claim: Claim) -> Claim {
    for claimant in &mut claim.claimants {
        claimant.generation = ConsumerGeneration::New;
    }
    claim.choices.reverse();
    claim
}

fn kind_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(Reply::Claimed { repeated: true, .. }) => "repeated",
        Outcome::Done(Reply::Claimed { choice: 0, .. }) => "claimed the first",
        Outcome::Done(Reply::Claimed { .. }) => "claimed another",
        Outcome::Done(Reply::OverLimits { .. }) => "reported",
        Outcome::Refused(Refusal::ClaimRefused(_)) => "no room",
        Outcome::Refused(Refusal::OverCeiling { .. }) => "ceiling",
        Outcome::Refused(Refusal::GroupBroken { .. }) => "group",
        Outcome::Refused(Refusal::ConsumerGenerationConflict { .. }) => "generation",
        Outcome::Refused(Refusal::HoldIsDue(_)) => "due",
        Outcome::Refused(Refusal::OverLimit(_)) => "limit",
        other => panic!("{other:?}"),
    }
}

/// Checks that random writes of allocations meet limits of all kinds.
#[test]
fn many_random_writes_meet_limits() {
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let runs = (generate::replace_limits(), vec(generate::command(), 40));
    for _ in 0..200 {
        let (limits, steps) = runs.new_tree(&mut runner).unwrap().current();
        let mut pair = ModelPair::new(true);
        let limits = Command::ReplaceLimits(limits);
        for command in std::iter::once(limits).chain(steps) {
            let is_write = matches!(command, Command::ReplaceAllocations(_));
            let kind = match pair.run(None, command) {
                Outcome::Done(Reply::LimitsWritten { .. }) => "limits",
                Outcome::Refused(Refusal::LimitsGenerationConflict { .. }) => "conflict",
                Outcome::Done(Reply::OverLimits { .. }) if is_write => "reported",
                Outcome::Refused(Refusal::OverLimit(_)) if is_write => "refused",
                Outcome::Done(_) if is_write => "accepted",
                _ => "other",
            };
            *outcomes.entry(kind).or_default() += 1;
        }
    }
    println!("{outcomes:?}");
    for kind in ["limits", "conflict", "reported", "refused", "accepted"] {
        let count = outcomes.get(kind).copied().unwrap_or(0);
        assert!(count >= 10, "{kind}: only {count} of {outcomes:?}");
    }
}

/// Checks that enough random commands succeed for the comparison to be meaningful.
#[test]
fn many_random_commands_succeed() {
    let mut runner = TestRunner::deterministic();
    let (mut done, mut claimed) = (0, 0);
    for _ in 0..20 {
        let steps = vec(generate::command(), 100)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let mut pair = ModelPair::new(true);
        for command in steps {
            let is_claim = match &command {
                Command::ReplaceAllocations(ReplaceAllocations { consumers }) => {
                    consumers.iter().any(|one| !one.allocations.is_empty())
                }
                _ => false,
            };
            if let Outcome::Done(_) = pair.run(None, command) {
                done += 1;
                claimed += u32::from(is_claim);
            }
        }
    }
    assert!(done > 500, "only {done} of 2000 commands succeeded");
    assert!(
        claimed > 60,
        "only {claimed} of 2000 commands claimed resources"
    );
}
