//! The client: settings, choice of a node, and repetition of requests.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use crate::connect::Trust;
use crate::consistency::{CONSISTENCY, Consistency, IndexToken, MIN_INDEX};
use crate::endpoint::Endpoint;
use crate::error::{ApiError, Error};
use crate::failures::{Failure, FailureKind, Failures};
use crate::lines::Lines;
use crate::request::ApiRequest;
use crate::response::ApiResponse;
use crate::tokens::{Cause, Tokens};
use crate::transport::{Body, Transport, TransportError, pool};

/// Microversion of the typed methods.
pub const MICROVERSION_DEFAULT: &str = placement_wire::microversion::NEWEST;

const REQUEST_ID: &str = "x-openstack-request-id";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(30);
/// A request without a result after this time causes a notice.
const NOTICE_AFTER: Duration = Duration::from_secs(2);
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Replaces durations that exceed the range of the clock.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// A client of one cluster. Clones are cheap: they share connections and the preferred node; each
/// has its own settings.
#[derive(Clone)]
#[must_use]
pub struct Client {
    shared: Arc<Shared>,
    /// Prefix of all paths.
    prefix: String,
    tokens: Tokens,
    microversion: String,
    consistency: Option<Consistency>,
    session: Option<Arc<Mutex<Option<IndexToken>>>>,
    attempt_timeout: Duration,
    patience: Duration,
    repeat_unknown: bool,
    notice: Option<Notice>,
}

/// Receives sentences about requests that take long.
type Notice = Arc<dyn Fn(&str) + Send + Sync>;

struct Shared {
    endpoints: Vec<Endpoint>,
    /// Index of the endpoint to ask first, modulo the number of endpoints: the last endpoint that
    /// answered, or the endpoint after one that did not answer.
    preferred: AtomicUsize,
    transport: Arc<dyn Transport>,
}

impl Shared {
    fn new<S: AsRef<str>>(
        endpoints: impl IntoIterator<Item = S>,
        transport: Arc<dyn Transport>,
    ) -> Result<Arc<Self>, Error> {
        let endpoints: Vec<Endpoint> = endpoints
            .into_iter()
            .map(|endpoint| endpoint.as_ref().parse())
            .collect::<Result<_, _>>()?;
        if endpoints.is_empty() {
            return Err(Error::BadEndpoint {
                endpoint: String::new(),
                reason: "at least one endpoint is needed".to_owned(),
            });
        }
        Ok(Arc::new(Self {
            endpoints,
            preferred: AtomicUsize::new(0),
            transport,
        }))
    }
}

impl Client {
    /// A client of these endpoints, asked in this order: `http://host:port`, `https://host:port` or
    /// `unix:/path`. https uses the certificate authorities of this machine.
    pub fn new<S: AsRef<str>>(endpoints: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        Self::trusting(endpoints, Trust::default())
    }

    /// A client of these endpoints that uses the authorities and the certificate of `trust` for
    /// https.
    pub fn trusting<S: AsRef<str>>(
        endpoints: impl IntoIterator<Item = S>,
        trust: Trust,
    ) -> Result<Self, Error> {
        Self::over(endpoints, pool(trust, CONNECT_TIMEOUT))
    }

    /// A client of another node with the same settings.
    pub fn for_endpoint(&self, endpoint: &str) -> Result<Self, Error> {
        let transport = self.shared.transport.clone();
        Ok(Self {
            shared: Shared::new([endpoint], transport)?,
            ..self.clone()
        })
    }

    /// A client over a custom transport.
    pub fn over<S: AsRef<str>>(
        endpoints: impl IntoIterator<Item = S>,
        transport: impl Transport,
    ) -> Result<Self, Error> {
        Ok(Self {
            shared: Shared::new(endpoints, Arc::new(transport))?,
            prefix: String::new(),
            tokens: Tokens::Fixed("admin".to_owned()),
            microversion: MICROVERSION_DEFAULT.to_owned(),
            consistency: None,
            session: None,
            attempt_timeout: ATTEMPT_TIMEOUT,
            patience: PATIENCE,
            repeat_unknown: false,
            notice: None,
        })
    }

    /// Prefixes all paths, for an API or a partition below a path such as `/north`.
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        prefix.trim_end_matches('/').clone_into(&mut self.prefix);
        self
    }

    /// Sets the `X-Auth-Token` (default `admin`).
    pub fn with_token(mut self, token: &str) -> Self {
        self.tokens = Tokens::Fixed(token.to_owned());
        self
    }

    /// Gets the `X-Auth-Token` from this function: at the first request, and once more in a request
    /// that is answered with 401, which is then sent again. Clones of the result share the token,
    /// and requests at the same time share a call. A request waits for the function as long as that
    /// takes.
    pub fn with_tokens<F, T, E>(mut self, tokens: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Cause>,
    {
        self.tokens = Tokens::provided(move || {
            let token = tokens();
            Box::pin(async move { token.await.map_err(Into::<Cause>::into) })
        });
        self
    }

    /// Sets the microversion (default [`MICROVERSION_DEFAULT`]).
    pub fn with_microversion(mut self, version: &str) -> Self {
        version.clone_into(&mut self.microversion);
        self
    }

    /// Sets the consistency of reads. Default: the default of the node.
    pub fn with_consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }

    /// Makes each read include the state of all earlier writes and reads of this session, on any
    /// node and without contacting the leader. For this, the client sends the greatest
    /// `Placement-Index` of the session's successful responses. Clones of the result share the
    /// session.
    pub fn with_session(mut self) -> Self {
        self.session = Some(Arc::default());
        self
    }

    /// Timeout of one attempt (default 30 s).
    pub fn with_attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = limit;
        self
    }

    /// Total time for all attempts (default 30 s). With zero, each node is asked at most once.
    pub fn with_patience(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// Also repeats writes with an unknown outcome. This is safe for writes that cannot be applied
    /// twice, because they contain a generation or a UUID chosen by the caller. A repetition may
    /// then conflict with the caller's own first attempt, except for `PUT` and `POST /allocations`:
    /// all attempts of a write have the same `X-OpenStack-Request-Id`, by which nodes recognize a
    /// repeated claim.
    pub fn repeating_unknown(mut self) -> Self {
        self.repeat_unknown = true;
        self
    }

    /// Calls `notice` with a sentence if a request has no result after two seconds and may take at
    /// least two more: what failed so far, and how long the client will go on.
    pub fn with_notice(mut self, notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notice = Some(Arc::new(notice));
        self
    }

    pub(crate) fn without_notice(mut self) -> Self {
        self.notice = None;
        self
    }

    /// The configured endpoints in their order.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.shared.endpoints
    }

    /// The greatest `Placement-Index` of this session.
    pub fn session_index(&self) -> Option<IndexToken> {
        let session = self.session.as_ref()?;
        session.lock().expect("no panic while locked").clone()
    }

    /// Sends a request, repeats it while that is safe, and returns the last response. A 503, or a
    /// 429 that a node sent, becomes an error; any other status is returned.
    pub async fn request(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        Ok(self.exchange(request, false).await?.0)
    }

    /// The response to a request, line by line as it is received. A status other than 2xx is an
    /// error.
    pub async fn lines(&self, request: ApiRequest) -> Result<Lines, Error> {
        let (answer, body) = self.exchange(request, true).await?;
        answer.success()?;
        Ok(Lines::new(body.unwrap_or_default()))
    }

    /// Like [`Client::request`], but keeps at most `bytes_max` bytes of a successful body. Returns
    /// `true` if the body was longer.
    pub async fn request_at_most(
        &self,
        request: ApiRequest,
        bytes_max: usize,
    ) -> Result<(ApiResponse, bool), Error> {
        let (mut answer, body) = self.exchange(request, true).await?;
        let (mut kept, mut body) = (answer.body.to_vec(), body.unwrap_or_default());
        while kept.len() <= bytes_max
            && let Some(frame) = body.frame().await
        {
            let frame = frame.map_err(|error| Error::lost(error.to_string()))?;
            kept.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
        let has_more = kept.len() > bytes_max;
        kept.truncate(bytes_max);
        answer.body = kept.into();
        Ok((answer, has_more))
    }

    /// Like [`Client::request`]; with `streams`, the body of a success is returned separately and
    /// unread.
    async fn exchange(
        &self,
        request: ApiRequest,
        streams: bool,
    ) -> Result<(ApiResponse, Option<Body>), Error> {
        let request = self.identified(request);
        let deadline = after(self.patience);
        let failures = Failures::new(&self.shared.endpoints);
        let mut attempts = pin!(self.attempts(&request, streams, deadline, &failures));
        let limit = match self.patience {
            Duration::ZERO => self.attempt_timeout,
            patience => patience,
        };
        if let Some(notice) = &self.notice
            && limit >= 2 * NOTICE_AFTER
        {
            tokio::select! {
                biased;
                answer = &mut attempts => return answer,
                () = sleep(NOTICE_AFTER) => {
                    notice(&failures.so_far(limit - NOTICE_AFTER));
                }
            }
        }
        attempts.await
    }

    async fn attempts(
        &self,
        request: &ApiRequest,
        streams: bool,
        deadline: Instant,
        failures: &Failures<'_>,
    ) -> Result<(ApiResponse, Option<Body>), Error> {
        let mut token = self.tokens.get(None).await?;
        let mut may_change = self.tokens.can_change();
        let mut nodes = Rotation::new(&self.shared, deadline);
        let mut unknown = false;
        loop {
            let at = nodes.next();
            let http = self.to_http(at, request, &token.text)?;
            let answer = self.send(request, http, streams).await;
            let judge = |(response, body)| Ok((judged(request, response)?, body));
            let failure = match answer.and_then(judge) {
                Ok((response, _)) if may_change && response.status == StatusCode::UNAUTHORIZED => {
                    may_change = false;
                    token = match self.tokens.get(Some(&token)).await {
                        Err(error) if unknown => {
                            return Err(Error::OutcomeUnknown(error.to_string()));
                        }
                        token => token?,
                    };
                    continue;
                }
                Ok(response) => {
                    self.shared.preferred.store(at, Ordering::Relaxed);
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            unknown |= failure.unknown;
            let retry_after = failure.retry_after;
            let is_hopeless = failures.add(at, failure);
            if unknown && !self.repeat_unknown {
                // Do not ask this node first again: it accepts requests without answering.
                self.shared.preferred.store(at + 1, Ordering::Relaxed);
                return Err(Error::OutcomeUnknown(failures.text(at)));
            }
            let resume = if is_hopeless {
                nodes.give_up(at)
            } else {
                nodes.pause_node(at, retry_after)
            };
            match resume {
                Some(resume) => sleep_until(resume).await,
                None => return Err(failures.error(request.is_read(), unknown)),
            }
        }
    }

    /// The request, with a new request id if it is a write that may be repeated and has no id.
    fn identified(&self, request: ApiRequest) -> ApiRequest {
        let has_id = request.headers.iter().any(|(name, _)| name == REQUEST_ID);
        if has_id || request.is_read() || !self.repeat_unknown {
            return request;
        }
        let id = format!("req-{}", Uuid::new_v4());
        request.header(REQUEST_ID, &id)
    }

    /// Like [`Client::request`]; a status other than 2xx is an error, too.
    pub async fn call(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        self.request(request).await?.success()
    }

    /// The response to GET of this path, parsed.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.fetch(ApiRequest::get(path)).await
    }

    /// The response to a request, parsed; a status other than 2xx is an error.
    pub async fn fetch<T: DeserializeOwned>(&self, request: ApiRequest) -> Result<T, Error> {
        self.call(request).await?.json()
    }

    /// One member of the response, parsed.
    pub(crate) async fn fetch_member<T: DeserializeOwned>(
        &self,
        request: ApiRequest,
        name: &str,
    ) -> Result<T, Error> {
        let what = request.name();
        let mut answer: Map<String, Value> = self.fetch(request).await?;
        let member = answer.remove(name).unwrap_or_default();
        serde_json::from_value(member).map_err(|error| Error::Malformed {
            what,
            reason: format!("{name}: {error}"),
        })
    }

    /// Sends a request and ignores the body of a success.
    pub(crate) async fn execute(&self, request: ApiRequest) -> Result<(), Error> {
        self.call(request).await.map(drop)
    }

    /// Sends a request once, to the first endpoint, and returns any response, also 503.
    pub async fn request_once(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        let token = self.tokens.get(None).await?;
        let http = self.to_http(0, &request, &token.text)?;
        let answer = self
            .send(&request, http, false)
            .await
            .map(|(response, _)| response);
        answer.map_err(|failure| {
            let failures = Failures::new(&self.shared.endpoints[..1]);
            let unknown = failure.unknown;
            failures.add(0, failure);
            failures.error(request.is_read(), unknown)
        })
    }

    async fn send(
        &self,
        request: &ApiRequest,
        http: Request<Full<Bytes>>,
        streams: bool,
    ) -> Result<(ApiResponse, Option<Body>), Failure> {
        let limit = self.attempt_timeout;
        let answer = timeout(limit, self.carry(http, streams)).await;
        let answer = answer.unwrap_or_else(|_| {
            let reason = format!("no answer within {limit:?}");
            Err(TransportError::Lost(reason))
        });
        let failed = |error: TransportError| Failure::from_transport(&error, request.is_read());
        let (answer, stream) = answer.map_err(failed)?;
        let (parts, body) = answer.into_parts();
        let response = ApiResponse {
            what: request.name(),
            status: parts.status,
            headers: parts.headers,
            body,
        };
        self.remember(&response);
        Ok((response, stream))
    }

    async fn carry(
        &self,
        http: Request<Full<Bytes>>,
        streams: bool,
    ) -> Result<(Response<Bytes>, Option<Body>), TransportError> {
        let (parts, body) = self.shared.transport.send(http).await?.into_parts();
        let (whole, body) = if streams && parts.status.is_success() {
            (Bytes::new(), Some(body))
        } else {
            (body.collect().await?.to_bytes(), None)
        };
        Ok((Response::from_parts(parts, whole), body))
    }

    fn to_http(
        &self,
        at: usize,
        request: &ApiRequest,
        token: &str,
    ) -> Result<Request<Full<Bytes>>, Error> {
        request.check()?;
        let path = format!("{}{}", self.prefix, request.path_and_query);
        let mut http = Request::new(Full::new(request.body.clone()));
        *http.method_mut() = request.method.clone();
        *http.uri_mut() = self.shared.endpoints[at].url(&path)?;
        let headers = http.headers_mut();
        let mut set = |name: &'static str, text: &str| {
            // The message does not contain the value, which may be a token.
            let value = HeaderValue::from_str(text)
                .map_err(|error| Error::BadRequest(format!("header {name}: {error}")))?;
            headers.insert(HeaderName::from_static(name), value);
            Ok::<_, Error>(())
        };
        let version = format!("placement {}", self.microversion);
        set("x-auth-token", token)?;
        set("openstack-api-version", &version)?;
        set("accept", "application/json")?;
        if let Some(consistency) = self.promise(request) {
            set(CONSISTENCY, &consistency.header())?;
            if let Consistency::Session(token) = &consistency {
                set(MIN_INDEX, token.as_str())?;
            }
        }
        // `extend` would send both values.
        for (name, value) in &request.headers {
            headers.insert(name, value.clone());
        }
        Ok(http)
    }

    /// The consistency to request. A read without a consistency of its own uses the session's, then
    /// the client's. A write has none, unless the request sets one.
    fn promise(&self, request: &ApiRequest) -> Option<Consistency> {
        if request.consistency.is_some() || !request.is_read() {
            return request.consistency.clone();
        }
        self.session_index()
            .map(Consistency::Session)
            .or_else(|| self.consistency.clone())
    }

    /// Records the index of a successful response for the session. Errors are ignored: they may
    /// have no index, or an index of another history.
    fn remember(&self, response: &ApiResponse) {
        if let Some(session) = &self.session
            && response.status.is_success()
            && let Some(index) = response.position().index
        {
            let mut newest = session.lock().expect("no panic while locked");
            if newest.as_ref().is_none_or(|known| index.supersedes(known)) {
                *newest = Some(index);
            }
        }
    }
}

/// Returns the response. A 503, or a 429 that a node sent, becomes a failure.
fn judged(request: &ApiRequest, response: ApiResponse) -> Result<ApiResponse, Failure> {
    let is_unavailable = response.status == StatusCode::SERVICE_UNAVAILABLE;
    if !is_unavailable && response.status != StatusCode::TOO_MANY_REQUESTS {
        return Ok(response);
    }
    let error = ApiError::parse(response.status, &response.body);
    let may_be_done = !error.nothing_committed();
    if !is_unavailable && may_be_done {
        return Ok(response);
    }
    Err(Failure {
        reason: error.to_string(),
        retry_after: response.retry_after(),
        unknown: may_be_done && !request.is_read(),
        kind: FailureKind::Answer,
    })
}

/// The time after a duration, which a user or a node may have chosen.
fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or_else(|| now + FOREVER)
}

/// The order in which nodes are asked, and the time from which each may be asked again.
struct Rotation {
    at: usize,
    /// For each node, the time from which it may be asked again; `None`: it is not asked again.
    rest_until: Vec<Option<Instant>>,
    pause: Vec<Duration>,
    deadline: Instant,
}

impl Rotation {
    fn new(shared: &Shared, deadline: Instant) -> Self {
        let count = shared.endpoints.len();
        Self {
            at: shared.preferred.load(Ordering::Relaxed) % count,
            rest_until: vec![Some(Instant::now()); count],
            pause: vec![PAUSE_FIRST; count],
            deadline,
        }
    }

    /// The next node: the first available node after the last node asked.
    fn next(&mut self) -> usize {
        let now = Instant::now();
        let count = self.rest_until.len();
        let order = (0..count).map(|step| (self.at + step) % count);
        let asked = order.filter_map(|at| Some((self.rest_until[at]?, at)));
        // Among the nodes that are available by now, the first in the order wins.
        let chosen = asked.min_by_key(|(until, _)| (*until).max(now));
        let (_, chosen) = chosen.expect("a request ends when its last node is given up");
        self.at = (chosen + 1) % count;
        chosen
    }

    /// Pauses a node for `retry_after`, or for a pause that doubles each time; gives it up if the
    /// pause reaches the deadline. Returns the time at which the next node is available.
    fn pause_node(&mut self, at: usize, retry_after: Option<Duration>) -> Option<Instant> {
        let pause = retry_after.unwrap_or(self.pause[at]);
        self.pause[at] = (self.pause[at] * 2).min(PAUSE_MAX);
        self.rest_until[at] = Some(after(pause)).filter(|until| *until < self.deadline);
        self.resume()
    }

    /// Never asks a node again. Returns the time at which the next node is available.
    fn give_up(&mut self, at: usize) -> Option<Instant> {
        self.rest_until[at] = None;
        self.resume()
    }

    fn resume(&self) -> Option<Instant> {
        self.rest_until.iter().flatten().min().copied()
    }
}
