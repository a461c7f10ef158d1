use std::sync::Arc;

use placement_node::http::ApiSettings;
use serde_json::{Value, json};

use crate::cloud::{Ask, Cloud, Counting, uuid};

async fn two_hosts() -> Cloud {
    let cloud = Cloud::new();
    for number in [1, 2] {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    cloud
}

fn path(consumer: u64) -> String {
    format!("/allocations/{}", uuid(consumer))
}

fn put(cloud: &Cloud, consumer: u64, generation: Value, allocations: Value) -> Ask {
    let body = json!({
        "allocations": allocations, "project_id": "p", "user_id": "u",
        "consumer_generation": generation, "consumer_type": "INSTANCE",
    });
    cloud.put(&path(consumer), body)
}

fn vcpus(provider: u64, amount: u64) -> Value {
    json!({uuid(provider): {"resources": {"VCPU": amount}}})
}

#[tokio::test]
async fn an_instance_takes_grows_and_gives_back() {
    let cloud = two_hosts().await;
    put(&cloud, 50, Value::Null, vcpus(1, 2))
        .send()
        .await
        .expect(204);
    let held = cloud.get(&path(50)).send().await.expect(200).json();
    assert_eq!(
        held,
        json!({
            "allocations": {uuid(1): {"resources": {"VCPU": 2}, "generation": 2}},
            "project_id": "p", "user_id": "u", "consumer_generation": 1, "consumer_type": "INSTANCE",
        })
    );
    put(&cloud, 50, json!(1), vcpus(1, 4))
        .send()
        .await
        .expect(204);
    put(&cloud, 50, json!(1), vcpus(1, 4))
        .send()
        .await
        .refused(409, "consumer generation conflict - expected 2 but got 1")
        .code("placement.concurrent_update");
    put(&cloud, 50, Value::Null, vcpus(1, 4))
        .send()
        .await
        .refused(409, "expected 2 but got None");
    put(&cloud, 51, json!(5), vcpus(1, 4))
        .send()
        .await
        .refused(409, "expected null but got 5");
    let of_provider = cloud
        .get(&format!("/resource_providers/{}/allocations", uuid(1)))
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        of_provider["allocations"][uuid(50)],
        json!({"resources": {"VCPU": 4}, "consumer_generation": 2})
    );
    cloud.delete(&path(50)).send().await.expect(204);
    cloud
        .delete(&path(50))
        .send()
        .await
        .refused(404, &format!("No allocations for consumer '{}'", uuid(50)));
    assert_eq!(
        cloud.get(&path(50)).send().await.expect(200).json(),
        json!({"allocations": {}})
    );
}

#[tokio::test]
async fn answers_grow_with_the_versions() {
    let cloud = two_hosts().await;
    put(&cloud, 50, Value::Null, vcpus(1, 2))
        .send()
        .await
        .expect(204);
    for (version, keys) in [
        ("1.11", "allocations"),
        ("1.12", "allocations,project_id,user_id"),
        ("1.28", "allocations,consumer_generation,project_id,user_id"),
        (
            "1.38",
            "allocations,consumer_generation,consumer_type,project_id,user_id",
        ),
    ] {
        let held = cloud
            .get(&path(50))
            .version(version)
            .send()
            .await
            .expect(200)
            .json();
        let found: Vec<String> = held.as_object().unwrap().keys().cloned().collect();
        assert_eq!(found.join(","), keys, "{version}");
    }
}

#[tokio::test]
async fn old_clients_send_lists_and_name_nobody() {
    let cloud = two_hosts().await;
    let item =
        |amount| json!({"resource_provider": {"uuid": uuid(1)}, "resources": {"VCPU": amount}});
    let list = json!({"allocations": [item(1), item(3)]});
    cloud
        .put(&path(50), list.clone())
        .version("1.0")
        .send()
        .await
        .expect(204);
    let held = cloud.get(&path(50)).send().await.json();
    assert_eq!(
        held["allocations"][uuid(1)]["resources"]["VCPU"],
        3,
        "the last entry of a provider wins"
    );
    assert_eq!(held["project_id"], "00000000-0000-0000-0000-000000000000");
    assert_eq!(held["consumer_type"], "unknown");
    cloud
        .put(&path(50), list.clone())
        .version("1.8")
        .send()
        .await
        .refused(400, "'project_id' is a required property");
    let mut charged = list;
    charged["project_id"] = json!("p");
    charged["user_id"] = json!("u");
    cloud
        .put(&path(50), charged)
        .version("1.12")
        .send()
        .await
        .refused(400, "is not of type 'object'");
    let empty = json!({"allocations": []});
    cloud
        .put(&path(50), empty)
        .version("1.0")
        .send()
        .await
        .refused(400, "should be non-empty");
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let cloud = two_hosts().await;
    put(&cloud, 50, Value::Null, vcpus(1, 9))
        .send()
        .await
        .refused(409, "The requested amount would exceed the capacity");
    put(&cloud, 50, Value::Null, vcpus(9, 1))
        .send()
        .await
        .refused(
            400,
            &format!(
                "Allocation for resource provider '{}' that does not exist",
                uuid(9)
            ),
        );
    let class = |name: &str| json!({uuid(1): {"resources": {name: 1}}});
    put(&cloud, 52, Value::Null, class("COWS"))
        .send()
        .await
        .refused(400, "No such resource class COWS");
    put(&cloud, 52, Value::Null, class("DISK_GB"))
        .send()
        .await
        .refused(409, "Unable to allocate inventory");
    put(&cloud, 52, Value::Null, class("cows"))
        .send()
        .await
        .refused(
            400,
            "'cows' does not match any of the regexes: '^[A-Z0-9_]+$'",
        );
    put(&cloud, 52, Value::Null, vcpus(1, 0))
        .send()
        .await
        .refused(
            400,
            "JSON does not validate: 0 is less than the minimum of 1",
        );
    put(&cloud, 52, Value::Null, vcpus(1, u64::MAX))
        .send()
        .await
        .expect(409);
    put(&cloud, 52, json!("x"), vcpus(1, 1))
        .send()
        .await
        .refused(400, "is not of type 'integer'");
    cloud
        .put("/allocations/cows", json!({}))
        .send()
        .await
        .refused(400, "Malformed consumer_uuid");
    let typed = json!({"allocations": vcpus(1, 1), "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "instance"});
    cloud
        .put(&path(52), typed)
        .send()
        .await
        .refused(400, "'instance' does not match '^[A-Z0-9_]+$'");
}

#[tokio::test]
async fn a_refused_write_with_an_unknown_provider_leaves_the_consumer_behind() {
    let cloud = two_hosts().await;
    put(&cloud, 50, Value::Null, vcpus(9, 1))
        .send()
        .await
        .expect(400);
    put(&cloud, 50, Value::Null, vcpus(1, 1))
        .send()
        .await
        .refused(409, "expected 0 but got None");
    assert_eq!(
        cloud.get(&path(50)).send().await.json(),
        json!({"allocations": {}})
    );
    put(&cloud, 50, json!(0), vcpus(1, 1))
        .send()
        .await
        .expect(204);
}

#[tokio::test]
async fn a_migration_moves_in_one_step() {
    let cloud = two_hosts().await;
    put(&cloud, 50, Value::Null, vcpus(1, 2))
        .send()
        .await
        .expect(204);
    let one = |generation: Value, allocations: Value| {
        json!({
            "allocations": allocations, "project_id": "p", "user_id": "u",
            "consumer_generation": generation, "consumer_type": "MIGRATION",
        })
    };
    let both = json!({uuid(50): one(json!(1), json!({})), uuid(51): one(Value::Null, vcpus(1, 2))});
    cloud.post("/allocations", both).send().await.expect(204);
    assert_eq!(
        cloud.get(&path(50)).send().await.json()["allocations"],
        json!({})
    );
    assert_eq!(
        cloud.get(&path(51)).send().await.json()["consumer_type"],
        "MIGRATION"
    );
    let half =
        json!({uuid(52): one(Value::Null, vcpus(2, 1)), uuid(53): one(Value::Null, vcpus(2, 8))});
    cloud.post("/allocations", half).send().await.expect(409);
    assert_eq!(
        cloud.get(&path(52)).send().await.json()["allocations"],
        json!({}),
        "all or nothing"
    );
    cloud
        .post("/allocations", json!({}))
        .send()
        .await
        .refused(400, "should be non-empty");
    cloud
        .post("/allocations", json!({"x": {}}))
        .send()
        .await
        .refused(400, "does not match any of the regexes");
    cloud
        .post("/allocations", json!({}))
        .version("1.12")
        .send()
        .await
        .expect(404);
}

#[tokio::test]
async fn the_consumer_in_the_path_is_normalised_for_put_alone() {
    let cloud = two_hosts().await;
    let plain = uuid(50).replace('-', "");
    let body = json!({"allocations": vcpus(1, 1), "project_id": "p", "user_id": "u"});
    cloud
        .put(&format!("/allocations/{plain}"), body)
        .version("1.27")
        .send()
        .await
        .expect(204);
    assert_ne!(
        cloud.get(&path(50)).send().await.json()["allocations"],
        json!({})
    );
    assert_eq!(
        cloud
            .get(&format!("/allocations/{plain}"))
            .send()
            .await
            .json()["allocations"],
        json!({})
    );
    cloud
        .delete(&format!("/allocations/{plain}"))
        .send()
        .await
        .expect(404);
}

#[tokio::test]
async fn mappings_are_checked_and_forgotten() {
    let cloud = two_hosts().await;
    let with = |mappings: Value| {
        json!({
            "allocations": vcpus(1, 1), "project_id": "p", "user_id": "u",
            "consumer_generation": null, "mappings": mappings,
        })
    };
    let put = |mappings, version| cloud.put(&path(50), with(mappings)).version(version);
    put(json!({"": [uuid(1)]}), "1.33")
        .send()
        .await
        .refused(400, "'mappings' was unexpected");
    put(json!({}), "1.34")
        .send()
        .await
        .refused(400, "should be non-empty");
    put(json!({"1": []}), "1.34")
        .send()
        .await
        .refused(400, "should be non-empty");
    put(json!({"1": ["x"]}), "1.34")
        .send()
        .await
        .refused(400, "is not a 'uuid'");
    put(json!({"": "anything", "1": [uuid(1)]}), "1.34")
        .send()
        .await
        .expect(204);
}

#[tokio::test]
async fn what_many_consumers_hold_is_listed_elsewhere() {
    let counting = Arc::new(Counting::default());
    let cloud = Cloud::offloading_to(counting.clone(), ApiSettings::default());
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 1_000).await;
    let path = format!("/resource_providers/{}/allocations", uuid(1));
    let list = async || {
        let answer = cloud.get(&path).send().await.expect(200);
        assert_eq!(answer.announced, Some(answer.body.len() as u64));
        answer.json()
    };
    let empty = list().await;
    assert_eq!(
        empty,
        json!({"allocations": {}, "resource_provider_generation": 1})
    );
    let mut expected = serde_json::Map::new();
    for consumer in 1..=501 {
        if consumer == 501 {
            assert_eq!(list().await["allocations"], json!(expected));
            assert_eq!(counting.count(), 0);
        }
        cloud.claim(consumer, 1, "VCPU", 1).await.expect(204);
        let holding = json!({"resources": {"VCPU": 1}, "consumer_generation": 1});
        expected.insert(uuid(consumer), holding);
    }
    let all = list().await;
    assert_eq!(counting.count(), 1);
    assert_eq!(all["allocations"], json!(expected));
    assert_eq!(
        all["resource_provider_generation"],
        cloud.generation(1).await
    );
}
