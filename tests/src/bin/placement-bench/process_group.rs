//! Processes that end with this one, whatever ends it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use placement_tests::node_process::log_tail;
use placement_tests::process_cost::cpu_time_of_group;
use rustix::process::{Pid, Signal, kill_process_group};

/// A process with all its children; killed when dropped.
pub(super) struct Group {
    leader: Child,
    log: PathBuf,
}

/// A command whose process ends with this one.
pub(super) fn guarded(program: impl AsRef<OsStr>) -> Command {
    if Path::new("/usr/bin/setpriv").exists() {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        return command;
    }
    Command::new(program)
}

/// Runs a command to its end, which must be a good one.
pub(super) fn run(command: &mut Command) -> anyhow::Result<()> {
    let made = (command.output()).with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        made.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&made.stdout),
        String::from_utf8_lossy(&made.stderr)
    );
    Ok(())
}

impl Group {
    pub(super) fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let file = File::create(&log)?;
        let leader = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { leader, log })
    }

    /// Processor time of all of it so far.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        cpu_time_of_group(self.leader.id())
    }

    /// The end of what it has said.
    pub(super) fn log_tail(&self) -> String {
        log_tail(&self.log, 30)
    }

    /// Waits until it listens.
    pub(super) async fn wait_for_port(&self, port: u16, limit: Duration) -> anyhow::Result<()> {
        let started = Instant::now();
        while started.elapsed() < limit {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
            if connected.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("nothing listens at {port}:\n{}", self.log_tail())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It may have ended; its pid stays its own until it is waited for.
        let _ = kill_process_group(Pid::from_child(&self.leader), Signal::KILL);
        let _ = self.leader.wait();
    }
}
