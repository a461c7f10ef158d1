//! A database of openstack-placement follows the events of a cluster while nodes and the programs
//! that feed it are killed. Then openstack-placement on that database answers each read as the
//! cluster does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use placement_client::{ApiRequest, Client};
use placement_tests::backups::back_up;
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::program::Program;
use placement_tests::python::{self, run};
use placement_tests::reference::Database;
use placement_tests::wait::until;
use placement_witness::client::{Client as Writer, Venue};
use placement_witness::history::Answer;
use placement_witness::http::ask;
use placement_witness::operation::{Operation, Token};
use placement_witness::seed::Seed;
use placement_witness::workload::{Choices, Names};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, LocalSet, spawn_blocking, spawn_local};
use tokio::time::sleep;
use uuid::Uuid;

const KILLS: usize = 50;
const WRITERS: usize = 4;
const PAUSE_MAX: Duration = Duration::from_millis(40);
/// Longer than a node retries, so that no write is applied after its client has timed out.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Kinds of changes; each is made at least once.
const KINDS: [&str; 21] = [
    "CreateInventory",
    "CreateProvider",
    "CreateResourceClass",
    "DeleteAllocations",
    "DeleteInventories",
    "DeleteInventory",
    "DeleteProvider",
    "DeleteProviderTraits",
    "DeleteResourceClass",
    "DeleteTrait",
    "EnsureResourceClass",
    "EnsureTrait",
    "RenameResourceClass",
    "ReplaceAllocations",
    "ReplaceInventories",
    "ReplaceProviderAggregates",
    "ReplaceProviderTraits",
    "Reshape",
    "UpdateInventory",
    "UpdateProvider",
    "several consumers",
];
/// Prints the position of the database, runs the SQL that it reads, and stops at the first error,
/// like `sqlite3 -bail`.
const CLIENT: &str = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
database.executescript('PRAGMA foreign_keys = on; PRAGMA synchronous = off')
[[token]] = database.execute('SELECT token FROM placementd_position')
print(token, flush=True)
part = ''
for line in sys.stdin:
    part += line
    if sqlite3.complete_statement(part):
        database.execute(part)
        part = ''
";

/// Addresses that the writers of the witness use.
struct Field {
    names: Names,
    addresses: BTreeMap<u64, String>,
    /// Number of changes of each kind.
    done: RefCell<BTreeMap<&'static str, usize>>,
    /// Whether changes of all kinds were made.
    is_enough: Arc<AtomicBool>,
}

impl Venue for Field {
    fn names(&self) -> &Names {
        &self.names
    }

    fn nodes(&self) -> Vec<u64> {
        self.addresses.keys().copied().collect()
    }

    fn furthest(&self) -> Option<Token> {
        None
    }

    async fn perform(&self, _client: usize, node: u64, operation: Operation) -> Option<Answer> {
        let (request, address) = (operation.request(), &self.addresses[&node]);
        let end = ask(TcpStream::connect(address), &request, ANSWER_LIMIT).await;
        let answer = end.answer()?;
        if let Operation::Write(write) = &operation
            && answer.status < 300
        {
            let kind = match request.path.as_str() {
                "/allocations" => "several consumers",
                _ => write.command.name(),
            };
            let mut done = self.done.borrow_mut();
            *done.entry(kind).or_default() += 1;
            let is_enough = KINDS.iter().all(|kind| done.contains_key(kind));
            self.is_enough.store(is_enough, Ordering::Relaxed);
        }
        Some(answer.clone())
    }
}

/// The processes of `placementctl events | DATABASE`.
struct Follower {
    events: Program,
    database: Program,
}

impl Follower {
    /// Follows nodes, given by their admin listeners.
    fn start(nodes: &str, database: &Path) -> Self {
        let (client, position) = client(database);
        Self::after(nodes, client, &position)
    }

    fn after(nodes: &str, mut database: Child, token: &str) -> Self {
        let events = Command::new(binaries::placementctl().unwrap())
            .env("PLACEMENTCTL_ENDPOINT", nodes)
            .args([
                "events",
                "--sql",
                "sqlite",
                "--timeout",
                "60",
                "--after",
                token,
            ])
            .stdout(database.stdin.take().unwrap())
            .spawn()
            .unwrap();
        Self {
            events: Program(events),
            database: Program(database),
        }
    }

    /// Kills `placementctl events`. The database client sees the end of an incomplete transaction,
    /// which is not an error.
    fn kill_events(mut self) {
        self.events.kill().unwrap();
        assert!(self.database.wait().unwrap().success());
    }

    /// Kills the database client. `placementctl events` fails at the next change.
    fn kill_database(mut self) {
        self.database.kill().unwrap();
        assert!(!ended(&mut self.events).success());
    }
}

/// Waits for the end of a process; returns its status.
fn ended(process: &mut Child) -> ExitStatus {
    let mut status = None;
    Handle::current().block_on(until("the end of a process", async || {
        status = process.try_wait().unwrap();
        status.is_some()
    }));
    status.unwrap()
}

/// A client of a database, and the position that the database stores.
fn client(database: &Path) -> (Child, String) {
    let mut client = python::interpreter()
        .env("PYTHONIOENCODING", "utf-8")
        .args(["-c", CLIENT])
        .arg(database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut position = String::new();
    let printed = client.stdout.take().unwrap();
    BufReader::new(printed).read_line(&mut position).unwrap();
    (client, position.trim_end().to_owned())
}

fn position(database: &Path) -> String {
    let (mut client, position) = client(database);
    drop(client.stdin.take());
    assert!(client.wait().unwrap().success());
    position
}

fn index(token: &str) -> u64 {
    token.split_once('.').unwrap().1.parse().unwrap()
}

/// Writes texts that are special to SQL or to a database client.
async fn write_texts(api: &Client, round: usize) {
    let text = |nth: usize| format!("{round} {nth} O'Brien \\ \"über\";\r\n-- \\' 😀;\n\0\t\u{1a}");
    let [host, consumer] = [0, 1].map(|_| Uuid::new_v4());
    let at = format!("/resource_providers/{host}");
    let claim = json!({"allocations": {host.to_string(): {"resources": {"VCPU": 1}}}, "project_id": text(1),
        "user_id": text(2), "consumer_generation": null, "consumer_type": "ODD"});
    let inventories = json!({"resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": 2_147_483_647_u32, "allocation_ratio": 1e-7, "reserved": 0}}});
    for request in [
        ApiRequest::post("/resource_providers").json(&json!({"uuid": host, "name": text(3)})),
        ApiRequest::put(&format!("{at}/inventories")).json(&inventories),
        ApiRequest::put(&at).json(&json!({"name": text(4)})),
        ApiRequest::put(&format!("/allocations/{consumer}")).json(&claim),
    ] {
        api.call(request.microversion("1.39")).await.unwrap();
    }
}

/// Kills `placementctl events`, its database client or a node, in turn.
async fn kill_in_turn(cluster: &mut Cluster, nodes: &str, file: &Path, is_enough: &AtomicBool) {
    for turn in 0.. {
        if turn >= KILLS && is_enough.load(Ordering::Relaxed) {
            break;
        }
        let (nodes, file) = (nodes.to_owned(), file.to_owned());
        let follower = spawn_blocking(move || Follower::start(&nodes, &file))
            .await
            .unwrap();
        sleep(Duration::from_millis(turn as u64 * 37 % 400)).await;
        if turn % 10 == 9 {
            let id = 1 + turn as u64 / 10 % 3;
            cluster.kill_9(id);
            cluster.start_node(id).unwrap();
            cluster.wait_ready(id).await.unwrap();
        }
        let killed = spawn_blocking(move || match turn % 2 {
            0 => follower.kill_database(),
            _ => follower.kill_events(),
        });
        killed.await.unwrap();
    }
}

/// Starts writers that run until `is_over` is set.
fn write(field: &Rc<Field>, choices: &Choices, is_over: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let write = |number| {
        let mut writer = Writer::new(number, field.clone(), choices, PAUSE_MAX);
        let is_over = is_over.clone();
        spawn_local(async move {
            while !is_over.load(Ordering::Relaxed) {
                writer.step(80).await;
            }
        })
    };
    (0..WRITERS).map(write).collect()
}

#[tokio::test]
async fn following_database_equals_the_cluster_whatever_is_killed() {
    LocalSet::new().run_until(follow()).await;
}

async fn follow() {
    let mut cluster = Cluster::start_with(3, "[api]\ndrain_notice_ms = 0\n")
        .await
        .unwrap();
    let choices = Choices {
        seed: Seed(Uuid::new_v4().as_u64_pair().0),
        providers: 3,
        consumers: 6,
        unchecked_percent: 30,
        equal_percent: 0,
        repeated_percent: 0,
        choices_percent: 0,
        holds_percent: 0,
        limits_percent: 0,
    };
    eprintln!("{choices:?}");
    let is_enough = Arc::new(AtomicBool::new(false));
    let field = Rc::new(Field {
        names: Names::new(&choices),
        addresses: (cluster.ids().into_iter())
            .map(|id| (id, cluster.place(id).api()))
            .collect(),
        done: RefCell::default(),
        is_enough: is_enough.clone(),
    });
    Writer::new(WRITERS, field.clone(), &choices, PAUSE_MAX)
        .set_up(8)
        .await;
    write_texts(&cluster.client(), 0).await;
    let (database, first) = exported(&cluster).await;
    let file = database.file();

    let is_over = Arc::new(AtomicBool::new(false));
    let writers = write(&field, &choices, &is_over);
    write_texts(&cluster.client(), 1).await;
    let nodes = cluster
        .ids()
        .into_iter()
        .map(|id| cluster.place(id).admin())
        .collect::<Vec<_>>()
        .join(",");
    kill_in_turn(&mut cluster, &nodes, &file, &is_enough).await;
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    eprintln!("{:?}", field.done.borrow());
    let read = cluster
        .client()
        .call(ApiRequest::get("/resource_classes"))
        .await;
    let newest = read.unwrap().position().index.unwrap();
    let follower = Follower::start(&nodes, &file);
    until("the database is current", async || {
        index(&position(&file)) >= index(newest.as_str())
    })
    .await;
    drop(follower);

    // A follower that begins at another position changes nothing.
    let before = database.dump();
    let mut late = Follower::after(&nodes, client(&file).0, &first);
    let status = spawn_blocking(move || ended(&mut late.database))
        .await
        .unwrap();
    assert!(!status.success());
    assert_eq!(database.dump(), before);

    let reference = database.serve().await;
    let [one, other] =
        [&cluster.client(), &reference.client()].map(|it| it.endpoints()[0].to_string());
    let compared = cluster.ctl(&["compare", &one, &other]);
    assert!(compared.starts_with("0 differences in "), "{compared}");
}

/// A database with the content of a cluster, and its position.
async fn exported(cluster: &Cluster) -> (Database, String) {
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("backup");
    assert!(back_up(cluster, &backup).status.success());
    let mut export = Command::new(binaries::placementd().unwrap());
    let sql = run(export
        .args(["export", "--dialect", "sqlite", "--from"])
        .arg(&backup))
    .unwrap();
    let database = Database::new(Path::new(env!("CARGO_TARGET_TMPDIR")), &sql);
    let first = position(&database.file());
    (database, first)
}
