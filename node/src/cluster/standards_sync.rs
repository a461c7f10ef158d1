//! Who has the standard names written that a state lacks: the leader at once, any other node if the
//! leader does not, since its binary may be older.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::running::Running;
use super::write_path::Committed;
use crate::doors::Unavailable;

/// How long a node that does not lead waits for the leader to write the names.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Sees to it that the state gets all names of this binary. Ends once it has them.
pub(super) async fn run(node: Arc<Running>) {
    let Running {
        replica, standards, ..
    } = &*node;
    let mut changes = replica.leadership_changes();
    while !standards.are_present() {
        if !replica.leads() {
            let leads = async {
                while !replica.leads() {
                    changes.next().await;
                }
            };
            tokio::select! {
                biased;
                present = standards.wait(Instant::now() + GRACE) => {
                    if present.is_ok() {
                        break;
                    }
                }
                () = leads => {}
            }
        }
        if let Err(error) = write(&node).await {
            tracing::debug!(%error, "the standard resource classes and traits are not written yet");
        }
        if !standards.are_present() {
            sleep(PAUSE).await;
        }
    }
}

/// Has the names written that this node's state lacks.
async fn write(node: &Running) -> Result<(), Unavailable> {
    let deadline = Instant::now() + node.replica.config.wait();
    // What others have written already may only not be applied here.
    node.read_index.linearize(deadline).await?;
    if node.standards.are_present() {
        return Ok(());
    }
    let command = node.standards.sync();
    let Committed { index, .. } = (node.writes)
        .commit(command, "standards".to_owned(), deadline)
        .await?;
    tracing::info!(
        index,
        "the standard resource classes and traits are written"
    );
    node.replica.apply_up_to(index, deadline).await
}
