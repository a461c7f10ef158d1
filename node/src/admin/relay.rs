//! Relays operators' requests to other nodes. So the socket of one machine gives access to the
//! whole cluster, and no node needs a port for operators.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{self, HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use placement_raft_store::wire::Blob;
use tower::ServiceExt;

use super::pages::User;
use super::trail::{Recording, Relayed, operator, recorded};
use super::{Admin, Failed, HandlerResult, failed, media_type, no_such_route, node_routes};
use crate::partitions::FOR_OPERATORS;
use placement_cluster::peer_service::AdminApi;
use placement_peer::raft::messages::{Headers, Order, OrderReply};
use placement_peer::tls::OWNER_MAX;
use placement_peer::transport::channel::CallError;
use placement_peer::transport::method::Method;

/// Deadline of any relayed request; the check of a large state takes minutes.
const DEADLINE: Duration = Duration::from_secs(600);
/// Longest body of a request or a response: writes share the connection.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Headers that are relayed in requests and responses, in addition to those of this service. No
/// token is among them.
const HEADERS: [&str; 10] = [
    "accept",
    "allow",
    "cache-control",
    "content-type",
    "last-modified",
    "location",
    "openstack-api-version",
    "retry-after",
    "vary",
    "x-openstack-request-id",
];
/// Maximum number of headers accepted from another node.
const HEADERS_MAX: usize = 64;

/// The routes of this node, for operators connected to another one.
pub(crate) struct Inner(Router);

impl Inner {
    /// Adds audit records on this node to those of the node where the operator is connected.
    pub(crate) fn new(admin: Admin, recording: Recording) -> Arc<Self> {
        let recorded = from_fn_with_state(recording, recorded);
        Arc::new(Self(admin.node_router().layer(recorded)))
    }
}

impl AdminApi for Inner {
    fn carry_out(&self, from: u64, order: Order) -> BoxFuture<'_, OrderReply> {
        Box::pin(async move {
            let response = match request_of(from, order) {
                Ok(request) => ask(self.0.clone(), request).await,
                Err(wrong) => failed(StatusCode::BAD_REQUEST, wrong).into_response(),
            };
            reply_of(response).await
        })
    }
}

fn request_of(from: u64, order: Order) -> http::Result<Request> {
    // The name comes from another node, so its length is limited.
    let operator = order
        .operator
        .map(|name| name.chars().take(OWNER_MAX).collect());
    let mut request = Request::builder()
        .method(&*order.method)
        .uri(&*order.path)
        .extension(Relayed { by: from, operator })
        .body(Body::from(order.body.0))?;
    *request.headers_mut() = read(order.headers);
    Ok(request)
}

async fn reply_of(response: Response) -> OrderReply {
    let (parts, body) = if is_stream(response.headers()) {
        let detail = "streams are not relayed between nodes: ask that node itself";
        let refused = failed(StatusCode::BAD_REQUEST, detail).into_response();
        refused.into_parts()
    } else {
        response.into_parts()
    };
    let (status, body) = match to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => (parts.status, body),
        Err(_) => {
            let detail = format!(
                "the answer ({}) is longer than {BODY_BYTES_MAX} bytes, the limit for relayed \
                answers: ask for less, or ask that node itself",
                parts.status
            );
            let status = StatusCode::BAD_GATEWAY;
            let Failed(failed) = failed(status, detail);
            let body = to_bytes(failed.into_body(), BODY_BYTES_MAX).await;
            (status, body.unwrap_or_default())
        }
    };
    OrderReply {
        status: status.as_u16(),
        body: Blob(body),
        headers: written(&parts.headers),
    }
}

/// Whether the response is a stream, which may never end.
fn is_stream(headers: &HeaderMap) -> bool {
    let streams = ["application/x-ndjson", "text/event-stream"];
    media_type(headers).is_some_and(|kind| streams.contains(&&*kind))
}

fn is_relayed(name: &HeaderName) -> bool {
    name.as_str().starts_with("placement-") || HEADERS.contains(&name.as_str())
}

fn written(headers: &HeaderMap) -> Headers {
    let relayed = headers.iter().filter(|(name, _)| is_relayed(name));
    relayed
        .map(|(name, value)| (name.to_string(), Blob(value.as_bytes().to_vec().into())))
        .collect()
}

/// Filters the headers of another node, which may be arbitrary.
fn read(headers: Headers) -> HeaderMap {
    let relayed = headers.into_iter().take(HEADERS_MAX);
    relayed
        .filter_map(|(name, value)| {
            let name = name.parse().ok().filter(is_relayed)?;
            Some((name, HeaderValue::from_bytes(&value.0).ok()?))
        })
        .collect()
}

async fn ask(router: Router, request: Request) -> Response {
    let Ok(response) = router.oneshot(request).await;
    response
}

/// Relays a request to the destination node.
pub(super) async fn relay(
    State(admin): State<Admin>,
    Path((id, what)): Path<(u64, String)>,
    mut request: Request,
) -> HandlerResult {
    let asked = format!("{} /v1/{what}", request.method());
    let is_for_api = format!("/v1/{what}").starts_with(FOR_OPERATORS);
    if !is_for_api && !node_routes().iter().any(|(route, _)| *route == asked) {
        return Err(no_such_route());
    }
    // The path with its query, in the original encoding.
    let uri = request.uri().path_and_query();
    let below = uri.and_then(|uri| uri.as_str().splitn(5, '/').nth(4));
    let path = format!("/v1/{}", below.unwrap_or_default());
    // Also works before this node is a member.
    if id == admin.bootstrap.config.node_id {
        *request.uri_mut() = (path.parse()).expect("a suffix of a valid path and query is valid");
        return Ok(ask(admin.node_router(), request).await);
    }
    let Some(member) = admin.running()?.replica.member(id) else {
        let detail = format!("node {id} is not a member");
        return Err(failed(StatusCode::NOT_FOUND, detail));
    };
    if is_for_api && request.extensions().get::<User>().is_some() {
        // The destination treats the request as an operator's, so this node first checks whether
        // its policy allows the user to see the partition.
        let mut own = Request::new(Body::empty());
        *own.uri_mut() = (path.parse()).expect("a suffix of a valid path and query is valid");
        own.headers_mut().clone_from(request.headers());
        own.extensions_mut().clone_from(request.extensions());
        let own = ask(admin.clone().node_router(), own).await;
        if !own.status().is_success() {
            return Ok(own);
        }
    }
    let operator = operator(&request);
    let method = request.method().to_string();
    let (headers, body) = carried(id, request).await?;
    let asked = Order {
        method,
        path,
        operator,
        headers,
        body,
    };
    let reply = order(id, &member.peer, &admin, &asked, DEADLINE).await;
    let OrderReply {
        status,
        body,
        headers,
    } = reply.map_err(|away| {
        let detail = format!("node {id} did not answer: {away}");
        failed(StatusCode::SERVICE_UNAVAILABLE, detail)
    })?;
    let status = StatusCode::from_u16(status)
        .map_err(|wrong| failed(StatusCode::BAD_GATEWAY, format!("node {id}: {wrong}")))?;
    let mut response = Response::new(Body::from(body.0));
    *response.status_mut() = status;
    *response.headers_mut() = read(headers);
    Ok(response)
}

/// Headers and body of a request to another node.
async fn carried(node: u64, request: Request) -> Result<(Headers, Blob), Failed> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES_MAX).await.map_err(|_| {
        let detail = format!(
            "the body is longer than {BODY_BYTES_MAX} bytes, the limit for relayed requests: send \
            it to node {node} itself"
        );
        failed(StatusCode::PAYLOAD_TOO_LARGE, detail)
    })?;
    Ok((written(&parts.headers), Blob(body)))
}

/// Sends an order to another node.
pub(super) async fn order(
    to: u64,
    address: &str,
    admin: &Admin,
    order: &Order,
    deadline: Duration,
) -> Result<OrderReply, CallError> {
    let peers = &admin.bootstrap.peers;
    let method = Method::Operate;
    peers.call(to, address, method, order, deadline).await
}

#[cfg(test)]
mod tests {
    use axum::http::header::CONTENT_TYPE;
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn overlong_answer_says_what_to_do() {
        for (length, status) in [(BODY_BYTES_MAX, 200), (BODY_BYTES_MAX + 1, 502)] {
            let answer = Response::new(Body::from(vec![b' '; length]));
            let reply = reply_of(answer).await;
            assert_eq!(reply.status, status);
            let text = String::from_utf8_lossy(&reply.body.0);
            let advises = text.contains("200 OK") && text.contains("ask that node itself");
            assert_eq!(advises, status == 502, "{text:.200}");
        }
    }

    #[tokio::test]
    async fn stream_is_not_waited_for() {
        for form in ["application/x-ndjson", "Text/Event-Stream ;charset=utf-8"] {
            let endless = futures::stream::pending::<Result<Bytes, std::io::Error>>();
            let mut answer = Response::new(Body::from_stream(endless));
            let form = HeaderValue::from_static(form);
            answer.headers_mut().insert(CONTENT_TYPE, form);
            let reply = reply_of(answer).await;
            assert_eq!(reply.status, 400);
            let text = String::from_utf8_lossy(&reply.body.0);
            assert!(text.contains("ask that node itself"), "{text}");
        }
    }

    #[test]
    fn tokens_and_framing_headers_are_not_relayed() {
        let mut headers = HeaderMap::new();
        for name in [
            "x-auth-token",
            "x-service-token",
            "authorization",
            "cookie",
            "connection",
            "content-length",
            "transfer-encoding",
            "Placement-Consistency",
            "content-type",
        ] {
            headers.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_static("local"),
            );
        }
        let names = |headers: &Headers| {
            headers
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        let relayed = written(&headers);
        assert_eq!(names(&relayed), ["placement-consistency", "content-type"]);
        assert_eq!(written(&read(relayed)).len(), 2);

        let blob = |text: &'static str| Blob(Bytes::from_static(text.as_bytes()));
        let sent = ["Content-Length", "no header", "vary"].map(|name| (name.to_owned(), blob("a")));
        assert_eq!(names(&written(&read(sent.into()))), ["vary"]);
        let many = vec![("vary".to_owned(), blob("a")); 100_000];
        assert_eq!(read(many).len(), HEADERS_MAX);
        assert!(read(vec![("vary".to_owned(), blob("a\r\nb: c"))]).is_empty());
    }
}
