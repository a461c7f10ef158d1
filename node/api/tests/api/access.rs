//! The access log: the content of a line, and that clients cannot forge lines.

use placement_api::http::{ApiSettings, PublicAddress};
use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};
use crate::log::Log;

impl Log {
    /// The parsed lines of the access log.
    fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let text = self.text();
        let lines = text.lines().map(parse);
        lines
            .filter(|line| line["target"] == "placement::access")
            .collect()
    }
}

#[tokio::test]
async fn each_request_logs_one_line_with_caller_and_outcome() {
    let cloud = Cloud::new();
    let (log, _guard) = Log::start("info", true);
    let caller = "req-00000000-0000-4000-8000-000000000077";
    let answer = cloud
        .get("/resource_providers?name=compute%201")
        .token(Some("alice:blue"))
        .header("x-roles", "admin")
        .header("x-openstack-request-id", caller)
        .version("1.30")
        .expect(200)
        .await;
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{}", log.text());
    let line = &lines[0];
    for (name, value) in [
        ("level", json!("INFO")),
        ("message", json!("answered")),
        ("client", json!("192.0.2.7")),
        ("method", json!("GET")),
        ("uri", json!("/resource_providers?name=compute%201")),
        ("status", json!(200)),
        ("bytes", json!(answer.body.len())),
        ("microversion", json!("1.30")),
        ("user", json!("alice")),
        ("project", json!("blue")),
        ("request_id", json!(answer.header("x-openstack-request-id"))),
        ("global_request_id", json!(caller)),
    ] {
        assert_eq!(line[name], value, "{name}: {line}");
    }
    assert!(line["ms"].as_f64().unwrap() >= 0.0, "{line}");
}

#[tokio::test]
async fn refused_requests_are_logged() {
    let cloud = Cloud::new();
    let (log, _guard) = Log::start("info", true);
    cloud.get("/traits").token(None).expect(401).await;
    cloud.get("/traits").version("9.9").expect(406).await;
    cloud.get("/traits").version("x").expect(400).await;
    cloud.get("/nowhere").expect(404).await;
    cloud.delete("/traits").expect(405).await;
    let user = cloud.get("/traits").token(Some("user"));
    user.expect(403).await;
    let lines = log.lines();
    let statuses: Vec<_> = lines.iter().map(|line| line["status"].clone()).collect();
    assert_eq!(statuses, [401, 406, 400, 404, 405, 403]);
    assert_eq!(lines[0].get("user"), None, "the caller is unknown");
    assert_eq!(lines[0].get("microversion"), None);
    assert_eq!(lines[5]["user"], "user");
}

#[tokio::test]
async fn a_client_cannot_forge_or_flood_a_line() {
    let cloud = Cloud::new();
    let forged = "x\u{85}2026-01-01 INFO placement::access: answered";
    let long = format!("/traits?name=startswith:{}", "A".repeat(20_000));
    let send = async || {
        let ask = cloud
            .get("/traits?name=%0Ax%22")
            .header("x-project-id", forged)
            .header("x-openstack-request-id", "req-x\" x");
        ask.send().await;
        cloud.get(&long).send().await;
    };
    let (log, guard) = Log::start("info", false);
    send().await;
    let text = log.text();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        !text.contains('\u{85}') && text.contains("\\u{85}"),
        "{text}"
    );
    assert!(
        !text.contains("req-x"),
        "an invalid id is not logged: {text}"
    );
    assert!(text.lines().all(|line| line.len() < 3000), "{text}");
    drop(guard);

    let (log, _guard) = Log::start("info", true);
    send().await;
    assert_eq!(log.lines().len(), 2, "{}", log.text());
}

#[tokio::test]
async fn a_token_is_never_logged() {
    let cloud = Cloud::new();
    // A Keystone token that a client sends by mistake to a node with `noauth2`.
    let token: &'static str = Box::leak("gAAAAABm".repeat(24).into_boxed_str());
    let (log, _guard) = Log::start("trace", true);
    let ask = cloud.get("/traits").token(Some(token));
    ask.header("x-project-id", "p").send().await;
    cloud.get("/traits").token(Some(token)).send().await;
    assert_eq!(log.lines().len(), 2);
    assert!(!log.text().contains("gAAAAABm"), "{}", log.text());
}

#[tokio::test]
async fn a_trusted_proxy_names_the_client() {
    let cloud = Cloud::with(ApiSettings {
        public: PublicAddress {
            trust_proxy_headers: true,
            ..PublicAddress::default()
        },
        ..ApiSettings::default()
    });
    let (log, _guard) = Log::start("info", true);
    let ask = cloud
        .get("/")
        .header("forwarded", "for=\"[2001:db8::1]:47\", for=10.0.0.1");
    ask.expect(200).await;
    let ask = cloud
        .get("/")
        .header("x-forwarded-for", "203.0.113.9, 10.0.0.1");
    ask.expect(200).await;
    let seen: Vec<_> = log
        .lines()
        .iter()
        .map(|line| line["client"].clone())
        .collect();
    assert_eq!(seen, ["[2001:db8::1]:47", "203.0.113.9"]);
}

#[tokio::test]
async fn access_log_can_be_silenced_separately() {
    let cloud = Cloud::new();
    let (log, _guard) = Log::start("info,placement::access=warn", true);
    cloud.get("/traits").expect(200).await;
    assert_eq!(log.text(), "");
}

#[tokio::test]
async fn request_of_disconnected_client_is_logged() {
    let cloud = Cloud::new();
    let (log, _guard) = Log::start("info", true);
    cloud.memory.hang();
    let asked = cloud
        .get(&format!("/resource_providers/{}", uuid(1)))
        .send();
    let patience = std::time::Duration::from_millis(50);
    assert!(tokio::time::timeout(patience, asked).await.is_err());
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{}", log.text());
    assert_eq!(lines[0].get("status"), None);
    assert!(
        lines[0]["message"]
            .as_str()
            .unwrap()
            .contains("not answered")
    );
}
