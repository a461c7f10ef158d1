//! Runs the commands of the tutorial in one bash.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::program::Program;
use crate::wait::PATIENCE;

/// Longest duration of a command.
const LIMIT: Duration = PATIENCE;
const END: &str = "THE-COMMAND-HAS-ENDED";

pub(super) struct Shell {
    process: Program,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// Output and duration of a command.
pub(super) struct CommandOutput {
    pub(super) output: String,
    pub(super) took: Duration,
}

impl Shell {
    /// Starts bash; `command` lacks only its arguments.
    pub(super) fn start(mut command: Command) -> anyhow::Result<Self> {
        let command = command.args(["--norc", "-s"]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Program(command.spawn().context("cannot start bash")?);
        let mut input = process.stdin.take().context("there is no input")?;
        let output = process.stdout.take().context("there is no output")?;
        input.write_all(b"exec 2>&1\n")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            process,
            input,
            lines,
        })
    }

    pub(super) fn run(&mut self, command: &str) -> anyhow::Result<CommandOutput> {
        let started = Instant::now();
        // The end marker is on a line of its own, also after output without a final line break.
        write!(
            self.input,
            "{{ {command}\n}} </dev/null\necho; echo {END}\n"
        )?;
        let mut lines = Vec::new();
        loop {
            let left = LIMIT.saturating_sub(started.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) if line == END => break,
                // Bash's report of a killed node.
                Ok(line) if line.contains(": line ") && line.contains(" Killed ") => {}
                Ok(line) => lines.push(line),
                Err(_) => bail!(
                    "`{command}` did not end in {LIMIT:?}:\n{}",
                    lines.join("\n")
                ),
            }
        }
        lines.pop_if(|last| last.is_empty());
        Ok(CommandOutput {
            output: lines.iter().map(|line| format!("{line}\n")).collect(),
            took: started.elapsed(),
        })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The nodes belong to the shell's process group.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
    }
}
