//! Write sessions of nodes, by which retries are recognized.

use std::cmp::Ordering;
use std::sync::Arc;

use imbl::OrdMap;

use super::change::SessionRow;
use crate::outcome::Outcome;
use crate::types::WriteId;

/// The write progress of each node, and the outcomes that a retry may still request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sessions {
    rows: OrdMap<u64, SessionRow>,
    /// Outcomes by origin and sequence. Origins without outcomes are absent.
    outcomes: OrdMap<u64, OrdMap<u64, Arc<Outcome>>>,
}

/// Whether a write has been applied before, by its write id.
pub(crate) enum WriteStatus {
    /// The write has not been applied.
    Never,
    /// The write was applied, with this outcome.
    Before(Arc<Outcome>),
    /// The write was answered, and its outcome has been deleted.
    LongAgo,
}

impl Sessions {
    pub(crate) fn row(&self, origin: u64) -> Option<&SessionRow> {
        self.rows.get(&origin)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &SessionRow)> {
        self.rows.iter().map(|(origin, row)| (*origin, row))
    }

    /// The highest node number with a session.
    pub(crate) fn last(&self) -> u64 {
        self.rows.get_max().map_or(0, |(origin, _)| *origin)
    }

    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (u64, u64, &Outcome)> {
        self.outcomes.iter().flat_map(|(origin, kept)| {
            let kept = kept.iter();
            kept.map(|(sequence, outcome)| (*origin, *sequence, &**outcome))
        })
    }

    pub(crate) fn outcome(&self, origin: u64, sequence: u64) -> Option<&Arc<Outcome>> {
        self.outcomes.get(&origin)?.get(&sequence)
    }

    /// The sequences of an origin whose outcomes are stored, in ascending order.
    pub(crate) fn sequences(&self, origin: u64) -> impl Iterator<Item = u64> {
        let kept = self.outcomes.get(&origin).into_iter();
        kept.flat_map(|kept| kept.keys().copied())
    }

    /// Number of stored outcomes of an origin.
    pub(crate) fn count(&self, origin: u64) -> usize {
        self.outcomes.get(&origin).map_or(0, OrdMap::len)
    }

    pub(crate) fn seen(&self, id: &WriteId) -> WriteStatus {
        if id.sequence < id.answered_below {
            return WriteStatus::LongAgo;
        }
        let Some(session) = self.rows.get(&id.origin) else {
            return WriteStatus::Never;
        };
        match id.boot.cmp(&session.boot) {
            Ordering::Less => return WriteStatus::LongAgo,
            Ordering::Greater => return WriteStatus::Never,
            Ordering::Equal => {}
        }
        match self.outcome(id.origin, id.sequence) {
            Some(outcome) => WriteStatus::Before(Arc::clone(outcome)),
            None if id.sequence < session.answered_below => WriteStatus::LongAgo,
            None => WriteStatus::Never,
        }
    }

    pub(crate) fn put(&mut self, origin: u64, row: SessionRow) {
        self.rows.insert(origin, row);
    }

    pub(crate) fn put_outcome(&mut self, origin: u64, sequence: u64, outcome: Outcome) {
        let kept = self.outcomes.entry(origin).or_default();
        kept.insert(sequence, Arc::new(outcome));
    }

    pub(crate) fn delete_outcome(&mut self, origin: u64, sequence: u64) {
        let kept = self.outcomes.get_mut(&origin);
        let old = kept.and_then(|kept| kept.remove(&sequence));
        old.expect("a deleted outcome exists");
        if self.count(origin) == 0 {
            self.outcomes.remove(&origin);
        }
    }
}
