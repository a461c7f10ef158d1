//! What the clients saw, in simulated time. The same seed gives the same history, to the byte.

use std::fmt::Write as _;
use std::time::Duration;

use placement_model::types::PartitionId;
use xxhash_rust::xxh3::xxh3_128;

use crate::operation::{Operation, Token};

/// All requests of one run, in the order in which they were sent.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The partition in which all clients are.
    pub partition: PartitionId,
    /// Up to here the log is of before: it was restored from a backup.
    pub behind: u64,
    /// One per request.
    pub events: Vec<Event>,
    /// What our own client made of several requests, where it was asked.
    pub calls: Vec<Call>,
    /// The furthest place in the log that any client was shown.
    pub furthest: Option<Token>,
}

/// What our own client was asked for once: it may have sent several requests.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its requests, by their numbers, in the order in which they were sent.
    pub requests: Vec<usize>,
    /// Whether it may send a write again of which it doesn't know what came of it.
    pub repeats_unknown: bool,
    /// What it reported.
    pub reported: Reported,
}

/// What our own client reports in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported {
    /// This status was answered.
    Answered(u16),
    /// Nothing was committed.
    NothingCommitted,
    /// Whether anything was committed is not known.
    Unknown,
    /// Something else.
    Other(String),
}

/// One request and what came of it.
#[derive(Debug, Clone)]
pub struct Event {
    /// Which client asked.
    pub client: usize,
    /// Which node it asked.
    pub node: u64,
    /// What it asked.
    pub operation: Operation,
    /// When it was sent, since the start of the simulation.
    pub sent: Duration,
    /// When the answer was there or the client gave up; `None`: the run ended before.
    pub ended: Option<Duration>,
    /// What the client got.
    pub end: End,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing yet.
    Open,
    /// An HTTP answer.
    Answer(Answer),
    /// The connection could not be made: the node never saw the request.
    NotSent(String),
    /// The connection broke or the client lost patience: a write may have happened.
    Lost(String),
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// `Placement-Index`.
    pub index: Option<Token>,
    /// `Placement-Node`.
    pub node: Option<u64>,
    /// `Placement-Known-Leader`.
    pub known_leader: Option<u64>,
    /// `Placement-Staleness`, if it is known.
    pub staleness: Option<Duration>,
    /// `Placement-Effective-Consistency`.
    pub effective: Option<String>,
    /// The body as it came.
    pub body: String,
}

impl Answer {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        self.parsed().unwrap_or_default()
    }

    /// The body as JSON, if it is any.
    pub fn parsed(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.body).ok()
    }

    /// The machine-readable code of an error body.
    pub fn code(&self) -> Option<String> {
        Some(self.json()["errors"][0]["code"].as_str()?.to_owned())
    }
}

impl End {
    /// The answer, if one came.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            End::Answer(answer) => Some(answer),
            End::Open | End::NotSent(_) | End::Lost(_) => None,
        }
    }
}

impl Event {
    /// The answer, if one came.
    pub fn answer(&self) -> Option<&Answer> {
        self.end.answer()
    }

    /// One line that says everything.
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
    /// Notes that a request is being sent; the number names it in [`History::end`].
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
        });
        self.events.len() - 1
    }

    /// Notes what came of a request.
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
