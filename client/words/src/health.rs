//! How a cluster is, by what its members report: the condition, and what an operator has to look
//! at.

use std::collections::{BTreeMap, BTreeSet};

use placement_wire::{Member, MemberRole, NodeRole, NodeStatus};
use serde::Serialize;

/// What one node reports, and what the members that it knows report of themselves.
pub struct Survey {
    /// The node that answered first.
    pub asked: NodeStatus,
    /// Each member, and its own status if it answers.
    pub members: Vec<(Member, Option<NodeStatus>)>,
}

impl Survey {
    /// What the newest of these answers has of each member counts.
    pub fn new(asked: NodeStatus, members: Vec<(Member, Option<NodeStatus>)>) -> Self {
        let mut survey = Self { asked, members };
        let newest = survey.newest().members.clone();
        for (member, _) in &mut survey.members {
            if let Some(newer) = newest.iter().find(|newer| newer.id == member.id) {
                member.clone_from(newer);
            }
        }
        survey
    }

    /// The members that answer.
    pub fn answers(&self) -> impl Iterator<Item = &NodeStatus> {
        let answers = self.members.iter();
        answers.filter_map(|(_, status)| status.as_ref())
    }

    fn is_voter(&self, id: u64) -> bool {
        let mut members = self.members.iter();
        members.any(|(member, _)| member.id == id && member.role == MemberRole::Voter)
    }

    /// The answer that knows the members best: that of the leader of the highest term, or of a
    /// follower of it.
    pub fn newest(&self) -> &NodeStatus {
        let knows =
            |status: &&NodeStatus| status.leader.is_some() && status.role != NodeRole::Removed;
        let best = self.answers().filter(knows).max_by_key(|status| {
            let leads = status.leader == Some(status.node_id);
            (status.term, leads, status.last_log)
        });
        best.unwrap_or(&self.asked)
    }

    /// Whether a node that believes that it leads does not: another one does in a later term.
    pub fn is_superseded(&self, status: &NodeStatus) -> bool {
        let newest = self.newest();
        status.role == NodeRole::Leader
            && newest.term > status.term
            && newest.leader != Some(status.node_id)
    }

    /// What an operator has to look at although clients are served. For a user, no word of settings
    /// and files.
    pub fn warnings(&self, is_for_operator: bool) -> Vec<String> {
        let newest = self.newest();
        let answers: Vec<&NodeStatus> = self.answers().collect();
        let mut warnings = Vec::new();
        for status in &answers {
            let id = status.node_id;
            if self.is_superseded(status) {
                let leader = newest.leader.map(|id| format!("node {id}"));
                let leader = leader.as_deref().unwrap_or("another node");
                warnings.push(format!(
                    "node {id} believes that it leads in term {}, but {leader} leads in term {}: its disk or its \
                     network hangs",
                    status.term, newest.term
                ));
            }
            if let Some(words) = &status.backup_problem {
                warnings.push(format!("backups of node {id}: {words}"));
            }
            let of_settings = [&status.routing_problem, &status.certificate_problem];
            let of_settings = of_settings.into_iter().filter(|_| is_for_operator);
            let others = [&status.round_trip_problem, &status.clock_problem];
            let problems = of_settings.chain(others).flatten();
            warnings.extend(problems.map(|words| format!("node {id}: {words}")));
        }
        warnings.extend(self.without_backups());
        if is_for_operator {
            warnings.extend(differences(&answers));
            warnings.extend(self.unbound());
        }
        warnings
    }

    fn without_backups(&self) -> Option<String> {
        let mut makers = self.answers().map(|status| status.makes_backups);
        let count = self.answers().count();
        if count == 0 || makers.any(|makes| makes) {
            return None;
        }
        let who = match self.members.len() - count {
            0 => "no node makes backups",
            _ => "no node that answers makes backups",
        };
        Some(format!(
            "{who}: set [backup] directory on one node at least, or take them with `placementctl backup`"
        ))
    }

    /// Nodes that are bound to no cluster. One that does not belong to a cluster says nothing of
    /// its settings.
    fn unbound(&self) -> Option<String> {
        let cluster = self.newest().cluster_id.as_ref()?;
        let is_unbound = |status: &&NodeStatus| {
            !status.settings.is_empty() && !status.settings.contains_key("cluster_id")
        };
        let unbound: Vec<u64> = (self.answers().filter(is_unbound))
            .map(|status| status.node_id)
            .collect();
        let (has, it) = match unbound.len() {
            0 => return None,
            1 => ("has", "it"),
            _ => ("have", "they"),
        };
        Some(format!(
            "{} {has} no cluster_id: with an empty data directory {it} would form a new, empty cluster. Set \
             cluster_id = {cluster:?}",
            nodes(&unbound)
        ))
    }
}

/// How a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// All members are ready, and have room on their disks.
    Healthy,
    /// It answers, but not all members are well.
    Degraded,
    /// No member is ready: nothing can be written.
    NoQuorum,
}

/// The condition of a cluster, and what makes it so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The condition.
    pub condition: Condition,
    /// Members with a vote.
    pub voters: usize,
    /// Those of them that are ready.
    pub ready: usize,
    /// How many of the ready voters may be lost before the quorum is.
    pub can_lose: usize,
    /// Which members are not well, and why.
    pub problems: Vec<String>,
}

impl Health {
    /// That of a cluster with these answers.
    pub fn of(survey: &Survey) -> Self {
        let mut problems = Vec::new();
        let (mut voters, mut ready) = (0, 0);
        for (member, status) in &survey.members {
            let is_voter = member.role == MemberRole::Voter;
            voters += usize::from(is_voter);
            let is_of_it = |status: &&NodeStatus| status.ready && !is_foreign(status, survey);
            ready += usize::from(is_voter && status.as_ref().is_some_and(|one| is_of_it(&one)));
            // Its successor has its vote.
            let is_leaving = !is_voter && member.replaced_by.is_some_and(|by| survey.is_voter(by));
            let why = problem(member, status.as_ref(), survey);
            if let Some(why) = why.filter(|_| !is_leaving) {
                problems.push(format!("node {} {why}", member.id));
            }
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
    pub fn text(&self) -> String {
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
}

/// Whether the node at the address of a member belongs to another cluster.
fn is_foreign(status: &NodeStatus, survey: &Survey) -> bool {
    let clusters = [&status.cluster_id, &survey.newest().cluster_id];
    matches!(clusters, [Some(own), Some(other)] if own != other)
}

/// What is wrong with a member, as what follows its name.
fn problem(member: &Member, status: Option<&NodeStatus>, survey: &Survey) -> Option<String> {
    let behind = |what: String, link: &str| match &member.unreachable {
        Some(reason) => Some(format!("{what}{link}{reason}")),
        None => Some(what),
    };
    let Some(status) = status else {
        return behind("does not answer".to_owned(), ": ");
    };
    if is_foreign(status, survey) {
        let cluster = status.cluster_id.as_deref().unwrap_or_default();
        return Some(format!("belongs to another cluster, {cluster}"));
    }
    if !status.ready {
        let reason = status.not_ready.as_deref().unwrap_or_default();
        let link = "; another node does not reach it: ";
        return behind(format!("is not ready: {reason}"), link);
    }
    let full = status.disk_problem.as_ref()?;
    Some(format!("refuses additions: {full}"))
}

/// The settings in which nodes differ that must be the same on all of them.
fn differences(answers: &[&NodeStatus]) -> Vec<String> {
    let known = || answers.iter().filter(|status| !status.settings.is_empty());
    let keys: BTreeSet<&String> = known().flat_map(|status| status.settings.keys()).collect();
    let mut differences = Vec::new();
    for key in keys {
        // Such a table may be missing as a whole. Other settings are not reported where they are of
        // no use.
        let is_of_partition = key.starts_with("partitions.");
        let mut values: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for status in known() {
            let value = status.settings.get(key).map(String::as_str);
            if let Some(value) = value.or(is_of_partition.then_some("not set")) {
                values.entry(value).or_default().push(status.node_id);
            }
        }
        if values.len() > 1 {
            let values: Vec<_> = (values.iter())
                .map(|(value, ids)| format!("{value} on {}", nodes(ids)))
                .collect();
            let all = joined(&values);
            differences.push(format!("{key} must be the same on all nodes, and is {all}"));
        }
    }
    differences
}

/// `node 1`; `nodes 1, 2 and 3`.
fn nodes(ids: &[u64]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let plural = if ids.len() == 1 { "" } else { "s" };
    format!("node{plural} {}", joined(&ids))
}

/// `one`; `one, another and a third`.
fn joined(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
