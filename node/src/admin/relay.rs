//! Operators ask one node through another: a call between the two. So the socket of one machine shows
//! all of the cluster, and no node needs a port for operators.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use placement_raft_store::wire::Blob;
use tower::ServiceExt;

use super::trail::{Recording, Relayed, recorded};
use super::{Admin, Answer, failed, no_such_route, of_one_node};
use crate::cluster::peer_service::Operated;
use crate::rpc::channel::CallError;
use crate::rpc::message::{self, Order, OrderReply};
use crate::tls::{OWNER_MAX, Shown};

/// No order takes longer; the recount of a large state takes minutes.
const DEADLINE: Duration = Duration::from_secs(600);
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The routes of this node, for operators who are connected to another.
pub(crate) struct Inner(Router);

impl Inner {
    /// With records of its own, in addition to those of the node where the operator is.
    pub(crate) fn new(admin: Admin, recording: Recording) -> Arc<Self> {
        let recorded = from_fn_with_state(recording, recorded);
        Arc::new(Self(admin.of_one_node().layer(recorded)))
    }
}

impl Operated for Inner {
    fn carry_out(&self, from: u64, order: Order) -> BoxFuture<'_, OrderReply> {
        Box::pin(async move {
            // That node may report anything.
            let operator = order.operator;
            let operator = operator.map(|name| name.chars().take(OWNER_MAX).collect());
            let request = Request::builder().method(&*order.method).uri(&*order.path);
            let request = request.extension(Relayed { by: from, operator });
            let response = match request.body(Body::empty()) {
                Ok(request) => ask(self.0.clone(), request).await,
                Err(wrong) => failed(StatusCode::BAD_REQUEST, wrong).into_response(),
            };
            let status = response.status();
            let read = to_bytes(response.into_body(), ANSWER_BYTES_MAX).await;
            let (status, body) = match read {
                Ok(body) => (status, Blob(body)),
                Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, Blob::default()),
            };
            let status = status.as_u16();
            OrderReply { status, body }
        })
    }
}

async fn ask(router: Router, request: Request) -> Response {
    let Ok(response) = router.oneshot(request).await;
    response
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
        return Err(no_such_route());
    }
    let running = admin.running()?;
    if id == running.replica.me {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty());
        let request = request.expect("a method and a path that are known make a request");
        return Ok(ask(admin.of_one_node(), request).await);
    }
    let Some(member) = running.replica.member(id) else {
        let detail = format!("node {id} is not a member");
        return Err(failed(StatusCode::NOT_FOUND, detail));
    };
    let asked = Order {
        method: method.to_string(),
        path,
        operator: (request.extensions().get::<Shown>()).and_then(Shown::owner),
    };
    let reply = order(id, &member.peer, &admin, &asked, DEADLINE).await;
    let OrderReply { status, body } = reply.map_err(|away| {
        let detail = format!("node {id} gave no answer: {away}");
        failed(StatusCode::SERVICE_UNAVAILABLE, detail)
    })?;
    let status = StatusCode::from_u16(status)
        .map_err(|wrong| failed(StatusCode::BAD_GATEWAY, format!("node {id}: {wrong}")))?;
    let form = [(CONTENT_TYPE, "application/json")];
    Ok((status, form, body.0).into_response())
}

/// Has another node carry out an order.
pub(super) async fn order(
    to: u64,
    address: &str,
    admin: &Admin,
    order: &Order,
    deadline: Duration,
) -> Result<OrderReply, CallError> {
    let peers = &admin.bootstrap.peers;
    let method = message::Method::Operate;
    peers.call(to, address, method, order, deadline).await
}
