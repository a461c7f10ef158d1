//! Asks the members of a cluster how they are.

use std::time::Duration;

use placement_client::{Admin, Error, Member, NodeRole, NodeStatus};

/// A member that does not answer within this is shown as unreachable. Longer than a node takes to
/// find out that it is not ready.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// What one node says, and what the members that it knows say of themselves.
pub(crate) struct Survey {
    /// The node that answered first.
    pub(crate) asked: NodeStatus,
    /// Each member, and its own word if it answers.
    pub(crate) members: Vec<(Member, Option<NodeStatus>)>,
}

/// Asks one node for the membership and then every member for itself.
pub(crate) async fn survey(admin: &Admin, timeout: Duration) -> Result<Survey, Error> {
    let asked = admin.status().await?;
    let mut members = probe_all(admin, &asked.members, timeout).await;
    // The first one may have been away, or removed.
    let newest = newest(&asked, &members).members.clone();
    let ids = |members: &[Member]| members.iter().map(|one| one.id).collect::<Vec<_>>();
    if ids(&newest) == ids(&asked.members) {
        for ((member, _), newer) in members.iter_mut().zip(newest) {
            *member = newer;
        }
    } else {
        members = probe_all(admin, &newest, timeout).await;
    }
    Ok(Survey { asked, members })
}

async fn probe_all(
    admin: &Admin,
    members: &[Member],
    timeout: Duration,
) -> Vec<(Member, Option<NodeStatus>)> {
    let limit = PROBE_LIMIT.min(timeout);
    let probes: Vec<_> = members
        .iter()
        .map(|member| {
            let door = admin.of(member, limit);
            tokio::spawn(async move { door.ok()?.status().await.ok() })
        })
        .collect();
    let mut answers = Vec::new();
    for (member, probe) in members.iter().zip(probes) {
        let answer = probe.await.ok().flatten();
        // Another node at its address does not speak for it.
        answers.push((
            member.clone(),
            answer.filter(|status| status.node_id == member.id),
        ));
    }
    answers
}

/// Of all answers the one that knows the members best: that of the leader of the highest term, or of who
/// follows it.
pub(crate) fn newest<'a>(
    asked: &'a NodeStatus,
    members: &'a [(Member, Option<NodeStatus>)],
) -> &'a NodeStatus {
    members
        .iter()
        .filter_map(|(_, status)| status.as_ref())
        .filter(|status| status.leader.is_some() && status.role != NodeRole::Removed)
        .max_by_key(|status| {
            let leads = status.leader == Some(status.node_id);
            (status.term, leads, status.last_log)
        })
        .unwrap_or(asked)
}
