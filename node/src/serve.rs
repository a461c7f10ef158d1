//! HTTP over a listener: connections, their limits, and their end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::access::{self, Peer};
use crate::env::{BoxStream, Listener};
use crate::tasks::Tasks;

/// How the HTTP connections of one listener are served.
pub(crate) struct HttpServer {
    pub(crate) router: Router,
    pub(crate) purpose: &'static str,
    pub(crate) connections_max: usize,
    pub(crate) header_timeout: Duration,
    /// Whether responses carry a `Date`, which is read from the system's clock.
    pub(crate) date: bool,
    pub(crate) open: Gauge,
    /// Says that no more requests are taken, and knows the connections that are still open.
    pub(crate) drain: Drain,
}

/// The orderly end of a listener's connections.
#[derive(Clone, Default)]
pub(crate) struct Drain {
    begun: CancellationToken,
    connections: TaskTracker,
}

impl Drain {
    /// Takes no more connections and requests, and waits for those being answered, `patience` at
    /// most.
    pub(crate) async fn finish(&self, patience: Duration) {
        self.begun.cancel();
        self.connections.close();
        if tokio::time::timeout(patience, self.connections.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                ?patience,
                "some requests were not answered before this node stopped"
            );
        }
    }
}

impl HttpServer {
    /// Takes connections until draining begins.
    pub(crate) async fn serve(self, mut listener: Box<dyn Listener>, tasks: Tasks) {
        let slots = Arc::new(Semaphore::new(self.connections_max));
        loop {
            let next = async {
                // A place first: who finds none waits in the system's queue.
                let slot = slots.clone().acquire_owned().await;
                (slot, listener.accept().await)
            };
            let accepted = tokio::select! {
                biased;
                () = self.drain.begun.cancelled() => return,
                accepted = next => accepted,
            };
            match accepted {
                (slot, Ok((stream, peer))) => {
                    self.open.inc();
                    let open = self.open.clone();
                    let connection = self.connection(stream, peer);
                    let connection = self.drain.connections.track_future(connection);
                    tasks.spawn(async move {
                        let _open = Closing(open);
                        connection.await;
                        drop(slot);
                    });
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, purpose = self.purpose, "cannot take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn connection(
        &self,
        stream: BoxStream,
        peer: SocketAddr,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .auto_date_header(self.date);
        let router = self.router.clone();
        let service = router.map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            request.map(Body::new)
        });
        let service = TowerToHyperService::new(service);
        let draining = self.drain.begun.clone();
        let purpose = self.purpose;
        async move {
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                biased;
                ended = connection.as_mut() => ended,
                () = draining.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                if error.is_parse() {
                    access::no_request(peer, &error);
                }
                // Clients hang up as they like.
                tracing::debug!(%error, purpose, "connection ended");
            }
        }
    }
}

/// Counts a connection down, however it ends.
struct Closing(Gauge);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.dec();
    }
}
