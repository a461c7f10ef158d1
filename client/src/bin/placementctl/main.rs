//! `placementctl`: looks at a placement cluster and changes its membership.

mod status;

use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use placement_client::{Admin, Client, NewMember};

/// Looks at a placement cluster and changes its membership, through the admin door of any node.
#[derive(Parser)]
#[command(name = "placementctl", version)]
struct Command {
    /// Admin door of a node, as `http://host:port` or `host:port`. Give several (or separate them
    /// by commas): the first that answers is used.
    #[arg(
        long,
        global = true,
        env = "PLACEMENTCTL_ENDPOINT",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:18780"
    )]
    endpoint: Vec<String>,

    /// How long to try, in seconds.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 15.0)]
    timeout: f64,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Shows every member: role, term, log indexes, lag behind the leader.
    Status {
        /// A table for people or JSON for programs.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Changes the membership.
    #[command(subcommand)]
    Members(MembersAction),
    /// Hands leadership over, to a voter of the leader's choice if none is named.
    TransferLeader {
        /// The node that shall lead.
        #[arg(long, value_name = "NODE_ID")]
        to: Option<u64>,
    },
    /// Snapshots of the state.
    #[command(subcommand)]
    Snapshot(SnapshotAction),
}

#[derive(Subcommand)]
enum MembersAction {
    /// Adds a fresh, running node as learner. It receives the log but does not vote yet.
    Add(AddMember),
    /// Makes a learner that has caught up a voter.
    Promote {
        /// The learner.
        id: u64,
    },
    /// Removes a node. Its id must never be used again.
    Remove {
        /// The node to go.
        id: u64,
    },
}

#[derive(Args)]
struct AddMember {
    /// An id that no node of this cluster has ever had.
    id: u64,
    /// Where the other nodes reach it, `host:port`.
    #[arg(long, value_name = "HOST:PORT")]
    rpc: String,
    /// Where clients reach its REST API, `host:port`; by default as the node says itself.
    #[arg(long, value_name = "HOST:PORT", default_value = "")]
    api: String,
    /// Where operators reach its admin door, `host:port`; by default as the node says itself.
    #[arg(long, value_name = "HOST:PORT", default_value = "")]
    admin: String,
}

#[derive(Subcommand)]
enum SnapshotAction {
    /// Snapshots the node at the first endpoint that answers, and purges the log behind it.
    Trigger,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let command = Command::parse();
    let timeout = Duration::try_from_secs_f64(command.timeout)
        .context("--timeout is a number of seconds, such as 15")?;
    let client = Client::new(&command.endpoint)?
        .with_patience(timeout)
        .with_attempt_timeout(timeout);
    let admin = Admin::new(client);
    match command.action {
        Action::Status { output } => status::show(&admin, output, timeout).await,
        Action::Members(action) => change_members(&admin, action).await,
        Action::TransferLeader { to } => {
            admin.transfer_leader(to).await?;
            println!("leadership handed over");
            Ok(())
        }
        Action::Snapshot(SnapshotAction::Trigger) => {
            admin.trigger_snapshot().await?;
            println!("snapshot triggered");
            Ok(())
        }
    }
}

async fn change_members(admin: &Admin, action: MembersAction) -> anyhow::Result<()> {
    match action {
        MembersAction::Add(AddMember {
            id,
            rpc,
            api,
            admin: door,
        }) => {
            let member = NewMember {
                id,
                rpc,
                api,
                admin: door,
            };
            admin.add_member(&member).await?;
            println!(
                "node {id} added as learner; `placementctl members promote {id}` gives it a vote"
            );
        }
        MembersAction::Promote { id } => {
            admin.promote_member(id).await?;
            println!("node {id} is a voter");
        }
        MembersAction::Remove { id } => {
            admin.remove_member(id).await?;
            println!("node {id} removed");
        }
    }
    Ok(())
}
