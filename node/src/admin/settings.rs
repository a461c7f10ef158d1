//! Declares the settings of `[admin]`.

use placement_base::settings::{Invalid, is_loopback, settings};
use placement_peer::tls::{AdminTls, CertificateFiles, TlsSection};

settings! {
    /// The admin listener. `placementctl` on this machine connects to the Unix socket `admin.sock`
    /// in the data directory, which only this process's user can open.
    AdminSection {
        /// Address of a listener for `placementctl` on other machines, `host:port`. The listener
        /// also serves health checks and `/metrics`. Empty: no such listener.
        listen: String = String::new(),
        /// Address at which operators reach this node, `host:port`; empty: the listening address.
        advertise: String = String::new(),
        /// `require`: the listener uses TLS with the files of `[tls]`, and operators authenticate
        /// with certificates that an authority in `ca_file` has signed. `off`: every client has
        /// full access, so `listen` must be a loopback address.
        tls: AdminTls = AdminTls::Off,
    }
    fixed {
        /// Whether there is a socket: a simulated machine has none.
        has_socket: bool = true,
        /// Whether `listen` may be another address than loopback although TLS is off: a simulated
        /// machine has no loopback.
        plain_beyond_loopback: bool = false,
    }
}

impl AdminSection {
    /// The files for TLS, if it is used.
    ///
    /// # Errors
    /// Files are missing, or TLS is required.
    pub(crate) fn certificates(
        &self,
        tls: &TlsSection,
    ) -> Result<Option<CertificateFiles>, Invalid> {
        let is_local = self.listen.is_empty() || is_loopback(&self.listen);
        match self.tls {
            AdminTls::Require => tls.cluster_files().map(Some),
            AdminTls::Off if is_local || self.plain_beyond_loopback => Ok(None),
            AdminTls::Off => Err(Invalid::new(
                "admin.listen",
                "is not a loopback address, and every client would have full access: set admin.tls \
                = \"require\", or leave admin.listen empty and use the Unix socket",
            )),
        }
    }
}
