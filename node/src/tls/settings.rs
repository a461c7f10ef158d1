//! `[tls]`, and what other tables say of TLS.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use placement_api::settings::{Invalid, settings};

settings! {
    /// Certificates by which the nodes of a cluster identify each other. `placementctl tls` makes
    /// them.
    TlsSection {
        /// PEM file with the authorities of this cluster, which serve its nodes and operators only.
        /// These three files are read again when they change.
        ca_file: Option<PathBuf> = None,
        /// PEM file with this node's certificate, for `node-ID.placement.internal` and
        /// `peer.placement.internal`, followed by intermediate certificates.
        cert_file: Option<PathBuf> = None,
        /// PEM file with its key.
        key_file: Option<PathBuf> = None,
    }
}

/// Whether nodes connect to each other by TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerTls {
    /// No.
    Off,
    /// Those that begin so. Other nodes are connected to plainly.
    Allow,
    /// Those that begin so. Other nodes are connected to by TLS.
    Prefer,
    /// All.
    Require,
}

/// Whether operators connect by TLS: one who connected plainly would be obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminTls {
    /// No.
    Off,
    /// All.
    Require,
}

/// Where a certificate is, its key, and what vouches for the other end's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    /// PEM: this end's certificate first, then what leads to its authority.
    pub(crate) certificate: PathBuf,
    /// PEM: the key of it.
    pub(crate) key: PathBuf,
    /// PEM: the authorities that vouch for the other end. `None`: it is not asked for a
    /// certificate.
    pub(crate) authorities: Option<PathBuf>,
}

impl TlsSection {
    /// The files for connections within the cluster.
    ///
    /// # Errors
    /// One is not set.
    pub(crate) fn of_the_cluster(&self) -> Result<CertificateFiles, Invalid> {
        let authorities = required("tls.ca_file", self.ca_file.as_deref())?;
        self.for_clients((None, None), Some(authorities))
    }

    /// The files for clients: a certificate and a key of their own, or those of the cluster.
    ///
    /// # Errors
    /// One is not set.
    pub(crate) fn for_clients(
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
                let message = "and api.tls_cert_file are set both or neither";
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
    let missing = || Invalid::new(setting, "is required where TLS is not off");
    file.map(Path::to_owned).ok_or_else(missing)
}
