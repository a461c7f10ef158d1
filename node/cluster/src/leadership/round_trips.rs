//! Measures round trips to the other members. Each node pings each voter, so that the round trips
//! between any two possible leaders are known. Learners may be too numerous for each node to ping
//! them; only nodes that are connected to a learner, such as the leader, measure the round trip to
//! it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::replica::Replica;
use crate::running::Running;
use placement_base::log_messages::log;
use placement_base::tasks::Tasks;
use placement_peer::transport::method::Lane;
use placement_peer::transport::round_trips::RoundTrips;

/// Interval between measurements of the same voter.
const EVERY: Duration = Duration::from_secs(2);
/// Connections to voters with longer round trips are opened before they are needed: opening a
/// connection takes several round trips, and a change of leadership should not wait for that.
const FAR: Duration = Duration::from_millis(10);

/// Returns a warning if the election timeouts are too short for the measured round trips to the
/// voters. Round trips to learners do not affect elections. The warning is only a hint, because a
/// measurement may be wrong.
pub fn too_long(replica: &Replica, ways: &RoundTrips) -> Option<String> {
    let voters = replica.voters();
    if !voters.contains(&replica.me) {
        return None;
    }
    let limit = replica.config.raft.round_trip_max_ms();
    let ways = ways.all().into_iter();
    let measured = ways.filter(|(node, _)| voters.contains(node));
    let (node, way) = measured.max_by_key(|(_, way)| way.least)?;
    let took = way.least.as_millis() as u64;
    // Adds a quarter for queueing in the network, and rounds up to tens.
    let set = (took + took / 4).next_multiple_of(10);
    (took > limit).then(|| {
        format!(
            "the round trip to node {node} takes {took} ms, and the election timeouts allow \
            {limit} ms: set raft.round_trip_ms to {set} on all voters"
        )
    })
}

/// Measures round trips and checks the clocks while this node runs.
pub(crate) async fn measure(node: Arc<Running>, tasks: Tasks) {
    let Running { replica, peers, .. } = &*node;
    let (mut has_warned, mut wrong_clock) = (false, None);
    loop {
        sleep(EVERY).await;
        let problem = node.clock_problem();
        match problem {
            Some(problem) if !problem.is_same_problem(wrong_clock) => {
                log!(CLOCK_WRONG, "{problem}")
            }
            None if wrong_clock.is_some() => log!(CLOCKS_AGREE, "clocks agree again"),
            _ => {}
        }
        wrong_clock = problem;
        if !has_warned && let Some(words) = too_long(replica, &peers.round_trips) {
            log!(ROUND_TRIP_LONG, "{words}");
            has_warned = true;
        }
        let (members, voters) = (replica.members(), replica.voters());
        (peers.round_trips).keep(|node| members.contains_key(&node));
        (peers.acknowledgements).keep(|node| members.contains_key(&node));
        for (id, member) in members {
            if id == replica.me {
                continue;
            }
            if !voters.contains(&id) {
                peers.measure_if_connected(id);
                continue;
            }
            let (peers, address) = (peers.clone(), member.peer);
            // Opens the connections that are needed when leadership changes: a voter may become the
            // leader, which sends the log, and any member forwards writes to the new leader.
            let lanes: &[Lane] = if voters.contains(&replica.me) {
                &[Lane::Log, Lane::Forward]
            } else {
                &[Lane::Forward]
            };
            // Runs as a separate task, so that an unreachable node does not delay the others.
            tasks.spawn(async move {
                let Ok(channel) = peers.channel(id, &address, Lane::Control).await else {
                    return;
                };
                channel.ping();
                let way = peers.round_trips.to(id);
                if way.is_some_and(|way| way.least >= FAR) {
                    for lane in lanes {
                        // If this fails, the connection is opened when it is needed.
                        let _ = peers.channel(id, &address, *lane).await;
                    }
                }
            });
        }
    }
}
