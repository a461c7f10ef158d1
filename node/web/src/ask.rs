//! Where pages get their content: the operators' API, and nothing else.

use futures::future::{BoxFuture, join_all};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::words::list;

/// What the API answers to a GET.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; null where it is no JSON.
    pub body: Value,
}

/// A list of which a part is enough.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum List {
    /// There may be 100,000.
    ResourceProviders(Vec<Provider>),
}

#[derive(Deserialize)]
struct Provider {
    /// Most of the answer.
    #[serde(default, rename = "links")]
    _links: IgnoredAny,
    #[serde(flatten)]
    shown: Map<String, Value>,
}

impl Answer {
    /// The part of an answer that pages show.
    pub fn read(status: u16, body: &[u8]) -> Self {
        let body = match serde_json::from_slice(body) {
            Ok(List::ResourceProviders(all)) => {
                let shown = all.into_iter().map(|one| one.shown);
                Value::from_iter([("resource_providers", Value::from_iter(shown))])
            }
            Err(_) => serde_json::from_slice(body).unwrap_or_default(),
        };
        Self { status, body }
    }
}

/// The operators' API. It has no other method than GET, so a page can change nothing.
pub trait Ask: Sync {
    /// Asks for a path with its query, such as `/v1/status`. Content may be what the node has, with
    /// or without a quorum, if `is_local`. Takes a bounded time and gives a bounded body.
    fn get<'a>(&'a self, path: &'a str, is_local: bool) -> BoxFuture<'a, Answer>;

    /// The name of the user who has logged in to see the page, if that was necessary.
    fn user(&self) -> Option<&str> {
        None
    }
}

/// Why a page cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn not_found(what: &str) -> Self {
        let message = format!("{what} Begin at the overview.");
        let status = 404;
        Self { status, message }
    }
}

/// The questions of one page, which the page shows.
pub(crate) struct Questions<'a> {
    api: &'a dyn Ask,
    is_local: bool,
    pub(crate) asked: Vec<String>,
}

impl<'a> Questions<'a> {
    pub(crate) fn new(api: &'a dyn Ask, is_local: bool) -> Self {
        Self {
            api,
            is_local,
            asked: Vec::new(),
        }
    }

    /// Whether one who has logged in asks, and not an operator.
    pub(crate) fn are_of_a_user(&self) -> bool {
        self.api.user().is_some()
    }

    pub(crate) async fn get(&mut self, path: String) -> Result<Value, Failure> {
        let answer = self.api.get(&path, self.is_local).await;
        self.asked.push(path);
        success(answer)
    }

    /// Asks all at once. The answers come in the order of the paths.
    pub(crate) async fn all(&mut self, paths: Vec<String>) -> Vec<Result<Value, Failure>> {
        let questions = paths.iter().map(|path| self.api.get(path, self.is_local));
        let answers = join_all(questions).await;
        self.asked.extend(paths);
        answers.into_iter().map(success).collect()
    }
}

/// The body, or what the error in it says.
fn success(answer: Answer) -> Result<Value, Failure> {
    let Answer { status, body } = answer;
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let errors = list(&body["errors"]).iter();
    let details: Vec<&str> = errors.filter_map(|one| one["detail"].as_str()).collect();
    let message = match details.as_slice() {
        [] => format!("The API has answered with status {status}, and no reason."),
        // In one line.
        details => {
            let all = details.join(" ");
            all.split_whitespace().collect::<Vec<_>>().join(" ")
        }
    };
    // A page cannot pass anything on, such as a redirection.
    let status = if status < 400 { 502 } else { status };
    Err(Failure { status, message })
}
