//! Asks the members of a cluster how they are, and derives from that whether the cluster is well.

use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, Error, Member, MemberRole, NodeRole, NodeStatus};
use serde::Serialize;

/// A member that does not answer within this is shown as unreachable. Longer than a node takes to
/// find out that it is not ready.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// What one node reports, and what the members that it knows report of themselves.
pub(crate) struct Survey {
    /// The node that answered first.
    pub(crate) asked: NodeStatus,
    /// Each member, and its own status if it answers.
    pub(crate) members: Vec<(Member, Option<NodeStatus>)>,
}

impl Survey {
    /// The members that answer.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &NodeStatus> {
        let answers = self.members.iter();
        answers.filter_map(|(_, status)| status.as_ref())
    }

    /// The answer that knows the members best: that of the leader of the highest term, or of a follower of it.
    pub(crate) fn newest(&self) -> &NodeStatus {
        let knows =
            |status: &&NodeStatus| status.leader.is_some() && status.role != NodeRole::Removed;
        let best = self.answers().filter(knows).max_by_key(|status| {
            let leads = status.leader == Some(status.node_id);
            (status.term, leads, status.last_log)
        });
        best.unwrap_or(&self.asked)
    }
}

/// Asks one node for the membership and then every member for itself.
pub(crate) async fn survey(admin: &Admin, timeout: Duration) -> Result<Survey, Error> {
    let asked = admin.status().await?;
    let members = probe_all(admin, &asked.members, timeout).await;
    let mut survey = Survey { asked, members };
    // The first one may have been away, or removed.
    let newest = survey.newest().members.clone();
    let ids = newest.iter().map(|one| one.id);
    if ids.eq(survey.asked.members.iter().map(|one| one.id)) {
        for ((member, _), newer) in survey.members.iter_mut().zip(newest) {
            *member = newer;
        }
    } else {
        survey.members = probe_all(admin, &newest, timeout).await;
    }
    Ok(survey)
}

async fn probe_all(
    admin: &Admin,
    members: &[Member],
    timeout: Duration,
) -> Vec<(Member, Option<NodeStatus>)> {
    let probe = |member: &Member| {
        let (id, node) = (member.id, admin.of(member, PROBE_LIMIT.min(timeout)));
        tokio::spawn(async move {
            let status = node.ok()?.status().await.ok();
            // Another node at its address does not speak for it.
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

/// How a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    /// All members are ready.
    Healthy,
    /// It answers, but not all members are ready.
    Degraded,
    /// No member is ready: nothing can be written.
    NoQuorum,
}

/// The condition of a cluster, and what makes it so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    pub(crate) condition: Condition,
    /// Members with a vote.
    pub(crate) voters: usize,
    /// Those of them that are ready.
    pub(crate) ready: usize,
    /// How many of the ready voters may be lost before the quorum is.
    pub(crate) can_lose: usize,
    /// Which members are not well, and why.
    pub(crate) problems: Vec<String>,
}

impl Health {
    pub(crate) fn of(survey: &Survey) -> Self {
        let mut problems = Vec::new();
        let (mut voters, mut ready) = (0, 0);
        for (member, status) in &survey.members {
            let is_voter = usize::from(member.role == MemberRole::Voter);
            voters += is_voter;
            let why = match status {
                Some(status) if status.ready => {
                    ready += is_voter;
                    continue;
                }
                Some(NodeStatus { not_ready, .. }) => {
                    format!("is not ready: {}", not_ready.as_deref().unwrap_or_default())
                }
                None => "does not answer".to_owned(),
            };
            problems.push(format!("node {} {why}", member.id));
        }
        let asked = survey.asked.node_id;
        match survey.asked.role {
            NodeRole::Waiting => problems.push(format!("node {asked} belongs to no cluster yet")),
            NodeRole::Removed => {
                problems.push(format!("node {asked} was removed from the cluster"));
            }
            _ => {}
        }
        // A node is ready only if a leader with a quorum has just answered it.
        let condition = match (ready, problems.is_empty()) {
            (0, _) => Condition::NoQuorum,
            (_, true) => Condition::Healthy,
            (_, false) => Condition::Degraded,
        };
        Self {
            condition,
            voters,
            ready,
            can_lose: ready.saturating_sub(voters / 2 + 1),
            problems,
        }
    }

    /// One line, and one for each problem.
    pub(crate) fn text(&self) -> String {
        let (voters, can_lose) = (self.voters, self.can_lose);
        let ready = format!("{} of {voters}", self.ready);
        let mut text = match self.condition {
            Condition::Healthy => format!("healthy: {ready}, can lose {can_lose}"),
            Condition::Degraded => format!("degraded: {ready}, can lose {can_lose}"),
            Condition::NoQuorum if voters == 0 => "no quorum: there is no cluster yet".to_owned(),
            Condition::NoQuorum => format!(
                "no quorum: {ready}, {} needed; nothing can be written",
                voters / 2 + 1
            ),
        };
        for problem in &self.problems {
            text += &format!("\n  {problem}");
        }
        text + "\n"
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.condition {
            Condition::Healthy => ExitCode::SUCCESS,
            Condition::Degraded => ExitCode::from(1),
            Condition::NoQuorum => ExitCode::from(NO_QUORUM),
        }
    }
}

/// The exit code of `status` if there is no quorum, or no answer.
pub(crate) const NO_QUORUM: u8 = 2;
