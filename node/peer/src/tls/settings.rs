//! The table `[tls]`, and the TLS settings of other tables.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use placement_base::settings::{Invalid, settings};

settings! {
    /// Certificates by which the nodes of a cluster identify each other. `placementctl tls` creates
    /// them.
    TlsSection {
        /// PEM file with the authorities of this cluster, which must sign only certificates of its
        /// nodes and operators. The files of this table are reloaded when they change.
        ca_file: Option<PathBuf> = None,
        /// PEM file with this node's certificate, followed by intermediate certificates. Its names
        /// must include `node-ID.placement.internal` and `peer.placement.internal`.
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

/// Whether operators must use TLS. A connection without TLS has the same rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminTls {
    /// Operators connect without TLS.
    Off,
    /// Operators must use TLS.
    Require,
}

/// Files of a certificate, its key, and the authorities that verify the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: this node's certificate first, then the intermediate certificates.
    pub(crate) certificate: PathBuf,
    /// Private key for `certificate`, in PEM format.
    pub(crate) key: PathBuf,
    /// PEM: the authorities that verify the other side. `None`: the other side is not asked for a
    /// certificate.
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

    /// The files for a listener for clients. `own` is the certificate and the key of the listener;
    /// if both are `None`, those of the cluster are used.
    ///
    /// # Errors
    /// Only one of certificate and key is set, or a needed file of the cluster is not set.
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
                let message = "must be set together with api.tls_cert_file";
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
