//! Moves leadership to preferred sites. If the configuration prefers some sites, leadership moves
//! to the best of them that has a voter which is reachable, has caught up and accepts leadership.
//! Otherwise leadership does not move: the cluster never waits for a preferred site. A drained node
//! can still be elected, since otherwise a cluster of drained nodes would have no leader; it hands
//! leadership to a voter that accepts it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use placement_base::coverage::RarePath;
use placement_base::log_messages::log;
use placement_raft_store::{Member, Site};
use tokio::time::{Instant, sleep};

use super::hand_over::{hand_over, try_to_hand_over};
use crate::running::Running;
use crate::slot::Slot;
use placement_peer::transport::method::Method;

/// How often a leader checks.
const EVERY: Duration = Duration::from_secs(1);
/// Deadline for another node's answer.
const CALL: Duration = Duration::from_secs(1);
/// If a node that handed leadership over becomes the leader again within this many times its wait,
/// leadership is moving back and forth, for example between nodes that prefer different sites. The
/// node then doubles its wait.
const FLUTTER: u32 = 4;
/// Maximum wait.
const SETTLE_MAX: Duration = Duration::from_mins(10);

/// Position of a site in `preference`, whose items name a region or `REGION/ZONE`. Sites that are
/// not listed come last.
fn rank(preference: &[String], site: &Site) -> usize {
    let fits = |wanted: &String| match wanted.split_once('/') {
        Some((region, zone)) => region == site.region && zone == site.zone,
        None => *wanted == site.region,
    };
    let at = preference.iter().position(fits);
    at.unwrap_or(preference.len())
}

/// Why this node should not become the leader, if there is a reason.
pub(crate) async fn why_not(slot: &Slot, node: &Running) -> Option<String> {
    if let Some(reason) = slot.leaving.why() {
        return Some(reason.to_owned());
    }
    (node.is_disk_nearly_full().await).then(|| "its disk is nearly full".to_owned())
}

/// Hands leadership to a better site whenever this node leads and a voter at a better site can take
/// over.
pub async fn follow(slot: Arc<Slot>, preference: Vec<String>) {
    let mut led: Option<(u64, Instant)> = None;
    let mut settle = None;
    let mut handed_over: Option<Instant> = None;
    loop {
        sleep(EVERY).await;
        let leading = slot.get().filter(|node| node.replica.leads());
        let Some(node) = leading else {
            led = None;
            continue;
        };
        // A leader that was re-elected in a new term waits again from the start.
        let term = node.replica.vote().0.leader_id.term;
        led = led.filter(|(in_term, _)| *in_term == term);
        let least = node.replica.config.raft.waits().settle();
        let mut wait = settle.unwrap_or(least);
        if led.is_none() {
            let is_flutter = handed_over.is_some_and(|at| at.elapsed() < wait * FLUTTER);
            wait = if is_flutter {
                (wait * 2).min(SETTLE_MAX)
            } else {
                least
            };
            settle = Some(wait);
        }
        let (_, since) = *led.get_or_insert_with(|| (term, Instant::now()));
        if since.elapsed() < wait {
            continue;
        }
        let than = match why_not(&slot, &node).await {
            // Uses the site in this node's own configuration, because the membership may still
            // contain the previous one.
            None => rank(&preference, &node.replica.config.node.site()),
            // This node should not lead, so every other site is better.
            Some(_) => usize::MAX,
        };
        let Some((to, site)) = better(&node, &preference, than).await else {
            continue;
        };
        if !node.replica.leads() || node.replica.vote().0.leader_id.term != term {
            // Leadership changed while the other nodes were asked. It may have returned to this
            // node in a new term.
            continue;
        }
        RarePath::BetterSite.ran();
        log!(PREFERRED_SITE_FOUND, to, %site, "handing leadership over to a preferred site");
        handed_over = Some(Instant::now());
        try_to_hand_over(&node.replica, Some(to), wait).await;
        // Waits again before the next attempt, whether or not this one succeeded.
        led = None;
    }
}

/// While this node is drained: whenever it leads, hands leadership to a voter that accepts it.
pub async fn lead_only_undrained(slot: Arc<Slot>) {
    loop {
        slot.leaving.drained().await;
        sleep(EVERY).await;
        let Some(node) = slot.get().filter(|node| node.replica.leads()) else {
            continue;
        };
        let preference = &node.replica.config.cluster.leader_preference;
        let better = better(&node, preference, usize::MAX).await;
        // The drain may have ended while the other nodes were asked.
        let Some((to, _)) = better.filter(|_| slot.leaving.is_drained()) else {
            continue;
        };
        let patience = node.replica.config.raft.waits().step_aside();
        match hand_over(&node.replica, Some(to), patience).await {
            Ok(to) => log!(LEADERSHIP_HANDED_OVER, to, "a drained node does not lead"),
            Err(reason) => log!(LEADERSHIP_KEPT, reason, "this drained node still leads"),
        }
    }
}

/// Hands leadership over, within `patience`, if this node leads and is not the only voter. Returns
/// the leader.
pub async fn step_aside(node: &Running, patience: Duration) -> Result<Option<u64>, String> {
    let replica = &node.replica;
    if replica.leads() && replica.voters().len() > 1 {
        let preference = &replica.config.cluster.leader_preference;
        let better = better(node, preference, usize::MAX).await;
        let to = hand_over(replica, better.map(|(to, _)| to), patience).await?;
        log!(LEADERSHIP_HANDED_OVER, to, "handed leadership over");
    }
    Ok(replica.leader().map(|leader| leader.id))
}

/// The best voter that can take over, at a site that ranks before `than`.
async fn better(node: &Running, preference: &[String], than: usize) -> Option<(u64, Site)> {
    let replica = &node.replica;
    let members = replica.members();
    let fit = members
        .into_iter()
        .filter(|(id, member)| rank(preference, &member.site) < than && replica.may_take_over(*id));
    let asked = fit.map(|(id, member)| async move {
        let accepts_leadership = accepts_leadership(node, id, &member).await;
        accepts_leadership.then_some((id, *member.site))
    });
    let willing = join_all(asked).await.into_iter().flatten();
    willing.min_by_key(|(id, site)| (rank(preference, site), *id))
}

async fn accepts_leadership(node: &Running, id: u64, member: &Member) -> bool {
    let asked = (node.peers).call(id, &member.peer, Method::MayLead, &(), CALL);
    let reason = match asked.await {
        Ok(None) => return true,
        Ok(Some(reason)) => reason,
        Err(error) => error.to_string(),
    };
    tracing::debug!(node = id, reason, "a preferred node declines leadership");
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_listed_before_its_region_is_preferred() {
        let preference = ["north/b", "north", "south"].map(str::to_owned);
        let rank = |region: &str, zone: &str| {
            let (region, zone) = (region.to_owned(), zone.to_owned());
            rank(&preference, &Site { region, zone })
        };
        assert_eq!(rank("north", "b"), 0);
        assert_eq!(rank("north", "a"), 1);
        assert_eq!(rank("south", "b"), 2);
        assert_eq!(rank("", ""), 3);
    }
}
