//! The transport of requests. A simulation replaces it with its own network.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connect::{BoxFuture, Connector, Trust};
use crate::connect_error::{
    ConnectError, Obstacle, alert_error, body_error, cause, chain, innermost,
};

/// Why there is no response. The kind decides whether a write may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No byte of the request reached the node.
    #[error("{0}")]
    NotSent(String),
    /// No byte of the request reached the node, and a repetition fails in the same way.
    #[error("{1}")]
    Unusable(Obstacle, String),
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
            let broke_off = |error: hyper::Error| {
                let reason = body_error(&error);
                TransportError::Lost(format!("the response was interrupted: {reason}"))
            };
            let answer = answer.await.map_err(|error| request_error(&error))?;
            Ok(answer.map(|body| body.map_err(broke_off).boxed()))
        })
    }
}

impl From<ConnectError> for TransportError {
    fn from(ConnectError { reason, obstacle }: ConnectError) -> Self {
        match obstacle {
            Some(obstacle) => Self::Unusable(obstacle, reason),
            None => Self::NotSent(reason),
        }
    }
}

/// Why a request has no response. Only a failed connection attempt, or an alert about the client
/// certificate, proves that nothing was sent.
pub(crate) fn request_error(error: &hyper_util::client::legacy::Error) -> TransportError {
    if let Some(failed) = cause::<ConnectError>(error) {
        return failed.clone().into();
    }
    // A node refuses a client certificate after the client has finished the handshake. HTTP/2
    // reports only the text of this error.
    let alert = chain(error).find_map(|error| {
        let text = error.to_string();
        let (_, alert) = text.split_once("received fatal alert: ")?;
        Some(alert.to_owned())
    });
    if let Some(alert) = alert {
        return late_alert_error(&alert);
    }
    match cause::<hyper::Error>(error) {
        Some(error) if error.is_incomplete_message() => {
            TransportError::Lost("it closed the connection without a response".to_owned())
        }
        Some(error) if error.is_parse() => {
            TransportError::Lost("its response is not HTTP; is it a port for https://?".to_owned())
        }
        _ => TransportError::Lost(innermost(error)),
    }
}

/// The failure of a request whose node ends the TLS connection after the client has finished the
/// handshake.
fn late_alert_error(alert: &str) -> TransportError {
    let refused = alert_error(alert);
    match refused.obstacle {
        // A node checks the certificate before it reads a request.
        Some(Obstacle::ClientCertificate) => refused.into(),
        _ => TransportError::Lost(format!("it ended the TLS connection: {alert}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refused_certificate_proves_that_a_request_was_not_read() {
        for (alert, is_unsent) in [
            ("CertificateRequired", true),
            ("UnknownCA", true),
            ("BadRecordMac", false),
            ("InternalError", false),
        ] {
            let error = late_alert_error(alert);
            let is_lost = matches!(error, TransportError::Lost(_));
            assert_eq!(is_lost, !is_unsent, "{error:?}");
        }
    }
}
