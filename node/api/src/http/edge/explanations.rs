//! Explains requests for candidates: when it is asked to, and empty answers by itself.

use std::fmt;
use std::time::Duration;

use placement_model::query::candidates::CandidateRequest;
use placement_model::query::explain::Explanation;
use serde::Serialize;
use serde_json::{Value, json};

use super::patience::Patience;
use crate::backend::{PlacementIndex, Position, View};
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{Query, parse_candidates, spell_candidates};

/// An explanation that takes longer says how far it came.
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);
/// How long it may wait for its turn: longer than another one takes.
pub(crate) const WAIT: Duration = Duration::from_secs(3);

/// A request over the state that it was answered from.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) view: View,
    pub(crate) request: CandidateRequest,
    pub(crate) version: Microversion,
}

/// An explanation with where it stands.
#[derive(Serialize)]
pub(crate) struct Explained {
    #[serde(flatten)]
    pub(crate) explanation: Explanation,
    position: Value,
    cost: Value,
}

impl Asked {
    /// Explains it.
    ///
    /// # Errors
    /// 400 if it has too many conditions.
    pub(crate) fn explain(&self, patience: &Patience) -> Result<Explained, ApiError> {
        let begun = patience.now();
        let watch = |_steps| patience.look();
        let spell = |request: &CandidateRequest| self.spell(request);
        let found = (self.view.state).explain(&self.request, Box::new(watch), &spell);
        let found = found.map_err(|error| ApiError::bad_request(error.to_string()))?;
        let spent = patience.now().saturating_sub(begun);
        let Position { index, node, .. } = self.view.position;
        let index = index.map(|index| index.to_string());
        Ok(Explained {
            position: json!({ "index": index, "node": node }),
            cost: json!({ "ms": spent.as_micros() as f64 / 1000.0, "steps": found.steps }),
            explanation: found,
        })
    }

    /// A request as a query; `None` if no query of this version asks for it.
    fn spell(&self, request: &CandidateRequest) -> Option<String> {
        let spelled = spell_candidates(request);
        let query = Query::parse_at_most(usize::MAX, &spelled).ok()?;
        parse_candidates(&query, self.version).ok()?;
        Some(spelled)
    }
}

/// As the header `Placement-Index` has it.
impl fmt::Display for PlacementIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.index)
    }
}
