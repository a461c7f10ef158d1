//! Limits per caller: a caller that exceeds its limit does not affect others.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use placement_api::http::{ApiSettings, CallerLimits, PublicAddress};

use crate::cloud::{Answer, Cloud, StoppedClock};

const CODE: &str = "placement.too_many_requests";

/// Settings without limits of callers, for tests to change.
fn settings() -> ApiSettings {
    let none = CallerLimits {
        in_flight: 0,
        per_s: 0,
    };
    ApiSettings {
        users: none,
        addresses: none,
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
    let one = CallerLimits {
        in_flight: 1,
        per_s: 1,
    };
    let settings = ApiSettings {
        users: one,
        addresses: one,
        ..ApiSettings::default()
    };
    let cloud = Cloud::timed(Arc::new(StoppedClock::default()), settings);
    cloud.get("/traits").expect(200).await;
    cloud.get("/traits").expect(429).await;
    for _ in 0..3 {
        let operator = cloud.get("/traits").token(None).operator(None);
        operator.expect(200).await;
    }
}

#[tokio::test]
async fn user_over_its_rate_is_refused_and_others_are_served() {
    let mut settings = settings();
    settings.users.per_s = 3;
    let clock = Arc::new(StoppedClock::default());
    let cloud = Cloud::timed(clock.clone(), settings);
    let ask = |token| {
        cloud
            .get("/traits")
            .token(Some(token))
            .version("1.6")
            .send()
    };
    for _ in 0..3 {
        ask("admin:a").await.expect(200);
    }
    // Neither the project nor the roles belong to the identity of a user.
    limited_by(ask("admin:b").await, "user_per_s");
    ask("other").await.expect(403);
    // Requests without a token are not counted for a user.
    for _ in 0..5 {
        cloud.get("/").expect(200).await;
    }
    clock.advance(Duration::from_millis(400));
    ask("admin").await.expect(200);
    limited_by(ask("admin").await, "user_per_s");
}

#[tokio::test]
async fn address_over_its_rate_is_refused_before_its_token_is_read() {
    let mut settings = settings();
    settings.addresses.per_s = 2;
    let cloud = Cloud::timed(Arc::new(StoppedClock::default()), settings);
    for _ in 0..2 {
        cloud.get("/traits").token(None).expect(401).await;
    }
    limited_by(
        cloud.get("/traits").token(None).send().await,
        "address_per_s",
    );
    limited_by(cloud.get("/traits").send().await, "address_per_s");
    // Load balancers check the node there.
    for _ in 0..5 {
        cloud.get("/").expect(200).await;
    }
}

#[tokio::test]
async fn requests_are_in_flight_until_their_clients_disconnect() {
    for (limit, user) in [("user_in_flight", true), ("address_in_flight", false)] {
        let mut settings = settings();
        match user {
            true => settings.users.in_flight = 2,
            false => settings.addresses.in_flight = 2,
        }
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
    for (limit, user) in [("user_in_flight", true), ("address_in_flight", false)] {
        let mut settings = settings();
        match user {
            true => settings.users.in_flight = 2,
            false => settings.addresses.in_flight = 2,
        }
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
    let mut settings = settings();
    settings.addresses.per_s = 1;
    settings.public = PublicAddress {
        trust_proxy_headers: true,
        ..PublicAddress::default()
    };
    let cloud = Cloud::timed(Arc::new(StoppedClock::default()), settings);
    let ask = |client: &'static str| {
        cloud
            .get("/traits")
            .header("x-forwarded-for", client)
            .send()
    };
    for client in [
        "198.51.100.1",
        "198.51.100.2, 10.0.0.1",
        "2001:db8::1",
        "unknown",
    ] {
        ask(client).await.expect(200);
    }
    limited_by(ask("198.51.100.1").await, "address_per_s");
    limited_by(ask("198.51.100.2").await, "address_per_s");
    limited_by(ask("2001:db8::ffff").await, "address_per_s");
    // A proxy that names no client is counted itself.
    limited_by(ask("hidden").await, "address_per_s");
}

#[tokio::test]
async fn untrusted_forwarded_addresses_are_ignored_and_an_authenticating_proxy_has_no_address_limit()
 {
    let mut limited = settings();
    limited.addresses.per_s = 1;
    let clock = Arc::new(StoppedClock::default());
    let cloud = Cloud::timed(clock.clone(), limited.clone());
    let ask = |client: &'static str| {
        cloud
            .get("/traits")
            .header("x-forwarded-for", client)
            .send()
    };
    ask("198.51.100.1").await.expect(200);
    limited_by(ask("198.51.100.2").await, "address_per_s");

    let proxy = "strategy = 'proxy'\nproxy_addresses = ['192.0.2.0/24']";
    limited.auth = toml::from_str(proxy).unwrap();
    limited.users.per_s = 2;
    let cloud = Cloud::timed(clock, limited);
    for user in ["one", "other"] {
        let ask = || {
            let ask = cloud.get("/traits").token(None).header("x-user-id", user);
            ask.header("x-identity-status", "Confirmed").send()
        };
        ask().await.expect(403);
        ask().await.expect(403);
        limited_by(ask().await, "user_per_s");
    }
}
