//! Excessive requests: each is answered quickly, and the answer names the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use placement_api::http::ApiSettings;

use serde_json::{Value, json};

use crate::cloud::{Ask, Cloud, Counting, uuid};

const LIMIT: &str = "placement.limit_exceeded";
const BUSY: &str = "placement.unavailable.busy";

#[tokio::test]
async fn query_length_and_parameters_are_limited() {
    let mut settings = ApiSettings::default();
    settings.limits.uri_bytes = 60;
    settings.limits.query_parameters = 3;
    let cloud = Cloud::with(settings);
    let ask = |query: &str| cloud.get(&format!("/traits?{query}")).send();
    let long = format!("name=in:{}", "A".repeat(60));
    for version in ["1.6", "1.39"] {
        let asked = cloud.get(&format!("/traits?{long}")).version(version);
        let answer = asked.refused(414, "60 bytes").await;
        assert_eq!(answer.json()["errors"][0]["title"], "Request URI Too Long");
        answer.code(LIMIT);
    }
    ask("name=in:A&name=in:A&name=in:A").await.expect(200);
    ask("name=in:A&name=in:A&&name=in:A&name=in:A")
        .await
        .refused(400, "more than 3 query parameters")
        .code(LIMIT);
}

#[tokio::test]
async fn the_longest_queries_are_answered_soon() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 8).await;
    let times = |count: usize, part: &str| vec![part; count].join("&");
    let aggregate = "member_of=cccccccc-0000-0000-0000-000000000001";
    for path in [
        format!("/traits?name=startswith:{}", "%25".repeat(10_000)),
        format!("/traits?name=startswith:{}", "%25A".repeat(8_000)),
        format!(
            "/allocation_candidates?resources=VCPU:1&{}",
            times(999, "required=HW_GPU_API_VULKAN,!X,A,A,A")
        ),
        format!(
            "/allocation_candidates?resources=VCPU:1&{}",
            times(600, aggregate)
        ),
        format!("/resource_providers?{}", times(600, aggregate)),
    ] {
        let mut quickest = Duration::MAX;
        // Other load on the machine can only make a request slower.
        for _ in 0..5 {
            let began = Instant::now();
            let status = cloud.get(&path).send().await.status.as_u16();
            assert!(matches!(status, 200 | 400 | 414), "{status}");
            quickest = quickest.min(began.elapsed());
        }
        assert!(quickest < Duration::from_secs(1), "{path:.60}");
    }
}

fn one_of_each() -> ApiSettings {
    let mut settings = ApiSettings::default();
    settings.limits.inventories = 1;
    settings.limits.traits = 1;
    settings.limits.aggregates = 1;
    settings.limits.providers = 1;
    settings.limits.consumers = 1;
    settings.limits.allocations = 1;
    settings
}

/// A claim of these classes.
fn claim(classes: &[&str]) -> Value {
    let resources: serde_json::Map<_, _> = (classes.iter())
        .map(|class| ((*class).to_owned(), json!(1)))
        .collect();
    json!({
        "allocations": {uuid(1): {"resources": resources}},
        "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE",
    })
}

#[tokio::test]
async fn request_groups_are_limited() {
    let mut settings = ApiSettings::default();
    settings.limits.request_groups = 2;
    let cloud = Cloud::with(settings);
    let ask = |query: &str| {
        let path = format!("/allocation_candidates?group_policy=none&{query}");
        cloud.get(&path).send()
    };
    let two = "resources1=VCPU:1&required1=A&resources2=VCPU:1";
    ask(two).await.refused(400, "No such trait");
    ask(&format!("{two}&resources3=VCPU:1"))
        .await
        .refused(400, "more than 2 request groups")
        .code(LIMIT);
}

#[tokio::test]
async fn number_of_items_in_a_body_is_limited() {
    let cloud = Cloud::with(one_of_each());
    cloud.provider(1, None).await;
    let below = |what: &str| format!("/resource_providers/{}/{what}", uuid(1));
    let stock = json!({"total": 8});
    let set = |classes: &[&str]| {
        let all: serde_json::Map<_, _> = (classes.iter())
            .map(|class| ((*class).to_owned(), stock.clone()))
            .collect();
        json!({"resource_provider_generation": 0, "inventories": all})
    };
    let puts = [
        (
            "inventories",
            below("inventories"),
            set(&["VCPU", "DISK_GB"]),
        ),
        (
            "traits",
            below("traits"),
            json!({"resource_provider_generation": 0, "traits": ["HW_CPU_X86_VMX", "HW_CPU_X86_SGX"]}),
        ),
        (
            "aggregates",
            below("aggregates"),
            json!({"resource_provider_generation": 0, "aggregates": [uuid(7), uuid(8)]}),
        ),
        (
            "allocations",
            format!("/allocations/{}", uuid(20)),
            claim(&["VCPU", "DISK_GB"]),
        ),
    ];
    for (key, path, body) in puts {
        let answer = cloud.put(&path, body).send().await;
        answer
            .refused(400, &format!("more than 1 {key}"))
            .code(LIMIT);
    }
    let reshape = |inventories: Value, allocations: Value| {
        let body = json!({"inventories": inventories, "allocations": allocations});
        cloud
            .post("/reshaper", body)
            .header("x-roles", "service")
            .send()
    };
    let two = json!({uuid(20): claim(&["VCPU"]), uuid(21): claim(&["VCPU"])});
    cloud
        .post("/allocations", two.clone())
        .refused(400, "more than 1 consumers")
        .await;
    reshape(json!({uuid(1): set(&["VCPU"])}), two)
        .await
        .refused(400, "more than 1 consumers");
    let sets = json!({uuid(1): set(&["VCPU"]), uuid(2): set(&[])});
    reshape(sets, json!({}))
        .await
        .refused(400, "more than 1 providers");
    reshape(json!({uuid(1): set(&["VCPU", "DISK_GB"])}), json!({}))
        .await
        .refused(400, "more than 1 inventories");

    let fits = cloud
        .put(&below("inventories"), set(&["VCPU"]))
        .send()
        .await;
    fits.expect(200);
    cloud.claim(20, 1, "VCPU", 1).await.expect(204);
}

#[tokio::test]
async fn length_of_aggregate_is_limited() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let path = format!("/resource_providers/{}/aggregates", uuid(1));
    let put = |spelled: String| {
        let body = json!({"aggregates": [spelled], "resource_provider_generation": 0});
        cloud.put(&path, body).send()
    };
    let urns = |count: usize| format!("{}{}", "urn:".repeat(count), uuid(7));
    put(urns(100_000)).await.expect(400);
    put(urns(2)).await.expect(200);
}

#[tokio::test]
async fn a_body_of_many_small_values_is_not_held_in_memory() {
    let cloud = Cloud::new();
    let zeros = format!("[{}0]", "0,".repeat(2_000_000));
    let sent = (cloud.ask("POST", "/resource_providers"))
        .raw(zeros.as_bytes())
        .header("content-type", "application/json");
    sent.refused(400, "JSON values").await.code(LIMIT);
}

#[tokio::test]
async fn long_body_is_parsed_on_another_thread() {
    let counting = Arc::new(Counting::default());
    let cloud = Cloud::offloading_to(counting.clone(), ApiSettings::default());
    for (length, elsewhere) in [(1_000, 0), (200_000, 1)] {
        let body = json!({"name": "x".repeat(length)});
        cloud.post("/resource_providers", body).expect(400).await;
        assert_eq!(counting.count(), elsewhere);
    }
}

/// A body that stalls after its first chunk, and the number of times it was polled.
fn silent_body() -> (Body, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let first = stream::once(async move {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok::<_, std::convert::Infallible>(Bytes::from_static(b"{"))
    });
    (Body::from_stream(first.chain(stream::pending())), asked)
}

#[tokio::test]
async fn the_body_of_an_unauthorized_request_is_not_awaited() {
    let cloud = Cloud::new();
    let json =
        |method, path: &str| (cloud.ask(method, path)).header("content-type", "application/json");
    for (sent, status) in [
        (json("POST", "/resource_providers").token(None), 401),
        (
            json("POST", "/resource_providers").token(Some("somebody")),
            403,
        ),
        (json("POST", "/nowhere"), 404),
        (json("POST", "/"), 405),
        (json("PUT", "/resource_providers"), 405),
        (cloud.ask("POST", "/resource_providers"), 415),
        (json("POST", "/resource_providers").version("1.40"), 406),
    ] {
        let (body, asked) = silent_body();
        let answer = sent.send_streaming(body).await.expect(status);
        assert_eq!(asked.load(Ordering::Relaxed), 0, "{status}");
        assert_eq!(answer.header("connection"), Some("close"), "{status}");
    }
    let answer = cloud.get("/nowhere").expect(404).await;
    assert_eq!(
        answer.header("connection"),
        None,
        "without a body the connection stays"
    );
}

#[tokio::test]
async fn stalled_body_times_out() {
    let mut settings = ApiSettings::default();
    settings.limits.body_timeout = Duration::from_millis(50);
    let cloud = Cloud::with(settings);
    let sent =
        (cloud.ask("POST", "/resource_providers")).header("content-type", "application/json");
    let (body, _) = silent_body();
    sent.send_streaming(body)
        .await
        .refused(408, "within a minute")
        .code("placement.body_too_slow");
}

#[tokio::test]
async fn a_body_that_no_operation_reads_takes_no_memory() {
    let cloud = Cloud::new();
    let announced = |sent: Ask, bytes: &str| {
        sent.header("content-type", "application/json")
            .header("content-length", bytes)
    };
    // A body longer than the limit for discarding is not read at all.
    let root = cloud.get("/").token(None);
    for sent in [
        root,
        cloud.get("/traits"),
        cloud.delete("/traits/CUSTOM_NONE"),
    ] {
        let (body, asked) = silent_body();
        let answer = announced(sent, "16777216").send_streaming(body).await;
        assert!(matches!(answer.status.as_u16(), 200 | 404));
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let endless = stream::repeat_with(|| {
        Ok::<_, std::convert::Infallible>(Bytes::from_static(&[b' '; 1000]))
    });
    let chunked = cloud
        .get("/traits")
        .header("content-type", "application/json");
    let answer = chunked.send_streaming(Body::from_stream(endless)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("connection"), Some("close"));
    // A short body keeps the connection alive.
    let short = cloud.put("/traits/CUSTOM_A", json!({"any": "thing"}));
    assert_eq!(short.expect(201).await.header("connection"), None);
}

#[tokio::test]
async fn the_limit_of_a_route_is_known_before_its_body_is_read() {
    let cloud = Cloud::new();
    let sent = cloud
        .ask("POST", "/placementd/v1/what-if")
        .header("content-type", "application/json");
    let (body, asked) = silent_body();
    let sent = sent
        .header("content-length", "1048577")
        .send_streaming(body);
    sent.await
        .refused(413, "1048576 bytes")
        .code("placement.body_too_large");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// A cloud with little memory that trusts a proxy to name the address of each client.
fn small_cloud() -> Cloud {
    let mut settings = ApiSettings::default();
    settings.public.trust_proxy_headers = true;
    settings.limits.in_flight_bytes = 2_000_000;
    Cloud::with(settings)
}

fn named(length: usize) -> Value {
    json!({"name": "x", "uuid": uuid(1), "parent_provider_uuid": "p".repeat(length)})
}

#[tokio::test]
async fn bodies_of_one_caller_leave_memory_for_those_of_others_and_for_answers() {
    let cloud = small_cloud();
    // A body that stalls after the share of one user.
    let most = Bytes::from(vec![b' '; 1_000_000]);
    let begun = stream::once(async move { Ok::<_, std::convert::Infallible>(most) });
    let begun = Body::from_stream(begun.chain(stream::pending()));
    let held = cloud
        .ask("POST", "/resource_providers")
        .header("content-type", "application/json");
    let mut held = Box::pin(held.send_streaming(begun));
    assert!(futures::poll!(&mut held).is_pending());

    let post = |length| cloud.post("/resource_providers", named(length));
    let refused = post(30_000)
        .refused(503, "memory for bodies for this user")
        .await;
    refused.code(BUSY);
    // Short bodies are always admitted.
    post(1_000).expect(400).await;
    post(30_000).of_another_caller().expect(400).await;
    for number in 1..=600 {
        cloud.provider(number, None).await;
    }
    cloud.get("/resource_providers").expect(200).await;
    drop(held);
    post(30_000).expect(400).await;
}

#[tokio::test]
async fn answers_that_one_caller_does_not_take_leave_memory_for_those_of_others() {
    let cloud = small_cloud();
    for number in 1..=600 {
        cloud.provider(number, None).await;
    }
    let list = || cloud.get("/resource_providers");
    let mut untaken = Vec::new();
    let refused = loop {
        let answer = list().untaken().await;
        if answer.status() != 200 {
            break answer;
        }
        untaken.push(answer);
    };
    assert_eq!(refused.status(), 503);
    assert!(!untaken.is_empty());
    list()
        .refused(503, "memory for answers for this user")
        .await
        .code(BUSY);
    let one = format!("/resource_providers?uuid={}", uuid(7));
    cloud.get(&one).expect(200).await;
    list().of_another_caller().expect(200).await;
    drop(untaken);
    list().expect(200).await;
}
