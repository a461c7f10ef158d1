//! Starts, signals and stops `placementd` processes.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::authority::Authority;
use crate::binaries;
use crate::layout::NodePlace;

/// How to start a node.
#[derive(Debug, Clone)]
pub struct StartOptions {
    /// The cluster to form, as `ID=HOST:PORT,…`; empty for a node that joins later.
    pub initial_members: String,
    /// A configuration file; flags override it.
    pub config: Option<PathBuf>,
    /// The binary; `None` is the `placementd` of this build.
    pub binary: Option<PathBuf>,
    /// Additional variables of the node's environment.
    pub environment: Vec<(String, String)>,
    /// Issuer of the node's certificate; `None` runs it without TLS.
    pub authority: Option<Authority>,
    /// Whether operators connect through the Unix socket only.
    pub socket_only: bool,
    /// Whether the node is started with `--node-id`.
    pub numbered: bool,
    /// How long a request waits for a leader; `None` is the default.
    pub wait_ms: Option<u32>,
    /// Command-line flags added to those above.
    pub flags: Vec<String>,
    /// Whether other nodes reach the node over a link that the test provides.
    pub linked: bool,
    /// Signal that the node gets when the thread that started it ends; `None`: no signal.
    pub dies_with_parent: Option<&'static str>,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            initial_members: String::new(),
            config: None,
            binary: None,
            environment: Vec::new(),
            authority: None,
            socket_only: false,
            numbered: true,
            wait_ms: None,
            flags: Vec::new(),
            linked: false,
            dies_with_parent: Some("KILL"),
        }
    }
}

/// A running node. Killed when dropped, unless [`NodeProcess::release`]d.
#[derive(Debug)]
pub struct NodeProcess {
    place: NodePlace,
    child: Child,
    released: bool,
}

impl NodeProcess {
    /// Starts a node and returns at once, before the node is healthy.
    pub fn start(place: &NodePlace, options: &StartOptions) -> anyhow::Result<Self> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&place.log)
            .with_context(|| format!("cannot write {}", place.log.display()))?;
        let mut command = command(place, options)?;
        command.stdout(log.try_clone()?).stderr(log);
        Self::spawn(place, command)
    }

    /// Starts a node with standard error in a pipe; returns the reading end.
    pub fn start_piped(
        place: &NodePlace,
        options: &StartOptions,
    ) -> anyhow::Result<(Self, ChildStderr)> {
        let mut command = command(place, options)?;
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = Self::spawn(place, command)?;
        let stderr = process.child.stderr.take();
        Ok((process, stderr.context("standard error is not a pipe")?))
    }

    fn spawn(place: &NodePlace, mut command: Command) -> anyhow::Result<Self> {
        command
            .stdin(Stdio::null())
            // Ctrl-C at a terminal is for the starter, which then shuts its nodes down cleanly.
            .process_group(0);
        let child = command.spawn().context("cannot start placementd")?;
        Ok(Self {
            place: place.clone(),
            child,
            released: false,
        })
    }

    /// Ports and directories of the node.
    pub fn place(&self) -> &NodePlace {
        &self.place
    }

    /// Process id of the node.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        // The process may have ended a moment ago; its pid stays reserved until it is waited for.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill_9(mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Waits until the process ends. Fails after `limit`.
    pub fn wait(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("node {} did not end within {limit:?}", self.place.id)
    }

    /// Consumes this value without killing the process.
    pub fn release(mut self) {
        self.released = true;
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if !self.released && self.ended().is_none() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn command(place: &NodePlace, options: &StartOptions) -> anyhow::Result<Command> {
    let placementd = match &options.binary {
        Some(binary) => binary.clone(),
        None => binaries::placementd()?,
    };
    let mut command = match options.dies_with_parent {
        Some(signal) if Path::new("/usr/bin/setpriv").exists() => {
            let mut command = Command::new("/usr/bin/setpriv");
            command.args(["--pdeathsig", signal, "--"]).arg(placementd);
            command
        }
        _ => Command::new(placementd),
    };
    command.envs(options.environment.iter().cloned());
    let mut notifies_balancers = false;
    if let Some(config) = &options.config {
        let text = std::fs::read_to_string(config)?;
        notifies_balancers = text.contains("drain_notice_ms");
        command.arg("--config").arg(config);
    }
    if !notifies_balancers {
        // No load balancer needs time to notice the shutdown.
        command.env("PLACEMENTD_API_DRAIN_NOTICE_MS", "0");
    }
    if options.numbered {
        command.args(["--node-id", &place.id.to_string()]);
    }
    command
        .arg("--data-dir")
        .arg(&place.data_dir)
        .args(["--api-listen", &place.api()])
        .args(["--peer-listen", &place.peer()]);
    if !options.socket_only {
        command.args(["--admin-listen", &place.admin()]);
    }
    if options.linked {
        command.args(["--peer-advertise", &place.link()]);
    }
    if !options.initial_members.is_empty() {
        command.args(["--initial-members", &options.initial_members]);
    }
    if let Some(authority) = &options.authority {
        command.args(authority.flags(place.id));
    }
    if let Some(wait_ms) = options.wait_ms {
        command.args(["--cluster-wait-ms", &wait_ms.to_string()]);
    }
    command.args(&options.flags);
    Ok(command)
}

/// The last lines of a log.
pub fn log_tail(log: &Path, lines: usize) -> String {
    let Ok(bytes) = std::fs::read(log) else {
        return format!("{} cannot be read", log.display());
    };
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
