//! Stages before a handler: order of the checks, formats, headers.

use placement_base::backend::Unavailable;
use serde_json::json;

use crate::cloud::{Cloud, uuid};

#[tokio::test]
async fn the_root_tells_the_versions() {
    let cloud = Cloud::new();
    for path in ["/", "http://cloud.example"] {
        let root = cloud.get(path).version("").token(None).expect(200).await;
        let version = &root.json()["versions"][0];
        assert_eq!(
            (&version["min_version"], &version["max_version"]),
            (&json!("1.0"), &json!("1.39"))
        );
        assert_eq!(
            (&version["id"], &version["status"]),
            (&json!("v1.0"), &json!("CURRENT"))
        );
        assert_eq!(version["links"], json!([{"rel": "self", "href": ""}]));
        assert_eq!(root.header("last-modified"), None);
        assert_eq!(root.header("openstack-api-version"), Some("placement 1.0"));
        assert_eq!(root.header("vary"), Some("openstack-api-version"));
    }
    cloud
        .get("/")
        .header("accept", "text/plain")
        .expect(200)
        .await;
}

#[tokio::test]
async fn root_of_unready_node_is_503() {
    let down = Unavailable::nothing_committed("no leader is known");
    let cloud = Cloud::new();
    cloud.memory.set_down(Some(down.clone()));
    let root = cloud.get("/").token(None).send().await;
    let root = root.refused(503, "This node is not ready: no leader is known");
    root.code("placement.unavailable.not_ready");
    cloud.memory.set_down(None);
    cloud.get("/").token(None).expect(200).await;
}

#[tokio::test]
async fn order_of_checks_is_fixed() {
    let cloud = Cloud::new();
    let unknown = cloud
        .get("/nowhere")
        .version("9.9")
        .expect(406)
        .await
        .json();
    assert_eq!(unknown["errors"][0]["min_version"], "1.0");
    assert_eq!(unknown["errors"][0]["max_version"], "1.39");
    assert_eq!(unknown["errors"][0].get("code"), None);
    cloud
        .get("/")
        .version("9.9")
        .token(None)
        .refused(406, "Unacceptable version header: 9.9")
        .await;
    cloud
        .get("/nowhere")
        .version("pony.horse")
        .refused(400, "invalid version string: pony.horse")
        .await;
    cloud
        .get("/nowhere")
        .version("9.9")
        .token(None)
        .expect(401)
        .await;
    cloud
        .ask("GET", "/nowhere")
        .raw(b"x")
        .refused(400, "content-type header required")
        .await;
    cloud
        .ask("POST", "/resource_providers")
        .raw(b"x")
        .header("content-type", "text/plain")
        .expect(415)
        .await;
    cloud
        .ask("PUT", &format!("/resource_providers/{}", uuid(1)))
        .refused(
            415,
            "The media type None is not supported, use application/json",
        )
        .await;
    let user = cloud.ask("POST", "/resource_providers").token(Some("user"));
    user.expect(415).await;
    cloud
        .ask("POST", "/resource_providers")
        .header("content-length", "hi mom")
        .refused(400, "content-length header must be an integer")
        .await;
}

#[tokio::test]
async fn media_types_are_exact() {
    let cloud = Cloud::new();
    let post = |media: &str| {
        cloud
            .ask("POST", "/resource_providers")
            .raw(b"{\"name\": \"a\"}")
            .header("content-type", media)
    };
    for media in [
        "Application/json",
        "application/json ;charset=utf-8",
        "text/json",
    ] {
        post(media).expect(415).await;
    }
    post("application/json;charset=utf-8").expect(200).await;
    cloud
        .get("/resource_providers")
        .header("accept", "text/plain")
        .expect(406)
        .await;
    cloud
        .get("/resource_providers")
        .header("accept", "foo")
        .expect(200)
        .await;
}

#[tokio::test]
async fn unknown_method_is_answered_with_the_allowed_ones() {
    let cloud = Cloud::new();
    let answer = cloud
        .delete("/resource_providers")
        .refused(405, "The method DELETE is not allowed for this resource.")
        .await;
    assert_eq!(answer.header("allow"), Some("GET, POST"));
    assert_eq!(answer.json()["errors"][0]["title"], "Method Not Allowed");
    cloud.ask("get", "/").expect(405).await;
    let head = cloud.ask("HEAD", "/").expect(405).await;
    assert_eq!(head.header("content-length"), Some("0"));
    assert!(head.body.is_empty());
    assert_eq!(
        head.header("content-type"),
        Some("text/html; charset=UTF-8")
    );
}

#[tokio::test]
async fn paths_are_decoded_before_they_are_found() {
    let cloud = Cloud::new();
    cloud.get("/resource%5Fproviders").expect(200).await;
    cloud.get("/resource_providers%2F").expect(404).await;
    cloud.get("/resource_providers/").expect(404).await;
    cloud.get("//resource_providers").expect(404).await;
    cloud.get("/resource_providers%0A").expect(200).await;
    cloud.get("/traits/%ff").expect(404).await;
}

#[tokio::test]
async fn deeply_nested_body_is_refused() {
    let cloud = Cloud::new();
    let bomb = "[".repeat(1_000_000);
    let post = cloud
        .ask("POST", "/resource_providers")
        .raw(bomb.as_bytes())
        .header("content-type", "application/json");
    post.refused(400, "Malformed JSON").await;
}
