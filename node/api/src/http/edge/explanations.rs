//! Explanations of candidate requests: for `explain` requests and for searches without candidates.

use std::time::Duration;

use placement_model::query::candidates::CandidateRequest;
use placement_model::query::explain::Explanation;
use placement_wire::explain as wire;

use super::patience::Patience;
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{Query, parse_candidates, spell_candidates};
use crate::http::wire::{explanation, own};
use placement_base::backend::{Position, View};

/// After this time an explanation stops and returns its partial result.
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);
/// Time limit for waiting in the queue: longer than the explanation in front may take.
pub(crate) const WAIT: Duration = Duration::from_secs(3);

/// A request and the state from which it was answered.
#[derive(Clone)]
pub(crate) struct AnsweredRequest {
    pub(crate) view: View,
    pub(crate) request: CandidateRequest,
    pub(crate) version: Microversion,
}

/// An explanation with its position in the history and its cost.
pub(crate) struct Explained {
    pub(crate) explanation: Explanation,
    position: Position,
    spent: Duration,
}

impl Explained {
    /// The explanation as the response contains it.
    pub(crate) fn shown(&self) -> wire::Explained<'_> {
        wire::Explained {
            explanation: explanation::shown(&self.explanation),
            position: own::position(&self.position),
            cost: wire::Cost {
                ms: self.spent.as_micros() as f64 / 1000.0,
                steps: self.explanation.steps,
            },
        }
    }
}

impl AnsweredRequest {
    /// Explains which conditions of the request exclude which trees.
    ///
    /// # Errors
    /// 400 if the request has too many conditions.
    pub(crate) fn explain(&self, patience: &Patience) -> Result<Explained, ApiError> {
        let begun = patience.now();
        let watch = |_steps| patience.check();
        let spell = |request: &CandidateRequest| self.spell(request);
        let found = (self.view.state)
            .explain(&self.request, Box::new(watch), &spell)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(Explained {
            explanation: found,
            position: self.view.position,
            spent: patience.now().saturating_sub(begun),
        })
    }

    /// Writes a request as a query string; `None` if this microversion cannot express it.
    fn spell(&self, request: &CandidateRequest) -> Option<String> {
        let spelled = spell_candidates(request);
        let query = Query::parse_at_most(usize::MAX, &spelled).ok()?;
        parse_candidates(&query, self.version).ok()?;
        Some(spelled)
    }
}
