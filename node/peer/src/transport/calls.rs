//! The calls of one connection: reads them from frames and passes them to the
//! [`Handler`](super::handler::Handler).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use placement_base::tasks::Tasks;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep};

use super::denied::Denied;
use super::frame::{Frame, INTRODUCTION_BYTES_MAX, Kind, numbered};
use super::handler::{Connection, StreamedAppend};
use super::method::Method;
use super::reply::{CALLS_MAX, Forwarder, GivenUp, Reply};
use super::wire_io::Outbox;

/// A connection on which nothing arrives for this long is closed. Callers ping more often than
/// this.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(60);
/// Maximum bytes of queued answers of a connection. While more are queued, no further calls are
/// read from the connection.
const ANSWERS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Pause between checks whether the caller has read enough answers.
const ANSWERS_PAUSE: Duration = Duration::from_millis(10);

/// The calls of one connection.
pub(super) struct Calls {
    connection: Arc<Connection>,
    outbox: Arc<Outbox>,
    streams: BTreeMap<u64, mpsc::UnboundedSender<StreamedAppend>>,
    /// Limits the number of concurrent calls.
    permits: Arc<Semaphore>,
    /// The writes whose callers no longer wait. If a write is not proposed yet, it never will be.
    given_up: Arc<GivenUp>,
    tasks: Tasks,
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.given_up.note_all();
    }
}

impl Calls {
    /// `introductions` limits the concurrent calls of all introductions together.
    pub(super) fn new(
        connection: Arc<Connection>,
        outbox: Arc<Outbox>,
        introductions: &Arc<Semaphore>,
        tasks: Tasks,
    ) -> Self {
        let permits = if connection.is_introduction {
            introductions.clone()
        } else {
            Arc::new(Semaphore::new(CALLS_MAX))
        };
        Self {
            connection,
            outbox,
            streams: BTreeMap::new(),
            permits,
            given_up: Arc::default(),
            tasks,
        }
    }

    /// Handles one frame. An error ends the connection.
    pub(super) async fn take(&mut self, frame: Frame) -> io::Result<()> {
        match frame.kind {
            Kind::Request => {
                self.answers_read().await?;
                self.request(frame.call, frame.body).await?;
            }
            Kind::Ping => {
                self.answers_read().await?;
                let shown = self.connection.handler.clock().to_be_bytes().to_vec();
                self.outbox.send(Frame::new(Kind::Pong, 0, shown));
            }
            Kind::GivenUp => self.given_up.note(frame.call),
            Kind::StreamEnd => {
                self.streams.remove(&frame.call);
            }
            Kind::Pong => {}
            kind => return Err(io::Error::other(format!("unexpected frame {kind:?}"))),
        }
        Ok(())
    }

    /// Waits until the caller has read so many of its answers that more can be queued.
    async fn answers_read(&self) -> io::Result<()> {
        let begun = Instant::now();
        let bytes_max = if self.connection.is_introduction {
            INTRODUCTION_BYTES_MAX
        } else {
            ANSWERS_BYTES_MAX
        };
        while self.outbox.waiting_bytes() > bytes_max {
            if begun.elapsed() > IDLE_MAX {
                let reason = "the caller does not read its answers";
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            sleep(ANSWERS_PAUSE).await;
        }
        Ok(())
    }

    async fn request(&mut self, call: u64, mut body: Bytes) -> io::Result<()> {
        let (caller, handler) = (self.connection.caller, &self.connection.handler);
        let reply = Reply::new(caller.records, call, &self.outbox);
        let number = if body.is_empty() { 0 } else { body.get_u8() };
        let Some(method) = numbered::<Method>(number) else {
            reply.send(Err(Denied::UnknownMethod(number)));
            return Ok(());
        };
        if self.connection.is_introduction {
            if !method.is_introduction() {
                let denied = Denied::Misused("this call is for members of one cluster");
                reply.send(Err(denied));
                return Ok(());
            }
        } else if let Err(denied) = handler.admits(caller.node, method) {
            self.connection.refuse(denied, reply);
            return Ok(());
        }
        if method == Method::Append {
            match handler.stream_of(&body) {
                Ok(stream) => self.append(stream, body, reply),
                Err(error) => self.connection.unreadable(error, reply),
            }
            return Ok(());
        }
        let permit = (self.permits.clone().acquire_owned().await)
            .expect("the permits of a connection are never closed");
        let handler = handler.clone();
        if method == Method::Write {
            let forwarder = Forwarder::new(reply, self.given_up.clone(), permit);
            // Called here and not in a separate task, so that writes are queued in order.
            if let Some(rest) = handler.write(caller.node, &body, forwarder) {
                self.tasks.spawn(rest);
            }
            return Ok(());
        }
        self.tasks.spawn(async move {
            reply.send(handler.call(caller, method, body).await);
            drop(permit);
        });
        Ok(())
    }

    /// Passes an append to the task of its stream, so that the appends of a stream are handled in
    /// order. An append without a stream gets its own task.
    fn append(&mut self, stream: Option<u64>, body: Bytes, reply: Reply) {
        let open = || {
            let (queue, appends) = mpsc::unbounded_channel();
            let handler = self.connection.handler.clone();
            let from = self.connection.caller.node;
            self.tasks
                .spawn(async move { handler.append_stream(from, appends).await });
            queue
        };
        let queue = match stream {
            Some(number) => self.streams.entry(number).or_insert_with(open),
            None => &mut open(),
        };
        let sent = queue.send(StreamedAppend {
            body,
            stream,
            reply,
            connection: self.connection.clone(),
        });
        if let Err(rejected) = sent {
            let denied = Denied::Misused("the stream of appends has ended");
            rejected.0.reply.send(Err(denied));
        }
    }
}
