use std::sync::Arc;

use placement_api::http::ApiSettings;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Counting, uuid};

#[tokio::test]
async fn a_provider_is_created_renamed_and_deleted() {
    let cloud = Cloud::new();
    let created = cloud
        .post(
            "/resource_providers",
            json!({"name": "cn1", "uuid": uuid(1)}),
        )
        .expect(200)
        .await;
    let location = format!("http://cloud.example/resource_providers/{}", uuid(1));
    assert_eq!(created.header("location"), Some(location.as_str()));
    assert!(created.header("last-modified").unwrap().ends_with(" GMT"));
    assert_eq!(created.header("cache-control"), Some("no-cache"));
    let provider = created.json();
    assert_eq!(provider["generation"], 0);
    assert_eq!(provider["parent_provider_uuid"], Value::Null);
    assert_eq!(provider["root_provider_uuid"], uuid(1));
    let path = format!("/resource_providers/{}", uuid(1));
    let renamed = cloud
        .put(&path, json!({"name": "host"}))
        .expect(200)
        .await
        .json();
    assert_eq!(
        (&renamed["name"], &renamed["generation"]),
        (&json!("host"), &json!(0))
    );
    cloud.delete(&path).expect(204).await;
    cloud
        .get(&path)
        .refused(404, "No resource provider with uuid")
        .await;
    cloud.delete(&path).refused(404, "found for delete").await;
}

#[tokio::test]
async fn rename_shows_time_of_previous_change() {
    let cloud = Cloud::new();
    let rename = |number: u64, name: &str, version: &str| {
        let path = format!("/resource_providers/{}", uuid(number));
        cloud
            .put(&path, json!({"name": name}))
            .version(version)
            .send()
    };
    let created = cloud.post(
        "/resource_providers",
        json!({"name": "host", "uuid": uuid(1)}),
    );
    let created = created.expect(200).await;
    cloud.provider(2, Some(1)).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let root = rename(1, "root", "1.39").await.expect(200);
    assert_eq!(
        root.header("last-modified"),
        created.header("last-modified")
    );
    let child = rename(2, "numa 0", "1.39").await.expect(200);
    assert_eq!(child.header("last-modified"), None, "never modified");
    assert_eq!(child.header("cache-control"), Some("no-cache"));
    let read = cloud.get(&format!("/resource_providers/{}", uuid(2)));
    let read = read.expect(200).await;
    let again = rename(2, "numa 1", "1.39").await.expect(200);
    assert!(again.header("last-modified").is_some());
    assert_eq!(again.header("last-modified"), read.header("last-modified"));
    let old = rename(2, "numa 2", "1.14").await.expect(200);
    assert_eq!(
        (old.header("last-modified"), old.header("cache-control")),
        (None, None)
    );
    rename(3, "missing", "1.39").await.expect(404);
}

#[tokio::test]
async fn new_root_changes_modification_time() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.provider(2, None).await;
    cloud.provider(3, Some(2)).await;
    let path = |number| format!("/resource_providers/{}", uuid(number));
    let keep_name = async || {
        let body = json!({"name": "provider 3"});
        let ask = cloud.put(&path(3), body).version("1.37");
        ask.expect(200).await
    };
    assert_eq!(keep_name().await.header("last-modified"), None);
    let below = json!({"name": "provider 2", "parent_provider_uuid": uuid(1)});
    let moved = cloud.put(&path(2), below).version("1.37");
    moved.expect(200).await;
    let read = cloud.get(&path(3)).expect(200).await;
    let kept = keep_name().await;
    assert!(kept.header("last-modified").is_some());
    assert_eq!(kept.header("last-modified"), read.header("last-modified"));
}

#[tokio::test]
async fn every_spelling_of_a_uuid_creates_but_only_one_finds() {
    let cloud = Cloud::new();
    let plain = uuid(0xab).replace('-', "");
    let body = json!({"name": "a", "uuid": plain.to_uppercase()});
    let created = cloud
        .post("/resource_providers", body)
        .expect(200)
        .await
        .json();
    assert_eq!(created["uuid"], uuid(0xab));
    cloud
        .get(&format!("/resource_providers/{plain}"))
        .expect(404)
        .await;
    let list = |query: String| cloud.get(&format!("/resource_providers?{query}"));
    list(format!("uuid={plain}"))
        .refused(400, "is not a 'uuid'")
        .await;
    let upper = list(format!("uuid={}", uuid(0xab).to_uppercase()))
        .expect(200)
        .await
        .json();
    assert_eq!(upper["resource_providers"], json!([]));
}

#[tokio::test]
async fn long_list_is_offloaded() {
    let counting = Arc::new(Counting::default());
    let cloud = Cloud::offloading_to(counting.clone(), ApiSettings::default());
    for number in 1..=600 {
        cloud.provider(number, None).await;
    }
    let list = async |query: &str| {
        let path = format!("/resource_providers{query}");
        let answer = cloud.get(&path).expect(200).await;
        assert_eq!(answer.announced, Some(answer.body.len() as u64));
        let listed = answer.json()["resource_providers"].clone();
        let listed = listed.as_array().unwrap().iter();
        let uuids: Vec<String> = listed
            .map(|one| one["uuid"].as_str().unwrap().to_owned())
            .collect();
        uuids
    };
    assert_eq!(list("?name=provider%20600").await, [uuid(600)]);
    assert_eq!(list(&format!("?in_tree={}", uuid(7))).await, [uuid(7)]);
    assert_eq!(list("?resources=VCPU:1").await, Vec::<String>::new());
    assert_eq!(counting.count(), 0);
    let all: Vec<String> = (1..=600).map(uuid).collect();
    assert_eq!(list("").await, all);
    assert_eq!(counting.count(), 1);
}
