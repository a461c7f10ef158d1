//! What a read promises, and where an answer stands.

use std::time::Duration;

use http::HeaderMap;

/// Request header: the promise a read asks for.
pub(crate) const CONSISTENCY: &str = "placement-consistency";
/// Request header: the token a `session` read must have reached.
pub(crate) const MIN_INDEX: &str = "placement-min-index";
const INDEX: &str = "placement-index";
const NODE: &str = "placement-node";
const KNOWN_LEADER: &str = "placement-known-leader";
const STALENESS: &str = "placement-staleness";
const EFFECTIVE: &str = "placement-effective-consistency";

/// The token of the `Placement-Index` header: a place in the history of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexToken(String);

impl IndexToken {
    /// A token as a response gave it.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The text that goes into `Placement-Min-Index`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `self` is a later place than `other`. Places in different histories cannot be
    /// compared; then the newer answer counts.
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

/// What a read promises (`Placement-Consistency`).
#[derive(Debug, Clone, PartialEq)]
pub enum Consistency {
    /// At or after every write acknowledged anywhere before the request. The service's default.
    Linearizable,
    /// At or after the token; no contact with the leader.
    Session(IndexToken),
    /// Provably at most this old.
    Bounded(Duration),
    /// What the node has, quorum or not.
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

/// Where an answer stands: what its node reports of itself in the headers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Position {
    /// `Placement-Index`: the place in the history that the answer shows.
    pub index: Option<IndexToken>,
    /// `Placement-Node`: who answered. Behind its number the header may say where it stands.
    pub node: Option<u64>,
    /// `Placement-Known-Leader`: the leader the node knew.
    pub known_leader: Option<u64>,
    /// `Placement-Staleness`: how old the state may be at most.
    pub staleness: Option<Duration>,
    /// `Placement-Effective-Consistency`: the promise that was kept.
    pub effective_consistency: Option<String>,
}

impl Position {
    /// Reads the headers of a response; what is absent or not understood is `None`.
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
    fn a_session_follows_the_greatest_index_of_one_history() {
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
