//! What operators ask of one node at the door of another: a call between the two. So the socket of one machine shows
//! all of the cluster, and no node needs a port for operators.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use placement_raft_store::wire::Blob;
use tower::ServiceExt;

use super::trail::{Recording, Relayed, recorded};
use super::{Admin, Answer, error, failed, no_such_route, of_one_node};
use crate::cluster::peer_service::Operated;
use crate::rpc::channel::{CallError, Lane};
use crate::rpc::message::{self, Order, OrderReply};
use crate::tls::{OWNER_MAX, Shown};

/// No order takes longer; the recount of a large state takes minutes.
const DEADLINE: Duration = Duration::from_secs(600);
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
const JSON: (axum::http::HeaderName, &str) = (axum::http::header::CONTENT_TYPE, "application/json");

/// The door of this node, for operators who came to another.
pub(crate) struct Inner(Router);

impl Inner {
    /// With records of its own, beside those of the node where the operator is.
    pub(crate) fn new(admin: Admin, recording: Recording) -> Arc<Self> {
        let recorded = from_fn_with_state(recording, recorded);
        Arc::new(Self(admin.of_one_node().layer(recorded)))
    }
}

impl Operated for Inner {
    fn carry_out(&self, from: u64, order: Order) -> BoxFuture<'_, OrderReply> {
        Box::pin(async move {
            let Order {
                method,
                path,
                operator,
            } = order;
            // That node may say anything.
            let operator = operator.map(|name| name.chars().take(OWNER_MAX).collect());
            let request = Request::builder().method(&*method).uri(&*path);
            let response = match request.body(Body::empty()) {
                Ok(mut request) => {
                    let relayed = Relayed { by: from, operator };
                    request.extensions_mut().insert(relayed);
                    ask(self.0.clone(), request).await
                }
                Err(wrong) => error(StatusCode::BAD_REQUEST, &wrong.to_string()),
            };
            let status = response.status().as_u16();
            match to_bytes(response.into_body(), ANSWER_BYTES_MAX).await {
                Ok(body) => OrderReply {
                    status,
                    body: Blob(body),
                },
                Err(_) => OrderReply {
                    status: StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
                    body: Blob::default(),
                },
            }
        })
    }
}

async fn ask(router: Router, request: Request) -> Response {
    router
        .oneshot(request)
        .await
        .unwrap_or_else(|never| match never {})
}

/// Hands a request on to the node that is meant.
pub(super) async fn relay(
    State(admin): State<Admin>,
    Path((id, what)): Path<(u64, String)>,
    request: Request,
) -> Answer {
    let path = format!("/v1/{what}");
    let method = request.method().clone();
    let asked = format!("{method} {path}");
    if !of_one_node().iter().any(|(route, _)| *route == asked) {
        return Ok(no_such_route());
    }
    let running = admin.running()?;
    if id == running.replica.me {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty());
        let request = request.expect("a method and a path that are known make a request");
        return Ok(ask(admin.of_one_node(), request).await);
    }
    let Some(member) = running.replica.member(id) else {
        let words = format!("node {id} is not a member");
        return Err(failed(StatusCode::NOT_FOUND, &words));
    };
    let asked = Order {
        method: method.to_string(),
        path,
        operator: (request.extensions().get::<Shown>()).and_then(Shown::owner),
    };
    let reply = order((id, &*member.peer), &admin, &asked, DEADLINE).await;
    let OrderReply { status, body } = reply.map_err(|away| {
        let words = format!("node {id} gave no answer: {away}");
        failed(StatusCode::SERVICE_UNAVAILABLE, &words)
    })?;
    let status = StatusCode::from_u16(status)
        .map_err(|wrong| failed(StatusCode::BAD_GATEWAY, &format!("node {id}: {wrong}")))?;
    Ok((status, [JSON], body.0).into_response())
}

/// Has another node carry out an order.
pub(super) async fn order(
    to: (u64, &str),
    admin: &Admin,
    order: &Order,
    deadline: Duration,
) -> Result<OrderReply, CallError> {
    let peers = &admin.bootstrap.peers;
    let method = message::Method::Operate;
    peers.call(to, Lane::Forward, method, order, deadline).await
}
