//! Third-party processes that are killed with this one. Each is a process group, as uwsgi starts
//! workers. Also measures the processor time of processes and groups.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use placement_tests::node_process::log_tail;
use rustix::process::{Pid, Signal, kill_process_group};

const LISTENING_LIMIT: Duration = Duration::from_secs(120);
/// USER_HZ, which is 100 on every architecture of Linux (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// A process with all its children; killed when dropped.
pub(crate) struct Group {
    leader: Child,
    log: PathBuf,
}

/// A command whose process is killed when this process dies.
pub(crate) fn guarded(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// Runs a command to its end. Fails if its exit status is not 0.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = (command.output()).with_context(|| format!("cannot run {command:?}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    ensure!(output.status.success(), "{command:?} failed:\n{text}");
    Ok(())
}

impl Group {
    pub(crate) fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
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

    pub(crate) fn pid(&self) -> u32 {
        self.leader.id()
    }

    pub(crate) fn log_tail(&self) -> String {
        log_tail(&self.log, 30)
    }

    /// Waits until it listens.
    pub(crate) async fn wait_for_port(&self, port: u16) -> anyhow::Result<()> {
        let started = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
        {
            let tail = || format!("nothing listens at {port}:\n{}", self.log_tail());
            ensure!(started.elapsed() < LISTENING_LIMIT, tail());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The process may have ended; its pid stays reserved until it is waited for.
        let _ = kill_process_group(Pid::from_child(&self.leader), Signal::KILL);
        let _ = self.leader.wait();
    }
}

/// Processor time so far of a process and of the process group that it leads.
pub(crate) fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc").context("cannot read /proc")? {
        // An entry that is not a process, or whose process has just ended, has no such file.
        let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else {
            continue;
        };
        let is = |text: &str| text.parse() == Ok(pid);
        let of = stat.split(' ').next().is_some_and(is);
        let fields = fields(&stat);
        if of || fields.get(2).is_some_and(|group| is(group)) {
            ticks += sum(&fields[11..13])?;
        }
    }
    Ok(of_ticks(ticks))
}

/// Processor time so far of several process groups.
pub(crate) fn cpu_time_of(pids: &[u32]) -> anyhow::Result<Duration> {
    pids.iter().map(|pid| cpu_time(*pid)).sum()
}

/// Processor time of all children of this process that have ended and were waited for.
pub(crate) fn cpu_time_of_ended_children() -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc")?;
    Ok(of_ticks(sum(&fields(&stat)[13..15])?))
}

/// Fields after the name in parentheses: state, ppid, pgrp…; utime, stime, cutime and cstime begin
/// at the 12th.
fn fields(stat: &str) -> Vec<&str> {
    let (_, after) = stat.rsplit_once(')').unwrap_or_default();
    after.split_whitespace().collect()
}

fn sum(ticks: &[&str]) -> anyhow::Result<u64> {
    let ticks = ticks.iter().map(|text| text.parse::<u64>());
    Ok(ticks.sum::<Result<u64, _>>()?)
}

fn of_ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND)
}
