//! The project's own client library as one of the simulated clients: it chooses the node, waits,
//! retries safe requests and keeps a session. The history records each request that it sends, and
//! the result that it reports.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Uri;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Full;
use placement_client::{
    ApiRequest, Body, BoxFuture, Consistency, Error, Transport, TransportError, whole,
};
use placement_witness::http::{HOST, REQUEST_ID, answer};
use tokio::sync::{mpsc, oneshot};

use crate::history::{Answer, Call, End, Reported};
use crate::http::{API_PORT, node_name, send};
use crate::operation::{Level, Operation, Token};
use crate::parameters::OurClient;
use crate::shared::Shared;

/// Our client library in a run.
pub(crate) struct Library {
    client: placement_client::Client,
    repeats_unknown: bool,
    shared: Rc<Shared>,
    under_way: Rc<RefCell<CurrentOperation>>,
}

/// The current operation, and the indexes of its requests in the history.
#[derive(Default)]
struct CurrentOperation {
    operation: Option<Operation>,
    requests: Vec<usize>,
}

type Reply = oneshot::Sender<Result<Response<Bytes>, TransportError>>;

/// Passes requests to the task that can access the state shared by the clients of a run.
struct Wire(mpsc::UnboundedSender<(Request<Full<Bytes>>, Reply)>);

impl Transport for Wire {
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Body>, TransportError>> {
        let (reply, answered) = oneshot::channel();
        // If the task has ended, the reply channel is closed too.
        let _ = self.0.send((request, reply));
        Box::pin(async move {
            let gone = |_| Err(TransportError::NotSent("the run is over".to_owned()));
            let answer = answered.await.unwrap_or_else(gone);
            answer.map(|answer| answer.map(whole))
        })
    }
}

impl Library {
    /// Client `number` of the run. With `lies`, its transport reports unanswered requests as not
    /// sent.
    pub(crate) fn new(number: usize, shared: &Rc<Shared>, lies: bool) -> Self {
        let (sender, mut sent) = mpsc::unbounded_channel();
        let parameters = &shared.parameters;
        // Includes nodes that join later, since all initial nodes may be removed.
        let nodes = parameters.machines();
        let mut nodes: Vec<u64> = (0..nodes)
            .map(|step| (number as u64 + step) % nodes + 1)
            .collect();
        if let Some(regions) = &parameters.regions {
            // The nearest nodes first, as its documentation recommends.
            let here = regions.site_of_client(number);
            nodes.sort_by_key(|node| regions.way(here, regions.site(*node)));
        }
        let endpoints = (nodes.into_iter()).map(|node| format!("{}:{API_PORT}", node_name(node)));
        let client = placement_client::Client::over(endpoints, Wire(sender));
        let repeats_unknown = parameters.our_client == OurClient::Repeating;
        let mut client = client
            .expect("names of nodes are endpoints")
            .with_session()
            .with_patience(parameters.patience)
            .with_attempt_timeout(parameters.patience / 2);
        if repeats_unknown {
            client = client.repeating_unknown();
        }
        let under_way = Rc::<RefCell<CurrentOperation>>::default();
        let (task_shared, task_under_way) = (shared.clone(), under_way.clone());
        tokio::task::spawn_local(async move {
            while let Some((request, reply)) = sent.recv().await {
                attempt(number, &task_shared, &task_under_way, request, reply, lies).await;
            }
        });
        Self {
            client,
            repeats_unknown,
            shared: shared.clone(),
            under_way,
        }
    }

    /// Performs an operation and records the reported result. Returns the last answer.
    pub(crate) async fn perform(&self, operation: Operation) -> Option<Answer> {
        let request = request(&operation);
        *self.under_way.borrow_mut() = CurrentOperation {
            operation: Some(operation),
            requests: Vec::new(),
        };
        let reported = match self.client.request(request).await {
            Ok(response) => Reported::Answered(response.status.as_u16()),
            Err(
                Error::NothingCommitted { .. } | Error::Unreachable { .. } | Error::Unavailable(_),
            ) => Reported::NothingCommitted,
            Err(Error::OutcomeUnknown { .. }) => Reported::Unknown,
            Err(other) => Reported::Other(other.to_string()),
        };
        let requests = std::mem::take(&mut self.under_way.borrow_mut().requests);
        let mut history = self.shared.history.borrow_mut();
        let last = requests
            .last()
            .and_then(|last| history.events[*last].answer());
        let answer = last.cloned();
        history.calls.push(Call {
            requests,
            repeats_unknown: self.repeats_unknown,
            reported,
        });
        answer
    }
}

/// The library's request for an operation.
fn request(operation: &Operation) -> ApiRequest {
    let asked = operation.request();
    let method = Method::from_bytes(asked.method.as_bytes()).expect("a method of HTTP");
    let mut request = ApiRequest::new(method, &asked.path)
        .microversion(&format!("1.{}", asked.minor))
        .header("x-roles", "admin,service");
    if let Some(body) = &asked.body {
        request = request.json(body);
    }
    if let Some(id) = &asked.request_id {
        request = request.header(REQUEST_ID, id);
    }
    let Operation::Read(_, level) = operation else {
        return request;
    };
    match level {
        // The library's session provides the token.
        Level::Default | Level::Session(_) => request,
        Level::Linearizable => request.consistency(Consistency::Linearizable),
        Level::Bounded(ms) => request.consistency(Consistency::Bounded(Duration::from_millis(*ms))),
        Level::Local => request.consistency(Consistency::Local),
    }
}

/// Sends one request of the library.
async fn attempt(
    number: usize,
    shared: &Shared,
    under_way: &RefCell<CurrentOperation>,
    request: Request<Full<Bytes>>,
    mut reply: Reply,
    lies: bool,
) {
    let authority = request.uri().authority().expect("it names an endpoint");
    let node = authority
        .host()
        .trim_start_matches("node")
        .parse()
        .expect("endpoints are names of nodes");
    let asked = under_way.borrow().operation.clone();
    let operation = match asked.expect("an operation is in progress") {
        Operation::Read(question, _) => Operation::Read(question, promised(&request)),
        write @ Operation::Write(_) => write,
    };
    let event = shared.begin(number, node, operation);
    under_way.borrow_mut().requests.push(event);
    let sent = send(node, in_origin_form(request), shared.parameters.patience);
    let came = tokio::select! {
        biased;
        came = sent => came,
        () = reply.closed() => Err(End::Lost("the client stopped waiting".to_owned())),
    };
    let (end, reported) = match came {
        Ok(response) => (End::Answer(answer(&response)), Ok(response)),
        Err(end) => {
            let reported = match &end {
                End::Lost(why) if !lies => TransportError::Lost(why.clone()),
                End::Lost(why) | End::NotSent(why) => TransportError::NotSent(why.clone()),
                End::Open | End::Answer(_) => {
                    unreachable!("an unanswered request is the only error")
                }
            };
            (end, Err(reported))
        }
    };
    shared.end(event, end);
    // The client may have stopped waiting.
    let _ = reply.send(reported);
}

/// The consistency level that a request asks for.
fn promised(request: &Request<Full<Bytes>>) -> Level {
    let text = |name: &str| request.headers().get(name)?.to_str().ok();
    let token = text("placement-min-index").and_then(Token::parse);
    let seconds = |value: &str| value.strip_prefix("bounded;max=")?.parse().ok();
    match text("placement-consistency") {
        None => Level::Default,
        Some("linearizable") => Level::Linearizable,
        Some("local") => Level::Local,
        Some("session") => Level::Session(token.expect("a session has a token")),
        Some(other) => {
            let seconds: f64 = seconds(other).expect("there is no other promise");
            let bound = Duration::from_secs_f64(seconds).as_millis();
            Level::Bounded(u64::try_from(bound).expect("bounds are short"))
        }
    }
}

/// The request in origin form, with a `Host` header (RFC 9112, section 3.2.1).
fn in_origin_form(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let uri = request.uri();
    let path = uri.path_and_query().cloned().expect("it has a path");
    *request.uri_mut() = Uri::from(path);
    let host = HeaderValue::from_static(HOST);
    request.headers_mut().insert(http::header::HOST, host);
    request
}
