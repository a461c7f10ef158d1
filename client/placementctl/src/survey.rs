//! Collects the status of all members of a cluster.

use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, Error, Member, NodeStatus};
use placement_words::{Condition, Health, Survey};

/// Timeout after which a member counts as unreachable. Longer than a node takes to detect that it
/// is not ready.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// Asks one node for the membership, and then each member for its status.
pub(crate) async fn survey(admin: &Admin, timeout: Duration) -> Result<Survey, Error> {
    let asked = admin.status().await?;
    let members = probe_all(admin, &asked.members, timeout).await;
    let survey = Survey::new(asked, members);
    // The membership of the first node may be out of date.
    let newest = survey.newest().members.clone();
    let is_known = |id: u64| survey.members.iter().any(|(member, _)| member.id == id);
    if newest.len() == survey.members.len() && newest.iter().all(|member| is_known(member.id)) {
        return Ok(survey);
    }
    let members = probe_all(admin, &newest, timeout).await;
    Ok(Survey::new(survey.asked, members))
}

async fn probe_all(
    admin: &Admin,
    members: &[Member],
    timeout: Duration,
) -> Vec<(Member, Option<NodeStatus>)> {
    let probe = |member: &Member| {
        let id = member.id;
        let node = admin.for_member(member, PROBE_LIMIT.min(timeout));
        tokio::spawn(async move {
            let status = node.ok()?.status().await.ok();
            // A different node at this address does not count.
            status.filter(|status| status.node_id == id)
        })
    };
    let probes: Vec<_> = members.iter().map(probe).collect();
    let mut answers = Vec::new();
    for (member, probe) in members.iter().zip(probes) {
        answers.push((member.clone(), probe.await.ok().flatten()));
    }
    answers
}

/// Exit code of `status`.
pub(crate) fn exit_code(health: &Health) -> ExitCode {
    match health.condition {
        Condition::Healthy => ExitCode::SUCCESS,
        Condition::Degraded => ExitCode::from(1),
        Condition::NoQuorum => ExitCode::from(NO_QUORUM),
    }
}

/// Exit code of `status` without a quorum or a response.
pub(crate) const NO_QUORUM: u8 = 2;
