//! Three nodes authenticate requests with a real Keystone.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use http::StatusCode;
use placement_client::{ApiRequest, ApiResponse, Client, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::keystone::{Keystone, TokenRequest};
use placement_tests::wait::until_ok;
use placement_tests::{osc, python};
use serde_json::{Value, json};

/// A password that no log may contain.
const PASSWORD: &str = "the-password-of-placement";
/// How long a node caches Keystone's answer about a token.
const CACHE: Duration = Duration::from_secs(4);

/// Lifetime of a token that expires in the test: long enough to use it, as Keystone is slow on a
/// busy machine.
const BRIEF: Duration = Duration::from_secs(10);

const fn of_service(user: &'static str) -> TokenRequest<'static> {
    TokenRequest {
        user,
        password: PASSWORD,
        project: Some("service"),
    }
}

const PLACEMENT: TokenRequest<'_> = of_service("placement");
const NOVA: TokenRequest<'_> = of_service("nova");
const OPERATOR: TokenRequest<'_> = of_service("operator");
const MEMBER: TokenRequest<'_> = of_service("member");
const READER: TokenRequest<'_> = of_service("reader");

async fn keystone() -> Keystone {
    keystone_and_project().await.0
}

/// A Keystone, and the id of the project of all users.
async fn keystone_and_project() -> (Keystone, String) {
    let installed_in = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let keystone = Keystone::start(installed_in).await.unwrap();
    let people = [
        (PLACEMENT, "service"),
        (NOVA, "service"),
        (OPERATOR, "admin"),
        (MEMBER, "member"),
        (READER, "reader"),
    ];
    let project = keystone.people("service", &people).await.unwrap();
    (keystone, project)
}

async fn cluster_of(keystone: &Keystone) -> Cluster {
    cluster_with(keystone, 3, "").await
}

async fn cluster_with(keystone: &Keystone, nodes: u64, more: &str) -> Cluster {
    cluster_remembering(keystone, nodes, CACHE, more).await
}

/// A cluster that caches Keystone's answers for this long.
async fn cluster_remembering(
    keystone: &Keystone,
    nodes: u64,
    cache: Duration,
    more: &str,
) -> Cluster {
    let config = format!(
        "[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"{}\"\nusername = \"placement\"\n\
         password = \"{PASSWORD}\"\ntoken_cache_time_s = {}\n[log]\nlevel = \"debug\"\n\
         [audit]\nto = \"stderr\"\n{more}",
        keystone.url(),
        cache.as_secs()
    );
    Cluster::start_with(nodes, &config).await.unwrap()
}

async fn ask_once(client: &Client, request: ApiRequest) -> ApiResponse {
    client.request_once(request).await.unwrap()
}

/// Retries while the answer is 503, as Keystone is slow on a busy machine.
async fn ask(client: &Client, request: ApiRequest) -> ApiResponse {
    until_ok("an answer", async || {
        let answer = ask_once(client, request.clone()).await;
        match answer.status {
            StatusCode::SERVICE_UNAVAILABLE => Err(answer),
            _ => Ok(answer),
        }
    })
    .await
}

/// Status of a request for the list of providers with this token.
async fn status_of(cluster: &Cluster, node: u64, token: &str) -> StatusCode {
    let client = cluster.client_of(node).with_token(token);
    ask(&client, ApiRequest::get("/resource_providers"))
        .await
        .status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_authenticated_by_keystone() {
    let keystone = keystone().await;
    let cluster = cluster_of(&keystone).await;
    let operator = keystone.token(OPERATOR).await.unwrap();
    for node in cluster.ids() {
        assert_eq!(status_of(&cluster, node, &operator).await, StatusCode::OK);
    }
    let client = cluster.client_of(1).with_token(&operator);
    client
        .create_provider(&NewProvider::named("host"))
        .await
        .unwrap();

    let search = ApiRequest::get("/allocation_candidates?resources=VCPU:1");
    assert_eq!(ask(&client, search).await.status, StatusCode::OK);
    let searches = ask(&client, ApiRequest::get("/placementd/v1/searches")).await;
    let searches: Value = searches.json().unwrap();
    let search = &searches["searches"][0];
    let names = [&search["user_name"], &search["project_name"]];
    assert_eq!(names, ["operator", "service"], "{searches}");

    // Keystone also knows users whom the policy does not allow to list providers.
    for (who, expected) in [
        (NOVA, StatusCode::OK),
        (MEMBER, StatusCode::FORBIDDEN),
        (READER, StatusCode::FORBIDDEN),
    ] {
        let token = keystone.token(who).await.unwrap();
        assert_eq!(status_of(&cluster, 2, &token).await, expected, "{who:?}");
    }
    let reader = keystone.token(READER).await.unwrap();
    let own = ask(
        &cluster.client_of(3).with_token(&reader),
        ApiRequest::get("/usages?project_id=unknown"),
    )
    .await;
    assert_eq!(own.status, StatusCode::FORBIDDEN);
    let unscoped = TokenRequest {
        project: None,
        ..OPERATOR
    };
    let unscoped = keystone.token(unscoped).await.unwrap();
    assert_eq!(
        status_of(&cluster, 2, &unscoped).await,
        StatusCode::FORBIDDEN
    );

    // `admin` is no valid token here, and neither is a text that Keystone did not issue.
    for unknown in ["admin", "", "gAAAAA", &"x".repeat(20_000)] {
        let client = cluster.client_of(1).with_token(unknown);
        let answer = ask(&client, ApiRequest::get("/resource_providers")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{unknown}");
        let challenge = answer.headers.get("www-authenticate").unwrap();
        let expected = format!("Keystone uri=\"{}\"", keystone.url());
        assert_eq!(challenge.to_str().unwrap(), expected);
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["error"]["code"], 401, "{body}");
    }
    // The root and health checks need no token.
    let root = ask(&cluster.client_of(1).with_token(""), ApiRequest::get("/")).await;
    assert_eq!(root.status, StatusCode::OK);

    keystone.revoke(&operator).await.unwrap();
    let revoked = Instant::now();
    loop {
        // The node has cached the token before, and only for this long.
        let is_late = revoked.elapsed() >= CACHE;
        let status = status_of(&cluster, 1, &operator).await;
        if status == StatusCode::UNAUTHORIZED {
            break;
        }
        assert_eq!(status, StatusCode::OK);
        assert!(!is_late, "the token is cached for too long");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // The log has no token of a service either.
    let service = keystone.token(NOVA).await.unwrap();
    let request = ApiRequest::put("/traits/CUSTOM_BY_SERVICE").header("x-service-token", &service);
    let made = ask(&cluster.client_of(1).with_token(&service), request).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let record = record_like(&cluster, "uri", "/traits/CUSTOM_BY_SERVICE".into()).await;
    assert_eq!(record["user"], record["service_user"], "{record}");
    assert_eq!(record["roles"], serde_json::json!(["service"]), "{record}");
    let names = [&record["user_name"], &record["project_name"]];
    assert_eq!(names, ["nova", "service"], "{record}");
    for field in ["user_name=\"nova\"", "project_name=\"service\""] {
        cluster.until_logged(&[1], field).await;
    }
    let forbidden = record_like(&cluster, "status", 403.into()).await;
    assert!(forbidden["user"].is_string(), "{forbidden}");
    let unauthenticated = record_like(&cluster, "status", 401.into()).await;
    assert!(unauthenticated["user"].is_null(), "{unauthenticated}");
    for node in cluster.ids() {
        let log = cluster.log(node, usize::MAX);
        for secret in [PASSWORD, &operator, &reader, &unscoped, &service] {
            assert!(!log.contains(secret), "node {node} logs a secret");
        }
    }
}

/// Waits for an audit record of any node with this value.
async fn record_like(cluster: &Cluster, field: &str, value: Value) -> Value {
    until_ok("an audit record", async || {
        let logs: Vec<String> = (cluster.ids().into_iter())
            .map(|node| cluster.log(node, usize::MAX))
            .collect();
        let lines = logs
            .iter()
            .flat_map(|log| log.lines())
            .filter(|line| line.starts_with("{\"kind\":\"audit\""));
        // The last line may be half written.
        let mut records = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found = records.find(|record| record[field] == value);
        found.ok_or_else(|| format!("no {field} {value} in {logs:?}"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_of_roles_depend_on_the_policy_mode() {
    let (keystone, project) = keystone_and_project().await;
    let of = async |who| keystone.token(who).await.unwrap();
    let tokens = [
        of(OPERATOR).await,
        of(NOVA).await,
        of(MEMBER).await,
        of(READER).await,
        keystone.system_token(TokenRequest::ADMIN).await.unwrap(),
    ];
    let reshape = serde_json::json!({"inventories": {}, "allocations": {}});
    let requests = [
        ApiRequest::get("/resource_providers"),
        ApiRequest::post("/reshaper").json(&reshape),
        ApiRequest::get(&format!("/usages?project_id={project}")),
        ApiRequest::get("/usages?project_id=another"),
    ];
    // One row per request; columns: admin, service, member, reader, and the system admin. 400: the
    // reshape is allowed, but its body is empty.
    let new = [
        [200, 200, 403, 403, 403],
        [403, 400, 403, 403, 403],
        // A member is a reader as well: in Keystone's bootstrap one role implies the other.
        [200, 200, 200, 200, 403],
        [200, 200, 403, 403, 403],
    ];
    let old = [
        [200, 200, 403, 403, 200],
        [400, 400, 403, 403, 400],
        [200, 200, 200, 200, 200],
        [200, 200, 403, 403, 200],
    ];
    for (mode, allowed) in [
        ("enforce_new_defaults = true\nenforce_scope = true", new),
        ("enforce_new_defaults = false\nenforce_scope = false", old),
    ] {
        let cluster = cluster_with(&keystone, 1, &format!("[policy]\n{mode}\n")).await;
        for (request, allowed) in requests.iter().zip(allowed) {
            for (token, expected) in tokens.iter().zip(allowed) {
                let client = cluster.client_of(1).with_token(token);
                let answer = ask(&client, request.clone()).await;
                assert_eq!(answer.status, expected, "{mode}: {request:?} {answer:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_token_is_accepted_with_a_valid_service_token() {
    let mut keystone = keystone().await;
    let cluster = cluster_of(&keystone).await;
    let service = keystone.token(NOVA).await.unwrap();
    let no_service = keystone.token(MEMBER).await.unwrap();
    keystone.stop();
    keystone.configure(BRIEF.as_secs()).unwrap();
    keystone.go_on().await.unwrap();
    // On a busy machine a token may expire before its first use.
    let brief = until_ok("a token used before it expires", async || {
        let brief = keystone.token(OPERATOR).await.unwrap();
        let status = status_of(&cluster, 1, &brief).await;
        (status == StatusCode::OK).then_some(brief).ok_or(status)
    })
    .await;
    // After this pause the token and its cache entry have expired.
    tokio::time::sleep(BRIEF.max(CACHE)).await;
    keystone.stop();
    keystone.configure(3_600).unwrap();
    keystone.go_on().await.unwrap();
    assert_eq!(
        status_of(&cluster, 1, &brief).await,
        StatusCode::UNAUTHORIZED
    );
    for (with, expected) in [
        (&service, StatusCode::OK),
        (&no_service, StatusCode::UNAUTHORIZED),
        (&"unknown".to_owned(), StatusCode::UNAUTHORIZED),
    ] {
        let request = ApiRequest::get("/resource_providers").header("x-service-token", with);
        let answer = ask(&cluster.client_of(1).with_token(&brief), request).await;
        assert_eq!(answer.status, expected, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keystone_only_cached_tokens_are_accepted() {
    let mut keystone = keystone().await;
    // Longer than anything in this test takes.
    let cluster = cluster_remembering(&keystone, 3, Duration::from_secs(600), "").await;
    let known = keystone.token(OPERATOR).await.unwrap();
    let other = keystone.token(NOVA).await.unwrap();
    assert_eq!(status_of(&cluster, 1, &known).await, StatusCode::OK);
    keystone.stop();
    assert_eq!(status_of(&cluster, 1, &known).await, StatusCode::OK);
    let client = cluster.client_of(1).with_token(&other);
    let answer = ask_once(&client, ApiRequest::get("/resource_providers")).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    keystone.go_on().await.unwrap();
    assert_eq!(status_of(&cluster, 1, &other).await, StatusCode::OK);
}

/// OpenStack's client with a password gets a token from Keystone and the placement endpoint from
/// the catalog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openstack_client_finds_each_node_in_the_catalog() {
    let keystone = keystone().await;
    let cluster = cluster_of(&keystone).await;
    let regions = cluster.ids().into_iter().map(|id| {
        let url = format!("http://{}", cluster.place(id).api());
        (format!("region-{id}"), url)
    });
    let regions: Vec<_> = regions.collect();
    let places: Vec<_> = (regions
        .iter()
        .map(|(one, url)| (one.as_str(), url.as_str())))
    .collect();
    keystone.placement(&places).await.unwrap();
    let programs = osc::programs(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let openstack = |who: TokenRequest<'_>, region: &str, words: &[&str]| {
        let mut command = Command::new(programs.join("openstack"));
        command
            .env_clear()
            .args(["--os-auth-url", &keystone.url(), "--os-region-name", region])
            .args(["--os-username", who.user, "--os-password", who.password])
            .args([
                "--os-user-domain-id",
                "default",
                "--os-project-domain-id",
                "default",
            ])
            .args(["--os-project-name", who.project.unwrap()])
            .args(["--os-placement-api-version", "1.39"])
            .args(words);
        python::run(&mut command)
    };
    openstack(
        OPERATOR,
        "region-1",
        &["resource", "provider", "create", "host"],
    )
    .unwrap();
    for (region, _) in &regions {
        let words = ["resource", "provider", "list", "-f", "value", "-c", "name"];
        assert_eq!(openstack(OPERATOR, region, &words).unwrap().trim(), "host");
    }
    let refused = openstack(MEMBER, "region-2", &["resource", "provider", "list"])
        .unwrap_err()
        .to_string();
    assert!(refused.contains("HTTP 403"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn access_rules_limit_an_application_credential() {
    let keystone = keystone().await;
    let cluster = cluster_with(&keystone, 1, "").await;
    let rules = json!([
        {"service": "placement", "method": "GET", "path": "/resource_providers"},
        {"service": "placement", "method": "GET", "path": "/traits/*"},
        {"service": "compute", "method": "GET", "path": "/**"},
    ]);
    let token = keystone.restricted_token(OPERATOR, &rules).await.unwrap();
    let client = cluster.client_of(1).with_token(&token);
    for (request, expected) in [
        (
            ApiRequest::get("/resource_providers?name=x"),
            StatusCode::OK,
        ),
        (
            ApiRequest::get("/traits/COMPUTE_NODE"),
            StatusCode::NO_CONTENT,
        ),
        (ApiRequest::get("/traits"), StatusCode::UNAUTHORIZED),
        (ApiRequest::get("/usages"), StatusCode::UNAUTHORIZED),
        (
            ApiRequest::delete("/traits/CUSTOM_X"),
            StatusCode::UNAUTHORIZED,
        ),
    ] {
        let answer = ask(&client, request).await;
        assert_eq!(answer.status, expected, "{answer:?}");
    }
}
