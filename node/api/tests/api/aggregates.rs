use serde_json::json;

use crate::cloud::{Cloud, uuid};

fn path(number: u64) -> String {
    format!("/resource_providers/{}/aggregates", uuid(number))
}

#[tokio::test]
async fn generations_count_from_1_19() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let old = cloud
        .put(&path(1), json!([uuid(8), uuid(7)]))
        .version("1.18")
        .expect(200)
        .await
        .json();
    assert_eq!(
        old,
        json!({"aggregates": [uuid(8), uuid(7)]}),
        "the order given is echoed"
    );
    assert_eq!(cloud.generation(1).await, 0);
    let body = json!({"aggregates": [uuid(8)], "resource_provider_generation": 0});
    let new = cloud.put(&path(1), body.clone()).expect(200).await.json();
    assert_eq!(
        new,
        json!({"aggregates": [uuid(8)], "resource_provider_generation": 1})
    );
    cloud
        .put(&path(1), body)
        .refused(409, "generation already changed")
        .await
        .code("placement.concurrent_update");
    let read = cloud.get(&path(1)).version("1.19").expect(200).await.json();
    assert_eq!(read["resource_provider_generation"], 1);
}

#[tokio::test]
async fn two_spellings_are_two_aggregates() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let upper = uuid(0xab).to_uppercase();
    let list = json!([uuid(0xab), upper]);
    cloud.put(&path(1), list).version("1.1").expect(200).await;
    let read = cloud.get(&path(1)).version("1.1").expect(200).await.json();
    assert_eq!(read["aggregates"].as_array().unwrap().len(), 2);
}
