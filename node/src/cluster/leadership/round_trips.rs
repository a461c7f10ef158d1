//! Keeps the way to the others measured: each node asks each voter how far it is, so that it is
//! known between any two nodes of which one may lead. Learners are far too many to ask each other;
//! a leader asks them on the connections that it has anyway.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::cluster::replica::Replica;
use crate::cluster::running::Running;
use crate::rpc::message::Lane;
use crate::rpc::round_trips::RoundTrips;
use crate::tasks::Tasks;

/// How often the way to each is measured.
const EVERY: Duration = Duration::from_secs(2);
/// Connections to voters that are so far are made before they are needed: that takes several round
/// trips, for which no one is to wait when another node comes to lead.
const FAR: Duration = Duration::from_millis(10);

/// Why the times of elections do not fit what was measured, if so. Only a hint: what was measured
/// may be wrong, and the way between learners and others has no part in elections.
pub(crate) fn too_long(replica: &Replica, ways: &RoundTrips) -> Option<String> {
    let voters = replica.voters();
    if !voters.contains(&replica.me) {
        return None;
    }
    let limit = replica.config.raft.round_trip_max_ms();
    let ways = ways.all().into_iter();
    let measured = ways.filter(|(node, _)| voters.contains(node));
    let (node, way) = measured.max_by_key(|(_, way)| way.least)?;
    let took = way.least.as_millis() as u64;
    // With room for what waits on the way, to the next ten.
    let set = (took + took / 4).next_multiple_of(10);
    (took > limit).then(|| {
        format!(
            "the round trip to node {node} takes {took} ms, and the times of elections are made for {limit} ms: \
             set raft.round_trip_ms to {set} on all voters"
        )
    })
}

/// Measures for as long as this node runs.
pub(crate) async fn measure(node: Arc<Running>, tasks: Tasks) {
    let Running { replica, peers, .. } = &*node;
    let (mut has_warned, mut wrong_clock) = (false, None);
    loop {
        sleep(EVERY).await;
        let problem = node.clock_problem();
        match problem {
            Some(problem) if !problem.is_still(wrong_clock) => tracing::warn!("{problem}"),
            None if wrong_clock.is_some() => tracing::info!("no clock is known to be wrong now"),
            _ => {}
        }
        wrong_clock = problem;
        if !has_warned && let Some(words) = too_long(replica, &peers.round_trips) {
            tracing::warn!("{words}");
            has_warned = true;
        }
        let (members, voters) = (replica.members(), replica.voters());
        (peers.round_trips).keep(|node| members.contains_key(&node));
        for (id, member) in members {
            if id == replica.me {
                continue;
            }
            if !voters.contains(&id) {
                peers.measure_if_connected(id);
                continue;
            }
            let (peers, address) = (peers.clone(), member.peer);
            // What it takes to lead, and to ask the next leader.
            let lanes: &[Lane] = match voters.contains(&replica.me) {
                true => &[Lane::Log, Lane::Forward],
                false => &[Lane::Forward],
            };
            // One that cannot be reached keeps the others waiting for nothing.
            tasks.spawn(async move {
                let Ok(channel) = peers.channel(id, &address, Lane::Control).await else {
                    return;
                };
                channel.ping();
                let way = peers.round_trips.to(id);
                if way.is_some_and(|way| way.least >= FAR) {
                    for lane in lanes {
                        // It is tried again when it is needed.
                        let _ = peers.channel(id, &address, *lane).await;
                    }
                }
            });
        }
    }
}
