//! `placementctl join-token` and `replace`: admits nodes to the cluster.

use clap::{Args, Subcommand};
use http::Uri;
use placement_client::{Admin, JoinToken, NewJoinToken, NodeStatus};
use placement_words::inert_lines;
use serde::Serialize;

use crate::moment::{moment, seconds};
use crate::named::{Named, number};
use crate::render::{Output, Rows, print};
use crate::survey::require_quorum;

#[derive(Subcommand)]
pub(crate) enum JoinTokenAction {
    /// Create and print a token with which one node can join, once.
    ///
    /// The cluster stores only a hash of the token.
    Create(CreateToken),
    /// List recent tokens and their states.
    List(Output),
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
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Terms {
    /// Validity of the token, such as 30m or 2d.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = seconds)]
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
    #[command(flatten)]
    output: Output,
}

/// A token for a replacement, and the remaining steps.
#[derive(Serialize)]
struct Replacement {
    #[serde(flatten)]
    token: JoinToken,
    steps: Vec<String>,
}

pub(crate) async fn run(admin: &Admin, action: JoinTokenAction) -> anyhow::Result<()> {
    match action {
        JoinTokenAction::Create(args) => {
            let replaces = number(args.replace, admin).await?;
            let output = &args.output;
            let token = create(admin, &args.terms, output, replaces).await?;
            let rows = rows(vec![token.clone()]);
            print(&output.report(&token, Some(rows), |_| secret(&token))?)?;
        }
        JoinTokenAction::List(output) => {
            let rows = Rows::new(admin.join_tokens().await?)
                .if_none("no tokens")
                .column("node", |token| token.id)
                .column("state", |token| token.state.clone())
                .column("expires", |token| moment(token.until))
                .column("replaces", |token| token.replaces);
            print(&output.rows(rows)?)?;
        }
        JoinTokenAction::Revoke { id } => {
            admin.revoke_join_token(id).await?;
            println!("the token for node {id} is revoked");
        }
    }
    Ok(())
}

/// Creates the token for a replacement, and prints the remaining steps.
pub(crate) async fn replace(admin: &Admin, args: ReplaceNode) -> anyhow::Result<()> {
    let old = args.node.number(admin).await?;
    let status = admin.status().await?;
    if !status.confirmed {
        require_quorum(admin).await?;
    }
    let output = &args.output;
    let token = create(admin, &args.terms, output, Some(old)).await?;
    let steps = steps(&status, old, token.id);
    let intended = format!("To replace node {old} by node {}:\n", token.id);
    eprint!("{}", inert_lines(&(intended + &numbered(&steps))));
    let made = Replacement { token, steps };
    let rows = rows(vec![made.token.clone()]);
    print(&output.report(&made, Some(rows), |_| secret(&made.token))?)
}

/// Instructions for starting the new node.
fn steps(status: &NodeStatus, old: u64, new: u64) -> Vec<String> {
    let (gone, others): (Vec<_>, Vec<_>) =
        (status.members.iter()).partition(|member| member.id == old);
    let peers: Vec<&str> = others.iter().map(|member| &*member.peer).collect();
    let mut steps = Vec::new();
    let mut change = "remove node_id and initial_members".to_owned();
    if status.certificate_ends.contains_key("peer") {
        let api = gone
            .first()
            .and_then(|member| member.api.parse::<Uri>().ok());
        let host = api.as_ref().and_then(Uri::host).unwrap_or("HOST");
        let host = host.trim_matches(['[', ']']);
        steps.push(format!(
            "on the machine with ca-key.pem, create a certificate, and copy it and its key to the new machine:\n\
             placementctl tls issue node {new} --dir DIR --host {host}"
        ));
        change += &format!(
            ", and set [tls] cert_file and key_file to node-{new}.pem and node-{new}-key.pem"
        );
    }
    steps.push(format!(
        "on the new machine, empty the data directory, and in the configuration {change}"
    ));
    steps.push(
        "write the token, which is the line below, to a file FILE that only the user of placementd can read"
            .to_owned(),
    );
    steps.push(format!(
        "start the node once with these flags; later starts need neither of them:\n\
         placementd --config CONFIG --join {} --join-token-file FILE",
        peers.join(",")
    ));
    steps.push(format!(
        "wait: the node catches up as a learner. Then it takes over the role (voter or learner) of node {old} and \
         a name that you gave to node {old}, which is removed"
    ));
    steps
}

/// The steps with their numbers. The second line of a step is a command.
fn numbered(steps: &[String]) -> String {
    let step = |(at, step): (usize, &String)| {
        let step = step.replace('\n', "\n       ");
        format!("  {at}. {step}\n")
    };
    (1..).zip(steps).map(step).collect()
}

/// Creates a token, which `output` can print. Its explanation is printed to standard error.
async fn create(
    admin: &Admin,
    terms: &Terms,
    output: &Output,
    replaces: Option<u64>,
) -> anyhow::Result<JoinToken> {
    output.check_columns(&rows(Vec::new()))?;
    let new = NewJoinToken {
        ttl_s: terms.ttl,
        replaces,
        though_reachable: terms.though_reachable,
    };
    let token = admin.create_join_token(&new).await?;
    eprintln!(
        "token for one new node, which becomes node {}; it is shown only once and expires at {}",
        token.id,
        moment(token.until)
    );
    Ok(token)
}

/// The token alone on a line, which scripts write to a file.
fn secret(token: &JoinToken) -> String {
    format!("{}\n", token.token.as_deref().unwrap_or_default())
}

fn rows(tokens: Vec<JoinToken>) -> Rows<JoinToken> {
    Rows::new(tokens)
        .column("token", |token: &JoinToken| token.token.clone())
        .column("node", |token| token.id)
        .column("expires", |token| moment(token.until))
        .column("replaces", |token| token.replaces)
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
    fn a_certificate_for_the_new_node_has_the_host_of_the_old_one() {
        for (api, host) in [
            ("10.0.0.2:8778", "10.0.0.2"),
            ("https://10.0.0.2:8778", "10.0.0.2"),
            ("https://[fd00::2]:8778", "fd00::2"),
            (
                "https://node-2.cloud.example/placement",
                "node-2.cloud.example",
            ),
            ("", "HOST"),
        ] {
            let mut status = status(true);
            status.members[1].api = api.to_owned();
            let issue = steps(&status, 2, 7).remove(0);
            assert!(
                issue.ends_with(&format!("--dir DIR --host {host}")),
                "{issue}"
            );
        }
    }

    #[test]
    fn replacement_steps_include_a_certificate_only_with_tls() {
        let start = "placementd --config CONFIG --join 10.0.0.1:18779,10.0.0.3:18779 --join-token-file FILE\n";
        let issue = "placementctl tls issue node 7 --dir DIR --host 10.0.0.2\n";
        for has_tls in [false, true] {
            let text = numbered(&steps(&status(has_tls), 2, 7));
            assert!(text.contains(start), "{text}");
            assert_eq!(text.contains(issue), has_tls, "{text}");
            assert_eq!(text.contains("node-7-key.pem"), has_tls, "{text}");
        }
    }
}
