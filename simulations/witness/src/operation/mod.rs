//! What a simulated client can ask for. How it is asked in HTTP is in `write` and `question`, in
//! code of our own: that a node understands the same is part of what is tested.

mod question;
mod write;

use std::fmt;

use serde_json::Value;

pub use question::{Asked, Question};
pub use write::Write;
pub(crate) use write::record;

/// One request of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Changes something.
    Write(Write),
    /// Asks something.
    Read(Question, Level),
}

/// What a read is to promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// No header: linearizable by default.
    Default,
    /// `linearizable`, by header.
    Linearizable,
    /// `session`, at or after this token.
    Session(Token),
    /// `bounded`, in milliseconds.
    Bounded(u64),
    /// `local`.
    Local,
}

/// A `Placement-Index`: opaque to clients, but not to the checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// Which history.
    pub epoch: u64,
    /// How far in it.
    pub index: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.index)
    }
}

impl Token {
    /// Reads `epoch.index`.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, index) = text.split_once('.')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            index: index.parse().ok()?,
        })
    }
}

/// An HTTP request in the making.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `GET`, `PUT`, …
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// The microversion is `1.minor`.
    pub minor: u8,
    /// JSON, if there is a body.
    pub body: Option<Value>,
    /// `Placement-Consistency`, if the client says what it wants.
    pub consistency: Option<String>,
    /// `Placement-Min-Index`, if any.
    pub min_index: Option<String>,
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

    /// What kind of operation it is, for the counts.
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
        for more in [&self.consistency, &self.min_index].into_iter().flatten() {
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
    }
}
