//! Clients in other languages: the Python package, and the programs in its README.md, in
//! docs/clients.md and in docs/deploy/blazar.md.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use placement_client::{ApiRequest, Claim, Inventory};
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::program::Program;
use placement_tests::python;
use placement_tests::wait::until;
use tokio::time::sleep;
use uuid::Uuid;

/// The address in the documents.
const DOCUMENTED: &str = "http://127.0.0.1:8778";
/// Ends a Python program that hangs.
const LIMIT: &str = "import faulthandler; faulthandler.dump_traceback_later(240, exit=True)\n";
/// Replaces the login with Keystone of README.md.
const WITHOUT_KEYSTONE: &str = "
from keystoneauth1 import token_endpoint
auth = token_endpoint.Token('http://127.0.0.1:8778', 'admin')
placement = PlacementAdapter(session.Session(auth=auth), default_microversion='1.39')
";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn package() -> PathBuf {
    repository().join("python")
}

/// The blocks of a document in this language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join(document)).unwrap();
    let blocks = placement_docs::blocks(&text, language);
    blocks.into_iter().map(str::to_owned).collect()
}

/// A Python that has keystoneauth and the package.
fn interpreter() -> Command {
    let programs = python::keystoneauth(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let mut python = Command::new(programs.join("python"));
    python
        .args(["-B", "-u"])
        .env("PYTHONPATH", package())
        .env("no_proxy", "*");
    python
}

/// Runs a documented Python program that does not end. Returns the lines that it prints.
fn run(program: &str, url: &str) -> (Program, Lines<BufReader<ChildStdout>>) {
    let program = format!("{LIMIT}{program}").replace(DOCUMENTED, url);
    let mut child = interpreter()
        .args(["-c", &program])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap()).lines();
    (Program(child), printed)
}

#[test]
fn python_client_passes_its_unit_tests() {
    let installed_in = Path::new(env!("CARGO_TARGET_TMPDIR"));
    python::test_client(installed_in, &package().join("tests"), &package());
}

#[test]
fn scheduler_for_nova_and_openstack_commands_pass_their_unit_tests() {
    let installed_in = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let package = package().join("placementd_nova");
    python::test_nova(installed_in, &package.join("tests"), &package.join("src"));
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduler_for_nova_claims_on_a_cluster() {
    let cluster = Cluster::start(3).await.unwrap();
    let programs = python::nova(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let package = package().join("placementd_nova");
    let mut schedules = Command::new(programs.join("python"));
    schedules
        .args(["-B", "-W", "ignore"])
        .arg(package.join("tests/on_placementd.py"))
        .arg(cluster.place(2).api_url())
        .env("PYTHONPATH", package.join("src"));
    python::run(&mut schedules).unwrap();
}

#[test]
fn python_packages_have_the_version_of_the_workspace() {
    for folder in [package(), package().join("placementd_nova")] {
        let manifest = fs::read_to_string(folder.join("pyproject.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let version = manifest["project"]["version"].as_str();
        assert_eq!(version, Some(env!("CARGO_PKG_VERSION")));
        // scripts/package builds the wheel with the backend that the package names.
        let backend = manifest["build-system"]["requires"][0].as_str().unwrap();
        let installed = fs::read_to_string(repository().join("scripts/lib/wheel.txt")).unwrap();
        assert!(installed.lines().any(|line| line == backend), "{installed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_client_claims_and_follows_while_nodes_are_killed() {
    let mut cluster = Cluster::start_with(3, "[api]\ndrain_notice_ms = 0\n")
        .await
        .unwrap();
    let ids = cluster.ids();
    let mut claims = interpreter()
        .arg(package().join("tests/on_cluster.py"))
        .args(ids.iter().map(|&id| cluster.place(id).api_url()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(Program)
        .unwrap();
    let goal = claims.stdin.take();
    for (turn, id) in ids.iter().cycle().take(6).enumerate() {
        sleep(Duration::from_secs(1)).await;
        match turn % 2 {
            0 => cluster.kill_9(*id),
            _ => cluster.stop_node(*id).await.unwrap(),
        }
        sleep(Duration::from_secs(1)).await;
        cluster.start_node(*id).unwrap();
        cluster.wait_ready(*id).await.unwrap();
    }
    drop(goal);
    let mut printed = String::new();
    let mut output = claims.stdout.take().unwrap();
    output.read_to_string(&mut printed).unwrap();
    assert!(claims.wait().unwrap().success(), "see the error above");
    let count: u32 = printed.trim().parse().unwrap();
    assert!(count > 50, "only {count} claims");
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_program_of_the_package_claims_and_shows_the_claim() {
    let cluster = Cluster::start(1).await.unwrap();
    let blocks = blocks("python/README.md", "python");
    let (login, rest) = blocks.split_first().unwrap();
    let program = format!("{login}{WITHOUT_KEYSTONE}{}", rest.concat());
    let (_program, mut printed) = run(&program, &cluster.place(1).api_url());
    assert_eq!(printed.next().unwrap().unwrap(), "16");
    let change = printed.next().unwrap().unwrap();
    let is_claim =
        change.starts_with("req-") && change.ends_with(" None {'resources': {'VCPU': 2}}");
    assert!(is_claim, "{change}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_python_programs_work() {
    let cluster = Cluster::start(1).await.unwrap();
    let url = cluster.place(1).api_url();
    let programs = blocks("docs/clients.md", "python");
    let [follows, by_hand] = &programs[..] else {
        panic!("there are other programs in docs/clients.md");
    };
    let (_program, mut printed) = run(follows, &url);
    let own = ApiRequest::get("/traits/CUSTOM_FAST");
    until("the trait of the program", async || {
        cluster.client().call(own.clone()).await.is_ok()
    })
    .await;
    let new = ApiRequest::put("/traits/CUSTOM_NEW");
    cluster.client().call(new).await.unwrap();
    let change = printed.next().unwrap().unwrap();
    let expected = "EnsureTrait {'trait': 'CUSTOM_NEW'} None {'name': 'CUSTOM_NEW'}";
    assert_eq!(change, expected);

    let (_program, mut printed) = run(by_hand, &url);
    let traits = printed.next().unwrap().unwrap();
    assert!(traits.contains("CUSTOM_FAST"), "{traits}");
}

/// The programs of docs/deploy/blazar.md start and end a reservation in two ways.
#[tokio::test(flavor = "multi_thread")]
async fn documented_reservation_starts_and_ends() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    for name in ["compute-1", "compute-2"] {
        let host = create(&client, name).await;
        let offer = [("VCPU", 16), ("MEMORY_MB", 65_536), ("DISK_GB", 500)];
        let offer = offer.map(|(class, total)| (class, Inventory::with_total(total)));
        client.replace_inventories(host, 0, offer).await.unwrap();
    }
    let programs = blocks("docs/deploy/blazar.md", "python");
    let [login, start, end, start_at_once, end_at_once] = &programs[..] else {
        panic!("there are other programs in docs/deploy/blazar.md");
    };
    let url = cluster.place(1).api_url();
    let run = |program: &str| {
        let program = format!("{LIMIT}{login}{program}").replace(DOCUMENTED, &url);
        python::run(interpreter().args(["-c", &program]))
    };
    let listed = || {
        let columns = "--columns=host,tokens,room,projects";
        cluster.ctl(&["reservations", columns])
    };
    let reserved = "\
HOST       TOKENS  ROOM                               PROJECTS
compute-1     0/2  DISK_GB=80 MEMORY_MB=16382 VCPU=8  -
compute-2     0/2  DISK_GB=80 MEMORY_MB=16382 VCPU=8  -
";

    run(start).unwrap();
    assert_eq!(listed(), reserved);
    let holds = cluster.ctl(&["holds", "list", "-o", "name"]);
    assert_eq!(holds.lines().count(), 2, "{holds}");
    let server = Uuid::new_v4();
    let provider = Uuid::from_u128(0x9c1b_0f6e_0000_4000_8000_0000_0000_0001);
    let token = [("CUSTOM_RESERVATION_9C1B0F6E", 1)];
    let claim = Claim::by("blue", "user").and(provider, &token);
    client.put_allocations(server, &claim).await.unwrap();
    let shown = listed();
    for part in [" 1/2 ", " blue"] {
        assert!(shown.contains(part), "{shown}");
    }
    let refused = run(end_at_once).unwrap_err().to_string();
    assert!(refused.contains("409"), "{refused}");
    assert_eq!(listed(), shown);
    client.delete_allocations(server).await.unwrap();
    run(end_at_once).unwrap();
    assert_eq!(listed(), "");

    run(start_at_once).unwrap();
    assert_eq!(listed(), reserved);
    run(end).unwrap();
    run(end).unwrap();
    assert_eq!(listed(), "");
    let left = cluster.ctl(&["providers", "list", "-o", "name"]);
    assert_eq!(left.lines().count(), 2, "{left}");
    assert_eq!(cluster.ctl(&["consumers", "list", "-o", "name"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_curl_commands_work() {
    let cluster = Cluster::start(1).await.unwrap();
    let commands = blocks("docs/clients.md", "bash");
    let commands = commands.iter().find(|block| block.contains("curl"));
    let commands = commands
        .unwrap()
        .replace(DOCUMENTED, &cluster.place(1).api_url());
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &commands]);
    let printed = python::run(shell.env("no_proxy", "*")).unwrap();
    let (traits, after) = printed.split_once('}').unwrap();
    assert_eq!(traits, r#"{"traits":["CUSTOM_FAST"]"#);
    // Nothing has changed after the write.
    assert!(
        !after.contains("CUSTOM_FAST") && !after.contains("error"),
        "{printed}"
    );
}
