//! The limits of projects that writes of one partition exceed on this node: numbers and log lines.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use placement_model::types::{LimitExcess, LimitedResource, ProjectId};

use super::by_class;
use placement_base::log_messages::log;

/// The effect of a limit on a write that exceeds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitOutcome {
    /// The write is carried out.
    Reported,
    /// The write is refused.
    Refused,
}

impl LimitOutcome {
    /// The name in metrics and log lines.
    fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Refused => "refused",
        }
    }
}

/// Numbers of exceeded limits by resource: a resource class, `consumers` for limits on the number
/// of consumers, or `other` for all but the first 64 classes.
#[derive(Debug, Clone)]
pub struct LimitCounts {
    /// Exceeded by writes that were carried out.
    pub reported: BTreeMap<String, u64>,
    /// Exceeded by writes that were refused.
    pub refused: BTreeMap<String, u64>,
}

impl Default for LimitCounts {
    fn default() -> Self {
        Self {
            reported: by_class::new(),
            refused: by_class::new(),
        }
    }
}

impl LimitCounts {
    /// Adds the numbers of another partition.
    pub fn add(&mut self, other: Self) {
        by_class::add(&mut self.reported, other.reported);
        by_class::add(&mut self.refused, other.refused);
    }

    /// The numbers by resource, with the name of each outcome.
    pub fn by_outcome(self) -> [(&'static str, BTreeMap<String, u64>); 2] {
        [
            (LimitOutcome::Reported.as_str(), self.reported),
            (LimitOutcome::Refused.as_str(), self.refused),
        ]
    }

    fn of(&mut self, outcome: LimitOutcome) -> &mut BTreeMap<String, u64> {
        match outcome {
            LimitOutcome::Reported => &mut self.reported,
            LimitOutcome::Refused => &mut self.refused,
        }
    }
}

/// Maximum number of refusals that are remembered.
const REFUSALS_MAX: usize = 256;

/// Counts and logs the exceeded limits of one partition on this node.
#[derive(Default)]
pub(crate) struct ExceededLimits(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    counts: LimitCounts,
    /// The latest refusals, each once. nova-scheduler sends a refused write again for each other
    /// host, with the same request id.
    refusals: VecDeque<Refused>,
}

#[derive(PartialEq)]
struct Refused {
    request_id: String,
    project: ProjectId,
    resource: LimitedResource,
}

impl ExceededLimits {
    /// The numbers so far.
    pub(crate) fn counts(&self) -> LimitCounts {
        self.0.lock().counts.clone()
    }

    /// Counts a limit that the write of this request exceeds, and logs it unless it has refused
    /// another write with the same request id. Returns whether it is logged.
    pub(crate) fn note(
        &self,
        excess: &LimitExcess,
        outcome: LimitOutcome,
        request_id: &str,
    ) -> bool {
        let resource = excess.resource.to_string();
        let mut noted = self.0.lock();
        *by_class::counter(noted.counts.of(outcome), &resource) += 1;
        let is_new = outcome == LimitOutcome::Reported || noted.is_new(excess, request_id);
        drop(noted);
        if !is_new {
            return false;
        }
        log!(
            PROJECT_OVER_LIMIT,
            project = excess.project.as_str(),
            resource,
            used = excess.used,
            requested = excess.requested,
            limit = excess.limit,
            outcome = outcome.as_str(),
            request_id,
            "a write exceeds a limit of a project"
        );
        true
    }
}

impl Noted {
    /// Remembers a refusal. Returns whether it was not remembered.
    fn is_new(&mut self, excess: &LimitExcess, request_id: &str) -> bool {
        let refused = Refused {
            request_id: request_id.to_owned(),
            project: excess.project.clone(),
            resource: excess.resource.clone(),
        };
        if self.refusals.contains(&refused) {
            return false;
        }
        if self.refusals.len() == REFUSALS_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back(refused);
        true
    }
}
