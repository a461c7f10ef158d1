//! What is remembered of each node's writes, so that a retry is recognised.

use std::sync::Arc;

use imbl::OrdMap;

use super::change::SessionRow;
use crate::outcome::Outcome;
use crate::types::WriteId;

/// How far each node's writes have come, and the outcomes that may still be asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sessions {
    rows: OrdMap<u64, SessionRow>,
    outcomes: OrdMap<(u64, u64), Arc<Outcome>>,
    /// Outcomes kept per origin. Absent is 0.
    counts: OrdMap<u64, u64>,
}

/// What a write id says about a write.
pub(crate) enum Seen {
    /// It has not been carried out.
    Never,
    /// It was carried out, with this outcome.
    Before(Arc<Outcome>),
    /// It was answered so long ago that the outcome is forgotten.
    LongAgo,
}

impl Sessions {
    pub(crate) fn row(&self, origin: u64) -> Option<&SessionRow> {
        self.rows.get(&origin)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &SessionRow)> {
        self.rows.iter().map(|(origin, row)| (*origin, row))
    }

    /// The highest number of a node that has a row.
    pub(crate) fn last(&self) -> u64 {
        self.rows.get_max().map_or(0, |(origin, _)| *origin)
    }

    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (u64, u64, &Outcome)> {
        self.outcomes
            .iter()
            .map(|((origin, sequence), outcome)| (*origin, *sequence, &**outcome))
    }

    pub(crate) fn outcome(&self, origin: u64, sequence: u64) -> Option<&Outcome> {
        self.outcomes.get(&(origin, sequence)).map(|one| &**one)
    }

    /// The sequences of which an origin's outcomes are kept, rising.
    pub(crate) fn sequences(&self, origin: u64) -> impl Iterator<Item = u64> {
        self.outcomes
            .range((origin, 0)..=(origin, u64::MAX))
            .map(|((_, sequence), _)| *sequence)
    }

    /// How many outcomes of an origin are kept.
    pub(crate) fn count(&self, origin: u64) -> u64 {
        self.counts.get(&origin).copied().unwrap_or(0)
    }

    pub(crate) fn seen(&self, id: &WriteId) -> Seen {
        if id.sequence < id.answered_below {
            return Seen::LongAgo;
        }
        let Some(session) = self.rows.get(&id.origin) else {
            return Seen::Never;
        };
        if id.boot != session.boot {
            return if id.boot < session.boot {
                Seen::LongAgo
            } else {
                Seen::Never
            };
        }
        match self.outcomes.get(&(id.origin, id.sequence)) {
            Some(outcome) => Seen::Before(Arc::clone(outcome)),
            None if id.sequence < session.answered_below => Seen::LongAgo,
            None => Seen::Never,
        }
    }

    pub(crate) fn put(&mut self, origin: u64, row: SessionRow) -> Option<SessionRow> {
        self.rows.insert(origin, row)
    }

    pub(crate) fn put_outcome(
        &mut self,
        origin: u64,
        sequence: u64,
        outcome: Outcome,
    ) -> Option<Arc<Outcome>> {
        let old = self.outcomes.insert((origin, sequence), Arc::new(outcome));
        if old.is_none() {
            *self.counts.entry(origin).or_insert(0) += 1;
        }
        old
    }

    pub(crate) fn delete_outcome(&mut self, origin: u64, sequence: u64) -> Arc<Outcome> {
        let old = self.outcomes.remove(&(origin, sequence));
        let count = self.counts.get_mut(&origin);
        let count = count.expect("each outcome was counted in");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&origin);
        }
        old.expect("an outcome that goes is there")
    }
}
