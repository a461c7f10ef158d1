//! Leadership moves to a preferred site only from who has led for a while, and only when a voter of
//! a better site is up and has caught up; once nothing fails it moves to better sites, and not
//! otherwise, nor at all where all stand in one place
//! (`node/src/cluster/leadership/preference.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Role;
use crate::logs::{Logs, NodeLog};
use crate::parameters::Parameters;
use crate::regions::Regions;

/// Its name in complaints.
pub const NAME: &str = "leadership settles";

/// A leader leads for so many of the longest elections before it looks for a better one.
pub const SETTLE: u32 = 10;
/// How long it may ask the better one, once it has looked how far that is.
const ASKS: Duration = Duration::from_millis(1100);

/// What is seen after a step.
pub struct Seen<'a> {
    /// The moment.
    pub now: Duration,
    /// What all nodes that run say of themselves.
    pub roles: &'a [Role],
    /// How often leaders have found a better node until now.
    pub found: u64,
    /// Whether a node was ever drained.
    pub has_drained: &'a dyn Fn(u64) -> bool,
    /// Whether nothing fails any more.
    pub is_healthy: bool,
}

/// See the module.
pub struct LeaderSettles {
    regions: Option<Regions>,
    voters: u64,
    election_max: Duration,
    found: u64,
    /// When each node was last seen to run.
    up: BTreeMap<u64, Duration>,
    /// Who leads in which term, and since when.
    leads: BTreeMap<u64, (u64, Duration)>,
    /// How far the log of the only leader was, lately.
    log: VecDeque<(Duration, u64)>,
    /// Who led last, once nothing failed any more.
    while_healthy: Option<u64>,
}

impl LeaderSettles {
    /// For a run.
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

    /// How far behind the best a node is as a leader.
    fn rank(&self, node: u64) -> usize {
        self.regions
            .as_ref()
            .map_or(0, |regions| regions.rank(node))
    }

    /// Looks at one step.
    ///
    /// # Errors
    /// What is wrong.
    pub fn observe(&mut self, seen: &Seen<'_>, logs: &Logs) -> Result<(), String> {
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
        // Of two that believe to lead it is not known which one has looked.
        let Some((leader, (_, since))) = self.leads.first_key_value().filter(|_| terms.len() == 1)
        else {
            self.log.clear();
            return Ok(());
        };
        let (leader, since) = (*leader, *since);
        if since == now {
            self.log.clear();
        }
        self.log.push_back((now, last(logs.of(leader))));
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
        seen: &Seen<'_>,
        leader: u64,
        since: Duration,
        logs: &Logs,
    ) -> Result<(), String> {
        let (now, led) = (seen.now, seen.now - since);
        if led < SETTLE * self.election_max {
            return Err(format!(
                "{NAME}: node {leader} looks for a better site after it has led for {led:?}"
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
            let has_come_so_far = last(logs.of(node)) + lag_max >= far;
            node != leader && is_better && is_voter && is_up && has_come_so_far
        };
        let mut up = self.up.iter();
        if up.any(|(node, up)| is_fit(*node, *up)) {
            return Ok(());
        }
        Err(format!(
            "{NAME}: node {leader} hands over, and no voter of a better site is up and has come to entry {far}, {} \
             aside",
            lag_max
        ))
    }

    fn stays_while_healthy(&mut self, seen: &Seen<'_>, leader: u64) -> Result<(), String> {
        if !seen.is_healthy {
            return Ok(());
        }
        let before = self.while_healthy.replace(leader).unwrap_or(leader);
        let is_better = self.rank(leader) < self.rank(before);
        match before == leader || is_better || (seen.has_drained)(before) {
            true => Ok(()),
            false => Err(format!(
                "{NAME}: nothing fails, and node {leader} leads in place of node {before}"
            )),
        }
    }
}

fn last(log: &NodeLog) -> u64 {
    let entries = log.entries.last_key_value().map(|(index, _)| *index);
    let received = log.received.last().map(|id| id.index);
    let purged = log.purged.map(|id| id.index);
    entries.max(received).max(purged).unwrap_or_default()
}
