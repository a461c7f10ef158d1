//! Claims whose answer the client did not receive, so it sends them again with the same request id.

use serde_json::{Value, json};

use crate::allocations::{path, two_hosts};
use crate::cloud::{Ask, Cloud, uuid};

const SCHEDULER: &str = "req-6a1b2c3d-0000-4000-8000-000000000001";
const OTHER: &str = "req-6a1b2c3d-0000-4000-8000-000000000002";

fn claim(generation: Value, host: Option<u64>, amount: u64) -> Value {
    let allocations = host.map(|host| (uuid(host), json!({"resources": {"VCPU": amount}})));
    json!({
        "allocations": serde_json::Map::from_iter(allocations), "project_id": "p", "user_id": "u",
        "consumer_generation": generation, "consumer_type": "INSTANCE",
    })
}

fn put(cloud: &Cloud, request: &str, body: &Value) -> Ask {
    let ask = cloud.put(&path(50), body.clone());
    ask.header("x-openstack-request-id", request)
}

const CONFLICT: &str = "consumer generation conflict";

#[tokio::test]
async fn claim_sent_again_is_done_once() {
    let cloud = two_hosts().await;
    let new = claim(Value::Null, Some(1), 2);
    let first = put(&cloud, SCHEDULER, &new).expect(204).await;
    let second = put(&cloud, SCHEDULER, &new).expect(204).await;
    assert!(second.header("placement-index") > first.header("placement-index"));
    let held = cloud.read(&path(50)).await;
    assert_eq!(held["consumer_generation"], 1);
    let history = cloud.read("/placementd/v1/history").await;
    let entries = history["history"].as_array().unwrap().iter();
    let claims = entries.filter(|entry| entry["verb"] == "ReplaceAllocations");
    assert_eq!(claims.count(), 1);

    // The same holds for the next change of the consumer, and for its end.
    let more = claim(json!(1), Some(2), 3);
    put(&cloud, SCHEDULER, &more).expect(204).await;
    put(&cloud, SCHEDULER, &more).expect(204).await;
    let nothing = claim(json!(2), None, 0);
    put(&cloud, SCHEDULER, &nothing).expect(204).await;
    put(&cloud, SCHEDULER, &nothing).expect(204).await;
    assert_eq!(cloud.read(&path(50)).await, json!({"allocations": {}}));
}

#[tokio::test]
async fn equal_claim_of_another_request_is_a_conflict() {
    let cloud = two_hosts().await;
    let new = claim(Value::Null, Some(1), 2);
    put(&cloud, SCHEDULER, &new).expect(204).await;
    put(&cloud, OTHER, &new).refused(409, CONFLICT).await;
    // Without an id of the caller, and with an id that the change log does not keep.
    cloud
        .put(&path(50), new.clone())
        .refused(409, CONFLICT)
        .await;
    put(&cloud, "nova-7", &new).refused(409, CONFLICT).await;
    put(&cloud, "nova-7", &new).refused(409, CONFLICT).await;
}

#[tokio::test]
async fn claim_that_asks_for_something_else_is_a_conflict() {
    let cloud = two_hosts().await;
    let new = claim(Value::Null, Some(1), 2);
    put(&cloud, SCHEDULER, &new).expect(204).await;
    let changed = |member: &str, value: Value| {
        let mut other = new.clone();
        other[member] = value;
        other
    };
    for other in [
        claim(Value::Null, Some(1), 3),
        claim(Value::Null, Some(2), 2),
        claim(Value::Null, None, 0),
        claim(json!(7), Some(1), 2),
        changed("project_id", json!("another")),
        changed("user_id", json!("another")),
        changed("consumer_type", json!("MIGRATION")),
        changed(
            "allocations",
            json!({uuid(1): {"resources": {"CUSTOM_NEW": 2}}}),
        ),
        changed("allocations", json!({uuid(3): {"resources": {"VCPU": 2}}})),
    ] {
        put(&cloud, SCHEDULER, &other).refused(409, CONFLICT).await;
    }
    assert_eq!(cloud.read(&path(50)).await["consumer_generation"], 1);
}

#[tokio::test]
async fn claim_is_a_conflict_after_another_change_of_its_consumer() {
    let cloud = two_hosts().await;
    let new = claim(Value::Null, Some(1), 2);
    put(&cloud, SCHEDULER, &new).expect(204).await;
    put(&cloud, OTHER, &claim(json!(1), Some(1), 3))
        .expect(204)
        .await;
    put(&cloud, SCHEDULER, &new).refused(409, CONFLICT).await;

    // A deleted and recreated consumer has the same generation as before.
    cloud.delete(&path(50)).expect(204).await;
    put(&cloud, OTHER, &new).expect(204).await;
    put(&cloud, SCHEDULER, &new).refused(409, CONFLICT).await;
}

#[tokio::test]
async fn moves_of_several_consumers_are_done_once_or_not_at_all() {
    let cloud = two_hosts().await;
    put(&cloud, OTHER, &claim(Value::Null, Some(1), 2))
        .expect(204)
        .await;
    // A migration takes over the allocations of its instance.
    let moved = json!({
        uuid(50): claim(json!(1), Some(2), 2),
        uuid(60): claim(Value::Null, Some(1), 2),
    });
    let post = |body: &Value| {
        let ask = cloud.post("/allocations", body.clone());
        ask.header("x-openstack-request-id", SCHEDULER)
    };
    post(&moved).expect(204).await;
    post(&moved).expect(204).await;
    // One of the two is not as requested.
    let mut other = moved.clone();
    other[uuid(60)] = claim(Value::Null, Some(1), 3);
    post(&other).refused(409, CONFLICT).await;
    // One of the two has changed since.
    let path = path(60);
    cloud.delete(&path).expect(204).await;
    post(&moved).refused(409, CONFLICT).await;
}

/// Changes before the floor are no longer kept, so the first claim cannot be found.
#[tokio::test]
async fn claim_older_than_the_change_log_is_a_conflict() {
    let cloud = two_hosts().await;
    let new = claim(Value::Null, Some(1), 2);
    put(&cloud, SCHEDULER, &new).expect(204).await;
    cloud.provider(3, None).await;
    cloud.memory.keep_after(7);
    put(&cloud, SCHEDULER, &new).refused(409, CONFLICT).await;
}
