//! `location` and links behind proxies.

use placement_api::http::{ApiSettings, PublicAddress};
use serde_json::json;

use crate::cloud::{Answer, Cloud, uuid};

fn cloud(prefix: &str, url: &str, trust_proxy_headers: bool) -> Cloud {
    Cloud::with(ApiSettings {
        public: PublicAddress {
            prefix: prefix.parse().unwrap(),
            url: (!url.is_empty()).then(|| url.parse().unwrap()),
            trust_proxy_headers,
        },
        ..ApiSettings::default()
    })
}

/// Creates a provider below a path, with these headers.
async fn create(cloud: &Cloud, below: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({"name": "host", "uuid": uuid(1)});
    let mut ask = cloud.post(&format!("{below}/resource_providers"), body);
    for (name, value) in headers {
        ask = ask.header(name, value);
    }
    ask.expect(200).await
}

fn links(answer: &Answer) -> Vec<String> {
    let links = answer.json()["links"].as_array().unwrap().clone();
    let href = |link: &serde_json::Value| link["href"].as_str().unwrap().to_owned();
    links.iter().map(href).collect()
}

/// The `location` and the self link of a provider for a client that sends these headers.
async fn found(cloud: &Cloud, headers: &[(&str, &str)]) -> (String, String) {
    let answer = create(cloud, "", headers).await;
    cloud.memory.forget();
    let location = answer.header("location").unwrap().to_owned();
    (location, links(&answer)[0].clone())
}

#[tokio::test]
async fn headers_of_untrusted_proxy_are_ignored() {
    let cloud = cloud("", "", false);
    let path = format!("/resource_providers/{}", uuid(1));
    let all = [
        ("forwarded", "proto=https;host=evil.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-prefix", "/evil"),
    ];
    let expected = (format!("http://cloud.example{path}"), path);
    assert_eq!(found(&cloud, &all).await, expected);
}

#[tokio::test]
async fn headers_of_trusted_proxy_determine_location() {
    let cloud = cloud("", "", true);
    let path = format!("/resource_providers/{}", uuid(1));
    for (headers, base, prefix) in [
        (
            &[("x-forwarded-proto", "https")][..],
            "https://cloud.example",
            "",
        ),
        (
            &[
                ("x-forwarded-proto", "https, http"),
                ("x-forwarded-host", "api.example:8780, inner"),
                ("x-forwarded-prefix", "/placement/"),
            ],
            "https://api.example:8780/placement",
            "/placement",
        ),
        // The default port of the scheme is omitted.
        (
            &[
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "api.example:443"),
            ],
            "https://api.example",
            "",
        ),
        // The standard header takes precedence; its first element comes from the proxy nearest to
        // the client.
        (
            &[
                (
                    "forwarded",
                    "for=192.0.2.7;proto=https;host=\"api.example:1\", for=10.0.0.1;proto=http",
                ),
                ("x-forwarded-host", "other.example"),
            ],
            "https://api.example:1",
            "",
        ),
        (
            &[
                ("forwarded", "for=192.0.2.7"),
                ("x-forwarded-proto", "https"),
            ],
            "http://cloud.example",
            "",
        ),
    ] {
        let expected = (format!("{base}{path}"), format!("{prefix}{path}"));
        assert_eq!(found(&cloud, headers).await, expected, "{headers:?}");
    }
}

#[tokio::test]
async fn location_shows_only_valid_schemes_hosts_and_paths() {
    let cloud = cloud("", "", true);
    let path = format!("/resource_providers/{}", uuid(1));
    let long = "a".repeat(1000);
    for (name, values) in [
        (
            "x-forwarded-proto",
            &["javascript", "ftp", "https://x", " ", "\"https\"", &long][..],
        ),
        (
            "x-forwarded-host",
            &[
                "evil/path",
                "user@evil",
                "a b",
                "\"a\"",
                "a?b",
                "a#b",
                "a\\b",
                "a:b",
                "[::1",
                "é",
                &long,
            ],
        ),
        (
            "x-forwarded-prefix",
            &[
                "evil",
                "//evil.example",
                "/a//b",
                "/../b",
                "/a b",
                "/a\"b",
                "/a?b",
                "/%2e%2e",
                &long,
            ],
        ),
        (
            "forwarded",
            &[
                "proto",
                "proto=gopher",
                "host=\"evil/path\"",
                "host=\"a b\"",
                "proto=https;host=\"a",
                ";;,",
            ],
        ),
    ] {
        for value in values {
            let expected = (format!("http://cloud.example{path}"), path.clone());
            let seen = found(&cloud, &[(name, *value)]).await;
            assert_eq!(seen, expected, "{name}: {value}");
        }
    }
}

#[tokio::test]
async fn invalid_host_header_gives_relative_location() {
    let cloud = cloud("", "", false);
    let path = format!("/resource_providers/{}", uuid(1));
    for host in ["evil/path", "user@evil", "a b", "a\"b"] {
        let request = cloud.post(
            "/resource_providers",
            json!({"name": "host", "uuid": uuid(1)}),
        );
        let answer = request.host(host).expect(200).await;
        assert_eq!(answer.header("location"), Some(path.as_str()), "{host}");
        cloud.memory.forget();
    }
}

#[tokio::test]
async fn public_url_overrides_request() {
    let cloud = cloud("", "https://cloud.example:8780/placement", true);
    let path = format!("/resource_providers/{}", uuid(1));
    let sent = [
        ("x-forwarded-proto", "http"),
        ("x-forwarded-prefix", "/other"),
    ];
    assert_eq!(
        found(&cloud, &sent).await,
        (
            format!("https://cloud.example:8780/placement{path}"),
            format!("/placement{path}")
        )
    );
}

#[tokio::test]
async fn below_a_prefix_the_whole_api_is_served_and_everything_links_below_it() {
    let cloud = cloud("/placement", "", false);
    let created = create(&cloud, "/placement", &[]).await;
    let path = format!("/placement/resource_providers/{}", uuid(1));
    let location = format!("http://cloud.example{path}");
    assert_eq!(created.header("location"), Some(location.as_str()));
    let below = [
        "",
        "/inventories",
        "/usages",
        "/aggregates",
        "/traits",
        "/allocations",
    ];
    assert_eq!(links(&created), below.map(|name| format!("{path}{name}")));
    for path in ["/placement", "/placement/"] {
        let root = cloud.get(path).token(None).expect(200).await.json();
        assert_eq!(
            root["versions"][0]["links"],
            json!([{"rel": "self", "href": ""}])
        );
    }

    let stock = json!({"resource_class": "VCPU", "total": 1});
    let stocked = cloud
        .post(&format!("{path}/inventories"), stock)
        .expect(201)
        .await;
    let location = format!("http://cloud.example{path}/inventories/VCPU");
    assert_eq!(stocked.header("location"), Some(location.as_str()));
    for noun in ["traits", "resource_classes"] {
        let path = format!("/placement/{noun}/CUSTOM_GOLD");
        let made = cloud.ask("PUT", &path).expect(201).await;
        let location = format!("http://cloud.example{path}");
        assert_eq!(made.header("location"), Some(location.as_str()));
    }
    let class = cloud
        .get("/placement/resource_classes/VCPU")
        .expect(200)
        .await;
    assert_eq!(links(&class), ["/placement/resource_classes/VCPU"]);
    let classes = cloud.read("/placement/resource_classes").await;
    let first = classes["resource_classes"][0]["links"][0]["href"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(first.starts_with("/placement/resource_classes/"), "{first}");
}

#[tokio::test]
async fn outside_a_prefix_only_the_root_is_served() {
    let cloud = cloud("/placement", "", false);
    cloud.get("/").token(None).expect(200).await;
    for path in [
        "/traits",
        "/placements/traits",
        "/placement/placement/traits",
        "//placement/traits",
    ] {
        cloud.get(path).expect(404).await;
        cloud.get(path).token(None).expect(401).await;
    }
    let hint = cloud.get("/traits").send().await;
    hint.refused(404, "This node serves the API below /placement.");
}

#[tokio::test]
async fn a_proxy_in_front_of_a_prefix_adds_its_own() {
    let cloud = cloud("/placement", "", true);
    let created = create(&cloud, "/placement", &[("x-forwarded-prefix", "/region-1")]).await;
    let path = format!("/region-1/placement/resource_providers/{}", uuid(1));
    assert_eq!(links(&created)[0], path);
    let location = format!("http://cloud.example{path}");
    assert_eq!(created.header("location"), Some(location.as_str()));
}
