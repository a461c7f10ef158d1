//! Limits of the usage of projects: their replacement, and the check of writes of allocations.

use std::collections::{BTreeMap, BTreeSet};

use super::{Decide, Decision, ensure};
use crate::command::ReplaceLimits;
use crate::mutant;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, ConsumerRow, LimitsRow, RowKey};
use crate::state::limits::{KeptLimits, Limit};
use crate::state::usage_sums::TypeSum;
use crate::types::{LimitExcess, LimitMode, ProjectId, Timestamp};

/// `PUT /placementd/v1/limits`: replaces the limits of all projects. Existing allocations are not
/// checked.
impl Decide for ReplaceLimits {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let actual = state.limits().map(|row| row.generation);
        let actual = actual.unwrap_or_default();
        let given = self.generation;
        ensure(given == actual, || Refusal::LimitsGenerationConflict {
            given,
            actual,
        })?;
        let generation = actual.next();
        let row = LimitsRow {
            generation,
            updated_at: at,
            limits: self.limits.clone(),
        };
        let reply = Reply::LimitsWritten { generation };
        Ok((reply, vec![Change::PutLimits(Box::new(row))]))
    }
}

/// The reply to a write that exceeds these limits.
pub(super) fn report(reply: Reply, excesses: Vec<LimitExcess>) -> Reply {
    if excesses.is_empty() {
        return reply;
    }
    let reply = Box::new(reply);
    Reply::OverLimits { reply, excesses }
}

/// Compares the usage after the changes of consumers with the limits of their projects and of the
/// parents of these. A usage above a limit is accepted unless the changes increase it.
///
/// # Errors
/// The first exceeded limit, if limits are enforced.
pub(super) fn check(state: &State, changes: &[Change]) -> Result<Vec<LimitExcess>, Refusal> {
    let Some(limits) = state.kept_limits() else {
        return Ok(Vec::new());
    };
    let moved = Moved::new(state, limits, changes);
    let mut excesses = moved.projects().into_iter().flat_map(|project| {
        let limits_of = limits.limits_of(&state.resource_classes, project);
        let usage = limits.usage(state.consumers.sums(), project);
        let excess = |limit: &Limit<'_>| {
            let used = usage.of(limit);
            let part = |sums: &BTreeMap<&ProjectId, TypeSum>| {
                let sums = sums.iter();
                let counted = sums.filter(|(it, _)| limits.is_member(it, project, limit.is_own));
                limit.quantity.total(counted.map(|(_, sum)| sum))
            };
            let (released, added) = (part(&moved.released), part(&moved.added));
            let requested = used.saturating_sub(released).saturating_add(added);
            let grows = added > released || mutant!("limit-refuses-moves");
            (grows && requested > limit.limit).then(|| LimitExcess {
                project: project.clone(),
                resource: limit.resource.clone(),
                used,
                requested,
                limit: limit.limit,
            })
        };
        limits_of.iter().filter_map(excess).collect::<Vec<_>>()
    });
    match limits.row().limits.mode {
        LimitMode::Report => Ok(excesses.take(LimitExcess::MOST).collect()),
        LimitMode::Enforce => match excesses.next() {
            Some(excess) => Err(Refusal::OverLimit(excess)),
            None => Ok(Vec::new()),
        },
    }
}

/// The usage that changes of consumers release and add, by project. Only consumers of types that
/// count.
struct Moved<'a> {
    limits: &'a KeptLimits,
    released: BTreeMap<&'a ProjectId, TypeSum>,
    added: BTreeMap<&'a ProjectId, TypeSum>,
}

impl<'a> Moved<'a> {
    fn new(state: &'a State, limits: &'a KeptLimits, changes: &'a [Change]) -> Self {
        let mut moved = Self {
            limits,
            released: BTreeMap::new(),
            added: BTreeMap::new(),
        };
        for change in changes {
            let (consumer, after) = match change {
                Change::PutConsumer(consumer, row) => (consumer, Some(row)),
                Change::Delete(RowKey::Consumer(consumer)) => (consumer, None),
                _ => continue,
            };
            let before = state.consumers.row(consumer);
            moved.count(before.map(|row| &**row), |moved| &mut moved.released);
            moved.count(after, |moved| &mut moved.added);
        }
        moved
    }

    fn count(
        &mut self,
        row: Option<&'a ConsumerRow>,
        side: fn(&mut Self) -> &mut BTreeMap<&'a ProjectId, TypeSum>,
    ) {
        let Some(row) = row else { return };
        if self.limits.counts(&row.consumer_type) && !row.allocations.is_empty() {
            let sum = side(self).entry(&row.project).or_default();
            sum.add(&row.allocations);
        }
    }

    /// The projects to which the changes add usage, and their parents.
    fn projects(&self) -> BTreeSet<&'a ProjectId> {
        let projects = self.added.keys().copied();
        let parents = projects.clone().filter_map(|it| self.limits.parent(it));
        if mutant!("parents-are-not-asked") {
            return projects.collect();
        }
        parents.chain(projects).collect()
    }
}
