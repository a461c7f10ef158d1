//! Numbers of the claims of one partition on this node.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::by_class;

/// Maximum number of choices in a claim.
pub(crate) const CHOICES_MAX: usize = 32;

/// The outcome of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClaimOutcome {
    /// A choice was taken.
    Claimed,
    /// An earlier claim had taken a choice already.
    Repeated,
    /// No choice has room.
    NoRoom,
    /// A limit of a project would be exceeded.
    OverLimit,
    /// A ceiling would be exceeded.
    OverCeiling,
    /// A group would be broken.
    Group,
    /// The query has too few candidates.
    NoCandidates,
    /// A consumer has another generation.
    Conflict,
}

impl ClaimOutcome {
    const ALL: [Self; 8] = [
        Self::Claimed,
        Self::Repeated,
        Self::NoRoom,
        Self::OverLimit,
        Self::OverCeiling,
        Self::Group,
        Self::NoCandidates,
        Self::Conflict,
    ];

    /// The name in metrics and in the list of searches.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Repeated => "repeated",
            Self::NoRoom => "no_room",
            Self::OverLimit => "over_limit",
            Self::OverCeiling => "over_ceiling",
            Self::Group => "group",
            Self::NoCandidates => "no_candidates",
            Self::Conflict => "conflict",
        }
    }
}

/// Numbers of claims by outcome, by choice and by ceiling.
#[derive(Debug, Clone)]
pub struct ClaimCounts {
    /// Number of claims by outcome; each outcome is present.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Number of claims that took the choice with this index.
    pub choices: [u64; CHOICES_MAX],
    /// Number of claims refused by a ceiling, by resource class; `consumers` for ceilings on the
    /// number of consumers, `other` for all but the first 64 classes.
    pub over_ceiling: BTreeMap<String, u64>,
}

impl Default for ClaimCounts {
    fn default() -> Self {
        let outcomes = ClaimOutcome::ALL.map(|outcome| (outcome.as_str(), 0));
        Self {
            outcomes: outcomes.into(),
            choices: [0; CHOICES_MAX],
            over_ceiling: by_class::new(),
        }
    }
}

impl ClaimCounts {
    /// Adds the numbers of another partition.
    pub fn add(&mut self, other: Self) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        for (sum, count) in self.choices.iter_mut().zip(other.choices) {
            *sum += count;
        }
        by_class::add(&mut self.over_ceiling, other.over_ceiling);
    }
}

/// Counts the claims of one partition on this node.
#[derive(Default)]
pub(crate) struct Claims(Mutex<ClaimCounts>);

impl Claims {
    /// The numbers so far.
    pub(crate) fn counts(&self) -> ClaimCounts {
        self.0.lock().clone()
    }

    /// Counts a claim by its outcome.
    pub(crate) fn count(&self, outcome: ClaimOutcome) {
        let mut counts = self.0.lock();
        *counts.outcomes.entry(outcome.as_str()).or_default() += 1;
    }

    /// Counts the choice of a claim that was accepted and not repeated.
    pub(crate) fn count_choice(&self, choice: u32) {
        if let Some(count) = self.0.lock().choices.get_mut(choice as usize) {
            *count += 1;
        }
    }

    /// Counts a claim that a ceiling refused; the class is `None` for a ceiling on the number of
    /// consumers.
    pub(crate) fn count_over_ceiling(&self, class: Option<&str>) {
        let class = class.unwrap_or(by_class::CONSUMERS);
        *by_class::counter(&mut self.0.lock().over_ceiling, class) += 1;
    }
}
