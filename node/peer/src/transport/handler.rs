//! The trait that handles the calls of other nodes, after their connection is accepted.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use placement_base::log_messages::log;
use placement_base::record::{RecordVersion, WireError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::denied::Denied;
use super::greeting::{Hello, Welcome};
use super::log_throttle::LogThrottle;
use super::method::Method;
use super::reply::{Forwarder, Reply};

/// The calling node and the encoding of its answers.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The caller's node id.
    pub node: u64,
    /// Version of the records on its connection.
    pub records: RecordVersion,
}

/// Handles the calls of other nodes.
pub trait Handler: Send + Sync + 'static {
    /// Accepts or rejects a caller. `version` is the negotiated protocol version.
    fn greet(&self, hello: &Hello, version: u16) -> Result<Welcome, Denied>;

    /// Checks that a connected node may make this call now: it may have been removed from the
    /// cluster since it connected.
    fn admits(&self, from: u64, method: Method) -> Result<(), Denied>;

    /// The wall clock of this node, in microseconds since 1970.
    fn clock(&self) -> i64;

    /// Carries out a call and returns the answer, a record in the caller's version.
    fn call(
        &self,
        caller: Caller,
        method: Method,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Vec<u8>, Denied>>;

    /// Queues a write that another node has forwarded, or refuses it. If some of the work would
    /// delay further calls of the connection, returns it as a future.
    fn write(
        self: Arc<Self>,
        from: u64,
        body: &[u8],
        forwarder: Forwarder,
    ) -> Option<BoxFuture<'static, ()>>;

    /// The number of the stream that an append belongs to; `None` if it belongs to no stream.
    ///
    /// # Errors
    /// The append cannot be decoded.
    fn stream_of(&self, append: &Bytes) -> Result<Option<u64>, WireError>;

    /// Reports that node `by` has sent log entries that only a newer binary can read. This node
    /// cannot continue without these entries.
    fn report_unreadable_call(&self, by: u64, error: &WireError);

    /// Handles the appends of one stream in order, until the stream ends.
    fn append_stream(
        &self,
        from: u64,
        appends: mpsc::UnboundedReceiver<StreamedAppend>,
    ) -> BoxFuture<'_, ()>;
}

/// An append that has arrived, and the handle for its answer.
pub struct StreamedAppend {
    pub(super) body: Bytes,
    pub(super) stream: Option<u64>,
    pub(super) reply: Reply,
    pub(super) connection: Arc<Connection>,
}

impl StreamedAppend {
    /// Whether it belongs to no stream. Only heartbeats are sent without a stream.
    pub fn is_alone(&self) -> bool {
        self.stream.is_none()
    }

    /// The encoded append.
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// The handle for its answer.
    pub fn into_reply(self) -> Reply {
        self.reply
    }

    /// Answers that the append cannot be decoded.
    pub fn unreadable(self, error: WireError) {
        self.connection.unreadable(error, self.reply);
    }
}

/// State of one connection, shared by the tasks that serve it.
pub(super) struct Connection {
    pub(super) caller: Caller,
    pub(super) is_introduction: bool,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) logged: Arc<LogThrottle>,
    /// Ends the connection when cancelled.
    pub(super) end: CancellationToken,
}

impl Connection {
    /// Answers that log entries cannot be decoded. If they arrived damaged, closes the connection,
    /// so that they are sent again.
    pub(super) fn unreadable(&self, error: WireError, reply: Reply) {
        let peer = self.caller.node;
        let is_newer = matches!(error, WireError::Newer(_));
        if is_newer {
            self.handler.report_unreadable_call(peer, &error);
        } else if self.logged.is_due(peer, "damage") {
            log!(
                ENTRIES_DAMAGED,
                peer,
                %error,
                "log entries arrived damaged; closing the connection, so that they are sent again"
            );
        }
        reply.send(Err(Denied::Malformed(error)));
        if !is_newer {
            self.end.cancel();
        }
    }

    /// Rejects a call. If the caller was removed from the cluster, closes the connection.
    pub(super) fn refuse(&self, denied: Denied, reply: Reply) {
        let (peer, reason) = (self.caller.node, denied.to_string());
        if self.logged.is_due(peer, &reason) {
            log!(PEER_CALL_REJECTED, peer, reason, "rejected a peer's call");
        }
        let is_removed = matches!(denied, Denied::Removed { .. });
        reply.send(Err(denied));
        if is_removed {
            self.end.cancel();
        }
    }
}
