//! HTTP client for external services, over the node's network ([`Net`]). Each request has its own
//! connection and a timeout; the client keeps no state between requests.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use placement_base::net::{BoxStream, Net};

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(String);

impl NoAnswer {
    fn no_address(uri: &Uri) -> Self {
        Self(format!("{uri} is not a valid address"))
    }

    fn broken(error: impl fmt::Display) -> Self {
        Self(format!("the connection failed: {error}"))
    }
}

/// An HTTP client with a timeout.
#[derive(Clone)]
pub struct Outgoing {
    net: Arc<dyn Net>,
    /// Required for `https` URLs.
    tls: Option<TlsConnector>,
    deadline: Duration,
    answer_bytes_max: usize,
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

impl Outgoing {
    /// `deadline` is the timeout of each request; an answer longer than `answer_bytes_max` is an
    /// error.
    pub fn new(
        net: Arc<dyn Net>,
        tls: Option<TlsConnector>,
        deadline: Duration,
        answer_bytes_max: usize,
    ) -> Self {
        Self {
            net,
            tls,
            deadline,
            answer_bytes_max,
        }
    }

    /// Sends a request to the host of its URI and returns the whole answer.
    pub async fn request<B>(&self, request: Request<B>) -> Result<Response<Bytes>, NoAnswer>
    where
        B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let answer = timeout(self.deadline, self.exchange(request)).await;
        answer.unwrap_or_else(|_| {
            let seconds = self.deadline.as_secs_f32();
            Err(NoAnswer(format!("no answer within {seconds} s")))
        })
    }

    async fn connect(&self, to: &Uri) -> Result<BoxStream, NoAnswer> {
        let no_address = || NoAnswer::no_address(to);
        let host = to.host().ok_or_else(no_address)?;
        let is_tls = to.scheme() == Some(&Scheme::HTTPS);
        let port = to.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let address = format!("{host}:{port}");
        let failed = |error: io::Error| NoAnswer(format!("cannot connect to {address}: {error}"));
        let stream = self.net.connect(&address).await.map_err(failed)?;
        let Some(tls) = self.tls.as_ref().filter(|_| is_tls) else {
            return Ok(stream);
        };
        let name = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| no_address())?;
        Ok(Box::new(tls.connect(name, stream).await.map_err(failed)?))
    }

    async fn exchange<B>(&self, mut request: Request<B>) -> Result<Response<Bytes>, NoAnswer>
    where
        B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let to = request.uri().clone();
        let stream = self.connect(&to).await?;
        let no_address = || NoAnswer::no_address(&to);
        let authority = to.authority().ok_or_else(no_address)?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| no_address())?;
        request.headers_mut().entry(HOST).or_insert(host);
        let path = to.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|_| no_address())?;

        let begun = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = begun.map_err(NoAnswer::broken)?;
        let answer = pin!(async move {
            let answer = sender.send_request(request).await;
            let (head, body) = answer.map_err(NoAnswer::broken)?.into_parts();
            let body = Limited::new(body, self.answer_bytes_max)
                .collect()
                .await
                .map_err(NoAnswer::broken)?
                .to_bytes();
            Ok(Response::from_parts(head, body))
        });
        // This task drives the connection while it waits for the answer.
        match select(answer, pin!(connection)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((_, answer)) => answer.await,
        }
    }
}

/// TLS for services whose certificate is issued by a CA in `ca_file` or, without a file, by a CA
/// that this machine trusts.
pub fn tls(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(file) => {
            let wrong = |error: &dyn fmt::Display| format!("{}: {error}", file.display());
            let found: Vec<_> = CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect)
                .map_err(|error| wrong(&error))?;
            for certificate in found {
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        // Unparsable certificates are skipped.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("no CA certificate found to verify the server with".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
