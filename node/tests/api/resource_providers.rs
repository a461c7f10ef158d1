use std::sync::Arc;

use placement_node::http::ApiSettings;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Counting, uuid};

#[tokio::test]
async fn a_provider_is_created_named_anew_and_deleted() {
    let cloud = Cloud::new();
    let created = cloud
        .post(
            "/resource_providers",
            json!({"name": "cn1", "uuid": uuid(1)}),
        )
        .send()
        .await
        .expect(200);
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
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&renamed["name"], &renamed["generation"]),
        (&json!("host"), &json!(0))
    );
    cloud.delete(&path).send().await.expect(204);
    cloud
        .get(&path)
        .send()
        .await
        .refused(404, "No resource provider with uuid");
    cloud
        .delete(&path)
        .send()
        .await
        .refused(404, "found for delete");
}

#[tokio::test]
async fn a_rename_tells_when_the_provider_was_changed_before() {
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
    let created = created.send().await.expect(200);
    cloud.provider(2, Some(1)).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let root = rename(1, "root", "1.39").await.expect(200);
    assert_eq!(
        root.header("last-modified"),
        created.header("last-modified")
    );
    let child = rename(2, "numa 0", "1.39").await.expect(200);
    assert_eq!(child.header("last-modified"), None, "it never was");
    assert_eq!(child.header("cache-control"), Some("no-cache"));
    let read = cloud.get(&format!("/resource_providers/{}", uuid(2)));
    let read = read.send().await.expect(200);
    let again = rename(2, "numa 1", "1.39").await.expect(200);
    assert!(again.header("last-modified").is_some());
    assert_eq!(again.header("last-modified"), read.header("last-modified"));
    let old = rename(2, "numa 2", "1.14").await.expect(200);
    assert_eq!(
        (old.header("last-modified"), old.header("cache-control")),
        (None, None)
    );
    rename(3, "nobody", "1.39").await.expect(404);
}

#[tokio::test]
async fn a_provider_that_got_another_root_was_changed_then() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.provider(2, None).await;
    cloud.provider(3, Some(2)).await;
    let path = |number| format!("/resource_providers/{}", uuid(number));
    let keep_name = async || {
        let body = json!({"name": "provider 3"});
        let ask = cloud.put(&path(3), body).version("1.37");
        ask.send().await.expect(200)
    };
    assert_eq!(keep_name().await.header("last-modified"), None);
    let below = json!({"name": "provider 2", "parent_provider_uuid": uuid(1)});
    let moved = cloud.put(&path(2), below).version("1.37");
    moved.send().await.expect(200);
    let read = cloud.get(&path(3)).send().await.expect(200);
    let kept = keep_name().await;
    assert!(kept.header("last-modified").is_some());
    assert_eq!(kept.header("last-modified"), read.header("last-modified"));
}

#[tokio::test]
async fn before_1_20_creation_answers_without_a_body() {
    let cloud = Cloud::new();
    let body = json!({"name": "cn1"});
    let created = cloud
        .post("/resource_providers", body)
        .version("1.19")
        .send()
        .await
        .expect(201);
    assert!(created.body.is_empty());
    assert_eq!(created.header("content-type"), None);
    let location = created.header("location").unwrap().to_owned();
    let path = location.strip_prefix("http://cloud.example").unwrap();
    cloud.get(path).send().await.expect(200);
}

#[tokio::test]
async fn links_grow_with_the_versions() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let path = format!("/resource_providers/{}", uuid(1));
    for (version, rels) in [
        ("1.0", "self inventories usages"),
        ("1.1", "self inventories usages aggregates"),
        ("1.6", "self inventories usages aggregates traits"),
        (
            "1.11",
            "self inventories usages aggregates traits allocations",
        ),
    ] {
        let provider = cloud
            .get(&path)
            .version(version)
            .send()
            .await
            .expect(200)
            .json();
        let links = provider["links"].as_array().unwrap().clone();
        let found: Vec<&str> = links
            .iter()
            .map(|link| link["rel"].as_str().unwrap())
            .collect();
        assert_eq!(found.join(" "), rels, "{version}");
        assert_eq!(links[1]["href"], format!("{path}/inventories"));
        assert_eq!(provider.get("root_provider_uuid"), None);
    }
}

#[tokio::test]
async fn names_and_uuids_are_taken_once() {
    let cloud = Cloud::new();
    cloud
        .post("/resource_providers", json!({"name": "a", "uuid": uuid(1)}))
        .send()
        .await
        .expect(200);
    let again = |body| cloud.post("/resource_providers", body);
    again(json!({"name": "b", "uuid": uuid(1)}))
        .send()
        .await
        .refused(
            409,
            &format!(
                "Conflicting resource provider uuid: {} already exists",
                uuid(1)
            ),
        )
        .code("placement.duplicate_name");
    again(json!({"name": "a"}))
        .send()
        .await
        .refused(409, "Conflicting resource provider name: a already exists");
}

#[tokio::test]
async fn every_spelling_of_a_uuid_creates_but_only_one_finds() {
    let cloud = Cloud::new();
    let plain = uuid(0xab).replace('-', "");
    let body = json!({"name": "a", "uuid": plain.to_uppercase()});
    let created = cloud
        .post("/resource_providers", body)
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(created["uuid"], uuid(0xab));
    cloud
        .get(&format!("/resource_providers/{plain}"))
        .send()
        .await
        .expect(404);
    let list = |query: String| cloud.get(&format!("/resource_providers?{query}"));
    list(format!("uuid={plain}"))
        .send()
        .await
        .refused(400, "is not a 'uuid'");
    let upper = list(format!("uuid={}", uuid(0xab).to_uppercase()))
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(upper["resource_providers"], json!([]));
}

#[tokio::test]
async fn bodies_say_where_they_are_wrong() {
    let cloud = Cloud::new();
    let post = |body| cloud.post("/resource_providers", body);
    for (body, said) in [
        (json!({}), "'name' is a required property"),
        (json!({"name": 5}), "5 is not of type 'string'"),
        (
            json!({"name": "x".repeat(201)}),
            "Failed validating 'maxLength' in schema['properties']['name']",
        ),
        (json!({"name": "a", "uuid": "x"}), "'x' is not a 'uuid'"),
        (
            json!({"name": "a", "bad_field": 1}),
            "Additional properties are not allowed ('bad_field' was unexpected)",
        ),
        (json!([]), "[] is not of type 'object'"),
        (json!({"name": ""}), "name is required"),
    ] {
        post(body).send().await.refused(400, said);
    }
    post(json!({"name": "é".repeat(200)}))
        .send()
        .await
        .expect(200);
    let broken = cloud
        .ask("POST", "/resource_providers")
        .raw(b"{")
        .header("content-type", "application/json");
    broken.send().await.refused(400, "Malformed JSON");
    post(json!({"name": "a", "parent_provider_uuid": null}))
        .version("1.13")
        .send()
        .await
        .expect(400);
}

#[tokio::test]
async fn trees_are_built_moved_and_kept_free_of_circles() {
    let cloud = Cloud::new();
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None)] {
        cloud.provider(number, parent).await;
    }
    let path = |number| format!("/resource_providers/{}", uuid(number));
    let set = |number, parent: Value| {
        cloud.put(
            &path(number),
            json!({"name": format!("provider {number}"), "parent_provider_uuid": parent}),
        )
    };
    let root = |number| {
        let ask = cloud.get(&path(number));
        async move { ask.send().await.json()["root_provider_uuid"].clone() }
    };
    assert_eq!(root(3).await, uuid(1));
    set(1, json!(uuid(3)))
        .send()
        .await
        .refused(400, "creating loop in the provider tree is not allowed.");
    set(2, json!(uuid(4)))
        .version("1.36")
        .send()
        .await
        .refused(400, "re-parenting a provider is not currently allowed");
    set(2, Value::Null)
        .version("1.36")
        .send()
        .await
        .refused(400, "un-parenting a provider is not currently allowed");
    set(2, json!(uuid(4))).send().await.expect(200);
    assert_eq!(root(3).await, uuid(4));
    set(2, Value::Null).send().await.expect(200);
    assert_eq!(root(3).await, uuid(2));
    set(2, json!(uuid(99)))
        .send()
        .await
        .refused(400, "parent provider UUID does not exist");
    cloud
        .post(
            "/resource_providers",
            json!({"name": "x", "uuid": uuid(9), "parent_provider_uuid": uuid(9)}),
        )
        .send()
        .await
        .refused(400, "parent provider UUID cannot be same as UUID");
    cloud
        .delete(&path(2))
        .send()
        .await
        .refused(409, "Unable to delete parent")
        .code("placement.resource_provider.cannot_delete_parent");
}

#[tokio::test]
async fn lists_are_filtered_by_all_that_is_asked() {
    let cloud = Cloud::new();
    for (number, parent) in [(1, None), (2, Some(1)), (3, None)] {
        cloud.provider(number, parent).await;
        cloud.stock(number, "VCPU", number * 4).await;
    }
    let traits = json!({"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 1});
    cloud
        .put(&format!("/resource_providers/{}/traits", uuid(2)), traits)
        .send()
        .await
        .expect(200);
    let list = |query: &str, version: &str| {
        let ask = cloud
            .get(&format!("/resource_providers?{query}"))
            .version(version);
        async move {
            let answer = ask.send().await.expect(200).json();
            let found = answer["resource_providers"].as_array().unwrap().clone();
            found
                .iter()
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
                .join(",")
        }
    };
    assert_eq!(list("", "1.39").await, "provider 1,provider 2,provider 3");
    assert_eq!(list("name=provider+3", "1.0").await, "provider 3");
    assert_eq!(
        list("name=", "1.0").await,
        "provider 1,provider 2,provider 3"
    );
    assert_eq!(
        list(&format!("in_tree={}", uuid(2)), "1.14").await,
        "provider 1,provider 2"
    );
    assert_eq!(list(&format!("in_tree={}", uuid(77)), "1.14").await, "");
    assert_eq!(
        list("resources=VCPU:8", "1.4").await,
        "provider 2,provider 3"
    );
    assert_eq!(list("required=HW_CPU_X86_AVX2", "1.18").await, "provider 2");
    assert_eq!(
        list("required=!HW_CPU_X86_AVX2", "1.22").await,
        "provider 1,provider 3"
    );
    assert_eq!(
        list(
            "required=in:HW_CPU_X86_AVX2,HW_CPU_X86_SSE&resources=VCPU:1",
            "1.39"
        )
        .await,
        "provider 2"
    );
    for (query, version, said) in [
        (
            "required=HW_CPU_X86_AVX2",
            "1.17",
            "Invalid query string parameters: Additional properties",
        ),
        ("resources=VCPU:1", "1.3", "Additional properties"),
        ("cows=1", "1.39", "('cows' was unexpected)"),
        ("name=a;b", "1.39", "('b' was unexpected)"),
        ("resources=COWS:1", "1.39", "No such resource class COWS."),
        ("resources=cows:1", "1.39", "No such resource class cows."),
        (
            "required=nope",
            "1.39",
            "Invalid trait(s) in \"required\" parameter: No such trait(s): nope.",
        ),
        (
            "resources=COWS:1&required=NOPE",
            "1.39",
            "No such trait(s): NOPE.",
        ),
        ("name=%ff", "1.39", "not UTF-8"),
        ("in_tree=x", "1.39", "is not a 'uuid'"),
        ("resources=VCPU", "1.39", "Badly formed resources parameter"),
    ] {
        cloud
            .get(&format!("/resource_providers?{query}"))
            .version(version)
            .send()
            .await
            .refused(400, said);
    }
}

#[tokio::test]
async fn a_long_list_is_made_elsewhere() {
    let counting = Arc::new(Counting::default());
    let cloud = Cloud::offloading_to(counting.clone(), ApiSettings::default());
    for number in 1..=600 {
        cloud.provider(number, None).await;
    }
    let list = async |query: &str| {
        let path = format!("/resource_providers{query}");
        let answer = cloud.get(&path).send().await.expect(200);
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
