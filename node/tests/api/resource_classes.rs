use serde_json::json;

use crate::cloud::{Cloud, uuid};

#[tokio::test]
async fn a_custom_class_lives_from_post_to_delete() {
    let cloud = Cloud::new();
    let made = cloud
        .post("/resource_classes", json!({"name": "CUSTOM_GOLD"}))
        .send()
        .await
        .expect(201);
    assert_eq!(
        made.header("location"),
        Some("http://cloud.example/resource_classes/CUSTOM_GOLD")
    );
    cloud
        .post("/resource_classes", json!({"name": "CUSTOM_GOLD"}))
        .send()
        .await
        .refused(409, "Conflicting resource class already exists");
    let one = cloud
        .get("/resource_classes/CUSTOM_GOLD")
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        one,
        json!({"name": "CUSTOM_GOLD", "links": [{"rel": "self", "href": "/resource_classes/CUSTOM_GOLD"}]})
    );
    cloud
        .delete("/resource_classes/CUSTOM_GOLD")
        .send()
        .await
        .expect(204);
    cloud
        .get("/resource_classes/CUSTOM_GOLD")
        .send()
        .await
        .refused(404, "No such resource class CUSTOM_GOLD");
}

#[tokio::test]
async fn all_standard_classes_are_listed_first() {
    let cloud = Cloud::new();
    let list = cloud
        .get("/resource_classes")
        .send()
        .await
        .expect(200)
        .json();
    let classes = list["resource_classes"].as_array().unwrap().clone();
    assert_eq!(classes.len(), 21);
    assert_eq!(classes[0]["name"], "VCPU");
}

#[tokio::test]
async fn put_renames_until_1_6_and_ensures_from_1_7() {
    let cloud = Cloud::new();
    let gold = "/resource_classes/CUSTOM_GOLD";
    let first = cloud
        .ask("PUT", gold)
        .version("1.7")
        .send()
        .await
        .expect(201);
    assert_eq!(
        first.header("location"),
        Some("http://cloud.example/resource_classes/CUSTOM_GOLD")
    );
    let again = cloud
        .ask("PUT", gold)
        .version("1.7")
        .send()
        .await
        .expect(204);
    assert!(again.header("location").is_some());
    let renamed = cloud
        .put(gold, json!({"name": "CUSTOM_SILVER"}))
        .version("1.6")
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(renamed["name"], "CUSTOM_SILVER");
    cloud
        .put(gold, json!({"name": "CUSTOM_X"}))
        .version("1.6")
        .send()
        .await
        .expect(404);
    cloud
        .ask("PUT", gold)
        .version("1.6")
        .send()
        .await
        .expect(415);
    cloud
        .put("/resource_classes/VCPU", json!({"name": "CUSTOM_X"}))
        .version("1.2")
        .send()
        .await
        .refused(400, "Cannot update standard resource class VCPU");
}

#[tokio::test]
async fn names_that_cannot_be_are_refused() {
    let cloud = Cloud::new();
    for name in ["VCPU", "CUSTOM_", "CUSTOM_x", "custom_X", "CUSTOM_A\n"] {
        cloud
            .post("/resource_classes", json!({"name": name}))
            .send()
            .await
            .refused(400, "JSON does not validate");
    }
    let long = format!("CUSTOM_{}", "A".repeat(249));
    cloud
        .post("/resource_classes", json!({"name": long}))
        .send()
        .await
        .refused(400, "Failed validating 'maxLength'");
    cloud
        .ask("PUT", "/resource_classes/CUSTOM_%22X")
        .send()
        .await
        .refused(400, "Malformed JSON");
    cloud
        .ask("PUT", "/resource_classes/VCPU")
        .send()
        .await
        .refused(400, "JSON does not validate");
    cloud
        .ask("PUT", "/resource_classes/CUSTOM_%5Cu0041")
        .send()
        .await
        .expect(400);
}

#[tokio::test]
async fn a_class_in_use_stays_and_a_standard_one_always() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud
        .ask("PUT", "/resource_classes/CUSTOM_GOLD")
        .send()
        .await
        .expect(201);
    cloud.stock(1, "CUSTOM_GOLD", 1).await;
    cloud
        .delete("/resource_classes/CUSTOM_GOLD")
        .send()
        .await
        .refused(409, "Class is in use in inventory");
    cloud
        .delete(&format!("/resource_providers/{}/inventories", uuid(1)))
        .send()
        .await
        .expect(204);
    cloud
        .delete("/resource_classes/CUSTOM_GOLD")
        .send()
        .await
        .expect(204);
    cloud
        .delete("/resource_classes/VCPU")
        .send()
        .await
        .refused(400, "Cannot delete standard resource class");
    cloud
        .delete("/resource_classes/vcpu")
        .send()
        .await
        .refused(404, "No such resource class vcpu");
}

#[tokio::test]
async fn classes_came_with_1_2() {
    let cloud = Cloud::new();
    cloud
        .get("/resource_classes")
        .version("1.1")
        .send()
        .await
        .refused(404, "The resource could not be found");
    cloud
        .get("/resource_classes")
        .version("1.2")
        .send()
        .await
        .expect(200);
}
