//! `[admin]`.

use crate::tls::{AdminTls, CertificateFiles, TlsSection};
use placement_api::settings::{Invalid, is_loopback, settings};

settings! {
    /// The listener for operators. `placementctl` on this machine connects to the socket
    /// `admin.sock` in the data directory, which is for this process's user alone.
    AdminSection {
        /// Address for `placementctl` on other machines, `host:port`, which also answers health
        /// checks and `/metrics`; empty: none.
        listen: String = String::new(),
        /// The address that operators reach, `host:port`; empty: the one listened on.
        advertise: String = String::new(),
        /// `require`: operators authenticate with a certificate, over TLS, with `[tls]`. `off`:
        /// every client is obeyed, so `listen` must be on loopback.
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
    /// They are missing, or TLS is.
    pub(crate) fn certificates(
        &self,
        tls: &TlsSection,
    ) -> Result<Option<CertificateFiles>, Invalid> {
        let is_local = self.listen.is_empty() || is_loopback(&self.listen);
        match self.tls {
            AdminTls::Require => tls.of_the_cluster().map(Some),
            AdminTls::Off if is_local || self.plain_beyond_loopback => Ok(None),
            AdminTls::Off => Err(Invalid::new(
                "admin.listen",
                "is no loopback address, and every client that reaches it would be obeyed: set admin.tls = \"require\", \
                 or leave it empty and use the socket",
            )),
        }
    }
}
