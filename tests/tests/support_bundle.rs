//! `placementctl support-bundle`: the content of the file, masked secrets, and unreachable nodes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Member, MemberRole, NodeStatus};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Files and manifest of an unpacked bundle.
struct Bundle {
    files: BTreeMap<String, String>,
    manifest: Value,
}

impl Bundle {
    /// Unpacks a bundle with tar. Each file must match the manifest.
    fn unpack(file: &Path) -> Self {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let dir = tempfile::tempdir().unwrap();
        let untar = Command::new("tar")
            .args(["--extract", "--gzip", "--strip-components=1", "--file"])
            .arg(file)
            .arg("--directory")
            .arg(dir.path())
            .output()
            .unwrap();
        assert!(untar.status.success(), "{untar:?}");
        let mut files = BTreeMap::new();
        let mut folders = vec![dir.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    let name = path.strip_prefix(dir.path()).unwrap().display().to_string();
                    files.insert(name, fs::read_to_string(path).unwrap());
                }
            }
        }
        let manifest: Value = serde_json::from_str(&files["manifest.json"]).unwrap();
        let bundle = Self { files, manifest };
        bundle.agrees(dir.path());
        bundle
    }

    fn agrees(&self, dir: &Path) {
        let mut listed = vec!["README.txt", "manifest.json"];
        let mut sums = String::new();
        for entry in self.entries() {
            if let Some(sum) = entry["sha256"].as_str() {
                let file = entry["file"].as_str().unwrap();
                sums += &format!("{sum}  {file}\n");
                listed.push(file);
            }
        }
        listed.sort_unstable();
        assert_eq!(listed, self.files.keys().collect::<Vec<_>>());
        fs::write(dir.join("sums"), sums).unwrap();
        let mut check = Command::new("sha256sum");
        check.args(["--check", "sums"]).current_dir(dir);
        let checked = check.output().unwrap();
        assert!(checked.status.success(), "{checked:?}");
    }

    fn entries(&self) -> &[Value] {
        self.manifest["files"].as_array().unwrap()
    }

    fn entry(&self, file: &str) -> &Value {
        let mut entries = self.entries().iter();
        let found = entries.find(|entry| entry["file"] == file);
        found.unwrap_or_else(|| panic!("{file} is not in {:#}", self.manifest))
    }

    #[track_caller]
    fn has(&self, file: &str, words: &str) {
        let text = self
            .files
            .get(file)
            .unwrap_or_else(|| panic!("there is no {file}: {}", self.entry(file)));
        assert!(text.contains(words), "{file} has no {words:?}: {text}");
    }

    #[track_caller]
    fn has_nowhere(&self, secret: &str) {
        for (file, text) in &self.files {
            assert!(!text.contains(secret), "{file} has {secret}: {text}");
            assert!(!file.contains(secret), "{file}");
        }
    }
}

fn bundle(endpoint: &str, file: &Path, more: &[&str]) -> Output {
    Command::new(binaries::placementctl().unwrap())
        .args(["--endpoint", endpoint])
        .args(more)
        .arg("support-bundle")
        .arg(file)
        .output()
        .unwrap()
}

fn texts(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn socket(cluster: &Cluster, node: u64) -> String {
    format!(
        "unix:{}",
        cluster.data_dir(node).join("admin.sock").display()
    )
}

const OF_A_NODE: [&str; 8] = [
    "check.json",
    "host.txt",
    "log.txt",
    "metrics.txt",
    "searches-default.json",
    "searches-north.json",
    "settings.toml",
    "status.json",
];

/// No server listens at Keystone's address; its password is a secret.
const SETTINGS: &str = "[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"http://127.0.0.1:1\"\n\
    username = \"placement\"\npassword = \"the-password-of-keystone\"\n";

#[tokio::test]
async fn bundle_has_data_of_each_node_and_names_a_dead_one() {
    let mut cluster = Cluster::start_with(3, SETTINGS).await.unwrap();
    let north = cluster.create_partition("north", &[], &["/north"]);
    north.await.unwrap();
    let api = cluster.admin_of(1).placement("default");
    let search = ApiRequest::get("/allocation_candidates?resources=VCPU:7");
    api.call(search).await.unwrap();
    cluster.kill_9(3);
    let remote: Vec<_> = (1..=3).map(|id| cluster.place(id).admin()).collect();
    for (way, endpoint) in [
        ("network", remote.join(",")),
        ("socket", socket(&cluster, 1)),
    ] {
        let file = cluster.directory().join(way);
        let made = bundle(&endpoint, &file, &[]);
        let (code, text) = texts(&made);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("node-3/status.json is missing: "), "{text}");
        assert!(text.contains("Review it before you share it"), "{text}");

        let made = Bundle::unpack(&file);
        made.has("README.txt", "node-N/log.txt");
        made.has("summary.txt", "node 3 does not answer");
        made.has("cluster/topology.json", "\"survives\"");
        made.has("cluster/partitions.json", "\"north\"");
        made.has("cluster/join-tokens.json", "\"join_tokens\"");
        for id in 1..=2 {
            let name = |file: &str| format!("node-{id}/{file}");
            let folder = name("");
            let files = made.files.keys().filter(|file| file.starts_with(&folder));
            assert!(files.eq(&OF_A_NODE.map(name)), "{:?}", made.files.keys());
            made.has(&name("status.json"), &format!("\"node_id\": {id}"));
            made.has(&name("check.json"), "\"wrong\": []");
            made.has(&name("host.txt"), "MemTotal:");
            made.has(&name("log.txt"), "listening");
            made.has(&name("metrics.txt"), "placement_ready 1");
            made.has(&name("settings.toml"), "password = \"(not shown)\"");
            made.has(&name("settings.toml"), &format!("node_id = {id}"));
        }
        made.has("node-1/searches-default.json", "VCPU:7");
        let dead = made.entry("node-3/status.json");
        assert!(
            dead["problem"].is_string() && dead["sha256"].is_null(),
            "{dead}"
        );
        let asked = made.entry("node-2/log.txt");
        assert_eq!(
            (&asked["question"], &asked["status"]),
            (&"GET /v1/log".into(), &200.into())
        );
        made.has_nowhere("the-password-of-keystone");

        let before = fs::read(&file).unwrap();
        let (code, text) = texts(&bundle(&endpoint, &file, &[]));
        assert!(code == Some(1) && text.contains("exists already"), "{text}");
        assert_eq!(fs::read(&file).unwrap(), before);
    }
}

#[tokio::test]
async fn bundle_is_made_in_time_without_a_quorum() {
    let mut cluster = Cluster::start(3).await.unwrap();
    cluster.kill_9(3);
    cluster.process(2).signal(Signal::STOP);
    (cluster.until_shown(&["status"], 2, &["no quorum"])).await;
    let file = cluster.directory().join("bundle");
    for endpoint in [socket(&cluster, 1), cluster.place(1).admin()] {
        let begun = Instant::now();
        let (code, text) = texts(&bundle(&endpoint, &file, &["--timeout", "4"]));
        assert_eq!(code, Some(0), "{text}");
        // The limit allows for finding the members, asking them, and a recount by the answering
        // node, on a slow machine.
        assert!(
            begun.elapsed() < Duration::from_secs(40),
            "{:?}",
            begun.elapsed()
        );
        let made = Bundle::unpack(&file);
        made.has("summary.txt", "no quorum");
        for file in OF_A_NODE.iter().filter(|file| !file.contains("north")) {
            made.has(&format!("node-1/{file}"), "");
        }
        for id in [2, 3] {
            let silent = made.entry(&format!("node-{id}/status.json"));
            assert!(silent["problem"].is_string(), "{silent}");
        }
        fs::remove_file(&file).unwrap();
    }
    cluster.process(2).signal(Signal::CONT);
    for id in 1..=2 {
        cluster.kill_9(id);
    }
    let (code, text) = texts(&bundle(&socket(&cluster, 1), &file, &["--timeout", "1"]));
    assert!(
        code == Some(2) && text.contains("no node answered"),
        "{text}"
    );
    assert!(!file.exists());
}

#[tokio::test]
async fn remote_operator_gets_a_bundle_with_a_certificate() {
    let cluster = Cluster::start_secured(1, "").await.unwrap();
    let authority = cluster.options().authority.clone().unwrap();
    let trust = authority.trust(Some("admin-test"));
    let (certificate, key) = trust.certificate.unwrap();
    let [ca, certificate, key] =
        [trust.ca_file.unwrap(), certificate, key].map(|path| path.display().to_string());
    let endpoint = format!("https://{}", cluster.place(1).admin());
    let file = cluster.directory().join("bundle");
    let operator = ["--cacert", &ca, "--cert", &certificate, "--key", &key];
    let (code, text) = texts(&bundle(&endpoint, &file, &operator));
    assert_eq!(code, Some(0), "{text}");
    Bundle::unpack(&file).has("node-1/log.txt", "listening");
}

#[tokio::test]
async fn secrets_are_masked_and_their_places_listed() {
    let settings = "[keystone]\nwww_authenticate_uri = \"http://admin:hunter2@keystone:5000\"\n";
    let cluster = Cluster::start_with(1, settings).await.unwrap();
    let file = cluster.directory().join("bundle");
    let settings = "node-1/settings.toml: line ";
    let (code, text) = texts(&bundle(&socket(&cluster, 1), &file, &[]));
    assert!(code == Some(1) && text.contains(settings), "{text}");
    let made = Bundle::unpack(&file);
    made.has_nowhere("hunter2");
    let masked = &made.entry("node-1/settings.toml")["masked"][0];
    assert_eq!(masked["kind"], "a password in a URL");
    let line = masked["line"].as_u64().unwrap();
    let marker = format!("[line {line} is masked: it seems to contain a password in a URL]");
    made.has("node-1/settings.toml", &marker);
    made.has("node-1/settings.toml", "node_id = 1");
    made.has("node-1/log.txt", "listening");
    fs::remove_file(&file).unwrap();

    // A secret-like provider name in a log line, and a secret-like partition name.
    let (provider, partition) = ("AKIAIOSFODNN7EXAMPLE", "xoxb-1234567890-abcdefghijkl");
    let api = cluster.client();
    let named = ApiRequest::get("/resource_providers").query("name", provider);
    api.call(named).await.unwrap();
    cluster.until_logged(&[1], provider).await;
    let created = cluster.create_partition(partition, &[], &["/x"]);
    created.await.unwrap();
    let (code, text) = texts(&bundle(&socket(&cluster, 1), &file, &[]));
    assert_eq!(code, Some(1), "{text}");
    for kind in ["an AWS access key", "a Slack token", "a password in a URL"] {
        assert!(text.contains(kind), "{text}");
    }
    let made = Bundle::unpack(&file);
    for secret in [provider, partition, "hunter2"] {
        made.has_nowhere(secret);
        assert!(!text.contains(secret), "{text}");
    }
    made.has("node-1/log.txt", "it seems to contain an AWS access key]");
    made.has("node-1/host.txt", "MemTotal:");
    made.has("node-1/check.json", "\"wrong\": []");
    let renamed = made
        .entries()
        .iter()
        .filter(|entry| entry["is_renamed"] == true);
    assert_eq!(renamed.count(), 1, "the searches of the partition");
}

#[tokio::test]
async fn hostile_requests_do_not_keep_a_log_out_of_a_bundle() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let bundled = |cluster: &Cluster, code: i32| {
        let file = cluster.directory().join("bundle");
        let (found, text) = texts(&bundle(&cluster.place(1).admin(), &file, &[]));
        assert_eq!(found, Some(code), "{text}");
        let made = Bundle::unpack(&file);
        fs::remove_file(&file).unwrap();
        made
    };
    // Each membership change that an operator can request.
    let joined = cluster.add_place().id;
    cluster.admit(joined).await.unwrap();
    cluster.start_node(joined).unwrap();
    cluster.wait_ready(joined).await.unwrap();
    for verb in [
        &["join-token", "create"][..],
        &["join-token", "revoke", "5"],
        &["members", "demote", "3"],
        &["members", "promote", "3"],
        &["transfer-leader", "--to", "2"],
        &["transfer-leader", "--to", "1"],
        &["drain", "3"],
        &["undrain", "3"],
    ] {
        cluster.ctl_in_time(verb).await;
    }
    cluster.kill_9(3);
    cluster.ctl_in_time(&["replace", "3"]).await;
    (cluster.ctl_in_time(&["members", "remove", "--yes", "3"])).await;
    let made = bundled(&cluster, 0);
    let logs = [1, 2, joined].map(|id| format!("node-{id}/log.txt"));
    for log in &logs {
        made.has(log, "listening");
    }
    for words in [
        "removal of node 3",
        "token for a replacement of node 3",
        "valid_s=3600",
    ] {
        let is_logged = |log: &String| made.files[log].contains(words);
        assert!(logs.iter().any(is_logged), "{words} is in no log");
    }

    // The access log has every request, including unauthenticated ones.
    for id in [1, 2, joined] {
        let hostile = ApiRequest::get("/traits").query("password", "hunter2");
        // The request is refused, and the refusal is logged.
        let _ = cluster.client_of(id).request_once(hostile).await;
        let words = "password=hunter2";
        cluster.until_logged(&[id], words).await;
    }
    let made = bundled(&cluster, 1);
    made.has_nowhere("hunter2");
    for log in &logs {
        made.has(log, "listening");
        made.has(
            log,
            "is masked: it seems to contain the value of a password",
        );
    }
}

/// A fake node that answers requests for some paths, one per connection, and 404 for all others.
fn node(answers: impl Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (own, answers) = (address.clone(), Arc::new(answers));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, own, answers) = (stream.unwrap(), own.clone(), answers.clone());
            std::thread::spawn(move || answer(stream, |path| answers(path, &own)));
        }
    });
    address
}

fn answer(mut stream: TcpStream, answers: impl Fn(&str) -> Option<Vec<u8>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else {
        return;
    };
    while lines
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    let (status, body) = match answers(first.split(' ').nth(1).unwrap_or_default()) {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    // The client may have closed the connection.
    let _ = (stream.write_all(head.as_bytes())).and_then(|()| stream.write_all(&body));
}

fn status(admin: &str) -> Vec<u8> {
    let member = Member {
        id: 7,
        name: "node-7".to_owned(),
        role: MemberRole::Voter,
        admin: admin.to_owned(),
        ..Member::default()
    };
    let status = NodeStatus {
        node_id: 7,
        cluster_id: Some("../../elsewhere".to_owned()),
        leader: Some(7),
        partitions: vec!["../../elsewhere".to_owned()],
        members: vec![member],
        ..NodeStatus::default()
    };
    serde_json::to_vec(&status).unwrap()
}

#[test]
fn bundle_includes_what_an_older_node_supports() {
    let older = node(|path, own| (path == "/v1/status").then(|| status(own)));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bundle");
    let (code, text) = texts(&bundle(&older, &file, &[]));
    assert_eq!(code, Some(0), "{text}");
    let made = Bundle::unpack(&file);
    made.has("node-7/status.json", "\"node_id\": 7");
    for file in ["log.txt", "host.txt", "settings.toml", "metrics.txt"] {
        let entry = made.entry(&format!("node-7/{file}"));
        assert_eq!(entry["status"], 404, "{entry}");
        assert!(entry["problem"].is_string(), "{entry}");
    }
}

#[test]
fn hostile_answers_are_cut_and_affect_no_other_file() {
    let token = format!("4-{}", "0af3".repeat(16));
    let planted = format!("{{\"name\": \"the token is {token}\"}}");
    let hostile = node(move |path, own| match path {
        "/v1/status" => Some(status(own)),
        "/v1/log" => Some(b"a line of a log\n".repeat(1 << 20)),
        "/v1/topology" => Some(planted.clone().into()),
        "/v1/check" => Some(vec![0xff; 100]),
        _ => None,
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bundle");
    let (code, text) = texts(&bundle(&hostile, &file, &[]));
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("cluster/topology.json: line 2 is masked: it seems to contain a join token"),
        "{text}"
    );
    let made = Bundle::unpack(&file);
    made.has_nowhere(&token);
    let log = made.entry("node-7/log.txt");
    assert_eq!(
        (&log["is_cut"], &log["bytes"]),
        (&true.into(), &(4 << 20).into())
    );
    made.has("node-7/check.json", "\u{fffd}");
    let listed = Command::new("tar")
        .args(["tzf"])
        .arg(&file)
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let is_inside =
        |name: &str| name.starts_with("placementd-bundle-no-cluster-") && !name.contains("..");
    assert!(listed.lines().all(is_inside), "{listed}");
}

#[test]
fn existing_bundle_is_not_overwritten() {
    let slow = node(|path, own| match path {
        "/v1/status" => Some(status(own)),
        _ => {
            std::thread::sleep(Duration::from_millis(500));
            None
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bundle");
    let mut made = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| texts(&bundle(&slow, &file, &[]))));
        both.map(|one| one.join().unwrap())
    });
    made.sort();
    let [(first, _), (second, words)] = made;
    assert_eq!((first, second), (Some(0), Some(1)), "{words}");
    assert!(words.contains("exists"), "{words}");
    Bundle::unpack(&file).has("node-7/status.json", "\"node_id\": 7");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn interrupted_bundle_leaves_no_file() {
    let hung = node(|path, own| match path {
        "/v1/status" => Some(status(own)),
        _ => {
            std::thread::sleep(Duration::from_secs(30));
            None
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let is_empty = || fs::read_dir(dir.path()).unwrap().next().is_none();
    let child = Command::new(binaries::placementctl().unwrap())
        .args(["--endpoint", &hung, "support-bundle"])
        .current_dir(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("a draft", async || !is_empty()).await;
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, text) = texts(&child.wait_with_output().unwrap());
    assert!(
        code == Some(1) && text.contains("no bundle was written"),
        "{text}"
    );
    assert!(is_empty());

    let nowhere: PathBuf = dir.path().join("no-such-directory/bundle");
    let quick = node(|path, own| (path == "/v1/status").then(|| status(own)));
    let (code, text) = texts(&bundle(&quick, &nowhere, &[]));
    assert!(code == Some(1) && text.contains("cannot create"), "{text}");
}
