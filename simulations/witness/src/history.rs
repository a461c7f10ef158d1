//! The requests and answers of clients, in simulated time. The same seed gives the same history,
//! byte for byte.

use std::fmt::Write as _;
use std::time::Duration;

use placement_model::types::PartitionId;
use xxhash_rust::xxh3::xxh3_128;

use crate::operation::{Operation, Token};

/// All requests of one run, in the order of sending.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The partition of the clients.
    pub partition: PartitionId,
    /// The state up to this index was restored from a backup.
    pub behind: u64,
    /// One event per request.
    pub events: Vec<Event>,
    /// Results that our client library reported for its requests.
    pub calls: Vec<Call>,
    /// The highest index that any client was shown.
    pub furthest: Option<Token>,
}

/// One call of our client library, which may send several requests.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its requests, as indexes into the events, in the order of sending.
    pub requests: Vec<usize>,
    /// Whether the library may repeat a write whose outcome is unknown.
    pub repeats_unknown: bool,
    /// The result that the library reported.
    pub reported: Reported,
}

/// Result that our client library reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported {
    /// An answer with this status.
    Answered(u16),
    /// The write was not committed.
    NothingCommitted,
    /// It is unknown whether anything was committed.
    Unknown,
    /// Another error, as text.
    Other(String),
}

/// A request and its outcome.
#[derive(Debug, Clone)]
pub struct Event {
    /// Number of the client.
    pub client: usize,
    /// The node that got the request.
    pub node: u64,
    /// The request that was sent.
    pub operation: Operation,
    /// Time of sending, since the start of the simulation.
    pub sent: Duration,
    /// Time of the answer or of the timeout; `None`: the run ended before.
    pub ended: Option<Duration>,
    /// The outcome so far.
    pub end: End,
    /// The change log of the node at the time of the answer, if it is known and the node has not
    /// restarted since the request was sent.
    pub change_log: Option<ChangeLogRange>,
}

/// The entries that a node's change log contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLogRange {
    /// All entries after this index are contained.
    pub after: u64,
    /// Index of the last entry.
    pub last: u64,
}

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// There is no outcome yet.
    Open,
    /// The node sent an HTTP answer.
    Answer(Answer),
    /// The connection failed: the node never saw the request.
    NotSent(String),
    /// The connection broke or the client timed out: a write may have been executed.
    Lost(String),
}

/// The checked parts of an HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code of the answer.
    pub status: u16,
    /// Header `Placement-Index`, if present.
    pub index: Option<Token>,
    /// Header `Placement-Node`, if present.
    pub node: Option<u64>,
    /// Header `Placement-Known-Leader`, if present.
    pub known_leader: Option<u64>,
    /// Header `Placement-Staleness`, if present.
    pub staleness: Option<Duration>,
    /// Header `Placement-Effective-Consistency`, if present.
    pub effective: Option<String>,
    /// The body as text, without parsing.
    pub body: String,
}

impl Answer {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        self.parsed().unwrap_or_default()
    }

    /// The body as JSON, if it is valid.
    pub fn parsed(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.body).ok()
    }

    /// The machine-readable code of an error body.
    pub fn code(&self) -> Option<String> {
        Some(self.json()["errors"][0]["code"].as_str()?.to_owned())
    }
}

impl End {
    /// The answer, if there is one.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            End::Answer(answer) => Some(answer),
            End::Open | End::NotSent(_) | End::Lost(_) => None,
        }
    }
}

impl Event {
    /// The answer, if there is one.
    pub fn answer(&self) -> Option<&Answer> {
        self.end.answer()
    }

    /// The event as one line.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{:>7.3} to {:>7} s client{} node{} {} -> ",
            self.sent.as_secs_f64(),
            self.ended.map_or_else(
                || "-".to_owned(),
                |ended| format!("{:.3}", ended.as_secs_f64())
            ),
            self.client,
            self.node,
            self.operation.request(),
        );
        match &self.end {
            End::Open => line.push_str("no end"),
            End::NotSent(why) => write!(line, "not sent: {why}").expect("strings take all"),
            End::Lost(why) => write!(line, "lost: {why}").expect("strings take all"),
            End::Answer(answer) => write!(
                line,
                "{} at {} by {:?} leader {:?} {} {}",
                answer.status,
                answer
                    .index
                    .map_or_else(|| "-".to_owned(), |index| index.to_string()),
                answer.node,
                answer.known_leader,
                answer.effective.as_deref().unwrap_or("-"),
                answer.body,
            )
            .expect("strings take all"),
        }
        line
    }
}

impl History {
    /// Records the sending of a request. Returns its number for [`History::end`].
    pub fn begin(
        &mut self,
        client: usize,
        node: u64,
        operation: Operation,
        sent: Duration,
    ) -> usize {
        self.events.push(Event {
            client,
            node,
            operation,
            sent,
            ended: None,
            end: End::Open,
            change_log: None,
        });
        self.events.len() - 1
    }

    /// Records the outcome of a request.
    pub fn end(&mut self, event: usize, ended: Duration, end: End) {
        if let End::Answer(answer) = &end
            && answer.status < 500
        {
            self.furthest = self.furthest.max(answer.index);
        }
        let event = &mut self.events[event];
        event.ended = Some(ended);
        event.end = end;
    }

    /// The whole history as text, one line per request.
    pub fn text(&self) -> String {
        self.events
            .iter()
            .map(|event| event.line() + "\n")
            .collect()
    }

    /// A digest of [`History::text`].
    pub fn digest(&self) -> u128 {
        xxh3_128(self.text().as_bytes())
    }
}
