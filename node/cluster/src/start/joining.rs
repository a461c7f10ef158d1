//! Joins a cluster with a token. A node without data asks the nodes in its configuration. They
//! forward the call to the leader, which admits the node. The token contains the node's number; the
//! node then stores the number in its data directory.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::{identity, join_nonce};
use tokio::time::sleep;

use super::Bootstrap;
use super::self_description;
use crate::error::{Refused, StartError};
use crate::members::join_tokens::JoinToken;
use crate::settings::ClusterSection;
use crate::slot::OUTSIDE;
use placement_base::permissions::check_secret_file;
use placement_base::settings::Invalid;
use placement_peer::raft::messages::JoinCall;
use placement_peer::transport::method::Method;

/// Interval between attempts to join.
const EVERY: Duration = Duration::from_secs(1);
/// Interval after a refusal: the operator may still create another token.
const REFUSED: Duration = Duration::from_secs(10);
/// Deadline of a call to join. Before the leader answers, it connects to this node.
const CALL: Duration = Duration::from_secs(30);

/// Determines this node's number if the configuration gives none: the number in the data directory,
/// or in the join token.
///
/// # Errors
/// [`StartError`]: the number is missing, or the sources contradict each other.
pub fn settle_number(
    node_id: u64,
    data_dir: &Path,
    cluster: &ClusterSection,
) -> Result<u64, StartError> {
    if let Some(found) = identity(data_dir)? {
        // The store refuses a different configured number.
        return Ok(if node_id == 0 { found.node } else { node_id });
    }
    if !cluster.joins() {
        return Ok(node_id);
    }
    let token = token(cluster)?;
    if node_id != 0 && node_id != token.node {
        let message = format!(
            "{node_id} is not the number of the join token, which is {}: leave node_id out",
            token.node
        );
        return Err(Invalid::new("node_id", message).into());
    }
    Ok(token.node)
}

/// Reads the token from `[cluster] join_token_file`.
fn token(cluster: &ClusterSection) -> Result<JoinToken, StartError> {
    let wrong = |message: String| Invalid::new("cluster.join_token_file", message);
    let file = cluster
        .join_token_file
        .as_deref()
        .ok_or_else(|| wrong("is required with cluster.join".to_owned()))?;
    check_secret_file(file)?;
    let shown = Path::display(file);
    let text = fs::read_to_string(file).map_err(|error| wrong(format!("{shown}: {error}")))?;
    let token = JoinToken::read(&text);
    Ok(token.ok_or_else(|| wrong(format!("{shown} holds no join token")))?)
}

/// Asks for admission until a committed entry makes this node a member: an uncommitted admission
/// may be discarded by the next leader.
pub async fn join(bootstrap: Arc<Bootstrap>) {
    if !bootstrap.config.cluster.joins() || is_in(&bootstrap) {
        return;
    }
    let mut logged = String::new();
    while !is_in(&bootstrap) {
        let asked = ask(&bootstrap).await;
        let is_admitted = asked.is_ok() && bootstrap.slot.get().is_some();
        let (reason, pause) = match asked {
            Ok(()) if is_admitted => ("admitted; waiting for the log".to_owned(), EVERY),
            Ok(()) => (LOST.to_owned(), REFUSED),
            Err(unable) => unable,
        };
        if reason != logged {
            if is_admitted {
                log!(JOINING, reason, "this node joins the cluster");
            } else {
                log!(NOT_ADMITTED, reason, "{OUTSIDE}");
            }
            bootstrap.slot.note_outside(&format!("{OUTSIDE}: {reason}"));
            logged = reason;
        }
        sleep(pause).await;
    }
    log!(
        JOINED,
        node = bootstrap.config.node_id,
        "this node has joined the cluster"
    );
}

/// Whether joining is over: the applied log shows this node as a member, or the node was removed.
fn is_in(bootstrap: &Bootstrap) -> bool {
    let running = bootstrap.slot.get();
    running.is_some_and(|running| running.replica.is_settled() || running.replica.is_removed())
}

/// Answer to a node whose number already belongs to a member.
const LOST: &str = "the cluster already has a member of this number, and this node has none of its \
    data: if they were lost, replace the node (`placementctl replace`)";

/// # Errors
/// Why this node is not admitted, and the pause before the next attempt. The pause is longer after
/// a refusal than if no node was reachable.
async fn ask(bootstrap: &Bootstrap) -> Result<(), (String, Duration)> {
    let refused = |error: StartError| (error.to_string(), REFUSED);
    let (config, fresh) = (bootstrap.config.clone(), bootstrap.env.ids.uuid());
    let read = runtime::blocking(move || {
        let nonce = join_nonce(&config.data_dir, fresh)?;
        Ok((token(&config.cluster)?, nonce))
    });
    let (token, nonce) = read.await.map_err(refused)?;
    let call = JoinCall {
        node: bootstrap.config.node_id,
        token: token.secret,
        nonce,
        member: self_description::own(bootstrap),
    };
    let mut reason = "no node of the cluster answers".to_owned();
    for address in &bootstrap.config.cluster.join {
        match (bootstrap.peers)
            .introduce(address, Method::Join, &call, CALL)
            .await
        {
            Ok(Ok(())) => return Ok(()),
            // The asked node cannot decide this, for example because it was removed. The next one
            // may.
            Ok(Err(Refused::Unavailable(why))) => reason = why,
            Ok(Err(Refused::NotLeader)) => reason = "the cluster has no leader".to_owned(),
            Ok(Err(refused)) => return Err((refused.to_string(), REFUSED)),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    Err((reason, EVERY))
}
