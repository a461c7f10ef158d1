//! The answering side: accepts connections of other nodes, authenticates them, and hands their
//! calls to a [`Handler`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use placement_base::log_messages::log;
use placement_base::net::{BoxStream, Listener};
use placement_base::newest_connections::NewestConnections;
use placement_base::record;
use placement_base::tasks::Tasks;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::calls::{Calls, IDLE_MAX};
use super::damage::Damage;
use super::denied::Denied;
use super::frame::{Frame, Kind, UNWELCOMED_BYTES_MAX, piece_bytes};
use super::greeting::{Hello, VERSIONS, Welcome, records};
use super::handler::{Caller, Connection, Handler};
use super::joiner::Joiner;
use super::log_throttle::LogThrottle;
use super::wire_io::{outbox, read_frame, read_some, write_frame, write_frames};
use crate::tls::{Admitted, Gate, PeerCertificate, Refused};

/// Time within which an unauthenticated peer must send its hello.
const HELLO: Duration = Duration::from_secs(5);
/// Maximum number of open connections whose hello has not been answered.
const UNWELCOMED_MAX: usize = 64;
/// Maximum duration of an introduction: a joining node waits this long for its answer. The call
/// must arrive within [`HELLO`].
const INTRODUCTION: Duration = Duration::from_secs(35);
/// Maximum number of open introductions, and of concurrent calls on all of them.
const INTRODUCTIONS_MAX: usize = 64;
/// Maximum number of open connections of members, each of which opens a few.
const MEMBERS_MAX: usize = 512;

/// A connection whose hello was answered.
struct GreetedConnection {
    stream: BoxStream,
    /// Bytes that followed the hello.
    buffer: BytesMut,
    hello: Hello,
    version: u16,
}

/// State shared by all connections of one listener.
#[derive(Clone)]
struct Reception {
    gate: Gate,
    handler: Arc<dyn Handler>,
    /// The open connections whose hello has not been answered.
    unwelcomed: Arc<NewestConnections>,
    introductions: Arc<NewestConnections>,
    members: Arc<NewestConnections>,
    /// Limits the number of concurrent calls of all introductions.
    introduction_calls: Arc<Semaphore>,
    logged: Arc<LogThrottle>,
    damage: Arc<Damage>,
    tasks: Tasks,
}

/// Accepts connections until the tasks are stopped.
pub async fn serve(
    mut listener: Box<dyn Listener>,
    gate: Gate,
    handler: Arc<dyn Handler>,
    damage: Arc<Damage>,
    tasks: Tasks,
) {
    let reception = Reception::new(gate, handler, damage, tasks.clone());
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let reception = reception.clone();
                let permit = reception.unwelcomed.permit();
                tasks.spawn(async move {
                    let served = reception.connection(stream, address, permit);
                    if let Err(error) = served.await {
                        tracing::debug!(%address, %error, "connection of a peer ended");
                    }
                });
            }
            Err(error) => {
                log!(CONNECTION_NOT_ACCEPTED, %error, "cannot accept a connection of a peer");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Reception {
    fn new(gate: Gate, handler: Arc<dyn Handler>, damage: Arc<Damage>, tasks: Tasks) -> Self {
        Self {
            gate,
            handler,
            unwelcomed: Arc::new(NewestConnections::new(UNWELCOMED_MAX)),
            introductions: Arc::new(NewestConnections::new(INTRODUCTIONS_MAX)),
            members: Arc::new(NewestConnections::new(MEMBERS_MAX)),
            introduction_calls: Arc::new(Semaphore::new(INTRODUCTIONS_MAX)),
            logged: Arc::default(),
            damage,
            tasks,
        }
    }

    async fn connection(
        &self,
        stream: BoxStream,
        address: SocketAddr,
        permit: Arc<CancellationToken>,
    ) -> io::Result<()> {
        let greeted = permit.run_until_cancelled(self.meet(stream, address));
        let greeted = timeout(HELLO, greeted).await?.ok_or_else(crowded)??;
        let Some(greeted) = greeted else {
            return Ok(());
        };
        drop(permit);
        let from = greeted.hello.from;
        let served = if greeted.hello.introduction {
            let permit = self.introductions.permit();
            let served = permit.run_until_cancelled(self.serve(greeted));
            timeout(INTRODUCTION, served).await?
        } else {
            let permit = self.members.permit();
            permit.run_until_cancelled(self.serve(greeted)).await
        };
        served
            .ok_or_else(crowded)?
            .inspect_err(|error| self.damage.note(from, error))
    }

    /// Authenticates a connection and answers its hello. Returns `None` if it is rejected.
    async fn meet(
        &self,
        stream: BoxStream,
        address: SocketAddr,
    ) -> io::Result<Option<GreetedConnection>> {
        let (mut stream, certificate) = match self.gate.admit(stream).await {
            Ok(Admitted {
                stream,
                certificate,
                ..
            }) => (stream, certificate),
            Err(Refused { reason, plain }) => {
                // A peer that is rejected here is unauthenticated, so its node id is unknown.
                if self.logged.is_due(0, &reason) {
                    log!(
                        PEER_NOT_AUTHENTICATED,
                        %address,
                        reason,
                        "rejected a connection to the port for other nodes"
                    );
                }
                if let Some(plain) = plain {
                    answer_plain(plain).await?;
                }
                return Ok(None);
            }
        };
        let mut buffer = BytesMut::new();
        let first = first_frame(&mut stream, &mut buffer).await;
        let hello = match first.inspect_err(|error| self.damage.note(0, error))? {
            Some(frame) if frame.kind == Kind::Hello => record::decode::<Hello>(&frame.body)?,
            _ => return Err(io::Error::other("the first message is not a hello")),
        };
        let welcome = match self.greet(&hello, certificate) {
            Ok(welcome) => welcome,
            Err(denied) => {
                let (peer, reason) = (hello.from, denied.to_string());
                if self.logged.is_due(peer, &reason) {
                    log!(PEER_REJECTED, peer, %address, reason, "rejected a peer's connection");
                }
                let refusal = record::encode_named(&denied.failure());
                write_frame(&mut stream, &Frame::new(Kind::Refusal, 0, refusal)).await?;
                return Ok(None);
            }
        };
        let body = record::encode_named(&welcome);
        write_frame(&mut stream, &Frame::new(Kind::Welcome, 0, body)).await?;
        Ok(Some(GreetedConnection {
            stream,
            buffer,
            hello,
            version: welcome.version,
        }))
    }

    /// Welcomes a node with the negotiated version.
    fn greet(
        &self,
        hello: &Hello,
        certificate: Option<PeerCertificate>,
    ) -> Result<Welcome, Denied> {
        if certificate.is_some_and(|certificate| !certificate.belongs_to_node(hello.from)) {
            let reason = format!("the certificate does not belong to node {}", hello.from);
            return Err(Denied::Refused(reason));
        }
        let version = hello.newest.min(*VERSIONS.end());
        if version < *VERSIONS.start() || version < hello.oldest {
            return Err(Denied::Refused(format!(
                "node {} supports protocol versions {} to {}, but this node supports {} to {}: \
                upgrade one step at a time",
                hello.from,
                hello.oldest,
                hello.newest,
                VERSIONS.start(),
                VERSIONS.end()
            )));
        }
        self.handler.greet(hello, version)
    }

    /// Answers the calls of one connection until it ends.
    async fn serve(&self, mut greeted: GreetedConnection) -> io::Result<()> {
        let is_introduction = greeted.hello.introduction;
        let (mut read, write) = tokio::io::split(greeted.stream);
        let (outbox, queued) = outbox();
        let piece_bytes = piece_bytes(is_introduction);
        let (stopped, written) = (CancellationToken::new(), CancellationToken::new());
        let (stop, all_written) = (stopped.clone().drop_guard(), written.clone());
        self.tasks.spawn(async move {
            let writing = write_frames(write, queued, piece_bytes, Some, || ());
            // A write error is ignored: the reading side detects a broken connection, too.
            let _ = stopped.run_until_cancelled(writing).await;
            written.cancel();
        });
        let end = CancellationToken::new();
        let connection = Arc::new(Connection {
            caller: Caller {
                node: greeted.hello.from,
                records: records(greeted.version),
            },
            is_introduction,
            handler: self.handler.clone(),
            logged: self.logged.clone(),
            end: end.clone(),
        });
        let tasks = self.tasks.clone();
        let mut calls = Calls::new(connection, outbox, &self.introduction_calls, tasks);
        let mut joiner = Joiner::new(is_introduction);
        let begun = Instant::now();
        let (mut alive, mut has_called) = (begun, false);
        loop {
            while let Some(message) = joiner.next(&mut greeted.buffer)? {
                has_called |= message.kind == Kind::Request;
                calls.take(message).await?;
            }
            let patience = if is_introduction && !has_called {
                HELLO.saturating_sub(begun.elapsed())
            } else {
                IDLE_MAX.saturating_sub(alive.elapsed())
            };
            let more = end.run_until_cancelled(read_some(&mut read, &mut greeted.buffer));
            let Some(true) = timeout(patience, more).await?.transpose()? else {
                break;
            };
            alive = Instant::now();
        }
        drop(calls);
        // Waits until the queued answers are sent, if the caller still reads them.
        let _ = timeout(HELLO, all_written.cancelled()).await;
        drop(stop);
        Ok(())
    }
}

/// Reads the first message. An HTTP request is an error, but it gets an answer: an operator may
/// take this port for another one.
async fn first_frame(stream: &mut BoxStream, buffer: &mut BytesMut) -> io::Result<Option<Frame>> {
    let first = read_frame(stream, buffer, UNWELCOMED_BYTES_MAX).await;
    if first.is_err() && METHODS.iter().any(|method| buffer.starts_with(method)) {
        stream.write_all(NOT_HTTP).await?;
        stream.flush().await?;
    }
    first
}

/// Beginnings of HTTP requests.
const METHODS: [&[u8]; 5] = [b"GET ", b"HEAD ", b"PUT ", b"POST ", b"DELETE "];
const NOT_HTTP: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    Content-Length: 113\r\n\r\nThis is the port for other nodes. Operators use admin.sock in the data directory, \
    or the address [admin] listen.\n";

/// Refuses the hello of a node that does not use TLS; other messages are not answered.
async fn answer_plain(mut stream: BoxStream) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let first = first_frame(&mut stream, &mut buffer).await?;
    if first.is_some_and(|frame| frame.kind == Kind::Hello) {
        let denied = Denied::Refused(TLS_ONLY.to_owned());
        let refusal = record::encode_named(&denied.failure());
        write_frame(&mut stream, &Frame::new(Kind::Refusal, 0, refusal)).await?;
    }
    Ok(())
}

const TLS_ONLY: &str = "this cluster accepts TLS only: set [peer] tls = \"require\" and [tls], \
    with a certificate for this node";

fn crowded() -> io::Error {
    io::Error::other("closed to make room for newer connections")
}

#[cfg(test)]
mod tests;
