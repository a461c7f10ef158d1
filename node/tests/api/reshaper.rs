use serde_json::{Value, json};

use crate::cloud::{Ask, Cloud, uuid};

fn reshape(cloud: &Cloud, body: Value) -> Ask {
    cloud.post("/reshaper", body).header("x-roles", "service")
}

fn set(generation: i64, inventories: Value) -> Value {
    json!({"resource_provider_generation": generation, "inventories": inventories})
}

/// A host whose GPUs move to a child provider together with an instance that uses one.
async fn host_with_a_gpu_in_use() -> Cloud {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.provider(2, Some(1)).await;
    cloud.stock(1, "VGPU", 4).await;
    cloud.claim(50, 1, "VGPU", 1).await.expect(204);
    cloud
}

fn moved(parent: i64, child: i64) -> Value {
    json!({
        "inventories": {
            uuid(1): set(parent, json!({})),
            uuid(2): set(child, json!({"VGPU": {"total": 4}})),
        },
        "allocations": {
            uuid(50): {
                "allocations": {uuid(2): {"resources": {"VGPU": 1}}},
                "project_id": "p", "user_id": "u", "consumer_generation": 1, "consumer_type": "INSTANCE",
            },
        },
    })
}

#[tokio::test]
async fn inventory_and_allocations_move_together() {
    let cloud = host_with_a_gpu_in_use().await;
    reshape(&cloud, moved(2, 0)).send().await.expect(204);
    let held = cloud
        .get(&format!("/allocations/{}", uuid(50)))
        .send()
        .await
        .json();
    assert_eq!(held["allocations"][uuid(2)]["resources"]["VGPU"], 1);
    let old = cloud
        .get(&format!("/resource_providers/{}/inventories", uuid(1)))
        .send()
        .await
        .json();
    assert_eq!(old["inventories"], json!({}));
}

#[tokio::test]
async fn conflicts_and_unknown_providers_are_told_apart() {
    let cloud = host_with_a_gpu_in_use().await;
    reshape(&cloud, moved(5, 0))
        .send()
        .await
        .refused(409, "actual: 2, given: 5")
        .code("placement.concurrent_update");
    let mut unknown = moved(2, 0);
    unknown["inventories"][uuid(9)] = set(0, json!({}));
    reshape(&cloud, unknown)
        .send()
        .await
        .expect(400)
        .code("placement.resource_provider.not_found");
    let mut nobody = moved(2, 0);
    nobody["allocations"] = json!({});
    reshape(&cloud, nobody)
        .send()
        .await
        .expect(409)
        .code("placement.inventory.inuse");
    let mut unnamed = moved(2, 0);
    unnamed["inventories"][uuid(2)] = set(0, json!({"CUSTOM_NOPE": {"total": 1}}));
    reshape(&cloud, unnamed)
        .send()
        .await
        .refused(400, "malformed reshaper data");
    reshape(&cloud, json!({"inventories": {}, "allocations": {}}))
        .send()
        .await
        .refused(400, "should be non-empty");
}

#[tokio::test]
async fn only_services_reshape() {
    let cloud = host_with_a_gpu_in_use().await;
    cloud
        .post("/reshaper", moved(2, 0))
        .send()
        .await
        .refused(403, "Policy does not allow placement:reshaper:reshape");
    cloud
        .post("/reshaper", moved(2, 0))
        .version("1.29")
        .send()
        .await
        .expect(404);
}
