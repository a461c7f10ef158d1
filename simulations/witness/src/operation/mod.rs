//! The operations of a simulated client. `write` and `question` encode them in HTTP independently
//! of the product's code, since the tests also cover the decoding by a node.

mod question;
mod write;

use std::fmt;

use serde_json::Value;

pub use question::{Question, QuestionKind};
pub use write::Write;
pub(crate) use write::{chosen, claims, consumers, record};

/// An operation of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// A request that changes something.
    Write(Write),
    /// A question, with its consistency level.
    Read(Question, Level),
}

/// Consistency level of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// No header; the default is linearizable.
    Default,
    /// `linearizable` in the header.
    Linearizable,
    /// `session`: the state at this token or later.
    Session(Token),
    /// `bounded`, with the maximum staleness in milliseconds.
    Bounded(u64),
    /// `local`: the state of the node.
    Local,
}

/// A `Placement-Index`. Clients treat it as opaque; the checker does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// Identifies the history of a cluster.
    pub epoch: u64,
    /// Log index in that history.
    pub index: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.index)
    }
}

impl Token {
    /// Parses a token of the form `epoch.index`.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, index) = text.split_once('.')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            index: index.parse().ok()?,
        })
    }
}

/// The parts of an HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: &'static str,
    /// Path and query of the URL.
    pub path: String,
    /// Minor part of the microversion `1.minor`.
    pub minor: u8,
    /// JSON body, if any.
    pub body: Option<Value>,
    /// Header `Placement-Consistency`, if any.
    pub consistency: Option<String>,
    /// Header `Placement-Min-Index`, if any.
    pub min_index: Option<String>,
    /// Header `X-OpenStack-Request-Id`, if any.
    pub request_id: Option<String>,
}

impl Operation {
    /// The operation as an HTTP request.
    pub fn request(&self) -> Request {
        let (question, level) = match self {
            Operation::Write(write) => return write.request(),
            Operation::Read(question, level) => (question, level),
        };
        let (consistency, min_index) = match level {
            Level::Default => (None, None),
            Level::Linearizable => (Some("linearizable".to_owned()), None),
            Level::Session(token) => (Some("session".to_owned()), Some(token.to_string())),
            Level::Bounded(ms) => {
                let seconds = format!("{}.{:03}", ms / 1000, ms % 1000);
                (Some(format!("bounded;max={seconds}")), None)
            }
            Level::Local => (Some("local".to_owned()), None),
        };
        Request {
            consistency,
            min_index,
            ..bare("GET", question.path(), question.minor, None)
        }
    }

    /// Name of the kind of operation, for counts.
    pub fn kind(&self) -> &'static str {
        match self {
            Operation::Write(write) => write.command.name(),
            Operation::Read(question, _) => question.asked.kind(),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} 1.{}", self.method, self.path, self.minor)?;
        let more = [&self.consistency, &self.min_index, &self.request_id];
        for more in more.into_iter().flatten() {
            write!(f, " {more}")?;
        }
        match &self.body {
            Some(body) => write!(f, " {body}"),
            None => Ok(()),
        }
    }
}

fn bare(method: &'static str, path: String, minor: u8, body: Option<Value>) -> Request {
    Request {
        method,
        path,
        minor,
        body,
        consistency: None,
        min_index: None,
        request_id: None,
    }
}
