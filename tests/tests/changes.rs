//! `placementctl` follows changes across nodes, lists past changes and reads earlier states.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use placement_tests::backups::refusal;
use placement_tests::cluster::Cluster;
use placement_tests::program::Program;
use placement_tests::wait::PATIENCE;
use placement_tests::{binaries, host};
use serde_json::{Value, json};
use uuid::Uuid;

/// A running `placementctl watch`, the changes that it prints to stdout, and its messages on
/// stderr.
struct Watch {
    _process: Program,
    lines: Receiver<String>,
    remarks: Receiver<String>,
}

/// Receives the lines of a stream as they are printed.
fn printed(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        (BufReader::new(from).lines())
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    lines
}

fn next(lines: &Receiver<String>) -> String {
    let next = || lines.recv_timeout(PATIENCE);
    tokio::task::block_in_place(next).unwrap()
}

impl Watch {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        let endpoints: Vec<_> = cluster
            .ids()
            .iter()
            .map(|&id| cluster.place(id).admin())
            .collect();
        let mut command = Command::new(binaries::placementctl().unwrap());
        command.env("PLACEMENTCTL_ENDPOINT", endpoints.join(","));
        let command = command
            .arg("watch")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = printed(process.stdout.take().unwrap());
        let remarks = printed(process.stderr.take().unwrap());
        Self {
            _process: Program(process),
            lines,
            remarks,
        }
    }

    fn next(&self) -> String {
        next(&self.lines)
    }
}

fn last(lines: &str) -> Value {
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_watched_listed_and_read_back() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let host = host::with_processors(&cluster.client()).await;
    let bulk = cluster.ctl(&["bulk", "--kind", "inventory,provider", "--provider", "host"]);
    assert_eq!(bulk.lines().count(), 4, "{bulk}");
    let before = last(&bulk)["snapshot_end"].as_str().unwrap().to_owned();

    let filters = ["--kind", "allocation", "--provider", "host"];
    let people = Watch::start(&cluster, &[&["--after", &before], &filters[..]].concat());
    let raw = Watch::start(
        &cluster,
        &["--after", &before, "--kind", "consumer", "-o", "jsonl"],
    );
    let first = host::claim(&cluster.client(), host).await.unwrap();
    let line = people.next();
    let shown = format!("allocation consumer={first} resource_provider=host: claimed VCPU=1");
    assert!(line.ends_with(&shown), "{line}");
    // `watch` follows the first endpoint.
    cluster.kill_9(1);
    let client = cluster.client_in_order([2, 3]).with_patience(PATIENCE);
    let second = host::claim(&client, host).await.unwrap();
    assert!(people.next().contains(&second.to_string()));
    let mut consumers = Vec::new();
    while consumers.len() < 2 {
        let line: Value = serde_json::from_str(&raw.next()).unwrap();
        consumers.extend(
            line["changes"][0]["key"]["consumer"]
                .as_str()
                .map(str::to_owned),
        );
    }
    assert_eq!(consumers, [first.to_string(), second.to_string()]);

    let history = |more: &[&str]| cluster.ctl(&[&["history"], &filters[..], more].concat());
    let newest = history(&["-o", "jsonl", "--limit", "1"]);
    assert_eq!(last(&newest)["key"]["consumer"], second.to_string());
    let rows = history(&["-o", "csv", "--columns", "key,change"]);
    assert_eq!(rows.lines().count(), 3, "{rows}");
    assert!(history(&[]).ends_with("are no longer available\n"));
    // The standard traits of a new cluster do not fill the terminal.
    let cut = ["only the newest 50 changes are shown; use --limit"];
    let all = cluster.until_shown(&["history"], 0, &cut).await;
    assert_eq!(all.lines().count(), 52, "{all}");

    let held = |as_of: &str| cluster.ctl(&["consumers", "list", "-o", "name", "--as-of", as_of]);
    assert_eq!(held(&before), "");
    let at = last(&newest)["at"].as_str().unwrap().to_owned();
    assert_eq!(held(&at).lines().count(), 2);
    let refused = cluster
        .placementctl(&["consumers", "list", "--as-of", "yesterday"])
        .unwrap();
    assert_eq!(refused.status.code(), Some(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_reports_an_expired_token_and_continues() {
    let mut cluster = Cluster::start_with(1, "[raft]\nsnapshot_after = 5\n")
        .await
        .unwrap();
    let host = host::with_processors(&cluster.client()).await;
    let token = |lines: &str| last(lines)["snapshot_end"].as_str().unwrap().to_owned();
    let old = token(&cluster.ctl(&["bulk", "--kind", "class"]));
    for _ in 0..20 {
        host::claim(&cluster.client(), host).await.unwrap();
    }
    // A joining node receives the compacted log as a snapshot, so it only knows later changes.
    cluster.ctl_in_time(&["compact"]).await;
    cluster.add_place();
    cluster.admit(2).await.unwrap();
    cluster.start_node(2).unwrap();
    cluster.wait_ready(2).await.unwrap();

    let joined = cluster.place(2).admin();
    let asked = ["--endpoint", &joined, "--kind", "consumer", "--after", &old];
    // With `--sql` the command neither skips missing changes nor follows another cluster, since the
    // database would then be wrong.
    for (after, why) in [(&*old, "not kept any more"), ("9.9", "another history")] {
        let asked = [
            "events",
            "--endpoint",
            &joined,
            "--sql",
            "mysql",
            "--after",
            after,
        ];
        let refused = cluster.placementctl(&asked).unwrap();
        let error = refusal(&refused, 1);
        assert!(
            error.contains("are not available at this node") && error.contains(why),
            "{error}"
        );
    }
    let people = Watch::start(&cluster, &asked);
    let raw = Watch::start(&cluster, &[&asked[..], &["-o", "jsonl"]].concat());
    let remark = next(&people.remarks);
    let expected = format!("reset: changes after {old} are no longer available; resuming after ");
    assert!(remark.contains(&expected), "{remark}");
    let mut lines = Vec::new();
    while lines
        .last()
        .is_none_or(|line: &Value| line["snapshot_end"].is_null())
    {
        lines.push(serde_json::from_str(&raw.next()).unwrap());
    }
    assert!(lines[0]["reset"].is_string(), "{lines:?}");
    assert_eq!(lines[2]["kind"], "consumer", "no claim in {lines:?}");
    let consumer = host::claim(&cluster.client(), host).await.unwrap();
    for shown in [people.next(), raw.next()] {
        assert!(shown.contains(&consumer.to_string()), "{shown}");
    }
}

/// The request id leads from a consumer to Nova's request, whichever node Nova used.
#[tokio::test(flavor = "multi_thread")]
async fn claims_record_the_request_id_of_nova() {
    let cluster = Cluster::start(3).await.unwrap();
    let host = host::with_processors(&cluster.client()).await;
    let before = last(&cluster.ctl(&["bulk", "--kind", "provider"]));
    let before = before["snapshot_end"].as_str().unwrap();
    let watch = Watch::start(&cluster, &["--kind", "allocation", "--after", before]);
    let nova = format!("req-{}", Uuid::new_v4());
    let follower = cluster.client_of(cluster.followers().await.unwrap()[0]);
    let consumer = host::claim_for_request(&follower, host, &nova).await;
    for id in cluster.ids() {
        let client = cluster.client_of(id);
        assert_eq!(host::request_of(&client, consumer).await, json!(nova));
    }
    let consumer = consumer.to_string();
    let history = cluster.ctl(&["history", "--consumer", &consumer, "-o", "wide"]);
    assert!(history.contains(&nova), "{history}");
    let wrote = cluster.ctl(&["history", "--request-id", &nova, "--kind", "consumer"]);
    assert!(wrote.contains(&consumer), "{wrote}");
    let line = watch.next();
    assert!(line.contains(&nova) && line.contains(&consumer), "{line}");
}
