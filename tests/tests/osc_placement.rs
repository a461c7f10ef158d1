//! OpenStack's command-line client from PyPI, against three nodes: writes through one and reads
//! through the others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use placement_tests::backups::{Replay, back_up, printed};
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::{osc, python};
use serde_json::Value;
use uuid::Uuid;

fn openstack() -> PathBuf {
    let programs = osc::programs(Path::new(env!("CARGO_TARGET_TMPDIR")));
    programs.unwrap().join("openstack")
}

fn run(command: &mut Command) -> String {
    python::run(command).unwrap_or_else(|error| panic!("{error:#}"))
}

/// The `openstack` command with the endpoint of one node.
struct Openstack<'a> {
    program: &'a Path,
    endpoint: String,
}

impl Openstack<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .env_clear()
            .args(["--os-auth-type", "admin_token", "--os-token", "admin"])
            .args(["--os-endpoint", &self.endpoint])
            .args(["--os-placement-api-version", "1.39"])
            .args(arguments);
        command
    }

    fn does(&self, arguments: &[&str]) {
        run(&mut self.command(arguments));
    }

    /// Error message that a user sees when the service refuses a command.
    fn is_refused(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?} was carried out");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn asks(&self, arguments: &[&str]) -> Value {
        let text = run(self.command(arguments).args(["-f", "json"]));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }
}

fn column<'a>(rows: &'a Value, name: &str) -> BTreeSet<&'a str> {
    let rows = rows.as_array().unwrap();
    rows.iter().map(|row| row[name].as_str().unwrap()).collect()
}

/// The client shows only the text after the last newline of an error, so the error must be one
/// line.
fn the_user_reads_why(client: &Openstack<'_>) {
    let error = client.is_refused(&["resource", "class", "create", "fake_class"]);
    assert!(
        error.contains("JSON does not validate: 'fake_class' does not match '^CUSTOM_[A-Z0-9_]+$'"),
        "{error}"
    );
    assert!(error.contains("at /name."), "{error}");
    let error = client.is_refused(&["resource", "provider", "create", "host"]);
    assert!(
        error.contains("Conflicting resource provider name: host already exists."),
        "{error}"
    );
    let unknown = Uuid::new_v4().to_string();
    let error = client.is_refused(&["resource", "provider", "show", &unknown]);
    assert!(
        error.contains(&format!("No resource provider with uuid {unknown} found")),
        "{error}"
    );
}

#[tokio::test]
async fn openstack_client_reads_its_writes_through_other_nodes() {
    let program = openstack();
    let cluster = Cluster::start(3).await.unwrap();
    let node = |id: u64| Openstack {
        program: &program,
        endpoint: cluster.place(id).api_url(),
    };
    let (one, two, three) = (node(1), node(2), node(3));
    let host = Uuid::new_v4().to_string();
    let numa = Uuid::new_v4().to_string();
    let aggregate = Uuid::new_v4().to_string();
    let consumer = Uuid::new_v4().to_string();

    one.does(&["resource", "provider", "create", "host", "--uuid", &host]);
    the_user_reads_why(&two);
    one.does(&[
        "resource",
        "provider",
        "create",
        "numa",
        "--uuid",
        &numa,
        "--parent-provider",
        &host,
    ]);
    let list = two.asks(&["resource", "provider", "list", "--in-tree", &host]);
    assert_eq!(column(&list, "name"), BTreeSet::from(["host", "numa"]));

    one.does(&[
        "resource",
        "provider",
        "inventory",
        "set",
        &numa,
        "--resource",
        "VCPU=16",
        "--resource",
        "VCPU:allocation_ratio=2",
        "--resource",
        "MEMORY_MB=4096",
    ]);
    let inventory = three.asks(&["resource", "provider", "inventory", "list", &numa]);
    assert_eq!(
        column(&inventory, "resource_class"),
        BTreeSet::from(["MEMORY_MB", "VCPU"])
    );

    one.does(&["trait", "create", "CUSTOM_FAST"]);
    one.does(&[
        "resource",
        "provider",
        "trait",
        "set",
        &numa,
        "--trait",
        "CUSTOM_FAST",
    ]);
    let traits = two.asks(&["resource", "provider", "trait", "list", &numa]);
    assert_eq!(column(&traits, "name"), BTreeSet::from(["CUSTOM_FAST"]));

    let generation = two.asks(&["resource", "provider", "show", &host])["generation"].to_string();
    one.does(&[
        "resource",
        "provider",
        "aggregate",
        "set",
        &host,
        "--aggregate",
        &aggregate,
        "--generation",
        &generation,
    ]);
    let aggregates = three.asks(&["resource", "provider", "aggregate", "list", &host]);
    assert_eq!(
        column(&aggregates, "uuid"),
        BTreeSet::from([aggregate.as_str()])
    );

    let candidates = two.asks(&[
        "allocation",
        "candidate",
        "list",
        "--resource",
        "VCPU=4",
        "--resource",
        "MEMORY_MB=1024",
        "--required",
        "CUSTOM_FAST",
    ]);
    assert!(candidates.to_string().contains(&numa), "{candidates}");

    one.does(&[
        "resource",
        "provider",
        "allocation",
        "set",
        &consumer,
        "--allocation",
        &format!("rp={numa},VCPU=4,MEMORY_MB=1024"),
        "--project-id",
        "project",
        "--user-id",
        "user",
        "--consumer-type",
        "INSTANCE",
    ]);
    for node in [&two, &three] {
        let held = node.asks(&["resource", "provider", "allocation", "show", &consumer]);
        assert_eq!(
            column(&held, "resource_provider"),
            BTreeSet::from([numa.as_str()])
        );
        let usage = node.asks(&["resource", "provider", "usage", "show", &numa]);
        let usage = usage.as_array().unwrap();
        let vcpu = usage
            .iter()
            .find(|row| row["resource_class"] == "VCPU")
            .unwrap();
        assert_eq!(vcpu["usage"], 4);
    }
}

#[tokio::test]
async fn openstack_client_reads_a_replayed_backup() {
    let program = openstack();
    let cluster = Cluster::start(1).await.unwrap();
    create(&cluster.client(), "host").await;
    let file = cluster.directory().join("backup");
    printed(&back_up(&cluster, &file));
    let replay = Replay::start(&file, "default", &[]);
    let past = Openstack {
        program: &program,
        endpoint: format!("http://{}", replay.address),
    };
    let list = past.asks(&["resource", "provider", "list"]);
    assert_eq!(column(&list, "name"), BTreeSet::from(["host"]));
    let error = past.is_refused(&["resource", "provider", "create", "late"]);
    assert!(error.contains("the state of a backup"), "{error}");
    let mut without = Command::new(&program);
    without
        .env_clear()
        .args(["--os-auth-type", "none", "--os-endpoint", &past.endpoint])
        .args(["resource", "provider", "list", "-f", "value"]);
    assert!(run(&mut without).contains("host"));
}
