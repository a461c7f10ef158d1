//! TLS on this node's listeners, and on its connections to other nodes.
//!
//! The names in a certificate identify a node or an operator: [`PeerCertificate`]. The authority of
//! a cluster must sign only certificates of its nodes and operators.

mod certificates;
#[cfg(test)]
pub mod fixtures;
mod gate;
mod link;
mod secured;
mod settings;

pub use certificates::Certificates;
pub(crate) use gate::tls_reason;
pub use gate::{Admitted, Gate, Refused};
pub use link::Link;
pub use secured::{Gates, ListenerTls, NotSecured, Secured};
pub use settings::CertificateFiles;
pub use settings::{AdminTls, PeerTls, TlsSection};

use std::sync::Arc;

use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The name in the certificates of all nodes.
const PEER: &str = "peer.placement.internal";
/// The name in the certificates of operators.
const ADMIN: &str = "admin.placement.internal";

/// Maximum length of the owner's name that is shown, in characters.
pub const OWNER_MAX: usize = 64;

/// The name that only the certificate of node `node` contains.
fn node_name(node: u64) -> String {
    format!("node-{node}.placement.internal")
}

/// The verified certificate that the other side of a connection has presented.
#[derive(Debug, Clone)]
pub struct PeerCertificate(Arc<CertificateDer<'static>>);

impl PeerCertificate {
    /// The end-entity certificate of a chain.
    fn first(chain: Option<&[CertificateDer<'static>]>) -> Option<Self> {
        let first = chain?.first()?;
        Some(Self(Arc::new(first.clone())))
    }

    /// Whether this is the certificate of node `node`.
    pub(crate) fn belongs_to_node(&self, node: u64) -> bool {
        self.has_name(node_name(node))
    }

    /// Whether it is the certificate of an operator.
    pub fn belongs_to_operator(&self) -> bool {
        self.has_name(ADMIN.to_owned())
    }

    /// The owner: the common name of the certificate, such as `admin-alice`, cut to [`OWNER_MAX`]
    /// characters.
    pub fn owner(&self) -> Option<String> {
        let (_, certificate) = X509Certificate::from_der(&self.0).ok()?;
        let name = certificate.subject().iter_common_name().next()?;
        Some(name.as_str().ok()?.chars().take(OWNER_MAX).collect())
    }

    fn has_name(&self, name: String) -> bool {
        let (Ok(certificate), Ok(name)) = (
            ParsedCertificate::try_from(&*self.0),
            ServerName::try_from(name),
        ) else {
            return false;
        };
        verify_server_name(&certificate, &name).is_ok()
    }
}
