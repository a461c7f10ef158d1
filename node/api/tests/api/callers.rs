//! Limits per caller: a caller that exceeds its limit does not affect others.

use axum::body::Body;
use futures::FutureExt;
use http::Response;
use placement_api::http::{ApiSettings, CallersSection, PublicAddress};

use crate::cloud::{Answer, Cloud};

const CODE: &str = "placement.too_many_requests";

/// Names of the limits, each with settings in which this limit allows two requests and others are
/// off.
fn each_limit() -> [(&'static str, ApiSettings); 2] {
    [
        ("user_in_flight", limits(2, 0)),
        ("address_in_flight", limits(0, 2)),
    ]
}

/// Settings with these limits; 0: no limit.
fn limits(user_in_flight: usize, address_in_flight: usize) -> ApiSettings {
    ApiSettings {
        callers: CallersSection {
            user_in_flight,
            address_in_flight,
        },
        ..ApiSettings::default()
    }
}

#[track_caller]
fn limited_by(answer: Answer, limit: &str) {
    let answer = answer.refused(429, limit).code(CODE);
    assert_eq!(answer.header("retry-after"), None);
    let detail = answer.json()["errors"][0]["detail"].to_string();
    assert!(
        detail.contains("too many requests") && detail.contains("pauses that grow"),
        "{detail}"
    );
    assert_eq!(answer.json()["errors"][0]["title"], "Too Many Requests");
}

#[tokio::test]
async fn operator_is_limited_by_no_share_of_callers() {
    let cloud = Cloud::with(limits(1, 1));
    let _untaken = cloud.get("/traits").untaken().await;
    cloud.get("/traits").expect(429).await;
    for _ in 0..3 {
        let operator = cloud.get("/traits").token(None).operator(None);
        operator.expect(200).await;
    }
}

#[tokio::test]
async fn user_above_its_limit_is_refused_and_others_are_served() {
    let cloud = Cloud::with(limits(1, 0));
    let ask = |token| {
        cloud
            .get("/traits")
            .token(Some(token))
            .version("1.6")
            .send()
    };
    let get = cloud.get("/traits").token(Some("admin:a"));
    let untaken = get.version("1.6").untaken().await;
    // Neither the project nor the roles belong to the identity of a user.
    limited_by(ask("admin:b").await, "user_in_flight");
    ask("other").await.expect(403);
    // Requests without a token are not counted for a user.
    for _ in 0..5 {
        cloud.get("/").expect(200).await;
    }
    drop(untaken);
    ask("admin").await.expect(200);
}

#[tokio::test]
async fn address_above_its_limit_is_refused_before_its_token_is_read() {
    let cloud = Cloud::with(limits(0, 1));
    cloud.get("/traits").token(None).expect(401).await;
    let _untaken = cloud.get("/traits").untaken().await;
    limited_by(
        cloud.get("/traits").token(None).send().await,
        "address_in_flight",
    );
    limited_by(cloud.get("/traits").send().await, "address_in_flight");
    // `/` is not limited, as load balancers check the node with it.
    for _ in 0..5 {
        cloud.get("/").expect(200).await;
    }
}

#[tokio::test]
async fn requests_are_in_flight_until_their_clients_disconnect() {
    for (limit, settings) in each_limit() {
        let cloud = Cloud::with(settings);
        for _ in 0..5 {
            cloud.get("/traits").expect(200).await;
        }
        cloud.memory.hang();
        let mut waiting: Vec<_> = (0..2)
            .map(|_| cloud.get("/traits").send().boxed())
            .collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none(), "it waits");
        }
        limited_by(cloud.get("/traits").send().await, limit);
        drop(waiting.pop());
        let mut next = cloud.get("/traits").send().boxed();
        assert!(
            (&mut next).now_or_never().is_none(),
            "it is admitted, and waits"
        );
        limited_by(cloud.get("/traits").send().await, limit);
    }
}

#[tokio::test]
async fn request_is_in_flight_until_its_answer_is_taken() {
    for (limit, settings) in each_limit() {
        let cloud = Cloud::with(settings);
        let list = cloud.get("/traits").untaken().await;
        let missing = cloud.get("/traits/CUSTOM_MISSING").untaken().await;
        assert_eq!(list.status().as_u16(), 200);
        assert_eq!(missing.status().as_u16(), 404);
        limited_by(cloud.get("/traits").send().await, limit);
        drop(missing);
        cloud.get("/traits").expect(200).await;
        drop(list);
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_address() {
    let cloud = Cloud::with(ApiSettings {
        public: PublicAddress {
            trust_proxy_headers: true,
            ..PublicAddress::default()
        },
        ..limits(0, 1)
    });
    let ask = |client: &'static str| cloud.get("/traits").header("x-forwarded-for", client);
    let mut untaken: Vec<Response<Body>> = Vec::new();
    for client in [
        "198.51.100.1",
        "198.51.100.2, 10.0.0.1",
        "2001:db8::1",
        "unknown",
    ] {
        untaken.push(ask(client).untaken().await);
    }
    assert!(untaken.iter().all(|answer| answer.status() == 200));
    for client in ["198.51.100.1", "198.51.100.2", "2001:db8::ffff"] {
        limited_by(ask(client).send().await, "address_in_flight");
    }
    // If a proxy names no client, its own address is counted.
    limited_by(ask("hidden").send().await, "address_in_flight");
}

#[tokio::test]
async fn untrusted_forwarded_addresses_are_ignored_and_an_authenticating_proxy_has_no_address_limit()
 {
    let cloud = Cloud::with(limits(0, 1));
    let ask = |client: &'static str| cloud.get("/traits").header("x-forwarded-for", client);
    let _untaken = ask("198.51.100.1").untaken().await;
    limited_by(ask("198.51.100.2").send().await, "address_in_flight");

    let proxy = "strategy = 'proxy'\nproxy_addresses = ['192.0.2.0/24']";
    let cloud = Cloud::with(ApiSettings {
        auth: toml::from_str(proxy).unwrap(),
        ..limits(1, 1)
    });
    let ask = |user: &'static str| {
        let ask = cloud.get("/traits").token(None).header("x-user-id", user);
        ask.header("x-identity-status", "Confirmed")
    };
    let one = ask("one").untaken().await;
    let other = ask("other").untaken().await;
    assert_eq!((one.status().as_u16(), other.status().as_u16()), (403, 403));
    limited_by(ask("one").send().await, "user_in_flight");
}
