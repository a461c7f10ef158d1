//! Connections to nodes: TCP, TLS or Unix sockets.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tower_service::Service;

use crate::connect_error::{self, ConnectError, Obstacle};
use crate::endpoint::socket;

/// A part of the answer of the port for other nodes to an HTTP request.
const PEER_PORT: &str = "the port for other nodes";
/// Longer answers are truncated when they are searched for [`PEER_PORT`].
const PEER_ANSWER_BYTES_MAX: u64 = 1024;

/// A future on the heap.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// TLS settings of a client.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// PEM file with the certificate authorities of nodes; `None`: the authorities of this machine.
    pub ca_file: Option<PathBuf>,
    /// PEM files of the client certificate, with its chain, and of its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Connector for the HTTP client.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    limit: Duration,
    trust: Arc<Trust>,
    /// Loaded from the files on first use.
    tls: Arc<OnceLock<Result<TlsConnector, ConnectError>>>,
}

impl Connector {
    /// `limit` is the timeout of connecting and of the TLS handshake.
    pub(crate) fn new(trust: Trust, limit: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(limit));
        tcp.enforce_http(false);
        Self {
            tcp,
            limit,
            trust: Arc::new(trust),
            tls: Arc::default(),
        }
    }

    async fn connect(mut self, url: Uri) -> Result<Box<dyn Stream>, ConnectError> {
        if let Some(path) = socket(&url) {
            let stream = UnixStream::connect(&path).await;
            let stream = stream.map_err(|error| connect_error::socket_error(&error))?;
            return Ok(Box::new(TokioIo::new(stream)));
        }
        // Read first: a wrong file is reported even if no node answers.
        let is_secured = url.scheme() == Some(&Scheme::HTTPS);
        let tls = is_secured.then(|| self.tls.get_or_init(|| tls(&self.trust)).clone());
        let tls = tls.transpose()?;
        let tcp = self.tcp.call(url.clone()).await;
        let tcp = tcp.map_err(|error| connect_error::tcp_error(&error, self.limit))?;
        let Some(tls) = tls else {
            return Ok(Box::new(tcp));
        };
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            let reason = format!("{host:?} cannot be the name of a certificate");
            ConnectError::permanent(Obstacle::Settings, reason)
        })?;
        let limit = self.limit;
        let secured = timeout(limit, tls.connect(name, tcp.into_inner())).await;
        let secured = secured
            .map_err(|_| ConnectError::passing(format!("no TLS handshake within {limit:?}")))?;
        let error = match secured {
            Ok(stream) => return Ok(Box::new(TokioIo::new(stream))),
            Err(error) => error,
        };
        let is_about_tls = (error.get_ref()).is_some_and(|inner| inner.is::<rustls::Error>());
        // Without TLS, the port for other nodes closes a connection that begins with a handshake.
        if !is_about_tls && self.is_peer_port(url).await {
            let reason = format!("this is {PEER_PORT}");
            return Err(ConnectError::permanent(Obstacle::PeerPort, reason));
        }
        let ca_file = self.trust.ca_file.as_deref();
        Err(connect_error::handshake_error(&error, ca_file))
    }

    /// Whether this address answers a request without TLS as the port for other nodes does.
    async fn is_peer_port(&mut self, url: Uri) -> bool {
        let asked = async {
            let mut tcp = self.tcp.call(url).await.ok()?.into_inner();
            tcp.write_all(b"GET / HTTP/1.1\r\n\r\n").await.ok()?;
            let mut answer = Vec::new();
            let mut tcp = tcp.take(PEER_ANSWER_BYTES_MAX);
            tcp.read_to_end(&mut answer).await.ok()?;
            Some(String::from_utf8_lossy(&answer).contains(PEER_PORT))
        };
        let limit = self.limit;
        let answer = timeout(limit, asked).await;
        answer.is_ok_and(|answer| answer == Some(true))
    }
}

impl Service<Uri> for Connector {
    type Response = Box<dyn Stream>;
    type Error = ConnectError;
    type Future = BoxFuture<Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        Box::pin(self.clone().connect(url))
    }
}

fn tls(trust: &Trust) -> Result<TlsConnector, ConnectError> {
    let mut roots = RootCertStore::empty();
    match &trust.ca_file {
        Some(file) => {
            for certificate in certificates(file)? {
                (roots.add(certificate)).map_err(|error| wrong(file, &error.to_string()))?;
            }
        }
        // Certificates that cannot be parsed are skipped.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::permanent(Obstacle::Settings, error.to_string()))?
        .with_root_certificates(roots);
    let mut config = match &trust.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let private = PrivateKeyDer::from_pem_file(key);
            let private = private.map_err(|error| unreadable(key, &error, "private key"))?;
            let chosen = builder.with_client_auth_cert(chain, private);
            chosen.map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    wrong(key, &format!("not the key of {}", certificate.display()))
                }
                error => wrong(certificate, &error.to_string()),
            })?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| unreadable(file, &error, "certificate"))?;
    if found.is_empty() {
        Err(wrong(file, "contains no certificate"))
    } else {
        Ok(found)
    }
}

/// The error of a PEM file that should contain `what`.
fn unreadable(file: &Path, error: &pem::Error, what: &str) -> ConnectError {
    match error {
        pem::Error::Io(error) => wrong(file, &connect_error::message(error)),
        pem::Error::NoItemsFound => wrong(file, &format!("contains no {what}")),
        error => wrong(file, &error.to_string()),
    }
}

fn wrong(file: &Path, reason: &str) -> ConnectError {
    let reason = format!("{}: {reason}", file.display());
    ConnectError::permanent(Obstacle::Settings, reason)
}

/// A connection over any medium.
pub(crate) trait Stream: Read + Write + Send + Unpin {
    fn is_http2(&self) -> bool {
        false
    }
}

impl Stream for TokioIo<TcpStream> {}

impl Stream for TokioIo<UnixStream> {}

impl Stream for TokioIo<TlsStream<TcpStream>> {
    fn is_http2(&self) -> bool {
        self.inner().get_ref().1.alpn_protocol() == Some(b"h2")
    }
}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        if self.is_http2() {
            Connected::new().negotiated_h2()
        } else {
            Connected::new()
        }
    }
}
