//! Several clouds in one cluster are isolated from each other.

use std::fs;

use futures::future::join_all;
use http::StatusCode;
use placement_client::{ApiRequest, ApiResponse, Client, Inventory, Lines, NewProvider};
use placement_tests::backups::{back_up, restored};
use placement_tests::cluster::Cluster;
use placement_tests::ports::Ports;
use placement_tests::wait::PATIENCE;
use serde_json::{Value, json};
use uuid::Uuid;

const HOST: Uuid = Uuid::from_u128(0xa);
const SERVER: Uuid = Uuid::from_u128(0xb);

/// Settings of two partitions. Routes are not settings: the cluster replicates them.
const TWO: &str = r#"
    [[partitions]]
    name = "north"
    region = "upper"

    [[partitions]]
    name = "south"
    listen = "127.0.0.1:0"
"#;

/// A cloud as its clients address it.
#[derive(Clone)]
struct Cloud {
    client: Client,
    host: Option<&'static str>,
}

impl Cloud {
    async fn ask(&self, request: ApiRequest) -> ApiResponse {
        let request = match self.host {
            Some(host) => request.header("host", host),
            None => request,
        };
        self.client.request_once(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.ask(ApiRequest::get(path)).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
        answer.json().unwrap()
    }

    async fn done(&self, request: ApiRequest) -> ApiResponse {
        let answer = self.ask(request).await;
        assert!(answer.status.is_success(), "{:?}", answer.body);
        answer
    }

    /// Names of all providers.
    async fn hosts(&self) -> Vec<String> {
        let found = self.get("/resource_providers").await;
        let mut names: Vec<_> = found["resource_providers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Creates one host of this name with `vcpus` processors and a server that uses `taken` of
    /// them.
    async fn furnish(&self, name: &str, vcpus: u64, taken: u64) -> ApiResponse {
        let host = json!({"uuid": HOST, "name": name});
        let post = ApiRequest::post("/resource_providers").json(&host);
        let made = self.done(post).await;
        let offer = json!({
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": vcpus}},
        });
        let put = ApiRequest::put(&format!("/resource_providers/{HOST}/inventories"));
        self.done(put.json(&offer)).await;
        self.claim(taken).await;
        made
    }

    async fn claim(&self, vcpus: u64) {
        let claim = json!({
            "allocations": {HOST.to_string(): {"resources": {"VCPU": vcpus}}},
            "project_id": "p", "user_id": "u", "consumer_generation": null,
            "consumer_type": "INSTANCE",
        });
        let put = ApiRequest::put(&format!("/allocations/{SERVER}"));
        self.done(put.json(&claim)).await;
    }

    /// Number of processors in use.
    async fn used(&self) -> u64 {
        let path = format!("/resource_providers/{HOST}/usages");
        self.get(&path).await["usages"]["VCPU"].as_u64().unwrap()
    }

    /// Number of hosts offered to a request for `vcpus` processors.
    async fn candidates(&self, vcpus: u64) -> usize {
        let path = format!("/allocation_candidates?resources=VCPU:{vcpus}");
        let found = self.get(&path).await;
        found["allocation_requests"].as_array().unwrap().len()
    }
}

/// The default partition and two more, through one node.
fn clouds(cluster: &Cluster, node: u64) -> [Cloud; 3] {
    let client = cluster.client_of(node);
    let cloud = |client, host| Cloud { client, host };
    [
        cloud(client.clone(), None),
        cloud(client.clone().with_prefix("/north/placement"), None),
        cloud(client, Some("south.EXAMPLE:8778")),
    ]
}

/// Whether a command succeeded, and its output.
fn ctl(cluster: &Cluster, arguments: &[&str]) -> (bool, String) {
    let output = cluster.placementctl(arguments).unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn without_a_majority_creating_a_partition_reports_one_outcome() {
    let config = "[cluster]\nwait_ms = 1500\n";
    let mut cluster = Cluster::start_with(3, config).await.unwrap();
    cluster.kill_9(2);
    cluster.kill_9(3);
    let create = ["partitions", "create", "south", "--host", "south.example"];
    let refused = cluster.placementctl(&create).unwrap();
    assert!(!refused.status.success(), "{refused:?}");
    let words = String::from_utf8(refused.stderr).unwrap();
    let is_known = words.contains("nothing was committed");
    let is_unknown = words.contains("outcome of the write is unknown");
    assert!(is_known != is_unknown, "{words}");
}

#[tokio::test]
async fn clouds_with_the_same_uuids_are_isolated() {
    let mut cluster = Cluster::start_with(3, TWO).await.unwrap();
    let [default, north, south] = clouds(&cluster, 1);
    let made = cluster.create_partition("north", &[], &["/north/placement"]);
    made.await.unwrap();
    let made = cluster.create_partition("south", &["South.example"], &[]);
    made.await.unwrap();
    let (done, words) = ctl(&cluster, &["partitions", "create", "north"]);
    assert!(
        !done && words.contains("partition north already exists"),
        "{words}"
    );

    let made = default.furnish("host", 10, 1).await;
    let location = made.header("location").unwrap();
    assert!(location.ends_with(&format!(
        ":{}/resource_providers/{HOST}",
        cluster.place(1).base_port
    )));
    let made = north.furnish("host", 20, 2).await;
    let location = made.header("location").unwrap();
    assert!(
        location.ends_with(&format!("/north/placement/resource_providers/{HOST}")),
        "{location}"
    );
    let made = south.furnish("host", 30, 3).await;
    assert_eq!(
        made.header("location").unwrap().to_lowercase(),
        format!("http://south.example:8778/resource_providers/{HOST}")
    );
    north.done(ApiRequest::put("/traits/CUSTOM_NORTHERN")).await;

    for node in cluster.ids() {
        let [default, north, south] = clouds(&cluster, node);
        for (cloud, vcpus, used) in [(&default, 10, 1), (&north, 20, 2), (&south, 30, 3)] {
            assert_eq!(cloud.hosts().await, ["host"]);
            assert_eq!(cloud.used().await, used);
            assert_eq!(cloud.candidates(vcpus - used).await, 1);
            assert_eq!(cloud.candidates(vcpus - used + 1).await, 0);
        }
        let links = north.get(&format!("/resource_providers/{HOST}")).await["links"].clone();
        for link in links.as_array().unwrap() {
            let href = link["href"].as_str().unwrap();
            assert!(
                href.starts_with("/north/placement/resource_providers/"),
                "{href}"
            );
        }
        let northern = ApiRequest::get("/traits/CUSTOM_NORTHERN");
        let known = [
            default.ask(northern.clone()).await.status.as_u16(),
            north.ask(northern.clone()).await.status.as_u16(),
            south.ask(northern).await.status.as_u16(),
        ];
        assert_eq!(known, [404, 204, 404]);
    }

    let (_, words) = ctl(&cluster, &["partitions"]);
    assert!(words.contains("those below /north/placement"), "{words}");
    assert!(words.contains("those for host south.example"), "{words}");
    let (_, words) = ctl(&cluster, &["status"]);
    assert!(
        words.contains("partitions default, north, south\n"),
        "{words}"
    );
    let numbers = cluster.metrics(1).await;
    for line in [
        "placement_partition_providers{partition=\"north\"} 1",
        "placement_partition_consumers{partition=\"south\"} 1",
        "placement_partition_requests_total{partition=\"south\"} ",
        "placement_partition_providers{partition=\"default\"} 1",
    ] {
        assert!(numbers.contains(line), "{line}: {numbers}");
    }

    // Reduces an inventory below its usage, in one of the partitions.
    let less = json!({
        "resource_provider_generation": 2,
        "inventories": {"VCPU": {"total": 1}},
    });
    let put = ApiRequest::put(&format!("/resource_providers/{HOST}/inventories"));
    north.done(put.json(&less)).await;
    let line = format!("in partition north: provider {HOST}: 2 of VCPU used, capacity 1");
    cluster
        .until_shown(&["check"], 0, &[&line, "sound: "])
        .await;

    // All nodes stop and start again.
    for id in cluster.ids() {
        cluster.stop_node(id).await.unwrap();
    }
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let [default, north, south] = clouds(&cluster, 2);
    for (cloud, used) in [(&default, 1), (&north, 2), (&south, 3)] {
        assert_eq!(cloud.used().await, used);
    }
    cluster.assert_equal_states().await;

    // A backup contains all partitions, and so does the restored cluster.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    assert!(back_up(&cluster, &file).status.success());
    let (again, _) = restored(&file, &[]).await;
    let found = again.admin_of(1).partitions().await.unwrap();
    let found: Vec<_> = (found.iter())
        .map(|one| (one.name.as_str(), one.providers, one.consumers))
        .collect();
    assert_eq!(found, [("default", 1, 1), ("north", 1, 1), ("south", 1, 1)]);
    drop(again);

    let (done, words) = ctl(&cluster, &["partitions", "delete", "south"]);
    assert!(!done && words.contains("--force"), "{words}");
    let (done, words) = ctl(&cluster, &["partitions", "delete", "default", "--force"]);
    assert!(!done && words.contains("cannot be deleted"), "{words}");
    let (done, words) = ctl(&cluster, &["partitions", "delete", "south", "--force"]);
    assert!(done, "{words}");
    let gone = south.ask(ApiRequest::get("/resource_providers")).await;
    // 421 if the node has applied the deletion. Otherwise it still routes the request to the
    // partition, and the linearizable read then finds no partition: 503.
    assert!([421, 503].contains(&gone.status.as_u16()), "{gone:?}");
    let (done, words) = ctl(&cluster, &["partitions", "delete", "south"]);
    assert!(
        !done && words.contains("there is no partition south"),
        "{words}"
    );
    // A new partition of the same name is empty.
    let made = cluster.create_partition("south", &["south.example"], &[]);
    made.await.unwrap();
    assert_eq!(south.hosts().await, Vec::<String>::new());
    assert_eq!(default.used().await + north.used().await, 3);
    for id in cluster.ids() {
        cluster.kill_9(id);
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let [default, north, south] = clouds(&cluster, 3);
    assert_eq!(south.hosts().await, Vec::<String>::new());
    assert_eq!(default.used().await + north.used().await, 3);
    cluster.assert_equal_states().await;
}

/// The nodes know the partitions from the replicated state only; no configuration file mentions
/// them.
#[tokio::test]
async fn requests_without_a_partition_are_refused_by_every_node() {
    let cluster = Cluster::start_with(3, "").await.unwrap();
    let made = cluster.create_partition("south", &["south.example"], &[]);
    made.await.unwrap();
    let made = cluster.create_partition("north", &[], &["/north/placement"]);
    made.await.unwrap();

    for node in cluster.ids() {
        let [default, north, south] = clouds(&cluster, node);
        let unrouted = |prefix: &str, host| Cloud {
            client: cluster.client_of(node).with_prefix(prefix),
            host,
        };
        let misspelt = unrouted("", Some("sout.example"));
        let elsewhere = unrouted("/nroth/placement", None);
        let name = |cloud: &str| json!({"name": format!("{cloud} {node}")});
        let path = format!("/resource_providers/{HOST}");
        for (cloud, status, advice) in [(&misspelt, 421, "--host"), (&elsewhere, 503, "--prefix")] {
            for request in [
                ApiRequest::post("/resource_providers").json(&name("lost")),
                ApiRequest::get(&path),
            ] {
                let answer = cloud.ask(request.microversion("1.39")).await;
                assert_eq!(answer.status.as_u16(), status, "{:?}", answer.body);
                let error: Value = answer.json().unwrap();
                let error = &error["errors"][0];
                assert_eq!(error["code"], "placement.partition.misdirected");
                let detail = error["detail"].as_str().unwrap();
                assert!(detail.contains(advice), "{detail}");
            }
        }
        for (cloud, of) in [(&default, "default"), (&north, "north"), (&south, "south")] {
            let post = ApiRequest::post("/resource_providers").json(&name(of));
            cloud.done(post).await;
        }
        // Health checks are answered at any address.
        let health = misspelt.ask(ApiRequest::get("/readyz")).await;
        assert_eq!(health.status, StatusCode::OK);
    }
    let of_all_nodes = |of: &str| {
        (1..=3)
            .map(|node| format!("{of} {node}"))
            .collect::<Vec<_>>()
    };
    let [default, north, south] = clouds(&cluster, 1);
    for (cloud, of) in [(&default, "default"), (&north, "north"), (&south, "south")] {
        assert_eq!(cloud.hosts().await, of_all_nodes(of));
    }

    let (_, words) = ctl(&cluster, &["status"]);
    assert!(words.contains("no node makes backups"), "{words}");
    assert!(words.contains("Set cluster_id = "), "{words}");
    assert!(!words.contains("must be the same"), "{words}");

    // Routes change on all nodes at once, and a request never matches two partitions.
    for (arguments, words) in [
        (
            &["partitions", "create", "west", "--host", "SOUTH.example."][..],
            "host south.example already belongs to partition south",
        ),
        (
            &["partitions", "create", "west", "--prefix", "/north"],
            "path /north already belongs to partition north",
        ),
        (
            &["partitions", "create", "west", "--prefix", "/traits/x"],
            "a path segment of the default partition's API",
        ),
        (
            &["partitions", "create", "west", "--host", "a:80"],
            "without a port",
        ),
        (
            &["partitions", "route", "default"],
            "has no host of its own",
        ),
        (
            &["partitions", "route", "west", "--host", "west.example"],
            "there is no partition west",
        ),
    ] {
        let (done, text) = ctl(&cluster, arguments);
        assert!(!done && text.contains(words), "{arguments:?}: {text}");
    }
    let route = ["partitions", "route", "south", "--host", "east.example"];
    let (done, words) = ctl(&cluster, &route);
    assert!(done, "{words}");
    for node in cluster.ids() {
        let [_, _, south] = clouds(&cluster, node);
        let old = south.ask(ApiRequest::get("/resource_providers")).await;
        assert!([421, 503].contains(&old.status.as_u16()), "{old:?}");
        cluster.assert_equal_states().await;
        let old = south.ask(ApiRequest::get("/resource_providers")).await;
        assert_eq!(old.status, StatusCode::MISDIRECTED_REQUEST);
        let host = Some("east.example");
        let client = cluster.client_of(node);
        assert_eq!(Cloud { client, host }.hosts().await, of_all_nodes("south"));
    }
}

#[tokio::test]
async fn cloud_has_its_own_policy_limits_listener_and_audit_records() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("closed.yaml");
    fs::write(&policy, "\"placement:resource_providers:list\": \"!\"\n").unwrap();
    let trail = directory.path().join("audit.log");
    let ports = Ports::claim(1);
    let own = format!("127.0.0.1:{}", ports.first());
    let config = format!(
        "[audit]\nto = \"file\"\nfile = {trail:?}\n\
         [[partitions]]\nname = \"closed\"\npolicy_file = {policy:?}\n\
         [[partitions]]\nname = \"narrow\"\nlisten = \"{own}\"\nin_flight = 1\n"
    );
    let cluster = Cluster::start_with(1, &config).await.unwrap();
    let default = cluster.client_of(1);
    let closed = default.clone().with_prefix("/closed");
    let narrow = Client::new([own]).unwrap();
    let list = ApiRequest::get("/resource_providers").microversion("1.39");
    let answer = narrow.request_once(list).await.unwrap();
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    let error: Value = answer.json().unwrap();
    let error = &error["errors"][0];
    assert_eq!(error["code"], "placement.partition.not_found");
    let detail = error["detail"].as_str().unwrap();
    let advice = "placementctl partitions create narrow";
    assert!(detail.contains(advice), "{detail}");
    let made = cluster.create_partition("closed", &[], &["/closed"]);
    made.await.unwrap();
    cluster.create_partition("narrow", &[], &[]).await.unwrap();

    let list = || ApiRequest::get("/resource_providers");
    let status = |client: &Client| {
        let client = client.clone();
        async move { client.request_once(list()).await.unwrap().status.as_u16() }
    };
    assert_eq!(status(&closed).await, 403);
    assert_eq!(status(&default).await, 200);

    // The limit of one cloud does not affect another.
    let write = |client: &Client, name: u32| {
        let (client, path) = (client.clone(), format!("/traits/CUSTOM_{name}"));
        let answer = async move { client.request_once(ApiRequest::put(&path)).await };
        async move { answer.await.unwrap().status.as_u16() }
    };
    let all = join_all((0..40).map(|name| write(&narrow, name))).await;
    // Later requests are served, as checked below.
    assert!(all.contains(&429), "{all:?}");
    assert!(
        all.iter().all(|status| [201, 429].contains(status)),
        "{all:?}"
    );
    let all = join_all((0..40).map(|name| write(&default, name))).await;
    assert!(all.iter().all(|status| *status == 201), "{all:?}");

    let patient = narrow.clone().with_patience(PATIENCE);
    patient
        .create_provider(&NewProvider::named("n").uuid(HOST))
        .await
        .unwrap();
    patient
        .replace_inventories(HOST, 0, [("VCPU", Inventory::with_total(1))])
        .await
        .unwrap();
    default
        .create_provider(&NewProvider::named("d"))
        .await
        .unwrap();
    let lines = fs::read_to_string(&trail).unwrap();
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |partition: Option<&str>, method: &str| {
        let is_one = |record: &&Value| {
            record["listener"] == "api"
                && record["partition"].as_str() == partition
                && record["method"] == method
        };
        records.iter().filter(is_one).count()
    };
    assert_eq!(of(None, "POST"), 1, "{records:#?}");
    assert!(of(Some("narrow"), "POST") >= 1, "{records:#?}");
    assert_eq!(of(Some("closed"), "GET"), 1, "the forbidden request");
}

/// Lines of a stream, up to the first line with this text.
async fn lines_up_to(stream: &mut Lines, text: &str) -> String {
    loop {
        let line = stream.next().await.unwrap().expect("the stream continues");
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(text) {
            return line;
        }
    }
}

#[tokio::test]
async fn recreated_partition_shows_nothing_of_the_deleted_one() {
    const SECRET: &str = "host-of-the-first-tenant";
    let ports = Ports::claim(1);
    let own = format!("127.0.0.1:{}", ports.first());
    // The settings and the listener of a deleted partition remain.
    let config = format!("[[partitions]]\nname = \"listed\"\nlisten = \"{own}\"\n");
    let cluster = Cluster::start_with(1, &config).await.unwrap();
    let listener = Client::new([own]).unwrap();
    let operators = |name: &str| {
        let (client, host) = (cluster.admin_of(1).placement(name), None);
        Cloud { client, host }
    };
    for name in ["listed", "plain"] {
        let prefix = format!("/{name}");
        let below = Cloud {
            client: cluster.client_of(1).with_prefix(&prefix),
            host: None,
        };
        let create = async || {
            let prefixes = [prefix.as_str()];
            let created = cluster.create_partition(name, &[], &prefixes);
            created.await.unwrap();
        };
        create().await;
        let before = below
            .ask(ApiRequest::get("/traits"))
            .await
            .header("placement-index")
            .unwrap()
            .to_owned();
        let events = ApiRequest::get("/placementd/v1/events");
        let mut watching = below.client.lines(events).await.unwrap();
        lines_up_to(&mut watching, "snapshot_end").await;
        below.furnish(SECRET, 8, 1).await;
        assert_eq!(below.candidates(77).await, 0);
        lines_up_to(&mut watching, SECRET).await;
        let searches = below.get("/placementd/v1/searches").await;
        assert!(searches.to_string().contains("VCPU:77"), "{searches}");

        let (is_deleted, text) = ctl(&cluster, &["partitions", "delete", name, "--force"]);
        assert!(is_deleted, "{text}");
        create().await;
        lines_up_to(&mut watching, "partition_gone").await;
        let mut ways = vec![below, operators(name)];
        if name == "listed" {
            let client = listener.clone();
            ways.push(Cloud { client, host: None });
        }
        for way in ways {
            let searches = way.get("/placementd/v1/searches").await;
            assert_eq!(searches["searches"], json!([]), "{name}");
            let history = way.get("/placementd/v1/history").await;
            assert!(!history.to_string().contains(SECRET), "{name}: {history}");
            let after = format!("/placementd/v1/events?follow=false&after={before}");
            let mut replayed = way.client.lines(ApiRequest::get(&after)).await.unwrap();
            while let Some(line) = replayed.next().await.unwrap() {
                let line = String::from_utf8_lossy(&line).into_owned();
                assert!(!line.contains(SECRET), "{name}: {line}");
            }
        }
    }
}
