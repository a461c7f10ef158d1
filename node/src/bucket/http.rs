//! HTTP to the store over this node's own network: a connection for each request, given up at its
//! deadline. Nothing of it outlives the request.

use std::fmt;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{Either, select};
use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderValue, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::Refused;
use crate::env::{BoxStream, Net};

/// What goes over at once. S3 takes no fewer than 5 MiB for a piece, and no more than 10,000 pieces.
pub(super) const PIECE_BYTES: usize = 8 << 20;
/// The longest answer that is read: a piece, or a page of a list.
const ANSWER_BYTES_MAX: usize = 2 * PIECE_BYTES;

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("it has not answered within {} s", .0.as_secs())]
    Late(Duration),
    #[error("{0} is no address")]
    NoAddress(Uri),
    #[error("cannot connect to {0}: {1}")]
    Connect(String, std::io::Error),
    #[error("the connection broke off: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl From<NoAnswer> for HttpError {
    fn from(error: NoAnswer) -> Self {
        Self::new(HttpErrorKind::Unknown, error)
    }
}

/// Makes requests.
#[derive(Clone)]
pub(super) struct Http {
    net: Arc<dyn Net>,
    tls: Option<TlsConnector>,
    deadline: Duration,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Http {
    pub(super) fn new(net: Arc<dyn Net>, tls: Option<TlsConnector>, deadline: Duration) -> Self {
        Self { net, tls, deadline }
    }

    async fn connect(&self, to: &Uri) -> Result<BoxStream, NoAnswer> {
        let no_address = || NoAnswer::NoAddress(to.clone());
        let host = to.host().ok_or_else(no_address)?;
        let is_tls = to.scheme() == Some(&Scheme::HTTPS);
        let port = to.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let address = format!("{host}:{port}");
        let failed = |error| NoAnswer::Connect(address.clone(), error);
        let stream = self.net.connect(&address).await.map_err(failed)?;
        let Some(tls) = self.tls.as_ref().filter(|_| is_tls) else {
            return Ok(stream);
        };
        let name = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| no_address())?;
        Ok(Box::new(tls.connect(name, stream).await.map_err(failed)?))
    }

    async fn exchange(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let to = request.uri().clone();
        let stream = self.connect(&to).await?;
        let no_address = || NoAnswer::NoAddress(to.clone());
        let authority = to.authority().ok_or_else(no_address)?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| no_address())?;
        request.headers_mut().entry(HOST).or_insert(host);
        let path = to.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|_| no_address())?;

        let broken = |error: hyper::Error| NoAnswer::Broken(error.into());
        let begun = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = begun.map_err(broken)?;
        let answer = pin!(async move {
            let answer = sender.send_request(request).await.map_err(broken)?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(NoAnswer::Broken)?.to_bytes();
            match Refused::of(head.status, &body) {
                Some(refused) => Err(HttpError::new(HttpErrorKind::Unknown, refused)),
                None => Ok(HttpResponse::from_parts(head, body.into())),
            }
        });
        // Whoever waits for the answer drives the connection.
        match select(answer, pin!(connection)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((_, answer)) => answer.await,
        }
    }
}

#[async_trait]
impl HttpService for Http {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match timeout(self.deadline, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(NoAnswer::Late(self.deadline).into()),
        }
    }
}

impl HttpConnector for Http {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// Who is believed to be the store: whoever has a certificate of these authorities, or of those that this
/// machine trusts.
pub(super) fn tls(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(file) => {
            let wrong = |error: &dyn fmt::Display| format!("{}: {error}", file.display());
            let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        // One that is of no use may stand beside the others.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("there is no certificate of an authority: set ca_file".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
