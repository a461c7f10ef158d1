//! What a node does with the calls of others, once their connection is accepted.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
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
    /// The caller's node number.
    pub node: u64,
    /// Version of the records on its connection.
    pub records: RecordVersion,
}

/// Handles the calls of other nodes.
pub trait Handler: Send + Sync + 'static {
    /// Welcomes a caller with this version of the protocol.
    fn greet(&self, hello: &Hello, version: u16) -> Result<Welcome, Denied>;

    /// Checks that a welcomed node may make this call now. A connection may outlive its node's
    /// membership.
    fn admits(&self, from: u64, method: Method) -> Result<(), Denied>;

    /// The wall clock of this node, in microseconds since 1970.
    fn clock(&self) -> i64;

    /// Answers one call, with a record of the caller's version.
    fn call(
        &self,
        caller: Caller,
        method: Method,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Vec<u8>, Denied>>;

    /// Queues a write that another node forwards, or refuses it. Returns the remaining work if it
    /// takes longer than the reader of the connection may take.
    fn write(
        self: Arc<Self>,
        from: u64,
        body: &[u8],
        forwarder: Forwarder,
    ) -> Option<BoxFuture<'static, ()>>;

    /// The number of the stream that an append belongs to; `None` for one that is handled alone.
    ///
    /// # Errors
    /// The append cannot be decoded.
    fn stream_of(&self, append: &Bytes) -> Result<Option<u64>, WireError>;

    /// Notes that a node sends log entries of a newer binary: this node must not continue without
    /// them.
    fn report_unreadable_call(&self, by: u64, error: &WireError);

    /// Handles the appends of one stream in order, until the stream ends.
    fn append_stream(
        &self,
        from: u64,
        appends: mpsc::UnboundedReceiver<StreamedAppend>,
    ) -> BoxFuture<'_, ()>;
}

/// One append of a stream, and where its answer goes.
pub struct StreamedAppend {
    pub(super) body: Bytes,
    pub(super) stream: Option<u64>,
    pub(super) reply: Reply,
    pub(super) connection: Arc<Connection>,
}

impl StreamedAppend {
    /// Whether it is not part of a stream. Only heartbeats are sent this way.
    pub fn is_alone(&self) -> bool {
        self.stream.is_none()
    }

    /// The encoded append.
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// Where its answer goes.
    pub fn into_reply(self) -> Reply {
        self.reply
    }

    /// Answers that it cannot be decoded.
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
    /// Answers log entries that cannot be decoded: they are lost for this node, unless they are
    /// sent again.
    pub(super) fn unreadable(&self, error: WireError, reply: Reply) {
        let peer = self.caller.node;
        let is_newer = matches!(error, WireError::Newer(_));
        if is_newer {
            self.handler.report_unreadable_call(peer, &error);
        } else if self.logged.is_due(peer, "damage") {
            tracing::error!(peer, %error, "log entries arrived damaged; closing the connection, \
                so that they are sent again");
        }
        reply.send(Err(Denied::Malformed(error)));
        if !is_newer {
            self.end.cancel();
        }
    }

    /// Rejects a call. The connection of a removed node ends.
    pub(super) fn refuse(&self, denied: Denied, reply: Reply) {
        let (peer, reason) = (self.caller.node, denied.to_string());
        if self.logged.is_due(peer, &reason) {
            tracing::warn!(peer, reason, "rejected a peer's call");
        }
        let is_removed = matches!(denied, Denied::Removed { .. });
        reply.send(Err(denied));
        if is_removed {
            self.end.cancel();
        }
    }
}
