//! Holds: claims with `hold`, and `PUT /placementd/v1/holds/{consumer_uuid}`.

use serde_json::{Value, json};

use crate::claims::{CLAIMS, claim, hosts, on, one, used, wanting};
use crate::cloud::{Ask, Cloud, uuid};

/// A claim of all processors of host 1, which are a hold.
fn holding(consumer: u64, hold: Value) -> Value {
    let mut claim = one(consumer, [on(1, 8)]);
    claim["hold"] = hold;
    claim
}

fn renew(cloud: &Cloud, consumer: u64, body: Value) -> Ask {
    cloud.put(&format!("/placementd/v1/holds/{}", uuid(consumer)), body)
}

/// The consumers with holds, and their holds.
async fn holds(cloud: &Cloud) -> Vec<(String, Value)> {
    let page = cloud.read("/placementd/v1/consumers?held=true").await;
    let consumers = page["consumers"].as_array().unwrap().iter();
    let pair = |one: &Value| {
        (
            one["uuid"].as_str().unwrap().to_owned(),
            one["hold"].clone(),
        )
    };
    consumers.map(pair).collect()
}

#[tokio::test]
async fn room_is_held_until_the_server_takes_it() {
    let cloud = hosts([1, 2]).await;
    claim(
        &cloud,
        &holding(90, json!({"for": [uuid(50)], "lease_s": 600})),
    )
    .expect(200)
    .await;
    let [(holder, hold)] = &holds(&cloud).await[..] else {
        panic!("one hold");
    };
    assert_eq!(*holder, uuid(90));
    assert_eq!(hold["for"], json!([uuid(50)]));
    assert!(hold["lease_until"].is_string() && hold.get("due").is_none());
    cloud.claim(51, 1, "VCPU", 1).await.expect(409);
    // A query for another server finds no room, one for this server does.
    let query = format!("resources=VCPU:8&in_tree={}", uuid(1));
    let other = claim(&cloud, &wanting([52], &query));
    let answer = other.expect(409).await;
    answer.code("placement.claim.no_candidates");
    let own = wanting([50], &query);
    claim(&cloud, &own).expect(200).await;
    assert_eq!(
        (used(&cloud, 1).await, holds(&cloud).await),
        (8, Vec::new())
    );
}

/// A hold that ends with a claim is no member of the claim's groups any more.
#[tokio::test]
async fn hold_in_a_group_does_not_keep_its_server_away() {
    let cloud = hosts([1]).await;
    claim(&cloud, &holding(90, json!({"for": [uuid(50)]})))
        .expect(200)
        .await;
    let mut own = wanting([50], "resources=VCPU:8");
    own["apart"] = json!([{"members": [uuid(50), uuid(90)]}]);
    claim(&cloud, &own).expect(200).await;
    assert_eq!(
        (used(&cloud, 1).await, holds(&cloud).await),
        (8, Vec::new())
    );
}

#[tokio::test]
async fn end_of_a_hold_is_changed() {
    let cloud = hosts([1]).await;
    renew(&cloud, 90, json!({"lease_s": 60}))
        .expect(404)
        .await
        .code("placement.hold.not_found");
    claim(&cloud, &holding(90, json!({}))).expect(200).await;
    assert_eq!(holds(&cloud).await[0].1, json!({"for": []}));
    renew(&cloud, 90, json!({"lease_s": 60})).expect(204).await;
    assert!(holds(&cloud).await[0].1["lease_until"].is_string());
    let due = json!({"due": "2999-12-24T06:00:00Z"});
    renew(&cloud, 90, due.clone()).expect(204).await;
    assert_eq!(holds(&cloud).await[0].1["due"], due["due"]);
    for body in [json!({"lease_s": 60}), json!({})] {
        let answer = renew(&cloud, 90, body).expect(409).await;
        answer.code("placement.hold.is_due");
    }
    let path = format!("/allocations/{}", uuid(90));
    cloud.delete(&path).expect(204).await;
    assert_eq!(holds(&cloud).await, []);
}

#[tokio::test]
async fn malformed_holds_are_refused() {
    let cloud = hosts([1]).await;
    let long: Vec<_> = (100..201).map(uuid).collect();
    for (hold, what) in [
        (json!({"lease_s": 0}), "lease_s"),
        (json!({"lease_s": 2_678_401}), "lease_s"),
        (json!({"lease_s": 1.5}), "lease_s"),
        (
            json!({"lease_s": 60, "due": "2999-12-24T06:00:00Z"}),
            "either 'lease_s' or 'due'",
        ),
        (json!({"due": "tomorrow, at six o'clock"}), "give a time"),
        (json!({"due": "9999999-12-24T06:00:00Z"}), "give a time"),
        (json!({"for": [uuid(90)]}), "its own consumer"),
        (json!({"for": ["vm"]}), "for"),
        (json!({"for": long}), "for"),
        (json!({"until": 7}), "until"),
        (json!([]), "hold"),
    ] {
        claim(&cloud, &holding(90, hold)).refused(400, what).await;
    }
    assert_eq!(
        (used(&cloud, 1).await, holds(&cloud).await),
        (0, Vec::new())
    );
    claim(&cloud, &holding(90, json!({}))).expect(200).await;
    for body in [
        json!({"lease_s": -1}),
        json!({"for": [uuid(50)]}),
        json!([]),
    ] {
        renew(&cloud, 90, body).expect(400).await;
    }
    for roles in ["placement_reader", "reader,member"] {
        renew(&cloud, 90, json!({}))
            .header("x-roles", roles)
            .refused(403, "placementd:holds:update")
            .await;
    }
}

#[tokio::test]
async fn holds_are_shown_where_consumers_are() {
    let cloud = hosts([1]).await;
    let hold = json!({"for": [uuid(50)], "due": "2999-12-24T06:00:00Z"});
    claim(&cloud, &holding(90, hold.clone())).expect(200).await;
    let found = cloud.read("/placementd/v1/explain?resources=VCPU:8").await;
    assert_eq!(found["nearest"][0]["holders"][0]["hold"], hold, "{found}");
    let history = cloud
        .read(&format!("/placementd/v1/history?consumer={}", uuid(90)))
        .await;
    let changes = history["history"][0]["changes"].as_array().unwrap();
    let consumer = changes
        .iter()
        .find(|one| one["kind"] == "consumer")
        .unwrap();
    assert_eq!(consumer["after"]["hold"], hold, "{history}");
    // An unmodified client sees a consumer like any other.
    let shown = cloud.read(&format!("/allocations/{}", uuid(90))).await;
    assert_eq!(shown.get("hold"), None);
}

#[tokio::test]
async fn what_if_changes_a_hold_in_a_copy() {
    let cloud = hosts([1]).await;
    let changes = json!([
        {"method": "POST", "path": CLAIMS, "body": holding(90, json!({"for": [uuid(50)]}))},
        {"method": "PUT", "path": format!("/placementd/v1/holds/{}", uuid(90)), "body": {"lease_s": 60}},
        {"method": "POST", "path": CLAIMS, "body": one(51, [on(1, 8)])},
        {"method": "POST", "path": CLAIMS, "body": one(50, [on(1, 8)])},
    ]);
    let answer = cloud
        .post("/placementd/v1/what-if", json!({"changes": changes}))
        .expect(200)
        .await
        .json();
    let statuses = answer["changes"].as_array().unwrap().iter();
    let statuses: Vec<_> = statuses
        .map(|one| one["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [200, 204, 409, 200], "{answer}");
    assert_eq!(used(&cloud, 1).await, 0);
}
