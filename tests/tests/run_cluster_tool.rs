//! The tool behind `scripts/run-cluster`.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use placement_client::Client;
use placement_tests::ports::{self, Ports};
use placement_tests::wait::{PATIENCE, until_ok};
use placement_tests::{binaries, layout::PORTS_PER_NODE};
use serde_json::Value;

/// The tool with its own directory and ports; the cluster is stopped on drop.
struct Tool {
    directory: tempfile::TempDir,
    ports: Ports,
}

impl Tool {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            ports: Ports::claim(4),
        }
    }

    fn directory(&self) -> std::path::PathBuf {
        self.directory.path().join("cluster")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command();
        command.env("RUST_BACKTRACE", "1").args(arguments);
        command.output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(binaries::tool("run-cluster").unwrap());
        command
            .env("PLACEMENTD", binaries::placementd().unwrap())
            .env("PLACEMENTCTL", binaries::placementctl().unwrap())
            .arg("--dir")
            .arg(self.directory());
        command
    }

    /// Starts a cluster and returns the announcement, which is all that stdout has.
    fn detach(&self, arguments: &[&str]) -> Value {
        self.detach_with_report(arguments).0
    }

    /// Starts a cluster and returns the announcement and the readable report.
    fn detach_with_report(&self, arguments: &[&str]) -> (Value, String) {
        let port = self.ports.first().to_string();
        let all = [&["--detach", "--base-port", &port], arguments].concat();
        let output = self.run(&all);
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{report}");
        (serde_json::from_slice(&output.stdout).unwrap(), report)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        self.run(&["--stop"]);
    }
}

#[tokio::test]
async fn detached_cluster_stops_and_restarts_with_its_data() {
    let tool = Tool::new();
    let started = Instant::now();
    let announced = tool.detach(&[]);
    eprintln!("up with the sample cloud after {:?}", started.elapsed());
    let nodes = announced["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 3);
    for (node, id) in nodes.iter().zip(1..) {
        let keys: Vec<_> = node.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["api", "data_dir", "id", "pid"]);
        assert_eq!(node["id"], id);
        assert!(Path::new(node["data_dir"].as_str().unwrap()).is_dir());
        assert!(Path::new(&format!("/proc/{}", node["pid"])).exists());
    }
    let client = Client::new(nodes.iter().map(|node| node["api"].as_str().unwrap())).unwrap();
    let before = client.providers(&[]).await.unwrap().len();
    assert!(before > 10);

    let again = tool.run(&["--detach"]);
    assert!(!again.status.success());
    let error = String::from_utf8_lossy(&again.stderr);
    assert!(error.contains("already runs"), "{error}");

    assert!(tool.run(&["--stop"]).status.success());
    for node in nodes {
        // A process that has ended but was not yet reaped has no command line.
        let line = std::fs::read(format!("/proc/{}/cmdline", node["pid"])).unwrap_or_default();
        assert!(line.is_empty());
    }
    tool.detach(&["--no-sample"]);
    assert_eq!(client.providers(&[]).await.unwrap().len(), before);

    tool.run(&["--stop"]);
    tool.detach(&["--no-sample", "--clean", "--nodes", "1"]);
    assert_eq!(client.providers(&[]).await.unwrap().len(), 0);
}

/// The first line of the report with this beginning, as it would be pasted into a shell.
fn line<'a>(report: &'a str, beginning: &str) -> &'a str {
    report
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(beginning))
        .unwrap_or_else(|| panic!("no line `{beginning}…` in\n{report}"))
}

fn shell(line: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[tokio::test]
async fn report_shows_how_to_survive_the_loss_of_the_leader() {
    let tool = Tool::new();
    let (announced, report) = tool.detach_with_report(&[]);
    let exports: Vec<_> = (report.lines().map(str::trim))
        .filter(|line| line.starts_with("export "))
        .collect();
    let pasted = |command: &str| {
        let command = line(&report, &format!("placementctl {command}"));
        shell(&format!("{}\n{command}", exports.join("\n")))
    };
    let members = until_ok("a healthy cluster", async || pasted("status")).await;
    assert!(members.contains("leader"), "{members}");
    for (command, words) in [
        ("capacity", "VCPU"),
        ("providers list", "compute-4"),
        ("candidates", "compute-1"),
        ("explain", "no candidates"),
    ] {
        let answer = pasted(command).unwrap();
        assert!(answer.contains(words), "{command}: {answer}");
    }
    assert!(!report.contains('{'), "{report}");

    let kill = line(&report, "kill -9 ");
    let nodes = announced["nodes"].as_array().unwrap();
    let killed = nodes
        .iter()
        .find(|node| kill == format!("kill -9 {}", node["pid"]))
        .unwrap_or_else(|| panic!("`{kill}` kills no node of {announced}"));
    let leads = format!("Node {} leads.", killed["id"]);
    assert!(report.contains(&leads), "{report}");
    shell(kill).unwrap();

    // The `curl` command uses a follower, which waits for the new leader and has the write.
    let ask = line(&report, "curl ");
    assert!(!ask.contains(killed["api"].as_str().unwrap()), "{ask}");
    let survivor = nodes
        .iter()
        .map(|node| node["api"].as_str().unwrap())
        .into_iter()
        .find(|api| ask.contains(api))
        .unwrap();
    let claim = Client::new([survivor])
        .unwrap()
        .with_patience(PATIENCE)
        .allocations(placement_tests::sample::CONSUMER)
        .await
        .unwrap();
    assert!(!claim.allocations.is_empty());
    assert!(ask.ends_with(&format!(
        "/allocations/{}",
        placement_tests::sample::CONSUMER
    )));
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let tool = Tool::new();
    let taken = tool.ports.first() + PORTS_PER_NODE;
    let _listener = TcpListener::bind(("127.0.0.1", taken)).unwrap();
    let output = tool.run(&["--detach", "--base-port", &tool.ports.first().to_string()]);
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains(&format!("port {taken}")) && error.contains("in use"),
        "{error}"
    );
    assert!(!error.contains("backtrace"), "{error}");
}

#[test]
fn clean_deletes_only_files_of_a_cluster() {
    let tool = Tool::new();
    std::fs::create_dir_all(tool.directory()).unwrap();
    let precious = tool.directory().join("thesis.tex");
    std::fs::write(&precious, "x").unwrap();
    let output = tool.run(&[
        "--detach",
        "--clean",
        "--base-port",
        &tool.ports.first().to_string(),
    ]);
    assert!(!output.status.success());
    assert!(precious.exists());
}

#[test]
fn ctrl_c_stops_everything() {
    let tool = Tool::new();
    let port = tool.ports.first().to_string();
    let mut child = tool
        .command()
        .args(["--no-sample", "--base-port", &port])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The tool prints its report when the cluster is up.
    let mut report = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("Ctrl-C stops") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut report, &mut line).unwrap() > 0);
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let started = Instant::now();
    let status = child.wait().unwrap();
    assert!(status.success() && started.elapsed() < PATIENCE);
    for node in 0..3 {
        assert!(ports::is_free(tool.ports.first() + node * PORTS_PER_NODE));
    }
}
