//! Operators use the REST API without a token, even if Keystone is down or there is no leader.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use http::StatusCode;
use placement_client::{Admin, ApiRequest, Client, Consistency, NewProvider};
use placement_tests::cluster::{Cluster, HEALTHY_LIMIT};
use placement_tests::wait::within;
use serde_json::{Value, json};

/// No server listens at Keystone's address.
const WITHOUT_KEYSTONE: &str = "[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"http://127.0.0.1:1\"\n\
    username = \"placement\"\npassword = \"secret\"\n[audit]\nto = \"stderr\"\n[cluster]\nwait_ms = 2000\n";

async fn cluster(nodes: u64) -> Cluster {
    Cluster::start_with(nodes, WITHOUT_KEYSTONE).await.unwrap()
}

/// A client of the Unix socket of a node.
fn operator(cluster: &Cluster, node: u64) -> Admin {
    let socket = cluster.data_dir(node).join("admin.sock");
    Admin::new(Client::new([format!("unix:{}", socket.display())]).unwrap())
}

/// A client of another node, through this one.
async fn through(admin: &Admin, node: u64) -> Admin {
    let members = admin.status().await.unwrap().members;
    let member = members.iter().find(|member| member.id == node).unwrap();
    admin.for_member(member, Duration::from_secs(20)).unwrap()
}

/// Creates a provider, with retries: a new cluster may have no leader for a moment.
async fn create(api: &Client, name: &str) {
    let created = within(HEALTHY_LIMIT, async || {
        api.create_provider(&NewProvider::named(name)).await
    });
    created.await.unwrap();
}

async fn names(api: &Client) -> Vec<String> {
    let providers = api.providers(&[]).await.unwrap();
    let mut names: Vec<_> = providers.into_iter().map(|one| one.name).collect();
    names.sort();
    names
}

/// Users in the audit records of API writes that a node has logged.
fn writers(cluster: &Cluster, node: u64) -> Vec<String> {
    let log = cluster.log(node, 100_000);
    let records = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let writes = records.filter(|record: &Value| {
        record["kind"] == "audit" && record["method"] == "POST" && record["operation"].is_string()
    });
    let user = |record: Value| record["user"].as_str().unwrap_or("unknown").to_owned();
    writes.map(user).collect()
}

#[tokio::test]
async fn operators_use_each_partition_of_each_node_without_keystone() {
    let cluster = cluster(3).await;
    let admin = operator(&cluster, 1);
    let api = admin.placement("default");
    create(&api, "host-1").await;
    let relayed = through(&admin, 2).await.placement("default");
    create(&relayed, "host-2").await;
    let own = through(&admin, 1).await.placement("default");
    create(&own, "host-3").await;
    for api in [&api, &relayed, &own] {
        assert_eq!(names(api).await, ["host-1", "host-2", "host-3"]);
    }

    // The relay passes everything on: query, headers in both directions, and the answering node;
    // links stay below the path of the request.
    let one = ApiRequest::get("/resource_providers").query("name", "host-2");
    let one = relayed.call(one.microversion("1.0")).await.unwrap();
    assert_eq!(one.header("placement-node"), Some("2"));
    assert_eq!(one.header("openstack-api-version"), Some("placement 1.0"));
    let kept = Some("linearizable");
    assert_eq!(one.header("placement-effective-consistency"), kept);
    let one = one.json::<Value>().unwrap();
    let [host] = &one["resource_providers"].as_array().unwrap()[..] else {
        panic!("{one}");
    };
    let uuid = host["uuid"].as_str().unwrap();
    let below = format!("/v1/placement/default/resource_providers/{uuid}");
    assert_eq!(host["links"][0]["href"], below);
    let listed: Value = relayed
        .fetch(ApiRequest::get("/placementd/v1"))
        .await
        .unwrap();
    assert_eq!(listed["version"], 1);
    let capacity = ApiRequest::get("/placementd/v1/capacity");
    let capacity: Value = relayed.fetch(capacity).await.unwrap();
    assert_eq!(capacity["by"], "class");
    let root: Value = api.fetch(ApiRequest::get("/")).await.unwrap();
    assert!(root["versions"].is_array());
    let missing = relayed.call(ApiRequest::get("/nothing")).await;
    assert_eq!(missing.unwrap_err().status(), Some(StatusCode::NOT_FOUND));

    // Other partitions, and a partition that does not exist.
    cluster
        .create_partition("north", &[], &["/north"])
        .await
        .unwrap();
    for admin in [admin.clone(), through(&admin, 3).await] {
        assert_eq!(names(&admin.placement("north")).await, [""; 0]);
        let none = admin.placement("nowhere").providers(&[]).await.unwrap_err();
        assert_eq!(none.status(), Some(StatusCode::NOT_FOUND));
        assert!(none.to_string().contains("no partition nowhere"), "{none}");
    }

    // The size of a relayed body is limited.
    let long = json!({ "name": "x".repeat(1 << 20) });
    let long = ApiRequest::post("/resource_providers").json(&long);
    let refused = relayed.call(long).await.unwrap_err();
    assert_eq!(refused.status(), Some(StatusCode::PAYLOAD_TOO_LARGE));
    assert!(refused.to_string().contains("node 2 itself"), "{refused}");

    // Each write has one record, which names the operator.
    cluster
        .until_logged(&[2], "\"user\":\"operator:node 1\"")
        .await;
    assert_eq!(writers(&cluster, 1), ["operator", "operator"]);
    assert_eq!(writers(&cluster, 2), ["operator:node 1"]);
}

#[tokio::test]
async fn operators_read_locally_without_a_quorum() {
    let mut cluster = cluster(3).await;
    let admin = operator(&cluster, 1);
    create(&admin.placement("default"), "host").await;
    let member = through(&admin, 2).await;
    names(&member.placement("default")).await;
    cluster.kill_9(3);
    cluster.kill_9(2);
    let api = admin.placement("default").with_patience(Duration::ZERO);
    let local = api.clone().with_consistency(Consistency::Local);
    assert_eq!(names(&local).await, ["host"]);
    let providers = ApiRequest::get("/resource_providers");
    let refused = api.request_once(providers.clone()).await.unwrap();
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    // The node behind the relay has crashed.
    let away = member
        .placement("default")
        .with_consistency(Consistency::Local)
        .request_once(providers)
        .await
        .unwrap();
    assert_eq!(away.status, StatusCode::SERVICE_UNAVAILABLE);
}

/// Headers with which a client of the API could claim to be an operator.
const PRETENCES: &str = "X-Identity-Status: Confirmed\r\nX-User-Id: operator\r\nX-User: operator\r\n\
    X-Roles: admin,service,placement_reader\r\nX-Operator: operator\r\nPlacement-Operator: operator\r\n\
    Placement-Relayed: 1\r\nCookie: operator=operator\r\nAuthorization: Basic b3BlcmF0b3I6\r\n";

/// Status line of the answer to a request with these headers.
fn pretending(address: &str, path: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    let request = format!("{head}{PRETENCES}{more}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn api_client_cannot_impersonate_an_operator() {
    let cluster = cluster(1).await;
    let address = cluster.place(1).api();
    for path in [
        "/resource_providers",
        "/placementd/v1",
        "/v1/placement/default/resource_providers",
        "/v1/nodes/1/placement/default/resource_providers",
        "/v1/status",
        "//v1/placement/default/traits",
    ] {
        let status = pretending(&address, path, "");
        assert_eq!(status, "HTTP/1.1 401 Unauthorized", "{path}");
        let status = pretending(&address, path, "X-Auth-Token: operator\r\n");
        assert_eq!(status, "HTTP/1.1 503 Service Unavailable", "{path}");
    }
    // A request on the admin listener counts as an operator's, whatever headers it has.
    let admin = cluster.place(1).admin();
    let path = "/v1/placement/default/resource_providers";
    let status = pretending(&admin, path, "X-Roles: none\r\nX-Auth-Token: mallory\r\n");
    assert_eq!(status, "HTTP/1.1 200 OK");
}
