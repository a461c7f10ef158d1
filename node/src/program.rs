//! Startup of `placementd`: settings, signals, one node.

mod commands;
mod config_args;

use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use placement_words::inert_lines;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use self::commands::Task;
use self::config_args::ConfigArgs;
use crate::logging::{self, Logging};
use crate::traces::Traces;
use crate::{Config, Env, Node, descriptors, panics, supervisor};
use placement_base::log_messages::log;
use placement_base::permissions::{self, check_data_dir};

/// Exit code of a wrong command line (`EX_USAGE` of sysexits.h), as of `placementctl`.
const USAGE: u8 = 64;
/// Threads for Raft and the connections between nodes. If one of them is blocked for a while, the
/// other serves heartbeats.
const NODE_THREADS: usize = 2;

/// One node of a replicated OpenStack Placement service. Without a command, it runs the node.
#[derive(Parser)]
#[command(
    name = "placementd",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Each setting is a key of the file, a variable and a flag: `listen` in `[api]` is \
        also PLACEMENTD_API_LISTEN and --api-listen. Flags override variables, and variables the \
        file. `placementd config sample` prints all settings with their defaults.\n\n\
        SIGTERM and SIGINT stop the node after it has handed leadership over. SIGHUP re-reads the \
        policy and the log level, and reopens the audit file.\n\n\
        Exit codes: 0 = success; 1 = an error, or a check that failed; 64 = the command line is wrong."
)]
struct CommandLine {
    #[command(flatten)]
    given: ConfigArgs,
    #[command(subcommand)]
    task: Option<Task>,
}

/// Runs the command line. After an error the exit code is 1, or 64 if the command line is
/// wrong, and the reason is on stderr.
pub fn main() -> ExitCode {
    permissions::restrict_umask();
    let CommandLine { given, task } = match CommandLine::try_parse() {
        Ok(given) => given,
        Err(refused) => {
            // A closed pipe, as by `head`, is not an error.
            drop(refused.print());
            return ExitCode::from(if refused.use_stderr() { USAGE } else { 0 });
        }
    };
    let done = match task {
        Some(task) => task.carry_out(CommandLine::command()),
        None => run(&given),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("placementd: {}", inert_lines(&chain(&error)));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, each once: some messages contain their cause.
fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

fn run(given: &ConfigArgs) -> anyhow::Result<()> {
    let (config, warnings) = given.load_with_warnings()?;
    let traces = Traces::open(&config.trace)?;
    let tracer = traces.as_ref().map(|traces| traces.tracer.clone());
    let logging =
        Logging::start(config.log.format, &config.log.level, tracer).map_err(anyhow::Error::msg)?;
    for warning in warnings {
        log!(SETTINGS_WARNING, "{warning}");
    }
    let done = serve(given, config, &logging, traces);
    logging.finish();
    done
}

/// A runtime; `threads` `None`: as many threads as processors.
fn runtime(name: &str, threads: Option<usize>) -> anyhow::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let built = builder.thread_name(name).enable_all().build();
    built.context("cannot start the threads")
}

/// Runs a node until the process is asked to stop.
fn serve(
    given: &ConfigArgs,
    config: Config,
    logging: &Logging,
    traces: Option<Traces>,
) -> anyhow::Result<()> {
    check_data_dir(&config.data_dir)?;
    descriptors::raise();
    panics::disable_core_dumps();
    // Dropped in reverse order: requests end before the node that they use.
    let node = runtime("placement-node", Some(NODE_THREADS))?;
    let requests = runtime("placement-http", None)?;
    let mut env = Env::production();
    env.requests = Some(requests.handle().clone());
    node.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot handle SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot handle SIGINT")?;
        // Registered before the node starts: without a handler, SIGHUP ends the process.
        let mut hangup = signal(SignalKind::hangup()).context("cannot handle SIGHUP")?;
        let mut reports = std::pin::pin!(logging::report_dropped());
        let node = Node::start(env, config).await?;
        let number = node.status().node_id;
        let sending = traces.map(|traces| traces.start(number, requests.handle()));
        supervisor::ready();
        {
            let mut notifies = std::pin::pin!(supervisor::report(&node));
            loop {
                tokio::select! {
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                    _ = hangup.recv() => {
                        supervisor::reloading();
                        reload(given, &node, logging);
                        supervisor::ready();
                    }
                    () = &mut reports => {}
                    () = &mut notifies => {}
                }
            }
        }
        supervisor::stopping();
        log!(
            STOP_REQUESTED,
            "asked to stop; a second signal stops at once"
        );
        let stopped = async {
            node.shutdown().await;
            if let Some(sending) = sending {
                sending.finish().await;
            }
        };
        tokio::select! {
            () = stopped => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}

/// Reloads the configuration and applies the settings that can change while the node runs. If they
/// are invalid, the previous ones stay in force: a mistake in a file does not end a running node.
fn reload(given: &ConfigArgs, node: &Node, logging: &Logging) {
    // Done even if the configuration is invalid, because log rotation relies on it.
    node.reopen_audit();
    let (config, warnings) = match given.load_with_warnings() {
        Ok(loaded) => loaded,
        Err(error) => {
            let error = chain(&error);
            log!(
                CONFIGURATION_INVALID,
                error,
                "SIGHUP: nothing is re-read, because the configuration is invalid"
            );
            return;
        }
    };
    for warning in warnings {
        log!(SETTINGS_WARNING, "{warning}");
    }
    match logging.set_level(&config.log.level) {
        Ok(()) => log!(
            LOG_LEVEL_RELOADED,
            log_level = config.log.level,
            "SIGHUP: re-read the log level"
        ),
        Err(error) => log!(
            LOG_LEVEL_NOT_RELOADED,
            error,
            "SIGHUP: the log level is unchanged"
        ),
    }
    match node.reload(&config) {
        Ok(()) => log!(POLICY_READ, "SIGHUP: re-read the policy"),
        Err(error) => {
            let error = error.to_string();
            log!(POLICY_UNUSABLE, error, "SIGHUP: the policy is unchanged");
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;
    use placement_base::settings::{Invalid, Kind};
    use placement_cluster::StartError;

    #[test]
    fn help_is_short_and_each_setting_has_a_flag() {
        let mut command = CommandLine::command().term_width(100);
        let help = command.render_long_help().to_string();
        assert!(help.lines().count() < 100, "{help}");
        for flag in ["--config", "--node-id", "--data-dir", "--join-token-file"] {
            assert!(help.contains(flag), "{flag}");
        }
        for setting in Config::settings() {
            let flag = format!("--{}", setting.flag());
            let parsed = CommandLine::try_parse_from(["placementd", &flag, "1"]);
            let is_secret = setting.kind == Kind::Secret;
            assert_eq!(parsed.is_err(), is_secret, "{flag}");
        }
    }

    #[test]
    fn each_command_has_a_manual_page() {
        let directory = tempfile::tempdir().unwrap();
        commands::manual(CommandLine::command(), directory.path()).unwrap();
        for page in [
            "placementd.1",
            "placementd-restore.1",
            "placementd-policy-check.1",
        ] {
            assert!(directory.path().join(page).exists(), "{page}");
        }
        let page = std::fs::read_to_string(directory.path().join("placementd.1")).unwrap();
        for words in ["\\-\\-data\\-dir", "SIGTERM"] {
            assert!(page.contains(words), "{page}");
        }
    }

    #[test]
    fn error_names_each_cause_once() {
        let wrong = Invalid::new("cluster.join_token_file", "F holds no join token");
        let error = anyhow::Error::from(StartError::from(wrong)).context("cannot start");
        assert_eq!(
            chain(&error),
            "cannot start: configuration: `cluster.join_token_file`: F holds no join token"
        );
        let error = Err::<(), _>(std::io::Error::other("full")).context("cannot write");
        assert_eq!(chain(&error.unwrap_err()), "cannot write: full");
    }
}
