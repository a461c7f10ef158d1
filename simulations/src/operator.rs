//! The one who changes the cluster while it runs: through the door for operators, as `placementctl` does.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::http::node_name;

/// Where every simulated node listens to operators.
pub const ADMIN_PORT: u16 = 8780;
/// Where every simulated node listens to other nodes.
pub const PEER_PORT: u16 = 8779;

/// How long an answer is waited for: a promotion waits for the learner for ten seconds.
const PATIENCE: Duration = Duration::from_secs(13);
const PAUSE: Duration = Duration::from_millis(300);

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Hand leadership over; tried once, as it changes nothing that must last.
    Transfer(u64),
    /// Add a node that waits without data, as learner.
    Add(u64),
    /// Make it a voter.
    Promote(u64),
    /// Take a node out.
    Remove(u64),
}

/// How an order ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It was carried out, now or at an earlier try.
    Yes,
    /// It never will be, in the words of the node.
    Refused(String),
}

/// Where orders wait, and what came of them. Those that must be carried out are repeated until they are.
#[derive(Debug, Default)]
pub struct Desk {
    orders: RefCell<VecDeque<Order>>,
    busy: Cell<bool>,
    done: RefCell<Vec<(Order, Done)>>,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Transfer(node) => write!(f, "hand leadership to node {node}"),
            Order::Add(node) => write!(f, "add node {node}"),
            Order::Promote(node) => write!(f, "promote node {node}"),
            Order::Remove(node) => write!(f, "remove node {node}"),
        }
    }
}

impl Desk {
    /// Adds orders, to be carried out one after the other.
    pub fn order(&self, orders: impl IntoIterator<Item = Order>) {
        self.orders.borrow_mut().extend(orders);
    }

    /// Whether nothing is left to be done.
    pub fn is_empty(&self) -> bool {
        self.orders.borrow().is_empty() && !self.busy.get()
    }

    /// What came of the orders so far.
    pub fn done(&self) -> Vec<(Order, Done)> {
        self.done.borrow().clone()
    }

    /// Carries orders out for ever; any of the nodes up to `nodes` is asked.
    ///
    /// # Errors
    /// None; the signature is turmoil's.
    pub async fn work(self: Rc<Self>, nodes: u64) -> turmoil::Result {
        let mut turn = 0;
        loop {
            let next = self.orders.borrow_mut().pop_front();
            let Some(order) = next else {
                sleep(PAUSE / 10).await;
                continue;
            };
            self.busy.set(true);
            let done = loop {
                turn += 1;
                if let Some(done) = carry_out(order, 1 + turn % nodes).await {
                    break done;
                }
                sleep(PAUSE).await;
            };
            tracing::info!(%order, ?done, "an order has ended");
            self.done.borrow_mut().push((order, done));
            self.busy.set(false);
        }
    }
}

/// One try, through one node. `None`: it has to be tried again.
async fn carry_out(order: Order, through: u64) -> Option<Done> {
    let answer = timeout(PATIENCE, ask(order, through)).await;
    let answer = answer.ok().and_then(Result::ok);
    if let Order::Transfer(_) = order {
        return Some(match answer {
            Some((200, _)) => Done::Yes,
            Some((_, words)) => Done::Refused(words),
            None => Done::Refused("no answer".to_owned()),
        });
    }
    let (status, words) = answer?;
    let is_there = |part: &str| words.contains(part);
    match status {
        204 => Some(Done::Yes),
        404 if matches!(order, Order::Remove(_)) => Some(Done::Yes),
        409 if is_there("is a member already") => Some(Done::Yes),
        // An earlier try got half way: the node has heard of a membership that was never committed.
        409 if is_there("has data of this cluster") || is_there("has been a member") => {
            Some(Done::Refused(words))
        }
        404 if matches!(order, Order::Promote(_)) => Some(Done::Refused(words)),
        _ => None,
    }
}

async fn ask(order: Order, through: u64) -> anyhow::Result<(u16, String)> {
    let (method, path, body) = match order {
        Order::Transfer(to) => ("POST", "/v1/leader".to_owned(), json!({ "to": to })),
        Order::Add(id) => {
            let peer = format!("{}:{PEER_PORT}", node_name(id));
            let body = json!({ "id": id, "peer": peer });
            ("POST", "/v1/members".to_owned(), body)
        }
        Order::Promote(id) => ("POST", format!("/v1/members/{id}/promote"), json!({})),
        Order::Remove(id) => ("DELETE", format!("/v1/members/{id}"), json!({})),
    };
    let stream = turmoil::net::TcpStream::connect((node_name(through), ADMIN_PORT)).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::task::spawn_local(connection);
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("host", node_name(through))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let answered = async {
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        anyhow::Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    let answer = answered.await;
    connection.abort();
    answer
}
