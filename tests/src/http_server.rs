//! HTTP/1.1 servers on a local port that answer with the result of a function.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server; stopped when dropped.
pub struct HttpServer {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl HttpServer {
    /// Starts a server at an unused port.
    pub async fn start<F>(
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answer.clone();
                let answers = service_fn(move |request| {
                    let answered = answer(request);
                    async { Ok::<_, Infallible>(answered.await) }
                });
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answers);
                // A client may close the connection early.
                tokio::spawn(async move { drop(served.await) });
            }
        });
        Ok(Self { address, serving })
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes its port: connections are refused.
    pub fn stop(&self) {
        self.serving.abort();
    }
}
