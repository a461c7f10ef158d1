use serde_json::json;

use crate::cloud::{Cloud, uuid};

fn trait_name(number: u64) -> String {
    format!("/resource_providers/{}/traits", uuid(number))
}

#[tokio::test]
async fn custom_trait_is_created_found_and_deleted() {
    let cloud = Cloud::new();
    let path = "/traits/CUSTOM_FAST";
    let made = cloud.ask("PUT", path).expect(201).await;
    assert_eq!(
        made.header("location"),
        Some("http://cloud.example/traits/CUSTOM_FAST")
    );
    assert!(made.header("last-modified").is_some());
    cloud.ask("PUT", path).expect(204).await;
    let found = cloud
        .get(path)
        .header("accept", "text/plain")
        .expect(204)
        .await;
    assert_eq!(found.header("content-type"), None);
    cloud.delete(path).expect(204).await;
    let gone = cloud
        .get(path)
        .refused(404, "No such trait(s): CUSTOM_FAST")
        .await;
    assert_eq!(gone.header("vary"), Some("openstack-api-version"));
    cloud
        .delete("/traits/HW_CPU_X86_AVX2")
        .refused(400, "Cannot delete standard trait")
        .await;
}

#[tokio::test]
async fn lists_are_filtered_by_name_and_use() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    for name in ["CUSTOM_A", "CUSTOM_AB", "CUSTOM_B"] {
        cloud
            .ask("PUT", &format!("/traits/{name}"))
            .expect(201)
            .await;
    }
    let body = json!({"traits": ["CUSTOM_B"], "resource_provider_generation": 0});
    cloud.put(&trait_name(1), body).expect(200).await;
    for (query, expected) in [
        ("name=startswith:CUSTOM_A", json!(["CUSTOM_A", "CUSTOM_AB"])),
        ("name=startswith:custom_a", json!(["CUSTOM_A", "CUSTOM_AB"])),
        ("name=startswith:CUSTOM%25B", json!([])),
        ("name=startswith:CUST_M", json!([])),
        ("name=startswith:CUSTOM_%C3%A9", json!([])),
        (
            "name=in:CUSTOM_B,CUSTOM_A,NOPE",
            json!(["CUSTOM_A", "CUSTOM_B"]),
        ),
        ("associated=TRUE", json!(["CUSTOM_B"])),
        (
            "name=startswith:CUSTOM&associated=false",
            json!(["CUSTOM_A", "CUSTOM_AB"]),
        ),
    ] {
        let list = cloud.read(&format!("/traits?{query}")).await;
        assert_eq!(list["traits"], expected, "{query}");
    }
    let all = cloud.read("/traits?name=foo:X").await;
    assert!(all["traits"].as_array().unwrap().len() > 300);
    cloud
        .get("/traits?name=X")
        .refused(400, "Badly formatted name parameter")
        .await;
    cloud
        .get("/traits?associated=maybe")
        .refused(400, "only accepts")
        .await;
    cloud
        .get("/traits?cows=1")
        .refused(400, "Invalid query string parameters")
        .await;
}
