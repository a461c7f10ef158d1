//! Hostile and broken requests: upstream's status, a clear error, and the node goes on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use http::{Method, StatusCode};
use placement_client::{ApiRequest, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn broken_requests_get_upstream_s_status_and_a_reason() {
    let mut cluster = Cluster::start_with(1, "[api]\nmax_body_bytes = 10000\n")
        .await
        .unwrap();
    let client = cluster.client_of(1);
    let uuid = Uuid::new_v4();
    client
        .create_provider(&NewProvider::named("host").uuid(uuid))
        .await
        .unwrap();
    let offer = [("VCPU", Inventory::of(8))];
    client.replace_inventories(uuid, 0, offer).await.unwrap();

    let providers = || ApiRequest::post("/resource_providers");
    let json_type = ("content-type", "application/json");
    let raw = |body: &'static str| providers().header(json_type.0, json_type.1).body(body);
    let inventories = format!("/resource_providers/{uuid}/inventories");
    let consumer = format!("/allocations/{}", Uuid::new_v4());
    let claim = |amount: serde_json::Value| {
        ApiRequest::put(&consumer).json(&json!({
            "allocations": {uuid.to_string(): {"resources": {"VCPU": amount}}},
            "project_id": "p", "user_id": "u", "consumer_generation": null,
            "consumer_type": "INSTANCE"
        }))
    };
    let cases = [
        ("no JSON", raw("{\"name\": "), 400),
        (
            "deep JSON",
            raw("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
            400,
        ),
        (
            "not UTF-8",
            providers()
                .header(json_type.0, json_type.1)
                .body(&b"{\"name\": \"\xff\"}"[..]),
            400,
        ),
        ("no object", raw("[]"), 400),
        ("a wrong type", providers().json(&json!({"name": 7})), 400),
        (
            "an unknown field",
            providers().json(&json!({"name": "x", "colour": "red"})),
            400,
        ),
        ("no name", providers().json(&json!({})), 400),
        (
            "a long name",
            providers().json(&json!({"name": "x".repeat(201)})),
            400,
        ),
        (
            "a bad uuid",
            providers().json(&json!({"name": "x", "uuid": "nope"})),
            400,
        ),
        (
            "another content type",
            providers().header("content-type", "text/plain").body("x"),
            415,
        ),
        ("no content type", providers().body("{}"), 400),
        (
            "a body too long",
            providers().json(&json!({"name": "x".repeat(20_000)})),
            413,
        ),
        (
            "an unknown microversion",
            ApiRequest::get("/traits").microversion("1.40"),
            406,
        ),
        (
            "no microversion",
            ApiRequest::get("/traits").microversion("one"),
            400,
        ),
        (
            "no token",
            ApiRequest::get("/traits").header("x-auth-token", ""),
            403,
        ),
        ("an unknown path", ApiRequest::get("/nothing/here"), 404),
        (
            "an unknown method",
            ApiRequest::new(Method::PATCH, "/traits"),
            405,
        ),
        ("a negative amount", claim(json!(-1)), 400),
        ("a huge amount", claim(json!(u64::MAX)), 409),
        ("a fraction", claim(json!(1.5)), 400),
        ("too much", claim(json!(9)), 409),
        (
            "an unknown parameter",
            ApiRequest::get("/resource_providers?colour=red"),
            400,
        ),
        (
            "a bad filter",
            ApiRequest::get("/resource_providers?resources=VCPU"),
            400,
        ),
        (
            "a huge query amount",
            ApiRequest::get("/allocation_candidates?resources=VCPU:99999999999999999999"),
            400,
        ),
        (
            "no resources",
            ApiRequest::get("/allocation_candidates"),
            400,
        ),
        (
            "bad escapes",
            ApiRequest::get("/usages?project_id=%ff"),
            400,
        ),
        (
            "an old generation",
            ApiRequest::put(&inventories).json(&json!({
                "resource_provider_generation": 0, "inventories": {}})),
            409,
        ),
        (
            "an unknown class",
            ApiRequest::put(&inventories).json(&json!({
                "resource_provider_generation": 1, "inventories": {"CUSTOM_NO": {"total": 1}}})),
            400,
        ),
    ];
    for (what, request, status) in cases {
        let response = client.request(request).await.unwrap();
        let body = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status.as_u16(), status, "{what}: {body}");
        let error = response.error().unwrap();
        assert!(!error.message().is_empty(), "{what} has no reason: {body}");
    }

    // Nothing of all that was written, and nothing died of it.
    let usages = client.provider_usages(uuid).await.unwrap();
    assert_eq!(usages.usages["VCPU"], 0);
    assert_eq!(client.providers(&[]).await.unwrap().len(), 1);
    assert!(cluster.runs(1));
    let log = cluster.log(1, 10_000);
    assert!(!log.contains("panicked"), "{log}");
}

/// Everything that is answered until the other side ends the connection, which it must do.
fn answer(address: &str, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(sent).unwrap();
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    // It may be ended roughly, with bytes left unread.
    if let Err(error) = ended
        && error.kind() != ErrorKind::ConnectionReset
    {
        panic!("{address} keeps the connection after {answer:?}: {error}");
    }
    answer
}

#[tokio::test]
async fn what_is_not_even_http_ends_the_connection_and_nothing_else() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let not_http: [(&[u8], &str); 5] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"),
        (b"GET\r\n\r\n", "400"),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (
            b"POST /traits HTTP/1.1\r\nhost: x\r\ncontent-length: hi mom\r\n\r\n",
            "400",
        ),
        // Its head can be read, and is refused before its body is missed.
        (
            b"POST /traits HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\n",
            "4",
        ),
    ];
    for (garbage, status) in not_http {
        let sent = String::from_utf8_lossy(garbage);
        for http in [cluster.place(1).api(), cluster.place(1).admin()] {
            let answer = answer(&http, garbage);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{http} answers {answer:?} to {sent:?}"
            );
        }
        let answer = answer(&cluster.place(1).peer(), garbage);
        assert_eq!(answer, "", "other nodes' door answers {sent:?}");
    }
    assert!(cluster.runs(1));
    let response = cluster
        .client_of(1)
        .request(ApiRequest::get("/"))
        .await
        .unwrap();
    assert_eq!(response.status, StatusCode::OK);
    let log = cluster.log(1, 10_000);
    assert!(!log.contains("panicked"), "{log}");
}
