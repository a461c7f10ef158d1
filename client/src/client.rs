//! The client: settings, choice of the node, and what is repeated when.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connect::Trust;
use crate::consistency::{CONSISTENCY, Consistency, IndexToken, MIN_INDEX};
use crate::endpoint::Endpoint;
use crate::error::{ApiError, Error};
use crate::request::ApiRequest;
use crate::response::ApiResponse;
use crate::transport::{HyperTransport, Transport, TransportError};

/// The microversion that the typed methods are written for.
pub const MICROVERSION_DEFAULT: &str = "1.39";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A client of one cluster. Clones are cheap; they share connections and the choice of the node,
/// and each has its own settings.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// What all paths begin with.
    prefix: String,
    token: String,
    microversion: String,
    consistency: Option<Consistency>,
    session: Option<Arc<Mutex<Option<IndexToken>>>>,
    attempt_timeout: Duration,
    patience: Duration,
    repeat_unknown: bool,
}

struct Shared {
    endpoints: Vec<Endpoint>,
    /// Which endpoint is asked first, modulo their number: the last one that answered, or the one after it that did not.
    preferred: AtomicUsize,
    transport: Arc<dyn Transport>,
}

/// The result of one attempt, for the decision about the next.
enum Attempt {
    Answered(ApiResponse),
    Failed(Failure),
}

/// An attempt that has to be repeated, or given up.
struct Failure {
    reason: String,
    retry_after: Option<Duration>,
    /// It was a write whose outcome is unknown; otherwise nothing can have been committed by it.
    unknown: bool,
}

impl Client {
    /// A client of these endpoints, asked in this order: `http://host:port`, `https://host:port` or `unix:/path`. Over
    /// https it trusts whom this machine trusts.
    pub fn new<I, S>(endpoints: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        Self::trusting(endpoints, Trust::default())
    }

    /// A client of these endpoints, which over https accepts the nodes that `trust` covers.
    pub fn trusting<I, S>(endpoints: I, trust: Trust) -> Result<Self, Error>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        Self::over(endpoints, HyperTransport::real(trust, CONNECT_TIMEOUT))
    }

    /// A client of another node, alike in all else.
    pub fn at(&self, endpoint: &str) -> Result<Self, Error> {
        let shared = Shared {
            endpoints: vec![endpoint.parse()?],
            preferred: AtomicUsize::new(0),
            transport: self.shared.transport.clone(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            ..self.clone()
        })
    }

    /// A client over any transport.
    pub fn over<I, S>(endpoints: I, transport: impl Transport) -> Result<Self, Error>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let endpoints = endpoints
            .into_iter()
            .map(|endpoint| endpoint.as_ref().parse())
            .collect::<Result<Vec<Endpoint>, Error>>()?;
        if endpoints.is_empty() {
            return Err(Error::BadEndpoint {
                endpoint: String::new(),
                reason: "at least one is needed".to_owned(),
            });
        }
        Ok(Self {
            shared: Arc::new(Shared {
                endpoints,
                preferred: AtomicUsize::new(0),
                transport: Arc::new(transport),
            }),
            prefix: String::new(),
            token: "admin".to_owned(),
            microversion: MICROVERSION_DEFAULT.to_owned(),
            consistency: None,
            session: None,
            attempt_timeout: ATTEMPT_TIMEOUT,
            patience: PATIENCE,
            repeat_unknown: false,
        })
    }

    /// Asks below this path, such as `/north`: where the API, or a partition of the cluster, is not at the root.
    #[must_use]
    pub fn below(mut self, prefix: &str) -> Self {
        prefix.trim_end_matches('/').clone_into(&mut self.prefix);
        self
    }

    /// Sends this `X-Auth-Token` (default `admin`).
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    /// Speaks this microversion (default [`MICROVERSION_DEFAULT`]).
    #[must_use]
    pub fn with_microversion(mut self, version: &str) -> Self {
        version.clone_into(&mut self.microversion);
        self
    }

    /// Asks every read for this promise; without it the node's default holds.
    #[must_use]
    pub fn with_consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }

    /// Reads its own writes (and everything it has read) on any node, without the leader: carries
    /// the greatest `Placement-Index` of the successful answers that it has seen. Clones made from the result share the session.
    #[must_use]
    pub fn with_session(mut self) -> Self {
        self.session = Some(Arc::default());
        self
    }

    /// How long to wait for one answer before the attempt counts as lost (default 30 s).
    #[must_use]
    pub fn with_attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = limit;
        self
    }

    /// How long to go on trying altogether (default 30 s). Zero: each node at most once.
    #[must_use]
    pub fn with_patience(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// Also repeats writes whose outcome is unknown. Right for writes that a generation or a
    /// caller's uuid protects from happening twice; the repetition may then meet a conflict with
    /// the caller's own first attempt.
    #[must_use]
    pub fn repeating_unknown(mut self) -> Self {
        self.repeat_unknown = true;
        self
    }

    /// The nodes it knows.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.shared.endpoints
    }

    /// Whether all endpoints are sockets of this machine, behind which no other can be reached.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        self.shared.endpoints.iter().all(Endpoint::is_socket)
    }

    /// The greatest `Placement-Index` of this session.
    pub fn session_index(&self) -> Option<IndexToken> {
        let session = self.session.as_ref()?;
        session.lock().expect("no panic while held").clone()
    }

    /// Sends a request, repeats what is safe, and returns the last answer of any status except
    /// 503, and 429 of a node, which become errors.
    pub async fn request(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        request.check()?;
        let deadline = Instant::now() + self.patience;
        let mut nodes = Rotation::new(&self.shared);
        let mut unknown = false;
        loop {
            let at = nodes.next();
            let failure = match self.attempt(at, &request).await? {
                Attempt::Answered(response) => {
                    self.shared.preferred.store(at, Ordering::Relaxed);
                    return Ok(response);
                }
                Attempt::Failed(failure) => failure,
            };
            unknown |= failure.unknown;
            let Failure {
                reason,
                retry_after,
                ..
            } = failure;
            if unknown && !self.repeat_unknown {
                // A node that accepts requests and answers none is not asked first again.
                self.shared.preferred.store(at + 1, Ordering::Relaxed);
                return Err(Error::OutcomeUnknown { reason });
            }
            let resume = nodes.rest(at, retry_after);
            if resume > Instant::now() && resume > deadline {
                return Err(gave_up(&request, reason, retry_after, unknown));
            }
            sleep_until(resume).await;
        }
    }

    /// Like [`Client::request`]; a status that is not 2xx is an error too.
    pub async fn call(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        self.request(request).await?.success()
    }

    /// The answer to a request, read.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, request: ApiRequest) -> Result<T, Error> {
        self.call(request).await?.json()
    }

    /// Has a request carried out whose answer says no more.
    pub(crate) async fn execute(&self, request: ApiRequest) -> Result<(), Error> {
        self.call(request).await.map(drop)
    }

    /// Sends a request once, to the first endpoint, and returns whatever it answers, 503 too.
    pub async fn request_once(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        request.check()?;
        match self.send(0, &request).await? {
            Ok(response) => Ok(response),
            Err(TransportError::NotSent(reason)) => Err(Error::Unreachable { reason }),
            Err(TransportError::Lost(reason)) if request.is_read() => {
                Err(Error::Unreachable { reason })
            }
            Err(TransportError::Lost(reason)) => Err(Error::OutcomeUnknown { reason }),
        }
    }

    async fn attempt(&self, at: usize, request: &ApiRequest) -> Result<Attempt, Error> {
        let failed = |reason: String, retry_after, may_be_done: bool| {
            let unknown = may_be_done && !request.is_read();
            Ok(Attempt::Failed(Failure {
                reason,
                retry_after,
                unknown,
            }))
        };
        let response = match self.send(at, request).await? {
            Ok(response) => response,
            Err(TransportError::NotSent(reason)) => return failed(reason, None, false),
            Err(TransportError::Lost(reason)) => return failed(reason, None, true),
        };
        let is_unavailable = response.status == StatusCode::SERVICE_UNAVAILABLE;
        if !is_unavailable && response.status != StatusCode::TOO_MANY_REQUESTS {
            return Ok(Attempt::Answered(response));
        }
        let error = ApiError::parse(response.status, &response.body);
        let nothing_committed = error.nothing_committed();
        if !is_unavailable && !nothing_committed {
            return Ok(Attempt::Answered(response));
        }
        failed(
            error.to_string(),
            response.retry_after(),
            !nothing_committed,
        )
    }

    async fn send(
        &self,
        at: usize,
        request: &ApiRequest,
    ) -> Result<Result<ApiResponse, TransportError>, Error> {
        let endpoint = &self.shared.endpoints[at];
        let sent = self.shared.transport.send(self.to_http(endpoint, request)?);
        let limit = self.attempt_timeout;
        let answer = timeout(limit, sent).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {limit:?}");
            Err(TransportError::Lost(reason))
        });
        let (parts, body) = match answer {
            Ok(answer) => answer.into_parts(),
            Err(TransportError::NotSent(reason)) => {
                let reason = format!("{endpoint}: {reason}");
                return Ok(Err(TransportError::NotSent(reason)));
            }
            Err(TransportError::Lost(reason)) => {
                let reason = format!("{endpoint}: {reason}");
                return Ok(Err(TransportError::Lost(reason)));
            }
        };
        let response = ApiResponse {
            what: request.name(),
            status: parts.status,
            headers: parts.headers,
            body,
        };
        self.remember(&response);
        Ok(Ok(response))
    }

    fn to_http(
        &self,
        endpoint: &Endpoint,
        request: &ApiRequest,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let bad = |reason: String| Error::BadRequest { reason };
        let mut http = Request::new(Full::new(request.body.clone()));
        *http.method_mut() = request.method.clone();
        *http.uri_mut() = endpoint.url(&format!("{}{}", self.prefix, request.path_and_query))?;
        let headers = http.headers_mut();
        let mut set = |name: &'static str, value: &str| -> Result<(), Error> {
            let value = HeaderValue::from_str(value)
                .map_err(|error| bad(format!("`{name}: {value}`: {error}")))?;
            headers.insert(HeaderName::from_static(name), value);
            Ok(())
        };
        set("x-auth-token", &self.token)?;
        set(
            "openstack-api-version",
            &format!("placement {}", self.microversion),
        )?;
        set("accept", "application/json")?;
        if let Some(consistency) = self.promise(request) {
            set(CONSISTENCY, &consistency.header())?;
            if let Consistency::Session(token) = &consistency {
                set(MIN_INDEX, token.as_str())?;
            }
        }
        for (name, value) in &request.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(http)
    }

    /// The request's own promise, else the session's, else the client's. Writes promise nothing.
    fn promise(&self, request: &ApiRequest) -> Option<Consistency> {
        if request.consistency.is_some() || !request.is_read() {
            return request.consistency.clone();
        }
        self.session_index()
            .map(Consistency::Session)
            .or_else(|| self.consistency.clone())
    }

    fn remember(&self, response: &ApiResponse) {
        let Some(session) = &self.session else { return };
        // What refuses may stand nowhere, or in another history than the one this session follows.
        if !response.status.is_success() {
            return;
        }
        let Some(index) = response.position().index else {
            return;
        };
        let mut newest = session.lock().expect("no panic while held");
        if newest.as_ref().is_none_or(|known| index.supersedes(known)) {
            *newest = Some(index);
        }
    }
}

fn gave_up(
    request: &ApiRequest,
    reason: String,
    retry_after: Option<Duration>,
    unknown: bool,
) -> Error {
    match retry_after {
        _ if unknown => Error::OutcomeUnknown { reason },
        Some(retry_after) if !request.is_read() => Error::NothingCommitted {
            reason,
            retry_after,
        },
        _ => Error::Unreachable { reason },
    }
}

/// The nodes in the order they are asked, and until when each is left alone.
struct Rotation {
    at: usize,
    rest_until: Vec<Instant>,
    pause: Vec<Duration>,
}

impl Rotation {
    fn new(shared: &Shared) -> Self {
        let count = shared.endpoints.len();
        Self {
            at: shared.preferred.load(Ordering::Relaxed) % count,
            rest_until: vec![Instant::now(); count],
            pause: vec![PAUSE_FIRST; count],
        }
    }

    /// The node to ask now: of those that have rested, the first after the last one asked.
    fn next(&mut self) -> usize {
        let now = Instant::now();
        let count = self.rest_until.len();
        let order = (0..count).map(|step| (self.at + step) % count);
        let chosen = order
            .clone()
            .find(|&at| self.rest_until[at] <= now)
            .or_else(|| order.min_by_key(|&at| self.rest_until[at]))
            .expect("a client has at least one endpoint");
        self.at = (chosen + 1) % count;
        chosen
    }

    /// Leaves a node alone for as long as it asked, or for a pause that doubles each time.
    /// Returns when the next node may be asked.
    fn rest(&mut self, at: usize, retry_after: Option<Duration>) -> Instant {
        let pause = retry_after.unwrap_or(self.pause[at]);
        self.pause[at] = (self.pause[at] * 2).min(PAUSE_MAX);
        self.rest_until[at] = Instant::now() + pause;
        *self
            .rest_until
            .iter()
            .min()
            .expect("a client has at least one endpoint")
    }
}
