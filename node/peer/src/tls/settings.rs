//! The table `[tls]`, and the TLS settings of other tables.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use placement_base::settings::{Invalid, settings};

settings! {
    /// Certificates by which the nodes of a cluster identify each other. `placementctl tls` creates
    /// them.
    TlsSection {
        /// PEM file with the authorities of this cluster, which sign its nodes and operators only.
        /// These three files are reloaded when they change.
        ca_file: Option<PathBuf> = None,
        /// PEM file with this node's certificate, for `node-ID.placement.internal` and
        /// `peer.placement.internal`, followed by intermediate certificates.
        cert_file: Option<PathBuf> = None,
        /// PEM file with the key of `cert_file`.
        key_file: Option<PathBuf> = None,
    }
}

/// Whether nodes connect to each other by TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerTls {
    /// Nodes never use TLS.
    Off,
    /// Accepts TLS and plain connections; connects without TLS.
    Allow,
    /// Accepts TLS and plain connections; connects with TLS.
    Prefer,
    /// Nodes always use TLS.
    Require,
}

/// Whether operators must connect by TLS: a plain connection has the same rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminTls {
    /// Operators connect without TLS.
    Off,
    /// Operators must use TLS.
    Require,
}

/// Files of a certificate, its key, and the authorities for the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: this end's certificate first, then the intermediate ones.
    pub(crate) certificate: PathBuf,
    /// Private key for `certificate`, in PEM format.
    pub(crate) key: PathBuf,
    /// PEM: the authorities for the other end. `None`: it is not asked for a certificate.
    pub(crate) authorities: Option<PathBuf>,
}

impl TlsSection {
    /// The files for connections within the cluster.
    ///
    /// # Errors
    /// A file is not set.
    pub fn cluster_files(&self) -> Result<CertificateFiles, Invalid> {
        let authorities = required("tls.ca_file", self.ca_file.as_deref())?;
        self.for_clients((None, None), Some(authorities))
    }

    /// The files for clients: a certificate and a key of their own, or those of the cluster.
    ///
    /// # Errors
    /// A file is not set.
    pub fn for_clients(
        &self,
        own: (Option<&Path>, Option<&Path>),
        authorities: Option<PathBuf>,
    ) -> Result<CertificateFiles, Invalid> {
        let (certificate, key) = match own {
            (Some(certificate), Some(key)) => (certificate.to_owned(), key.to_owned()),
            (None, None) => (
                required("tls.cert_file", self.cert_file.as_deref())?,
                required("tls.key_file", self.key_file.as_deref())?,
            ),
            _ => {
                let message = "and api.tls_cert_file must be set together";
                return Err(Invalid::new("api.tls_key_file", message));
            }
        };
        Ok(CertificateFiles {
            certificate,
            key,
            authorities,
        })
    }
}

fn required(setting: &str, file: Option<&Path>) -> Result<PathBuf, Invalid> {
    let missing = || Invalid::new(setting, "is required unless TLS is off");
    file.map(Path::to_owned).ok_or_else(missing)
}
