//! `placementctl join-token` and `replace`: admits nodes to the cluster.

use clap::{Args, Subcommand};
use placement_client::{Admin, NewJoinToken, NodeStatus};
use placement_words::inert_lines;

use crate::moment::moment;
use crate::named::{Named, number};

#[derive(Subcommand)]
pub(crate) enum JoinTokenAction {
    /// Create and print a token with which one node can join the cluster, once. The cluster stores
    /// only a hash of the token.
    Create(CreateToken),
    /// List recent tokens and their states.
    List,
    /// Revoke an unused token.
    Revoke {
        /// Number of the token: the part before the dash.
        #[arg(value_name = "NUMBER")]
        id: u64,
    },
}

#[derive(Args)]
pub(crate) struct CreateToken {
    /// Member that the new node replaces, by number or name.
    #[arg(long, value_name = "NODE", required_if_eq("though_reachable", "true"))]
    replace: Option<Named>,
    #[command(flatten)]
    terms: Terms,
}

#[derive(Args)]
struct Terms {
    /// Validity of the token, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    ttl: u64,
    /// Replace the member even if it still answers.
    #[arg(long)]
    though_reachable: bool,
}

#[derive(Args)]
pub(crate) struct ReplaceNode {
    /// Member to replace, by number or name.
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
                let place = token.replaces.map(|old| format!(", replaces node {old}"));
                let (until, place) = (moment(token.until), place.unwrap_or_default());
                println!(
                    "node {}: {}, expires at {until}{place}",
                    token.id, token.state
                );
            }
        }
        JoinTokenAction::Revoke { id } => {
            admin.revoke_join_token(id).await?;
            println!("token for node {id} revoked");
        }
    }
    Ok(())
}

/// Creates the token for a replacement, and prints the remaining steps.
pub(crate) async fn replace(admin: &Admin, action: ReplaceNode) -> anyhow::Result<()> {
    let old = action.node.number(admin).await?;
    let status = admin.status().await?;
    let new = create(admin, &action.terms, Some(old)).await?;
    eprint!("{}", inert_lines(&steps(&status, old, new)));
    Ok(())
}

/// Instructions for starting the new node.
fn steps(status: &NodeStatus, old: u64, new: u64) -> String {
    let (gone, others): (Vec<_>, Vec<_>) =
        (status.members.iter()).partition(|member| member.id == old);
    let peers: Vec<&str> = others.iter().map(|member| &*member.peer).collect();
    let mut text = format!("To replace node {old} by node {new}:\n");
    let mut change = "remove node_id and initial_members".to_owned();
    if status.certificate_ends.contains_key("peer") {
        let host = gone.first().and_then(|member| member.api.rsplit_once(':'));
        let host = host.map_or("HOST", |(host, _)| host);
        text += &format!(
            "  on the machine with ca-key.pem, create a certificate, and copy it and its key to the new machine:\n    \
             placementctl tls issue node {new} --dir DIR --host {host}\n"
        );
        change += &format!(
            ", and set [tls] cert_file and key_file to node-{new}.pem and node-{new}-key.pem"
        );
    }
    text += &format!(
        "  on the new machine, empty the data directory, and in the configuration {change}\n  write the token to a file \
         that only the user of placementd can read, and start the node once with\n    placementd --config CONFIG --join \
         {} --join-token-file FILE\nThe node catches up as a learner. Then it takes over the role of node {old} (voter or \
         learner), node {old} is removed, and the new node gets the name of node {old}\n",
        peers.join(",")
    );
    text
}

/// Creates a token. Prints only the token to standard output. Returns the number of its node.
async fn create(admin: &Admin, terms: &Terms, replaces: Option<u64>) -> anyhow::Result<u64> {
    let new = NewJoinToken {
        ttl_s: terms.ttl,
        replaces,
        though_reachable: terms.though_reachable,
    };
    let made = admin.create_join_token(&new).await?;
    eprintln!(
        "token for one new node, which becomes node {}; it is shown only once and expires at {}",
        made.id,
        moment(made.until)
    );
    println!("{}", made.token.unwrap_or_default());
    Ok(made.id)
}

#[cfg(test)]
mod tests {
    use placement_client::Member;

    use super::*;

    fn status(has_tls: bool) -> NodeStatus {
        let member = |id: u64| Member {
            id,
            peer: format!("10.0.0.{id}:18779"),
            api: format!("10.0.0.{id}:8778"),
            ..Member::default()
        };
        let ends = has_tls.then(|| ("peer".to_owned(), 1_795_532_432));
        NodeStatus {
            members: [1, 2, 3].map(member).into(),
            certificate_ends: ends.into_iter().collect(),
            ..NodeStatus::default()
        }
    }

    #[test]
    fn replacement_steps_include_a_certificate_only_with_tls() {
        let start = "placementd --config CONFIG --join 10.0.0.1:18779,10.0.0.3:18779 --join-token-file FILE\n";
        let issue = "placementctl tls issue node 7 --dir DIR --host 10.0.0.2\n";
        for has_tls in [false, true] {
            let text = steps(&status(has_tls), 2, 7);
            assert!(text.contains(start), "{text}");
            assert_eq!(text.contains(issue), has_tls, "{text}");
            assert_eq!(text.contains("node-7-key.pem"), has_tls, "{text}");
        }
    }
}
