//! Collects the status of all members of a cluster.

use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, Error, Member, MemberRole, NodeStatus};
use placement_words::{Condition, Health, Survey, nodes};

/// Timeout after which a member counts as unreachable. Longer than a node takes to detect that it
/// is not ready.
const PROBE_LIMIT: Duration = Duration::from_secs(3);
/// Timeout of each request that finds the cause of an error or of a delay.
pub(crate) const DIAGNOSIS_LIMIT: Duration = Duration::from_secs(3);

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

/// Which nodes answer, if there is no quorum. `can_be_local`: whether the command has `--local`.
pub(crate) async fn without_quorum(admin: &Admin, can_be_local: bool) -> Option<String> {
    let admin = admin.without_repetition(DIAGNOSIS_LIMIT);
    let found = survey(&admin, DIAGNOSIS_LIMIT).await.ok()?;
    let health = Health::from_survey(&found);
    if health.condition != Condition::NoQuorum || health.voters == 0 {
        return None;
    }
    let ids = |answers: bool| -> Vec<u64> {
        let members = found.members.iter();
        let chosen = members.filter(|(_, status)| status.is_some() == answers);
        chosen.map(|(member, _)| member.id).collect()
    };
    let say = |ids: &[u64], one: &str, many: &str| match ids.len() {
        1 => format!("{} {one}", nodes(ids)),
        _ => format!("{} {many}", nodes(ids)),
    };
    let (answering, silent) = (ids(true), ids(false));
    let is_up = |(member, status): &&(Member, Option<NodeStatus>)| {
        member.role == MemberRole::Voter && status.is_some()
    };
    // A majority that answers has no leader during an election, or if its nodes cannot reach each
    // other.
    let has_majority = found.members.iter().filter(is_up).count() > health.voters / 2;
    let lost = if has_majority { "leader" } else { "quorum" };
    let mut text = format!("no {lost}: ");
    if !answering.is_empty() {
        text += &say(&answering, "answers", "answer");
    }
    if !silent.is_empty() {
        text += if answering.is_empty() { "" } else { ", " };
        text += &say(&silent, "does not", "do not");
    }
    if can_be_local && let [first, ..] = &answering[..] {
        text += &format!("; `--local` shows the state of node {first}");
    }
    Some(text)
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
