//! `/placementd/v1`: queries of operators about the content.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use placement_api::http::ApiSettings;
use placement_base::world::Clock;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Counting, uuid};

const CAPACITY: &str = "/placementd/v1/capacity";
const CONSUMERS: &str = "/placementd/v1/consumers";

/// A host with two NUMA nodes, and an aggregate that contains the host.
async fn numa_cloud() -> Cloud {
    let cloud = Cloud::new();
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(1))] {
        cloud.provider(number, parent).await;
    }
    cloud.stock(1, "DISK_GB", 100).await;
    let stock = json!({
        "resource_class": "VCPU", "total": 8, "reserved": 1, "max_unit": 4, "allocation_ratio": 1.5,
    });
    for number in [2, 3] {
        let path = format!("/resource_providers/{}/inventories", uuid(number));
        cloud.post(&path, stock.clone()).expect(201).await;
    }
    let below = |what: &str| format!("/resource_providers/{}/{what}", uuid(1));
    let aggregates = json!({"aggregates": [uuid(90)], "resource_provider_generation": 1});
    cloud
        .put(&below("aggregates"), aggregates)
        .expect(200)
        .await;
    let traits = json!({"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": 2});
    cloud.put(&below("traits"), traits).expect(200).await;
    cloud.claim(50, 2, "VCPU", 3).await.expect(204);
    cloud
}

#[tokio::test]
async fn capacity_is_summed_by_class_and_by_what_the_query_names() {
    let cloud = numa_cloud().await;
    let disk = json!({
        "class": "DISK_GB", "providers": 1, "total": 100, "reserved": 0, "capacity": 100, "used": 0,
        "free": 100, "largest_free": 100, "free_ranges": [0, 0, 0, 0, 0, 0, 0, 1],
    });
    let vcpus = json!({
        "class": "VCPU", "providers": 2, "total": 16, "reserved": 2, "capacity": 20, "used": 3, "free": 17,
        "largest_free": 4, "free_ranges": [0, 0, 0, 1, 1],
    });
    let with = |row: &Value, facet: &str, name: Value| {
        let mut row = row.clone();
        row[facet] = name;
        row.as_object_mut().unwrap().remove("free_ranges");
        row
    };
    let provider = |number| json!({"uuid": uuid(number), "name": format!("provider {number}")});
    let of_node = |number, used: u64| {
        json!({
            "class": "VCPU", "provider": provider(number), "providers": 1, "total": 8, "reserved": 1,
            "capacity": 10, "used": used, "free": 10 - used, "largest_free": 4,
        })
    };
    for (query, by, rows) in [
        ("", "class", vec![disk.clone(), vcpus.clone()]),
        ("?by=class&class=VCPU", "class", vec![vcpus.clone()]),
        ("?class=PCPU", "class", vec![]),
        (
            "?by=aggregate&class=VCPU",
            "aggregate",
            vec![with(&vcpus, "aggregate", json!(uuid(90)))],
        ),
        (
            "?by=trait",
            "trait",
            vec![with(&disk, "trait", json!("HW_CPU_X86_AVX"))],
        ),
        (
            "?by=tree",
            "tree",
            vec![
                with(&disk, "provider", provider(1)),
                with(&vcpus, "provider", provider(1)),
            ],
        ),
        (
            "?by=provider&class=VCPU",
            "provider",
            vec![of_node(2, 3), of_node(3, 0)],
        ),
    ] {
        let found = cloud.read(&format!("{CAPACITY}{query}")).await;
        assert_eq!(found, json!({"by": by, "capacity": rows}), "{query}");
    }
}

#[tokio::test]
async fn capacity_beyond_all_integers_is_a_number() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let path = format!("/resource_providers/{}/inventories", uuid(1));
    let stock =
        json!({"resource_class": "VCPU", "total": 2_147_483_647, "allocation_ratio": 3.4e38});
    cloud.post(&path, stock).expect(201).await;
    let found = cloud.read(CAPACITY).await["capacity"][0].clone();
    assert!(found["capacity"].as_f64().unwrap() > 1e46, "{found}");
    assert_eq!(found["free"], json!(u64::MAX));
}

#[tokio::test]
async fn capacity_of_too_many_rows_is_refused() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let below = |what: &str| format!("/resource_providers/{}/{what}", uuid(1));
    let names = |count: usize| (0..count).map(|number| format!("CUSTOM_{number}"));
    for name in names(1_000) {
        cloud
            .ask("PUT", &format!("/traits/{name}"))
            .expect(201)
            .await;
    }
    for name in names(101) {
        cloud
            .ask("PUT", &format!("/resource_classes/{name}"))
            .expect(201)
            .await;
    }
    let traits: Vec<String> = names(1_000).collect();
    let traits = json!({"traits": traits, "resource_provider_generation": 0});
    cloud.put(&below("traits"), traits).expect(200).await;
    let all: serde_json::Map<_, _> = names(101).map(|name| (name, json!({"total": 1}))).collect();
    let all = json!({"inventories": all, "resource_provider_generation": 1});
    cloud.put(&below("inventories"), all).expect(200).await;
    let refused = cloud.get(&format!("{CAPACITY}?by=trait"));
    refused.refused(400, "Request one class").await;
    let one = cloud
        .read(&format!("{CAPACITY}?by=trait&class=CUSTOM_0"))
        .await;
    assert_eq!(one["capacity"].as_array().unwrap().len(), 1_000);
}

#[tokio::test]
async fn tree_is_shown_with_all_that_its_providers_have() {
    let cloud = numa_cloud().await;
    let shown = cloud
        .read(&format!("/placementd/v1/trees/{}", uuid(3)))
        .await;
    let vcpus = |used: u64| {
        json!({"VCPU": {
            "total": 8, "reserved": 1, "min_unit": 1, "max_unit": 4, "step_size": 1, "allocation_ratio": 1.5,
            "capacity": 10, "used": used,
        }})
    };
    assert_eq!(shown["root"], json!(uuid(1)));
    let host = &shown["providers"][0];
    assert_eq!(host["inventories"]["DISK_GB"]["capacity"], 100);
    assert_eq!(host["traits"], json!(["HW_CPU_X86_AVX"]));
    assert_eq!(host["aggregates"], json!([uuid(90)]));
    let numa = json!({
        "uuid": uuid(2), "name": "provider 2", "parent": uuid(1), "generation": 2, "inventories": vcpus(3),
        "traits": [], "aggregates": [], "holders": 1,
    });
    assert_eq!(shown["providers"][1], numa);
    assert_eq!(shown["providers"][2]["inventories"], vcpus(0));
    assert_eq!(shown["providers"].as_array().unwrap().len(), 3);
    let upper = uuid(0xabc).to_uppercase();
    for unknown in [uuid(9), upper, "x".repeat(2_000), "%00".to_owned()] {
        let path = format!("/placementd/v1/trees/{unknown}");
        cloud.get(&path).refused(404, "No resource provider").await;
    }
    let path = format!("/placementd/v1/trees/{}?limit=1", uuid(1));
    cloud
        .get(&path)
        .refused(400, "'limit' was unexpected")
        .await;
}

/// Two hosts, and consumers with allocations on the first, the second and both.
async fn two_hosts() -> Cloud {
    let cloud = Cloud::new();
    for number in [1, 2] {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 100).await;
    }
    cloud.stock(2, "DISK_GB", 100).await;
    cloud.claim(50, 1, "VCPU", 1).await.expect(204);
    cloud.claim(51, 2, "DISK_GB", 2).await.expect(204);
    let both = json!({
        "allocations": {uuid(1): {"resources": {"VCPU": 1}}, uuid(2): {"resources": {"VCPU": 2, "DISK_GB": 3}}},
        "project_id": "q", "user_id": "v",
    });
    let path = format!("/allocations/{}", uuid(52));
    cloud.put(&path, both).version("1.12").expect(204).await;
    cloud
}

#[tokio::test]
async fn consumer_is_shown_with_all_that_it_holds() {
    let cloud = two_hosts().await;
    let found = cloud.read(&format!("{CONSUMERS}?project=q")).await;
    let shown = &found["consumers"][0];
    let updated_at = shown["updated_at"].as_str().unwrap();
    assert_eq!(updated_at.len(), "2026-11-26T20:00:00Z".len());
    let named = |number: u64| json!({"uuid": uuid(number), "name": format!("provider {number}")});
    let expected = json!({
        "uuid": uuid(52), "type": null, "project_id": "q", "user_id": "v", "generation": 1,
        "updated_at": updated_at, "trees": 2,
        "allocations": [
            {"provider": named(1), "root": named(1), "resources": {"VCPU": 1}},
            {"provider": named(2), "root": named(2), "resources": {"VCPU": 2, "DISK_GB": 3}},
        ],
    });
    assert_eq!(found, json!({"consumers": [expected], "next": null}));
}

async fn consumers(cloud: &Cloud, query: &str) -> (Vec<String>, Value) {
    let found = cloud.read(&format!("{CONSUMERS}?{query}")).await;
    let consumers = found["consumers"].as_array().unwrap().iter();
    let uuids = consumers.map(|one| one["uuid"].as_str().unwrap().to_owned());
    (uuids.collect(), found["next"].clone())
}

#[tokio::test]
async fn consumers_are_found_by_each_parameter() {
    let cloud = two_hosts().await;
    let uuids = |numbers: &[u64]| -> Vec<String> { numbers.iter().map(|n| uuid(*n)).collect() };
    let host = uuid(2);
    for (query, expected) in [
        ("", &[50, 51, 52][..]),
        (&format!("provider={host}"), &[51, 52]),
        (&format!("provider={host}&class=VCPU"), &[52]),
        ("class=DISK_GB", &[51, 52]),
        ("class=PCPU", &[]),
        ("project=p", &[50, 51]),
        ("user=v", &[52]),
        ("type=INSTANCE", &[50, 51]),
        ("type=MIGRATION", &[]),
        ("type=unknown", &[52]),
        ("several_trees=true", &[52]),
        ("several_trees=false", &[50, 51, 52]),
        ("older_than=0", &[50, 51, 52]),
        ("older_than=3600", &[]),
        (&format!("older_than={}", "9".repeat(300)), &[]),
    ] {
        let found = consumers(&cloud, query).await;
        assert_eq!(found, (uuids(expected), Value::Null), "{query}");
    }
    let first = consumers(&cloud, "limit=2").await;
    assert_eq!(first, (uuids(&[50, 51]), json!(uuid(51))));
    let second = consumers(&cloud, &format!("limit=2&marker={}", uuid(51))).await;
    assert_eq!(second, (uuids(&[52]), Value::Null));
}

/// A clock that is ahead by this duration.
struct Later(Duration);

impl Clock for Later {
    fn now(&self) -> SystemTime {
        SystemTime::now() + self.0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn age_is_counted_by_the_clock() {
    let hour = Duration::from_secs(3600);
    let cloud = Cloud::timed(Arc::new(Later(hour)), ApiSettings::default());
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 8).await;
    cloud.claim(50, 1, "VCPU", 1).await.expect(204);
    assert_eq!(consumers(&cloud, "older_than=3000").await.0, [uuid(50)]);
    assert!(consumers(&cloud, "older_than=4000").await.0.is_empty());
}

#[tokio::test]
async fn invalid_queries_are_refused_with_the_valid_form() {
    let cloud = two_hosts().await;
    for (query, detail) in [
        ("capacity?colour=red", "known are 'class', 'by'"),
        (
            "capacity?by=colour",
            "is not one of ['class', 'aggregate', 'trait', 'provider', 'tree']",
        ),
        ("capacity?by=", "is not one of"),
        (
            "capacity?by=trait&by=trait",
            "'by' may be specified only once",
        ),
        ("capacity?class=vcpu", "does not match"),
        ("capacity?class=CUSTOM_NO", "GET /resource_classes lists"),
        ("capacity?class=%ff", "UTF-8"),
        ("consumers?by=class", "known are 'provider'"),
        ("consumers?provider=1", "is not a 'uuid'"),
        ("consumers?class=CUSTOM_NO", "GET /resource_classes lists"),
        ("consumers?project=", "should be non-empty"),
        (
            "consumers?type=vm",
            "does not match '^[A-Z0-9_]+$|^unknown$'",
        ),
        ("consumers?older_than=-1", "does not match"),
        ("consumers?older_than=1.5", "does not match"),
        (
            "consumers?several_trees=yes",
            "is not one of ['true', 'false']",
        ),
        ("consumers?limit=0", "does not match"),
        ("consumers?limit=1001", "give an integer from 1 to 1000"),
        (
            "consumers?limit=99999999999999999999999",
            "give an integer from 1 to 1000",
        ),
        (
            "consumers?limit=1&limit=2",
            "'limit' may be specified only once",
        ),
        ("consumers?marker=x", "does not match"),
    ] {
        let path = format!("/placementd/v1/{query}");
        cloud.get(&path).refused(400, detail).await;
    }
    for unknown in [uuid(9), uuid(0xabc).to_uppercase()] {
        let path = format!("{CONSUMERS}?provider={unknown}");
        cloud
            .get(&path)
            .refused(400, "in lower case with hyphens")
            .await;
    }
    let long = format!("{CONSUMERS}?user={}", "u".repeat(256));
    cloud.get(&long).refused(400, "is too long").await;
    cloud.post(CAPACITY, json!({})).expect(405).await;
    cloud
        .get(CAPACITY)
        .header("accept", "text/html")
        .expect(406)
        .await;
}

#[tokio::test]
async fn content_queries_are_offloaded_at_every_microversion() {
    let counting = Arc::new(Counting::default());
    let cloud = Cloud::offloading_to(counting.clone(), ApiSettings::default());
    let tree = format!("/placementd/v1/trees/{}", cloud.provider(1, None).await);
    for (before, path) in [CAPACITY, CONSUMERS, &tree].into_iter().enumerate() {
        assert_eq!(counting.count(), before);
        cloud.get(path).version("1.0").expect(200).await;
    }
    assert_eq!(counting.count(), 3);
    cloud.get(CAPACITY).token(Some("user")).expect(403).await;
}
