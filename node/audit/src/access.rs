//! The access log: one line per request, from every client and with every outcome.
//!
//! Lines have their own target, so `[log] level = "info,placement::access=warn"` silences them.
//! They never contain a token. Client-supplied values are bounded in length and logged as text
//! fields, which the formats escape, so a request cannot forge a second line.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::request::Parts;
use http::{Method, Uri};
use tokio::time::Instant;

/// The tracing target of all lines.
pub const TARGET: &str = "placement::access";

/// Maximum length of the path with its query.
pub const URI_MAX_BYTES: usize = 2048;
/// Maximum length of the method and of a proxy-supplied address.
pub const WORD_MAX_BYTES: usize = 64;
/// Maximum length of a user or project id (Keystone's have at most 64 characters). A node with
/// `noauth2` takes the user id from the token, so a real token that it receives would be logged as
/// a user id. Tokens are longer than this limit, and longer ids are omitted.
pub const ID_MAX_BYTES: usize = 64;

/// Request extension: the peer address of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// Request extension: the connection is encrypted.
#[derive(Debug, Clone, Copy)]
pub struct Encrypted {
    /// Whether the client presented a certificate issued by the listener's CA.
    pub vouched: bool,
}

/// Response extension: the API has already written the access line and the audit record.
#[derive(Debug, Clone, Copy)]
pub struct Recorded;

/// Request extension: the client address according to a trusted proxy.
#[derive(Debug, Clone)]
pub struct NamedClient(pub String);

impl NamedClient {
    /// The address, with or without a port; `None` if the proxy sent an obfuscated identifier.
    pub fn address(&self) -> Option<IpAddr> {
        address_in(&self.0)
    }
}

/// Parses a proxy-supplied address, with or without a port; `None` if it is an obfuscated
/// identifier.
pub fn address_in(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => text.rsplit_once(':')?.0,
    };
    bare.parse().ok()
}

/// The unit for per-address limits: an IPv4 address, or an IPv6 /64, as one host often has a whole
/// /64.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// The access line of one request. If it is dropped before the response, the request is logged as
/// not answered.
pub struct Line {
    begun: Instant,
    answered: bool,
    probe: bool,
    client: String,
    method: Method,
    uri: Uri,
    /// The request id that this service assigned. The API sets this field and the fields below
    /// while it handles the request.
    pub request_id: Option<String>,
    /// The request id that the caller sent.
    pub global_request_id: Option<String>,
    /// The trace id, if the request is traced.
    pub trace_id: Option<String>,
    /// The microversion of the response, such as `1.39`.
    pub microversion: Option<&'static str>,
    /// User id of the caller.
    pub user: Option<String>,
    /// Keystone's name of the user.
    pub user_name: Option<String>,
    /// Id of the project that the token is scoped to.
    pub project: Option<String>,
    /// Keystone's name of the project.
    pub project_name: Option<String>,
}

impl Line {
    /// Starts the line of a request from `peer`. `client` is the client address according to a
    /// trusted proxy.
    pub fn begin(parts: &Parts, peer: Option<Peer>, client: Option<&str>) -> Self {
        let client = match (client, peer) {
            (Some(client), _) => bounded(client, WORD_MAX_BYTES).into_owned(),
            (None, Some(Peer(address))) => address.ip().to_string(),
            (None, None) => "-".to_owned(),
        };
        Self {
            begun: Instant::now(),
            answered: false,
            probe: matches!(
                parts.uri.path().rsplit('/').next(),
                Some("livez" | "readyz" | "metrics")
            ),
            client,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            request_id: None,
            global_request_id: None,
            trace_id: None,
            microversion: None,
            user: None,
            user_name: None,
            project: None,
            project_name: None,
        }
    }

    /// Logs the line with the answer.
    pub fn answered<B: HttpBody>(mut self, response: &http::Response<B>) {
        self.answered = true;
        let bytes = response.body().size_hint().exact();
        self.write(Some(response.status().as_u16()), bytes, "answered");
    }

    fn write(&self, status: Option<u16>, bytes: Option<u64>, what: &str) {
        let ms = self.begun.elapsed().as_micros() as f64 / 1000.0;
        let uri = self.uri.path_and_query();
        let uri = uri.map_or_else(|| self.uri.path(), |uri| uri.as_str());
        let uri = bounded(uri, URI_MAX_BYTES);
        let method = bounded(self.method.as_str(), WORD_MAX_BYTES);
        // A tracing level must be a constant, so there are two calls.
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: TARGET,
                    parent: None,
                    client = self.client.as_str(),
                    method = &*method,
                    uri = &*uri,
                    status,
                    bytes,
                    ms,
                    microversion = self.microversion,
                    user = id(&self.user),
                    user_name = name(&self.user_name).as_deref(),
                    project = id(&self.project),
                    project_name = name(&self.project_name).as_deref(),
                    request_id = self.request_id.as_deref(),
                    global_request_id = self.global_request_id.as_deref(),
                    trace_id = self.trace_id.as_deref(),
                    "{what}"
                )
            };
        }
        if self.probe {
            line!(debug);
        } else {
            line!(info);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.answered {
            let why = "not answered: the client disconnected or this node is stopping";
            self.write(None, None, why);
        }
    }
}

/// The id of a user or a project; `None` if it is too long.
fn id(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|id| id.len() <= ID_MAX_BYTES)
}

/// The name of a user or a project, bounded in length.
pub fn name(text: &Option<String>) -> Option<Cow<'_, str>> {
    text.as_deref().map(|name| bounded(name, ID_MAX_BYTES))
}

/// Middleware that logs the requests of the other routers: health, metrics and operators.
pub async fn logged(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let named = parts
        .extensions
        .get::<NamedClient>()
        .map(|NamedClient(client)| client.as_str());
    let mut line = Line::begin(&parts, parts.extensions.get().copied(), named);
    let response = next.run(Request::from_parts(parts, body)).await;
    match response.extensions().get::<Recorded>() {
        Some(Recorded) => line.answered = true,
        None => line.answered(&response),
    }
    response
}

/// Logs a connection that sent a malformed request.
pub fn malformed_request(peer: SocketAddr, error: &hyper::Error) {
    tracing::info!(
        target: TARGET,
        client = %peer.ip(),
        %error,
        "rejected a malformed HTTP request"
    );
}

/// The text, truncated to `max_bytes` and marked with `…` if longer.
pub fn bounded(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(max_bytes)]))
}
