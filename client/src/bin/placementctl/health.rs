//! Whether a cluster is well, in one line and one exit code.

use std::process::ExitCode;

use placement_client::{MemberRole, NodeRole};
use serde::Serialize;

use crate::survey::Survey;

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
    /// Who is not well, and why.
    pub(crate) problems: Vec<String>,
}

impl Health {
    pub(crate) fn of(survey: &Survey) -> Self {
        let mut problems = Vec::new();
        let (mut voters, mut ready) = (0, 0);
        for (member, status) in &survey.members {
            let is_ready = status.as_ref().is_some_and(|status| status.ready);
            if member.role == MemberRole::Voter {
                voters += 1;
                ready += usize::from(is_ready);
            }
            if is_ready {
                continue;
            }
            let why = match status {
                None => "does not answer".to_owned(),
                Some(status) => {
                    let reason = status.not_ready.clone();
                    format!("is not ready: {}", reason.unwrap_or_default())
                }
            };
            problems.push(format!("node {} {why}", member.id));
        }
        match survey.asked.role {
            NodeRole::Waiting => problems.push(format!(
                "node {} belongs to no cluster yet",
                survey.asked.node_id
            )),
            NodeRole::Removed => problems.push(format!(
                "node {} was removed from the cluster",
                survey.asked.node_id
            )),
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
    pub(crate) fn words(&self) -> String {
        let Self {
            voters,
            ready,
            can_lose,
            ..
        } = self;
        let mut text = match self.condition {
            Condition::Healthy => format!("healthy: {ready} of {voters}, can lose {can_lose}"),
            Condition::Degraded => format!("degraded: {ready} of {voters}, can lose {can_lose}"),
            Condition::NoQuorum if *voters == 0 => "no quorum: there is no cluster yet".to_owned(),
            Condition::NoQuorum => format!(
                "no quorum: {ready} of {voters}, {} needed; nothing can be written",
                voters / 2 + 1
            ),
        };
        for problem in &self.problems {
            text.push_str("\n  ");
            text.push_str(problem);
        }
        text.push('\n');
        text
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
