//! If configured, moves the vote of a voter that has been unreachable for long to a learner in the
//! same region. The leader does this for one voter at a time, and only while a majority of the
//! voters is reachable.
//!
//! If the leader changes, the unreachable time is measured from zero. The lost voter stays a
//! member, as a learner, and does not regain its vote when it returns. So votes do not move back
//! and forth.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use placement_model::Command;
use placement_model::command::SetReplacement;
use placement_model::state::change::Replaced;
use placement_raft_store::{Member, Site};
use tokio::time::{Instant, sleep};

use super::replacement::is_under_way;
use crate::internal_actions::InternalAction;
use crate::running::Running;
use placement_base::log_messages::log;

/// How often a leader checks.
const EVERY: Duration = Duration::from_secs(1);

/// Watches the voters while this node leads. `after` is how long a voter may be unreachable.
pub(crate) async fn watch(node: Arc<Running>, after: Duration) {
    let mut silent: BTreeMap<u64, Instant> = BTreeMap::new();
    loop {
        sleep(EVERY).await;
        if !node.replica.leads() {
            silent.clear();
            continue;
        }
        let voters = node.replica.voters();
        silent.retain(|voter, _| voters.contains(voter) && !node.replica.is_reachable(*voter));
        for voter in &voters {
            if !node.replica.is_reachable(*voter) {
                silent.entry(*voter).or_insert_with(Instant::now);
            }
        }
        if is_under_way(&node) || voters.len() <= 2 * silent.len() {
            continue;
        }
        let lost = silent.iter().find_map(|(voter, since)| {
            let by = (since.elapsed() >= after).then(|| deputy(&node, *voter))?;
            Some((*voter, by?))
        });
        if let Some((lost, by)) = lost {
            begin(&node, lost, by, after).await;
            // After a failed attempt, the voter must be unreachable for `after` again.
            silent.remove(&lost);
        }
    }
}

/// The learner that should get the vote of a lost voter: reachable, caught up, in the same zone if
/// possible, else in the same region.
fn deputy(node: &Running, lost: u64) -> Option<u64> {
    let replica = &node.replica;
    let (members, voters) = (replica.members(), replica.voters());
    let site = &members.get(&lost)?.site;
    let fit = |id: u64| replica.is_reachable(id) && replica.has_caught_up(id);
    let learners = members
        .iter()
        .filter(|(id, _)| !voters.contains(id) && fit(**id));
    nearest(site, learners)
}

fn nearest<'a>(site: &Site, learners: impl Iterator<Item = (&'a u64, &'a Member)>) -> Option<u64> {
    let near = learners.filter(|(_, member)| member.site.region == site.region);
    let best = near.min_by_key(|(id, member)| (member.site.zone != site.zone, **id));
    best.map(|(id, _)| *id)
}

async fn begin(node: &Running, lost: u64, by: u64, after: Duration) {
    let words = format!(
        "node {lost} has not been reachable for {} s: its vote moves to node {by}",
        after.as_secs()
    );
    log!(VOTER_LOST, lost, by, "{words}");
    let command = Command::SetReplacement(SetReplacement {
        by,
        replaces: Some(Replaced {
            node: lost,
            // Both nodes keep their names.
            name: String::new(),
            votes: true,
            stays: true,
            though_reachable: false,
        }),
    });
    let done = node.carry_out(command, &words).await;
    if let Err(refused) = &done {
        log!(VOTE_NOT_MOVED, lost, by, %refused, "could not move the vote of a lost voter yet");
    }
    node.actions.record(InternalAction {
        actor: format!("the autopilot of node {}", node.replica.me),
        path: format!("/v1/members/{lost}/replace"),
        detail: words,
        done: done.is_ok(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(region: &str, zone: &str) -> Member {
        Member {
            site: Box::new(Site {
                region: region.to_owned(),
                zone: zone.to_owned(),
            }),
            ..Member::default()
        }
    }

    #[test]
    fn vote_stays_in_its_zone_or_else_in_its_region() {
        let lost = at("north", "a").site;
        let of = |members: &[(u64, Member)]| {
            nearest(&lost, members.iter().map(|(id, member)| (id, member)))
        };
        let (near, far, away) = (at("north", "a"), at("north", "b"), at("south", "a"));
        assert_eq!(
            of(&[(4, far.clone()), (5, near), (6, away.clone())]),
            Some(5)
        );
        assert_eq!(of(&[(6, away.clone()), (7, far)]), Some(7));
        assert_eq!(of(&[(6, away)]), None);
    }
}
