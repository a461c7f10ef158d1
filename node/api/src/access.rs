//! The access log: one line for each request, from any client and however it was answered.
//!
//! Lines have a target of their own, so `[log] level = "info,placement::access=warn"` silences
//! them. They never hold a token. What clients choose is bounded in length and logged as text
//! fields, which the formats escape: a request makes one line and cannot make it look like two.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::request::Parts;
use http::{Method, Uri};
use tokio::time::Instant;

/// The target of all lines.
pub const TARGET: &str = "placement::access";

/// Longest path with its query.
pub(crate) const URI_MAX_BYTES: usize = 2048;
/// Longest method, and longest address that a proxy names.
pub(crate) const WORD_MAX_BYTES: usize = 64;
/// Longest id of a user or a project (Keystone's have 64 characters at most). Under `noauth2` a
/// client that sends a real token would be known by it; that is longer, and is left out.
pub(crate) const ID_MAX_BYTES: usize = 64;

/// Who made the connection of a request, among the request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// Among the extensions of a request: it came encrypted.
#[derive(Debug, Clone, Copy)]
pub struct Encrypted {
    /// Whether the client has shown a certificate that the listener's authority vouches for.
    pub vouched: bool,
}

/// Among the extensions of a response: the API has written the request's line and its audit record.
#[derive(Debug, Clone, Copy)]
pub struct Recorded;

/// Among the extensions of a request: its client's address in the words of a trusted proxy.
#[derive(Debug, Clone)]
pub struct NamedClient(pub String);

impl NamedClient {
    /// The address, with or without a port; a proxy may also give a word that hides one.
    pub fn address(&self) -> Option<IpAddr> {
        address_in(&self.0)
    }
}

/// The address in what a proxy says, with or without a port; it may also be a word that hides one.
pub(crate) fn address_in(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => text.rsplit_once(':')?.0,
    };
    bare.parse().ok()
}

/// What counts as one address: of IPv6 a network of 64 bits, as one machine has so many.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// The line of one request. If it is dropped before the answer, it says so.
pub(crate) struct Line {
    begun: Instant,
    answered: bool,
    probe: bool,
    client: String,
    method: Method,
    uri: Uri,
    // What the API finds out about the request.
    pub(crate) request_id: Option<String>,
    /// The id that the caller's own request has.
    pub(crate) global_request_id: Option<String>,
    /// Its trace, if it is traced.
    pub(crate) trace_id: Option<String>,
    pub(crate) microversion: Option<&'static str>,
    pub(crate) user: Option<String>,
    pub(crate) user_name: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) project_name: Option<String>,
}

impl Line {
    /// A request has come from `peer`. `client` is its address in the words of a trusted proxy.
    pub(crate) fn begin(parts: &Parts, peer: Option<Peer>, client: Option<&str>) -> Self {
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

    /// It was answered.
    pub(crate) fn answered<B: HttpBody>(mut self, response: &http::Response<B>) {
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
        // A level is part of the place in the code, so there are two.
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
            let why = "not answered: the client went away, or this node stops";
            self.write(None, None, why);
        }
    }
}

/// What can be the id of a user or a project.
fn id(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|id| id.len() <= ID_MAX_BYTES)
}

/// The name of a user or a project, bounded.
pub(crate) fn name(text: &Option<String>) -> Option<Cow<'_, str>> {
    text.as_deref().map(|name| bounded(name, ID_MAX_BYTES))
}

/// Logs the requests of a router that is not the API's: health, numbers, operators.
pub async fn logged(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let named = parts.extensions.get::<NamedClient>();
    let named = named.map(|NamedClient(client)| client.as_str());
    let mut line = Line::begin(&parts, parts.extensions.get().copied(), named);
    let response = next.run(Request::from_parts(parts, body)).await;
    match response.extensions().get::<Recorded>() {
        Some(Recorded) => line.answered = true,
        None => line.answered(&response),
    }
    response
}

/// Something came over a connection that is no request.
pub fn no_request(peer: SocketAddr, error: &hyper::Error) {
    tracing::info!(
        target: TARGET,
        client = %peer.ip(),
        %error,
        "refused what is no HTTP request"
    );
}

/// The beginning of a text, with a mark if there is more.
pub(crate) fn bounded(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(max_bytes)]))
}
