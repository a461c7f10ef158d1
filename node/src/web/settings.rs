//! Declares the settings of `[web]`.

use std::path::Path;

use placement_api::http::AuthStrategy;
use placement_base::settings::{Invalid, is_loopback, settings};
use placement_peer::tls::{CertificateFiles, TlsSection};

settings! {
    /// Read-only pages for browsers, with a login by Keystone: `[auth] strategy` must be
    /// `keystone`, and users need the policy rule `placementd:web`. `placementctl web` shows the
    /// same pages to operators without a login.
    WebSection {
        /// Address of the pages, `host:port`; empty: none. On loopback they are served over plain
        /// HTTP, for a proxy on this machine; on other addresses always over TLS, with the
        /// certificate of `[api]` or `[tls]`.
        listen: String = String::new(),
    }
}

impl WebSection {
    /// The files for TLS, if it is used; `own` are those of the API, if it has any.
    ///
    /// # Errors
    /// Files are missing, or users could not log in.
    pub(crate) fn certificates(
        &self,
        strategy: AuthStrategy,
        own: (Option<&Path>, Option<&Path>),
        tls: &TlsSection,
    ) -> Result<Option<CertificateFiles>, Invalid> {
        let refused = |message| Err(Invalid::new("web.listen", message));
        if self.listen.is_empty() {
            return Ok(None);
        }
        if strategy != AuthStrategy::Keystone {
            return refused(
                "needs auth.strategy = \"keystone\", because users log in with Keystone: set it, \
                or leave web.listen empty and use `placementctl web`",
            );
        }
        if is_loopback(&self.listen) {
            return Ok(None);
        }
        if own == (None, None) && tls.cert_file.is_none() {
            return refused(
                "is not a loopback address, and passwords would cross the network in clear: set \
                api.tls_cert_file and api.tls_key_file, which the pages then use",
            );
        }
        tls.for_clients(own, None).map(Some)
    }
}
