//! How each listener is secured.

use std::sync::Arc;

use super::certificates::{Certificates, Clients, WrongFiles};
use super::settings::{CertificateFiles, PeerTls};
use super::{Gate, Link, node_name};
use placement_base::net::Net;
use placement_base::permissions::{Exposed, check_secret_file};

/// Which listeners use TLS, and with which files. `None`: without TLS.
#[derive(Debug)]
pub struct ListenerTls {
    pub peer: Option<(PeerTls, CertificateFiles)>,
    pub admin: Option<CertificateFiles>,
    /// The first value: whether plain connections are accepted, too.
    pub api: Option<(bool, CertificateFiles)>,
    pub web: Option<CertificateFiles>,
}

/// How the connections of each listener are secured.
pub struct Gates {
    pub api: Gate,
    pub peer: Gate,
    pub admin: Gate,
    pub web: Gate,
}

/// The TLS setup of this node, with the loaded certificates.
pub struct Secured {
    pub gates: Gates,
    /// How this node connects to the others.
    pub link: Link,
    /// The certificates to reload while this node runs, with the listeners that use them.
    pub certificates: Vec<(&'static str, Arc<Certificates>)>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum NotSecured {
    /// Other users can read a key.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// A file cannot be used.
    #[error(transparent)]
    Files(#[from] WrongFiles),
}

impl Secured {
    /// Loads the certificates of all listeners that use TLS.
    pub fn open(wanted: ListenerTls, node: u64, net: Arc<dyn Net>) -> Result<Self, NotSecured> {
        let mut gates = Gates {
            api: Gate::Plain,
            peer: Gate::Plain,
            admin: Gate::Plain,
            web: Gate::Plain,
        };
        let mut link = Link::new(net.clone(), None);
        let mut opened = Vec::new();
        let mut open = |listener, files: CertificateFiles, clients, protocols: &[&str], name| {
            check_secret_file(&files.key)?;
            let certificates = Certificates::open(files, clients, protocols, name)?;
            opened.push((listener, certificates.clone()));
            Ok::<_, NotSecured>(certificates)
        };
        if let Some((mode, files)) = wanted.peer {
            let certificates = open("peer", files, Clients::Must, &[], Some(node_name(node)))?;
            if mode != PeerTls::Allow {
                link = Link::new(net, Some(certificates.clone()));
            }
            gates.peer = Gate::Tls {
                certificates,
                plain_too: mode != PeerTls::Require,
            };
        }
        if let Some(files) = wanted.admin {
            gates.admin = Gate::Tls {
                certificates: open("admin", files, Clients::Must, &["http/1.1"], None)?,
                plain_too: false,
            };
        }
        if let Some((plain_too, files)) = wanted.api {
            gates.api = Gate::Tls {
                certificates: open("api", files, Clients::May, &["h2", "http/1.1"], None)?,
                plain_too,
            };
        }
        if let Some(files) = wanted.web {
            gates.web = Gate::Tls {
                certificates: open("web", files, Clients::May, &["http/1.1"], None)?,
                plain_too: false,
            };
        }
        Ok(Self {
            gates,
            link,
            certificates: opened,
        })
    }
}
