//! Holds: allocations that are kept for other consumers, or for a limited time.

use std::ops::ControlFlow;

use placement_model::command::{
    Claim, Command, ConsumerGeneration, DeleteAllocations, ExpireHolds, NewHold, RenewHold,
};
use placement_model::outcome::Refusal;
use placement_model::query::consumers::ConsumerFilter;
use placement_model::query::holds::HoldCounts;
use placement_model::query::refuge::{ElsewhereRequest, Order, RefugeRequest};
use placement_model::types::{Generation, HoldEnd, HoldTerm, Timestamp};

use crate::claims::{APART, Conditions, ceiling, first_of, group, processors};
use crate::cloud::{Cloud, consumer, post, provider, reshape, stock, update_inventory, wanted};

const LEASE: HoldTerm = HoldTerm::Lease { seconds: 600 };

/// Two hosts with eight processors each.
fn cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8)]);
    cloud.host("cn2", &[("VCPU", 8)]);
    cloud
}

/// A claim of processors of a host, which are a hold.
fn hold(name: &str, (host, amount): (&str, u64), kept_for: &[&str], term: HoldTerm) -> Claim {
    Claim {
        hold: Some(NewHold {
            kept_for: kept_for.iter().map(|name| consumer(name)).collect(),
            term,
        }),
        ..first_of(name, &[host], amount)
    }
}

fn put(name: &str, host: &str, amount: u64) -> Command {
    wanted(name, &[(host, &[("VCPU", amount)])]).put()
}

fn renew(name: &str, term: HoldTerm) -> Command {
    Command::RenewHold(RenewHold {
        consumer: consumer(name),
        term,
    })
}

impl Cloud {
    fn expire(&mut self) {
        self.done(Command::ExpireHolds(ExpireHolds {}));
        assert!(self.state.agrees_with_recount());
    }

    fn is_hold(&self, name: &str) -> bool {
        self.state.hold(&consumer(name)).is_some()
    }
}

#[test]
fn room_is_held_for_a_server_until_the_server_takes_it() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 8), &["vm"], LEASE));
    assert_eq!(cloud.used("cn1", "VCPU"), 8);
    let refusal = cloud.refused(put("other", "cn1", 1));
    assert!(matches!(refusal, Refusal::AllocationCapacity(..)));
    cloud.done(put("vm", "cn1", 8));
    assert_eq!(cloud.consumer("hold"), None);
    assert_eq!(cloud.used("cn1", "VCPU"), 8);
    assert_eq!(cloud.consumer_generation("vm"), Some(1));
    assert!(cloud.state.agrees_with_recount());
}

#[test]
fn all_holds_of_a_server_end_with_its_claim() {
    let mut cloud = cloud();
    cloud.claimed(hold("one", ("cn1", 8), &["vm"], LEASE));
    cloud.claimed(hold("two", ("cn2", 8), &["vm", "another"], LEASE));
    cloud.claimed(first_of("vm", &["cn2"], 4));
    assert_eq!((cloud.consumer("one"), cloud.consumer("two")), (None, None));
    assert_eq!(
        (cloud.used("cn1", "VCPU"), cloud.used("cn2", "VCPU")),
        (0, 4)
    );
}

#[test]
fn refused_claim_leaves_the_hold() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 4), &["vm"], LEASE));
    let before = cloud.digest();
    cloud.refused(put("vm", "cn1", 9));
    cloud.denied(first_of("vm", &["cn1", "cn2"], 9));
    assert_eq!(cloud.digest(), before);
}

#[test]
fn hold_of_another_server_and_a_server_that_gives_back_end_nothing() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 4), &["vm"], LEASE));
    cloud.done(put("other", "cn1", 4));
    cloud.done(wanted("vm", &[]).put());
    assert!(cloud.is_hold("hold"));
}

#[test]
fn lease_ends_at_its_time_and_not_before() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 8), &[], LEASE));
    cloud.wait(599);
    cloud.expire();
    assert!(cloud.is_hold("hold"));
    cloud.wait(1);
    cloud.expire();
    assert_eq!(cloud.consumer("hold"), None);
    assert_eq!(cloud.used("cn1", "VCPU"), 0);
}

#[test]
fn renewed_lease_ends_later() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 8), &[], LEASE));
    cloud.wait(599);
    cloud.done(renew("hold", LEASE));
    cloud.wait(599);
    cloud.expire();
    assert!(cloud.is_hold("hold"));
    cloud.wait(1);
    cloud.expire();
    assert_eq!(
        cloud.refused(renew("hold", LEASE)),
        Refusal::HoldNotFound(consumer("hold"))
    );
}

#[test]
fn ordinary_write_of_a_hold_confirms_it() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 8), &["vm"], LEASE));
    let confirmed = wanted("hold", &[("cn1", &[("VCPU", 8)])]).at(1);
    cloud.done(confirmed.put());
    assert!(!cloud.is_hold("hold"));
    cloud.wait(601);
    cloud.expire();
    cloud.done(put("vm", "cn2", 1));
    assert_eq!(cloud.used("cn1", "VCPU"), 8);
}

#[test]
fn hold_with_a_due_time_never_ends_by_itself() {
    let mut cloud = cloud();
    let due = Timestamp(cloud.now().0 + 600_000_000);
    cloud.claimed(hold("hold", ("cn1", 8), &[], HoldTerm::Due(due)));
    let holds = |overdue| HoldCounts { holds: 1, overdue };
    let before = Timestamp(due.0 - 1);
    assert_eq!(cloud.state.hold_counts(before), holds(0));
    assert_eq!(cloud.state.hold_counts(due), holds(1));
    cloud.wait(601);
    cloud.expire();
    assert_eq!(cloud.state.hold_counts(cloud.now()), holds(1));
    assert_eq!(
        cloud.refused(renew("hold", LEASE)),
        Refusal::HoldIsDue(consumer("hold"))
    );
    let later = Timestamp(due.0 * 2);
    cloud.done(renew("hold", HoldTerm::Due(later)));
    assert_eq!(cloud.state.hold_counts(cloud.now()), holds(0));
    let is_due = Refusal::HoldIsDue(consumer("hold"));
    assert_eq!(cloud.refused(renew("hold", HoldTerm::Open)), is_due);
    let mut again = hold("hold", ("cn1", 8), &[], LEASE);
    again.claimants[0].generation = ConsumerGeneration::Expect(Generation(1));
    assert_eq!(cloud.denied(again), is_due);
    let end = cloud.state.hold(&consumer("hold")).unwrap().end;
    assert_eq!(end, HoldEnd::Due(later));
    cloud.done(Command::DeleteAllocations(DeleteAllocations {
        consumer: consumer("hold"),
    }));
    assert_eq!(cloud.state.hold_counts(cloud.now()), HoldCounts::default());
}

#[test]
fn one_command_ends_the_earliest_hundred_leases() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 1000)]);
    for number in 0..150 {
        let name = format!("hold{number}");
        let term = HoldTerm::Lease {
            seconds: 200 - number,
        };
        cloud.claimed(hold(&name, ("cn1", 1), &[], term));
    }
    cloud.wait(201);
    cloud.expire();
    assert_eq!(cloud.used("cn1", "VCPU"), 50);
    assert!(cloud.is_hold("hold0") && !cloud.is_hold("hold149"));
    cloud.expire();
    assert_eq!(cloud.state.next_lease_end(), None);
}

#[test]
fn repeated_claim_does_not_renew_its_hold() {
    let mut cloud = cloud();
    let claim = hold("hold", ("cn1", 8), &[], LEASE);
    cloud.claimed(claim.clone());
    cloud.wait(300);
    cloud.repeated(claim);
    cloud.wait(300);
    cloud.expire();
    assert_eq!(cloud.consumer("hold"), None);
}

/// The claim of a server whose own UUID was used for the hold is a conflict, not a success.
#[test]
fn claim_without_a_hold_does_not_repeat_that_of_a_hold() {
    let mut cloud = cloud();
    cloud.claimed(hold("vm", ("cn1", 8), &[], LEASE));
    let conflict = |refusal| matches!(refusal, Refusal::ConsumerGenerationConflict { .. });
    assert!(conflict(cloud.denied(first_of("vm", &["cn1"], 8))));
    assert!(conflict(cloud.denied(hold(
        "vm",
        ("cn1", 8),
        &["other"],
        LEASE
    ))));
    let mut confirmed = first_of("vm", &["cn1"], 8);
    confirmed.claimants[0].generation = ConsumerGeneration::Expect(Generation(1));
    cloud.claimed(confirmed);
    assert!(!cloud.is_hold("vm"));
    assert!(conflict(cloud.denied(hold("vm", ("cn1", 8), &[], LEASE))));
}

#[test]
fn consumer_has_at_most_a_hundred_holds() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 1000)]);
    for number in 0..100 {
        let name = format!("hold{number}");
        cloud.claimed(hold(&name, ("cn1", 1), &["vm"], HoldTerm::Open));
    }
    let more = hold("more", ("cn1", 1), &["other", "vm"], HoldTerm::Open);
    assert_eq!(cloud.denied(more), Refusal::TooManyHolds(consumer("vm")));
    cloud.done(put("vm", "cn1", 900));
    assert_eq!(cloud.used("cn1", "VCPU"), 900);
    assert!(cloud.state.agrees_with_recount());
}

#[test]
fn write_of_a_server_and_its_hold_keeps_both() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 4), &["vm"], LEASE));
    let both = [
        wanted("vm", &[("cn1", &[("VCPU", 4)])]),
        wanted("hold", &[("cn1", &[("VCPU", 2)])]).at(1),
    ];
    cloud.done(post(both));
    assert_eq!(cloud.used("cn1", "VCPU"), 6);
    assert!(!cloud.is_hold("hold"));
}

#[test]
fn refuge_moves_no_holds() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 4), &[], LEASE));
    cloud.done(put("vm", "cn1", 1));
    let request = RefugeRequest {
        providers: [provider("cn1")].into(),
        elsewhere: ElsewhereRequest {
            required: [].into(),
            forbidden: [].into(),
            member_of: Vec::new(),
            order: Order::Pack,
        },
    };
    let watch = Box::new(|_| ControlFlow::Continue(()));
    let refuge = cloud.state.refuge(&request, watch).unwrap();
    assert_eq!(
        (refuge.consumers, refuge.moves.len(), refuge.holds),
        (1, 1, 1)
    );
}

#[test]
fn ceilings_and_groups_do_not_count_the_hold_that_ends() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 4), &["vm"], LEASE));
    let limit = ceiling(&["project"], processors(), 4);
    let alone = group(&["vm", "hold"], APART);
    cloud.claimed(first_of("vm", &["cn1"], 4).below(limit.clone()).with(alone));
    // What the hold released counts as released: a project above its limit gets no more than that.
    cloud.claimed(hold("again", ("cn2", 4), &["more"], LEASE));
    cloud.claimed(first_of("more", &["cn2"], 4).below(limit.clone()));
    cloud.denied(first_of("last", &["cn2"], 1).below(limit));
}

#[test]
fn hold_is_taken_even_if_the_capacity_was_reduced() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 8), &["vm"], LEASE));
    let generation = cloud.generation("cn1");
    cloud.done(update_inventory("cn1", generation, "VCPU", stock(8)));
    let mut reduced = stock(8);
    reduced.reserved = 4;
    cloud.done(update_inventory("cn1", generation + 1, "VCPU", reduced));
    cloud.done(put("vm", "cn1", 8));
    assert_eq!(cloud.used("cn1", "VCPU"), 8);
}

#[test]
fn reshape_keeps_holds() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 4), &["vm"], LEASE));
    let generation = cloud.generation("cn1");
    let moved = wanted("hold", &[("cn1", &[("VCPU", 4)])]).at(1);
    cloud.done(reshape(&[("cn1", generation, &[("VCPU", 8)])], [moved]));
    assert!(cloud.is_hold("hold"));
    assert!(cloud.state.agrees_with_recount());
}

#[test]
fn holds_are_listed() {
    let mut cloud = cloud();
    cloud.claimed(hold("hold", ("cn1", 4), &["vm"], LEASE));
    cloud.done(put("other", "cn1", 1));
    let filter = ConsumerFilter {
        held: true,
        ..ConsumerFilter::default()
    };
    for of_provider in [None, Some(provider("cn1"))] {
        let filter = ConsumerFilter {
            provider: of_provider,
            ..filter.clone()
        };
        let page = cloud.state.consumers(&filter, None, 10, 100);
        let uuids: Vec<_> = page.consumers.iter().map(|one| one.uuid.clone()).collect();
        assert_eq!(uuids, [consumer("hold")]);
        assert!(page.consumers[0].hold.is_some());
    }
}
