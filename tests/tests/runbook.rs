//! Runs every command of `docs/runbook.md`, as read from the page, in the situation of its chapter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use placement_client::{ApiRequest, Consistency};
use placement_tests::binaries;
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host::{self, create};
use placement_tests::s3::Store;
use placement_tests::wait::{until, until_expired, until_ok};
use rustix::process::Signal;
use uuid::Uuid;

/// A command of the page, and its expected exit code.
struct Step {
    command: Vec<String>,
    exit: i32,
}

/// Commands of each chapter that has commands.
fn page() -> BTreeMap<String, VecDeque<Step>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/runbook.md");
    let text = fs::read_to_string(path).unwrap();
    let mut chapters: BTreeMap<String, VecDeque<Step>> = BTreeMap::new();
    let mut title = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            title = Some(heading.to_owned());
        } else if let (Some(title), Some(code)) = (&title, line.strip_prefix("    ")) {
            let (command, comment) = code.split_once('#').unwrap_or((code, ""));
            let exit = comment.trim().strip_prefix("exits with ");
            chapters.entry(title.clone()).or_default().push_back(Step {
                command: command.split_whitespace().map(str::to_owned).collect(),
                exit: exit.map_or(0, |code| code.parse().unwrap()),
            });
        }
    }
    chapters
}

/// A chapter during the run of its commands.
struct Chapter {
    title: &'static str,
    begun: Instant,
    steps: VecDeque<Step>,
    /// The most recent step.
    last: Option<Step>,
    words: BTreeMap<&'static str, String>,
}

impl Chapter {
    fn open(title: &'static str) -> Self {
        let steps = page().remove(title);
        Self {
            title,
            begun: Instant::now(),
            steps: steps.unwrap_or_else(|| panic!("there is no chapter {title:?} with commands")),
            last: None,
            words: BTreeMap::new(),
        }
    }

    /// Sets the value of a placeholder in capitals.
    fn with(mut self, word: &'static str, value: impl ToString) -> Self {
        self.words.insert(word, value.to_string());
        self
    }

    /// Makes the next step repeat the most recent one.
    fn once_more(&mut self) -> &mut Self {
        let last = self.last.take().expect("a command was run");
        self.steps.push_front(last);
        self
    }

    /// Runs the next command, which must exit as the page says. Returns its output.
    fn step(&mut self, cluster: &Cluster) -> String {
        let (output, exit, command) = self.run(cluster);
        let text = text_of(&output);
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{}: {command}: {text}",
            self.title
        );
        // The step is removed only after its command has run.
        self.last = self.steps.pop_front();
        text
    }

    /// Runs the next command until it exits as the page says.
    async fn step_in_time(&mut self, cluster: &Cluster) -> String {
        self.step_until(cluster, "").await
    }

    /// Runs the next command until it exits as the page says and its output has these words.
    async fn step_until(&mut self, cluster: &Cluster, words: &str) -> String {
        let title = self.title;
        let what = format!("{title}: {words:?}");
        let text = until_ok(&what, async || {
            let (output, exit, command) = self.run(cluster);
            let text = text_of(&output);
            let is_expected = output.status.code() == Some(exit) && text.contains(words);
            is_expected
                .then_some(text.clone())
                .ok_or(format!("{command}: {}: {text}", output.status))
        })
        .await;
        self.last = self.steps.pop_front();
        text
    }

    fn run(&self, cluster: &Cluster) -> (Output, i32, String) {
        let step = self
            .steps
            .front()
            .unwrap_or_else(|| panic!("{} has no further command", self.title));
        let filled: Vec<String> = (step.command.iter())
            .map(|word| self.words.get(word.as_str()).unwrap_or(word).clone())
            .collect();
        let command = filled.join(" ");
        let output = match filled[0].as_str() {
            "placementctl" => {
                let arguments: Vec<_> = filled[1..].iter().map(String::as_str).collect();
                cluster.placementctl(&arguments).unwrap()
            }
            "placementd" => Command::new(binaries::placementd().unwrap())
                .args(&filled[1..])
                .output()
                .unwrap(),
            "df" | "du" => Command::new(&filled[0])
                .args(&filled[1..])
                .output()
                .unwrap(),
            other => panic!("{}: this test cannot run {other}", self.title),
        };
        (output, step.exit, command)
    }

    /// Prints how long the chapter took, with all waits. `docs/runbook.md` has the mean.
    fn end(self) {
        let (title, seconds) = (self.title, self.begun.elapsed().as_secs_f64());
        assert!(self.steps.is_empty(), "{title}: commands were left out");
        println!("{seconds:6.2} s: the chapter {title:?}");
    }
}

fn text_of(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

/// Configuration of one node, as an operator has it.
fn config(cluster: &Cluster, id: u64) -> String {
    let place = cluster.place(id);
    let file = cluster.directory().join(format!("node-{id}.toml"));
    let text = format!(
        "node_id = {id}\ndata_dir = {:?}\n[api]\nlisten = {:?}\n[peer]\nlisten = {:?}\n[admin]\nlisten = {:?}\n",
        place.data_dir,
        place.api(),
        place.peer(),
        place.admin()
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Configuration of a node that forms the cluster with the others.
fn config_of_founder(cluster: &Cluster, id: u64) -> String {
    let file = config(cluster, id);
    let text = fs::read_to_string(&file).unwrap();
    let members: Vec<&str> = cluster.options().initial_members.split(',').collect();
    fs::write(&file, format!("initial_members = {members:?}\n{text}")).unwrap();
    file
}

/// Waits until the backups of a node cover everything written; returns their directory.
async fn backups(cluster: &Cluster, id: u64, root: &Path) -> PathBuf {
    let status = cluster.admin_of(id).status().await.unwrap();
    let dir = root
        .join(status.cluster_id.unwrap())
        .join(format!("node-{id}"));
    let index = || {
        let mut command = Command::new(binaries::placementd().unwrap());
        let checked = command.arg("check-backup").arg(&dir).output().unwrap();
        let checked = String::from_utf8(checked.stdout).unwrap();
        let index = checked
            .lines()
            .find_map(|line| line.strip_prefix("index: "));
        index.and_then(|index| index.parse().ok())
    };
    until("a backup with all writes", async || {
        index() >= status.applied
    })
    .await;
    dir
}

/// Starts a node with the token that a command has printed. Returns its id.
async fn join(cluster: &mut Cluster, output: &str) -> u64 {
    let id = cluster.add_place().id;
    let is_token = |line: &&str| line.starts_with(&format!("{id}-"));
    let token = output.lines().find(is_token);
    cluster
        .give_token(id, token.expect("a token is shown"))
        .unwrap();
    cluster.start_node(id).unwrap();
    cluster.wait_ready(id).await.unwrap();
    id
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir).unwrap();
    names.map(|entry| entry.unwrap().path()).collect()
}

/// Chapters whose commands each test runs.
const ACTED: [&[&str]; 9] = [
    &[
        "Get help",
        "A node is slow",
        "A clock is wrong",
        "Overload",
        "A host could not be lost",
        "A hold is overdue",
        "Out of file descriptors",
        "A slow or lossy link",
        "Roll back an upgrade",
    ],
    &[
        "The states of nodes differ",
        "A disk hangs",
        "The quorum is gone",
        "A node is dead",
        "A data directory is damaged",
        "A data directory is an older copy",
    ],
    &["A disk is full"],
    &["A certificate expires or has expired"],
    &["A majority is lost"],
    &["An entry ends every node"],
    &["The cluster is lost"],
    &["No backup is made"],
    &["Consumers were left behind"],
];

#[test]
fn every_chapter_with_commands_is_run() {
    let page = page();
    let titles: BTreeSet<&str> = page.keys().map(String::as_str).collect();
    let acted: BTreeSet<&str> = ACTED
        .iter()
        .flat_map(|titles| titles.iter().copied())
        .collect();
    assert_eq!(titles, acted);
}

#[tokio::test]
async fn incidents_while_all_nodes_run() {
    let cluster = Cluster::start_with(3, STEADY_LEADER).await.unwrap();
    without_loss(&cluster).await;
}

#[tokio::test]
async fn incidents_without_permanent_loss_of_the_majority() {
    let mut cluster = Cluster::start(3).await.unwrap();
    create(&cluster.client(), "before").await;
    without_a_majority(&mut cluster).await;
    replaced(&mut cluster).await;
    assert!(
        cluster
            .client_of(6)
            .providers(&[("name", "before")])
            .await
            .unwrap()
            .len()
            == 1
    );
}

async fn without_loss(cluster: &Cluster) {
    let leader = cluster.leader().await.unwrap();
    let other = cluster.followers().await.unwrap()[0];
    let file = cluster.directory().join("bundle");
    let mut help = Chapter::open("Get help").with("FILE", file.display());
    help.step(cluster);
    help.end();

    let mut slow = Chapter::open("A node is slow")
        .with("SLOW", leader)
        .with("OTHER", other);
    slow.step_until(cluster, "LAG").await;
    let leads = format!("node {other} leads");
    slow.step_until(cluster, &leads).await;
    slow.step_in_time(cluster).await;
    assert!(!placement_tests::is_ready(cluster.place(leader)).await);
    slow.step_in_time(cluster).await;
    slow.end();

    let mut clock = Chapter::open("A clock is wrong").with("OTHER", leader);
    clock.step_in_time(cluster).await;
    clock.end();

    let mut much = Chapter::open("Overload").with("CONFIG", config(cluster, 1));
    much.step_in_time(cluster).await;
    let text = much.step(cluster);
    assert!(text.contains("max_connections"), "{text}");
    much.end();

    let client = cluster.client();
    let host = host::with_processors(&client).await;
    host::claim(&client, host).await.unwrap();
    let mut stuck = Chapter::open("A host could not be lost").with("HOST", host);
    let text = stuck.step(cluster);
    assert!(text.contains("cannot be emptied"), "{text}");
    let text = stuck.step(cluster);
    assert!(text.contains("no room elsewhere for 1 of 1"), "{text}");
    stuck.end();

    let holder = host::hold(&client, host, host::PAST_DUE).await.to_string();
    let mut overdue = Chapter::open("A hold is overdue")
        .with("CONSUMER", &holder)
        .with("TIME", host::FUTURE_DUE);
    let text = overdue.step(cluster);
    assert!(text.contains(&holder), "{text}");
    overdue.step(cluster);
    let text = overdue.step(cluster);
    assert!(!text.contains(&holder), "{text}");
    overdue.end();

    let mut descriptors = Chapter::open("Out of file descriptors").with("NODE", 2);
    descriptors.step_in_time(cluster).await;
    descriptors.end();
    cluster.admin_of(2).undrain().await.unwrap();

    let mut link = Chapter::open("A slow or lossy link").with("OTHER", other);
    link.step_until(cluster, "LAG").await;
    link.step_in_time(cluster).await;
    link.end();

    let mut upgrade = Chapter::open("Roll back an upgrade").with("CONFIG", config(cluster, 1));
    let text = upgrade.step_until(cluster, "VERSION").await;
    assert!(text.contains("level"), "{text}");
    let text = upgrade.step(cluster);
    assert!(text.contains("level_max"), "{text}");
    upgrade.end();
}

async fn without_a_majority(cluster: &mut Cluster) {
    let stopped = cluster.followers().await.unwrap()[0];
    let mut differ = Chapter::open("The states of nodes differ")
        .with("CONFIG", config(cluster, stopped))
        .with("FROM", 1)
        .with("TO", 10);
    differ.step_until(cluster, "sound: ").await;
    cluster.stop_node(stopped).await.unwrap();
    let text = differ.step(cluster);
    assert!(text.contains("CreateProvider"), "{text}");
    cluster.start_node(stopped).unwrap();
    cluster.wait_ready(stopped).await.unwrap();
    differ.step_in_time(cluster).await;
    differ.end();

    // Seen from outside, a process that waits for its disk behaves like a stopped one.
    let mut hung = Chapter::open("A disk hangs");
    let hangs = cluster.followers().await.unwrap()[0];
    cluster.process(hangs).signal(Signal::STOP);
    let silent = format!("node {hangs} does not answer");
    hung.step_until(cluster, &silent).await;
    cluster.process(hangs).signal(Signal::CONT);
    hung.step_in_time(cluster).await;
    hung.end();

    let mut gone = Chapter::open("The quorum is gone");
    cluster.kill_9(1);
    cluster.kill_9(2);
    gone.step_until(cluster, "nothing can be written").await;
    cluster.start_node(1).unwrap();
    cluster.start_node(2).unwrap();
    gone.step_in_time(cluster).await;
    gone.end();
}

async fn replaced(cluster: &mut Cluster) {
    let pki = cluster.directory().join("pki").display().to_string();
    cluster.ctl(&["tls", "init", "--dir", &pki]);
    let mut dead = Chapter::open("A node is dead")
        .with("DEAD", 1)
        .with("NEW", 4)
        .with("HOST", "127.0.0.1")
        .with("DIR", pki);
    cluster.kill_9(1);
    dead.step_in_time(cluster).await;
    let token = dead.step_in_time(cluster).await;
    dead.step(cluster);
    join(cluster, &token).await;
    dead.step_in_time(cluster).await;
    dead.end();
    // Node 1 had its default name, which has its number.
    let names = cluster.ctl(&["members", "list", "--columns", "node,name"]);
    assert!(names.contains("4  node-4"), "{names}");

    let mut damaged = Chapter::open("A data directory is damaged")
        .with("DAMAGED", 2)
        .with("CONFIG", config(cluster, 2));
    cluster.kill_9(2);
    let log = cluster.data_dir(2).join("log");
    for file in files(&log) {
        fs::remove_file(file).unwrap();
    }
    let text = damaged.step(cluster);
    assert!(text.contains("log: it contains no database"), "{text}");
    let token = damaged.step_in_time(cluster).await;
    join(cluster, &token).await;
    damaged.step_in_time(cluster).await;
    damaged.end();

    let mut older = Chapter::open("A data directory is an older copy").with("OLD", 3);
    cluster.kill_9(3);
    let token = older.step_in_time(cluster).await;
    join(cluster, &token).await;
    older.step_in_time(cluster).await;
    older.end();
}

#[tokio::test]
async fn expired_certificate() {
    let (mut cluster, authority) = Cluster::start_with_peer_tls(3).await.unwrap();
    cluster.kill_9(3);
    authority.renew_node(3, 0).unwrap();
    until_expired().await;
    cluster.start_node(3).unwrap();
    let certificate = authority.directory().join("node-3.pem");
    let mut expired = Chapter::open("A certificate expires or has expired")
        .with("CERTIFICATE", certificate.display())
        .with("EXPIRED", 3)
        .with("DIR", authority.directory().display());
    let reason = "its certificate has expired";
    expired.step_until(&cluster, reason).await;
    let text = expired.step(&cluster);
    assert!(text.contains("EXPIRED"), "{text}");
    expired.step(&cluster);
    let text = expired.step_in_time(&cluster).await;
    assert!(text.contains("healthy: 3 of 3"), "{text}");
    expired.end();
}

#[tokio::test]
async fn full_disk() {
    let mut cluster = Cluster::start(1).await.unwrap();
    cluster.stop_node(1).await.unwrap();
    // More than any disk has.
    let full = format!("--disk-min-free-bytes={}", i64::MAX);
    cluster.options_mut().flags.push(full);
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    until("refused writes", async || {
        let add = ApiRequest::post("/resource_providers").json(&serde_json::json!({
            "name": Uuid::new_v4().to_string()
        }));
        let answer = cluster.client().request_once(add).await.unwrap();
        answer.status == 507
    })
    .await;
    let data_dir = cluster.data_dir(1).display().to_string();
    let mut full = Chapter::open("A disk is full")
        .with("NODE", "1")
        .with("DATA_DIR", &data_dir)
        .with("MOUNT", &data_dir);
    full.step_in_time(&cluster).await;
    assert!(full.step(&cluster).contains("Mounted on"));
    // A file may disappear while `du` reads its directory.
    full.step_until(&cluster, &data_dir).await;
    full.step_in_time(&cluster).await;
    full.end();
}

#[tokio::test]
async fn lost_majority() {
    let mut cluster = Cluster::start(3).await.unwrap();
    create(&cluster.client(), "before").await;
    cluster.assert_equal_states().await;
    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    for lost in [1, 2] {
        fs::remove_dir_all(cluster.data_dir(lost)).unwrap();
    }
    let mut lost = Chapter::open("A majority is lost").with("CONFIG", config(&cluster, 3));
    let text = lost.step(&cluster);
    assert!(text.lines().any(|line| line.starts_with("last ")), "{text}");
    let text = lost.step(&cluster);
    assert!(text.contains("Lost: "), "{text}");
    let text = lost.step(&cluster);
    assert!(text.contains("is the only voter"), "{text}");
    cluster.options_mut().initial_members.clear();
    cluster.start_node(3).unwrap();
    cluster.wait_ready(3).await.unwrap();
    let token = lost.step_in_time(&cluster).await;
    let new = join(&mut cluster, &token).await;
    lost = lost.with("NEW", new);
    lost.step_in_time(&cluster).await;
    lost.step_in_time(&cluster).await;
    lost.end();
    assert!(
        cluster
            .client_of(new)
            .providers(&[("name", "before")])
            .await
            .unwrap()
            .len()
            == 1
    );
}

#[tokio::test]
async fn entry_that_crashes_every_node() {
    let mut cluster = Cluster::start(1).await.unwrap();
    create(&cluster.client(), "poison").await;
    let status = cluster.admin_of(1).status().await.unwrap();
    cluster.kill_9(1);
    let mut entry = Chapter::open("An entry ends every node")
        .with("CONFIG", config(&cluster, 1))
        .with("INDEX", status.last_log.unwrap())
        .with("TERM", status.term);
    let text = entry.step(&cluster);
    assert!(text.contains("CreateProvider"), "{text}");
    let text = entry.step(&cluster);
    assert!(text.contains("nothing is skipped"), "{text}");
    entry.step(&cluster);
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    entry.step_in_time(&cluster).await;
    entry.step_in_time(&cluster).await;
    entry.end();
    assert!(!cluster.has_provider("poison").await);
    let trace = fs::read_to_string(cluster.data_dir(1).join("skipped")).unwrap();
    assert!(trace.contains("CreateProvider"), "{trace}");
    cluster
        .until_logged(&[1], "an operator skipped an entry of the log")
        .await;
}

/// Names and lengths of the files in a directory of backups.
fn kept(dir: &Path) -> BTreeMap<String, u64> {
    let found = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            (name != "draft").then_some((name, entry.metadata().ok()?.len()))
        });
    found.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_cluster() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::start().await;
    let settings = format!(
        "[backup]\ndirectory = {:?}\n{}",
        root.path(),
        store.settings()
    );
    let mut cluster = Cluster::start_with(3, &settings).await.unwrap();
    let session = cluster.client().with_session();
    create(&session, "before").await;
    let token = session.session_index().unwrap();
    cluster.assert_equal_states().await;
    let backup = backups(&cluster, 2, root.path()).await;
    let place = backup.strip_prefix(root.path()).unwrap().display();
    let copies = store.directory(&place.to_string());
    until("copies", async || kept(&copies) == kept(&backup)).await;
    for id in cluster.ids() {
        cluster.kill_9(id);
        fs::remove_dir_all(cluster.data_dir(id)).unwrap();
    }
    fs::remove_dir_all(root.path()).unwrap();

    let fetched = cluster.directory().join("fetched");
    let mut lost = Chapter::open("The cluster is lost")
        .with("PLACE", &place)
        .with("BACKUP", fetched.display())
        .with("CONFIG", config_of_founder(&cluster, 1))
        .with("FILE", cluster.directory().join("monday").display());
    let file = config_of_founder(&cluster, 1);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}{settings}")).unwrap();
    let text = lost.step(&cluster);
    assert!(text.contains(&place.to_string()), "{text}");
    lost.step(&cluster);
    let text = lost.step(&cluster);
    assert!(text.contains("\ntime: 2"), "{text}");
    let text = lost.step(&cluster);
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("new_cluster_id: "));
    lost = lost.with("NEW_CLUSTER_ID", id.unwrap());
    lost = lost.with("NEXT_CONFIG", config_of_founder(&cluster, 2));
    lost.step(&cluster);
    lost = lost.with("NEXT_CONFIG", config_of_founder(&cluster, 3));
    lost.once_more().step(&cluster);
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    lost.step_in_time(&cluster).await;
    lost.step_in_time(&cluster).await;
    lost.step_in_time(&cluster).await;
    lost.step(&cluster);
    lost.end();

    let found = cluster.client().providers(&[("name", "before")]).await;
    assert_eq!(found.unwrap().len(), 1);
    let ask = ApiRequest::get("/resource_providers").consistency(Consistency::Session(token));
    let answer = cluster.client().request_once(ask).await.unwrap();
    assert_eq!(answer.status.as_u16(), 412, "a token of the lost cluster");
}

#[tokio::test]
async fn backups_fail() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("backups");
    fs::write(&place, "not a directory").unwrap();
    let settings = format!("[backup]\ndirectory = {place:?}\n");
    let mut cluster = Cluster::start_with(1, &settings).await.unwrap();
    create(&cluster.client(), "before").await;
    let mut none = Chapter::open("No backup is made")
        .with("FILE", cluster.directory().join("monday").display());
    let warning = "warning: backups of node 1: the directory for backups cannot be used";
    none.step_until(&cluster, warning).await;
    none.step_in_time(&cluster).await;
    // The cause is removed. The node would retry by itself; a restart is quicker.
    fs::remove_file(&place).unwrap();
    cluster.stop_node(1).await.unwrap();
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let backup = backups(&cluster, 1, &place).await;
    none = none.with("BACKUP", backup.display());
    let text = none.step_in_time(&cluster).await;
    assert!(!text.contains("warning: backups"), "{text}");
    none.step(&cluster);
    none.end();
}

#[tokio::test]
async fn orphaned_consumers() {
    let cluster = Cluster::start(1).await.unwrap();
    let host = host::with_processors(&cluster.client()).await;
    let mut claimed = Vec::new();
    for _ in 0..3 {
        claimed.push(host::claim(&cluster.client(), host).await.unwrap());
    }
    let file = |name: &str| cluster.directory().join(name).display().to_string();
    let servers = claimed[1..]
        .iter()
        .map(|id| serde_json::json!({ "ID": id }));
    let servers = serde_json::json!(servers.collect::<Vec<_>>());
    let migrations = serde_json::json!([{ "UUID": Uuid::new_v4(), "Server UUID": claimed[1] }]);
    for (name, list) in [("servers", servers), ("migrations", migrations)] {
        fs::write(file(name), format!("echo '{list}'")).unwrap();
    }
    let mut left = Chapter::open("Consumers were left behind")
        .with("AGE", "0s")
        .with("SERVERS", format!("sh {}", file("servers")))
        .with("MIGRATIONS", format!("sh {}", file("migrations")))
        .with("PLAN", file("plan"))
        .with("UNDO", file("undo"));
    let orphan = claimed[0].to_string();
    assert!(left.step(&cluster).contains(&orphan));
    assert!(left.step(&cluster).contains("released 1 of 1"));
    assert!(left.step(&cluster).contains("restored 1 of 1"));
    left.end();
}
