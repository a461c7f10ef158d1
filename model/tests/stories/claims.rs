//! Claims with choices, ceilings and groups.

use std::collections::BTreeSet;

use placement_model::command::{
    Ceiling, Claim, Claimant, Command, ConsumerTypeUpdate, Counted, Group, GroupRule,
    ReplaceProviderTraits,
};
use placement_model::outcome::{Outcome, Refusal, RefusedChoice, Reply, Shortage};
use placement_model::types::{ConsumerTypeName, Generation, Given, ProjectId};

use crate::cloud::{Cloud, Wanted, asked, class, consumer, given, post, provider, wanted};

/// Two hosts with eight processors each; the second has two NUMA nodes with four.
fn cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8), ("MEMORY_MB", 64)]);
    cloud.host("cn2", &[("MEMORY_MB", 64)]);
    cloud.child("cn2", "numa0", &[("VCPU", 4)]);
    cloud.child("cn2", "numa1", &[("VCPU", 4)]);
    cloud
}

/// A claim with these choices, which name the same consumers in the same order.
pub(crate) fn claim<const N: usize>(choices: impl IntoIterator<Item = [Wanted; N]>) -> Claim {
    let choices: Vec<_> = choices.into_iter().collect();
    let claimant = |wanted: &Wanted| Claimant {
        consumer: wanted.0.consumer.clone(),
        project: wanted.0.project.clone(),
        user: wanted.0.user.clone(),
        consumer_type: wanted.0.consumer_type.clone(),
        generation: wanted.0.generation,
    };
    Claim {
        claimants: choices[0].iter().map(claimant).collect(),
        choices: choices
            .into_iter()
            .map(|choice| choice.map(|wanted| wanted.0.allocations).into())
            .collect(),
        ceilings: Vec::new(),
        groups: Vec::new(),
        hold: None,
    }
}

pub(crate) fn vcpus(name: &str, host: &str, amount: u64) -> Wanted {
    wanted(name, &[(host, &[("VCPU", amount)])])
}

/// A claim of one consumer, which takes the processors of the first of these hosts with room.
pub(crate) fn first_of(name: &str, hosts: &[&str], amount: u64) -> Claim {
    claim(hosts.iter().map(|host| [vcpus(name, host, amount)]))
}

pub(crate) fn ceiling(projects: &[&str], of: Counted, limit: u64) -> Ceiling {
    Ceiling {
        projects: projects.iter().map(|name| ProjectId::from(*name)).collect(),
        types: None,
        of,
        limit,
    }
}

pub(crate) fn processors() -> Counted {
    Counted::Units(asked("VCPU"))
}

pub(crate) fn group(members: &[&str], rule: GroupRule) -> Group {
    Group {
        members: members.iter().map(|name| consumer(name)).collect(),
        rule,
    }
}

pub(crate) const APART: GroupRule = GroupRule::Apart { most: 1 };

pub(crate) trait Conditions {
    fn below(self, ceiling: Ceiling) -> Self;
    fn with(self, group: Group) -> Self;
}

impl Conditions for Claim {
    fn below(mut self, ceiling: Ceiling) -> Self {
        self.ceilings.push(ceiling);
        self
    }

    fn with(mut self, group: Group) -> Self {
        self.groups.push(group);
        self
    }
}

impl Cloud {
    /// Index of the choice that is claimed now.
    pub(crate) fn claimed(&mut self, claim: Claim) -> u32 {
        match self.done(Command::Claim(claim)) {
            Reply::Claimed {
                choice,
                repeated: false,
            } => choice,
            other => panic!("{other:?}"),
        }
    }

    /// Index of the choice that was claimed before.
    pub(crate) fn repeated(&mut self, claim: Claim) -> u32 {
        let before = self.digest();
        match self.done(Command::Claim(claim)) {
            Reply::Claimed {
                choice,
                repeated: true,
            } => {
                assert_eq!(self.digest(), before);
                choice
            }
            other => panic!("{other:?}"),
        }
    }

    /// Why a claim is refused, which changes nothing.
    pub(crate) fn denied(&mut self, claim: Claim) -> Refusal {
        let before = self.digest();
        let refusal = self.refused(Command::Claim(claim));
        assert_eq!(self.digest(), before);
        refusal
    }
}

fn full(choice: u32, host: &str, requested: u64, free: u64) -> RefusedChoice {
    RefusedChoice {
        choice,
        refusal: Refusal::AllocationCapacity(provider(host), class("VCPU")),
        shortage: Some(Shortage { requested, free }),
    }
}

fn over(ceiling: u32, used: u64, requested: u64, limit: u64) -> Refusal {
    Refusal::OverCeiling {
        ceiling,
        used,
        requested,
        limit,
    }
}

fn broken(group: u32, root: &str, members: u32) -> Refusal {
    let root = provider(root);
    Refusal::GroupBroken {
        group,
        root,
        members,
    }
}

#[test]
fn first_choice_with_room_is_claimed() {
    let mut cloud = cloud();
    assert_eq!(cloud.claimed(first_of("vm1", &["cn1", "numa0"], 4)), 0);
    assert_eq!(cloud.claimed(first_of("vm2", &["cn1", "numa0"], 4)), 0);
    assert_eq!(
        cloud.claimed(first_of("vm3", &["cn1", "numa0", "numa1"], 4)),
        1
    );
    assert_eq!(cloud.used("cn1", "VCPU"), 8);
    assert_eq!(cloud.used("numa0", "VCPU"), 4);
    assert_eq!(cloud.used("numa1", "VCPU"), 0);
    assert_eq!(cloud.consumer_generation("vm3"), Some(1));
    assert_eq!(cloud.generation("numa0"), 2);
}

#[test]
fn refusal_has_the_reasons_of_at_most_four_choices() {
    let mut cloud = cloud();
    cloud.done(vcpus("old", "cn1", 6).put());
    let hosts = ["cn1", "ghost", "numa0", "numa1", "numa0", "cn1"];
    let refusal = cloud.denied(first_of("vm", &hosts, 5));
    // `max_unit` is checked before the capacity.
    let constraints = |choice, host| RefusedChoice {
        choice,
        refusal: Refusal::AllocationConstraints(provider(host), class("VCPU")),
        shortage: None,
    };
    let reasons = vec![
        full(0, "cn1", 5, 2),
        constraints(2, "numa0"),
        constraints(3, "numa1"),
        constraints(4, "numa0"),
    ];
    assert_eq!(refusal, Refusal::ClaimRefused(reasons));
    let unknown = |choice, host| RefusedChoice {
        choice,
        refusal: Refusal::AllocationProviderNotFound(given(host)),
        shortage: None,
    };
    let refusal = cloud.denied(first_of("vm", &["ghost", "wraith"], 5));
    let reasons = vec![unknown(0, "ghost"), unknown(1, "wraith")];
    assert_eq!(refusal, Refusal::ClaimRefused(reasons));
    assert_eq!(cloud.consumer("vm"), None);
}

#[test]
fn claim_is_for_all_claimants_or_for_none() {
    let mut cloud = cloud();
    cloud.done(vcpus("old", "cn1", 4).put());
    let both = |one, other| [vcpus("vm1", one, 3), vcpus("vm2", other, 3)];
    let refusal = cloud.denied(claim([both("cn1", "cn1"), both("numa0", "numa0")]));
    let reasons = vec![full(0, "cn1", 6, 4), full(1, "numa0", 6, 4)];
    assert_eq!(refusal, Refusal::ClaimRefused(reasons));
    let choices = [both("cn1", "cn1"), both("cn1", "numa1")];
    assert_eq!(cloud.claimed(claim(choices)), 1);
    assert_eq!(
        (cloud.used("cn1", "VCPU"), cloud.used("numa1", "VCPU")),
        (7, 3)
    );
}

#[test]
fn claimants_release_their_allocations_first() {
    let mut cloud = cloud();
    cloud.done(vcpus("vm1", "cn1", 6).put());
    let resized = |generation| claim([[vcpus("vm1", "cn1", 8).at(generation)]]);
    assert_eq!(cloud.claimed(resized(1)), 0);
    assert_eq!(cloud.consumer_generation("vm1"), Some(2));
    let swapped = [vcpus("vm1", "numa0", 4).at(2), vcpus("vm2", "cn1", 8)];
    assert_eq!(cloud.claimed(claim([swapped])), 0);
    let conflict = Refusal::ConsumerGenerationConflict {
        consumer: consumer("vm1"),
        given: Some(Generation(2)),
        actual: Some(Generation(3)),
    };
    assert_eq!(cloud.denied(resized(2)), conflict);
}

#[test]
fn repeated_claim_changes_nothing() {
    let mut cloud = cloud();
    let instance = |host: &str| {
        vcpus("vm", host, 4)
            .charged_to("p", "u")
            .of_type("INSTANCE")
    };
    let claim_of = |hosts: [&str; 2]| claim(hosts.map(|host| [instance(host)]));
    assert_eq!(cloud.claimed(claim_of(["cn1", "numa0"])), 0);
    assert_eq!(cloud.repeated(claim_of(["cn1", "numa0"])), 0);
    // The same choice may have another place in another list.
    assert_eq!(cloud.repeated(claim_of(["numa0", "cn1"])), 1);
    // Ceilings are not checked again.
    let lowered = claim_of(["cn1", "numa0"]).below(ceiling(&["p"], processors(), 0));
    assert_eq!(cloud.repeated(lowered), 0);
    let conflict = |name, given: Option<i64>| Refusal::ConsumerGenerationConflict {
        consumer: consumer(name),
        given: given.map(Generation),
        actual: Some(Generation(1)),
    };
    let others = [
        claim_of(["numa0", "numa1"]),
        claim([[instance("cn1").of_type("MIGRATION")]]),
        claim([[instance("cn1").charged_to("q", "u")]]),
        claim([[instance("cn1").charged_to("p", "v")]]),
        claim([[vcpus("vm", "cn1", 3)
            .charged_to("p", "u")
            .of_type("INSTANCE")]]),
    ];
    for other in others {
        assert_eq!(cloud.denied(other), conflict("vm", None));
    }
    let with_another = claim([[instance("cn1"), vcpus("vm2", "cn1", 1)]]);
    assert_eq!(cloud.denied(with_another), conflict("vm", None));
    // A claim that expects a generation is applied each time.
    assert_eq!(cloud.claimed(claim([[instance("cn1").at(1)]])), 0);
    assert_eq!(cloud.consumer_generation("vm"), Some(2));
    assert_eq!(cloud.repeated(claim_of(["cn1", "numa0"])), 0);
}

#[test]
fn ceiling_limits_the_usage_of_its_projects() {
    let mut cloud = cloud();
    let of = |name, project| vcpus(name, "cn1", 2).charged_to(project, "u");
    cloud.done(post([of("old1", "p"), of("old2", "q"), of("old3", "r")]));
    let try_below = |cloud: &mut Cloud, projects: &[&str], limit| {
        let claim = claim([[vcpus("vm", "numa0", 3).charged_to("p", "u")]]);
        cloud.denied(claim.below(ceiling(projects, processors(), limit)))
    };
    assert_eq!(try_below(&mut cloud, &["p"], 4), over(0, 2, 3, 4));
    assert_eq!(try_below(&mut cloud, &["p", "q"], 6), over(0, 4, 3, 6));
    let unknown = ["p", "q", "nowhere"];
    assert_eq!(try_below(&mut cloud, &unknown, 6), over(0, 4, 3, 6));
    // Two levels: the project has room, its whole tree of projects has not.
    let two = claim([[vcpus("vm", "numa0", 3).charged_to("p", "u")]])
        .below(ceiling(&["p"], processors(), 5))
        .below(ceiling(&["p", "q", "r"], processors(), 8));
    assert_eq!(cloud.denied(two), over(1, 6, 3, 8));
    let exact = claim([[vcpus("vm", "numa0", 3).charged_to("p", "u")]])
        .below(ceiling(&["q"], processors(), 0))
        .below(ceiling(&["p"], Counted::Units(asked("CUSTOM_UNKNOWN")), 0))
        .below(ceiling(&["p", "q", "r"], processors(), 9));
    assert_eq!(cloud.claimed(exact), 0);
}

#[test]
fn ceiling_counts_after_the_release_and_refuses_only_growth() {
    let mut cloud = cloud();
    cloud.done(vcpus("vm1", "cn1", 4).put());
    cloud.done(vcpus("vm2", "cn1", 4).put());
    let resize = |generation, amount, limit| {
        claim([[vcpus("vm1", "numa0", amount).at(generation)]]).below(ceiling(
            &["project"],
            processors(),
            limit,
        ))
    };
    // The ceiling is lower than the usage.
    assert_eq!(cloud.claimed(resize(1, 4, 5)), 0);
    assert_eq!(cloud.claimed(resize(2, 3, 5)), 0);
    assert_eq!(cloud.denied(resize(3, 4, 7)), over(0, 4, 4, 7));
    assert_eq!(cloud.claimed(resize(3, 4, 8)), 0);
    // The consumer leaves one project for another.
    let moved = |limit| {
        claim([[vcpus("vm1", "numa0", 4).at(4).charged_to("other", "u")]])
            .below(ceiling(&["project"], processors(), 0))
            .below(ceiling(&["other"], processors(), limit))
    };
    assert_eq!(cloud.denied(moved(3)), over(1, 0, 4, 3));
    assert_eq!(cloud.claimed(moved(4)), 0);
}

#[test]
fn ceiling_counts_the_given_types() {
    let mut cloud = cloud();
    let instance: ConsumerTypeName = "INSTANCE".parse().unwrap();
    cloud.done(vcpus("vm1", "cn1", 1).of_type("INSTANCE").put());
    cloud.done(vcpus("move", "cn1", 2).of_type("MIGRATION").put());
    cloud.done(vcpus("old", "cn1", 4).put());
    let of_types = |types: &[Option<&ConsumerTypeName>]| Ceiling {
        types: Some(types.iter().map(|name| name.cloned()).collect()),
        ..ceiling(&["project"], processors(), 0)
    };
    let instances = [Some(&instance)];
    let any = [Some(&instance), None];
    let vm2 = || vcpus("vm2", "numa0", 3).of_type("INSTANCE");
    for (types, used) in [(&instances[..], 1), (&any[..], 5)] {
        let refusal = cloud.denied(claim([[vm2()]]).below(of_types(types)));
        assert_eq!(refusal, over(0, used, 3, 0));
    }
    let all = ceiling(&["project"], processors(), 0);
    assert_eq!(cloud.denied(claim([[vm2()]]).below(all)), over(0, 7, 3, 0));
    // A consumer that keeps its type is counted there, another type is not counted.
    let mut kept = claim([[vm2()]]).below(of_types(&[None]));
    assert_eq!(cloud.claimed(kept.clone()), 0);
    kept.claimants[0].consumer_type = ConsumerTypeUpdate::Keep;
    assert_eq!(cloud.repeated(kept), 0);
    let grown = claim([[vcpus("vm2", "numa0", 4).at(1)]]).below(of_types(&instances));
    assert_eq!(cloud.denied(grown), over(0, 1, 4, 0));
}

#[test]
fn ceiling_counts_consumers_that_hold_something() {
    let mut cloud = cloud();
    // A consumer without allocations, and one with several.
    cloud.done(wanted("empty", &[]).put());
    let several: &[_] = &[("VCPU", 1), ("MEMORY_MB", 1)];
    cloud.done(wanted("vm1", &[("cn1", several), ("numa0", &[("VCPU", 1)])]).put());
    let two = || {
        claim([[
            wanted("vm2", &[("cn1", several), ("numa1", &[("VCPU", 1)])]),
            vcpus("empty", "cn1", 1).at(0),
        ]])
    };
    let consumers = |limit| ceiling(&["project"], Counted::Consumers, limit);
    assert_eq!(cloud.denied(two().below(consumers(2))), over(0, 1, 2, 2));
    assert_eq!(cloud.claimed(two().below(consumers(3))), 0);
    // A consumer that already counts may change.
    let resized = claim([[vcpus("vm1", "cn1", 2).at(1)]]);
    assert_eq!(cloud.claimed(resized.below(consumers(0))), 0);
}

#[test]
fn members_are_apart_by_trees() {
    let mut cloud = cloud();
    cloud.host("cn3", &[("VCPU", 4)]);
    cloud.done(vcpus("vm1", "numa0", 1).put());
    let apart = |name: &str, hosts: &[&str], rule| {
        first_of(name, hosts, 1).with(group(&["vm1", "vm2", "vm3", "gone"], rule))
    };
    // Another provider of the same tree.
    let refusal = cloud.denied(apart("vm2", &["numa1"], APART));
    assert_eq!(refusal, broken(0, "cn2", 2));
    assert_eq!(cloud.claimed(apart("vm2", &["numa1", "cn1"], APART)), 1);
    let refusal = cloud.denied(apart("vm3", &["numa1", "cn1"], APART));
    assert_eq!(refusal, broken(0, "cn2", 2));
    let two = GroupRule::Apart { most: 2 };
    assert_eq!(cloud.claimed(apart("vm3", &["numa1"], two)), 0);
    // The other trees of the group are not judged: `vm1` and `vm3` are in one tree.
    let moved = claim([[vcpus("vm2", "cn3", 1).at(1)]]);
    let moved = moved.with(group(&["vm1", "vm2", "vm3"], APART));
    assert_eq!(cloud.claimed(moved), 0);
    // Only members count.
    assert_eq!(cloud.claimed(apart("vm4", &["numa1"], APART)), 0);
}

#[test]
fn claimants_of_one_claim_are_apart() {
    let mut cloud = cloud();
    let members = group(&["vm1", "vm2"], APART);
    let both = |one, other| [vcpus("vm1", one, 1), vcpus("vm2", other, 1)];
    let refusal = cloud.denied(claim([both("numa0", "numa1")]).with(members.clone()));
    assert_eq!(refusal, broken(0, "cn2", 2));
    let choices = [both("numa0", "numa1"), both("cn1", "numa1")];
    assert_eq!(cloud.claimed(claim(choices).with(members.clone())), 1);
    // A member that leaves a tree makes room for another one.
    let swapped = [vcpus("vm1", "numa1", 1).at(1), vcpus("vm2", "cn1", 1).at(1)];
    assert_eq!(cloud.claimed(claim([swapped]).with(members)), 0);
}

#[test]
fn members_are_together_in_one_tree() {
    let mut cloud = cloud();
    let together = |name: &str, hosts: &[&str]| {
        let members = group(&["vm1", "vm2", "vm3"], GroupRule::Together);
        first_of(name, hosts, 1).with(members)
    };
    assert_eq!(cloud.claimed(together("vm1", &["numa0"])), 0);
    let refusal = cloud.denied(together("vm2", &["cn1"]));
    assert_eq!(refusal, broken(0, "cn1", 1));
    assert_eq!(cloud.claimed(together("vm2", &["cn1", "numa1"])), 1);
    let both = wanted("vm3", &[("cn1", &[("VCPU", 1)]), ("numa1", &[("VCPU", 1)])]);
    let members = group(&["vm1", "vm3"], GroupRule::Together);
    let refusal = cloud.denied(claim([[both]]).with(members));
    assert_eq!(refusal, broken(0, "cn1", 1));
    assert_eq!(cloud.claimed(together("vm4", &["cn1"])), 0);
}

#[test]
fn sharing_providers_belong_to_no_tree_of_a_group() {
    let mut cloud = cloud();
    cloud.host("nfs", &[("DISK_GB", 100)]);
    cloud.done(Command::ReplaceProviderTraits(ReplaceProviderTraits {
        provider: provider("nfs"),
        generation: Generation(1),
        traits: BTreeSet::from([Given::from("MISC_SHARES_VIA_AGGREGATE")]),
    }));
    let with_disk =
        |name, host| wanted(name, &[(host, &[("VCPU", 1)]), ("nfs", &[("DISK_GB", 1)])]);
    cloud.done(with_disk("vm1", "cn1").put());
    let members = |rule| group(&["vm1", "vm2"], rule);
    let apart = claim([[with_disk("vm2", "numa0")]]).with(members(APART));
    assert_eq!(cloud.claimed(apart), 0);
    let joined = claim([[with_disk("vm2", "cn1").at(1)]]).with(members(GroupRule::Together));
    assert_eq!(cloud.claimed(joined), 0);
}

#[test]
fn refusal_is_that_of_the_choice_with_most_checks_passed() {
    let mut cloud = cloud();
    cloud.done(vcpus("vm1", "numa0", 1).put());
    let limited = |choices: &[(&str, u64)]| {
        let choices = choices.iter();
        claim(choices.map(|(host, amount)| [vcpus("vm2", host, *amount)]))
            .below(ceiling(&["project"], processors(), 4))
            .with(group(&["vm1", "vm2"], APART))
    };
    let in_group = ("numa1", 4);
    let above = ("cn1", 4);
    let refusal = cloud.denied(limited(&[("ghost", 1), in_group, above]));
    assert_eq!(refusal, over(0, 1, 4, 4));
    assert_eq!(
        cloud.denied(limited(&[in_group, ("ghost", 1)])),
        broken(0, "cn2", 2)
    );
    cloud.done(
        wanted("old", &[("cn1", &[("VCPU", 6)])])
            .charged_to("other", "u")
            .put(),
    );
    let Refusal::ClaimRefused(reasons) = cloud.denied(limited(&[in_group, above, ("cn1", 3)]))
    else {
        panic!("one choice passed the ceiling");
    };
    assert_eq!(reasons[0], full(2, "cn1", 3, 2));
    assert_eq!(reasons[1].refusal, over(0, 1, 4, 4));
    assert_eq!(reasons[2].refusal, broken(0, "cn2", 2));
    assert_eq!(reasons.len(), 3);
}

#[test]
fn claim_without_choices_is_refused() {
    let mut cloud = cloud();
    let mut none = first_of("vm", &["cn1"], 1);
    none.choices.clear();
    assert_eq!(cloud.denied(none), Refusal::ClaimRefused(Vec::new()));
    let outcome = cloud.try_request(None, Command::Claim(first_of("vm", &["cn1"], 1)));
    assert!(matches!(outcome, Outcome::Done(_)));
}
