//! HTTP/2 clients with windows of any size.

use std::sync::Arc;

use anyhow::Context;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::authority::Authority;
use crate::cluster::Cluster;

/// Connects to the first node with HTTP/2 over TLS. The node may send `window` bytes of an answer
/// before they are read.
pub async fn connected(cluster: &Cluster, window: u32) -> anyhow::Result<SendRequest<String>> {
    let authority = cluster.options().authority.as_ref();
    let authority = authority.context("the cluster has no TLS")?;
    let plain = TcpStream::connect(cluster.place(1).api()).await?;
    secured(plain, authority, window).await
}

/// Like [`connected`], over an existing connection to any node.
pub async fn secured(
    plain: TcpStream,
    authority: &Authority,
    window: u32,
) -> anyhow::Result<SendRequest<String>> {
    let mut roots = RootCertStore::empty();
    let file = authority.trust(None).ca_file.context("no CA file")?;
    for root in CertificateDer::pem_file_iter(file)? {
        roots.add(root?)?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("localhost")?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, plain);
    let mut two = http2::Builder::new(TokioExecutor::new());
    let two = two.initial_stream_window_size(window);
    let (connection, served) = two.handshake(TokioIo::new(secured.await?)).await?;
    drop(tokio::spawn(served));
    Ok(connection)
}
