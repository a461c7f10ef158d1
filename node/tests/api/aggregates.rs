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
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        old,
        json!({"aggregates": [uuid(8), uuid(7)]}),
        "the order given is echoed"
    );
    assert_eq!(cloud.generation(1).await, 0);
    let body = json!({"aggregates": [uuid(8)], "resource_provider_generation": 0});
    let new = cloud
        .put(&path(1), body.clone())
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        new,
        json!({"aggregates": [uuid(8)], "resource_provider_generation": 1})
    );
    cloud
        .put(&path(1), body)
        .send()
        .await
        .refused(409, "generation already changed")
        .code("placement.concurrent_update");
    let read = cloud
        .get(&path(1))
        .version("1.19")
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(read["resource_provider_generation"], 1);
}

#[tokio::test]
async fn two_spellings_are_two_aggregates() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let upper = uuid(0xab).to_uppercase();
    let list = json!([uuid(0xab), upper]);
    cloud
        .put(&path(1), list)
        .version("1.1")
        .send()
        .await
        .expect(200);
    let read = cloud
        .get(&path(1))
        .version("1.1")
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(read["aggregates"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn bodies_say_where_they_are_wrong() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let put = |body| cloud.put(&path(1), body).version("1.1");
    put(json!([uuid(1), uuid(1)]))
        .send()
        .await
        .refused(400, "has non-unique elements");
    put(json!(["x"]))
        .send()
        .await
        .refused(400, "'x' is not a 'uuid'");
    put(json!({"aggregates": []}))
        .send()
        .await
        .refused(400, "is not of type 'array'");
    cloud
        .put(&path(9), json!({}))
        .send()
        .await
        .refused(404, "No resource provider");
    let missing = cloud
        .get(&path(9))
        .send()
        .await
        .refused(404, "No resource provider");
    assert_eq!(missing.header("vary"), None);
}

#[tokio::test]
async fn headers_are_looked_at_before_the_version() {
    let cloud = Cloud::new();
    cloud
        .get(&path(1))
        .version("1.0")
        .header("accept", "text/plain")
        .send()
        .await
        .expect(406);
    cloud.get(&path(1)).version("1.0").send().await.expect(404);
    cloud
        .ask("PUT", &path(1))
        .version("1.0")
        .send()
        .await
        .expect(415);
}
