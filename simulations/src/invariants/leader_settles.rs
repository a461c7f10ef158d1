//! Leadership moves to a preferred site only from a leader that has led for a while, and only if a
//! voter at a better site is up and has caught up. In a healthy cluster it moves to better sites
//! only, and never if all nodes are at one site (`node/cluster/src/leadership/preference.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Role;
use crate::logs::{Logs, NodeLog};
use crate::parameters::Parameters;
use crate::regions::Regions;

/// Name of the invariant in violations.
pub const NAME: &str = "leadership settles";

/// Number of maximum election timeouts for which a leader leads before it looks for a better node.
pub const SETTLE: u32 = 10;
/// Longest time from the moment when a leader reads its own log index until the better node
/// answers.
const ASKS: Duration = Duration::from_millis(1100);

/// Observations after one step of time.
pub struct StepObservations<'a> {
    /// Simulated time of the step.
    pub now: Duration,
    /// Roles that the running nodes report.
    pub roles: &'a [Role],
    /// Number of times so far that a leader has found a better node.
    pub found: u64,
    /// Whether a node was ever drained.
    pub has_drained: &'a dyn Fn(u64) -> bool,
    /// Whether the cluster is healthy: all faults have ended.
    pub is_healthy: bool,
}

/// Checks each step and each move of leadership in a run.
pub struct LeaderSettles {
    regions: Option<Regions>,
    voters: u64,
    election_max: Duration,
    found: u64,
    /// When each node was last seen running.
    up: BTreeMap<u64, Duration>,
    /// Current leaders: term, and the time since when each leads.
    leads: BTreeMap<u64, (u64, Duration)>,
    /// Last log index of the only leader at each step within the last [`ASKS`].
    log: VecDeque<(Duration, u64)>,
    /// The last leader in the healthy cluster.
    while_healthy: Option<u64>,
}

impl LeaderSettles {
    /// The invariant for one run.
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            regions: parameters.regions.clone(),
            voters: parameters.nodes,
            election_max: 2 * parameters.election,
            found: 0,
            up: BTreeMap::new(),
            leads: BTreeMap::new(),
            log: VecDeque::new(),
            while_healthy: None,
        }
    }

    /// Distance of a leader from the best site; 0 is best.
    fn rank(&self, node: u64) -> usize {
        self.regions
            .as_ref()
            .map_or(0, |regions| regions.rank(node))
    }

    /// Checks one step of time.
    ///
    /// # Errors
    /// Description of the violation.
    pub fn observe(&mut self, seen: &StepObservations<'_>, logs: &Logs) -> Result<(), String> {
        let now = seen.now;
        self.up
            .extend(seen.roles.iter().map(|role| (role.node, now)));
        let leading = seen.roles.iter().filter(|role| role.leads);
        let terms: BTreeMap<u64, u64> = leading
            .map(|role| (role.node, role.vote.leader_id.term))
            .collect();
        self.leads
            .retain(|node, (term, _)| terms.get(node) == Some(term));
        for (node, term) in &terms {
            self.leads.entry(*node).or_insert((*term, now));
        }
        let found = seen.found > std::mem::replace(&mut self.found, seen.found);
        // With two nodes that believe they lead, it is unknown which of them found a better node.
        let Some((leader, (_, since))) = self.leads.first_key_value().filter(|_| terms.len() == 1)
        else {
            self.log.clear();
            return Ok(());
        };
        let (leader, since) = (*leader, *since);
        if since == now {
            self.log.clear();
        }
        self.log.push_back((now, last(logs.node(leader))));
        while self.log.front().is_some_and(|(at, _)| *at + ASKS < now) {
            self.log.pop_front();
        }
        if found {
            self.may_move(seen, leader, since, logs)?;
        }
        self.stays_while_healthy(seen, leader)
    }

    fn may_move(
        &self,
        seen: &StepObservations<'_>,
        leader: u64,
        since: Duration,
        logs: &Logs,
    ) -> Result<(), String> {
        let (now, led) = (seen.now, seen.now - since);
        if led < SETTLE * self.election_max {
            return Err(format!(
                "{NAME}: node {leader} looks for a better site after it has led for only {led:?}"
            ));
        }
        let (learners, lag_max) = match &self.regions {
            Some(regions) => (regions.learners, regions.lag_max),
            None => (0, 0),
        };
        let is_drained = (seen.has_drained)(leader);
        let far = self.log.front().map_or(0, |(_, index)| *index);
        let is_fit = |node: u64, up: Duration| {
            let is_better = is_drained || self.rank(node) < self.rank(leader);
            let is_voter = node <= self.voters || node > self.voters + learners;
            let is_up = up + 2 * self.election_max + ASKS >= now;
            let has_come_so_far = last(logs.node(node)) + lag_max >= far;
            node != leader && is_better && is_voter && is_up && has_come_so_far
        };
        let mut up = self.up.iter();
        if up.any(|(node, up)| is_fit(*node, *up)) {
            return Ok(());
        }
        Err(format!(
            "{NAME}: node {leader} transfers leadership, but no voter at a better site is up \
             and within {} entries of entry {far}",
            lag_max
        ))
    }

    fn stays_while_healthy(
        &mut self,
        seen: &StepObservations<'_>,
        leader: u64,
    ) -> Result<(), String> {
        if !seen.is_healthy {
            return Ok(());
        }
        let before = self.while_healthy.replace(leader).unwrap_or(leader);
        let is_better = self.rank(leader) < self.rank(before);
        if before == leader || is_better || (seen.has_drained)(before) {
            Ok(())
        } else {
            Err(format!(
                "{NAME}: the cluster is healthy, but node {leader} leads in place of node {before}"
            ))
        }
    }
}

fn last(log: &NodeLog) -> u64 {
    let entries = log.entries.last_key_value().map(|(index, _)| *index);
    let received = log.received.last().map(|id| id.index);
    let purged = log.purged.map(|id| id.index);
    entries.max(received).max(purged).unwrap_or_default()
}
