//! Imports and exports of many kinds of databases. openstack-placement is filled by random
//! requests, with many hosts, or by its own suite; its dump becomes a cluster, and the cluster's
//! backup becomes a database again. All must answer each read alike.
//!
//! `scripts/nightly` runs more: seeds in `PLACEMENT_TRANSFER_SEEDS`, hosts in
//! `PLACEMENT_TRANSFER_HOSTS`, and the databases of the suite (`scripts/conformance --reference
//! --dumps DIRECTORY`) in `PLACEMENT_TRANSFER_DUMPS`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use placement_client::{ApiRequest, Client};
use placement_tests::backups::{back_up, printed, restore};
use placement_tests::cluster::Cluster;
use placement_tests::python::{self, run};
use placement_tests::reference::{Database, Reference};
use placement_witness::history::Answer;
use placement_witness::http::ask;
use placement_witness::operation::{Level, Operation, Request};
use placement_witness::workload::{Names, Workload};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::random_requests::{ANSWER_LIMIT, Service, choices, fill, number};
use crate::transfer::{compared, digest, installed_in, placementd, sorted, stdout, url};

const WRITES: usize = 150;
const QUESTIONS: usize = 60;

/// Two services of openstack-placement; replacing a database is faster than starting another
/// service.
struct Upstream {
    before: Reference,
    /// Dump of its database before the first write.
    new: String,
    /// Serves the database that was exported from a cluster.
    after: Reference,
    schema: String,
}

impl Upstream {
    async fn start() -> Self {
        let empty = Database::new(installed_in(), "");
        let schema = empty.dump();
        let before = empty.serve().await;
        let (new, after) = (before.dump(), Reference::start(installed_in(), "").await);
        Self {
            before,
            new,
            after,
            schema,
        }
    }

    /// Imports the content of `before` and exports it again.
    async fn there_and_back(&self, what: &str, questions: &[Request]) {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let (dump, backup, taken) = (path("dump.sql"), path("backup"), path("taken"));
        fs::write(&dump, self.before.dump()).unwrap();
        let report = stdout(placementd(&["import", &dump, "--out", &backup]));
        let mut cluster = Cluster::prepare(1, "").unwrap();
        printed(&restore(&cluster, 1, Path::new(&backup), &[]));
        cluster.start_node(1).unwrap();
        cluster.wait_healthy().await.unwrap();
        let inside = cluster.client();
        assert_alike(what, &self.before.client(), &inside, questions).await;
        assert!(back_up(&cluster, Path::new(&taken)).status.success());
        let export = ["export", "--from", &taken, "--dialect", "sqlite"];
        let exported = stdout(placementd(&export));
        assert_eq!(digest(&report), digest(&exported), "{what}");
        self.after.refill(&format!("{}{exported}", self.schema));
        assert_alike(what, &inside, &self.after.client(), questions).await;
    }

    /// Fills `before` by random requests; returns queries about the content.
    async fn fill(&self, seed: u64) -> Vec<Request> {
        self.before.refill(&self.new);
        let choices = choices(seed);
        let names = Names::new(&choices);
        let writes = Writes {
            address: self.before.address(),
            done: RefCell::default(),
        };
        fill(&writes, &choices, &names, WRITES, 100).await;
        let done = writes.done.borrow();
        eprintln!("seed {seed}: {done:?}");
        assert!(done.values().sum::<usize>() > WRITES / 3, "{done:?}");
        let mut workload = Workload::new(1, &choices);
        let questions = (0..QUESTIONS).map(|_| workload.question(&names));
        let requests =
            questions.map(|question| Operation::Read(question, Level::Default).request());
        // The choice of candidates under a limit is up to the service.
        requests
            .filter(|request| !request.path.contains("limit="))
            .collect()
    }
}

/// Address that the requests go to.
struct Writes {
    address: String,
    /// Number of requests by kind.
    done: RefCell<BTreeMap<&'static str, usize>>,
}

impl Service for Writes {
    async fn answer(&self, operation: Operation) -> Answer {
        let (request, address) = (operation.request(), &self.address);
        let end = ask(TcpStream::connect(address), &request, ANSWER_LIMIT).await;
        let answer = end.answer().expect("it answers").clone();
        if matches!(operation, Operation::Write(_)) && answer.status < 300 {
            *self.done.borrow_mut().entry(operation.kind()).or_default() += 1;
        }
        answer
    }
}

/// Asserts that both services answer alike to all queries of `placementctl compare`, and to these.
async fn assert_alike(what: &str, one: &Client, other: &Client, questions: &[Request]) {
    let (code, differences) = compared(&url(one), other);
    assert_eq!(code, Some(0), "{what}: {differences}");
    for question in questions {
        let answers = [answer(one, question).await, answer(other, question).await];
        assert_eq!(answers[0], answers[1], "{what}: {question}");
    }
}

/// The body of an answer, or the status of a refusal.
async fn answer(service: &Client, question: &Request) -> Result<Value, u16> {
    let version = format!("1.{}", question.minor);
    let asked = ApiRequest::get(&question.path).microversion(&version);
    match service.call(asked).await {
        Ok(answer) => Ok(sorted(answer.json().unwrap_or_default())),
        Err(error) => Err(error.status().unwrap().as_u16()),
    }
}

/// A dump with this many hosts.
fn large_dump(hosts: u64) -> String {
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let large = run(python::interpreter()
        .arg(repository.join("tests/upstream/large_dump.py"))
        .arg(repository.join("node/transfer/tests/dumps/sqlite.sql"))
        .args([hosts, hosts / 4].map(|number| number.to_string())));
    large.unwrap()
}

/// Dumps of the suite's databases, if available.
fn dumps_of_suite() -> Vec<PathBuf> {
    let directory = std::env::var_os("PLACEMENT_TRANSFER_DUMPS");
    let mut files: Vec<_> = directory
        .map(|directory| fs::read_dir(directory).unwrap())
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn databases_survive_import_and_export() {
    let upstream = Upstream::start().await;
    for seed in 0..number("PLACEMENT_TRANSFER_SEEDS", 4) {
        let questions = LocalSet::new().run_until(upstream.fill(seed)).await;
        let what = format!("seed {seed}");
        upstream.there_and_back(&what, &questions).await;
    }
    let hosts = number("PLACEMENT_TRANSFER_HOSTS", 100);
    upstream.before.refill(&large_dump(hosts));
    let what = format!("{hosts} hosts");
    upstream.there_and_back(&what, &[]).await;
    for file in dumps_of_suite() {
        upstream.before.refill(&fs::read_to_string(&file).unwrap());
        let what = file.display().to_string();
        upstream.there_and_back(&what, &[]).await;
    }
}
