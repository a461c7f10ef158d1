//! Consistency of reads, and the position of responses.

use std::time::Duration;

use http::HeaderMap;

/// Request header: the requested consistency.
pub(crate) const CONSISTENCY: &str = "placement-consistency";
/// Request header: the token that a `session` read must include.
pub(crate) const MIN_INDEX: &str = "placement-min-index";
const INDEX: &str = "placement-index";
const NODE: &str = "placement-node";
const KNOWN_LEADER: &str = "placement-known-leader";
const STALENESS: &str = "placement-staleness";
const EFFECTIVE: &str = "placement-effective-consistency";

/// The token of the `Placement-Index` header: a position in the history of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexToken(String);

impl IndexToken {
    /// A token from a response.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The value for `Placement-Min-Index`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `self` is a later position than `other`. Positions in different histories cannot be
    /// compared; then `self` counts as later.
    pub(crate) fn supersedes(&self, other: &Self) -> bool {
        match (self.parts(), other.parts()) {
            (Some((epoch, index)), Some((other_epoch, other_index))) if epoch == other_epoch => {
                index > other_index
            }
            _ => self != other,
        }
    }

    fn parts(&self) -> Option<(&str, u64)> {
        let (epoch, index) = self.0.rsplit_once('.')?;
        Some((epoch, index.parse().ok()?))
    }
}

/// Consistency of a read (`Placement-Consistency`).
#[derive(Debug, Clone, PartialEq)]
pub enum Consistency {
    /// Includes every write that was acknowledged before the request. Default of the service.
    Linearizable,
    /// Includes the state at the position of this token; needs no contact with the leader.
    Session(IndexToken),
    /// State that is provably at most this old.
    Bounded(Duration),
    /// Local state of the node, even without a quorum.
    Local,
}

impl Consistency {
    /// The value of the `Placement-Consistency` header.
    pub(crate) fn header(&self) -> String {
        match self {
            Self::Linearizable => "linearizable".to_owned(),
            Self::Session(_) => "session".to_owned(),
            Self::Bounded(max) => format!("bounded;max={}", max.as_secs_f64()),
            Self::Local => "local".to_owned(),
        }
    }
}

/// Position of a response, from the headers of the node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Position {
    /// `Placement-Index`: position in the history.
    pub index: Option<IndexToken>,
    /// `Placement-Node`: number of the node that answered. The header may append its site.
    pub node: Option<u64>,
    /// `Placement-Known-Leader`: the leader known to the node.
    pub known_leader: Option<u64>,
    /// `Placement-Staleness`: maximum age of the state.
    pub staleness: Option<Duration>,
    /// `Placement-Effective-Consistency`: the consistency that the response has.
    pub effective_consistency: Option<String>,
}

impl Position {
    /// Parses the headers of a response; missing or invalid values are `None`.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        Self {
            index: text(INDEX).map(IndexToken::new),
            node: text(NODE).and_then(|value| value.split(';').next()?.parse().ok()),
            known_leader: text(KNOWN_LEADER).and_then(|value| value.parse().ok()),
            staleness: text(STALENESS)
                .and_then(|value| value.parse().ok())
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            effective_consistency: text(EFFECTIVE).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_index_of_one_history_supersedes() {
        let token = |text: &str| IndexToken::new(text);
        assert!(token("7.10").supersedes(&token("7.9")));
        assert!(!token("7.9").supersedes(&token("7.10")));
        assert!(!token("7.9").supersedes(&token("7.9")));
        assert!(token("8.1").supersedes(&token("7.9")));
    }

    #[test]
    fn bounded_states_seconds() {
        let half = Consistency::Bounded(Duration::from_millis(500));
        assert_eq!(half.header(), "bounded;max=0.5");
    }
}
