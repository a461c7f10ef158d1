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
        /// Whether nodes speak with each other by TLS, with `[tls]`. `off`; `allow`: those that begin so, while
        /// this node itself connects plainly; `prefer`: this node connects so, and takes both; `require`: always.
        /// Change it on a running cluster step by step, on all nodes each.
        tls: PeerTls = PeerTls::Off,
    }
    fixed {
        /// A connection that answers nothing for this long while an answer is due is given up, in milliseconds.
        silence_ms: u64 = 1_000,
        /// How long connecting may take, in milliseconds.
        connect_ms: u64 = 1_000,
    }
}
