//! This service's own routes, below `/placementd/v1`.

use placement_api::http::ApiSettings;
use placement_policy::PolicySettings;
use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

const LIST: &str = "/placementd/v1";
/// The rules of the own routes that write.
const WRITES: [&str; 3] = [
    "placementd:claims:create",
    "placementd:holds:update",
    "placementd:limits:update",
];

/// Method, path and rule of each guarded route.
async fn guarded(cloud: &Cloud) -> Vec<[String; 3]> {
    let listed = cloud.read(LIST).await;
    let routes = listed["routes"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    routes
        .map(|route| ["method", "path", "rule"].map(|member| text(&route[member])))
        .collect()
}

#[tokio::test]
async fn own_routes_are_listed_for_every_caller_with_a_token() {
    let cloud = Cloud::new();
    let listed = cloud.get(LIST).token(Some("user")).expect(200).await;
    assert_eq!(listed.json()["version"], 1);
    for [_, path, rule] in guarded(&cloud).await {
        assert!(path.starts_with("/placementd/v1/"), "{path}");
        assert!(rule.starts_with("placementd:"), "{rule}");
    }
    cloud.get(LIST).token(None).expect(401).await;
    cloud.ask("POST", LIST).expect(405).await;
    cloud.get("/placementd/v2").expect(404).await;
    cloud.get("/placementd").expect(404).await;
}

#[tokio::test]
async fn own_routes_answer_the_same_at_any_microversion() {
    let cloud = Cloud::new();
    let newest = cloud.get(LIST).expect(200).await;
    for version in ["", "1.0", "1.22", "1.99", "latest", "2.0", "nonsense"] {
        let answer = cloud.get(LIST).version(version).expect(200).await;
        assert_eq!(answer.text(), newest.text(), "{version}");
    }
    let absent = cloud.get(&format!("{LIST}/nothing")).version("1.99");
    absent.expect(406).await;
}

#[tokio::test]
async fn own_routes_are_closed_to_members_and_open_to_readers_of_placement() {
    for enforce_new_defaults in [true, false] {
        let cloud = Cloud::with(ApiSettings {
            policy: PolicySettings {
                enforce_new_defaults,
                ..PolicySettings::default()
            },
            ..ApiSettings::default()
        });
        for [method, path, rule] in guarded(&cloud).await {
            let path = path
                .replace("{uuid}", &uuid(1))
                .replace("{consumer_uuid}", &uuid(1))
                .replace("/events", "/events?follow=false");
            let ask = |roles| {
                let ask = cloud.ask(&method, &path).token(Some("user"));
                let ask = match method.as_str() {
                    "POST" | "PUT" => ask.body(json!({})),
                    _ => ask,
                };
                ask.header("x-roles", roles).send()
            };
            ask("member,reader").await.refused(403, &rule);
            let reader = (!WRITES.contains(&&*rule)).then_some("placement_reader");
            if reader.is_none() {
                ask("placement_reader").await.refused(403, &rule);
            }
            for role in ["admin", "service"].into_iter().chain(reader) {
                let open = ask(role).await.status;
                assert!(
                    open != 401 && open != 403,
                    "{role}, {method} {path}: {open}"
                );
            }
        }
    }
}
