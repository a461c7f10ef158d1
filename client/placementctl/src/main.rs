//! `placementctl`: the command-line tool for placementd clusters.

mod address;
mod api;
mod audit;
mod backup;
mod bundle;
mod candidates;
mod capacity;
mod changes;
mod check;
mod claim;
mod compare;
mod consumers;
mod content;
mod difference;
mod drain;
mod events;
mod explain;
mod files;
mod fits;
mod held;
mod help;
mod holds;
mod join_tokens;
mod label;
mod limits;
mod manual;
mod members;
mod moment;
mod named;
mod names;
mod nova;
mod partitions;
mod plan;
mod providers;
mod refuge;
mod release;
mod render;
mod reservations;
mod searches;
mod sql;
mod status;
mod survey;
mod tls;
mod top;
mod topology;
mod usages;
mod verbs;
mod watch;
mod web;
mod what_if;

use std::future::pending;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use futures::future::join_all;
use http::StatusCode;
use join_tokens::{JoinTokenAction, ReplaceNode};
use members::MembersAction;
use named::Named;
use partitions::PartitionsAction;
use placement_client::{
    Admin, ApiError, ApiRequest, BackupError, Client, Endpoint, Error, InitialMembers, Obstacle,
    Trust,
};
use placement_wire::upstream::Versions;
use render::{Misuse, Output, print, warn};
use survey::{DIAGNOSIS_LIMIT, NO_QUORUM, without_quorum};
use tls::TlsAction;
use tokio::time::sleep;

/// Exit code of a wrong command line (`EX_USAGE` of sysexits.h).
const USAGE: u8 = 64;
/// How long a command or request takes before the reason is examined.
const EXAMINED_AFTER: Duration = Duration::from_millis(500);
/// Time after which another endpoint is asked first.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Inspect and operate a placementd cluster through the admin listener of any node.
#[derive(Parser)]
#[command(name = "placementctl", version, next_help_heading = "Connection")]
struct Command {
    /// Admin listener of a node: `unix:/path` on the same machine, or `https://host:port`
    /// (`http://host:port` or `host:port` without TLS). The first endpoint that answers is used.
    /// Repeatable, or separated by commas.
    #[arg(
        long,
        global = true,
        env = "PLACEMENTCTL_ENDPOINT",
        value_delimiter = ',',
        value_parser = endpoint,
        default_value = "unix:/var/lib/placementd/admin.sock"
    )]
    endpoint: Vec<Endpoint>,

    /// Time limit of a request with its repetitions, and of each attempt.
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        default_value = "15s",
        value_parser = moment::duration
    )]
    timeout: Duration,

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
    /// Show the health of the cluster and the status of each member.
    #[command(
        after_help = "Exit codes: 0 = all members are healthy; 1 = the cluster works but is degraded; \
                            2 = there is no quorum, or no node answers."
    )]
    Status(Output),
    /// Show a live view of members, requests and capacity.
    ///
    /// Requests are those of the REST API, without those of operators. The fullest resource classes
    /// come first. End with Ctrl-C.
    Top(top::TopArgs),
    /// Show the failures that the cluster tolerates, and latencies.
    ///
    /// Latencies are those of reads and writes at each site.
    #[command(
        after_help = "Exit codes: 0 = success; 1 = the cluster does not tolerate the failure (`node`, `zone` or `region`) in \
                      the queried node's setting `[cluster] survive`; 2 = there is no quorum, or no node answers. A \
                      member that does not answer counts as failed."
    )]
    Topology(Output),
    #[command(flatten)]
    Content(verbs::Verb),
    /// Form a new cluster, once.
    ///
    /// Its nodes run without `initial_members` and do not belong to a cluster yet.
    Init {
        /// Number and peer listener of an initial member. Without this option, the node at the
        /// first endpoint that answers forms a cluster of one member. Repeatable.
        #[arg(long = "member", value_name = "ID=HOST:PORT", value_parser = founder)]
        members: Vec<(u64, String)>,
    },
    /// List, promote, demote and remove members.
    #[command(subcommand)]
    Members(MembersAction),
    /// Create, list and revoke the tokens with which nodes join.
    #[command(subcommand)]
    JoinToken(JoinTokenAction),
    /// Replace a member by a new node, after the loss of its disk.
    ///
    /// The new node gets a new number, and the name of the old node unless that is its default name
    /// `node-NUMBER`. The command creates a join token and prints the steps for the new machine. A
    /// token that an earlier call created for the same node becomes invalid. Once the new node has
    /// caught up, it takes over the role of the old node (voter or learner), and the old node is
    /// removed.
    Replace(ReplaceNode),
    /// Manage partitions: independent clouds in one cluster.
    ///
    /// Without a subcommand, the command lists them.
    Partitions {
        #[command(subcommand)]
        action: Option<PartitionsAction>,
        #[command(flatten)]
        output: Output,
    },
    /// Transfer leadership to another node.
    ///
    /// Without NODE, the leader chooses a voter.
    TransferLeader {
        /// New leader, by number or name. It must have caught up, and the current leader must be
        /// able to reach it.
        #[arg(value_name = "NODE")]
        node: Option<Named>,
        /// Alternative form of NODE.
        #[arg(long, value_name = "NODE", hide = true, conflicts_with = "node")]
        to: Option<Named>,
    },
    /// Prepare a node for a stop.
    ///
    /// Its `/readyz` returns 503, so that load balancers use other nodes, and it transfers
    /// leadership to another node. It still answers requests.
    Drain(drain::DrainArgs),
    /// Revert `drain`.
    ///
    /// `/readyz` returns 200 again as soon as the node is ready.
    Undrain(drain::DrainArgs),
    /// Verify and compare the states of the members.
    ///
    /// The members verify their states one after the other.
    #[command(
        after_help = "Exit codes: 0 = no problem was found; 1 = a check failed; 2 = no check failed, but a \
                      state could not be checked or compared. Notices do not affect the exit code. During the check a member \
                      needs additional memory of the size of its state."
    )]
    Check(Output),
    /// Compare the data of two Placement services.
    ///
    /// The command reads all data and prints the differences. Each service is a placementd cluster
    /// or openstack-placement. `--endpoint` is not used.
    #[command(
        after_help = "Exit codes: 0 = no differences; 1 = differences; 2 = a service cannot be read. Data that differs is \
                      read a second time, and is reported only if it still differs."
    )]
    Compare(compare::CompareArgs),
    /// Collect diagnostics of all nodes in one archive.
    ///
    /// The archive has the status, topology, logs, metrics, settings without secrets, checks and
    /// recent searches.
    #[command(
        after_help = "Each node has `--timeout` to answer; the archive names the nodes that do not. A line that looks \
                      like a secret is masked: its line number and the kind of secret are shown instead. Exit codes: \
                      0 = success; 1 = something was masked, or the file could not be written; 2 = no node answers. \
                      The nodes verify their states one after the other; during the check a node needs additional \
                      memory of the size of its state."
    )]
    SupportBundle(bundle::BundleArgs),
    /// Compact the Raft log of one node (not a backup).
    ///
    /// The node flushes its state to disk, and deletes the log entries that this state includes.
    Compact {
        /// Node, by number or name. Default: the node at the first endpoint that answers.
        #[arg(value_name = "NODE")]
        node: Option<Named>,
    },
    /// Serve read-only web pages to a browser on this machine.
    ///
    /// The command prints the address to open, which works once.
    Web(web::WebArgs),
    /// Create, renew and show certificates.
    #[command(subcommand)]
    Tls(TlsAction),
    /// Print the completion script for a shell.
    Completion {
        /// Shell that loads the script.
        shell: Shell,
    },
    /// Write the manual pages to a directory.
    Man {
        /// Directory for the manual pages.
        directory: PathBuf,
    },
    /// Explain the flags that many commands accept.
    Flags,
    /// Take a backup of the running cluster.
    ///
    /// It includes every write that was acknowledged before the command started.
    #[command(
        after_help = "`placementd restore` forms a new cluster from a backup. Exit codes: 0 = success; \
                            1 = the file cannot be written; 2 = no node sent a complete backup. \
                            After a failure, no file remains."
    )]
    Backup {
        /// File to create; it must not exist. `-` writes to standard output.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

/// Prints errors without a backtrace, regardless of `RUST_BACKTRACE`.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let matches = help::command().try_get_matches();
    let command = match matches.and_then(|matches| Command::from_arg_matches(&matches)) {
        Ok(command) => command,
        Err(mut refused) => {
            help::suggest(&mut refused);
            // A closed pipe, as by `head`, is not an error.
            drop(refused.print());
            return ExitCode::from(if refused.use_stderr() { USAGE } else { 0 });
        }
    };
    let is_comparison = matches!(command.action, Action::Compare(_));
    match run(command).await {
        Ok(code) => code,
        Err(error) => {
            warn(&sentence(&error));
            ExitCode::from(if error.is::<Misuse>() {
                USAGE
            } else if is_comparison || is_unanswered(&error) {
                NO_QUORUM
            } else {
                1
            })
        }
    }
}

/// Whether the error means that no node or no quorum answers.
fn is_unanswered(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Error::Unreachable { .. } | Error::Unavailable(_) | Error::NothingCommitted { .. })
    ) || matches!(error.downcast_ref(), Some(BackupError::NotReceived(_)))
}

/// The error with its causes. The status of a refused request is omitted: the message of the node
/// says more.
fn sentence(error: &anyhow::Error) -> String {
    let part = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(Error::Refused(refused)) if refused.status.is_client_error() => message(refused),
        _ => cause.to_string(),
    };
    error.chain().map(part).collect::<Vec<_>>().join(": ")
}

fn message(refused: &ApiError) -> String {
    match (refused.message(), &refused.request_id) {
        ("", _) => refused.to_string(),
        (message, Some(id)) => format!("{message} (request {id})"),
        (message, None) => message.to_owned(),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command.action {
        Action::Tls(action) => tls::run(action)?,
        Action::Completion { shell } => manual::complete(shell)?,
        Action::Man { directory } => manual::write(&directory)?,
        Action::Flags => print(&help::flags())?,
        _ => return ask(command).await,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the commands that talk to a node.
async fn ask(command: Command) -> anyhow::Result<ExitCode> {
    let trust = Trust {
        ca_file: command.cacert,
        certificate: command.cert.zip(command.key),
    };
    let timeout = command.timeout;
    let mut endpoints = command.endpoint;
    if !matches!(command.action, Action::Compare(_)) {
        postpone_silent(&mut endpoints, &trust, ANSWER_LIMIT.min(timeout)).await?;
    }
    let has_noticed = AtomicBool::new(false);
    let client = Client::trusting(endpoints.iter().map(Endpoint::to_string), trust.clone())?
        .with_patience(timeout)
        .with_attempt_timeout(timeout)
        .with_notice(move |notice| {
            if !has_noticed.swap(true, Ordering::Relaxed) {
                warn(notice);
            }
        });
    let can_be_local = matches!(command.action, Action::Content(_));
    match command.action {
        Action::Compare(args) => compare::run(&client, args).await,
        action => tokio::select! {
            biased;
            done = act(&client, &trust, action, timeout) => match done {
                Err(error) => Err(diagnosed(error, &client, can_be_local).await),
                done => done,
            },
            mistake = no_admin_listener(&client) => Err(anyhow::Error::msg(mistake)),
        },
    }
}

/// Moves the endpoints before the first one that answers within `limit` to the end. A hung node
/// accepts connections, so it would delay each request until the timeout.
async fn postpone_silent(
    endpoints: &mut [Endpoint],
    trust: &Trust,
    limit: Duration,
) -> Result<(), Error> {
    if endpoints.len() == 1 {
        return Ok(());
    }
    let mut silent = 0;
    for endpoint in endpoints.iter() {
        let one = Client::trusting([endpoint.to_string()], trust.clone())?;
        let one = one.with_attempt_timeout(limit);
        if one.request_once(ApiRequest::get("/")).await.is_ok() {
            break;
        }
        silent += 1;
    }
    // The order stays if no endpoint answers.
    endpoints.rotate_left(silent);
    Ok(())
}

async fn act(
    client: &Client,
    trust: &Trust,
    action: Action,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let endpoints = client.endpoints();
    let admin = Admin::new(client.clone());
    match action {
        Action::Status(output) => return status::show(&admin, &output, timeout).await,
        Action::Top(args) => return top::show(&admin, &args, timeout).await,
        Action::Topology(output) => return topology::show(&admin, &output).await,
        Action::Content(verb) => return verbs::run(admin, verb, timeout).await,
        Action::Backup { file, output } => {
            let taken = backup::take(endpoints, trust, &file, &output, timeout);
            files::unless_interrupted(taken, "no backup was taken").await?;
        }
        Action::Init { members } => {
            let members = members.into_iter().collect();
            init(&admin, &InitialMembers { members }).await?;
        }
        Action::Members(action) => members::run(&admin, action, timeout).await?,
        Action::JoinToken(action) => join_tokens::run(&admin, action).await?,
        Action::Replace(action) => join_tokens::replace(&admin, action).await?,
        Action::Partitions { action, output } => partitions::run(&admin, action, &output).await?,
        Action::TransferLeader { node, to } => {
            let to = named::number(node.or(to), &admin).await?;
            let leader = admin.transfer_leader(to).await?;
            println!("node {leader} leads");
        }
        Action::Drain(args) => drain::drain(&admin, &args, timeout).await?,
        Action::Undrain(args) => drain::undrain(&admin, &args, timeout).await?,
        Action::Web(args) => web::serve(client, args).await?,
        Action::SupportBundle(args) => {
            let made = bundle::make(client, args, timeout);
            return files::unless_interrupted(made, "no bundle was written").await;
        }
        Action::Check(output) => return check::run(&admin, &output, timeout).await,
        Action::Compact { node } => compact(&admin, node, timeout).await?,
        Action::Tls(_)
        | Action::Completion { .. }
        | Action::Man { .. }
        | Action::Flags
        | Action::Compare(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The error with its cause and with advice, as far as the nodes and the endpoints show them.
async fn diagnosed(error: anyhow::Error, client: &Client, can_be_local: bool) -> anyhow::Error {
    let found = match error.downcast_ref() {
        Some(Error::Unreachable { obstacles, .. }) if !obstacles.is_empty() => {
            obstacles.iter().find_map(advice)
        }
        Some(
            Error::Unreachable { .. }
            | Error::Unavailable(_)
            | Error::NothingCommitted { .. }
            | Error::OutcomeUnknown(_),
        ) => without_quorum(&Admin::new(client.clone()), can_be_local).await,
        Some(Error::Refused(refused)) if has_no_admin_route(refused) => {
            rest_listeners(client).await.into_iter().flatten().next()
        }
        _ => None,
    };
    let Some(found) = found else {
        return error;
    };
    match error.downcast() {
        Ok(Error::Unreachable { reason, obstacles }) if !obstacles.is_empty() => {
            let reason = format!("{reason}. {found}");
            Error::Unreachable { reason, obstacles }.into()
        }
        Ok(Error::Unreachable { reason, .. } | Error::Unavailable(reason)) => {
            Error::Unavailable(format!("{found} ({reason})")).into()
        }
        Ok(error @ Error::NothingCommitted { .. }) if error.to_string().starts_with(&found) => {
            error.into()
        }
        Ok(Error::NothingCommitted { reason }) => {
            let reason = format!("{found} ({reason})");
            Error::NothingCommitted { reason }.into()
        }
        Ok(Error::OutcomeUnknown(reason)) => {
            Error::OutcomeUnknown(format!("{found} ({reason})")).into()
        }
        _ => anyhow::Error::msg(found),
    }
}

/// What to do about an obstacle.
fn advice(obstacle: &Obstacle) -> Option<String> {
    let advice = match obstacle {
        Obstacle::NoSocket => {
            "Is placementd running on this machine, and does it use another data_dir? --endpoint or \
             PLACEMENTCTL_ENDPOINT selects its socket"
        }
        Obstacle::SocketDenied => {
            "Only the user of placementd may open it: sudo -u placement placementctl …"
        }
        Obstacle::PeerPort => "placementctl needs admin.sock or the address of [admin] listen",
        Obstacle::UnknownAuthority => "--cacert selects the authorities of the cluster",
        Obstacle::ClientCertificate => "--cert and --key select an operator's certificate",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// Whether the node may have refused the request because it has no routes for operators.
fn has_no_admin_route(refused: &ApiError) -> bool {
    refused.status == StatusCode::UNAUTHORIZED
        || refused.message() == "The resource could not be found."
}

/// The mistake if each endpoint is a REST listener; otherwise this never ends. Without a quorum, a
/// REST listener needs seconds to refuse a request for operators, and more if Keystone is down.
async fn no_admin_listener(client: &Client) -> String {
    sleep(EXAMINED_AFTER).await;
    let found = rest_listeners(client).await;
    let all: Option<Vec<String>> = found.into_iter().collect();
    match all.and_then(|all| all.into_iter().next()) {
        Some(mistake) => mistake,
        None => pending().await,
    }
}

/// For each endpoint: the mistake if it is the REST listener of a node or another Placement.
async fn rest_listeners(client: &Client) -> Vec<Option<String>> {
    let endpoints = client.endpoints().iter();
    join_all(endpoints.map(|endpoint| rest_listener(client, endpoint))).await
}

async fn rest_listener(client: &Client, endpoint: &Endpoint) -> Option<String> {
    if endpoint.is_socket() {
        return None;
    }
    let one = client.for_endpoint(&endpoint.to_string()).ok()?;
    let one = one.with_attempt_timeout(DIAGNOSIS_LIMIT);
    // Listeners for operators, also that of `placementd replay`, refuse a request with an origin.
    let request = ApiRequest::get("/").header("origin", "http://placementctl.invalid");
    let answer = one.request_once(request).await.ok()?;
    let is_refused = answer.status == StatusCode::FORBIDDEN;
    let has_versions = (answer.json::<Versions>()).is_ok_and(|found| !found.versions.is_empty());
    let what = match (is_refused, answer.position().node) {
        (true, _) => return None,
        (false, Some(_)) => "the REST listener of placementd",
        (false, None) if has_versions => "the REST API of another Placement",
        (false, None) => return None,
    };
    Some(format!(
        "{endpoint} is {what}; give --endpoint the admin listener of a node: admin.sock in its data directory, or the \
         address of [admin] listen"
    ))
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    text.parse::<Endpoint>().map_err(|error| match error {
        Error::BadEndpoint { reason, .. } => reason,
        error => error.to_string(),
    })
}

fn founder(text: &str) -> Result<(u64, String), String> {
    let parsed = match text.split_once('=') {
        Some((id, address)) if !address.is_empty() => id.parse().ok().zip(Some(address.to_owned())),
        _ => None,
    };
    parsed.ok_or_else(|| format!("`{text}` is not ID=HOST:PORT, such as 1=10.0.0.1:18779"))
}

async fn compact(admin: &Admin, node: Option<Named>, timeout: Duration) -> anyhow::Result<()> {
    let id = match node {
        Some(node) => {
            let member = node.member(admin).await?;
            admin.for_member(&member, timeout)?.compact().await?;
            member.id
        }
        None => {
            let id = admin.status().await?.node_id;
            admin.relayed(id, timeout).compact().await?;
            id
        }
    };
    println!("the log of node {id} is compacted: this is not a backup");
    Ok(())
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
    let advice = match ids.len() {
        1 => ": it tolerates no failure; add nodes with `placementctl join-token create`",
        _ => "",
    };
    println!(
        "cluster {cluster} is formed with members {}{advice}",
        ids.join(", ")
    );
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
            "consumers label --servers-command list --migrations-command moves --plan plan",
            "consumers label --apply plan --partition north",
            "drain node-1",
            "compact",
            "compact node-1",
            "transfer-leader",
            "transfer-leader 2",
            "transfer-leader --to node-2",
            "watch --after 7.12 --kind inventory,trait --provider cmp-1 -o jsonl",
            "history --consumer c --project p --class VCPU --request-id req-1 --limit 5",
            "bulk --kind allocation --node 2",
            "events --sql mysql --after 7.12 --partition north",
            "providers list --as-of 7.12",
            "partitions -o json",
            "api GET /traits",
            "claim VCPU:4 MEMORY_MB:512 --project p --user u --order pack -o json",
            "claim --data claim.json --partition north",
            "claim VCPU:4 --project p --user u --hold-for 5e24e200-0000-4000-8000-000000000001 --lease 1h",
            "claim VCPU:4 --project p --user u --due 2026-12-24T06:00:00Z",
            "holds list --project p --overdue -o wide",
            "holds list --as-of 7.12 --sort=-ends",
            "holds renew c --lease 12h",
            "holds renew c --due 2026-12-24T06:00:00Z --partition north",
            "holds renew c --open",
            "limits show -o json",
            "limits list --over --project p --sort=-use",
            "limits list --partition north -o csv",
            "limits sync --plan plan --keystone http://k:5000/v3 --token t --region R",
            "limits sync --plan plan --keystone https://k/identity --keystone-cacert ca.pem",
            "limits sync --apply plan --partition north",
            "limits mode enforce",
            "reservations --project p -o wide",
            "reservations --as-of 7.12 --sort=-tokens",
            "support-bundle here.tar.gz",
            "members list -o wide",
            "join-token create --ttl 30m -o json",
            "status --timeout 0.5",
            "top --once --interval 10s",
            "fits --as-of 7.12 -o csv",
            "refuge cmp-1 cmp-2 --moves --required !A",
            "tls show a.pem -o yaml",
            "tls issue node 2 --host 10.0.0.2 --host fd00::2 --host node-2.example.org --host *.lan --host ctl2",
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
            "transfer-leader 2 --to 2",
            "status --endpoint foo",
            "status --timeout soon",
            "capacity --as-of tomorrow",
            "join-token create --ttl 1w",
            "drain node-1 --as-of 7.12",
            "history --as-of 7.12",
            "api PATCH /traits",
            "claim VCPU:4 --project p",
            "claim VCPU:4 --data claim.json",
            "claim --project p --user u",
            "claim VCPU:4 --project p --user u --order best",
            "claim VCPU:4 --project p --user u --as-of 7.12",
            "claim VCPU:4 --project p --user u --hold-for c",
            "claim VCPU:4 --project p --user u --lease 1h --due 2026-12-24T06:00:00Z",
            "claim --data claim.json --lease 1h",
            "claim --data claim.json --hold-for 5e24e200-0000-4000-8000-000000000001",
            "holds renew --open",
            "holds renew c",
            "holds renew c --lease 1h --open",
            "holds renew c --lease 1h --due 2026-12-24T06:00:00Z",
            "holds renew c --due tomorrow",
            "limits",
            "limits sync",
            "limits sync --plan plan --apply plan",
            "limits sync --region R",
            "limits mode",
            "limits mode off",
            "limits show --as-of 7.12",
            "tls issue node 2 --host https://10.0.0.2",
            "tls issue node 2 --host 10.0.0.2:8778",
            "tls issue node 2 --host [fd00::2]",
            "tls issue node 2 --host 10.0.0.256",
            "tls issue node 2 --host node_2/a",
            "consumers audit --plan plan",
            "events --after 7.12",
            "consumers release --apply plan",
            "consumers release --undo-from undo --undo next",
            "consumers label",
            "consumers label --plan plan",
            "consumers label --apply plan --plan next",
            "consumers label --apply plan --servers-command list",
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
