//! One HTTP request, over whatever network there is.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::history::{Answer, End};
use crate::operation::{Request, Token};

/// Sends a request on a connection of its own and waits for the answer, for so long each. It has to run
/// in a [`tokio::task::LocalSet`].
pub async fn ask<S>(
    connect: impl Future<Output = io::Result<S>>,
    request: &Request,
    patience: Duration,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let stream = match timeout(patience, connect).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return End::NotSent(error.kind().to_string()),
        Err(_) => return End::NotSent("no connection in time".to_owned()),
    };
    match timeout(patience, exchange(stream, request)).await {
        Ok(Ok(answer)) => End::Answer(answer),
        Ok(Err(error)) => End::Lost(error.to_string()),
        Err(_) => End::Lost("no answer in time".to_owned()),
    }
}

async fn exchange<S>(stream: S, request: &Request) -> Result<Answer, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::task::spawn_local(connection);
    let response = sender.send_request(render(request)).await;
    let answer = match response {
        Ok(response) => read(response).await,
        Err(error) => Err(error),
    };
    connection.abort();
    answer
}

fn render(request: &Request) -> http::Request<Full<Bytes>> {
    let mut builder = http::Request::builder()
        .method(request.method)
        .uri(&request.path)
        .header("host", "placement")
        .header("x-auth-token", "admin")
        .header("x-roles", "admin,service")
        .header(
            "openstack-api-version",
            format!("placement 1.{}", request.minor),
        );
    if let Some(consistency) = &request.consistency {
        builder = builder.header("placement-consistency", consistency);
    }
    if let Some(index) = &request.min_index {
        builder = builder.header("placement-min-index", index);
    }
    if request.body.is_some() {
        builder = builder.header("content-type", "application/json");
    }
    let body = request
        .body
        .as_ref()
        .map(|body| Bytes::from(body.to_string()));
    builder
        .body(Full::new(body.unwrap_or_default()))
        .expect("a client's requests are well formed")
}

async fn read(response: http::Response<hyper::body::Incoming>) -> Result<Answer, hyper::Error> {
    let text = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    let index = text("placement-index").as_deref().and_then(Token::parse);
    let node = text("placement-node").and_then(|node| node.parse().ok());
    let known_leader = text("placement-known-leader").and_then(|leader| leader.parse().ok());
    let staleness = text("placement-staleness").and_then(|age| age.parse().ok());
    let effective = text("placement-effective-consistency");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Answer {
        status,
        index,
        node,
        known_leader,
        staleness: staleness.map(Duration::from_secs_f64),
        effective,
        body,
    })
}
