//! No request is answered with a 5xx: valid requests, valid requests with faults, and random
//! requests.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::cloud::{Answer, Cloud, uuid};

/// A request to [`sample_cloud`]. `null` means no body.
#[derive(Debug, Clone)]
struct Sent {
    method: String,
    path: String,
    body: Value,
    version: String,
    accept: String,
}

/// The generation of provider 1 in the sample cloud.
const GENERATION: u64 = 2;

/// A host with an inventory and a trait, a child provider, and unused names.
async fn sample_cloud() -> Cloud {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.provider(2, Some(1)).await;
    cloud.stock(1, "VCPU", 8).await;
    for path in [
        "/resource_classes/CUSTOM_X",
        "/traits/CUSTOM_X",
        "/traits/CUSTOM_UNUSED",
    ] {
        cloud.ask("PUT", path).expect(201).await;
    }
    let traits = json!({"resource_provider_generation": 1, "traits": ["CUSTOM_X"]});
    let path = format!("/resource_providers/{}/traits", uuid(1));
    cloud.put(&path, traits).expect(200).await;
    cloud
}

/// Requests that each succeed on the sample cloud: every operation of the newest version.
fn right_requests() -> Vec<Sent> {
    let (host, child, consumer) = (uuid(1), uuid(2), uuid(7));
    let provider = format!("/resource_providers/{host}");
    let none = Value::Null;
    let stock = json!({
        "total": 8, "reserved": 1, "min_unit": 1, "max_unit": 4, "step_size": 1, "allocation_ratio": 1.5,
    });
    let mut new_stock = stock.clone();
    new_stock["resource_class"] = json!("DISK_GB");
    let mut one_stock = stock.clone();
    one_stock["resource_provider_generation"] = json!(GENERATION);
    let stocks =
        json!({"inventories": {"VCPU": stock}, "resource_provider_generation": GENERATION});
    let claim = json!({
        "allocations": {host.clone(): {"resources": {"VCPU": 1}}},
        "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE",
    });
    let claimant = json!({"project_id": "p", "user_id": "u", "consumer_generation": null});
    let choices = json!({
        "consumers": {consumer.clone(): claimant},
        "choices": [{consumer.clone(): {"allocations": {host.clone(): {"resources": {"VCPU": 1}}}}}],
        "ceilings": [{"projects": ["p"], "types": ["INSTANCE", null], "class": "VCPU", "limit": 4}],
        "apart": [{"members": [consumer, uuid(8)], "most": 2}],
    });
    let wanted = json!({
        "consumers": {consumer.clone(): claimant},
        "want": {"query": "resources=VCPU:1&required=CUSTOM_X&limit=5", "order": "pack"},
        "ceilings": [{"projects": ["p"], "count": true, "limit": 4}],
        "together": [{"members": [consumer, uuid(8)]}],
    });
    let limits = json!({
        "generation": 0, "mode": "enforce", "types": ["INSTANCE", null],
        "defaults": {"consumers": 2, "VCPU": null},
        "projects": {"p": {"parent": "q", "limits": {"VCPU": 4}}, "q": {}}, "updated_at": null,
    });
    let requests = [
        ("GET", "/", &none),
        ("GET", "/resource_providers?resources=VCPU:1", &none),
        (
            "POST",
            "/resource_providers",
            &json!({"name": "new", "uuid": uuid(9), "parent_provider_uuid": host}),
        ),
        ("GET", &provider, &none),
        ("PUT", &provider, &json!({"name": "renamed"})),
        ("DELETE", &format!("/resource_providers/{child}"), &none),
        ("GET", &format!("{provider}/inventories"), &none),
        ("POST", &format!("{provider}/inventories"), &new_stock),
        ("PUT", &format!("{provider}/inventories"), &stocks),
        ("DELETE", &format!("{provider}/inventories"), &none),
        ("GET", &format!("{provider}/inventories/VCPU"), &none),
        ("PUT", &format!("{provider}/inventories/VCPU"), &one_stock),
        ("DELETE", &format!("{provider}/inventories/VCPU"), &none),
        ("GET", &format!("{provider}/usages"), &none),
        ("GET", &format!("{provider}/allocations"), &none),
        ("GET", &format!("{provider}/aggregates"), &none),
        (
            "PUT",
            &format!("{provider}/aggregates"),
            &json!({"aggregates": [uuid(5)], "resource_provider_generation": GENERATION}),
        ),
        ("GET", &format!("{provider}/traits"), &none),
        (
            "PUT",
            &format!("{provider}/traits"),
            &json!({"traits": ["CUSTOM_X"], "resource_provider_generation": GENERATION}),
        ),
        ("DELETE", &format!("{provider}/traits"), &none),
        ("GET", &format!("/allocations/{consumer}"), &none),
        ("PUT", &format!("/allocations/{consumer}"), &claim),
        ("POST", "/allocations", &json!({consumer: claim})),
        (
            "GET",
            "/allocation_candidates?resources=VCPU:1&required=CUSTOM_X&resources1=VCPU:1\
             &group_policy=none&limit=5",
            &none,
        ),
        ("GET", "/resource_classes", &none),
        ("POST", "/resource_classes", &json!({"name": "CUSTOM_Y"})),
        ("GET", "/resource_classes/VCPU", &none),
        ("PUT", "/resource_classes/CUSTOM_Y", &none),
        ("DELETE", "/resource_classes/CUSTOM_X", &none),
        ("GET", "/traits?name=startswith:CUSTOM", &none),
        ("GET", "/traits/CUSTOM_X", &none),
        ("PUT", "/traits/CUSTOM_Y", &none),
        ("DELETE", "/traits/CUSTOM_UNUSED", &none),
        ("GET", "/usages?project_id=p", &none),
        ("GET", "/placementd/v1/capacity?class=VCPU&by=tree", &none),
        (
            "GET",
            "/placementd/v1/consumers?type=unknown&older_than=5&several_trees=true&limit=5",
            &none,
        ),
        ("GET", &format!("/placementd/v1/trees/{child}"), &none),
        ("POST", "/placementd/v1/claims", &choices),
        ("POST", "/placementd/v1/claims", &wanted),
        ("GET", "/placementd/v1/limits", &none),
        ("PUT", "/placementd/v1/limits", &limits),
        (
            "GET",
            "/placementd/v1/limits/usage?project=p&over=true&limit=5&marker=a",
            &none,
        ),
        (
            "POST",
            "/reshaper",
            &json!({"inventories": {host: stocks}, "allocations": {}}),
        ),
    ];
    let sent = requests.map(|(method, path, body)| Sent {
        method: method.to_owned(),
        path: path.to_owned(),
        body: body.clone(),
        version: "1.39".to_owned(),
        accept: "application/json".to_owned(),
    });
    sent.into()
}

async fn send(cloud: &Cloud, sent: &Sent) -> Answer {
    let ask = cloud
        .ask(&sent.method, &sent.path)
        .version(&sent.version)
        .header("accept", &sent.accept)
        .header("x-roles", "admin,service");
    match &sent.body {
        Value::Null => ask.send().await,
        body => ask.body(body.clone()).send().await,
    }
}

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("resource_providers".to_owned()),
        Just("resource_classes".to_owned()),
        Just("traits".to_owned()),
        Just("inventories".to_owned()),
        Just("allocations".to_owned()),
        Just("aggregates".to_owned()),
        Just("usages".to_owned()),
        Just("reshaper".to_owned()),
        Just("allocation_candidates".to_owned()),
        Just(uuid(1)),
        Just("VCPU".to_owned()),
        Just("CUSTOM_X".to_owned()),
        // A lone percent sign is not a valid URI.
        "[a-zA-Z0-9_%]{0,6}".prop_map(|noise| noise.replace('%', "%25")),
    ]
}

fn method() -> impl Strategy<Value = String> {
    "(GET|PUT|POST|DELETE|PATCH|HEAD)"
}

fn query() -> impl Strategy<Value = String> {
    "([a-z_]{1,12}[0-9]?=[A-Z0-9:,!_in]{0,10}&){0,3}"
}

fn version() -> impl Strategy<Value = String> {
    "(1\\.[0-9]{1,2}|latest)"
}

fn accept() -> impl Strategy<Value = String> {
    "(application/json|\\*/\\*|text/html|[a-z/*;=,.0-9]{0,12})"
}

fn key() -> impl Strategy<Value = String> + Clone {
    select(vec![
        "name",
        "uuid",
        "parent_provider_uuid",
        "resource_provider_generation",
        "inventories",
        "allocations",
        "resources",
        "traits",
        "aggregates",
        "total",
        "allocation_ratio",
        "project_id",
        "user_id",
        "consumer_generation",
        "consumer_type",
        "mappings",
        "VCPU",
        "colour",
    ])
    .prop_map(str::to_owned)
}

fn body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        (0_i64..10).prop_map(Value::from),
        "[A-Za-z0-9_ é\\n]{0,12}".prop_map(Value::from),
        Just(json!(uuid(1))),
    ];
    let key = prop_oneof![17 => key(), 1 => Just(uuid(1)), 1 => "[A-Za-z_]{0,5}"];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(key.clone(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A request in which everything is random.
fn noise() -> impl Strategy<Value = Sent> {
    let path = proptest::collection::vec(segment(), 0..4);
    (method(), path, query(), body(), version(), accept()).prop_map(
        |(method, path, query, body, version, accept)| Sent {
            method,
            path: format!("/{}?{query}", path.join("/")),
            body,
            version,
            accept,
        },
    )
}

/// A fault in a request; an `Index` is its place.
#[derive(Debug, Clone)]
enum Fault {
    Method(String),
    Segment(Index, String),
    MoreQuery(String),
    Version(String),
    Accept(String),
    OtherBody(Value),
    OtherValue(Index, Value),
    NoMember(Index, Index),
    MoreMember(Index, String, Value),
}

fn fault() -> impl Strategy<Value = Fault> {
    let place = any::<Index>;
    prop_oneof![
        1 => method().prop_map(Fault::Method),
        2 => (place(), segment()).prop_map(|(at, new)| Fault::Segment(at, new)),
        2 => query().prop_map(Fault::MoreQuery),
        2 => version().prop_map(Fault::Version),
        1 => accept().prop_map(Fault::Accept),
        1 => body().prop_map(Fault::OtherBody),
        3 => (place(), body()).prop_map(|(at, new)| Fault::OtherValue(at, new)),
        2 => (place(), place()).prop_map(|(at, which)| Fault::NoMember(at, which)),
        2 => (place(), key(), body()).prop_map(|(at, key, new)| Fault::MoreMember(at, key, new)),
    ]
}

impl Fault {
    fn befall(self, sent: &mut Sent) {
        match self {
            Self::Method(method) => sent.method = method,
            Self::Segment(at, new) => {
                let (path, query) = sent.path.split_once('?').unwrap_or((&sent.path, ""));
                let mut parts: Vec<&str> = path.split('/').collect();
                // The text before the first slash is empty.
                let at = 1 + at.index(parts.len() - 1);
                parts[at] = &new;
                sent.path = format!("{}?{query}", parts.join("/"));
            }
            Self::MoreQuery(more) => {
                let mark = if sent.path.contains('?') { '&' } else { '?' };
                sent.path = format!("{}{mark}{more}", sent.path);
            }
            Self::Version(version) => sent.version = version,
            Self::Accept(accept) => sent.accept = accept,
            Self::OtherBody(body) => sent.body = body,
            Self::OtherValue(at, new) => *place(&mut sent.body, at) = new,
            Self::NoMember(at, which) => {
                if let Value::Object(members) = place(&mut sent.body, at) {
                    let names: Vec<String> = members.keys().cloned().collect();
                    if !names.is_empty() {
                        members.remove(which.get(&names));
                    }
                }
            }
            Self::MoreMember(at, key, new) => {
                if let Value::Object(members) = place(&mut sent.body, at) {
                    members.insert(key, new);
                }
            }
        }
    }
}

/// One of the values in a body, including the body itself.
fn place(body: &mut Value, at: Index) -> &mut Value {
    let nth = at.index(places(body));
    nth_place(body, nth).expect("`nth` is less than the number of places")
}

fn places(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(members) => members.values().map(places).sum(),
        _ => 0,
    }
}

fn nth_place(value: &mut Value, nth: usize) -> Option<&mut Value> {
    let Some(mut rest) = nth.checked_sub(1) else {
        return Some(value);
    };
    let parts: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => Vec::new(),
    };
    for part in parts {
        let here = places(part);
        if rest < here {
            return nth_place(part, rest);
        }
        rest -= here;
    }
    None
}

fn requests() -> impl Strategy<Value = Vec<Sent>> {
    let faults = proptest::collection::vec(fault(), 0..=2);
    let nearly_right = (select(right_requests()), faults).prop_map(|(mut sent, faults)| {
        for fault in faults {
            fault.befall(&mut sent);
        }
        sent
    });
    let request = prop_oneof![3 => nearly_right, 1 => noise()];
    proptest::collection::vec(request, 1..=5)
}

#[tokio::test]
async fn valid_requests_succeed() {
    for sent in right_requests() {
        let answer = send(&sample_cloud().await, &sent).await;
        let (status, text) = (answer.status, answer.text());
        assert!(status.is_success(), "{status} {text} to {sent:?}");
    }
}

#[test]
fn no_request_is_answered_with_a_server_error() {
    let done: RefCell<BTreeMap<String, u32>> = RefCell::default();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let law = |requests: Vec<Sent>| {
        runtime.block_on(async {
            let cloud = sample_cloud().await;
            for sent in requests {
                let answer = send(&cloud, &sent).await;
                let (status, text) = (answer.status, answer.text());
                prop_assert!(
                    !status.is_server_error(),
                    "{} {} to {:?}",
                    status,
                    text,
                    sent
                );
                if status.is_success() {
                    *done.borrow_mut().entry(sent.method).or_default() += 1;
                }
            }
            Ok(())
        })
    };
    if let Err(broken) = runner.run(&requests(), law) {
        panic!("{broken}");
    }
    // Random requests are refused early, so the test also requires successes.
    for method in ["GET", "PUT", "POST", "DELETE"] {
        let done = done.borrow().get(method).copied().unwrap_or_default();
        assert!(
            done >= 30,
            "only {done} {method} requests were answered successfully"
        );
    }
}
