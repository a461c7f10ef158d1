//! What went wrong in the attempts of one request.

use std::sync::Mutex;
use std::time::Duration;

use crate::connect_error::Obstacle;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::transport::TransportError;

/// Why an attempt failed, and what may follow.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// `Retry-After` of the node.
    pub(crate) retry_after: Option<Duration>,
    /// Whether it was a write with an unknown outcome; otherwise nothing was committed.
    pub(crate) unknown: bool,
    pub(crate) kind: FailureKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The node answered that it cannot serve the request now.
    Answer,
    /// There was no answer.
    Silence,
    /// A repetition fails in the same way.
    Permanent(Obstacle),
}

impl Failure {
    /// An attempt without a response.
    pub(crate) fn from_transport(error: &TransportError, is_read: bool) -> Self {
        let (kind, is_lost) = match error {
            TransportError::NotSent(_) => (FailureKind::Silence, false),
            TransportError::Unusable(obstacle, _) => (FailureKind::Permanent(*obstacle), false),
            TransportError::Lost(_) => (FailureKind::Silence, true),
        };
        Self {
            reason: error.to_string(),
            retry_after: None,
            unknown: is_lost && !is_read,
            kind,
        }
    }
}

/// The last failure of each endpoint.
pub(crate) struct Failures<'a> {
    endpoints: &'a [Endpoint],
    last: Mutex<Vec<Option<Failure>>>,
}

impl<'a> Failures<'a> {
    pub(crate) fn new(endpoints: &'a [Endpoint]) -> Self {
        Self {
            endpoints,
            last: Mutex::new(vec![None; endpoints.len()]),
        }
    }

    /// Records the failure of an attempt. Returns whether further attempts at this endpoint are
    /// useless.
    pub(crate) fn add(&self, at: usize, failure: Failure) -> bool {
        let is_hopeless = matches!(failure.kind, FailureKind::Permanent(_));
        self.last.lock().expect("no panic while locked")[at] = Some(failure);
        is_hopeless
    }

    /// The last failure of an endpoint, as text; empty if it has none. The answer of an only node
    /// is not preceded by its endpoint.
    pub(crate) fn text(&self, at: usize) -> String {
        let last = self.last.lock().expect("no panic while locked");
        let Some(failure) = &last[at] else {
            return String::new();
        };
        let is_only = last.len() == 1 && failure.kind == FailureKind::Answer;
        if is_only {
            failure.reason.clone()
        } else {
            format!("{}: {}", self.endpoints[at], failure.reason)
        }
    }

    /// The last failures of the endpoints that failed so far.
    fn all(&self) -> String {
        let all = (0..self.endpoints.len()).map(|at| self.text(at));
        let failed: Vec<String> = all.filter(|one| !one.is_empty()).collect();
        failed.join("; ")
    }

    /// What happened so far, and for how long the client goes on.
    pub(crate) fn so_far(&self, rest: Duration) -> String {
        let seconds = rest.as_secs_f64().ceil();
        match self.all() {
            none if none.is_empty() => {
                let endpoints: Vec<_> = self.endpoints.iter().map(Endpoint::to_string).collect();
                let endpoints = match endpoints.as_slice() {
                    [first @ .., last] if !first.is_empty() => {
                        format!("{} and {last}", first.join(", "))
                    }
                    all => all.concat(),
                };
                format!("no answer yet from {endpoints}; trying for {seconds} s more")
            }
            failed => format!("no result yet; trying for {seconds} s more: {failed}"),
        }
    }

    /// The error if there is no further attempt. `unknown`: an attempt may have been committed.
    pub(crate) fn error(&self, is_read: bool, unknown: bool) -> Error {
        let named = |at| match self.text(at) {
            none if none.is_empty() => format!("{}: not asked in time", self.endpoints[at]),
            failed => failed,
        };
        let reason = (0..self.endpoints.len()).map(named).collect::<Vec<_>>();
        let reason = reason.join("; ");
        let last = self.last.lock().expect("no panic while locked");
        let kinds = || last.iter().flatten().map(|failure| failure.kind);
        let is_answered = kinds().any(|kind| kind == FailureKind::Answer);
        match (unknown, is_answered) {
            (true, _) => Error::OutcomeUnknown(reason),
            (false, true) if is_read => Error::Unavailable(reason),
            (false, true) => Error::NothingCommitted { reason },
            (false, false) => {
                let obstacles = kinds().filter_map(|kind| match kind {
                    FailureKind::Permanent(obstacle) => Some(obstacle),
                    _ => None,
                });
                let obstacles = obstacles.collect();
                Error::Unreachable { reason, obstacles }
            }
        }
    }
}
