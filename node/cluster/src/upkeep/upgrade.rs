//! Completes an upgrade: adds the standard names of a newer binary, and raises the feature level.
//!
//! The leader writes the standard names that the state lacks. If the leader does not, because its
//! binary may be older, another node does so. The leader raises the level once all members are
//! reachable and run a binary that supports the next level.
//!
//! This does not prevent a member from restarting with an older binary just when the level is
//! raised. That member stops with an error ([`placement_raft_store`] does not apply the entries
//! that follow), and recovers once it runs the newer binary again.

use std::sync::Arc;
use std::time::Duration;

use placement_model::command::RaiseLevel;
use placement_model::{Command, Level};
use tokio::time::{Instant, sleep};

use crate::running::Running;
use placement_base::backend::Unavailable;
use placement_base::log_messages::log;

/// How often the leader checks whether the level can be raised.
const EVERY: Duration = Duration::from_secs(1);

/// How long the other nodes wait for the leader to write the standard names.
const GRACE: Duration = Duration::from_secs(1);
/// Pause before a failed attempt is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// Raises the level whenever this node leads and all members support a higher level. Ends once the
/// level is the newest that this binary supports.
pub(crate) async fn raise_level(node: Arc<Running>) {
    while node.replica.level() < Level::NEWEST {
        if node.replica.leads()
            && let Some(to) = common(&node)
            && to > node.replica.level()
        {
            raise(&node, to).await;
        }
        sleep(EVERY).await;
    }
}

/// The highest level that all members support; `None` while one of them is unreachable.
fn common(node: &Running) -> Option<Level> {
    let Running { replica, peers, .. } = node;
    let members = replica.members();
    let levels = members.keys().map(|id| match *id {
        me if me == replica.me => Some(peers.level()),
        other => peers
            .level_of(other)
            .filter(|_| replica.is_reachable(other)),
    });
    levels.min().flatten()
}

async fn raise(node: &Running, to: Level) {
    let command = Command::RaiseLevel(RaiseLevel { to });
    match node.commit(command, format!("feature level {to}")).await {
        Ok(raised) => {
            let index = raised.index.index;
            log!(
                FEATURE_LEVEL_RAISED,
                index,
                feature_level = %to,
                "raised the feature level of the cluster"
            );
        }
        Err(error) => {
            log!(
                FEATURE_LEVEL_NOT_RAISED,
                %error,
                feature_level = %to,
                "could not raise the feature level yet"
            )
        }
    }
}

/// Writes the standard names until this node's state has all of them.
pub(crate) async fn write_standards(node: Arc<Running>) {
    let replica = &node.replica;
    let mut changes = replica.leadership_changes();
    while !node.has_standards() {
        if !replica.leads() {
            let leads = async {
                while !replica.leads() {
                    changes.next().await;
                }
            };
            tokio::select! {
                biased;
                present = node.wait_for_standards(Instant::now() + GRACE) => {
                    if present.is_ok() {
                        break;
                    }
                }
                () = leads => {}
            }
        }
        if let Err(error) = write_names(&node).await {
            tracing::debug!(%error, "could not write the standard resource classes and traits yet");
        }
        if !node.has_standards() {
            sleep(PAUSE).await;
        }
    }
}

/// Writes the standard names that this node's state lacks.
async fn write_names(node: &Running) -> Result<(), Unavailable> {
    // Another node may have written the names, and this node may not have applied them yet.
    node.catch_up().await?;
    if node.has_standards() {
        return Ok(());
    }
    let command = Command::SyncStandards(node.standards.clone());
    let written = node.commit(command, "standards".to_owned()).await?;
    log!(
        STANDARDS_WRITTEN,
        index = written.index.index,
        "wrote the standard resource classes and traits"
    );
    Ok(())
}
