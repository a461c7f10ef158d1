//! Takes backups in tests, and restores clusters from them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, read_to_string};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::binaries;
use crate::cluster::Cluster;
use crate::program::Program;

/// Parses the `key: value` lines that a command printed.
///
/// # Panics
/// If the command failed.
pub fn printed(output: &Output) -> BTreeMap<String, String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(": "));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Standard error of a command that ended with this code.
///
/// # Panics
/// If it ended with another code.
pub fn refusal(output: &Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    stderr
}

/// Takes a backup into a file with `placementctl backup`.
///
/// # Panics
/// If the tool cannot be started.
pub fn back_up(cluster: &Cluster, file: &Path) -> Output {
    cluster
        .placementctl(&["backup", file.to_str().unwrap()])
        .unwrap()
}

/// Runs `placementd check-backup` on a file.
///
/// # Panics
/// If the program cannot be started.
pub fn check(file: &Path) -> Output {
    let mut command = Command::new(binaries::placementd().unwrap());
    command.arg("check-backup").arg(file).output().unwrap()
}

/// Restores the data directory of a node of a new cluster from a backup.
///
/// # Panics
/// If the program cannot be started.
pub fn restore(cluster: &Cluster, id: u64, from: &Path, further: &[&str]) -> Output {
    let place = cluster.place(id);
    Command::new(binaries::placementd().unwrap())
        .args(["restore", "--node-id", &id.to_string(), "--data-dir"])
        .arg(&place.data_dir)
        .args(["--peer-listen", &place.peer()])
        .args(["--initial-members", &cluster.options().initial_members])
        .arg("--from")
        .arg(from)
        .args(further)
        .output()
        .unwrap()
}

/// `placementd replay` of a backup; killed when dropped.
pub struct Replay {
    process: Program,
    /// The `key: value` lines that it printed.
    pub printed: BTreeMap<String, String>,
    /// The address that it listens on.
    pub address: String,
}

impl Replay {
    /// Starts a replay and waits until it has printed the line of `last`, the newest partition.
    ///
    /// # Panics
    /// If it ends before.
    pub fn start(from: &Path, last: &str, further: &[&str]) -> Self {
        let mut command = Command::new(binaries::placementd().unwrap());
        command.arg("replay").arg(from).args(further);
        command.args(["--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut printed = BTreeMap::new();
        while !printed.contains_key(last) {
            let line = lines.next().expect("it ended").unwrap();
            let (key, value) = line.split_once(": ").unwrap();
            printed.insert(key.to_owned(), value.to_owned());
        }
        let (_, address) = printed["default"].split_once("http://").unwrap();
        Self {
            process: Program(process),
            address: address.to_owned(),
            printed,
        }
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the end. Returns standard error.
    ///
    /// # Panics
    /// If it fails.
    pub fn interrupt(mut self) -> String {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        let errors = read_to_string(self.process.stderr.take().unwrap()).unwrap();
        assert!(self.process.wait().unwrap().success(), "{errors}");
        errors
    }
}

/// Starts a new cluster of three from a backup. Also returns what the restore of its first node
/// printed.
///
/// # Panics
/// If that fails.
pub async fn restored(from: &Path, further: &[&str]) -> (Cluster, BTreeMap<String, String>) {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    let first = printed(&restore(&cluster, 1, from, further));
    for id in [2, 3] {
        let further = [further, &["--as", &first["new_cluster_id"]]].concat();
        let next = printed(&restore(&cluster, id, from, &further));
        assert_eq!(first, next);
    }
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    (cluster, first)
}
