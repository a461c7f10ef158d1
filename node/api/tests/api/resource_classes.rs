use serde_json::json;

use crate::cloud::Cloud;

#[tokio::test]
async fn custom_class_is_created_and_deleted() {
    let cloud = Cloud::new();
    let made = cloud
        .post("/resource_classes", json!({"name": "CUSTOM_GOLD"}))
        .expect(201)
        .await;
    assert_eq!(
        made.header("location"),
        Some("http://cloud.example/resource_classes/CUSTOM_GOLD")
    );
    cloud
        .post("/resource_classes", json!({"name": "CUSTOM_GOLD"}))
        .refused(409, "Conflicting resource class already exists")
        .await;
    let one = cloud.read("/resource_classes/CUSTOM_GOLD").await;
    assert_eq!(
        one,
        json!({"name": "CUSTOM_GOLD", "links": [{"rel": "self", "href": "/resource_classes/CUSTOM_GOLD"}]})
    );
    let path = "/resource_classes/CUSTOM_GOLD";
    cloud.delete(path).expect(204).await;
    cloud
        .get(path)
        .refused(404, "No such resource class CUSTOM_GOLD")
        .await;
}

#[tokio::test]
async fn invalid_names_are_refused() {
    let cloud = Cloud::new();
    for name in ["VCPU", "CUSTOM_", "CUSTOM_x", "custom_X", "CUSTOM_A\n"] {
        cloud
            .post("/resource_classes", json!({"name": name}))
            .refused(400, "JSON does not validate")
            .await;
    }
    let long = format!("CUSTOM_{}", "A".repeat(249));
    cloud
        .post("/resource_classes", json!({"name": long}))
        .refused(400, "Failed validating 'maxLength'")
        .await;
    for (name, reason) in [
        ("CUSTOM_%22X", "Malformed JSON"),
        ("VCPU", "JSON does not validate"),
        ("CUSTOM_%5Cu0041", ""),
    ] {
        let ask = cloud.ask("PUT", &format!("/resource_classes/{name}"));
        ask.refused(400, reason).await;
    }
}
