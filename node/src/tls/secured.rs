//! Which listener is secured how.

use std::sync::Arc;

use super::certificates::{Certificates, Clients, WrongFiles};
use super::settings::{CertificateFiles, PeerTls};
use super::{Gate, Link, node_name};
use crate::permissions::{Exposed, check_secret_file};
use placement_api::net::Net;

/// Which listeners are to be secured, and with which files. `None`: not by TLS.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) peer: Option<(PeerTls, CertificateFiles)>,
    pub(crate) admin: Option<CertificateFiles>,
    /// With whether plain connections are accepted too.
    pub(crate) api: Option<(bool, CertificateFiles)>,
}

/// What the configuration says of TLS, with the certificates that its files hold.
pub(crate) struct Secured {
    pub(crate) api: Gate,
    pub(crate) peer: Gate,
    pub(crate) admin: Gate,
    /// How other nodes are connected to.
    pub(crate) link: Link,
    /// To be read again while this node runs, with the doors that show them.
    pub(crate) certificates: Vec<(&'static str, Arc<Certificates>)>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum NotSecured {
    /// A key can be read by others.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// A file is of no use.
    #[error(transparent)]
    Files(#[from] WrongFiles),
}

impl Secured {
    /// Reads the certificates.
    pub(crate) fn open(wanted: Wanted, node: u64, net: Arc<dyn Net>) -> Result<Self, NotSecured> {
        let mut secured = Self {
            api: Gate::Plain,
            peer: Gate::Plain,
            admin: Gate::Plain,
            link: Link::new(net.clone(), None),
            certificates: Vec::new(),
        };
        if let Some((mode, files)) = wanted.peer {
            let name = node_name(node);
            let certificates = open(files, Clients::Must, &[], Some(name))?;
            if mode != PeerTls::Allow {
                secured.link = Link::new(net, Some(certificates.clone()));
            }
            secured.peer = secured.gate("peer", certificates, mode != PeerTls::Require);
        }
        if let Some(files) = wanted.admin {
            let certificates = open(files, Clients::Must, &["http/1.1"], None)?;
            secured.admin = secured.gate("admin", certificates, false);
        }
        if let Some((plain_too, files)) = wanted.api {
            let certificates = open(files, Clients::May, &["h2", "http/1.1"], None)?;
            secured.api = secured.gate("api", certificates, plain_too);
        }
        Ok(secured)
    }

    fn gate(
        &mut self,
        door: &'static str,
        certificates: Arc<Certificates>,
        plain_too: bool,
    ) -> Gate {
        self.certificates.push((door, certificates.clone()));
        Gate::Tls {
            certificates,
            plain_too,
        }
    }
}

/// [`Certificates::open`], if no one else can read the key.
fn open(
    files: CertificateFiles,
    clients: Clients,
    protocols: &[&str],
    name: Option<String>,
) -> Result<Arc<Certificates>, NotSecured> {
    check_secret_file(&files.key)?;
    Ok(Certificates::open(files, clients, protocols, name)?)
}
