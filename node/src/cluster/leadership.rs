//! What a node does because it leads, and when it may not lead any longer.

use std::sync::Arc;
use std::time::Duration;

use placement_model::command::Command;
use placement_model::standard;
use tokio::sync::oneshot;

use super::group::Group;
use super::propose::{Proposal, Proposed};

/// How long to wait before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Whenever this node becomes the leader: makes sure that the state has the standard resource
/// classes and traits that this binary knows.
pub(crate) async fn watch(group: Arc<Group>) {
    let mut turns = group.turns();
    let mut known = None;
    loop {
        let leader = group.leader().map(|leader| leader.id);
        if leader != known {
            known = leader;
            match leader {
                Some(leader) => tracing::info!(node = group.me, leader, "a node leads"),
                None => tracing::warn!(node = group.me, "no leader is known"),
            }
        }
        if group.leads() && lacks_standards(&group) {
            propose(&group, standard::sync()).await;
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        turns.next().await;
    }
}

fn lacks_standards(group: &Group) -> bool {
    let applied = group.views.current();
    let Command::SyncStandards {
        resource_classes,
        traits,
    } = standard::sync()
    else {
        return false;
    };
    resource_classes
        .iter()
        .any(|name| applied.state.resource_class_id(name).is_none())
        || traits
            .iter()
            .any(|name| applied.state.trait_id(name).is_none())
}

/// Proposes a command of the leader's own. What does not work out is seen and tried again.
async fn propose(group: &Group, command: Command) {
    let (answer, proposed) = oneshot::channel();
    let proposal = Proposal {
        request: None,
        request_id: "standards".to_owned(),
        command,
        answer,
    };
    if group.proposals.send(proposal).is_err() {
        return;
    }
    if let Ok(Proposed::Written { index, .. }) = proposed.await {
        tracing::info!(index, "standard resource classes and traits are up to date");
    }
}

/// When the disk fails: stops taking part in the cluster, so that another node leads. What is in
/// memory can still be read.
pub(crate) async fn leave_on_failure(group: Arc<Group>) {
    let failure = group.health.clone().failed().await;
    tracing::error!(%failure, "this node stops taking part in the cluster; restart it when the disk is well");
    if let Err(error) = group.raft.shutdown().await {
        tracing::error!(%error, "replication did not stop cleanly");
    }
}

/// Hands leadership to the voter that is furthest, if this node leads. Waits until another node
/// leads, `patience` at most.
pub(crate) async fn hand_over(
    group: &Group,
    to: Option<u64>,
    patience: Duration,
) -> Result<u64, String> {
    if !group.leads() {
        return Err("this node does not lead".to_owned());
    }
    let to = match to {
        Some(to) => to,
        None => group.best_successor().ok_or("there is no other voter")?,
    };
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        group
            .raft
            .trigger()
            .transfer_leader(to)
            .await
            .map_err(|error| error.to_string())?;
        let attempt = (tokio::time::Instant::now() + PAUSE * 5).min(deadline);
        group.other_leader(Some(group.me), attempt).await;
        match group.leader() {
            Some(leader) if leader.id != group.me => return Ok(leader.id),
            _ if tokio::time::Instant::now() >= deadline => {
                return Err(format!("node {to} did not take over within {patience:?}"));
            }
            _ => {}
        }
    }
}
