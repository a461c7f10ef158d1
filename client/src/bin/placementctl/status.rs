//! `placementctl status`: what each member says of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, Error, MeasuredRoundTrip, Member, MemberRole, NodeRole, NodeStatus};
use serde::Serialize;

use crate::Output;
use crate::health::{Health, NO_QUORUM};
use crate::survey::{Survey, newest, survey};
use crate::table::{align, site};

/// Shows a survey. The exit code tells how the cluster is.
pub(crate) async fn show(
    admin: &Admin,
    output: Output,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let survey = match survey(admin, timeout).await {
        Ok(survey) => survey,
        Err(error @ (Error::Unreachable { .. } | Error::NothingCommitted { .. })) => {
            eprintln!("placementctl: {error}");
            return Ok(ExitCode::from(NO_QUORUM));
        }
        Err(error) => return Err(error.into()),
    };
    let report = ClusterReport::new(&survey);
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Output::Table => print!("{}", report.text()),
    }
    Ok(report.health.exit_code())
}

#[derive(Serialize)]
struct ClusterReport {
    cluster_id: Option<String>,
    leader: Option<u64>,
    term: u64,
    /// The feature level of the cluster.
    level: Option<u32>,
    health: Health,
    /// The partitions beside the default one.
    partitions: Vec<String>,
    members: Vec<MemberReport>,
    /// What an operator is to look at although clients are served; the exit code does not follow it.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct MemberReport {
    id: u64,
    name: String,
    role: String,
    peer: String,
    api: String,
    admin: String,
    region: String,
    zone: String,
    reachable: bool,
    version: Option<String>,
    ready: bool,
    /// Why it is not ready, if it says so.
    not_ready: Option<String>,
    term: Option<u64>,
    last_log: Option<u64>,
    committed: Option<u64>,
    applied: Option<u64>,
    snapshot: Option<u64>,
    /// Entries that the leader has and this node has not applied.
    lag: Option<u64>,
    last_backup: Option<u64>,
    /// What is wrong with the backups that it makes by itself.
    backup_problem: Option<String>,
    disk_used_bytes: Option<u64>,
    disk_free_bytes: Option<u64>,
    storage_failure: Option<String>,
    digest: Option<String>,
    /// The highest feature level to which it agrees.
    level_max: Option<u32>,
    /// The ways to the others, as it has measured them.
    round_trips: Vec<MeasuredRoundTrip>,
    /// Why the times of elections do not fit them.
    round_trip_problem: Option<String>,
    /// How far its wall clock is ahead, if it is too far.
    clock_problem: Option<String>,
}

impl ClusterReport {
    fn new(survey: &Survey) -> Self {
        let newest = newest(&survey.asked, &survey.members);
        let head = survey
            .members
            .iter()
            .filter_map(|(_, status)| status.as_ref())
            .find(|status| Some(status.node_id) == newest.leader)
            .and_then(|status| status.last_log);
        let members = survey
            .members
            .iter()
            .map(|(member, answer)| MemberReport::new(member, answer.as_ref(), newest, head))
            .collect();
        Self {
            cluster_id: newest.cluster_id.clone(),
            leader: newest.leader,
            term: newest.term,
            level: newest.level,
            health: Health::of(survey),
            partitions: newest.partitions.clone(),
            members,
            warnings: warnings(survey, newest),
        }
    }

    fn text(&self) -> String {
        let leader = self
            .leader
            .map_or("none".to_owned(), |leader| format!("node {leader}"));
        let cluster = self.cluster_id.as_deref().unwrap_or("not formed");
        let level = self
            .level
            .map_or(String::new(), |level| format!("   feature level {level}"));
        let partitions = match self.partitions.is_empty() {
            true => String::new(),
            false => format!("partitions default, {}\n", self.partitions.join(", ")),
        };
        let head = format!(
            "cluster {cluster}   leader {leader}   term {}{level}\n{partitions}",
            self.term
        );
        let mut rows = vec![MemberReport::HEADER.map(str::to_owned)];
        rows.extend(self.members.iter().map(MemberReport::row));
        let table = match self.members.is_empty() {
            true => String::new(),
            false => align(&rows) + "\n",
        };
        let warnings = self
            .warnings
            .iter()
            .map(|words| format!("warning: {words}\n"));
        let warnings: String = warnings.collect();
        format!("{head}\n{table}{}{warnings}", self.health.words())
    }
}

/// What is not as it should be although clients are served.
fn warnings(survey: &Survey, newest: &NodeStatus) -> Vec<String> {
    let answers: Vec<&NodeStatus> = (survey.members.iter())
        .filter_map(|(_, status)| status.as_ref())
        .collect();
    let mut warnings = Vec::new();
    for status in &answers {
        let id = status.node_id;
        if is_superseded(status, newest) {
            let leader = newest
                .leader
                .map_or("another node".to_owned(), |id| format!("node {id}"));
            warnings.push(format!(
                "node {id} takes itself for the leader of term {}, but {leader} leads in term {}: its disk or its \
                 network hangs",
                status.term, newest.term
            ));
        }
        if let Some(words) = &status.backup_problem {
            warnings.push(format!("backups of node {id}: {words}"));
        }
        for words in [
            &status.round_trip_problem,
            &status.routing_problem,
            &status.clock_problem,
        ] {
            warnings.extend(words.iter().map(|words| format!("node {id}: {words}")));
        }
    }
    warnings.extend(differences(&answers));
    let all_say = |of: fn(&NodeStatus) -> bool| {
        !answers.is_empty()
            && answers.len() == survey.members.len()
            && answers.iter().all(|one| of(one))
    };
    if all_say(|status| !status.makes_backups) {
        warnings.push(
            "no node makes backups: set [backup] directory on one node at least, or take them with `placementctl \
             backup`"
                .to_owned(),
        );
    }
    let is_unbound = |status: &&&NodeStatus| {
        !status.settings.is_empty() && !status.settings.contains_key("cluster_id")
    };
    let unbound: Vec<u64> = answers
        .iter()
        .filter(is_unbound)
        .map(|status| status.node_id)
        .collect();
    if let (false, Some(cluster)) = (unbound.is_empty(), &newest.cluster_id) {
        warnings.push(format!(
            "{} could form another cluster if its data directory were empty: set cluster_id = {cluster:?}",
            nodes(&unbound)
        ));
    }
    warnings
}

/// The settings in which nodes differ that are to be the same on all of them.
fn differences(answers: &[&NodeStatus]) -> Vec<String> {
    let said = || answers.iter().filter(|status| !status.settings.is_empty());
    let keys: BTreeSet<&String> = said().flat_map(|status| status.settings.keys()).collect();
    let mut differences = Vec::new();
    for key in keys {
        // Such a table may be missing as a whole. Other settings are not said where they are of no use.
        let is_of_partition = key.starts_with("partitions.");
        let mut values: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for status in said() {
            let value = status.settings.get(key).map(String::as_str);
            if let Some(value) = value.or(is_of_partition.then_some("not set")) {
                values.entry(value).or_default().push(status.node_id);
            }
        }
        if values.len() > 1 {
            let values = values
                .iter()
                .map(|(value, ids)| format!("{value} on {}", nodes(ids)));
            let values: Vec<_> = values.collect();
            differences.push(format!(
                "{key} is to be the same on all nodes, and is {}",
                values.join(", ")
            ));
        }
    }
    differences
}

fn nodes(ids: &[u64]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    format!("node {}", ids.join(", "))
}

/// Whether a node that takes itself for the leader does not lead: another one does in a later term.
fn is_superseded(status: &NodeStatus, newest: &NodeStatus) -> bool {
    status.role == NodeRole::Leader
        && newest.term > status.term
        && newest.leader != Some(status.node_id)
}

impl MemberReport {
    const HEADER: [&str; 16] = [
        "NODE",
        "NAME",
        "SITE",
        "ROLE",
        "READY",
        "VERSION",
        "LEVEL",
        "API",
        "TERM",
        "LAST LOG",
        "COMMITTED",
        "APPLIED",
        "SNAPSHOT",
        "LAG",
        "DISK USED",
        "DISK FREE",
    ];

    fn new(
        member: &Member,
        answer: Option<&NodeStatus>,
        newest: &NodeStatus,
        head: Option<u64>,
    ) -> Self {
        let applied = answer.and_then(|status| status.applied);
        let membership = match member.role {
            MemberRole::Voter => "voter",
            MemberRole::Learner => "learner",
        };
        let role = match answer {
            None => membership.to_owned(),
            Some(status) if is_superseded(status, newest) => "superseded".to_owned(),
            Some(status) => format!("{:?}", status.role).to_lowercase(),
        };
        Self {
            id: member.id,
            name: member.name.clone(),
            role,
            peer: member.peer.clone(),
            api: member.api.clone(),
            admin: member.admin.clone(),
            region: member.region.clone(),
            zone: member.zone.clone(),
            reachable: answer.is_some(),
            version: answer.map(|status| status.version.clone()),
            ready: answer.is_some_and(|status| status.ready),
            not_ready: answer.and_then(|status| status.not_ready.clone()),
            term: answer.map(|status| status.term),
            last_log: answer.and_then(|status| status.last_log),
            committed: answer.and_then(|status| status.committed),
            applied,
            snapshot: answer.and_then(|status| status.snapshot),
            lag: head
                .zip(applied)
                .map(|(head, applied)| head.saturating_sub(applied)),
            last_backup: answer.and_then(|status| status.last_backup),
            backup_problem: answer.and_then(|status| status.backup_problem.clone()),
            disk_used_bytes: answer.and_then(|status| status.disk_used_bytes),
            disk_free_bytes: answer.and_then(|status| status.disk_free_bytes),
            storage_failure: answer.and_then(|status| status.storage_failure.clone()),
            digest: answer.and_then(|status| status.digest.clone()),
            level_max: answer.map(|status| status.level_max),
            round_trip_problem: answer.and_then(|status| status.round_trip_problem.clone()),
            clock_problem: answer.and_then(|status| status.clock_problem.clone()),
            round_trips: answer.map_or_else(Vec::new, |status| status.round_trips.clone()),
        }
    }

    fn row(&self) -> [String; 16] {
        let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        let room = |value: Option<u64>| value.map_or("-".to_owned(), bytes);
        let role = match (self.reachable, &self.storage_failure) {
            (false, _) => format!("{} (unreachable)", self.role),
            (true, Some(_)) => format!("{} (failed)", self.role),
            (true, None) => self.role.clone(),
        };
        let ready = match self.ready {
            true => "yes",
            false => "no",
        };
        [
            self.id.to_string(),
            match self.name.as_str() {
                "" => "-".to_owned(),
                name => name.to_owned(),
            },
            site(&self.region, &self.zone),
            role,
            ready.to_owned(),
            self.version.clone().unwrap_or("-".to_owned()),
            number(self.level_max.map(u64::from)),
            self.api.clone(),
            number(self.term),
            number(self.last_log),
            number(self.committed),
            number(self.applied),
            number(self.snapshot),
            number(self.lag),
            room(self.disk_used_bytes),
            room(self.disk_free_bytes),
        ]
    }
}

/// A number of bytes with the largest unit that leaves something before the point.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use placement_client::NodeRole;

    use super::*;
    use crate::health::Condition;

    fn member(id: u64) -> Member {
        Member {
            id,
            name: format!("node-{id}"),
            role: MemberRole::Voter,
            peer: format!("127.0.0.1:{}", 9000 + id),
            api: format!("127.0.0.1:{}", 8000 + id),
            admin: format!("127.0.0.1:{}", 7000 + id),
            region: String::new(),
            zone: String::new(),
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
            level: Some(1),
            level_max: 2,
            partitions: Vec::new(),
            version: "1.2.3".to_owned(),
            ready: true,
            not_ready: None,
            last_backup: None,
            makes_backups: true,
            backup_problem: None,
            settings: settings(&[]),
            routing_problem: None,
            disk_used_bytes: Some(5 << 20),
            disk_free_bytes: Some(3 << 30),
            members: vec![member(1), member(2), member(3)],
            round_trips: Vec::new(),
            round_trip_problem: None,
            clock_problem: None,
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

    #[test]
    fn of_those_in_one_term_the_leader_knows_the_members_best() {
        let mut leader = status(1, NodeRole::Leader, 50);
        leader.members.push(member(4));
        let answers = [
            Some(leader.clone()),
            Some(status(2, NodeRole::Follower, 49)),
            Some(status(3, NodeRole::Follower, 49)),
        ];
        let survey = survey(answers);
        let known = newest(&survey.asked, &survey.members);
        assert_eq!(known.members, leader.members);

        // Without its word the longest log counts.
        let mut ahead = status(2, NodeRole::Follower, 50);
        ahead.members.push(member(4));
        let survey = self::survey([None, Some(ahead.clone()), follower(3)]);
        let known = newest(&survey.asked, &survey.members);
        assert_eq!(known.members, ahead.members);
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
    fn a_dead_member_is_shown_and_lag_is_counted_from_the_leader() {
        let report = ClusterReport::new(&survey([leader(), follower(2), None]));
        assert_eq!(report.leader, Some(1));
        assert_eq!(report.members[1].lag, Some(3));
        assert_eq!(report.members[2].lag, None);
        let text = report.text();
        assert!(text.contains("voter (unreachable)"), "{text}");
        assert!(text.contains("feature level 1\n"), "{text}");
        assert!(text.contains("1.2.3    2  "), "{text}");
        assert!(text.contains("5.0 MiB    3.0 GiB"), "{text}");
    }

    #[test]
    fn trouble_with_backups_is_a_warning() {
        let mut answers = [leader(), follower(2), follower(3)];
        if let Some(status) = &mut answers[1] {
            status.backup_problem = Some("no backup is made: full".to_owned());
        }
        let report = ClusterReport::new(&survey(answers));
        assert_eq!(report.health.condition, Condition::Healthy);
        let text = report.text();
        assert!(
            text.ends_with("can lose 1\nwarning: backups of node 2: no backup is made: full\n"),
            "{text}"
        );
    }

    #[test]
    fn of_two_leaders_the_one_of_the_later_term_leads() {
        let mut hung = status(1, NodeRole::Leader, 50);
        let mut leads = status(2, NodeRole::Leader, 51);
        let mut follows = status(3, NodeRole::Follower, 51);
        hung.ready = false;
        for newer in [&mut leads, &mut follows] {
            (newer.term, newer.leader) = (4, Some(2));
        }
        let report = ClusterReport::new(&survey([Some(hung), Some(leads), Some(follows)]));
        let roles: Vec<_> = report.members.iter().map(|one| one.role.as_str()).collect();
        assert_eq!(report.leader, Some(2));
        assert_eq!(roles, ["superseded", "leader", "follower"]);
        let text = report.text();
        let warning =
            "warning: node 1 takes itself for the leader of term 3, but node 2 leads in term 4";
        assert!(text.contains(warning), "{text}");
    }

    #[test]
    fn settings_that_differ_between_nodes_are_named() {
        let mut answers = [leader(), follower(2), follower(3)];
        let of = |user_per_s, listens: bool| {
            let listen = ("partitions.north.listen", "port 9000");
            let all = [("callers.user_per_s", user_per_s), listen];
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
        let report = ClusterReport::new(&survey(answers));
        assert_eq!(report.health.condition, Condition::Healthy);
        assert_eq!(
            report.warnings,
            [
                "callers.user_per_s is to be the same on all nodes, and is 5 on node 1, 3, 7 on node 2",
                "partitions.north.listen is to be the same on all nodes, and is not set on node 3, port 9000 on \
                 node 1, 2",
            ]
        );
        // A node of an earlier version says nothing of its settings.
        let mut answers = [leader(), follower(2), follower(3)];
        if let Some(status) = &mut answers[2] {
            status.settings.clear();
        }
        assert_eq!(ClusterReport::new(&survey(answers)).warnings, [""; 0]);
    }

    #[test]
    fn a_cluster_without_backups_and_nodes_that_are_not_bound_are_warned_of() {
        let unsafe_ones = || {
            [leader(), follower(2), follower(3)].map(|answer| {
                answer.map(|status| NodeStatus {
                    makes_backups: false,
                    settings: [("policy".to_owned(), "rules 1".to_owned())].into(),
                    ..status
                })
            })
        };
        let report = ClusterReport::new(&survey(unsafe_ones()));
        let [backups, bound] = &report.warnings[..] else {
            panic!("{:?}", report.warnings);
        };
        assert!(backups.contains("no node makes backups"), "{backups}");
        assert!(
            bound.contains("node 1, 2, 3") && bound.contains("cluster_id = \"c\""),
            "{bound}"
        );
        // The node that does not answer may be the one that makes them.
        let [first, second, _] = unsafe_ones();
        let report = ClusterReport::new(&survey([first, second, None]));
        assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
    }

    #[test]
    fn the_last_line_says_how_many_more_may_be_lost() {
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
                // The leader is ready, so it has a quorum, although this machine does not reach it.
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
            assert!(health.words().starts_with(words), "{}", health.words());
        }
    }
}
