//! HTTP over a listener: connections, their limits, and their end.
//!
//! Every client is answered. A connection beyond the limits is accepted as well, for one request:
//! health checks are answered, so that an overloaded node does not look dead, and all other
//! requests are rejected.

pub(crate) mod connections;
pub(crate) mod local;
mod paced;
mod pending_answers;
mod streams;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use http::header::CONNECTION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use self::connections::Connections;
use self::paced::{PacedStream, ResponseAnnouncements};
use self::pending_answers::PendingAnswers;
use self::streams::Streams;
use placement_api::http::{BodyTimeLimit, GRACE};
use placement_audit::access::{self, Encrypted, Peer};
use placement_base::log_messages::log;
use placement_base::net::{BoxStream, Listener};
use placement_base::newest_connections::NewestConnections;
use placement_base::tasks::Tasks;
use placement_peer::tls::{Admitted, Gate, Refused};

/// Maximum number of connections beyond the limits: a health check is answered at once and does not
/// need its connection for long.
const BEYOND_MAX: usize = 64;
/// Deadline for the head of a request on a connection beyond the limits.
const BEYOND_HEADER: Duration = Duration::from_secs(2);
/// Pause when a connection cannot be accepted, mostly for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// How often an HTTP/2 client is pinged.
const HTTP2_PING: Duration = Duration::from_secs(20);
/// Maximum number of concurrent requests on an HTTP/2 connection.
const HTTP2_STREAMS: u32 = 128;
/// Longest head of an HTTP/2 request: a path, a token and a service's token, as long as HTTP/1
/// accepts them.
const HTTP2_HEAD_BYTES: u32 = 80 * 1024;
/// Response to a client that uses plain HTTP where TLS is required.
const HTTPS_REQUIRED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    Content-Length: 43\r\n\r\nThis port speaks HTTPS only. Use https://.\n";

/// The service of a listener.
pub(crate) trait RequestHandler: Clone + Send + Sync + 'static {
    /// Answers one request of `peer`.
    fn answer(
        self,
        request: Request<Body>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send + 'static;
}

impl RequestHandler for Router {
    async fn answer(self, mut request: Request<Body>, peer: SocketAddr) -> Response<Body> {
        request.extensions_mut().insert(Peer(peer));
        let answered = self.oneshot(request).await;
        answered.unwrap_or_else(|never| match never {})
    }
}

/// Serves the HTTP connections of one listener.
pub(crate) struct HttpServer<A> {
    pub(crate) answers: A,
    /// The service of connections beyond the limits: health checks, and 503 for all else.
    pub(crate) beyond: A,
    pub(crate) purpose: &'static str,
    /// How its connections are secured.
    pub(crate) gate: Gate,
    pub(crate) connections_max: usize,
    pub(crate) connections_per_address_max: usize,
    /// Remaining connections of all listeners together.
    pub(crate) connections_left: Arc<Semaphore>,
    pub(crate) header_timeout: Duration,
    /// Whether responses carry a `Date`, which is read from the system's clock.
    pub(crate) date: bool,
    pub(crate) open: Gauge,
    /// Signals that no more requests are accepted, and tracks the open connections.
    pub(crate) drain: Drain,
}

/// Graceful shutdown of a listener's connections.
#[derive(Clone, Default)]
pub(crate) struct Drain {
    begun: CancellationToken,
    connections: TaskTracker,
}

impl Drain {
    /// The vital task of a listener awaits this after the listener has ended. During a shutdown it
    /// never completes, so that the end of the listener does not count as a failure; otherwise it
    /// completes immediately.
    pub(crate) async fn wait_if_begun(&self) {
        if self.begun.is_cancelled() {
            std::future::pending().await
        }
    }

    /// Accepts no more connections and requests, and waits at most `patience` for those being
    /// answered.
    pub(crate) async fn finish(&self, patience: Duration) {
        self.begun.cancel();
        self.connections.close();
        if timeout(patience, self.connections.wait()).await.is_err() {
            log!(
                REQUESTS_NOT_ANSWERED,
                waited_s = patience.as_secs(),
                "some requests were not answered before this node stopped"
            );
        }
    }
}

impl<A: RequestHandler> HttpServer<A> {
    /// Accepts connections until the shutdown begins.
    pub(crate) async fn serve(self, mut listener: Box<dyn Listener>, tasks: Tasks) {
        let connections = Connections::new(
            self.connections_max,
            self.connections_per_address_max,
            self.connections_left.clone(),
        );
        let beyond = NewestConnections::new(BEYOND_MAX);
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.drain.begun.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    log!(
                        CONNECTION_NOT_ACCEPTED,
                        %error,
                        purpose = self.purpose,
                        "cannot accept a connection"
                    );
                    sleep(PAUSE).await;
                    continue;
                }
            };
            self.open.inc();
            let open = ConnectionGauge(self.open.clone());
            if let Some(permit) = connections.permit(peer) {
                let connection =
                    self.connection(stream, peer, &self.answers, self.header_timeout, true);
                let connection = self.drain.connections.track_future(connection);
                tasks.spawn(async move {
                    connection.await;
                    drop((open, permit));
                });
            } else {
                let end = beyond.permit();
                let connection = self.connection(stream, peer, &self.beyond, BEYOND_HEADER, false);
                let connection = self.drain.connections.track_future(connection);
                tasks.spawn(async move {
                    end.run_until_cancelled(connection).await;
                    drop(open);
                });
            }
        }
    }

    fn connection(
        &self,
        stream: BoxStream,
        peer: SocketAddr,
        answers: &A,
        header_timeout: Duration,
        keep_alive: bool,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mut one = http1::Builder::new();
        one.timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .keep_alive(keep_alive)
            .auto_date_header(self.date);
        let two = http_2(self.date);
        let (gate, answers) = (self.gate.clone(), answers.clone());
        let draining = self.drain.begun.clone();
        let purpose = self.purpose;
        async move {
            let admitted = match timeout(header_timeout, gate.admit(stream)).await {
                Ok(Ok(admitted)) => admitted,
                Ok(Err(refused)) => return refuse(refused, peer, purpose).await,
                Err(_) => return,
            };
            let Admitted {
                stream,
                certificate,
                is_tls,
                is_http2,
            } = admitted;
            let announced = ResponseAnnouncements::default();
            let stream = TokioIo::new(PacedStream::new(stream, announced.clone()));
            let under_way = PendingAnswers::none();
            let watched = under_way.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let mut request = request.map(body);
                if is_tls {
                    let vouched = certificate.is_some();
                    request.extensions_mut().insert(Encrypted { vouched });
                }
                if let Some(certificate) = &certificate {
                    request.extensions_mut().insert(certificate.clone());
                }
                let answering = is_http2.then(|| under_way.begin());
                // Over HTTP/1 the previous answer is written by now.
                if answering.as_ref().is_none_or(|(_, is_only)| *is_only) {
                    announced.response();
                }
                let answered = answers.clone().answer(request, peer);
                let announced = announced.clone();
                async move {
                    let mut response = answered.await;
                    // HTTP/2 has no such header, and a response does not close the connection.
                    if let Some((answering, _)) = answering {
                        response.headers_mut().remove(CONNECTION);
                        let within = response
                            .extensions()
                            .get::<BodyTimeLimit>()
                            .map(|BodyTimeLimit(limit)| *limit);
                        response = response.map(|body| {
                            let (body, due) = answering.until_sent(body, within);
                            due.into_iter().for_each(Streams::end_at);
                            body
                        });
                    } else if response.headers().contains_key(CONNECTION) {
                        announced.close();
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            let ended = if is_http2 {
                let connection = two.serve_connection(stream, service);
                until_useless(connection, &watched, draining.cancelled(), header_timeout).await
            } else {
                serve_until(draining.cancelled(), one.serve_connection(stream, service)).await
            };
            if let Err(error) = ended {
                if error.is_parse() {
                    access::malformed_request(peer, &error);
                }
                // Clients may hang up at any time.
                tracing::debug!(%error, purpose, "connection ended");
            }
        }
    }
}

/// Builder of HTTP/2 connections with this server's limits.
fn http_2(date: bool) -> http2::Builder<Streams> {
    let mut two = http2::Builder::new(Streams);
    two.timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING)
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_header_list_size(HTTP2_HEAD_BYTES)
        .auto_date_header(date);
    two
}

/// Serves a connection until it ends. Once `enough` completes, accepts no more requests and
/// finishes those in progress.
async fn serve_until<C: GracefulConnection>(
    enough: impl Future<Output = ()>,
    connection: C,
) -> Result<(), C::Error> {
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = enough => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}

/// Serves an HTTP/2 connection until it has been useless for `limit`
/// ([`PendingAnswers::useless_for`]) or until the shutdown begins. Then finishes the requests in
/// progress, except those whose answers are overdue.
async fn until_useless<C: GracefulConnection>(
    connection: C,
    under_way: &PendingAnswers,
    draining: impl Future<Output = ()>,
    limit: Duration,
) -> Result<(), C::Error> {
    let (shut_down, is_shut_down) = oneshot::channel();
    let enough = async {
        tokio::select! {
            () = draining => {}
            () = under_way.useless_for(limit) => {}
        }
        // The receiver waits for this.
        let _ = shut_down.send(());
    };
    let only_overdue = async {
        if is_shut_down.await.is_err() {
            std::future::pending().await
        }
        // The client learns that the connection ends, and confirms it.
        sleep(GRACE).await;
        under_way.only_overdue().await;
    };
    tokio::select! {
        biased;
        ended = serve_until(enough, connection) => ended,
        () = only_overdue => Ok(()),
    }
}

/// Answers a client that uses plain HTTP that it must use TLS. Other clients whose handshake failed
/// get no answer.
async fn refuse(refused: Refused, peer: SocketAddr, purpose: &'static str) {
    let Refused { reason, plain } = refused;
    tracing::debug!(%peer, reason, purpose, "connection refused");
    let Some(mut stream) = plain else {
        return;
    };
    let answered = async {
        stream.write_all(HTTPS_REQUIRED).await?;
        stream.shutdown().await
    };
    // The client may have left.
    let _ = timeout(BEYOND_HEADER, answered).await;
}

fn body(incoming: Incoming) -> Body {
    if incoming.is_end_stream() {
        Body::empty()
    } else {
        Body::new(incoming)
    }
}

/// Decrements the gauge of connections, however the connection ends.
struct ConnectionGauge(Gauge);

impl Drop for ConnectionGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty};
    use hyper::client::conn::http2::SendRequest;
    use hyper_util::rt::TokioExecutor;
    use placement_base::runtime;
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    /// A client with windows of `window` bytes, and the end of its connection to a server that
    /// answers after `after` with `bytes` bytes.
    async fn connected(
        window: u32,
        after: Duration,
        bytes: usize,
    ) -> (SendRequest<Empty<Bytes>>, JoinHandle<()>) {
        let (client, server) = tokio::io::duplex(1 << 16);
        let under_way = PendingAnswers::none();
        let watched = under_way.clone();
        let service = service_fn(move |_: Request<Incoming>| {
            let (answering, _) = under_way.begin();
            async move {
                sleep(after).await;
                let (body, due) = answering.until_sent(Body::from(vec![b' '; bytes]), None);
                due.into_iter().for_each(Streams::end_at);
                Ok::<_, Infallible>(Response::new(body))
            }
        });
        let connection = http_2(false).serve_connection(TokioIo::new(server), service);
        let served = runtime::spawn(async move {
            let never = std::future::pending();
            let ended = until_useless(connection, &watched, never, LIMIT).await;
            ended.unwrap_or_default();
        });
        let (client, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(TokioIo::new(client))
            .await
            .unwrap();
        drop(runtime::spawn(async move {
            connection.await.unwrap_or_default()
        }));
        (client, served)
    }

    fn request() -> Request<Empty<Bytes>> {
        Request::new(Empty::new())
    }

    #[tokio::test(start_paused = true)]
    async fn http_2_connection_without_requests_is_closed() {
        let (mut client, served) = connected(1 << 16, 2 * LIMIT, 4).await;
        let begun = Instant::now();
        let answer = client.send_request(request()).await.unwrap();
        assert_eq!(begun.elapsed(), 2 * LIMIT, "a slow answer is waited for");
        drop(answer.collect().await.unwrap());
        // Either side may close it first.
        let served = timeout(10 * LIMIT, served).await;
        served.expect("it is ended").unwrap();
        let ended = begun.elapsed();
        assert!(ended >= 3 * LIMIT && ended < 5 * LIMIT, "{ended:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn http_2_answer_that_is_not_read_is_reset_and_others_continue() {
        for window in [0, 10_000] {
            let (mut client, _served) = connected(window, Duration::ZERO, 1 << 20).await;
            let begun = Instant::now();
            let mut untaken = client.send_request(request()).await.unwrap().into_body();
            sleep(GRACE / 2).await;
            let other = client.send_request(request()).await.unwrap().into_body();
            let other = async {
                match window {
                    // Such a client reads nothing at all.
                    0 => drop(other),
                    _ => assert_eq!(other.collect().await.unwrap().to_bytes().len(), 1 << 20),
                }
            };
            other.await;
            sleep(GRACE + Duration::from_secs(1 << 20) / (64 * 1024)).await;
            let error = loop {
                match untaken.frame().await {
                    Some(Ok(_)) => {}
                    other => break other.expect("the answer is cut off").unwrap_err(),
                }
            };
            assert!(format!("{error:?}").contains("CANCEL"), "{error:?}");
            assert!(begun.elapsed() < LIMIT + GRACE);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn http_2_connection_whose_last_piece_is_not_read_is_closed() {
        for window in [0, 1] {
            let (mut client, served) = connected(window, Duration::ZERO, 1_000).await;
            let _untaken = client.send_request(request()).await.unwrap();
            let begun = Instant::now();
            let served = timeout(10 * LIMIT, served).await;
            served.expect("it is ended").unwrap();
            let ended = begun.elapsed();
            assert!(ended <= 4 * LIMIT, "{window}: {ended:?}");
        }
    }
}
