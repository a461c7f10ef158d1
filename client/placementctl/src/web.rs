//! `placementctl web`: serves the pages of a node to a browser on this machine. It adds no
//! permissions: it forwards only requests for pages, with the same access to the nodes as other
//! commands.

mod gate;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use clap::Args;
use gate::{Gate, Verdict};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use placement_client::{ApiRequest, ApiResponse, Client, Error};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::ctrl_c;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Maximum number of concurrent connections.
const CONNECTIONS: usize = 64;
/// Timeout for the head of a request, and for idle connections.
const HEADER: Duration = Duration::from_secs(30);
/// Delay after a failed accept, as when no file descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);
/// Response headers that are forwarded.
const PASSED: [&str; 7] = [
    "content-type",
    "cache-control",
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
];

#[derive(Args)]
pub(crate) struct WebArgs {
    /// Loopback address to listen on. Port 0 chooses a free port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// State shared by all connections.
struct Site {
    gate: Gate,
    /// A client for each endpoint.
    nodes: Vec<Client>,
}

/// Serves the pages until Ctrl-C.
pub(crate) async fn serve(client: &Client, WebArgs { listen }: WebArgs) -> anyhow::Result<()> {
    ensure!(
        listen.ip().is_loopback(),
        "{listen} is not a loopback address, and pages show everything that operators see. Listen on loopback, such as \
         127.0.0.1:8780, and use `ssh -L` from other machines"
    );
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr()?;
    let endpoints = client.endpoints().iter();
    let nodes: Vec<Client> = endpoints
        .map(|endpoint| client.for_endpoint(&endpoint.to_string()))
        .collect::<Result<_, _>>()?;
    let gate = Gate::new(address);
    let site = Site { gate, nodes };
    // An unreachable node may come back later.
    if let Ok(page) = site.page("/web/").await {
        ensure!(
            page.status != StatusCode::NOT_FOUND,
            "this endpoint has no pages: use the Unix socket or the admin listener of a node, or `placementd replay`"
        );
    }
    println!("http://{address}/?key={}", site.gate.key());
    eprintln!("placementctl: open this address in a browser; it works once. Stop with Ctrl-C");
    tokio::select! {
        interrupted = ctrl_c() => interrupted.context("cannot handle SIGINT"),
        () = accept(listener, Arc::new(site)) => Ok(()),
    }
}

async fn accept(listener: TcpListener, site: Arc<Site>) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(permit) = connections.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let site = site.clone();
        tokio::spawn(async move {
            let _permit = permit;
            site.connected(stream).await;
        });
    }
}

impl Site {
    async fn connected(self: Arc<Self>, stream: TcpStream) {
        let answer = |request| {
            let site = self.clone();
            async move { Ok::<_, std::convert::Infallible>(site.answer(&request).await) }
        };
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER)
            .serve_connection(TokioIo::new(stream), service_fn(answer))
            .await;
        // A browser may disconnect at any time.
        drop(served);
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        match self.gate.judge(request) {
            Verdict::Pass(path) => match self.page(&path).await {
                Ok(page) => passed(page),
                Err(away) => text(
                    StatusCode::BAD_GATEWAY,
                    &format!("No node returned the page: {away}\n"),
                ),
            },
            Verdict::Enter(cookie) => {
                let mut response = text(StatusCode::SEE_OTHER, "The pages begin at /web/.\n");
                let headers = response.headers_mut();
                headers.insert(LOCATION, HeaderValue::from_static("/web/"));
                let cookie = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok());
                headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
                response
            }
            Verdict::Refuse(status, why) => text(status, why),
        }
    }

    /// The response of the first node that answers.
    async fn page(&self, path: &str) -> Result<ApiResponse, Error> {
        let mut answer = Err(Error::BadRequest("no endpoint is given".to_owned()));
        for node in &self.nodes {
            answer = node.request_once(ApiRequest::get(path)).await;
            if answer.is_ok() {
                break;
            }
        }
        answer
    }
}

fn passed(page: ApiResponse) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(page.body));
    *response.status_mut() = page.status;
    for name in PASSED.map(HeaderName::from_static) {
        if let Some(value) = page.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn text(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}
