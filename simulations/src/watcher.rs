//! Watchers follow the change stream (`GET /placementd/v1/events`) from node to node through all
//! faults. Each resumes with its last token, sometimes with an older one, and also reads earlier
//! moments.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use futures::future::join_all;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use placement_witness::http::render;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::http::{open, send};
use crate::invariants::{as_of_is_what_it_was, progress_is_the_truth};
use crate::ledger::SharedLedger;
use crate::mirror::{Mirror, Values, name};
use crate::operation::{Request, Token};
use crate::shared::{Phase, Shared};

/// The stream of all changes.
const EVENTS: &str = "/placementd/v1/events?or_snapshot=true";
/// Longest time that a watcher follows one node, in milliseconds.
const STAY_MAX: u64 = 2500;
/// Pause of a watcher after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// The values at each index at which something changed, as the watchers know them.
#[derive(Default)]
struct ValuesByIndex(RefCell<BTreeMap<u64, Rc<Values>>>);

/// A client of the change stream.
struct Watcher {
    number: usize,
    shared: Rc<Shared>,
    ledger: SharedLedger,
    moments: Rc<ValuesByIndex>,
    random: SmallRng,
    /// Epoch of its tokens.
    epoch: u64,
    /// The number of cluster losses that the watchers have noticed; after a loss another cluster
    /// starts from a backup.
    life: Rc<Cell<usize>>,
    mirror: Option<Mirror>,
    /// Values of a snapshot that is still being received.
    rows: Option<Values>,
}

/// Watchers follow until the end of the run, and finally compare their values with each node's.
///
/// # Errors
/// None; turmoil requires the signature.
pub async fn watch(shared: Rc<Shared>, ledger: SharedLedger) -> turmoil::Result {
    shared.wait_for_phase(Phase::Faults).await;
    let (moments, life) = (Rc::new(ValuesByIndex::default()), Rc::default());
    let watchers = (0..shared.parameters.watchers).map(|number| {
        let watcher = Watcher {
            number,
            shared: shared.clone(),
            ledger: ledger.clone(),
            moments: moments.clone(),
            random: shared.parameters.seed.stream(&format!("watcher {number}")),
            epoch: 0,
            life: Rc::clone(&life),
            mirror: None,
            rows: None,
        };
        watcher.live()
    });
    join_all(watchers).await;
    shared.watched.set(true);
    Ok(())
}

fn get(path: &str) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    render(&Request {
        method: "GET",
        path: path.to_owned(),
        minor: 39,
        body: None,
        consistency: None,
        min_index: None,
        request_id: None,
    })
}

impl Watcher {
    async fn live(mut self) {
        while self.shared.phase.get() < Phase::Scan {
            let nodes = self.shared.nodes.borrow().clone();
            let Some(node) = nodes.choose(&mut self.random).copied() else {
                sleep(PAUSE).await;
                continue;
            };
            if self.random.random_ratio(1, 4) {
                self.read_earlier_state(node).await;
            }
            if self.random.random_ratio(1, 6) {
                self.resume_earlier();
            }
            let stay = Duration::from_millis(self.random.random_range(50..STAY_MAX));
            if !self.follow(node, "", Instant::now() + stay).await {
                sleep(PAUSE).await;
            }
        }
        let nodes = self.shared.nodes.borrow().clone();
        for node in nodes {
            self.until_done(node).await;
            self.mirror = None;
            self.until_done(node).await;
            self.read_earlier_state(node).await;
        }
    }

    /// Receives all changes that a node has.
    async fn until_done(&mut self, node: u64) {
        let patience = self.shared.parameters.patience;
        while !self
            .follow(node, "&follow=false", Instant::now() + patience)
            .await
        {
            sleep(PAUSE).await;
        }
    }

    /// Follows a node until the deadline or the end of the stream. Returns false if the connection
    /// failed or the request was refused.
    async fn follow(&mut self, node: u64, more: &str, until: Instant) -> bool {
        self.begin_again_if_lost();
        let after = self.mirror.as_ref().map(|mirror| self.token(mirror.sent));
        let after = after.map(|token| format!("&after={token}"));
        let path = format!("{EVENTS}{more}{}", after.unwrap_or_default());
        let (patience, life) = (self.shared.parameters.patience, self.ledger.lock().life);
        let Ok((response, _connection)) = open(node, get(&path), patience).await else {
            return false;
        };
        let came = match response.status().as_u16() {
            200 => self.read(response.into_body(), life, until).await,
            // All nodes were lost and started again with a new history since this token was issued.
            412 => {
                self.mirror = None;
                Ok(false)
            }
            _ => Ok(false),
        };
        self.rows = None;
        if let Some(mirror) = &mut self.mirror {
            mirror.cut();
        }
        came.unwrap_or_else(|wrong| {
            self.say(&wrong, node);
            self.mirror = None;
            true
        })
    }

    fn say(&self, wrong: &str, node: u64) {
        let wrong = format!("{wrong}\n    watcher {} at node {node}", self.number);
        self.ledger.lock().violations.push(wrong);
    }

    fn token(&self, index: u64) -> Token {
        let epoch = self.epoch;
        Token { epoch, index }
    }

    /// Discards the known values if the cluster was lost.
    fn begin_again_if_lost(&mut self) -> bool {
        let life = self.ledger.lock().life;
        let is_lost = self.life.replace(life) != life;
        if is_lost {
            self.moments.0.borrow_mut().clear();
        }
        is_lost
    }

    /// Reads lines until the end of the stream, the deadline or the loss of the cluster.
    async fn read(
        &mut self,
        mut body: Incoming,
        life: usize,
        until: Instant,
    ) -> Result<bool, String> {
        let mut left = Vec::new();
        loop {
            let frame = match timeout_at(until, body.frame()).await {
                Err(_) => return Ok(false),
                Ok(None) => return Ok(true),
                Ok(Some(Err(_))) => return Ok(false),
                Ok(Some(Ok(frame))) => frame,
            };
            if self.ledger.lock().life != life {
                self.mirror = None;
                return Ok(false);
            }
            left.extend_from_slice(&frame.into_data().unwrap_or_default());
            while let Some(end) = left.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = left.drain(..=end).collect();
                let line = serde_json::from_slice(&line);
                self.take(line.map_err(|error| format!("invalid JSON line: {error}"))?)?;
            }
        }
    }

    /// Processes one line of the stream.
    fn take(&mut self, line: Value) -> Result<(), String> {
        let place = |member: &str| line[member].as_str().and_then(Token::parse);
        if let Some(token) = place("snapshot") {
            self.epoch = token.epoch;
            self.rows = Some(Values::new());
        } else if let Some(token) = place("snapshot_end") {
            let rows = self.rows.take().unwrap_or_default();
            self.mirror = Some(Mirror::new(rows, token.index));
            return self.note();
        } else if place("reset").is_some() {
            self.mirror = None;
        } else if let Some(token) = place("progress").or(place("next")) {
            let (ledger, partition) = (
                self.ledger.lock(),
                self.shared.parameters.clouds.partition(),
            );
            let changed = |after, up_to| ledger.changed(partition, after, up_to);
            let mirror = self.mirror.as_mut().ok_or("progress before a snapshot")?;
            mirror.progress(token.index, &changed)?;
            drop(ledger);
            return self.note();
        } else if let Some(token) = place("index") {
            let (ledger, partition) = (
                self.ledger.lock(),
                self.shared.parameters.clouds.partition(),
            );
            let changed = |after, up_to| ledger.changed(partition, after, up_to);
            let mirror = self.mirror.as_mut().ok_or("an event before a snapshot")?;
            mirror.event(token.index, line, &changed)?;
            self.shared.events.set(self.shared.events.get() + 1);
        } else if let Some(rows) = &mut self.rows {
            rows.insert(name(&line), line["value"].clone());
        }
        Ok(())
    }

    /// Compares this watcher's values with those of other watchers, if nothing has changed between
    /// their indexes.
    fn note(&self) -> Result<(), String> {
        let Some(Mirror { values, sent, .. }) = &self.mirror else {
            return Ok(());
        };
        let partition = self.shared.parameters.clouds.partition();
        let mut moments = self.moments.0.borrow_mut();
        let last = moments.range(..=*sent).next_back().filter(|(place, _)| {
            let ledger = self.ledger.lock();
            ledger.changed(partition, **place, *sent).is_none()
        });
        let Some((place, same)) = last else {
            moments.insert(*sent, Rc::new(values.clone()));
            return Ok(());
        };
        let differs = |name: &&String| values.get(*name) != same.get(*name);
        let Some(name) = values.keys().chain(same.keys()).find(differs) else {
            return Ok(());
        };
        let [own, other] = [values, &**same].map(|one| one.get(name).unwrap_or(&Value::Null));
        let wrong = format!("{name} is {own}, but {other} for a watcher at index {place}");
        Err(progress_is_the_truth::complaint(*sent, &wrong))
    }

    fn any_moment(&mut self) -> Option<(u64, Rc<Values>)> {
        let moments = self.moments.0.borrow();
        let nth = self.random.random_range(0..moments.len().max(1));
        let (place, values) = moments.iter().nth(nth)?;
        Some((*place, values.clone()))
    }

    /// Resumes at an earlier moment, like a client that lost its latest token.
    fn resume_earlier(&mut self) {
        if self.begin_again_if_lost() {
            self.mirror = None;
        } else if let Some((place, values)) = self.any_moment() {
            self.mirror = Some(Mirror::new((*values).clone(), place));
        }
    }

    /// Reads the state of an earlier moment.
    async fn read_earlier_state(&mut self, node: u64) {
        self.begin_again_if_lost();
        let Some((place, values)) = self.any_moment() else {
            return;
        };
        let of_kind = |kind: &str| {
            let values = values
                .iter()
                .filter(move |(name, _)| name.starts_with(kind));
            values.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let fields = ["uuid", "name", "generation", "parent_provider_uuid"];
        let shown = |body: &Value| {
            let all = body["resource_providers"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|one| {
                    let fields = fields.iter().map(|field| (*field, one[*field].clone()));
                    (one["uuid"].to_string(), fields.collect())
                });
            all.collect::<BTreeMap<String, BTreeMap<&str, Value>>>()
        };
        let was = json!({ "resource_providers": of_kind("provider ") });
        self.compare(node, place, "/resource_providers", |body| {
            (json!(shown(body)), json!(shown(&was)))
        })
        .await;
        let consumers = self.consumers();
        let Some(consumer) = consumers.choose(&mut self.random) else {
            return;
        };
        let held = |name: &String| {
            let key: Value = serde_json::from_str(name.strip_prefix("allocation ")?).ok()?;
            let is_own = key["consumer"] == consumer.as_str();
            let provider = key["resource_provider"].as_str()?.to_owned();
            is_own.then(|| (provider, values[name]["resources"].clone()))
        };
        let was: BTreeMap<_, _> = values.keys().filter_map(held).collect();
        self.compare(node, place, &format!("/allocations/{consumer}"), |body| {
            let all = body["allocations"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(provider, one)| (provider.clone(), one["resources"].clone()));
            (json!(all.collect::<BTreeMap<_, _>>()), json!(was))
        })
        .await;
    }

    /// All consumers that existed at some moment.
    fn consumers(&self) -> Vec<String> {
        let moments = self.moments.0.borrow();
        let consumer = |name: &String| {
            let key: Value = serde_json::from_str(name.strip_prefix("consumer ")?).ok()?;
            Some(key["consumer"].as_str()?.to_owned())
        };
        let names = moments.values().flat_map(|values| values.keys());
        let all: BTreeSet<String> = names.filter_map(consumer).collect();
        all.into_iter().collect()
    }

    /// Compares a node's answer for an earlier moment with the known values.
    async fn compare(
        &self,
        node: u64,
        place: u64,
        path: &str,
        sides: impl FnOnce(&Value) -> (Value, Value),
    ) {
        let (mut request, token) = (get(path), self.token(place).to_string());
        let value = token.parse().expect("a token is a valid header value");
        request.headers_mut().insert("placement-as-of", value);
        let life = self.life.get();
        let patience = self.shared.parameters.patience;
        let Ok(response) = send(node, request, patience).await else {
            return;
        };
        if response.status() != 200 || self.ledger.lock().life != life {
            return;
        }
        self.shared
            .looked_back
            .set(self.shared.looked_back.get() + 1);
        let index = response.headers().get("placement-index");
        let index = index.and_then(|index| index.to_str().ok()).unwrap_or("-");
        let body = serde_json::from_slice(response.body()).unwrap_or_default();
        let (shown, was) = sides(&body);
        let wrong = match shown == was {
            true if index == token => return,
            true => as_of_is_what_it_was::complaint(place, path, index, &token),
            false => {
                let [shown, was] = [shown, was].map(|side| side.to_string());
                as_of_is_what_it_was::complaint(place, path, &shown, &was)
            }
        };
        self.say(&wrong, node);
    }
}
