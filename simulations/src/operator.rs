//! An operator that changes the cluster during the run, through the operators' listener, as
//! `placementctl` does.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::http::node_name;
use crate::invariants::members_change_as_ordered::{Change, OrderedChanges};

/// Operators' port of every simulated node.
pub const ADMIN_PORT: u16 = 8780;
/// Peer port of every simulated node.
pub const PEER_PORT: u16 = 8779;

/// Timeout of a request. A promotion waits up to ten seconds for the learner.
const PATIENCE: Duration = Duration::from_secs(13);
const PAUSE: Duration = Duration::from_millis(300);

/// A task for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Transfer leadership to a node; attempted once, since the effect is not permanent.
    Transfer(u64),
    /// Let a node without data join with a token, as a learner.
    Add(u64),
    /// Make a learner a voter.
    Promote(u64),
    /// Make a voter a learner; attempted once.
    Demote(u64),
    /// Remove a node; retried until it succeeds.
    Remove(u64),
    /// Remove a running node; attempted once.
    Retire(u64),
    /// Drain a node; attempted once.
    Drain(u64),
    /// Undrain a node. A node that has restarted since is not drained any more.
    Undrain(u64),
    /// Like [`Order::Add`], as the replacement of another node.
    Join {
        /// Number of the new node.
        spare: u64,
        /// Number of the replaced node.
        old: u64,
    },
    /// Revoke the node's token.
    Revoke(u64),
    /// Create a token for a node, and keep it.
    Token(u64),
}

/// Outcome of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Executed, now or at an earlier attempt.
    Yes,
    /// Refused for good, with the node's answer.
    Refused(String),
}

/// Queue of orders, with their outcomes. Orders that must succeed are retried until they do.
#[derive(Debug)]
pub struct OrderQueue {
    orders: RefCell<VecDeque<Order>>,
    /// Nodes that receive requests: the initial members, and the nodes that either operator has
    /// added.
    asked: Rc<RefCell<Vec<u64>>>,
    /// The current order, and the last answer to it.
    current: RefCell<Option<(Order, String)>>,
    done: RefCell<Vec<(Order, Done)>>,
    /// Nodes that were drained at some time.
    drained: RefCell<BTreeSet<u64>>,
    tokens: Rc<Tokens>,
    ordered: OrderedChanges,
}

/// Data shared by the operators.
#[derive(Debug, Default)]
struct Tokens {
    /// The created tokens, by node.
    shown: RefCell<BTreeMap<u64, String>>,
    /// Nodes whose tokens are ready for delivery to their machines.
    wanted: RefCell<Vec<u64>>,
    brought: RefCell<BTreeSet<u64>>,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Transfer(node) => write!(f, "transfer leadership to node {node}"),
            Order::Add(node) => write!(f, "add node {node}"),
            Order::Promote(node) => write!(f, "promote node {node}"),
            Order::Demote(node) => write!(f, "demote node {node}"),
            Order::Remove(node) => write!(f, "remove node {node}"),
            Order::Retire(node) => write!(f, "remove the running node {node}"),
            Order::Drain(node) => write!(f, "drain node {node}"),
            Order::Undrain(node) => write!(f, "undrain node {node}"),
            Order::Join { spare, old } => {
                write!(f, "let node {spare} join as the replacement of node {old}")
            }
            Order::Token(node) => write!(f, "create a token for node {node}"),
            Order::Revoke(node) => write!(f, "revoke the token for node {node}"),
        }
    }
}

impl Order {
    /// The membership changes of the order.
    fn changes(self) -> Vec<(u64, Change)> {
        match self {
            Order::Add(node) => vec![(node, Change::Joins)],
            Order::Promote(node) => vec![(node, Change::GetsVote)],
            Order::Demote(node) => vec![(node, Change::LosesVote)],
            Order::Remove(node) | Order::Retire(node) => vec![(node, Change::Leaves)],
            Order::Join { spare, old } => vec![
                (spare, Change::Joins),
                (spare, Change::GetsVote),
                (old, Change::LosesVote),
                (old, Change::Leaves),
            ],
            Order::Transfer(_)
            | Order::Drain(_)
            | Order::Undrain(_)
            | Order::Revoke(_)
            | Order::Token(_) => Vec::new(),
        }
    }
}

impl OrderQueue {
    /// The queues of two operators, for a cluster with `nodes` initial nodes.
    pub fn two(nodes: u64, ordered: &OrderedChanges) -> [Rc<Self>; 2] {
        let asked = Rc::new(RefCell::new((1..=nodes).collect()));
        let tokens = Rc::<Tokens>::default();
        [(); 2].map(|()| {
            Rc::new(Self {
                orders: RefCell::default(),
                asked: Rc::clone(&asked),
                current: RefCell::default(),
                done: RefCell::default(),
                drained: RefCell::default(),
                tokens: Rc::clone(&tokens),
                ordered: ordered.clone(),
            })
        })
    }

    /// Appends orders to the queue.
    pub fn order(&self, orders: impl IntoIterator<Item = Order>) {
        for order in orders {
            if let Order::Drain(node) = order {
                self.drained.borrow_mut().insert(node);
            }
            self.orders.borrow_mut().push_back(order);
        }
    }

    /// Whether a node was drained at some time; such a node may transfer leadership to any node.
    pub fn has_drained(&self, node: u64) -> bool {
        self.drained.borrow().contains(&node)
    }

    /// Takes the tokens that are ready for delivery to their machines.
    pub fn take_tokens(&self) -> Vec<(u64, String)> {
        let wanted = self.tokens.wanted.take().into_iter();
        let shown = self.tokens.shown.borrow();
        wanted.map(|node| (node, shown[&node].clone())).collect()
    }

    /// The token created for a node.
    pub fn token(&self, node: u64) -> Option<String> {
        self.tokens.shown.borrow().get(&node).cloned()
    }

    /// Tries once to create a token.
    async fn issue(&self, node: u64, through: u64) -> Option<Done> {
        let wanted = json!({ "ttl_s": 24 * 3600 });
        let asked = ask_for("POST", "/v1/join-tokens".to_owned(), wanted, through);
        let (status, words) = timeout(PATIENCE, asked).await.ok().and_then(Result::ok)?;
        let body: Value = serde_json::from_str(&words).unwrap_or_default();
        match status {
            201 if body["id"] == node => {
                let token = body["token"].as_str().unwrap_or_default();
                self.note_token(node, token);
                Some(Done::Yes)
            }
            // An earlier attempt, whose answer was lost, has used the node's number.
            201 | 404 | 409 => Some(Done::Refused(words)),
            _ => None,
        }
    }

    fn note_token(&self, node: u64, token: &str) {
        let mut shown = self.tokens.shown.borrow_mut();
        shown.insert(node, token.to_owned());
    }

    /// Tries once to let a node join, as a replacement or as an additional node. If the new node
    /// cannot replace the old one, the old one is removed.
    async fn join(&self, spare: u64, old: Option<u64>, through: u64) -> Option<Done> {
        let tokens = "/v1/join-tokens".to_owned();
        if self.token(spare).is_none() {
            let wanted = json!({ "replaces": old, "ttl_s": 24 * 3600 });
            let answer = timeout(PATIENCE, ask_for("POST", tokens, wanted, through)).await;
            let (status, words) = answer.ok().and_then(Result::ok)?;
            let body: Value = serde_json::from_str(&words).unwrap_or_default();
            let made = body["id"].as_u64();
            if let (201, Some(made)) = (status, made) {
                self.note_token(made, body["token"].as_str().unwrap_or_default());
            }
            return match (status, old) {
                _ if made == Some(spare) => None,
                // Another token has the node's number: the answer with it was lost, or another
                // operator created it.
                (201, None) => {
                    sleep(PATIENCE).await;
                    self.token(spare).is_none().then_some(Done::Refused(words))
                }
                (201 | 404, Some(old)) => {
                    let revoked = (spare..=made.unwrap_or(spare)).map(Order::Revoke);
                    let then: Vec<_> = revoked.chain([Order::Remove(old)]).collect();
                    let mut left = self.orders.borrow_mut();
                    (then.into_iter().rev()).for_each(|order| left.push_front(order));
                    Some(Done::Refused(words))
                }
                _ => None,
            };
        }
        if self.tokens.brought.borrow_mut().insert(spare) {
            self.tokens.wanted.borrow_mut().push(spare);
        }
        let answer = timeout(PATIENCE, ask_for("GET", tokens, json!({}), through)).await;
        let (_, words) = answer.ok().and_then(Result::ok)?;
        let body: Value = serde_json::from_str(&words).unwrap_or_default();
        let mut known = body["join_tokens"].as_array()?.iter();
        let token = known.find(|token| token["id"] == spare)?;
        let is_done = token["state"] == "joined" && token["replaces"].is_null();
        is_done.then_some(Done::Yes)
    }

    /// Whether all orders have ended.
    pub fn is_empty(&self) -> bool {
        self.orders.borrow().is_empty() && self.current.borrow().is_none()
    }

    /// Description of the remaining orders and of the last answer, for error messages.
    pub fn left(&self) -> String {
        let current = self.current.borrow();
        let (now, answer) = current.as_ref().map_or_else(
            || ("nothing".to_owned(), "nothing"),
            |(order, answer)| (order.to_string(), answer.as_str()),
        );
        let then: Vec<String> = (self.orders.borrow().iter())
            .map(ToString::to_string)
            .collect();
        format!(
            "current: {now}, last answer: {answer}; next: {}",
            then.join(", ")
        )
    }

    /// Outcomes of the orders so far.
    pub fn done(&self) -> Vec<(Order, Done)> {
        self.done.borrow().clone()
    }

    /// Executes orders forever.
    ///
    /// # Errors
    /// None; turmoil requires the signature.
    pub async fn work(self: Rc<Self>) -> turmoil::Result {
        let mut turn = 0;
        loop {
            let next = self.orders.borrow_mut().pop_front();
            let Some(order) = next else {
                sleep(PAUSE / 10).await;
                continue;
            };
            *self.current.borrow_mut() = Some((order, String::new()));
            self.ordered.begin(&order.changes());
            // The node may join after the order has ended.
            let mut may_be_late = matches!(order, Order::Add(_) | Order::Join { .. });
            let done = loop {
                turn += 1;
                let through = match order {
                    Order::Drain(node) | Order::Undrain(node) => node,
                    _ => {
                        let asked = self.asked.borrow();
                        asked[turn % asked.len()]
                    }
                };
                let tried = match order {
                    Order::Add(spare) => self.join(spare, None, through).await,
                    Order::Join { spare, old } => self.join(spare, Some(old), through).await,
                    Order::Token(node) => self.issue(node, through).await,
                    order => {
                        let answer = timeout(PATIENCE, ask(order, through))
                            .await
                            .ok()
                            .and_then(Result::ok);
                        may_be_late |= answer.as_ref().is_none_or(|(status, _)| *status >= 500);
                        let last = format!("node {through}: {answer:?}");
                        *self.current.borrow_mut() = Some((order, last));
                        ended(order, answer)
                    }
                };
                if let Some(done) = tried {
                    break done;
                }
                sleep(PAUSE).await;
            };
            tracing::info!(%order, ?done, "an order has ended");
            if !may_be_late {
                self.ordered.end(&order.changes());
            }
            if let (Order::Add(node) | Order::Join { spare: node, .. }, Done::Yes) = (order, &done)
            {
                self.asked.borrow_mut().push(node);
            }
            self.done.borrow_mut().push((order, done));
            *self.current.borrow_mut() = None;
        }
    }
}

/// The outcome of an order after this answer. `None`: try again.
fn ended(order: Order, answer: Option<(u16, String)>) -> Option<Done> {
    if let Order::Transfer(_)
    | Order::Drain(_)
    | Order::Undrain(_)
    | Order::Demote(_)
    | Order::Retire(_) = order
    {
        return Some(match answer {
            Some((200 | 204, _)) => Done::Yes,
            Some((_, words)) => Done::Refused(words),
            None => Done::Refused("no answer".to_owned()),
        });
    }
    let (status, words) = answer?;
    match status {
        204 => Some(Done::Yes),
        404 if matches!(order, Order::Remove(_) | Order::Revoke(_)) => Some(Done::Yes),
        409 if matches!(order, Order::Revoke(_)) && words.contains("has already used") => {
            Some(Done::Refused(words))
        }
        404 if matches!(order, Order::Promote(_)) => Some(Done::Refused(words)),
        _ => None,
    }
}

async fn ask(order: Order, through: u64) -> anyhow::Result<(u16, String)> {
    let (method, path, body) = match order {
        Order::Transfer(to) => ("POST", "/v1/leader".to_owned(), json!({ "to": to })),
        Order::Promote(id) => ("POST", format!("/v1/members/{id}/promote"), json!({})),
        Order::Demote(id) => ("POST", format!("/v1/members/{id}/demote"), json!({})),
        Order::Remove(id) | Order::Retire(id) => ("DELETE", format!("/v1/members/{id}"), json!({})),
        Order::Drain(_) => ("POST", "/v1/drain".to_owned(), json!({})),
        Order::Undrain(_) => ("DELETE", "/v1/drain".to_owned(), json!({})),
        Order::Revoke(id) => ("DELETE", format!("/v1/join-tokens/{id}"), json!({})),
        Order::Add(_) | Order::Join { .. } | Order::Token(_) => {
            unreachable!("needs more than one request")
        }
    };
    ask_for(method, path, body, through).await
}

async fn ask_for(
    method: &str,
    path: String,
    body: Value,
    through: u64,
) -> anyhow::Result<(u16, String)> {
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
