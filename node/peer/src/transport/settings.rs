//! Declares the settings of `[peer]`.

use crate::tls::PeerTls;
use placement_base::settings::settings;

settings! {
    /// The listener for other nodes, and connections to them.
    PeerSection {
        /// Address to listen on for the other nodes, `host:port`.
        listen: String = "127.0.0.1:18779".to_owned(),
        /// Address at which the other nodes reach this node, `host:port`; empty: the listening
        /// address.
        advertise: String = String::new(),
        /// Whether nodes use TLS between each other, with `[tls]`. `off`: never; `allow`: accept
        /// TLS, connect without; `prefer`: connect with TLS, accept both; `require`: always. On a
        /// running cluster, take one step at a time on all nodes.
        tls: PeerTls = PeerTls::Off,
    }
    fixed {
        /// A connection without an answer for this long while one is due is closed, in
        /// milliseconds.
        silence_ms: u64 = 1_000,
        /// Deadline of connecting, in milliseconds.
        connect_ms: u64 = 1_000,
    }
}
