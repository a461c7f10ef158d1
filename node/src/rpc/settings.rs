//! `[peer]`.

use crate::tls::PeerTls;
use placement_api::settings::settings;

settings! {
    /// Traffic between nodes.
    PeerSection {
        /// Address for the other nodes, `host:port`.
        listen: String = "127.0.0.1:18779".to_owned(),
        /// The address that the other nodes reach, `host:port`; empty: the one listened on.
        advertise: String = String::new(),
        /// Whether nodes use TLS between each other, with `[tls]`. `off`; `allow`: accept TLS, and
        /// connect without; `prefer`: connect with TLS, and accept both; `require`: always. On a
        /// running cluster take one step at a time, on all nodes.
        tls: PeerTls = PeerTls::Off,
    }
    fixed {
        /// A connection that answers nothing for this long while an answer is due is given up, in
        /// milliseconds.
        silence_ms: u64 = 1_000,
        /// How long connecting may take, in milliseconds.
        connect_ms: u64 = 1_000,
    }
}
