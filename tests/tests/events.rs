//! A watcher that moves from one node to another gets each change once. Reads of earlier states use
//! the same positions.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use placement_client::{ApiRequest, CandidateQuery, Client, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::wait::PATIENCE;
use serde_json::{Value, json};
use uuid::Uuid;

/// A stream of events of a node, line by line.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(address: &str, query: &str) -> Self {
        Self::below(address, "", query)
    }

    /// Opens a stream of the partition below a prefix.
    fn below(address: &str, prefix: &str, query: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // With HTTP/1.0 the answer is not chunked.
        let head = format!(
            "GET {prefix}/placementd/v1/events?{query} HTTP/1.0\r\nX-Auth-Token: admin\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut events = Self(BufReader::new(stream));
        let status = events.line();
        assert!(status.contains(" 200 "), "{status}");
        while !events.line().trim_end().is_empty() {}
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// The next line; `None` at the end.
    fn next(&mut self) -> Option<Value> {
        let line = self.line();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }
}

/// Allocations that a watcher has seen, by consumer, and the position that it has reached.
#[derive(Default)]
struct Seen {
    made: BTreeMap<String, usize>,
    token: String,
}

impl Seen {
    fn take(&mut self, line: &Value) {
        for change in line["changes"].as_array().into_iter().flatten() {
            assert_eq!(change["before"], Value::Null, "{change}");
            let consumer = change["key"]["consumer"].as_str().unwrap();
            *self.made.entry(consumer.to_owned()).or_default() += 1;
        }
        for member in ["progress", "next", "snapshot_end"] {
            if let Some(token) = line[member].as_str() {
                self.token = token.to_owned();
            }
        }
    }

    /// Follows a stream until it has seen this many allocations and the position after them.
    fn follow(&mut self, events: &mut Events, allocations: usize) {
        while self.made.len() < allocations {
            self.take(&events.next().expect("the stream continues"));
        }
        self.take(&events.next().expect("the stream reports its position"));
    }
}

async fn claim(client: &Client) -> String {
    let query = CandidateQuery::resources(&[("VCPU", 1)]).limit(1);
    let found = client.allocation_candidates(&query).await.unwrap();
    let consumer = Uuid::new_v4();
    let claim = found.allocation_requests[0].claim("p", "u");
    client.put_allocations(consumer, &claim).await.unwrap();
    consumer.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn watcher_continues_at_another_node_and_sees_each_allocation_once() {
    let mut cluster = Cluster::start_with(3, "[api]\ndrain_notice_ms = 0\n")
        .await
        .unwrap();
    let client = cluster.client();
    let new = NewProvider::named("cmp-0");
    let host = client.create_provider(&new).await.unwrap().uuid;
    let stock = [("VCPU", Inventory::with_total(1000))];
    client.replace_inventories(host, 0, stock).await.unwrap();

    let mut claimed = Vec::new();
    let mut seen = Seen::default();
    let mut first = Events::open(&cluster.place(1).api(), "kind=allocation");
    while seen.token.is_empty() {
        seen.take(&first.next().unwrap());
    }
    for _ in 0..20 {
        claimed.push(claim(&client).await);
    }
    tokio::task::block_in_place(|| seen.follow(&mut first, 20));

    // The node crashes; a stream of another node continues from there.
    for _ in 0..20 {
        claimed.push(claim(&client).await);
    }
    drop(first);
    let after = format!("kind=allocation&after={}", seen.token);
    let mut second = Events::open(&cluster.place(2).api(), &after);
    tokio::task::block_in_place(|| seen.follow(&mut second, 40));

    // A node that stops ends the stream with the position from which to continue.
    let stopping = cluster.stop_node(2);
    let (stopped, last) = tokio::join!(
        stopping,
        tokio::task::spawn_blocking(move || {
            let lines = std::iter::from_fn(|| second.next());
            lines.last().expect("it ends with a line")
        })
    );
    stopped.unwrap();
    let last = last.unwrap();
    assert_eq!(last["end"], "drain", "{last}");
    seen.take(&last);
    for _ in 0..10 {
        claimed.push(claim(&cluster.client_of(1)).await);
    }
    let after = format!("kind=allocation&after={}", seen.token);
    let mut third = Events::open(&cluster.place(3).api(), &after);
    tokio::task::block_in_place(|| seen.follow(&mut third, 50));
    let expected: BTreeMap<_, _> = claimed.into_iter().map(|consumer| (consumer, 1)).collect();
    assert_eq!(seen.made, expected);
}

#[tokio::test]
async fn earlier_states_are_readable_after_a_restart() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    let host = client
        .create_provider(&NewProvider::named("cmp-0"))
        .await
        .unwrap()
        .uuid;
    let stock = [("VCPU", Inventory::with_total(8))];
    client.replace_inventories(host, 0, stock).await.unwrap();
    let used = async |client: &Client, as_of: &str| {
        let path = format!("/resource_providers/{host}/usages");
        let ask = ApiRequest::get(&path).header("placement-as-of", as_of);
        let found: Value = client.fetch(ask).await.unwrap();
        found["usages"]["VCPU"].as_u64().unwrap()
    };
    let mut moments = Vec::new();
    for number in 1..=4 {
        claim(&client).await;
        let history: Value = client
            .fetch(ApiRequest::get("/placementd/v1/history?limit=1"))
            .await
            .unwrap();
        let entry = &history["history"][0];
        moments.push((entry["index"].clone(), number));
        moments.push((entry["at"].clone(), number));
    }
    cluster.stop_node(1).await.unwrap();
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    let client = cluster.client();
    for (moment, number) in moments {
        assert_eq!(
            used(&client, moment.as_str().unwrap()).await,
            number,
            "{moment}"
        );
    }
    let history: Value = client
        .fetch(ApiRequest::get("/placementd/v1/history?kind=allocation"))
        .await
        .unwrap();
    let entries = history["history"].as_array().unwrap();
    assert_eq!(entries.len(), 4, "{history}");
    assert_eq!(history["next"], json!(null));
}

#[tokio::test]
async fn partition_sees_its_own_changes_and_ends_with_its_streams() {
    let cluster = Cluster::start(1).await.unwrap();
    cluster
        .create_partition("north", &[], &["/north"])
        .await
        .unwrap();
    let client = cluster.client();
    let create = async |path: &str, name: &str| {
        let ask = ApiRequest::post(path)
            .json(&json!({ "name": name }))
            .header("openstack-api-version", "placement 1.39");
        let _: Value = client.fetch(ask).await.unwrap();
    };
    let address = cluster.place(1).api();
    let [mut own, mut north] = ["", "/north"].map(|prefix| {
        let mut events = Events::below(&address, prefix, "kind=provider");
        while events.next().unwrap()["snapshot_end"].is_null() {}
        events
    });
    create("/resource_providers", "mine").await;
    create("/north/resource_providers", "theirs").await;
    create("/resource_providers", "mine too").await;
    let name = |line: &Value| {
        line["changes"][0]["after"]["name"]
            .as_str()
            .map(str::to_owned)
    };
    let mut names = Vec::new();
    while names.len() < 2 {
        names.extend(name(&own.next().unwrap()));
    }
    assert_eq!(names, ["mine", "mine too"]);
    let theirs = std::iter::from_fn(|| north.next()).find_map(|line| name(&line));
    assert_eq!(theirs.as_deref(), Some("theirs"));
    for (prefix, count) in [("", 2), ("/north", 1)] {
        let path = format!("{prefix}/placementd/v1/history?kind=provider");
        let history: Value = client.fetch(ApiRequest::get(&path)).await.unwrap();
        assert_eq!(
            history["history"].as_array().unwrap().len(),
            count,
            "{history}"
        );
    }
    let path = "/north/resource_providers";
    let ask = ApiRequest::get(path).header("placement-as-of", "2001-01-01T00:00:00Z");
    let before: Value = client.fetch(ask).await.unwrap();
    assert_eq!(before["resource_providers"], json!([]));
    let admin = cluster.admin_of(1);
    admin.delete_partition("north", true).await.unwrap();
    let last = std::iter::from_fn(|| north.next()).last().unwrap();
    assert_eq!(last["end"], "partition_gone", "{last}");
}
