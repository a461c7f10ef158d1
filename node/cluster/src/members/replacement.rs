//! Replaces one member by another. The leader does this step by step. The plan is in the replicated
//! state, so the next leader continues where this one stopped.
//!
//! Each step changes one vote and leaves a majority of the voters reachable. If the old voter is
//! unreachable, it loses its vote before its replacement gets one: in the other order there would
//! for a time be one more voter, and a majority could need one more reachable node. If the old
//! voter is reachable, it keeps its vote until its replacement has one.

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
use crate::error::Refused;
use crate::internal_actions::InternalAction;
use crate::running::Running;
use placement_base::log_messages::log;

/// How often a leader checks.
const EVERY: Duration = Duration::from_secs(1);

/// Result of one step.
enum Step {
    /// It was carried out, and more steps follow.
    Next,
    /// No step is possible yet, for this reason.
    Wait(String),
    /// The replacement has ended, with or without success.
    Over { words: String, done: bool },
}

/// Carries out replacements while this node leads.
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
                log!(
                    REPLACEMENT_WAITS,
                    by,
                    old = replaced.node,
                    reason,
                    "a replacement is waiting"
                );
                logged = reason;
            }
            Ok(Step::Over { words, done }) => end(&node, by, &replaced, words, done).await,
            Err(refused) => {
                log!(
                    REPLACEMENT_STEP_FAILED,
                    by,
                    old = replaced.node,
                    %refused,
                    "a replacement step failed"
                );
            }
        }
    }
}

/// Whether a replacement is under way; there is at most one at a time.
pub(crate) fn is_under_way(node: &Running) -> bool {
    next(node).is_some()
}

/// The first replacement whose new node has redeemed its token or was chosen by the autopilot.
fn next(node: &Running) -> Option<(u64, Replaced)> {
    let applied = node.replica.views.current();
    let begun = |(by, row): (u64, &JoinRow)| {
        let replaced = row.nonce.as_ref().and(row.replaces.clone())?;
        // A node that redeems a token becomes a member a little later.
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
        let words = format!("node {by} was removed before it replaced node {old}");
        return Ok(Step::Over { words, done: false });
    }
    let is_reachable = replica.is_reachable(old);
    let (now, voters) = owner.now();
    let (has_vote, is_member) = (voters.contains(&old), replica.is_member(old));
    if has_vote && is_reachable && !replaced.though_reachable {
        if replaced.stays && !voters.contains(&by) {
            let words = format!("node {old} is reachable again and keeps its vote");
            return Ok(Step::Over { words, done: false });
        }
        return Ok(Step::Wait(format!("node {old} is reachable: stop it")));
    }
    if !replica.is_reachable(by) || !replica.has_caught_up(by) {
        return Ok(Step::Wait(format!("node {by} has not caught up")));
    }
    let needs_vote = replaced.votes && !voters.contains(&by);
    if needs_vote && (is_reachable || !has_vote) {
        log!(
            VOTE_GIVEN,
            by,
            old,
            "a member gets the vote of the node that it replaces"
        );
        // Forced, because `[cluster] survive` does not apply between two steps.
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
        log!(
            VOTE_TAKEN,
            by,
            old,
            "a member loses its vote to its replacement"
        );
        owner.set_membership(now, left, replica.members()).await?;
        return Ok(Step::Next);
    }
    if !replaced.stays && is_member {
        owner.remove_node(old, now, voters).await?;
        return Ok(Step::Next);
    }
    if !replaced.stays && !replica.views.current().cluster.is_retired(old) {
        owner.retire(old).await?;
        return Ok(Step::Next);
    }
    // The name is set in a separate change, because openraft cannot combine it with a removal.
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
            format!("node {by} is a voter and replaces node {old}, which is removed")
        }
        (false, _) => {
            format!("node {by} is a learner and replaces node {old}, which is removed")
        }
    };
    Ok(Step::Over { words, done: true })
}

async fn end(node: &Running, by: u64, replaced: &Replaced, words: String, done: bool) {
    let command = Command::SetReplacement(SetReplacement { by, replaces: None });
    if let Err(refused) = node.carry_out(command, &words).await {
        log!(
            REPLACEMENT_STEP_FAILED,
            by,
            %refused,
            "could not record the end of a replacement yet"
        );
        return;
    }
    log!(
        REPLACEMENT_ENDED,
        by,
        old = replaced.node,
        words,
        "a replacement has ended"
    );
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
