//! Health of a cluster from the reports of its members, and warnings for operators.

use std::collections::{BTreeMap, BTreeSet};

use placement_wire::{MeasuredRoundTrip, Member, MemberRole, NodeRole, NodeStatus, SlowFollower};
use serde::Serialize;

/// A node is slow if all others wait this long for its answers, in milliseconds, …
const SLOW_MS: f64 = 50.0;
/// … and this many times longer than they wait for each other.
const SLOW_FACTOR: f64 = 5.0;

/// The status of one node, and the statuses of the members that it knows.
pub struct Survey {
    /// The node that answered first.
    pub asked: NodeStatus,
    /// Members with their own status; `None` if a member does not answer.
    pub members: Vec<(Member, Option<NodeStatus>)>,
    /// Errors of the direct requests to members. A member with a status has an error if another
    /// node relayed its status.
    pub errors: BTreeMap<u64, String>,
}

impl Survey {
    /// Takes the description of each member from the newest response.
    pub fn new(asked: NodeStatus, members: Vec<(Member, Option<NodeStatus>)>) -> Self {
        let mut survey = Self {
            asked,
            members,
            errors: BTreeMap::new(),
        };
        let newest = survey.newest().members.clone();
        for (member, _) in &mut survey.members {
            if let Some(newer) = newest.iter().find(|newer| newer.id == member.id) {
                member.clone_from(newer);
            }
        }
        survey
    }

    /// Statuses of the members that answer, without nodes of other clusters.
    pub fn answers(&self) -> impl Iterator<Item = &NodeStatus> {
        let cluster = self.cluster();
        self.all_answers()
            .filter(move |status| !is_of_other(status, cluster))
    }

    /// Statuses of the nodes that answer at the addresses of the members.
    fn all_answers(&self) -> impl Iterator<Item = &NodeStatus> {
        let answers = self.members.iter();
        answers.filter_map(|(_, status)| status.as_ref())
    }

    /// The cluster that most answers belong to; of several, the cluster with a ready node, then the
    /// cluster of the asked node.
    fn cluster(&self) -> Option<&str> {
        let mut sizes: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
        for status in self.all_answers() {
            if let Some(cluster) = &status.cluster_id {
                let (size, has_ready) = sizes.entry(cluster).or_default();
                *size += 1;
                *has_ready |= status.ready;
            }
        }
        let asked = self.asked.cluster_id.as_deref();
        let largest = sizes
            .into_iter()
            .max_by_key(|(cluster, size)| (*size, Some(*cluster) == asked));
        largest.map(|(cluster, _)| cluster).or(asked)
    }

    /// Whether the node at the address of a member belongs to another cluster.
    pub fn is_foreign(&self, status: &NodeStatus) -> bool {
        is_of_other(status, self.cluster())
    }

    fn is_voter(&self, id: u64) -> bool {
        let mut members = self.members.iter();
        members.any(|(member, _)| member.id == id && member.role == MemberRole::Voter)
    }

    /// The status with the newest membership: the status of a ready node if there is one, and of
    /// the leader of the highest term, or of one of its followers.
    pub fn newest(&self) -> &NodeStatus {
        let members = self.answers().filter(|one| one.role != NodeRole::Removed);
        let best = members.max_by_key(|status| {
            let leads = status.leader == Some(status.node_id);
            let knows = status.leader.is_some();
            (status.ready, knows, status.term, leads, status.last_log)
        });
        best.unwrap_or(&self.asked)
    }

    /// The leader; `None` without a quorum, although nodes remember who led.
    pub fn leader(&self) -> Option<u64> {
        self.newest().leader.filter(|_| self.has_quorum())
    }

    /// Whether a leader has just confirmed a read of a voter, which may be drained.
    fn has_quorum(&self) -> bool {
        let mut answers = self.answers();
        answers.any(|status| self.is_voter(status.node_id) && is_confirmed(status))
    }

    /// Why a member gives no answer, as a predicate that follows its name.
    pub fn silence(&self, member: &Member) -> String {
        let error = self.errors.get(&member.id);
        let Some(reason) = member.unreachable.as_ref().or(error) else {
            return "does not answer".to_owned();
        };
        // A node that is refused does answer.
        match reason.strip_prefix("refused: ") {
            Some(reason) => format!("is refused: {reason}"),
            None if error.is_some_and(|error| hangs(error)) => format!(
                "does not answer: {reason}. It accepts connections, so its process hangs or is suspended"
            ),
            None => format!("does not answer: {reason}"),
        }
    }

    /// Whether a node believes that it leads although another node leads in a later term.
    pub fn is_superseded(&self, status: &NodeStatus) -> bool {
        let newest = self.newest();
        status.role == NodeRole::Leader
            && newest.term > status.term
            && newest.leader != Some(status.node_id)
    }

    /// When the certificate of the asked node expired, if this cuts the node off: it knows no
    /// quorum, and no other member answers.
    fn cut_off_since(&self) -> Option<&str> {
        let own = &self.asked;
        let is_alone = self.answers().all(|status| status.node_id == own.node_id);
        let since = own.peer_certificate_expired.as_deref()?;
        (is_alone && !self.has_quorum() && self.members.len() > 1).then_some(since)
    }

    /// Problems that do not affect clients yet. Without `is_for_operator`, problems of settings and
    /// certificates are omitted.
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
            let of_settings = [&status.routing_problem, &status.certificate_problem]
                .into_iter()
                .filter(|_| is_for_operator);
            let others = [&status.round_trip_problem, &status.clock_problem];
            let problems = of_settings.chain(others).flatten();
            warnings.extend(problems.map(|words| format!("node {id}: {words}")));
        }
        warnings.extend(self.slow_followers());
        warnings.extend(self.slow_nodes());
        warnings.extend(self.without_backups());
        if is_for_operator {
            warnings.extend(differences(&answers));
            warnings.extend(self.unbound());
        }
        warnings
    }

    /// The followers that acknowledge log entries late, as measured by the leader.
    fn late_followers(&self) -> &[SlowFollower] {
        let leader = self.leader();
        let mut answers = self.answers();
        let measured = answers.find(|status| Some(status.node_id) == leader);
        measured.map_or(&[], |leader| leader.slow_followers.as_slice())
    }

    /// Warnings about followers that acknowledge log entries late.
    fn slow_followers(&self) -> Vec<String> {
        let words = |slow: &SlowFollower| {
            format!(
                "node {} is slow: it acknowledges log entries after {}, although the round trip to it takes {} and \
                 node {} acknowledges them after {}; check its processor, its disk and its network",
                slow.node,
                milliseconds(slow.ms),
                milliseconds(slow.round_trip_ms),
                slow.fastest,
                milliseconds(slow.fastest_ms)
            )
        };
        self.late_followers().iter().map(words).collect()
    }

    /// Warnings about nodes for which all other nodes wait, although the network is fast and the
    /// other nodes do not wait for each other. This also finds a slow leader, and needs no writes.
    fn slow_nodes(&self) -> Vec<String> {
        let trips: Vec<_> = (self.answers())
            .flat_map(|status| status.round_trips.iter().map(|trip| (status.node_id, trip)))
            .collect();
        let is_late = |id: u64| self.late_followers().iter().any(|late| late.node == id);
        let warning = |id: u64| {
            let to = trips
                .iter()
                .filter(|(from, trip)| trip.node == id && *from != id);
            let to: Vec<&MeasuredRoundTrip> = to.map(|(_, trip)| *trip).collect();
            let others = trips
                .iter()
                .filter(|(from, trip)| ![*from, trip.node].contains(&id));
            let others = others.map(|(_, trip)| wait(trip)).reduce(f64::max)?;
            let least = to
                .iter()
                .copied()
                .min_by(|one, other| wait(one).total_cmp(&wait(other)))?;
            if to.len() < 2 || wait(least) < SLOW_MS.max(others * SLOW_FACTOR) || is_late(id) {
                return None;
            }
            let advice = if self.leader() == Some(id) {
                "; it leads, so let another node lead: placementctl transfer-leader"
            } else {
                ""
            };
            Some(format!(
                "node {id} is slow: the other nodes wait {} for its answers, although the round trip to it takes {}; \
                 check its processor, and whether something suspends its process or its virtual machine{advice}",
                milliseconds(least.mean_ms),
                milliseconds(least.ms)
            ))
        };
        let members = self.members.iter();
        members
            .filter_map(|(member, _)| warning(member.id))
            .collect()
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
            "{who}: set [backup] directory on at least one node, or run `placementctl backup`"
        ))
    }

    /// A warning about nodes whose settings have no `cluster_id`.
    fn unbound(&self) -> Option<String> {
        let cluster = self.newest().cluster_id.as_ref()?;
        let is_unbound = |status: &&NodeStatus| !status.settings.contains_key("cluster_id");
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

/// Condition of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// All members are ready and have free disk space.
    Healthy,
    /// Requests are served, but some member has a problem.
    Degraded,
    /// No leader has confirmed a read of any voter, so writes are impossible.
    NoQuorum,
    /// The other nodes refuse the only node that answers, so their state is unknown.
    Unknown,
}

/// Condition of a cluster with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Overall condition of the cluster.
    pub condition: Condition,
    /// Number of voting members.
    pub voters: usize,
    /// Number of voters that are ready.
    pub ready: usize,
    /// Number of ready or drained voters that may fail before the quorum is lost.
    pub can_lose: usize,
    /// Problems of members, with their reasons.
    pub problems: Vec<String>,
}

impl Health {
    /// Derives the health of a cluster from the statuses of its members.
    pub fn from_survey(survey: &Survey) -> Self {
        let mut problems = Vec::new();
        let (mut voters, mut ready, mut voting) = (0, 0, 0);
        for (member, status) in &survey.members {
            let is_voter = member.role == MemberRole::Voter;
            voters += usize::from(is_voter);
            let own = status.as_ref().filter(|one| !survey.is_foreign(one));
            if let Some(status) = own.filter(|_| is_voter) {
                ready += usize::from(status.ready);
                voting += usize::from(is_confirmed(status));
            }
            // Its replacement already has its vote.
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
        let cut_off = survey.cut_off_since();
        if let Some(since) = cut_off {
            // The node reports about the others only that they do not answer it.
            problems = vec![
                format!(
                    "node {asked} is cut off: its certificate expired {since}. The other nodes refuse \
                     it, so they could not be asked from here"
                ),
                format!(
                    "renew it where ca-key.pem is: placementctl tls renew node {asked} --dir DIR"
                ),
                "for the state of the cluster, ask another node".to_owned(),
            ];
        }
        let condition = match (voting, problems.is_empty()) {
            _ if cut_off.is_some() => Condition::Unknown,
            (0, _) => Condition::NoQuorum,
            (_, true) => Condition::Healthy,
            (_, false) => Condition::Degraded,
        };
        Self {
            condition,
            voters,
            ready,
            can_lose: voting.saturating_sub(voters / 2 + 1),
            problems,
        }
    }

    /// The condition on one line, and a line for each problem.
    pub fn text(&self) -> String {
        let (voters, can_lose) = (self.voters, self.can_lose);
        let ready = format!("{} of {voters} voters ready", self.ready);
        let mut text = match self.condition {
            Condition::Unknown => return format!("unknown: {}\n", self.problems.join("\n  ")),
            Condition::Healthy => format!("healthy: {ready}, {can_lose} may fail"),
            Condition::Degraded => format!("degraded: {ready}, {can_lose} may fail"),
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

fn is_of_other(status: &NodeStatus, cluster: Option<&str>) -> bool {
    matches!([status.cluster_id.as_deref(), cluster], [Some(own), Some(other)] if own != other)
}

/// Whether a leader has just confirmed a read of this node.
fn is_confirmed(status: &NodeStatus) -> bool {
    status.ready || status.confirmed
}

/// The problem of a member, as a predicate that follows its name.
fn problem(member: &Member, status: Option<&NodeStatus>, survey: &Survey) -> Option<String> {
    let Some(status) = status else {
        return Some(survey.silence(member));
    };
    if survey.is_foreign(status) {
        let cluster = status.cluster_id.as_deref().unwrap_or_default();
        return Some(format!(
            "belongs to another cluster, {cluster}: its data directory is the wrong one. Stop it and start it with \
             its own data directory, or replace the node"
        ));
    }
    if !status.ready {
        let reason = status.not_ready.as_deref().unwrap_or_default();
        let link = match &member.unreachable {
            // A node without data has the same reason.
            Some(reason) if status.role != NodeRole::Waiting => {
                format!("; another node does not reach it: {reason}")
            }
            _ => String::new(),
        };
        return Some(format!("is not ready: {reason}{link}"));
    }
    if let Some(error) = survey.errors.get(&member.id) {
        return Some(format!(
            "answers only through another node: {error}; the other nodes still reach it"
        ));
    }
    let full = status.disk_problem.as_ref()?;
    Some(format!(
        "reports that {full}; additions are refused once a majority of the voters reports this"
    ))
}

/// Time in milliseconds that the other side takes, beyond the time of the network.
fn wait(trip: &MeasuredRoundTrip) -> f64 {
    trip.mean_ms - trip.ms
}

/// Whether a request has failed because the node accepts connections, but does not answer.
fn hangs(error: &str) -> bool {
    ["no TLS handshake within", "no answer within"]
        .iter()
        .any(|words| error.contains(words))
}

/// `0.1 ms`, `640 ms`
fn milliseconds(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{ms:.0} ms")
    }
}

/// Differences between nodes in settings that must be equal on all nodes.
fn differences(answers: &[&NodeStatus]) -> Vec<String> {
    let keys: BTreeSet<&String> = (answers.iter())
        .flat_map(|status| status.settings.keys())
        .collect();
    let mut differences = Vec::new();
    for key in keys {
        // A node may lack a whole `[[partitions]]` table. Other settings are missing if they have
        // no effect on the node.
        let is_partition_setting = key.starts_with("partitions.");
        let mut values: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for status in answers {
            let value = status.settings.get(key).map(String::as_str);
            if let Some(value) = value.or(is_partition_setting.then_some("not set")) {
                values.entry(value).or_default().push(status.node_id);
            }
        }
        if values.len() > 1 {
            let values: Vec<_> = (values.iter())
                .map(|(value, ids)| format!("{value} on {}", nodes(ids)))
                .collect();
            let all = joined(&values);
            differences.push(format!("{key} must be the same on all nodes, but is {all}"));
        }
    }
    differences
}

/// `node 1`; `nodes 1, 2 and 3`.
pub fn nodes(ids: &[u64]) -> String {
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
