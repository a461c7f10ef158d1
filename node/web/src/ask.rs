//! Access to the admin API, the only source of data for pages.

use futures::channel::oneshot;
use futures::future::{BoxFuture, join, join_all};
use placement_wire::upstream::Errors;
use serde::de::DeserializeOwned;

/// Callback for the status and the body of a response. It may run for a second.
pub type Read = Box<dyn FnOnce(u16, &[u8]) + Send>;

/// Status and reason if there is no response of the API to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status of the response.
    pub status: u16,
    /// The reason, as readable text.
    pub detail: String,
}

/// Whether a page can do without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// There is no page without it.
    Required,
    /// The page shows it if it arrives soon.
    Optional,
}

/// The admin API. It has no method other than GET, so a page cannot change anything.
pub trait Ask: Sync {
    /// Requests a path with its query, such as `/v1/status`, and passes the response to `read`.
    /// With `is_local`, the response may show the local state of a node, which needs no quorum.
    /// Time and body size are limited.
    fn get<'a>(
        &'a self,
        path: &'a str,
        is_local: bool,
        need: Need,
        read: Read,
    ) -> BoxFuture<'a, Result<(), Refusal>>;

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

    /// The response cannot be parsed, for example because the node is faulty.
    fn unreadable() -> Self {
        Self {
            status: 502,
            message: "The API sent a response in a format unknown to this version.".to_owned(),
        }
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

    /// Whether a logged-in user requests the page, and not an operator.
    pub(crate) fn is_user_session(&self) -> bool {
        self.api.user().is_some()
    }

    pub(crate) async fn get<T: Answer>(&mut self, path: String) -> Result<T, Failure> {
        let answer = self.answer(&path, Need::Required).await;
        self.asked.push(path);
        answer
    }

    /// The response that the page can do without, if it arrives soon.
    pub(crate) async fn glance<T: Answer>(&mut self, path: String) -> Option<T> {
        let answer = self.answer(&path, Need::Optional).await;
        self.asked.push(path);
        answer.ok()
    }

    /// Sends all requests concurrently. Responses are in the order of the paths.
    pub(crate) async fn all<T: Answer>(&mut self, paths: Vec<String>) -> Vec<Result<T, Failure>> {
        let answers = join_all(paths.iter().map(|path| self.answer(path, Need::Required))).await;
        self.asked.extend(paths);
        answers
    }

    /// Like [`Self::all`], with one more request whose response has another type.
    pub(crate) async fn all_and_one<T: Answer, U: Answer>(
        &mut self,
        paths: Vec<String>,
        other: String,
    ) -> (Vec<Result<T, Failure>>, Result<U, Failure>) {
        let answers = join_all(paths.iter().map(|path| self.answer(path, Need::Required)));
        let answers = join(answers, self.answer(&other, Need::Required)).await;
        self.asked.extend(paths);
        self.asked.push(other);
        answers
    }

    async fn answer<T: Answer>(&self, path: &str, need: Need) -> Result<T, Failure> {
        let (sender, answer) = oneshot::channel();
        // Sending fails if the page is no longer requested.
        let read: Read = Box::new(|status, body| drop(sender.send(success(status, body))));
        if let Err(refusal) = self.api.get(path, self.is_local, need, read).await {
            return Err(Failure {
                status: refusal.status,
                message: refusal.detail,
            });
        }
        answer.await.unwrap_or_else(|_| Err(Failure::unreadable()))
    }
}

/// The type that a response is parsed as.
pub(crate) trait Answer: DeserializeOwned + Send + 'static {}

impl<T: DeserializeOwned + Send + 'static> Answer for T {}

/// The body of a success, or the error with its message.
fn success<T: Answer>(status: u16, body: &[u8]) -> Result<T, Failure> {
    if (200..300).contains(&status) {
        return serde_json::from_slice(body).map_err(|_| Failure::unreadable());
    }
    let errors: Errors = serde_json::from_slice(body).unwrap_or_default();
    let details: Vec<String> = errors
        .errors
        .into_iter()
        .filter_map(|one| one.detail)
        .collect();
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
