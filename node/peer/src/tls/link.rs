//! Connections to other nodes.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::certificates::Certificates;
use super::gate::reason;
use super::{PEER, PeerCertificate, node_name};
use placement_base::net::{BoxStream, Net};

/// How this node connects to the others.
#[derive(Clone)]
pub struct Link {
    net: Arc<dyn Net>,
    /// This node's certificates; `None`: connects without TLS.
    certificates: Option<Arc<Certificates>>,
}

impl Link {
    /// Creates a link over this network. Without certificates, it connects without TLS.
    pub fn new(net: Arc<dyn Net>, certificates: Option<Arc<Certificates>>) -> Self {
        Self { net, certificates }
    }

    /// Connects to a node or, without a node id, to any node of the cluster. Also returns the
    /// certificate that the other side has presented. This has no timeout, so the caller must set
    /// one.
    pub(crate) async fn connect(
        &self,
        address: &str,
        to: Option<u64>,
    ) -> io::Result<(BoxStream, Option<PeerCertificate>)> {
        let stream = self.net.connect(address).await?;
        let Some(certificates) = &self.certificates else {
            return Ok((stream, None));
        };
        let name = to.map_or_else(|| PEER.to_owned(), node_name);
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let ends = certificates.ends();
        let client = (ends.client.clone())
            .ok_or_else(|| io::Error::other("no authority for other nodes is configured"))?;
        let secured = TlsConnector::from(client).connect(name, stream).await;
        let stream = secured.map_err(|error| io::Error::new(error.kind(), reason(&error)))?;
        let certificate = PeerCertificate::first(stream.get_ref().1.peer_certificates());
        Ok((Box::new(stream), certificate))
    }
}
