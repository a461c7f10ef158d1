//! How bytes get to a node. The client itself knows no socket, so that a simulation can give it
//! its own network.

use std::error::Error as _;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connect::{Connector, Trust};

/// A future on the heap.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Why no answer came. The difference decides whether a write may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Not a byte of the request reached the node.
    #[error("{0}")]
    NotSent(String),
    /// The request, or a part of it, may have reached the node.
    #[error("{0}")]
    Lost(String),
}

/// Sends one request to the authority in its URI and returns the whole answer.
pub trait Transport: Send + Sync + 'static {
    /// Sends once, without repeating anything.
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Bytes>, TransportError>>;
}

/// The transport over hyper-util's pooling client, with any connector.
pub struct HyperTransport<C> {
    client: HyperClient<C, Full<Bytes>>,
}

impl HyperTransport<Connector> {
    /// Plain TCP, TLS or a socket of this machine, as each endpoint says. `connect_timeout` bounds connecting and
    /// the handshake of TLS.
    pub(crate) fn real(trust: Trust, connect_timeout: Duration) -> Self {
        Self::new(
            HyperClient::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .build(Connector::new(trust, connect_timeout)),
        )
    }
}

impl<C> HyperTransport<C> {
    /// A client built by the caller: its connector, its executor, its pool.
    pub fn new(client: HyperClient<C, Full<Bytes>>) -> Self {
        Self { client }
    }
}

impl<C> Transport for HyperTransport<C>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Bytes>, TransportError>> {
        let answer = self.client.request(request);
        Box::pin(async move {
            let (parts, body) = answer.await.map_err(classify)?.into_parts();
            let body = body
                .collect()
                .await
                .map_err(|error| TransportError::Lost(format!("the answer broke off: {error}")))?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        })
    }
}

/// Only a connection that never came about proves that nothing was sent.
fn classify(error: hyper_util::client::legacy::Error) -> TransportError {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason.push_str(": ");
        reason.push_str(&cause.to_string());
        source = cause.source();
    }
    if error.is_connect() {
        TransportError::NotSent(reason)
    } else {
        TransportError::Lost(reason)
    }
}
