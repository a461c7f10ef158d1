//! The transport of requests. A simulation replaces it with its own network.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connect::{BoxFuture, Connector, Trust};

/// Why there is no response. The kind decides whether a write may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No byte of the request reached the node.
    #[error("{0}")]
    NotSent(String),
    /// The request, or a part of it, may have reached the node.
    #[error("{0}")]
    Lost(String),
}

/// The body of a response, received in frames.
pub type Body = BoxBody<Bytes, TransportError>;

/// A body of known content.
pub fn whole(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed()
}

/// Sends one request to the authority in its URI.
pub trait Transport: Send + Sync + 'static {
    /// Sends the request once; never repeats it.
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Body>, TransportError>>;
}

/// A pool of connections over TCP, TLS or Unix sockets.
pub(crate) type Pool = HyperClient<Connector, Full<Bytes>>;

/// `connect_timeout` applies to the connection attempt and to the TLS handshake.
pub(crate) fn pool(trust: Trust, connect_timeout: Duration) -> Pool {
    HyperClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .build(Connector::new(trust, connect_timeout))
}

impl Transport for Pool {
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Body>, TransportError>> {
        let answer = self.request(request);
        Box::pin(async move {
            let broke_off =
                |error| TransportError::Lost(format!("the response was interrupted: {error}"));
            let answer = answer.await.map_err(classify)?;
            Ok(answer.map(|body| body.map_err(broke_off).boxed()))
        })
    }
}

/// Only a failed connection attempt proves that nothing was sent.
fn classify(error: hyper_util::client::legacy::Error) -> TransportError {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    if error.is_connect() {
        TransportError::NotSent(reason)
    } else {
        TransportError::Lost(reason)
    }
}
