use std::sync::Arc;

use placement_api::http::ApiSettings;
use serde_json::{Value, json};

use crate::cloud::{Ask, Cloud, Counting, uuid};

pub(crate) async fn two_hosts() -> Cloud {
    let cloud = Cloud::new();
    for number in [1, 2] {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    cloud
}

pub(crate) fn path(consumer: u64) -> String {
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
    put(&cloud, 50, Value::Null, vcpus(1, 2)).expect(204).await;
    let held = cloud.read(&path(50)).await;
    assert_eq!(
        held,
        json!({
            "allocations": {uuid(1): {"resources": {"VCPU": 2}, "generation": 2}},
            "project_id": "p", "user_id": "u", "consumer_generation": 1, "consumer_type": "INSTANCE",
        })
    );
    put(&cloud, 50, json!(1), vcpus(1, 4)).expect(204).await;
    put(&cloud, 50, json!(1), vcpus(1, 4))
        .refused(409, "consumer generation conflict - expected 2 but got 1")
        .await
        .code("placement.concurrent_update");
    put(&cloud, 50, Value::Null, vcpus(1, 4))
        .refused(409, "expected 2 but got None")
        .await;
    put(&cloud, 51, json!(5), vcpus(1, 4))
        .refused(409, "expected null but got 5")
        .await;
    let of_provider = cloud
        .read(&format!("/resource_providers/{}/allocations", uuid(1)))
        .await;
    assert_eq!(
        of_provider["allocations"][uuid(50)],
        json!({"resources": {"VCPU": 4}, "consumer_generation": 2})
    );
    cloud.delete(&path(50)).expect(204).await;
    cloud
        .delete(&path(50))
        .refused(404, &format!("No allocations for consumer '{}'", uuid(50)))
        .await;
    assert_eq!(cloud.read(&path(50)).await, json!({"allocations": {}}));
}

/// Below 1.12, where allocations are a list.
#[tokio::test]
async fn the_last_of_two_entries_of_a_provider_counts() {
    let cloud = two_hosts().await;
    let item =
        |amount| json!({"resource_provider": {"uuid": uuid(1)}, "resources": {"VCPU": amount}});
    let list = json!({"allocations": [item(1), item(3)]});
    cloud.put(&path(50), list).version("1.0").expect(204).await;
    let held = cloud.read(&path(50)).await;
    assert_eq!(held["allocations"][uuid(1)]["resources"]["VCPU"], 3);
}

#[tokio::test]
async fn the_consumer_in_the_path_is_normalised_for_put_alone() {
    let cloud = two_hosts().await;
    let plain = uuid(50).replace('-', "");
    let body = json!({"allocations": vcpus(1, 1), "project_id": "p", "user_id": "u"});
    cloud
        .put(&format!("/allocations/{plain}"), body)
        .version("1.27")
        .expect(204)
        .await;
    assert_ne!(cloud.read(&path(50)).await["allocations"], json!({}));
    let plain = format!("/allocations/{plain}");
    assert_eq!(cloud.read(&plain).await["allocations"], json!({}));
    cloud.delete(&plain).expect(404).await;
}

#[tokio::test]
async fn long_list_of_holdings_is_offloaded() {
    let counting = Arc::new(Counting::default());
    let cloud = Cloud::offloading_to(counting.clone(), ApiSettings::default());
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 1_000).await;
    let path = format!("/resource_providers/{}/allocations", uuid(1));
    let list = async || {
        let answer = cloud.get(&path).expect(200).await;
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
