//! Single HTTP requests over any network.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::history::{Answer, End};
use crate::operation::{Request, Token};

/// The `Host` of all requests.
pub const HOST: &str = "placement";
/// The header with the id of a request.
pub const REQUEST_ID: &str = "x-openstack-request-id";

/// Sends a client's request on a new connection and waits for the answer, like [`send`].
pub async fn ask<S>(
    connect: impl Future<Output = io::Result<S>>,
    request: &Request,
    patience: Duration,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    match send(connect, render(request), patience).await {
        Ok(response) => End::Answer(answer(&response)),
        Err(end) => end,
    }
}

/// Sends a request on a new connection and waits for the answer. Each step
/// has the timeout `patience`. Must run in a [`tokio::task::LocalSet`].
///
/// # Errors
/// How the request ended without an answer.
pub async fn send<S>(
    connect: impl Future<Output = io::Result<S>>,
    request: http::Request<Full<Bytes>>,
    patience: Duration,
) -> Result<http::Response<Bytes>, End>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    with_timeout(patience, connect, async |stream| {
        let (response, _connection) = begin(stream, request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(http::Response::from_parts(parts, body))
    })
    .await
}

/// Like [`send`], but the caller reads the body while it holds the connection.
///
/// # Errors
/// How the request ended without an answer.
pub async fn open<S>(
    connect: impl Future<Output = io::Result<S>>,
    request: http::Request<Full<Bytes>>,
    patience: Duration,
) -> Result<(http::Response<Incoming>, Connection), End>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    with_timeout(patience, connect, async |stream| {
        begin(stream, request).await
    })
    .await
}

async fn with_timeout<S, T>(
    patience: Duration,
    connect: impl Future<Output = io::Result<S>>,
    exchange: impl AsyncFnOnce(S) -> Result<T, hyper::Error>,
) -> Result<T, End> {
    let stream = match timeout(patience, connect).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(End::NotSent(error.kind().to_string())),
        Err(_) => return Err(End::NotSent("no connection in time".to_owned())),
    };
    match timeout(patience, exchange(stream)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(End::Lost(error.to_string())),
        Err(_) => Err(End::Lost("no answer in time".to_owned())),
    }
}

async fn begin<S>(
    stream: S,
    request: http::Request<Full<Bytes>>,
) -> Result<(http::Response<Incoming>, Connection), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::task::spawn_local(async { drop(connection.await) });
    let connection = Connection(connection);
    Ok((sender.send_request(request).await?, connection))
}

/// A connection that is closed on drop, also when the caller times out.
#[derive(Debug)]
pub struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A request with the headers of an operator.
pub fn render(request: &Request) -> http::Request<Full<Bytes>> {
    let mut builder = http::Request::builder()
        .method(request.method)
        .uri(&request.path)
        .header("host", HOST)
        .header("x-auth-token", "admin")
        .header("x-roles", "admin,service")
        .header(
            "openstack-api-version",
            format!("placement 1.{}", request.minor),
        );
    if let Some(consistency) = &request.consistency {
        builder = builder.header("placement-consistency", consistency);
    }
    if let Some(index) = &request.min_index {
        builder = builder.header("placement-min-index", index);
    }
    if let Some(id) = &request.request_id {
        builder = builder.header(REQUEST_ID, id);
    }
    if request.body.is_some() {
        builder = builder.header("content-type", "application/json");
    }
    let body = request
        .body
        .as_ref()
        .map(|body| Bytes::from(body.to_string()));
    builder
        .body(Full::new(body.unwrap_or_default()))
        .expect("a client's requests are well formed")
}

/// The parts of an answer that are checked.
pub fn answer(response: &http::Response<Bytes>) -> Answer {
    let text = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    Answer {
        status: response.status().as_u16(),
        index: text("placement-index").as_deref().and_then(Token::parse),
        node: text("placement-node").and_then(|node| node.split(';').next()?.parse().ok()),
        known_leader: text("placement-known-leader").and_then(|leader| leader.parse().ok()),
        staleness: text("placement-staleness")
            .and_then(|age| age.parse().ok())
            .map(Duration::from_secs_f64),
        effective: text("placement-effective-consistency"),
        body: String::from_utf8_lossy(response.body()).into_owned(),
    }
}
