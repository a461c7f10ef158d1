//! `placementctl join-token` and `replace`: letting nodes in.

use clap::{Args, Subcommand};
use placement_client::Admin;

use crate::moment::moment;
use crate::named::{Named, number};

#[derive(Subcommand)]
pub(crate) enum JoinTokenAction {
    /// Makes a token with which one node joins the cluster, once, and shows it. The cluster keeps only its hash.
    Create(CreateToken),
    /// Lists recent tokens and their state.
    List,
    /// Revokes a token that no node has used.
    Revoke {
        /// The number of the token, before its dash.
        #[arg(value_name = "NUMBER")]
        id: u64,
    },
}

#[derive(Args)]
pub(crate) struct CreateToken {
    /// The member that the node replaces, by its number or its name.
    #[arg(long, value_name = "NODE", required_if_eq("though_reachable", "true"))]
    replace: Option<Named>,
    #[command(flatten)]
    terms: Terms,
}

#[derive(Args)]
struct Terms {
    /// How long the new node may take to join, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    ttl: u64,
    /// Replaces the member although it still answers.
    #[arg(long)]
    though_reachable: bool,
}

#[derive(Args)]
pub(crate) struct ReplaceNode {
    /// The member to replace, by its number or its name.
    #[arg(value_name = "NODE")]
    node: Named,
    #[command(flatten)]
    terms: Terms,
}

pub(crate) async fn run(admin: &Admin, action: JoinTokenAction) -> anyhow::Result<()> {
    match action {
        JoinTokenAction::Create(token) => {
            let replaces = number(token.replace, admin).await?;
            create(admin, &token.terms, replaces).await?;
        }
        JoinTokenAction::List => {
            for token in admin.join_tokens().await? {
                let place = token
                    .replaces
                    .map(|old| format!(", in the place of node {old}"));
                let (until, place) = (moment(token.until), place.unwrap_or_default());
                println!(
                    "node {}: {}, good until {until}{place}",
                    token.id, token.state
                );
            }
        }
        JoinTokenAction::Revoke { id } => {
            admin.revoke_join_token(id).await?;
            println!("the token for node {id} is taken back");
        }
    }
    Ok(())
}

/// Begins to replace a member: makes the token, and says what is left to do.
pub(crate) async fn replace(admin: &Admin, action: ReplaceNode) -> anyhow::Result<()> {
    let node = &action.node;
    let old = node.number(admin).await?;
    let members = admin.status().await?.members;
    let peers: Vec<String> = (members.into_iter())
        .filter(|member| member.id != old)
        .map(|member| member.peer)
        .collect();
    create(admin, &action.terms, Some(old)).await?;
    eprintln!(
        "on the machine of {node}: empty its data directory, take `node_id` and `initial_members` out of its \
         configuration, write the token to a file that only its user can read, and start\n  \
         placementd --join {} --join-token-file FILE\nIt catches up as a learner; then it has the vote and the \
         name of node {old}, which is removed",
        peers.join(",")
    );
    Ok(())
}

/// The token alone goes to standard output.
async fn create(admin: &Admin, terms: &Terms, replaces: Option<u64>) -> anyhow::Result<()> {
    let made = (admin.create_join_token(terms.ttl, replaces, terms.though_reachable)).await?;
    eprintln!(
        "a token for one node, which will be node {}; it is shown once and is good until {}",
        made.id,
        moment(made.until)
    );
    println!("{}", made.token.unwrap_or_default());
    Ok(())
}
