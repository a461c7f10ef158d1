//! `placementctl status`: the status of each member.

use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, Member, NodeStatus};
use placement_words::{Health, Survey, bytes};
use serde::Serialize;
use serde_json::{Value, json};

use crate::render::{Output, Rows, print, word};
use crate::survey::{exit_code, survey};
use crate::topology::site;

/// Members of a node's status that are part of the output.
const REPORTED: &str = "version not_ready term last_log committed applied snapshot last_backup backup_problem \
                        disk_used_bytes disk_free_bytes disk_problem storage_failure digest level_max \
                        round_trip_problem clock_problem certificate_problem";

/// Prints a survey. The exit code shows the health of the cluster.
pub(crate) async fn show(
    admin: &Admin,
    output: &Output,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let survey = survey(admin, timeout).await?;
    let report = ClusterReport::new(&survey)?;
    print(&report.printed(output)?)?;
    Ok(exit_code(&report.health))
}

/// Text output of `status` for a survey.
pub(crate) fn text(survey: &Survey) -> anyhow::Result<String> {
    ClusterReport::new(survey)?.printed(&Output::default())
}

#[derive(Serialize)]
struct ClusterReport {
    cluster_id: Option<String>,
    leader: Option<u64>,
    term: u64,
    /// The feature level of the cluster.
    level: Option<u32>,
    health: Health,
    /// All partitions except the default one.
    partitions: Vec<String>,
    members: Vec<Value>,
    /// Problems that do not affect clients yet; they do not change the exit code.
    warnings: Vec<String>,
}

impl ClusterReport {
    fn new(survey: &Survey) -> serde_json::Result<Self> {
        let newest = survey.newest();
        let leads = |status: &&NodeStatus| Some(status.node_id) == newest.leader;
        let head = survey
            .answers()
            .find(leads)
            .and_then(|leader| leader.last_log);
        let members = survey.members.iter();
        let members = members.map(|(one, answer)| member(one, answer.as_ref(), survey, head));
        Ok(Self {
            cluster_id: newest.cluster_id.clone(),
            leader: newest.leader,
            term: newest.term,
            level: newest.level,
            health: Health::of(survey),
            partitions: newest.partitions.clone(),
            members: members.collect::<Result<_, _>>()?,
            warnings: survey.warnings(true),
        })
    }

    fn printed(&self, output: &Output) -> anyhow::Result<String> {
        output.report(self, Some(self.rows()), |table| self.text(&table))
    }

    /// A row for each member.
    fn rows(&self) -> Rows {
        let items = self.members.iter().map(row);
        let columns = "node:id name site role ready lag version +level:level_max +api +term +last_log \
                       +committed +applied +snapshot +disk_used disk_free";
        Rows::new(columns, items.collect())
    }

    fn text(&self, table: &str) -> String {
        let cluster = self.cluster_id.as_deref().unwrap_or("not formed");
        let leader = self.leader.map(|leader| format!("node {leader}"));
        let leader = leader.as_deref().unwrap_or("none");
        let mut text = format!("cluster {cluster}   leader {leader}   term {}", self.term);
        if let Some(level) = self.level {
            text += &format!("   feature level {level}");
        }
        text += "\n";
        if !self.partitions.is_empty() {
            text += &format!("partitions default, {}\n", self.partitions.join(", "));
        }
        text += "\n";
        if !self.members.is_empty() {
            text += &format!("{table}\n");
        }
        text += &self.health.text();
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        text
    }
}

/// Membership and reported status of a member; null if it does not report a value. `head`: index of
/// the last entry of the leader.
fn member(
    member: &Member,
    answer: Option<&NodeStatus>,
    survey: &Survey,
    head: Option<u64>,
) -> serde_json::Result<Value> {
    let (mut item, status) = (serde_json::to_value(member)?, serde_json::to_value(answer)?);
    for key in REPORTED.split_whitespace() {
        item[key] = status[key].clone();
    }
    item["role"] = match answer {
        Some(status) if survey.is_superseded(status) => json!("superseded"),
        Some(status) => json!(status.role),
        None => json!(member.role),
    };
    let lag = head.zip(answer.and_then(|status| status.applied));
    item["lag"] = json!(lag.map(|(head, applied)| head.saturating_sub(applied)));
    item["ready"] = json!(answer.is_some_and(|status| status.ready));
    item["reachable"] = json!(answer.is_some());
    let trips = answer.map_or(&[][..], |status| &status.round_trips);
    item["round_trips"] = json!(trips);
    Ok(item)
}

/// The row of a member in the table.
fn row(member: &Value) -> Value {
    let mut row = member.clone();
    let mark = match (member["reachable"] == true, &member["storage_failure"]) {
        (false, _) => " (unreachable)",
        (_, Value::Null) => "",
        _ => " (failed)",
    };
    row["role"] = json!(word(&member["role"]) + mark);
    let [region, zone] = ["region", "zone"].map(|key| member[key].as_str().unwrap_or_default());
    row["site"] = json!(site(region, zone));
    for key in ["disk_used", "disk_free"] {
        row[key] = json!(member[format!("{key}_bytes")].as_u64().map(bytes));
    }
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use placement_client::{MemberRole, NodeRole};
    use placement_words::Condition;

    use super::*;

    fn member(id: u64) -> Member {
        Member {
            id,
            name: format!("node-{id}"),
            role: MemberRole::Voter,
            ..Member::default()
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
            level: Some(1),
            level_max: 2,
            version: "1.2.3".to_owned(),
            ready: true,
            makes_backups: true,
            settings: settings(&[]),
            disk_used_bytes: Some(5 << 20),
            disk_free_bytes: Some(3 << 30),
            members: vec![member(1), member(2), member(3)],
            ..NodeStatus::default()
        }
    }

    fn settings(others: &[(&str, &str)]) -> BTreeMap<String, String> {
        let bound = ("cluster_id", "c");
        let all = [bound].into_iter().chain(others.iter().copied());
        all.map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    fn survey(answers: [Option<NodeStatus>; 3]) -> Survey {
        Survey {
            asked: status(2, NodeRole::Follower, 47),
            members: (1..=3).map(member).zip(answers).collect(),
        }
    }

    fn reported(answers: [Option<NodeStatus>; 3]) -> ClusterReport {
        ClusterReport::new(&survey(answers)).unwrap()
    }

    #[test]
    fn the_leader_of_the_last_term_determines_the_members() {
        let mut leader = status(1, NodeRole::Leader, 50);
        leader.members.push(member(4));
        let answers = [
            Some(leader.clone()),
            Some(status(2, NodeRole::Follower, 49)),
            Some(status(3, NodeRole::Follower, 49)),
        ];
        let survey = survey(answers);
        assert_eq!(survey.newest().members, leader.members);

        // Without a leader, the node with the longest log counts.
        let mut ahead = status(2, NodeRole::Follower, 50);
        ahead.members.push(member(4));
        let survey = self::survey([None, Some(ahead.clone()), follower(3)]);
        assert_eq!(survey.newest().members, ahead.members);
    }

    fn leader() -> Option<NodeStatus> {
        Some(status(1, NodeRole::Leader, 50))
    }

    fn follower(id: u64) -> Option<NodeStatus> {
        Some(status(id, NodeRole::Follower, 47))
    }

    fn stuck(id: u64) -> Option<NodeStatus> {
        Some(NodeStatus {
            ready: false,
            not_ready: Some("no leader is known".to_owned()),
            leader: None,
            ..status(id, NodeRole::Follower, 47)
        })
    }

    #[test]
    fn an_unreachable_member_is_shown_and_lag_is_relative_to_the_leader() {
        let report = reported([leader(), follower(2), None]);
        assert_eq!(report.leader, Some(1));
        assert_eq!(report.members[1]["lag"], 3);
        assert_eq!(report.members[2]["lag"], Value::Null);
        let text = report.printed(&Output::default()).unwrap();
        assert!(text.contains("voter (unreachable)"), "{text}");
        assert!(text.contains("feature level 1\n"), "{text}");
        assert!(text.contains("1.2.3    3.0 GiB"), "{text}");
        let width = text.lines().map(str::len).max();
        assert!(width <= Some(80), "{text}");
    }

    #[test]
    fn backup_problems_are_warnings() {
        let mut answers = [leader(), follower(2), follower(3)];
        if let Some(status) = &mut answers[1] {
            status.backup_problem = Some("no backup is made: full".to_owned());
        }
        let report = reported(answers);
        assert_eq!(report.health.condition, Condition::Healthy);
        let text = report.printed(&Output::default()).unwrap();
        assert!(
            text.ends_with("can lose 1\nwarning: backups of node 2: no backup is made: full\n"),
            "{text}"
        );
    }

    #[test]
    fn a_leader_of_an_earlier_term_is_superseded() {
        let mut hung = status(1, NodeRole::Leader, 50);
        let mut leads = status(2, NodeRole::Leader, 51);
        let mut follows = status(3, NodeRole::Follower, 51);
        hung.ready = false;
        for newer in [&mut leads, &mut follows] {
            (newer.term, newer.leader) = (4, Some(2));
        }
        let report = reported([Some(hung), Some(leads), Some(follows)]);
        let roles: Vec<_> = report.members.iter().map(|one| &one["role"]).collect();
        assert_eq!(report.leader, Some(2));
        assert_eq!(roles, ["superseded", "leader", "follower"]);
        let text = report.printed(&Output::default()).unwrap();
        let warning =
            "warning: node 1 believes that it leads in term 3, but node 2 leads in term 4";
        assert!(text.contains(warning), "{text}");
    }

    #[test]
    fn settings_that_differ_between_nodes_are_named() {
        let mut answers = [leader(), follower(2), follower(3)];
        let of = |user_in_flight, listens: bool| {
            let listen = ("partitions.north.listen", "port 9000");
            let all = [("callers.user_in_flight", user_in_flight), listen];
            settings(&all[..1 + usize::from(listens)])
        };
        for (answer, (bytes, listens)) in
            answers
                .iter_mut()
                .zip([("5", true), ("7", true), ("5", false)])
        {
            if let Some(status) = answer {
                status.settings = of(bytes, listens);
            }
        }
        let report = reported(answers);
        assert_eq!(report.health.condition, Condition::Healthy);
        assert_eq!(
            report.warnings,
            [
                "callers.user_in_flight must be the same on all nodes, and is 5 on nodes 1 and 3 and 7 on node 2",
                "partitions.north.listen must be the same on all nodes, and is not set on node 3 and port 9000 on \
                 nodes 1 and 2",
            ]
        );
        // A node of an earlier version does not report its settings.
        let mut answers = [leader(), follower(2), follower(3)];
        if let Some(status) = &mut answers[2] {
            status.settings.clear();
        }
        assert_eq!(reported(answers).warnings, [""; 0]);
    }

    #[test]
    fn missing_backups_and_unbound_nodes_are_warnings() {
        let unsafe_ones = || {
            [leader(), follower(2), follower(3)].map(|answer| {
                answer.map(|status| NodeStatus {
                    makes_backups: false,
                    settings: [("policy".to_owned(), "rules 1".to_owned())].into(),
                    ..status
                })
            })
        };
        let report = reported(unsafe_ones());
        let [backups, bound] = &report.warnings[..] else {
            panic!("{:?}", report.warnings);
        };
        assert!(backups.contains("no node makes backups"), "{backups}");
        assert_eq!(
            bound,
            "nodes 1, 2 and 3 have no cluster_id: with an empty data directory they would form a new, empty cluster. \
             Set cluster_id = \"c\""
        );
        // The unreachable node may be the one that makes backups.
        let [first, second, _] = unsafe_ones();
        let report = reported([first, second, None]);
        let backups = "no node that answers makes backups: ";
        assert!(
            report.warnings[0].starts_with(backups),
            "{:?}",
            report.warnings
        );
        assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
        let report = reported([None, None, None]);
        assert_eq!(report.warnings, [""; 0]);
    }

    #[test]
    fn a_member_with_a_nearly_full_disk_is_a_degradation() {
        let mut answers = [leader(), follower(2), follower(3)];
        if let Some(status) = &mut answers[2] {
            status.disk_problem = Some("the disk is nearly full".to_owned());
        }
        let health = Health::of(&survey(answers));
        assert_eq!(
            health.text(),
            "degraded: 3 of 3, can lose 1\n  node 3 refuses additions: the disk is nearly full\n"
        );
    }

    #[test]
    fn the_newest_member_reports_why_a_member_is_unreachable() {
        let mut survey = survey([leader(), follower(2), None]);
        survey.members[2].0.unreachable = Some("its certificate has expired".to_owned());
        let text = Health::of(&survey).text();
        let reason = "\n  node 3 does not answer: its certificate has expired\n";
        assert!(text.ends_with(reason), "{text}");
    }

    #[test]
    fn a_node_of_another_cluster_does_not_count() {
        let mut answers = [leader(), follower(2), follower(3)];
        if let Some(status) = &mut answers[2] {
            status.cluster_id = Some("d".to_owned());
        }
        assert_eq!(
            Health::of(&survey(answers)).text(),
            "degraded: 2 of 3, can lose 0\n  node 3 belongs to another cluster, d\n"
        );
    }

    #[test]
    fn a_replaced_learner_does_not_degrade_the_cluster() {
        let mut survey = survey([leader(), follower(2), None]);
        let mut successor = member(4);
        successor.name = "node-4".to_owned();
        let ready = status(4, NodeRole::Follower, 47);
        survey.members.push((successor, Some(ready)));
        let lost = &mut survey.members[2].0;
        lost.replaced_by = Some(4);
        let condition = Health::of(&survey).condition;
        assert_eq!(condition, Condition::Degraded, "it has its vote");
        survey.members[2].0.role = MemberRole::Learner;
        survey.members[3].0.role = MemberRole::Learner;
        let condition = Health::of(&survey).condition;
        assert_eq!(condition, Condition::Degraded, "no node has its vote");
        survey.members[3].0.role = MemberRole::Voter;
        let text = Health::of(&survey).text();
        assert_eq!(text, "healthy: 3 of 3, can lose 1\n");
    }

    #[test]
    fn health_counts_the_members_that_may_be_lost() {
        for (answers, condition, words) in [
            (
                [leader(), follower(2), follower(3)],
                Condition::Healthy,
                "healthy: 3 of 3, can lose 1\n",
            ),
            (
                [leader(), follower(2), None],
                Condition::Degraded,
                "degraded: 2 of 3, can lose 0\n  node 3 does not answer\n",
            ),
            (
                // The leader is ready, so it has a quorum, although this machine reaches no other
                // node.
                [leader(), None, None],
                Condition::Degraded,
                "degraded: 1 of 3, can lose 0\n  node 2 does",
            ),
            (
                [None, stuck(2), None],
                Condition::NoQuorum,
                "no quorum: 0 of 3, 2 needed; nothing can be written\n  node 1 does not answer\n  \
                 node 2 is not ready: no leader is known\n",
            ),
        ] {
            let health = Health::of(&survey(answers));
            assert_eq!(health.condition, condition);
            assert!(health.text().starts_with(words), "{}", health.text());
        }
    }
}
