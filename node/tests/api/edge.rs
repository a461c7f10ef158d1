//! What happens before a handler: order of the checks, formats, headers.

use std::time::Duration;

use placement_node::doors::Unavailable;
use placement_node::http::ApiSettings;
use serde_json::json;

use crate::cloud::{Cloud, uuid};

#[tokio::test]
async fn the_root_tells_the_versions() {
    let cloud = Cloud::new();
    for path in ["/", "http://cloud.example"] {
        let root = cloud
            .get(path)
            .version("")
            .token(None)
            .send()
            .await
            .expect(200);
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
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn the_root_of_a_node_that_is_not_ready_sends_balancers_elsewhere() {
    let down = Unavailable::NothingCommitted {
        reason: "no leader is known".into(),
        retry_after: Duration::from_secs(1),
    };
    let cloud = Cloud::new();
    cloud.memory.set_down(Some(down.clone()));
    let root = cloud.get("/").token(None).send().await;
    let root = root.refused(503, "This node is not ready: no leader is known");
    assert_eq!(root.header("retry-after"), Some("1"));
    root.code("placement.unavailable.not_ready");
    cloud.memory.set_down(None);
    cloud.get("/").token(None).send().await.expect(200);

    let indifferent = Cloud::with(ApiSettings {
        root_reflects_readiness: false,
        ..ApiSettings::default()
    });
    indifferent.memory.set_down(Some(down));
    indifferent.get("/").send().await.expect(200);
}

#[tokio::test]
async fn the_order_of_the_checks_can_be_seen() {
    let cloud = Cloud::new();
    let unknown = cloud
        .get("/nowhere")
        .version("9.9")
        .send()
        .await
        .expect(406)
        .json();
    assert_eq!(unknown["errors"][0]["min_version"], "1.0");
    assert_eq!(unknown["errors"][0]["max_version"], "1.39");
    assert_eq!(unknown["errors"][0].get("code"), None);
    cloud
        .get("/")
        .version("9.9")
        .token(None)
        .send()
        .await
        .refused(406, "Unacceptable version header: 9.9");
    cloud
        .get("/nowhere")
        .version("pony.horse")
        .send()
        .await
        .refused(400, "invalid version string: pony.horse");
    cloud
        .get("/nowhere")
        .version("9.9")
        .token(None)
        .send()
        .await
        .expect(401);
    cloud
        .ask("GET", "/nowhere")
        .raw(b"x")
        .send()
        .await
        .refused(400, "content-type header required");
    cloud
        .ask("POST", "/resource_providers")
        .raw(b"x")
        .header("content-type", "text/plain")
        .send()
        .await
        .expect(415);
    cloud
        .ask("PUT", &format!("/resource_providers/{}", uuid(1)))
        .send()
        .await
        .refused(
            415,
            "The media type None is not supported, use application/json",
        );
    let user = cloud.ask("POST", "/resource_providers").token(Some("user"));
    user.send().await.expect(415);
    cloud
        .ask("POST", "/resource_providers")
        .header("content-length", "hi mom")
        .send()
        .await
        .refused(400, "content-length header must be an integer");
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
        post(media).send().await.expect(415);
    }
    post("application/json;charset=utf-8")
        .send()
        .await
        .expect(200);
    cloud
        .get("/resource_providers")
        .header("accept", "text/plain")
        .send()
        .await
        .expect(406);
    cloud
        .get("/resource_providers")
        .header("accept", "foo")
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn errors_come_in_the_format_that_is_wanted() {
    let cloud = Cloud::new();
    let path = "/traits/%3Cb%3E";
    let json = cloud.get(path).send().await.expect(404);
    assert_eq!(json.header("content-type"), Some("application/json"));
    let error = &json.json()["errors"][0];
    assert_eq!(
        (&error["status"], &error["title"]),
        (&json!(404), &json!("Not Found"))
    );
    assert_eq!(error["code"], "placement.undefined_code");
    assert_eq!(
        error["request_id"],
        json!(json.header("x-openstack-request-id").unwrap())
    );
    let html = cloud
        .get(path)
        .header("accept", "text/html, */*;q=0.1")
        .send()
        .await
        .expect(404);
    assert_eq!(
        html.header("content-type"),
        Some("text/html; charset=UTF-8")
    );
    assert!(
        html.text().contains("&lt;b&gt;"),
        "what a client sent is shown, not run"
    );
    let plain = cloud
        .get(path)
        .header("accept", "text/plain")
        .send()
        .await
        .expect(404);
    assert_eq!(
        plain.header("content-type"),
        Some("text/plain; charset=UTF-8")
    );
    let old = cloud
        .get("/nowhere")
        .version("1.22")
        .send()
        .await
        .expect(404)
        .json();
    assert_eq!(old["errors"][0].get("code"), None, "codes came with 1.23");
}

#[tokio::test]
async fn unknown_methods_are_told_what_is_possible() {
    let cloud = Cloud::new();
    let answer = cloud
        .delete("/resource_providers")
        .send()
        .await
        .refused(405, "The method DELETE is not allowed for this resource.");
    assert_eq!(answer.header("allow"), Some("GET, POST"));
    assert_eq!(answer.json()["errors"][0]["title"], "Method Not Allowed");
    cloud.ask("get", "/").send().await.expect(405);
    let head = cloud.ask("HEAD", "/").send().await.expect(405);
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
    cloud.get("/resource%5Fproviders").send().await.expect(200);
    cloud.get("/resource_providers%2F").send().await.expect(404);
    cloud.get("/resource_providers/").send().await.expect(404);
    cloud.get("//resource_providers").send().await.expect(404);
    cloud.get("/resource_providers%0A").send().await.expect(200);
    cloud.get("/traits/%ff").send().await.expect(404);
}

#[tokio::test]
async fn caches_are_told_from_1_15() {
    let cloud = Cloud::new();
    for (version, told) in [("1.14", false), ("1.15", true)] {
        for path in ["/", "/resource_providers", "/traits", "/allocations/x"] {
            let answer = cloud.get(path).version(version).send().await.expect(200);
            assert_eq!(
                answer.header("last-modified").is_some(),
                told,
                "{path} {version}"
            );
            assert_eq!(
                answer.header("cache-control"),
                told.then_some("no-cache"),
                "{path} {version}"
            );
        }
    }
}

#[tokio::test]
async fn bodies_have_a_limit() {
    let cloud = Cloud::with(ApiSettings {
        max_body_bytes: 30,
        ..ApiSettings::default()
    });
    let long = json!({"name": "x".repeat(100)});
    cloud
        .post("/resource_providers", long.clone())
        .send()
        .await
        .refused(413, "30 bytes")
        .code("placement.body_too_large");
    cloud
        .post("/resource_providers", json!({"name": "x"}))
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn a_bomb_of_brackets_is_refused() {
    let cloud = Cloud::new();
    let bomb = "[".repeat(1_000_000);
    let post = cloud
        .ask("POST", "/resource_providers")
        .raw(bomb.as_bytes())
        .header("content-type", "application/json");
    post.send().await.refused(400, "Malformed JSON");
}
