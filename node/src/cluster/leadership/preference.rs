//! Who leads next. Where the configuration prefers some sites, leadership moves to the best of them
//! whose voters are reachable, have caught up and are willing. It stays where it is otherwise, so
//! nothing waits for a preference.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use placement_raft_store::coverage::RarePath;
use placement_raft_store::{Member, Site};
use tokio::time::{Instant, sleep};

use super::hand_over::{hand_over, try_to_hand_over};
use crate::cluster::running::Running;
use crate::cluster::slot::Slot;
use crate::rpc::message::Method;

/// How often a leader looks.
const EVERY: Duration = Duration::from_secs(1);
/// How long another node may take to answer.
const CALL: Duration = Duration::from_secs(1);
/// A leader leads for at least so many of the longest elections before it hands over to a better
/// one: it has to reach its voters, and a node that came back is to stay.
const SETTLE: u32 = 10;
/// Leadership that comes back to the node that has handed it over within so many times what that
/// node waited then is a flutter, for example of nodes that prefer different sites; the node then
/// waits twice as long.
const FLUTTER: u32 = 4;
/// The longest it waits.
const SETTLE_MAX: Duration = Duration::from_mins(10);

/// How far behind the first of `preference` a site is. Each names a region or `REGION/ZONE`.
fn rank(preference: &[String], site: &Site) -> usize {
    let fits = |wanted: &String| match wanted.split_once('/') {
        Some((region, zone)) => region == site.region && zone == site.zone,
        None => *wanted == site.region,
    };
    let at = preference.iter().position(fits);
    at.unwrap_or(preference.len())
}

/// Why this node should not come to lead, if so.
pub(crate) async fn why_not(slot: &Slot, node: &Running) -> Option<String> {
    if let Some(reason) = slot.leaving.why() {
        return Some(reason.to_owned());
    }
    (node.is_short_of_room().await).then(|| "its disk is nearly full".to_owned())
}

/// Hands leadership to a better site whenever this node leads and there is one.
pub(crate) async fn follow(slot: Arc<Slot>, preference: Vec<String>) {
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
        // A leader that was elected again in the meantime has not led on.
        let term = node.replica.vote().0.leader_id.term;
        led = led.filter(|(in_term, _)| *in_term == term);
        let least = Duration::from_millis(node.replica.config.raft.election_max_ms) * SETTLE;
        let mut wait = settle.unwrap_or(least);
        if led.is_none() {
            let is_flutter = handed_over.is_some_and(|at| at.elapsed() < wait * FLUTTER);
            wait = match is_flutter {
                true => (wait * 2).min(SETTLE_MAX),
                false => least,
            };
            settle = Some(wait);
        }
        let (_, since) = *led.get_or_insert_with(|| (term, Instant::now()));
        if since.elapsed() < wait {
            continue;
        }
        let than = match why_not(&slot, &node).await {
            // By this node's own configuration: the others may not know it yet.
            None => rank(&preference, &node.replica.config.node.site()),
            // Any other is better.
            Some(_) => usize::MAX,
        };
        let Some((to, site)) = better(&node, &preference, than).await else {
            continue;
        };
        if !node.replica.leads() || node.replica.vote().0.leader_id.term != term {
            // Leadership went elsewhere while others were asked, and may be back: nothing is handed
            // over.
            continue;
        }
        RarePath::BetterSite.ran();
        tracing::info!(to, %site, "another site is preferred: a node there is to lead");
        handed_over = Some(Instant::now());
        try_to_hand_over(&node.replica, Some(to), wait).await;
        // If it stays here, it is not tried again at once.
        led = None;
    }
}

/// Hands leadership over if this node leads and another one can, `patience` at most. Gives who
/// leads.
pub(crate) async fn step_aside(node: &Running, patience: Duration) -> Result<Option<u64>, String> {
    let replica = &node.replica;
    if replica.leads() && replica.voters().len() > 1 {
        let preference = &replica.config.cluster.leader_preference;
        let better = better(node, preference, usize::MAX).await;
        let to = hand_over(replica, better.map(|(to, _)| to), patience).await?;
        tracing::info!(to, "handed leadership over");
    }
    Ok(replica.leader().map(|leader| leader.id))
}

/// Of the voters at sites before `than` the best that may lead.
async fn better(node: &Running, preference: &[String], than: usize) -> Option<(u64, Site)> {
    let replica = &node.replica;
    let members = replica.members();
    let fit = members
        .into_iter()
        .filter(|(id, member)| rank(preference, &member.site) < than && replica.may_take_over(*id));
    let asked = fit.map(|(id, member)| async move {
        let is_willing = is_willing(node, id, &member).await;
        is_willing.then_some((id, *member.site))
    });
    let willing = join_all(asked).await.into_iter().flatten();
    willing.min_by_key(|(id, site)| (rank(preference, site), *id))
}

async fn is_willing(node: &Running, id: u64, member: &Member) -> bool {
    let asked = (node.peers).call(id, &member.peer, Method::MayLead, &(), CALL);
    let reason = match asked.await {
        Ok(None) => return true,
        Ok(Some(reason)) => reason,
        Err(error) => error.to_string(),
    };
    tracing::debug!(node = id, reason, "a preferred node is not to lead");
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_preferred_to_its_region_if_it_stands_first() {
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
