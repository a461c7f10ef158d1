//! A node and openstack-placement get the same random requests, valid and invalid ones, and must
//! give the same answers.
//!
//! `PLACEMENT_DIFFERENTIAL_STEPS` is the number of steps per seed, `PLACEMENT_DIFFERENTIAL_SEEDS`
//! the number of seeds; `scripts/nightly` raises both.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use http_body_util::Full;
use placement_tests::cluster::Cluster;
use placement_tests::reference::Reference;
use placement_witness::history::Answer;
use placement_witness::http::{answer, render, send};
use placement_witness::operation::{Operation, Request};
use placement_witness::workload::Names;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::random_requests::{ANSWER_LIMIT, Service, choices, fill, number};
use crate::transfer::{installed_in, sorted};

const WRITES_PERCENT: u32 = 60;
/// Percentage of requests that are preceded by a copy with an error in it.
const SPOILT_PERCENT: u32 = 40;
/// Replacements for a value in a body.
const ODD_VALUES: [&str; 19] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "5.0",
    "2147483647",
    "2147483648",
    "9223372036854775808",
    "1234567890123456789012345678901",
    "1e-7",
    "\"\"",
    "\" \"",
    "\"CUSTOM_GOLD\"",
    "\"custom\"",
    "\"\u{e9}\\n\"",
    "[]",
    "{}",
    "{\"VCPU\": 1}",
];
/// Replacements for a parameter of a query.
const ODD_PARAMETERS: [&str; 17] = [
    "",
    "0",
    "-1",
    "x",
    "VCPU",
    "VCPU:0",
    "VCPU:1,VCPU:2",
    "CUSTOM_GOLD:1",
    "in:",
    "in:CUSTOM_RED,CUSTOM_BLUE",
    "!CUSTOM_RED",
    "!!CUSTOM_RED",
    "CUSTOM_NEVER_MADE",
    "in:1f5b9b0e-0000-4000-8000-000000000000",
    "!1f5b9b0e-0000-4000-8000-000000000000",
    "isolate",
    "all",
];
const PARAMETERS: [&str; 14] = [
    "resources",
    "resources1",
    "required",
    "required1",
    "member_of",
    "in_tree",
    "group_policy",
    "root_required",
    "same_subtree",
    "name",
    "uuid",
    "project_id",
    "user_id",
    "consumer_type",
];

/// A request whose body may be invalid JSON, which a [`Value`] cannot represent.
struct Sent {
    request: Request,
    body: Option<String>,
}

impl Sent {
    fn right(request: Request) -> Self {
        let body = request.body.as_ref().map(Value::to_string);
        Self { request, body }
    }

    /// The request with, in most cases, one error in it.
    fn spoilt(mut request: Request, random: &mut SmallRng) -> Self {
        // With the id, placementd would take the right request for a repetition; upstream does not.
        request.request_id = None;
        match (random.random_range(0..10), &request.body) {
            (0, _) => request.minor = random.random_range(0..=39),
            (1..9, Some(body)) => {
                let body = spoilt_body(body.clone(), random);
                return Self {
                    request,
                    body: Some(body),
                };
            }
            _ if request.method == "GET" => request.path = spoilt_query(&request.path, random),
            _ => request.minor = random.random_range(0..=39),
        }
        Self::right(request)
    }

    async fn to(&self, address: &str) -> Answer {
        let request = render(&self.request);
        let body = self.body.clone().unwrap_or_default();
        let request = request.map(|_| Full::new(body.into()));
        let response = send(TcpStream::connect(address), request, ANSWER_LIMIT).await;
        answer(&response.expect("the service answers"))
    }
}

/// The body with one value replaced, removed or added.
fn spoilt_body(mut body: Value, random: &mut SmallRng) -> String {
    const ODD: &str = "the odd value";
    let mut places = Vec::new();
    list_places(&body, String::new(), &mut places);
    let place = places.choose(random).expect("the root is listed");
    let value = body.pointer_mut(place).expect("the place is listed");
    match (random.random_range(0..10), value) {
        (0, Value::Object(members)) => drop(members.insert("more".to_owned(), ODD.into())),
        (1..4, Value::Object(members)) => {
            // Without a UUID, each service would choose a different one.
            let names: Vec<String> = members
                .keys()
                .filter(|name| *name != "uuid")
                .cloned()
                .collect();
            drop(names.choose(random).map(|name| members.remove(name)));
        }
        (_, value) => *value = ODD.into(),
    }
    let odd = ODD_VALUES.choose(random).expect("not empty");
    body.to_string().replace(&format!("\"{ODD}\""), odd)
}

fn list_places(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            list_places(member, format!("{place}/{name}"), places);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(number, item)| {
            list_places(item, format!("{place}/{number}"), places);
        }),
        _ => {}
    }
    places.push(place);
}

/// The path with one parameter replaced, removed, repeated or added.
fn spoilt_query(path: &str, random: &mut SmallRng) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
    pairs.retain(|pair| !pair.is_empty());
    let odd = *ODD_PARAMETERS.choose(random).expect("not empty");
    let chosen = random.random_range(0..pairs.len().max(1));
    match (random.random_range(0..4), pairs.get_mut(chosen)) {
        (0, Some(pair)) => {
            let name = pair.split('=').next().expect("split gives one").to_owned();
            *pair = format!("{name}={odd}");
        }
        (1, Some(_)) => drop(pairs.remove(chosen)),
        (2, Some(pair)) => {
            let repeated = pair.clone();
            pairs.push(repeated);
        }
        _ => {
            let name = PARAMETERS.choose(random).expect("not empty");
            pairs.push(format!("{name}={odd}"));
        }
    }
    if pairs.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

/// Both services. The workload continues with the answers of openstack-placement.
struct Pair {
    node: String,
    upstream: String,
    random: RefCell<SmallRng>,
    /// Number of requests, by kind and status.
    seen: RefCell<BTreeMap<(&'static str, u16), usize>>,
    differences: RefCell<Vec<String>>,
    asked: Cell<usize>,
}

impl Pair {
    async fn compare(&self, kind: &'static str, sent: &Sent) -> Answer {
        let (ours, theirs) = (sent.to(&self.node).await, sent.to(&self.upstream).await);
        let number = self.asked.get();
        self.asked.set(number + 1);
        let counted = (kind, theirs.status);
        *self.seen.borrow_mut().entry(counted).or_default() += 1;
        if let Some(difference) = difference(&sent.request, &ours, &theirs) {
            let Request {
                method,
                path,
                minor,
                ..
            } = &sent.request;
            let body = sent.body.as_deref().unwrap_or("");
            let line = format!("{number}: {method} {path} 1.{minor} {body}\n{difference}");
            self.differences.borrow_mut().push(line);
        }
        theirs
    }
}

impl Service for Pair {
    async fn answer(&self, operation: Operation) -> Answer {
        let spoilt = {
            let random = &mut *self.random.borrow_mut();
            let is_spoilt = random.random_range(0..100) < SPOILT_PERCENT;
            is_spoilt.then(|| Sent::spoilt(operation.request(), random))
        };
        if let Some(spoilt) = spoilt {
            self.compare("spoilt", &spoilt).await;
        }
        let right = Sent::right(operation.request());
        self.compare(operation.kind(), &right).await
    }
}

/// The difference between two answers, ignoring the order of lists, the text of errors, and the
/// choice of candidates under a limit. Where upstream answers 500, a write must be refused and a
/// read answered.
fn difference(request: &Request, ours: &Answer, theirs: &Answer) -> Option<String> {
    if theirs.status == 500 {
        let right = match request.method {
            "GET" => ours.status < 500,
            _ => (400..500).contains(&ours.status),
        };
        return (!right)
            .then(|| format!("  here     {} {}\n  upstream 500", ours.status, ours.body));
    }
    let judged = |answer: &Answer| match answer.status {
        400.. => Value::from(answer.code()),
        _ if request.path.contains("limit=") || adds_up_amounts(&request.path) => Value::Null,
        _ => doubles(sorted(answer.json())),
    };
    let (one, other) = (judged(ours), judged(theirs));
    (ours.status != theirs.status || one != other).then(|| {
        format!(
            "  here     {} {one} {}\n  upstream {} {other} {}",
            ours.status, ours.body, theirs.status, theirs.body
        )
    })
}

/// Upstream shows wrong amounts if an unnumbered and a numbered group request the same class,
/// unless the group policy is `none`.
fn adds_up_amounts(path: &str) -> bool {
    path.contains("resources=") && path.contains("resources1=") && !path.contains("policy=none")
}

/// Converts all numbers to doubles: integers beyond 64 bits are printed differently.
fn doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.into_iter().map(doubles).collect(),
        Value::Object(members) => (members.into_iter())
            .map(|(name, member)| (name, doubles(member)))
            .collect(),
        plain => plain,
    }
}

/// Sends the steps of one seed to both services; returns the differences.
async fn compare(seed: u64, steps: usize) -> Vec<String> {
    let mut cluster = Cluster::prepare(1, "").unwrap();
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let upstream = Reference::start(installed_in(), "").await;
    let choices = choices(seed);
    let pair = Pair {
        node: cluster.place(1).api(),
        upstream: upstream.address(),
        random: RefCell::new(choices.seed.stream("spoilt")),
        seen: RefCell::default(),
        differences: RefCell::default(),
        asked: Cell::new(0),
    };
    let names = Names::new(&choices);
    fill(&pair, &choices, &names, steps, WRITES_PERCENT).await;
    eprintln!("seed {seed}: {:?}", pair.seen.borrow());
    pair.differences.take()
}

#[tokio::test]
async fn random_requests_get_the_same_answers_as_upstream() {
    let steps = number("PLACEMENT_DIFFERENTIAL_STEPS", 300) as usize;
    for seed in 0..number("PLACEMENT_DIFFERENTIAL_SEEDS", 1) {
        let differences = LocalSet::new().run_until(compare(seed, steps)).await;
        assert!(
            differences.is_empty(),
            "seed {seed}, {} differences\n{}",
            differences.len(),
            differences.join("\n")
        );
    }
}
