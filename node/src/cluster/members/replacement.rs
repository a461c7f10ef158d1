//! One member takes the place of another: carried through by the leader, step by step. What is to
//! be done stands in the replicated state, so the next leader goes on where this one stopped.
//!
//! Each step is one change of one vote, and leaves a majority of the voters reachable. A voter that
//! is lost loses its vote first: it adds nothing to a reachable majority, and one more voter would
//! make that majority larger. A voter that is reachable keeps its vote until the other one has its
//! own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use placement_model::Command;
use placement_model::command::SetReplacement;
use placement_model::state::change::{JoinRow, Replaced};
use placement_raft_store::NodeName;
use tokio::time::sleep;

use super::membership::Membership;
use crate::cluster::error::Refused;
use crate::cluster::internal_actions::InternalAction;
use crate::cluster::running::Running;

/// How often a leader looks.
const EVERY: Duration = Duration::from_secs(1);

/// What a step came to.
enum Step {
    /// There is more to do.
    Next,
    /// Nothing can be done yet.
    Wait(String),
    /// It is over, as text.
    Over { words: String, done: bool },
}

/// Carries through what was begun, whenever this node leads.
pub(crate) async fn run(node: Arc<Running>) {
    let mut logged = String::new();
    loop {
        sleep(EVERY).await;
        if !node.replica.leads() {
            continue;
        }
        let Some((by, replaced)) = next(&node) else {
            continue;
        };
        match step(&node, by, &replaced).await {
            Ok(Step::Next) => logged.clear(),
            Ok(Step::Wait(reason)) if logged == reason => {}
            Ok(Step::Wait(reason)) => {
                tracing::info!(by, old = replaced.node, reason, "a replacement waits");
                logged = reason;
            }
            Ok(Step::Over { words, done }) => end(&node, by, &replaced, words, done).await,
            Err(refused) => {
                tracing::warn!(by, old = replaced.node, %refused, "a replacement does not go on");
            }
        }
    }
}

/// Whether one member is to take the place of another: there is one at a time.
pub(crate) fn is_under_way(node: &Running) -> bool {
    next(node).is_some()
}

/// The first that was begun: a node came with its token, or was chosen.
fn next(node: &Running) -> Option<(u64, Replaced)> {
    let applied = node.replica.views.current();
    let begun = |(by, row): (u64, &JoinRow)| {
        let replaced = row.nonce.as_ref().and(row.replaces.clone())?;
        // A node that comes with a token is a member a little later.
        let is_there =
            row.token.is_empty() || node.replica.is_member(by) || applied.cluster.is_retired(by);
        is_there.then_some((by, replaced))
    };
    applied.cluster.default_partition().joins().find_map(begun)
}

async fn step(node: &Running, by: u64, replaced: &Replaced) -> Result<Step, Refused> {
    let (owner, replica) = (Membership(node), &node.replica);
    let old = replaced.node;
    if !replica.is_member(by) {
        let words = format!("node {by} was removed before it took the place of node {old}");
        return Ok(Step::Over { words, done: false });
    }
    let is_reachable = replica.is_reachable(old);
    let (now, voters) = owner.now();
    let (has_vote, is_member) = (voters.contains(&old), replica.is_member(old));
    if has_vote && is_reachable && !replaced.though_reachable {
        if replaced.stays && !voters.contains(&by) {
            let words = format!("node {old} is reachable again, and keeps its vote");
            return Ok(Step::Over { words, done: false });
        }
        return Ok(Step::Wait(format!("node {old} is reachable: stop it")));
    }
    if !replica.is_reachable(by) || !replica.has_caught_up(by) {
        return Ok(Step::Wait(format!("node {by} has not caught up")));
    }
    let needs_vote = replaced.votes && !voters.contains(&by);
    if needs_vote && (is_reachable || !has_vote) {
        tracing::info!(by, old, "a member gets a vote in the place of another");
        // Its vote comes in the place of one that is lost: what is to be survived is not asked
        // about half way.
        owner.promote(by, true).await?;
        return Ok(Step::Next);
    }
    if has_vote {
        let mut left: BTreeSet<u64> = voters;
        left.remove(&old);
        if let Err(refused) = owner.must_be_reachable(&left).await {
            return Ok(Step::Wait(refused.to_string()));
        }
        if old == replica.me {
            owner.hand_over(None).await?;
            return Ok(Step::Next);
        }
        tracing::info!(
            by,
            old,
            "a member loses its vote, as another one is to have it"
        );
        owner.set_membership(now, left, replica.members()).await?;
        return Ok(Step::Next);
    }
    if !replaced.stays && is_member {
        owner.take_out(old, now, voters).await?;
        return Ok(Step::Next);
    }
    if !replaced.stays && !replica.views.current().cluster.is_retired(old) {
        owner.retire(old).await?;
        return Ok(Step::Next);
    }
    // In a change of its own: openraft does not take it together with a removal.
    let known = replica.member(by);
    if let (Some(mut member), Ok(name)) = (known, replaced.name.parse::<NodeName>())
        && member.name.as_str().is_empty()
        && !name.as_str().is_empty()
    {
        *member.name = name;
        owner.set_member(now, by, member).await?;
        return Ok(Step::Next);
    }
    let words = match (replaced.votes, replaced.stays) {
        (true, true) => format!("node {by} has the vote of node {old}, which stays as a learner"),
        (true, false) => {
            format!("node {by} is a voter in the place of node {old}, which is removed")
        }
        (false, _) => {
            format!("node {by} is a learner in the place of node {old}, which is removed")
        }
    };
    Ok(Step::Over { words, done: true })
}

async fn end(node: &Running, by: u64, replaced: &Replaced, words: String, done: bool) {
    let command = Command::SetReplacement(SetReplacement { by, replaces: None });
    if let Err(refused) = node.carry_out(command, &words).await {
        tracing::warn!(by, %refused, "it is not written down yet that a replacement is over");
        return;
    }
    tracing::info!(by, old = replaced.node, words, "a replacement is over");
    if done {
        node.replica.replacements.fetch_add(1, Ordering::Relaxed);
    }
    node.actions.record(InternalAction {
        actor: format!("the leader, node {}", node.replica.me),
        path: format!("/v1/members/{}/replace", replaced.node),
        detail: words,
        done,
    });
}
