//! `placementctl status`: what each member says of itself.

use std::time::Duration;

use placement_client::{Admin, Client, Member, MemberRole, NodeStatus};
use serde::Serialize;

use crate::Output;

/// A member that does not answer within this is shown as unreachable.
const PROBE_LIMIT: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct ClusterReport {
    cluster_id: Option<String>,
    leader: Option<u64>,
    term: u64,
    members: Vec<MemberReport>,
}

#[derive(Serialize)]
struct MemberReport {
    id: u64,
    role: String,
    api: String,
    admin: String,
    reachable: bool,
    term: Option<u64>,
    last_log: Option<u64>,
    committed: Option<u64>,
    applied: Option<u64>,
    snapshot: Option<u64>,
    /// Entries that the leader has and this node has not applied.
    lag: Option<u64>,
    storage_failure: Option<String>,
    digest: Option<String>,
}

/// Asks one node for the membership and then every member for itself.
pub(crate) async fn show(admin: &Admin, output: Output, timeout: Duration) -> anyhow::Result<()> {
    let first = admin.status().await?;
    let mut probes = Vec::new();
    for member in &first.members {
        let door = member.admin.clone();
        let limit = PROBE_LIMIT.min(timeout);
        probes.push(tokio::spawn(async move { probe(&door, limit).await }));
    }
    let mut answers = Vec::new();
    for probe in probes {
        answers.push(probe.await?);
    }
    let report = ClusterReport::new(&first, &answers);
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Output::Table => print!("{}", report.table()),
    }
    Ok(())
}

async fn probe(door: &str, limit: Duration) -> Option<NodeStatus> {
    let client = Client::new([door])
        .ok()?
        .with_patience(Duration::ZERO)
        .with_attempt_timeout(limit);
    Admin::new(client).status().await.ok()
}

impl ClusterReport {
    fn new(first: &NodeStatus, answers: &[Option<NodeStatus>]) -> Self {
        // Of all answers the one with the highest term knows the leader best.
        let newest = answers
            .iter()
            .flatten()
            .filter(|status| status.leader.is_some())
            .max_by_key(|status| status.term)
            .unwrap_or(first);
        let head = answers
            .iter()
            .flatten()
            .find(|status| Some(status.node_id) == newest.leader)
            .and_then(|status| status.last_log);
        let members = first
            .members
            .iter()
            .zip(answers)
            .map(|(member, answer)| MemberReport::new(member, answer.as_ref(), head))
            .collect();
        Self {
            cluster_id: first.cluster_id.clone(),
            leader: newest.leader,
            term: newest.term,
            members,
        }
    }

    fn table(&self) -> String {
        let header = [
            "NODE",
            "ROLE",
            "API",
            "TERM",
            "LAST LOG",
            "COMMITTED",
            "APPLIED",
            "SNAPSHOT",
            "LAG",
        ];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(self.members.iter().map(MemberReport::row));
        let leader = self
            .leader
            .map_or("none".to_owned(), |leader| format!("node {leader}"));
        let cluster = self.cluster_id.as_deref().unwrap_or("not formed");
        format!(
            "cluster {cluster}   leader {leader}   term {}\n\n{}",
            self.term,
            align(&rows)
        )
    }
}

impl MemberReport {
    fn new(member: &Member, answer: Option<&NodeStatus>, head: Option<u64>) -> Self {
        let applied = answer.and_then(|status| status.applied);
        let membership = match member.role {
            MemberRole::Voter => "voter",
            MemberRole::Learner => "learner",
        };
        let role = answer.map_or(membership.to_owned(), |status| {
            format!("{:?}", status.role).to_lowercase()
        });
        Self {
            id: member.id,
            role,
            api: member.api.clone(),
            admin: member.admin.clone(),
            reachable: answer.is_some(),
            term: answer.map(|status| status.term),
            last_log: answer.and_then(|status| status.last_log),
            committed: answer.and_then(|status| status.committed),
            applied,
            snapshot: answer.and_then(|status| status.snapshot),
            lag: head
                .zip(applied)
                .map(|(head, applied)| head.saturating_sub(applied)),
            storage_failure: answer.and_then(|status| status.storage_failure.clone()),
            digest: answer.and_then(|status| status.digest.clone()),
        }
    }

    fn row(&self) -> [String; 9] {
        let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        let role = match (self.reachable, &self.storage_failure) {
            (false, _) => format!("{} (unreachable)", self.role),
            (true, Some(_)) => format!("{} (disk failed)", self.role),
            (true, None) => self.role.clone(),
        };
        [
            self.id.to_string(),
            role,
            self.api.clone(),
            number(self.term),
            number(self.last_log),
            number(self.committed),
            number(self.applied),
            number(self.snapshot),
            number(self.lag),
        ]
    }
}

fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let line: Vec<_> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_client::NodeRole;

    fn member(id: u64) -> Member {
        Member {
            id,
            role: MemberRole::Voter,
            rpc: format!("127.0.0.1:{}", 9000 + id),
            api: format!("127.0.0.1:{}", 8000 + id),
            admin: format!("127.0.0.1:{}", 7000 + id),
            matched: None,
        }
    }

    fn status(id: u64, role: NodeRole, applied: u64) -> NodeStatus {
        NodeStatus {
            node_id: id,
            cluster_id: Some("c".to_owned()),
            role,
            term: 3,
            leader: Some(1),
            last_log: Some(applied),
            committed: Some(applied),
            applied: Some(applied),
            snapshot: None,
            purged: None,
            storage_failure: None,
            digest: None,
            members: vec![member(1), member(2), member(3)],
        }
    }

    #[test]
    fn a_dead_member_is_shown_and_lag_is_counted_from_the_leader() {
        let leader = status(1, NodeRole::Leader, 50);
        let follower = status(2, NodeRole::Follower, 47);
        let report = ClusterReport::new(&follower, &[Some(leader), Some(follower.clone()), None]);
        assert_eq!(report.leader, Some(1));
        assert_eq!(report.members[1].lag, Some(3));
        assert_eq!(report.members[2].lag, None);
        let table = report.table();
        assert!(table.contains("voter (unreachable)"), "{table}");
    }
}
