//! Several clouds in one cluster: a partition behaves as if it were alone in the cluster.

#![allow(clippy::unwrap_used)] // test code, helpers included

use std::collections::{BTreeMap, BTreeSet};

use placement_model::cluster::RoutedBy;
use placement_model::command::{
    Command, CreatePartition, DeletePartition, RaiseLevel, RoutePartition, Stamped, SyncStandards,
    WriteId,
};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::query::candidates::{CandidateRequest, RequestGroup};
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::state::Digest;
use placement_model::state::change::{Counters, RowKey};
use placement_model::types::{Given, PartitionId, PartitionName, Route, Routes, Timestamp};
use placement_model::{Change, Cluster, Level, State, apply};
use placement_naive::Naive;
use placement_naive::generate::{self, STANDARD_CLASSES, STANDARD_TRAITS};
use placement_naive::named;
use proptest::collection::vec;
use proptest::prelude::*;

/// The names of the partitions.
const NAMES: [&str; 3] = ["default", "north", "south"];

fn name(number: usize) -> PartitionName {
    NAMES[number].parse().unwrap()
}

fn standards(classes: &[&str]) -> Command {
    Command::SyncStandards(SyncStandards {
        resource_classes: classes.iter().map(|name| name.parse().unwrap()).collect(),
        traits: STANDARD_TRAITS.map(|name| name.parse().unwrap()).into(),
    })
}

const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];
const PREFIXES: [&str; 3] = ["/north", "/north/placement", "/south"];

fn host_of(text: &str) -> Route {
    Route::Host(text.parse().unwrap())
}

fn prefix_of(text: &str) -> Route {
    Route::Prefix(text.parse().unwrap())
}

fn routes() -> impl Strategy<Value = Routes> {
    let hosts = prop::sample::subsequence(&HOSTS[..], 0..=2);
    let prefixes = prop::sample::subsequence(&PREFIXES[..], 0..=1);
    (hosts, prefixes).prop_map(|(hosts, prefixes)| {
        let hosts = hosts.into_iter().map(host_of);
        let all: Vec<_> = hosts.chain(prefixes.into_iter().map(prefix_of)).collect();
        all.try_into().unwrap()
    })
}

fn is_refused_for_routes(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Refused(
            Refusal::RouteTaken { .. } | Refusal::DefaultWithoutHost | Refusal::DefaultPrefix
        )
    )
}

/// The rows of a partition, without cluster-wide rows. An initial level has a row only in created
/// partitions.
fn own_rows(state: &State) -> Vec<Change> {
    let is_shared = |row: &Change| {
        matches!(
            row,
            Change::PutSession(..)
                | Change::PutOutcome(..)
                | Change::PutPartition(..)
                | Change::PutLevel(_)
        )
    };
    state.rows().filter(|row| !is_shared(row)).collect()
}

/// A cluster of several partitions, and a separate copy of each.
struct Clouds {
    cluster: Cluster,
    alone: BTreeMap<PartitionId, State>,
    ids: BTreeMap<PartitionName, PartitionId>,
    given: BTreeSet<PartitionId>,
    /// The last deleted partition.
    gone: Option<PartitionId>,
    now: i64,
    sequence: u64,
    last: Option<(Stamped, Outcome)>,
    /// The naive model of the list of partitions.
    naive: Naive,
    /// The rows as a store contains them.
    kept: BTreeMap<(PartitionId, RowKey), Change>,
}

impl Clouds {
    fn new() -> Self {
        let mut clouds = Self {
            cluster: Cluster::default(),
            alone: [(PartitionId::DEFAULT, State::default())].into(),
            ids: [(name(0), PartitionId::DEFAULT)].into(),
            given: [PartitionId::DEFAULT].into(),
            gone: None,
            now: 0,
            sequence: 0,
            last: None,
            naive: Naive::default(),
            kept: BTreeMap::new(),
        };
        clouds.everywhere(standards(&STANDARD_CLASSES));
        clouds.create(1, Routes::default());
        clouds.create(2, Routes::default());
        for number in 0..NAMES.len() {
            for command in generate::initial_cloud() {
                clouds.within(number, command);
            }
        }
        clouds
    }

    /// A command as a log entry with a write id.
    fn stamped(&mut self, partition: PartitionId, command: Command) -> Stamped {
        self.now += 1;
        self.sequence += 1;
        Stamped {
            at: Timestamp(self.now),
            write_id: Some(WriteId {
                origin: 1,
                boot: 1,
                sequence: self.sequence,
                answered_below: self.sequence.saturating_sub(3),
            }),
            command,
            partition,
            routes: self.cluster.routing(partition).changes,
            request_id: None,
        }
    }

    fn run(&mut self, stamped: Stamped) -> Outcome {
        let (outcome, changes) = self.cluster.apply(&stamped);
        self.cluster.commit(&changes);
        let keys = changes.iter().flat_map(|(id, changes)| {
            let keys = changes.iter().map(Change::key);
            keys.map(move |key| (*id, key))
        });
        for (id, key) in keys {
            if let Some(row) = self.cluster.row(id, &key) {
                self.kept.insert((id, key), row);
            }
        }
        let there = |id| self.cluster.partition(id).is_some();
        self.kept.retain(|(id, _), _| there(*id));
        // The naive model does not know the content of a partition, so it cannot predict whether
        // the partition can be deleted.
        let is_followed = match stamped.command {
            Command::CreatePartition(_) | Command::RoutePartition(_) => true,
            Command::DeletePartition(_) => matches!(outcome, Outcome::Done(_)),
            _ => false,
        };
        if is_followed {
            assert_eq!(self.naive.apply(&stamped), outcome, "{stamped:?}");
        }
        self.last = Some((stamped, outcome.clone()));
        outcome
    }

    /// Applies the command to the separate copy, without the write id.
    fn alone(&mut self, id: PartitionId, stamped: &Stamped) -> Outcome {
        let state = self.alone.get_mut(&id).unwrap();
        let stamped = Stamped {
            write_id: None,
            ..stamped.clone()
        };
        let (outcome, changes) = apply(state, &stamped);
        state.commit(&changes);
        outcome
    }

    fn within(&mut self, number: usize, mut command: Command) {
        let Some(id) = self.ids.get(&name(number)).copied() else {
            if let Some(gone) = self.gone {
                let stamped = self.stamped(gone, command);
                let refused = Outcome::Refused(Refusal::PartitionGone(gone));
                assert_eq!(self.run(stamped), refused);
            }
            return;
        };
        let state = &self.alone[&id];
        generate::settle(
            &mut command,
            |uuid| state.provider(uuid).map(|provider| provider.generation),
            |uuid| state.consumer(uuid).map(|consumer| consumer.generation),
            state.limits(),
        );
        let stamped = self.stamped(id, command);
        let outcome = self.run(stamped.clone());
        let is_routed_to = id.is_default() || !self.cluster.routing(id).routes.is_empty();
        let expected = match &stamped.command {
            Command::FillPartition(_) if is_routed_to => {
                Outcome::Refused(Refusal::PartitionRouted(id))
            }
            _ => self.alone(id, &stamped),
        };
        assert_eq!(outcome, expected, "{stamped:?}");
    }

    fn everywhere(&mut self, command: Command) {
        let stamped = self.stamped(PartitionId::DEFAULT, command);
        assert_eq!(self.run(stamped.clone()), Outcome::Done(Reply::Done));
        for id in self.alone.keys().copied().collect::<Vec<_>>() {
            self.alone(id, &stamped);
        }
    }

    fn create(&mut self, number: usize, routes: Routes) {
        let create = CreatePartition {
            name: name(number),
            routes,
        };
        let stamped = self.stamped(PartitionId::DEFAULT, Command::CreatePartition(create));
        let outcome = self.run(stamped.clone());
        if is_refused_for_routes(&outcome) {
            return;
        }
        if self.ids.contains_key(&name(number)) {
            let there = Refusal::PartitionExists(name(number));
            assert_eq!(outcome, Outcome::Refused(there));
            return;
        }
        let Outcome::Done(Reply::Partition(id)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(self.given.insert(id), "{id} was assigned before");
        assert!(self.cluster.partition_named(NAMES[number]).is_some());
        self.ids.insert(name(number), id);
        self.alone.insert(id, State::default());
        // The separate copy starts with the same standard names.
        let of_all = own_rows(&self.alone[&PartitionId::DEFAULT]);
        let classes: Vec<_> = of_all
            .iter()
            .filter_map(|row| match row {
                Change::PutResourceClass(_, row) if !row.name.is_custom() => {
                    Some(row.name.as_str())
                }
                _ => None,
            })
            .collect();
        let begin = Stamped {
            command: standards(&classes),
            ..stamped.clone()
        };
        self.alone(id, &begin);
        let to = self.cluster.level();
        let raise = Stamped {
            command: Command::RaiseLevel(RaiseLevel { to }),
            ..stamped
        };
        self.alone(id, &raise);
    }

    /// Sends a write of a node that does not know the last change of routes. It must be refused.
    fn late(&mut self, number: usize, command: Command) {
        let Some(id) = self.ids.get(&name(number)).copied() else {
            return;
        };
        let of_the_cluster = command.is_cluster_wide();
        let mut stamped = self.stamped(id, command);
        if stamped.routes == 0 || of_the_cluster {
            return;
        }
        stamped.routes -= 1;
        let before: Vec<_> = self
            .cluster
            .states()
            .map(|(_, state)| own_rows(state))
            .collect();
        let refused = Outcome::Refused(Refusal::RoutesChanged(id));
        assert_eq!(self.run(stamped), refused);
        let after = self.cluster.states().map(|(_, state)| own_rows(state));
        assert_eq!(before, after.collect::<Vec<_>>());
    }

    fn route(&mut self, number: usize, routes: Routes) {
        let route = RoutePartition {
            name: name(number),
            routes: routes.clone(),
        };
        let stamped = self.stamped(PartitionId::DEFAULT, Command::RoutePartition(route));
        let outcome = self.run(stamped);
        let Some(id) = self.ids.get(&name(number)).copied() else {
            let missing = Refusal::PartitionNotFound(name(number));
            assert_eq!(outcome, Outcome::Refused(missing));
            return;
        };
        if !is_refused_for_routes(&outcome) {
            assert_eq!(outcome, Outcome::Done(Reply::Done));
            assert_eq!(self.cluster.routing(id).routes, routes);
        }
    }

    /// Checks that each request belongs to at most one partition, for any host and path.
    fn check_routes(&self) {
        let cluster = &self.cluster;
        let of = |route: &Route| {
            let here =
                |id: &PartitionId| cluster.routing(*id).routes.iter().any(|one| one == route);
            let mut all = self.alone.keys().filter(|id| here(id));
            let found = all.next();
            assert_eq!(all.next(), None, "{route} belongs to two partitions");
            found.copied()
        };
        let by_hosts = HOSTS.iter().any(|host| of(&host_of(host)).is_some());
        assert!(!by_hosts || cluster.routing(PartitionId::DEFAULT).routes.hosts().count() > 0);
        for host in HOSTS {
            let routed = cluster.route("/traits", || Some(host.to_owned()));
            let expected = if by_hosts {
                of(&host_of(host)).map(|id| (id, RoutedBy::Host(host.parse().unwrap())))
            } else {
                Some((PartitionId::DEFAULT, RoutedBy::AnyHost))
            };
            assert_eq!(routed, expected);
            if let Some((id, by)) = routed {
                assert!(cluster.is_routed(&by, id));
                assert!(!cluster.is_routed(&by, PartitionId(u16::MAX)));
            }
        }
        for prefix in PREFIXES {
            let path = format!("{prefix}/traits");
            let routed = cluster.route(&path, || Some(HOSTS[0].to_owned()));
            if let Some(id) = of(&prefix_of(prefix)) {
                let by = RoutedBy::Prefix(prefix.parse().unwrap());
                assert_eq!(
                    routed,
                    Some((id, by)),
                    "a path takes precedence over a host"
                );
            }
        }
    }

    fn delete(&mut self, number: usize, force: bool) {
        let delete = DeletePartition {
            name: name(number),
            force,
        };
        let stamped = self.stamped(PartitionId::DEFAULT, Command::DeletePartition(delete));
        let outcome = self.run(stamped);
        let Some(id) = self.ids.get(&name(number)).copied() else {
            let missing = Refusal::PartitionNotFound(name(number));
            assert_eq!(outcome, Outcome::Refused(missing));
            return;
        };
        if id.is_default() {
            assert_eq!(outcome, Outcome::Refused(Refusal::PartitionDefault));
            return;
        }
        let holds = |state: &State| {
            let mut consumers = generate::consumers();
            consumers.any(|uuid| {
                let consumer = state.consumer(&uuid);
                consumer.is_some_and(|consumer| !consumer.allocations.is_empty())
            })
        };
        if !force && holds(&self.alone[&id]) {
            let in_use = Refusal::PartitionInUse(name(number));
            assert_eq!(outcome, Outcome::Refused(in_use));
            return;
        }
        assert_eq!(outcome, Outcome::Done(Reply::Done));
        assert!(self.cluster.partition_named(NAMES[number]).is_none());
        self.ids.remove(&name(number));
        self.alone.remove(&id);
        self.gone = Some(id);
    }

    /// Sends the last write again, like a node that received no answer.
    fn again(&mut self) {
        let Some((stamped, outcome)) = self.last.clone() else {
            return;
        };
        let (again, changes) = self.cluster.apply(&stamped);
        assert_eq!((again, changes), (outcome, Vec::new()));
    }

    fn check(&self, filter: &ProviderFilter) {
        let there: Vec<_> = self.cluster.states().map(|(id, _)| id).collect();
        assert_eq!(there, self.alone.keys().copied().collect::<Vec<_>>());
        for (id, alone) in &self.alone {
            let state = self.cluster.partition(*id).unwrap();
            assert_eq!(own_rows(state), own_rows(alone));
            assert_eq!(state.level(), alone.level());
            let found = state.providers(filter, usize::MAX);
            assert_eq!(found, alone.providers(filter, usize::MAX));
            let request = CandidateRequest {
                groups: vec![RequestGroup {
                    resources: [(Given::Valid("VCPU".parse().unwrap()), 1)].into(),
                    ..RequestGroup::default()
                }],
                nested: true,
                ..CandidateRequest::default()
            };
            let candidates = |state: &State| {
                let found = named::answers(state, &request);
                format!("{found:?}")
            };
            assert_eq!(candidates(state), candidates(alone));
        }
        self.check_routes();
    }

    /// Checks that the rows of a store load into the same cluster.
    fn check_reload(&self) {
        assert!(self.cluster.agrees_with_recount());
        // A deletion leaves no row, and neither does an empty set.
        let rows = self.kept.iter().map(|((id, _), row)| (*id, row.clone()));
        let kept: Vec<_> = rows
            .filter(|(_, row)| Digest::from_change(row) != Digest::default())
            .collect();
        assert_eq!(kept.len(), self.cluster.rows().count());
        let loaded = Cluster::load(kept.iter().rev().cloned()).unwrap();
        assert_eq!(loaded.digest(), self.cluster.digest());
        assert!(loaded.rows().eq(self.cluster.rows()));
        assert!(loaded.agrees_with_recount());
        for host in HOSTS {
            let route = |cluster: &Cluster| cluster.route("/", || Some(host.to_owned()));
            assert_eq!(route(&loaded), route(&self.cluster));
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Within(usize, Command),
    Create(usize, Routes),
    Route(usize, Routes),
    Late(usize, Command),
    Delete(usize, bool),
    MoreStandards,
    Raise(u32),
    Again,
}

fn step() -> impl Strategy<Value = Step> {
    let of_one =
        |command: &Command| !matches!(command, Command::RaiseLevel(_) | Command::RetireNode(_));
    prop_oneof![
        30 => (0..NAMES.len(), generate::command().prop_filter("for one partition", of_one))
            .prop_map(|(number, command)| Step::Within(number, command)),
        2 => (0..NAMES.len(), routes()).prop_map(|(number, routes)| Step::Create(number, routes)),
        4 => (0..NAMES.len(), routes()).prop_map(|(number, routes)| Step::Route(number, routes)),
        2 => (0..NAMES.len(), generate::command().prop_filter("for one partition", of_one))
            .prop_map(|(number, command)| Step::Late(number, command)),
        1 => (0..NAMES.len(), any::<bool>()).prop_map(|(number, force)| Step::Delete(number, force)),
        1 => Just(Step::MoreStandards),
        1 => (0_u32..4).prop_map(Step::Raise),
        2 => Just(Step::Again),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn partition_behaves_as_if_alone(
        steps in vec((step(), generate::filter()), 1..80),
    ) {
        let mut clouds = Clouds::new();
        for (step, filter) in steps {
            match step {
                Step::Within(number, command) => clouds.within(number, command),
                Step::Create(number, routes) => clouds.create(number, routes),
                Step::Route(number, routes) => clouds.route(number, routes),
                Step::Late(number, command) => clouds.late(number, command),
                Step::Delete(number, force) => clouds.delete(number, force),
                Step::MoreStandards => {
                    let more = [&STANDARD_CLASSES[..], &["DISK_GB"]].concat();
                    clouds.everywhere(standards(&more));
                }
                Step::Raise(to) => {
                    clouds.everywhere(Command::RaiseLevel(RaiseLevel { to: Level(to) }));
                }
                Step::Again => clouds.again(),
            }
            clouds.check(&filter);
        }
        clouds.check_reload();
    }
}

#[test]
fn single_partition_behaves_as_before_partitions() {
    let mut clouds = Clouds::new();
    clouds.delete(1, true);
    clouds.delete(2, true);
    let deleted = clouds.cluster.rows().filter_map(|(_, row)| match row {
        Change::PutPartition(_, row) => Some(row.deleted_at.is_some()),
        _ => None,
    });
    assert_eq!(deleted.collect::<Vec<_>>(), [true, true]);
    assert_eq!(
        clouds.cluster.digest(),
        clouds.cluster.default_partition().digest()
    );
}

#[test]
fn equal_rows_of_two_partitions_have_different_digests() {
    let clouds = Clouds::new();
    let (one, other) = (name(1), name(2));
    let (one, other) = (clouds.ids[&one], clouds.ids[&other]);
    let swapped = clouds.cluster.rows().map(|(id, row)| match id {
        id if id == one => (other, row),
        id if id == other => (one, row),
        id => (id, row),
    });
    let swapped = Cluster::load(swapped.collect::<Vec<_>>()).unwrap();
    assert_ne!(clouds.cluster.digest(), swapped.digest());
}

#[test]
fn rows_of_a_missing_partition_are_refused() {
    let clouds = Clouds::new();
    let without = clouds
        .cluster
        .rows()
        .filter(|(_, row)| !matches!(row, Change::PutPartition(..)));
    let lost = clouds
        .cluster
        .rows()
        .filter(|(id, _)| !id.is_default())
        .count();
    let refused = Cluster::load(without.collect::<Vec<_>>()).unwrap_err();
    assert_eq!(refused.rows, lost);
}

#[test]
fn number_of_partitions_is_limited() {
    let mut cluster = Cluster::default();
    let create = |number: u32, cluster: &mut Cluster| {
        let name = format!("p{number}").parse().unwrap();
        let (outcome, changes) = cluster.apply(&Stamped {
            at: Timestamp(i64::from(number)),
            write_id: None,
            command: Command::CreatePartition(CreatePartition {
                name,
                routes: Routes::default(),
            }),
            partition: PartitionId::DEFAULT,
            routes: 0,
            request_id: None,
        });
        cluster.commit(&changes);
        outcome
    };
    for number in 1..=256 {
        let id = PartitionId(u16::try_from(number).unwrap());
        let made = create(number, &mut cluster);
        assert_eq!(made, Outcome::Done(Reply::Partition(id)));
    }
    let full = Outcome::Refused(Refusal::PartitionsExhausted);
    assert_eq!(create(257, &mut cluster), full);
}

/// New standard names are created in all partitions except the partition without free ids.
#[test]
fn partition_without_free_ids_does_not_block_others() {
    let mut clouds = Clouds::new();
    let (full, other) = (clouds.ids[&name(1)], clouds.ids[&name(2)]);
    let use_up = |clouds: &mut Clouds, id| {
        let counters = clouds.cluster.row(id, &RowKey::Counters);
        let Some(Change::PutCounters(counters)) = counters else {
            panic!("{counters:?}");
        };
        let used_up = Counters {
            trait_: u32::MAX,
            ..counters
        };
        (clouds.cluster).commit(&vec![(id, vec![Change::PutCounters(used_up)])]);
    };
    use_up(&mut clouds, full);
    let new = Command::SyncStandards(SyncStandards {
        resource_classes: Vec::new(),
        traits: BTreeSet::from(["HW_NEW".parse().unwrap()]),
    });
    let run = |clouds: &mut Clouds, command: &Command| {
        let stamped = clouds.stamped(PartitionId::DEFAULT, command.clone());
        let (outcome, changes) = clouds.cluster.apply(&stamped);
        clouds.cluster.commit(&changes);
        outcome
    };
    assert_eq!(run(&mut clouds, &new), Outcome::Done(Reply::Done));
    let to = Level(clouds.cluster.level().0 + 1);
    let raise = Command::RaiseLevel(RaiseLevel { to });
    assert_eq!(run(&mut clouds, &raise), Outcome::Done(Reply::Done));
    let has_it = |cluster: &Cluster, id| {
        let state = cluster.partition(id).unwrap();
        assert_eq!(state.level(), to);
        state.trait_id(&"HW_NEW".parse().unwrap()).is_some()
    };
    let those = [PartitionId::DEFAULT, full, other].map(|id| has_it(&clouds.cluster, id));
    assert_eq!(those, [true, false, true]);

    // The default partition decides for the cluster: if it refuses the command, nothing changes.
    use_up(&mut clouds, PartitionId::DEFAULT);
    let newer = Command::SyncStandards(SyncStandards {
        resource_classes: Vec::new(),
        traits: BTreeSet::from(["HW_NEWER".parse().unwrap()]),
    });
    let before = clouds.cluster.digest();
    let (outcome, changes) = {
        let mut stamped = clouds.stamped(PartitionId::DEFAULT, newer);
        stamped.write_id = None;
        clouds.cluster.apply(&stamped)
    };
    clouds.cluster.commit(&changes);
    assert_eq!(outcome, Outcome::Refused(Refusal::IdsExhausted));
    assert_eq!(clouds.cluster.digest(), before);
}
