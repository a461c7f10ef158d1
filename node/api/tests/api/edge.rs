//! Stages before a handler: order of the checks, formats, headers.

use axum::body::Body;
use http::Response;
use placement_api::http::{ApiSettings, CallersSection, PublicAddress, STAGES};
use placement_base::backend::Unavailable;
use serde_json::json;

use crate::cloud::{Ask, Cloud, uuid};

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
    let root = cloud
        .get("/")
        .token(None)
        .send()
        .await
        .refused(503, "This node is not ready: no leader is known");
    root.code("placement.unavailable.not_ready");
    cloud.memory.set_down(None);
    cloud.get("/").token(None).expect(200).await;
}

/// A cloud that admits one request at a time of each user and address, and bodies of at most 100
/// bytes.
fn limited() -> Cloud {
    let mut settings = ApiSettings {
        callers: CallersSection {
            user_in_flight: 1,
            address_in_flight: 1,
        },
        public: PublicAddress {
            trust_proxy_headers: true,
            ..PublicAddress::default()
        },
        ..ApiSettings::default()
    };
    settings.limits.body_bytes = 100;
    Cloud::with(settings)
}

/// A write that passes all stages.
fn sound(cloud: &Cloud) -> Ask {
    cloud.post("/resource_providers", json!({"name": "cn1"}))
}

/// Gives a request a fault that this stage refuses. Returns the request, and the status and a part
/// of the message of the refusal. `untaken` are answers to other requests, which use up limits.
async fn spoil(
    cloud: &Cloud,
    untaken: &mut Vec<Response<Body>>,
    ask: Ask,
    stage: &str,
) -> (Ask, u16, &'static str) {
    let from = |address| cloud.get("/traits").header("x-forwarded-for", address);
    match stage {
        "partition and address limits" => {
            untaken.push(from("198.51.100.1").token(None).untaken().await);
            let again = ask.header("x-forwarded-for", "198.51.100.1");
            (again, 429, "address_in_flight")
        }
        "authentication" => (ask.token(None), 401, ""),
        "user limits" => {
            untaken.push(from("198.51.100.2").untaken().await);
            let user = from("198.51.100.3").token(Some("user"));
            untaken.push(user.untaken().await);
            (ask, 429, "user_in_flight")
        }
        "URL length" => {
            let long = format!("/resource_providers?{}", "x".repeat(40_000));
            (ask.path(&long), 414, "")
        }
        "microversion" => (ask.version("9.9"), 406, "Unacceptable version header"),
        "consistency headers" => {
            let header = "placement-consistency";
            (ask.header(header, "pony"), 400, "Placement-Consistency is")
        }
        "body headers" => {
            let length = "content-length header must be an integer";
            (ask.header("content-length", "hi mom"), 400, length)
        }
        "route" => (ask.method("PATCH"), 405, "The method PATCH is not allowed"),
        "operation" => {
            let text = ask.header("content-type", "text/plain");
            (text, 415, "is not supported, use application/json")
        }
        "policy" => (ask.token(Some("user")), 403, "Policy does not allow"),
        "body" => (ask.longer(101), 413, ""),
        "room for a write" => {
            let why = "too many writes wait";
            let busy = Unavailable::Busy(why.to_owned());
            cloud.memory.set_down(Some(busy));
            (ask, 503, why)
        }
        other => panic!("no fault for the stage {other:?}"),
    }
}

#[tokio::test]
async fn each_stage_refuses_before_all_later_stages() {
    for (at, stage) in STAGES.iter().enumerate() {
        let cloud = limited();
        let (mut ask, mut untaken) = (sound(&cloud), Vec::new());
        for later in STAGES[at + 1..].iter().rev() {
            ask = spoil(&cloud, &mut untaken, ask, later.name).await.0;
        }
        let (ask, status, message) = spoil(&cloud, &mut untaken, ask, stage.name).await;
        assert!(stage.refuses_with.contains(&status), "{}", stage.name);
        ask.refused(status, message).await;
    }
    sound(&limited()).expect(200).await;
}

#[tokio::test]
async fn headers_are_checked_before_route_and_policy() {
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
