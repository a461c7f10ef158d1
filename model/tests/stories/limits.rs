//! Limits of projects, which a write of allocations is reported to exceed or is refused for.

use placement_model::command::{
    Claim, Command, CreatePartition, CreateProvider, NewHold, ReplaceLimits,
};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::query::limits::{LimitFilter, LimitPage, LimitUsage, LimitedProject};
use placement_model::types::{
    Generation, HoldTerm, LimitExcess, LimitMode, LimitedResource, Limits, PartitionId, ProjectId,
    ProjectLimits, ResourceLimits, Routes, Timestamp,
};
use placement_model::{Cluster, Stamped, standard};
use placement_naive::stamped;

use crate::claims::{claim, first_of, vcpus};
use crate::cloud::{Cloud, consumer, create_inventory, post, provider, reshape, stock, wanted};

/// The highest usage of resources; `None` is unlimited.
type Highest<'a> = &'a [(&'a str, Option<u64>)];

/// A project with its parent and its own limits.
type Own<'a> = (&'a str, Option<&'a str>, Highest<'a>);

/// Two hosts with a hundred processors each.
fn cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 100)]);
    cloud.host("cn2", &[("VCPU", 100)]);
    cloud
}

fn resource(name: &str) -> LimitedResource {
    LimitedResource::try_from(name.to_owned()).unwrap()
}

fn resources(all: Highest<'_>) -> ResourceLimits {
    let one = |(name, limit): &(&str, Option<u64>)| (resource(name), *limit);
    all.iter().map(one).collect()
}

/// Limits of instances and of consumers without a type.
fn limits(mode: LimitMode, defaults: Highest<'_>, projects: &[Own<'_>]) -> Limits {
    let own = |(project, parent, limits): &Own<'_>| {
        let own = ProjectLimits {
            parent: parent.map(ProjectId::from),
            limits: resources(limits),
        };
        (ProjectId::from(*project), own)
    };
    Limits {
        mode,
        types: [None, Some("INSTANCE".parse().unwrap())].into(),
        defaults: resources(defaults),
        projects: projects.iter().map(own).collect(),
    }
}

fn enforced(defaults: Highest<'_>) -> Limits {
    limits(LimitMode::Enforce, defaults, &[])
}

fn excess(project: &str, name: &str, used: u64, requested: u64, limit: u64) -> LimitExcess {
    LimitExcess {
        project: ProjectId::from(project),
        resource: resource(name),
        used,
        requested,
        limit,
    }
}

impl Cloud {
    fn limit(&mut self, limits: Limits) {
        let generation = self.state.limits().map(|row| row.generation);
        let generation = generation.unwrap_or_default();
        let replace = ReplaceLimits { generation, limits };
        let reply = self.done(Command::ReplaceLimits(replace));
        let generation = generation.next();
        assert_eq!(reply, Reply::LimitsWritten { generation });
        assert!(self.state.agrees_with_recount());
    }

    /// The limit for which a write is refused, which changes nothing.
    fn over(&mut self, command: Command) -> LimitExcess {
        let before = self.digest();
        let refusal = self.refused(command);
        assert_eq!(self.digest(), before);
        match refusal {
            Refusal::OverLimit(excess) => excess,
            other => panic!("{other:?}"),
        }
    }

    /// All projects that pass the filter, read page by page.
    fn limit_usages(&self, filter: &LimitFilter, limit: usize) -> Vec<LimitedProject> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.state.limit_usages(filter, after.as_ref(), limit, 100);
            assert!(page.projects.len() <= limit);
            found.extend(page.projects);
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    }
}

/// A write of processors of the first host for a project.
fn of(name: &str, project: &str, amount: u64) -> Command {
    vcpus(name, "cn1", amount).charged_to(project, "user").put()
}

#[test]
fn limits_are_replaced_at_their_generation() {
    let mut cloud = cloud();
    assert_eq!(cloud.state.limits(), None);
    let put = |generation| {
        Command::ReplaceLimits(ReplaceLimits {
            generation: Generation(generation),
            limits: enforced(&[("VCPU", Some(4))]),
        })
    };
    let conflict = |given, actual| Refusal::LimitsGenerationConflict {
        given: Generation(given),
        actual: Generation(actual),
    };
    assert_eq!(cloud.refused(put(1)), conflict(1, 0));
    assert_eq!(cloud.state.limits(), None);
    let written = |generation| Reply::LimitsWritten {
        generation: Generation(generation),
    };
    assert_eq!(cloud.done(put(0)), written(1));
    assert_eq!(cloud.refused(put(0)), conflict(0, 1));
    assert_eq!(cloud.done(put(1)), written(2));
    let row = cloud.state.limits().unwrap();
    let found = (row.generation, row.updated_at);
    assert_eq!(found, (Generation(2), cloud.now()));
}

#[test]
fn default_limits_apply_to_projects_without_their_own() {
    let mut cloud = cloud();
    cloud.limit(limits(
        LimitMode::Enforce,
        &[("VCPU", Some(4))],
        &[
            ("more", None, &[("VCPU", Some(6))]),
            ("unlimited", None, &[("VCPU", None)]),
            ("other", None, &[("MEMORY_MB", Some(1))]),
        ],
    ));
    assert_eq!(cloud.over(of("vm1", "p", 5)), excess("p", "VCPU", 0, 5, 4));
    cloud.done(of("vm1", "p", 4));
    let refused = cloud.over(of("vm2", "more", 7));
    assert_eq!(refused, excess("more", "VCPU", 0, 7, 6));
    cloud.done(of("vm2", "more", 6));
    cloud.done(of("vm3", "unlimited", 50));
    let refused = cloud.over(of("vm4", "other", 5));
    assert_eq!(refused, excess("other", "VCPU", 0, 5, 4));
}

#[test]
fn reported_write_is_done() {
    let mut cloud = cloud();
    let defaults: Highest<'_> = &[("VCPU", Some(4)), ("consumers", Some(1))];
    cloud.limit(limits(LimitMode::Report, defaults, &[]));
    assert_eq!(cloud.done(of("vm1", "p", 4)), Reply::Done);
    let reply = Reply::OverLimits {
        reply: Box::new(Reply::Done),
        excesses: vec![
            excess("p", "consumers", 1, 2, 1),
            excess("p", "VCPU", 4, 6, 4),
        ],
    };
    assert_eq!(cloud.done(of("vm2", "p", 2)), reply);
    assert_eq!(cloud.used("cn1", "VCPU"), 6);
}

#[test]
fn refused_write_creates_no_consumer() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("consumers", Some(1))]));
    cloud.done(of("vm1", "p", 1));
    let refused = cloud.over(of("vm2", "p", 1));
    assert_eq!(refused, excess("p", "consumers", 1, 2, 1));
    assert_eq!(cloud.consumer("vm2"), None);
    // A consumer that already counts may grow, and one without allocations does not count.
    cloud.done(vcpus("vm1", "cn1", 9).charged_to("p", "user").at(1).put());
    cloud.done(wanted("empty", &[]).charged_to("p", "user").put());
}

#[test]
fn capacity_is_checked_before_the_limits() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(4))]));
    cloud.done(
        wanted("old", &[("cn1", &[("VCPU", 98)])])
            .of_type("OTHER")
            .put(),
    );
    let refusal = cloud.refused(of("vm", "p", 5));
    assert!(matches!(refusal, Refusal::AllocationCapacity(..)));
}

#[test]
fn usage_above_a_lowered_limit_may_shrink_and_move_but_not_grow() {
    let mut cloud = cloud();
    cloud.done(vcpus("vm1", "cn1", 6).put());
    cloud.done(vcpus("vm2", "cn1", 2).put());
    cloud.limit(enforced(&[("VCPU", Some(4)), ("consumers", Some(1))]));
    cloud.done(vcpus("vm1", "cn1", 5).at(1).put());
    cloud.done(vcpus("vm1", "cn2", 5).at(2).put());
    // The allocations move to another consumer.
    let moved = [wanted("vm1", &[]).at(3), vcpus("vm3", "cn1", 5)];
    cloud.done(post(moved));
    let refused = cloud.over(vcpus("vm2", "cn1", 3).at(1).put());
    assert_eq!(refused, excess("project", "VCPU", 7, 8, 4));
    cloud.done(wanted("vm2", &[]).at(1).put());
    let refused = cloud.over(vcpus("vm4", "cn1", 1).put());
    assert_eq!(refused, excess("project", "consumers", 1, 2, 1));
    cloud.done(vcpus("vm3", "cn1", 3).at(1).put());
    cloud.done(vcpus("vm3", "cn1", 4).at(2).put());
}

#[test]
fn consumers_of_one_write_count_together() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(5))]));
    let both = |one, other| post([vcpus("vm1", "cn1", one), vcpus("vm2", "cn2", other)]);
    let refused = cloud.over(both(3, 3));
    assert_eq!(refused, excess("project", "VCPU", 0, 6, 5));
    assert_eq!(cloud.done(both(3, 2)), Reply::Done);
    // One gives what the other takes.
    let swapped = [vcpus("vm1", "cn1", 1).at(1), vcpus("vm2", "cn2", 4).at(1)];
    assert_eq!(cloud.done(post(swapped)), Reply::Done);
}

#[test]
fn consumer_that_changes_its_project_counts_there() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(4))]));
    cloud.done(of("vm1", "p", 3));
    cloud.done(of("vm2", "q", 2));
    let moved = || vcpus("vm1", "cn1", 3).charged_to("q", "user").at(1);
    let refused = cloud.over(moved().put());
    assert_eq!(refused, excess("q", "VCPU", 2, 5, 4));
    let swapped = vcpus("vm2", "cn1", 2).charged_to("p", "user").at(1);
    cloud.done(post([moved(), swapped]));
}

#[test]
fn parent_counts_its_children() {
    let mut cloud = cloud();
    cloud.limit(limits(
        LimitMode::Enforce,
        &[],
        &[
            ("top", None, &[("VCPU", Some(10))]),
            ("a", Some("top"), &[("VCPU", Some(8))]),
            ("b", Some("top"), &[]),
        ],
    ));
    cloud.done(of("vm1", "a", 6));
    let refused = cloud.over(of("vm2", "b", 5));
    assert_eq!(refused, excess("top", "VCPU", 6, 11, 10));
    cloud.done(of("vm2", "b", 4));
    let refused = cloud.over(of("vm3", "a", 1));
    assert_eq!(refused, excess("top", "VCPU", 10, 11, 10));
    // The limit of the child and that of the parent.
    assert_eq!(cloud.over(of("vm3", "a", 3)), excess("a", "VCPU", 6, 9, 8));
    // Its own usage counts, too.
    let refused = cloud.over(of("vm3", "top", 1));
    assert_eq!(refused, excess("top", "VCPU", 10, 11, 10));
    // A move between its children does not change the sum.
    cloud.done(vcpus("vm1", "cn1", 6).charged_to("b", "user").at(1).put());
    cloud.done(of("vm4", "another", 50));
}

#[test]
fn other_types_do_not_count() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(4))]));
    cloud.done(vcpus("move", "cn1", 9).of_type("MIGRATION").put());
    cloud.done(vcpus("vm1", "cn1", 3).of_type("INSTANCE").put());
    cloud.done(vcpus("vm2", "cn1", 1).put());
    let refused = cloud.over(vcpus("vm3", "cn1", 1).put());
    assert_eq!(refused, excess("project", "VCPU", 4, 5, 4));
}

#[test]
fn consumer_that_gets_a_counted_type_counts() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(4))]));
    cloud.done(vcpus("move", "cn1", 5).of_type("MIGRATION").put());
    cloud.done(vcpus("vm", "cn1", 1).of_type("INSTANCE").put());
    let retyped = vcpus("move", "cn1", 5).of_type("INSTANCE").at(1);
    let refused = cloud.over(retyped.put());
    assert_eq!(refused, excess("project", "VCPU", 1, 6, 4));
    // It no longer counts as another type.
    cloud.done(vcpus("vm", "cn1", 1).of_type("MIGRATION").at(1).put());
    cloud.done(vcpus("vm2", "cn1", 4).put());
}

#[test]
fn class_that_does_not_exist_has_no_usage() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("CUSTOM_UNKNOWN", Some(0))]));
    assert_eq!(cloud.done(of("vm", "p", 50)), Reply::Done);
}

#[test]
fn claim_takes_the_first_choice_within_the_limit() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(4))]));
    let choices = [[vcpus("vm", "cn1", 5)], [vcpus("vm", "cn2", 4)]];
    assert_eq!(cloud.claimed(claim(choices)), 1);
    assert_eq!(cloud.used("cn2", "VCPU"), 4);
}

/// A choice that is refused by a limit has passed all other checks.
#[test]
fn claim_is_refused_for_the_first_exceeded_limit() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(4))]));
    cloud.done(vcpus("old", "cn1", 2).put());
    let choices = [
        [vcpus("vm", "ghost", 1)],
        [vcpus("vm", "cn1", 101)],
        [vcpus("vm", "cn1", 3)],
        [vcpus("vm", "cn2", 4)],
    ];
    let over = excess("project", "VCPU", 2, 5, 4);
    assert_eq!(cloud.denied(claim(choices)), Refusal::OverLimit(over));
    assert_eq!(cloud.consumer("vm"), None);
}

#[test]
fn claim_is_reported_once() {
    let mut cloud = cloud();
    cloud.limit(limits(LimitMode::Report, &[("VCPU", Some(4))], &[]));
    let reply = cloud.done(Command::Claim(first_of("vm", &["cn1"], 5)));
    let (reply, excesses) = reply.split_excesses();
    let repeated = false;
    let choice = 0;
    assert_eq!(reply, Reply::Claimed { choice, repeated });
    assert_eq!(excesses, [excess("project", "VCPU", 0, 5, 4)]);
    // The limits are not checked again.
    cloud.limit(enforced(&[("VCPU", Some(0))]));
    assert_eq!(cloud.repeated(first_of("vm", &["cn1"], 5)), 0);
}

#[test]
fn hold_that_ends_with_the_claim_is_released() {
    let mut cloud = cloud();
    cloud.limit(enforced(&[("VCPU", Some(4)), ("consumers", Some(1))]));
    cloud.claimed(Claim {
        hold: Some(NewHold {
            kept_for: [consumer("vm")].into(),
            term: HoldTerm::Open,
        }),
        ..first_of("hold", &["cn1"], 4)
    });
    assert_eq!(cloud.claimed(first_of("vm", &["cn1"], 4)), 0);
    assert_eq!(cloud.consumer("hold"), None);
}

#[test]
fn reshape_is_not_limited() {
    let mut cloud = cloud();
    cloud.done(vcpus("vm", "cn1", 4).put());
    cloud.limit(enforced(&[("VCPU", Some(0))]));
    let generation = cloud.generation("cn1");
    let grown = vcpus("vm", "cn1", 6).at(1);
    cloud.done(reshape(&[("cn1", generation, &[("VCPU", 100)])], [grown]));
    assert_eq!(cloud.used("cn1", "VCPU"), 6);
}

#[test]
fn limits_of_another_partition_do_not_apply() {
    let mut cluster = Cluster::default();
    let mut run = |partition, command| {
        let stamped = Stamped {
            partition,
            ..stamped(Timestamp(1), None, command)
        };
        let (outcome, changes) = cluster.apply(&stamped);
        cluster.commit(&changes);
        outcome
    };
    let (default, north) = (PartitionId::DEFAULT, PartitionId(1));
    run(default, standard::sync());
    let create = CreatePartition {
        name: "north".parse().unwrap(),
        routes: Routes::default(),
    };
    run(default, Command::CreatePartition(create));
    for partition in [default, north] {
        let create = CreateProvider {
            uuid: provider("cn1"),
            name: "cn1".to_owned().try_into().unwrap(),
            parent: None,
        };
        run(partition, Command::CreateProvider(create));
        run(partition, create_inventory("cn1", "VCPU", stock(8)));
    }
    let replace = ReplaceLimits {
        generation: Generation(0),
        limits: enforced(&[("VCPU", Some(0))]),
    };
    run(default, Command::ReplaceLimits(replace));
    let refused = Refusal::OverLimit(excess("p", "VCPU", 0, 1, 0));
    assert_eq!(run(default, of("vm", "p", 1)), Outcome::Refused(refused));
    assert_eq!(run(north, of("vm", "p", 1)), Outcome::Done(Reply::Done));
}

#[test]
fn usages_are_listed_with_limits() {
    let mut cloud = cloud();
    let all = LimitFilter::default();
    let nothing = LimitPage::default();
    assert_eq!(cloud.state.limit_usages(&all, None, 10, 10), nothing);
    cloud.done(of("vm1", "p", 5));
    cloud.done(of("vm2", "r", 1));
    cloud.limit(limits(
        LimitMode::Enforce,
        &[("VCPU", Some(4))],
        &[
            ("all", None, &[("VCPU", Some(10))]),
            ("p", Some("all"), &[]),
            ("q", Some("all"), &[("consumers", Some(1))]),
        ],
    ));
    let usage = |(name, used, limit): &(&str, u64, u64)| LimitUsage {
        resource: resource(name),
        used: *used,
        limit: *limit,
    };
    let project =
        |name: &str, parent: Option<&str>, resources: &[(&str, u64, u64)]| LimitedProject {
            project: ProjectId::from(name),
            parent: parent.map(ProjectId::from),
            resources: resources.iter().map(usage).collect(),
        };
    let over = project("p", Some("all"), &[("VCPU", 5, 4)]);
    let expected = [
        project("all", None, &[("VCPU", 5, 10)]),
        over.clone(),
        project("q", Some("all"), &[("consumers", 0, 1), ("VCPU", 0, 4)]),
        project("r", None, &[("VCPU", 1, 4)]),
    ];
    for limit in [1, 2, 10] {
        assert_eq!(cloud.limit_usages(&all, limit), expected);
    }
    let only_over = LimitFilter {
        over: true,
        ..LimitFilter::default()
    };
    assert_eq!(cloud.limit_usages(&only_over, 1), [over]);
    let page = LimitPage {
        projects: Vec::new(),
        next: Some(ProjectId::from("all")),
    };
    assert_eq!(cloud.state.limit_usages(&only_over, None, 10, 1), page);
    let of_one = LimitFilter {
        project: Some(ProjectId::from("r")),
        ..LimitFilter::default()
    };
    assert_eq!(cloud.limit_usages(&of_one, 10), expected[3..]);
}

#[test]
fn defaults_are_for_one_project_without_its_children() {
    let mut cloud = cloud();
    cloud.host("cn3", &[("MEMORY_MB", 8)]);
    cloud.limit(limits(
        LimitMode::Enforce,
        &[("VCPU", Some(4)), ("consumers", Some(1))],
        &[
            ("top", None, &[("VCPU", Some(10))]),
            ("a", Some("top"), &[]),
            ("b", Some("top"), &[]),
        ],
    ));
    cloud.done(of("vm1", "a", 4));
    // The sum of the parent has two consumers, for which it has no limit of its own.
    cloud.done(of("vm2", "b", 4));
    let refused = cloud.over(of("vm3", "top", 3));
    assert_eq!(refused, excess("top", "VCPU", 8, 11, 10));
    cloud.done(of("vm3", "top", 2));
    let memory = wanted("vm4", &[("cn3", &[("MEMORY_MB", 1)])]);
    let refused = cloud.over(memory.charged_to("top", "user").put());
    assert_eq!(refused, excess("top", "consumers", 1, 2, 1));
}
