//! A node's description of itself: name, site and addresses. Each node reports its own, from its
//! configuration; the log replicates it to all nodes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use placement_raft_store::Member;
use tokio::time::sleep;

use super::Bootstrap;
use crate::error::Refused;
use crate::members::membership::MembershipChange;
use crate::running::Running;
use placement_base::log_messages::log;
use placement_peer::raft::messages::Introduction;
use placement_peer::transport::method::Method;

/// How often a node compares its description with the cluster's.
const EVERY: Duration = Duration::from_secs(1);
/// Longest pause between two reports while the cluster has a different description.
const EVERY_MAX: Duration = Duration::from_secs(64);
/// Deadline for a node at an address to identify itself.
const PROBE: Duration = Duration::from_secs(2);
/// Deadline for the answer of a member that is asked because no leader is known: the leader probes
/// two addresses.
const CALL: Duration = Duration::from_secs(15);

/// This node's description, from its configuration.
pub(crate) fn own(bootstrap: &Bootstrap) -> Member {
    let Introduction {
        api, peer, admin, ..
    } = bootstrap.introduction();
    Member {
        api,
        peer,
        admin,
        site: Box::new(bootstrap.config.node.site()),
        // The name was checked when the configuration was read.
        name: Box::new(bootstrap.config.node.name.0.clone()),
    }
}

/// Reports this node's description until the membership has it.
pub async fn report(bootstrap: Arc<Bootstrap>) {
    let own = own(&bootstrap);
    let mut pause = EVERY;
    let mut logged = String::new();
    loop {
        sleep(pause).await;
        let Some(running) = bootstrap.slot.get() else {
            continue;
        };
        let replica = &running.replica;
        let Some(known) = replica.member(replica.me) else {
            continue;
        };
        let name = match own.name.as_str() {
            "" => known.name.clone(),
            _ => own.name.clone(),
        };
        let wanted = Member {
            name,
            ..own.clone()
        };
        if wanted == known {
            pause = EVERY;
            continue;
        }
        pause = (pause * 2).min(EVERY_MAX);
        match describe(&bootstrap, &running, wanted).await {
            Ok(()) => log!(
                DESCRIPTION_ACCEPTED,
                "the cluster has this node's current description"
            ),
            Err(Refused::Unavailable(reason)) => {
                // No leader was reachable: retry without backoff, because an election is short.
                pause = EVERY;
                tracing::debug!(
                    reason,
                    "the cluster does not have this node's current description yet"
                );
            }
            Err(refused) => {
                let refused = refused.to_string();
                if logged != refused {
                    log!(
                        DESCRIPTION_REFUSED,
                        refused,
                        "the cluster rejects this node's description"
                    );
                    logged = refused;
                }
            }
        }
    }
}

async fn describe(bootstrap: &Bootstrap, running: &Running, own: Member) -> Result<(), Refused> {
    let change = MembershipChange::Describe {
        id: running.replica.me,
        member: Box::new(own),
        start: running.unsure_of_start(),
    };
    if running.replica.leader().is_some() {
        match bootstrap.slot.change(change.clone()).await {
            Err(Refused::Unavailable(_)) => {}
            done => return done,
        }
    }
    // A leader that has an outdated address of this node cannot reach it. So this node may not know
    // who leads.
    ask_around(bootstrap, running, &change).await
}

/// Sends the description to every member, at every address that this node knows for it. Returns the
/// answer of the leader.
async fn ask_around(
    bootstrap: &Bootstrap,
    running: &Running,
    change: &MembershipChange,
) -> Result<(), Refused> {
    let me = running.replica.me;
    let members = running.replica.members().into_iter();
    let mut places: Vec<(u64, String)> = members.map(|(id, member)| (id, member.peer)).collect();
    let initial = bootstrap.config.initial_members.iter();
    places.extend(initial.map(|member| (member.id, member.address.clone())));
    let mine = running.replica.identity.cluster;
    let named = bootstrap.config.cluster.join.iter().map(async |address| {
        let asked = (bootstrap.peers).introduce(address, Method::Probe, &(), PROBE);
        let who: Introduction = asked.await.ok()?;
        (who.cluster == Some(mine)).then(|| (who.node, address.clone()))
    });
    places.extend(join_all(named).await.into_iter().flatten());
    places.sort();
    places.dedup();
    let others = places.iter().filter(|(id, _)| *id != me);
    let asked = others
        .map(|(id, address)| (bootstrap.peers).call(*id, address, Method::Admin, change, CALL));
    let mut answers = join_all(asked).await.into_iter().flatten();
    let answer = answers.find(|answer| !matches!(answer, Err(Refused::NotLeader)));
    answer.unwrap_or_else(|| Err(Refused::Unavailable("no leader was found".to_owned())))
}
