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
        /// `allow`: accept connections with and without TLS, connect without; `prefer`: accept
        /// connections with and without TLS, connect with TLS; `require`: always. In a running
        /// cluster, go through these values in order: set each value on all nodes before you set
        /// the next one.
        tls: PeerTls = PeerTls::Off,
    }
    fixed {
        /// A connection is closed if an answer is due and nothing has arrived for this long, in
        /// milliseconds.
        silence_ms: u64 = 1_000,
        /// Timeout for opening a connection, in milliseconds.
        connect_ms: u64 = 1_000,
    }
}
