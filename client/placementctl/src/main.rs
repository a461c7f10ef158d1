//! `placementctl`: the command-line tool for placementd clusters.

mod api;
mod audit;
mod backup;
mod bundle;
mod candidates;
mod capacity;
mod changes;
mod check;
mod compare;
mod consumers;
mod content;
mod difference;
mod drain;
mod events;
mod explain;
mod files;
mod held;
mod join_tokens;
mod manual;
mod members;
mod moment;
mod named;
mod nova;
mod partitions;
mod providers;
mod release;
mod render;
mod searches;
mod sql;
mod status;
mod survey;
mod tls;
mod topology;
mod usages;
mod verbs;
mod watch;
mod web;
mod what_if;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use bundle::DebugAction;
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use join_tokens::{JoinTokenAction, ReplaceNode};
use members::MembersAction;
use named::Named;
use partitions::PartitionsAction;
use placement_client::{Admin, BackupError, Client, Error, InitialMembers, Trust};
use render::{Output, warn};
use survey::NO_QUORUM;
use tls::TlsAction;

/// Inspect and operate a placementd cluster through the admin listener of any node.
#[derive(Parser)]
#[command(name = "placementctl", version, next_help_heading = "Connection")]
struct Command {
    /// Admin listener of a node: `unix:/path` on the same machine, or `https://host:port`
    /// (`http://host:port` or `host:port` without TLS). Repeatable, or separated by commas; the
    /// first endpoint that answers is used.
    #[arg(
        long,
        global = true,
        env = "PLACEMENTCTL_ENDPOINT",
        value_delimiter = ',',
        default_value = "unix:/var/lib/placementd/admin.sock"
    )]
    endpoint: Vec<String>,

    /// How long to retry a request, in seconds. Also the time limit of each attempt.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 15.0)]
    timeout: f64,

    /// PEM file with the certificate authorities of the cluster, for https.
    #[arg(long, global = true, value_name = "FILE", env = "PLACEMENTCTL_CACERT")]
    cacert: Option<PathBuf>,

    /// PEM file with the operator's certificate, for https.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "PLACEMENTCTL_CERT",
        requires = "key"
    )]
    cert: Option<PathBuf>,

    /// PEM file with the key of the operator's certificate.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "PLACEMENTCTL_KEY",
        requires = "cert"
    )]
    key: Option<PathBuf>,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show the status of every member: role, version, readiness, log indexes, lag behind the
    /// leader, disk usage.
    #[command(
        after_help = "Exit codes: 0 = all members are healthy; 1 = the cluster works but is degraded; \
                            2 = there is no quorum, or no node answers."
    )]
    Status(Output),
    /// Show which failures the cluster tolerates, and the latency of reads and writes at each site.
    #[command(
        after_help = "Exits with 1 if the cluster does not tolerate the failure (`node`, `zone` or `region`) in the queried \
                      node's setting `[cluster] survive`. A member that does not answer counts as failed."
    )]
    Topology(Output),
    #[command(flatten)]
    Content(verbs::Verb),
    /// Form a new cluster, once, from nodes that run without `initial_members` and do not belong to
    /// a cluster yet.
    Init {
        /// Number and peer listener of an initial member. Repeat this option for each member.
        /// Without it, the node at the first endpoint that answers forms a cluster of one member.
        #[arg(long = "member", value_name = "ID=HOST:PORT", value_parser = founder)]
        members: Vec<(u64, String)>,
    },
    /// Change the cluster membership.
    #[command(subcommand)]
    Members(MembersAction),
    /// Manage join tokens. A node needs a token to join the cluster.
    #[command(subcommand)]
    JoinToken(JoinTokenAction),
    /// Replace a node that lost its data by a new node with the same name and a new number. Creates
    /// a join token and prints the commands to run on the new machine. Once the new node has caught
    /// up, it takes over the role of the old node (voter or learner), and the old node is removed.
    Replace(ReplaceNode),
    /// Manage partitions: independent clouds that share one cluster. Lists them by default.
    Partitions {
        #[command(subcommand)]
        action: Option<PartitionsAction>,
        #[command(flatten)]
        output: Output,
    },
    /// Transfer leadership to another node. Without --to, the leader chooses a voter.
    TransferLeader {
        /// New leader, by number or name. It must have caught up, and the current leader must be
        /// able to reach it.
        #[arg(long, value_name = "NODE")]
        to: Option<Named>,
    },
    /// Prepare a node for a stop. Its `/readyz` returns 503, so that load balancers use other
    /// nodes, and it transfers leadership to another node. It still answers requests.
    Drain(drain::DrainArgs),
    /// Revert `drain`: `/readyz` returns 200 again as soon as the node is ready.
    Undrain(drain::DrainArgs),
    /// Verify the state of each member, one member after the other, and compare the states.
    #[command(
        after_help = "Exit codes: 0 = no problem was found; 1 = a check failed; 2 = no check failed, but a \
                      member could not be checked. Notices do not affect the exit code. During the check a member \
                      needs additional memory of the size of its state."
    )]
    Check,
    /// Read all data of two Placement services and print the differences. Each service is a
    /// placementd cluster or openstack-placement. `--endpoint` is not used.
    #[command(
        after_help = "Exit codes: 0 = no differences; 1 = differences; 2 = a service cannot be read. Data that differs is \
                      read a second time, and is reported only if it still differs."
    )]
    Compare(compare::CompareArgs),
    /// Collect data for the analysis of an incident.
    #[command(subcommand)]
    Debug(DebugAction),
    /// Compact the Raft log of the node at the first endpoint that answers: flush its state to disk
    /// and delete the log entries that this state includes. This is not a backup.
    Compact,
    /// Serve the read-only web pages of the cluster to a browser on this machine. Prints the
    /// address to open, which works once.
    Web(web::WebArgs),
    /// Create the certificate authority of a cluster, and create or renew certificates.
    #[command(subcommand)]
    Tls(TlsAction),
    /// Print the completion script for a shell.
    Completion { shell: Shell },
    /// Write the manual pages to a directory.
    Man { directory: PathBuf },
    /// Take a backup of the running cluster. It includes every write that was acknowledged before
    /// the command started.
    #[command(
        after_help = "`placementd restore` forms a new cluster from a backup. Exit codes: 0 = success; \
                            1 = the file cannot be written; 2 = no node sent a complete backup. \
                            After a failure, no file remains."
    )]
    Backup {
        /// File to create; it must not exist. `-` writes to standard output.
        file: PathBuf,
    },
}

/// Prints errors without a backtrace, regardless of `RUST_BACKTRACE`.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let command = Command::parse();
    let is_read = matches!(
        command.action,
        Action::Status(_) | Action::Content(_) | Action::Debug(_) | Action::Backup { .. }
    );
    let is_comparison = matches!(command.action, Action::Compare(_));
    match run(command).await {
        Ok(code) => code,
        Err(error) => {
            warn(&format!("{error:#}"));
            let is_silence = is_comparison || is_read && is_unanswered(&error);
            ExitCode::from(if is_silence { NO_QUORUM } else { 1 })
        }
    }
}

/// Whether the error means that no node or no quorum answers.
fn is_unanswered(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Error::Unreachable(_) | Error::Unavailable(_) | Error::NothingCommitted { .. })
    ) || matches!(error.downcast_ref(), Some(BackupError::NotReceived(_)))
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let timeout = Duration::try_from_secs_f64(command.timeout)
        .context("--timeout must be a number of seconds, such as 15")?;
    match command.action {
        Action::Tls(action) => tls::run(action)?,
        Action::Completion { shell } => manual::complete(shell)?,
        Action::Man { directory } => manual::write(&directory)?,
        _ => return ask(command, timeout).await,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the commands that talk to a node.
async fn ask(command: Command, timeout: Duration) -> anyhow::Result<ExitCode> {
    let trust = Trust {
        ca_file: command.cacert,
        certificate: command.cert.zip(command.key),
    };
    let client = Client::trusting(&command.endpoint, trust.clone())?
        .with_patience(timeout)
        .with_attempt_timeout(timeout);
    if let Action::Compare(args) = command.action {
        return compare::run(&client, args).await;
    }
    let endpoints = client.endpoints().to_vec();
    let admin = Admin::new(client.clone());
    match command.action {
        Action::Status(output) => return status::show(&admin, &output, timeout).await,
        Action::Topology(output) => return topology::show(&admin, &output).await,
        Action::Content(verb) => return verbs::run(admin, verb, timeout).await,
        Action::Backup { file } => backup::take(&endpoints, &trust, &file, timeout).await?,
        Action::Init { members } => {
            let members = members.into_iter().collect();
            init(&admin, &InitialMembers { members }).await?;
        }
        Action::Members(action) => members::change(&admin, action, timeout).await?,
        Action::JoinToken(action) => join_tokens::run(&admin, action).await?,
        Action::Replace(action) => join_tokens::replace(&admin, action).await?,
        Action::Partitions { action, output } => partitions::run(&admin, action, &output).await?,
        Action::TransferLeader { to } => {
            let leader = (admin.transfer_leader(named::number(to, &admin).await?)).await?;
            println!("node {leader} leads");
        }
        Action::Drain(args) => drain::drain(&admin, &args, timeout).await?,
        Action::Undrain(args) => drain::undrain(&admin, &args, timeout).await?,
        Action::Web(args) => web::serve(&client, args).await?,
        Action::Debug(DebugAction::Bundle(args)) => {
            let made = bundle::make(&client, args, timeout);
            return files::unless_interrupted(made, "no bundle was written").await;
        }
        Action::Check => return check::run(&admin, timeout).await,
        Action::Tls(_) | Action::Completion { .. } | Action::Man { .. } | Action::Compare(_) => {}
        Action::Compact => {
            admin.compact().await?;
            println!("the log is compacted; this is not a backup");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn founder(text: &str) -> Result<(u64, String), String> {
    let parsed = match text.split_once('=') {
        Some((id, address)) if !address.is_empty() => id.parse().ok().zip(Some(address.to_owned())),
        _ => None,
    };
    parsed.ok_or_else(|| format!("`{text}` is not ID=HOST:PORT, such as 1=10.0.0.1:18779"))
}

async fn init(admin: &Admin, new: &InitialMembers) -> anyhow::Result<()> {
    admin.init(new).await?;
    let status = admin.status().await?;
    let cluster = status.cluster_id.unwrap_or_default();
    let ids: Vec<String> = if new.members.is_empty() {
        vec![status.node_id.to_string()]
    } else {
        new.members.keys().map(u64::to_string).collect()
    };
    let named = ids.join(", ");
    println!("cluster {cluster} is formed with members {named}");
    if ids.len() == 1 {
        println!("it tolerates no failure; add nodes with `placementctl join-token create`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_lines_are_understood() {
        Command::command().debug_assert();
        for line in [
            "providers list --class VCPU:8 --trait !A -o csv --columns name,uuid --sort=-name --limit 5 --local",
            "providers --node b tree cmp-1 --partition north",
            "consumers list --older-than 7d --several-trees --type INSTANCE",
            "consumers audit --servers-command list --plan plan",
            "consumers release --undo-from undo",
            "drain node-1",
            "watch --after 7.12 --kind inventory,trait --provider cmp-1 -o jsonl",
            "history --consumer c --project p --class VCPU --limit 5",
            "bulk --kind allocation --node 2",
            "events --sql mysql --after 7.12 --partition north",
            "providers list --as-of 7.12",
            "partitions -o json",
            "api GET /traits",
            "debug bundle --output here.tar.gz",
            "compare http://old:8778/placement unix:/var/lib/placementd/admin.sock",
        ] {
            let words = ["placementctl"].into_iter().chain(line.split(' '));
            if let Err(error) = Command::try_parse_from(words) {
                panic!("{line}: {error}");
            }
        }
        for line in [
            "drain node-1 --local",
            "init -o json",
            "drain node-1 --as-of 7.12",
            "api PATCH /traits",
            "consumers audit --plan plan",
            "events --after 7.12",
            "consumers release --apply plan",
            "consumers release --undo-from undo --undo next",
        ] {
            let words = ["placementctl"].into_iter().chain(line.split(' '));
            assert!(Command::try_parse_from(words).is_err(), "{line}");
        }
    }

    #[test]
    fn each_verb_has_a_manual_page_and_is_completed() {
        let directory = tempfile::tempdir().unwrap();
        manual::write(directory.path()).unwrap();
        for page in ["placementctl.1", "placementctl-providers-tree.1"] {
            assert!(directory.path().join(page).exists(), "{page}");
        }
    }
}
