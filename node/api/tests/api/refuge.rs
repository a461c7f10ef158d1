//! Whether hosts can be emptied, and where their consumers could go.

use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

/// Three hosts with 8 CPUs each; the first one has consumers with 3 and 4 CPUs.
async fn hosts() -> Cloud {
    let cloud = Cloud::new();
    for number in 1..=3 {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    for (consumer, units) in [(901, 3), (902, 4)] {
        cloud.claim(consumer, 1, "VCPU", units).await.expect(204);
    }
    cloud
}

async fn refuge(cloud: &Cloud, query: &str) -> Value {
    cloud.read(&format!("/placementd/v1/refuge?{query}")).await
}

#[tokio::test]
async fn consumers_of_a_host_have_room_elsewhere() {
    let cloud = hosts().await;
    let host = format!("provider={}", uuid(1));
    let found = refuge(&cloud, &format!("{host}&moves=true")).await;
    assert_eq!(
        (&found["consumers"], &found["moved"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        (&found["complete"], &found["exact"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(found["left"], json!([]));
    // The larger one first; the other one fills the same host.
    let moves = found["moves"].as_array().unwrap();
    assert_eq!(moves[0]["consumer"], uuid(902));
    assert_eq!(moves[0]["to"][0]["resources"], json!({"VCPU": 4}));
    assert_eq!(moves[0]["to"][0]["root"], moves[1]["to"][0]["root"]);
    let spread = refuge(&cloud, &format!("{host}&moves=true&order=spread")).await;
    let moves = spread["moves"].as_array().unwrap();
    assert_ne!(moves[0]["to"][0]["root"], moves[1]["to"][0]["root"]);
    let shorter = refuge(&cloud, &host).await;
    assert_eq!(shorter.get("moves"), None);
    // Nothing has changed.
    let held = cloud.read(&format!("/allocations/{}", uuid(901))).await;
    assert!(held["allocations"].get(uuid(1)).is_some(), "{held}");
}

#[tokio::test]
async fn consumers_without_room_have_a_reason() {
    let cloud = hosts().await;
    cloud.claim(903, 2, "VCPU", 5).await.expect(204);
    let both = format!("provider={}&provider={}", uuid(1), uuid(2));
    let found = refuge(&cloud, &both).await;
    assert_eq!(
        (&found["consumers"], &found["moved"]),
        (&json!(3), &json!(2))
    );
    let left = found["left"].as_array().unwrap();
    assert_eq!(left[0]["consumer"], uuid(902));
    assert_eq!(left[0]["resources"], json!({"VCPU": 4}));
    let why = &found["explanations"][0];
    assert_eq!(
        (&left[0]["why"], &why["reason"]),
        (&json!(0), &json!("room"))
    );
    // Only the third host is asked, which is full then.
    assert_eq!(why["trees"], 1);
    assert_eq!(found["exact"], false);
}

#[tokio::test]
async fn each_host_is_answered_by_itself() {
    let cloud = hosts().await;
    let found = refuge(&cloud, "each=root").await;
    assert_eq!((&found["trees"], &found["empties"]), (&json!(3), &json!(3)));
    for (consumer, host) in [(903, 2), (904, 3)] {
        cloud.claim(consumer, host, "VCPU", 6).await.expect(204);
    }
    let found = refuge(&cloud, "each=root").await;
    assert_eq!((&found["trees"], &found["empties"]), (&json!(3), &json!(0)));
    assert_eq!(found["complete"], true);
    let first = &found["stuck"][0];
    assert_eq!(first["provider"]["name"], "provider 1");
    assert_eq!(
        (&first["consumers"], &first["left"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(first["largest"], json!({"VCPU": 4}));
}

#[tokio::test]
async fn disabled_hosts_and_migrations_are_left_out() {
    let cloud = hosts().await;
    for number in 2..=3 {
        let path = format!("/resource_providers/{}/traits", uuid(number));
        let traits =
            json!({"resource_provider_generation": 1, "traits": ["COMPUTE_STATUS_DISABLED"]});
        cloud.put(&path, traits).expect(200).await;
    }
    let migration = json!({
        "allocations": {uuid(1): {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u",
        "consumer_generation": null, "consumer_type": "MIGRATION",
    });
    let path = format!("/allocations/{}", uuid(904));
    cloud.put(&path, migration).expect(204).await;
    let found = refuge(&cloud, &format!("provider={}", uuid(1))).await;
    assert_eq!(
        (&found["consumers"], &found["migrations"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&found["moved"], &found["exact"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(found["explanations"][0]["reason"], "root_required");
    assert_eq!(found["explanations"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn wrong_queries_are_named() {
    let cloud = hosts().await;
    let host = uuid(1);
    for (query, words) in [
        ("order=pack".to_owned(), "give either provider"),
        (format!("provider={host}&each=root"), "give either provider"),
        ("provider=x".to_owned(), "x"),
        (format!("provider={}", uuid(77)), "that exists"),
        (format!("provider={host}&order=best"), "order"),
        (
            format!("provider={host}&member_of=!{host}"),
            "without an exclamation mark",
        ),
        (
            format!("provider={host}&required=CUSTOM_UNKNOWN"),
            "No such trait(s): CUSTOM_UNKNOWN",
        ),
    ] {
        let path = format!("/placementd/v1/refuge?{query}");
        let answer = cloud.ask("GET", &path).expect(400).await;
        assert!(answer.text().contains(words), "{query}: {}", answer.text());
    }
}
