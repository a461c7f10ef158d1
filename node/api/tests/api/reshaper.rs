use serde_json::{Value, json};

use crate::cloud::{Ask, Cloud, uuid};

fn reshape(cloud: &Cloud, body: Value) -> Ask {
    cloud.post("/reshaper", body).header("x-roles", "service")
}

fn set(generation: i64, inventories: Value) -> Value {
    json!({"resource_provider_generation": generation, "inventories": inventories})
}

/// A host whose GPUs move to a child provider, together with an instance that uses one.
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
    reshape(&cloud, moved(2, 0)).expect(204).await;
    let held = cloud.read(&format!("/allocations/{}", uuid(50))).await;
    assert_eq!(held["allocations"][uuid(2)]["resources"]["VGPU"], 1);
    let old = format!("/resource_providers/{}/inventories", uuid(1));
    let old = cloud.read(&old).await;
    assert_eq!(old["inventories"], json!({}));
}
