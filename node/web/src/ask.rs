//! Access to the admin API, the only source of data for pages.

use futures::future::{BoxFuture, join_all};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::words::list;

/// Response of the API to a GET.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// HTTP status of the response.
    pub status: u16,
    /// The body; null if it is not JSON.
    pub body: Value,
}

/// A list of which pages need only a part.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum List {
    /// May have 100,000 elements.
    ResourceProviders(Vec<Provider>),
}

#[derive(Deserialize)]
struct Provider {
    /// Links, which are most of the response and never shown.
    #[serde(default, rename = "links")]
    _links: IgnoredAny,
    #[serde(flatten)]
    shown: Map<String, Value>,
}

impl Answer {
    /// Parses a response and drops the parts that pages do not show.
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

/// The admin API. It has no method other than GET, so a page cannot change anything.
pub trait Ask: Sync {
    /// Requests a path with its query, such as `/v1/status`. With `is_local`, content may be the
    /// local state of a node, which needs no quorum. Time and body size are limited.
    fn get<'a>(&'a self, path: &'a str, is_local: bool) -> BoxFuture<'a, Answer>;

    /// Name of the logged-in user; `None` for operators.
    fn user(&self) -> Option<&str> {
        None
    }
}

/// Error page: status and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn not_found(what: &str) -> Self {
        let message = format!("{what} Go to the overview.");
        let status = 404;
        Self { status, message }
    }
}

/// The requests of one page, which the page lists.
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

    /// Whether a logged-in user asks, not an operator.
    pub(crate) fn are_of_a_user(&self) -> bool {
        self.api.user().is_some()
    }

    pub(crate) async fn get(&mut self, path: String) -> Result<Value, Failure> {
        let answer = self.api.get(&path, self.is_local).await;
        self.asked.push(path);
        success(answer)
    }

    /// Sends all requests concurrently. Responses are in the order of the paths.
    pub(crate) async fn all(&mut self, paths: Vec<String>) -> Vec<Result<Value, Failure>> {
        let questions = paths.iter().map(|path| self.api.get(path, self.is_local));
        let answers = join_all(questions).await;
        self.asked.extend(paths);
        answers.into_iter().map(success).collect()
    }
}

/// The body of a success, or the error with its message.
fn success(answer: Answer) -> Result<Value, Failure> {
    let Answer { status, body } = answer;
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let errors = list(&body["errors"]).iter();
    let details: Vec<&str> = errors.filter_map(|one| one["detail"].as_str()).collect();
    let message = match details.as_slice() {
        [] => format!("The API returned status {status} without a reason."),
        // Joined to one line.
        details => {
            let all = details.join(" ");
            all.split_whitespace().collect::<Vec<_>>().join(" ")
        }
    };
    // A redirect cannot be passed on; it is an error.
    let status = if status < 400 { 502 } else { status };
    Err(Failure { status, message })
}
