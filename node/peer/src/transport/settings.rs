//! Declares the settings of `[peer]`.

use crate::tls::PeerTls;
use placement_base::settings::settings;

settings! {
    /// The listener for other nodes, and the connections to them.
    PeerSection {
        /// Address to listen on for the other nodes, `host:port`.
        listen: String = "127.0.0.1:18779".to_owned(),
        /// Address at which the other nodes reach this node, `host:port`; empty: the listening
        /// address.
        advertise: String = String::new(),
        /// Whether nodes use TLS between each other, with the files of `[tls]`. `off`: never;
        /// `allow`: accept both, connect without TLS; `prefer`: accept both, connect with TLS;
        /// `require`: always. In a running cluster, set each of these values on all nodes before
        /// the next one.
        tls: PeerTls = PeerTls::Off,
    }
    fixed {
        /// A connection is closed if an answer is due and nothing arrives for this long, in
        /// milliseconds.
        silence_ms: u64 = 1_000,
        /// Timeout for opening a connection, in milliseconds.
        connect_ms: u64 = 1_000,
    }
}
