//! Disaster recovery after a permanent loss of the majority: one remaining node continues alone, as
//! a new cluster, with its whole log.
//!
//! The node gets another cluster id, so that no node of the old cluster can connect to it, and
//! another epoch, so that old session tokens become invalid. Its log continues in a new term with
//! an entry that makes it the only member. This entry commits all earlier entries, whether or not a
//! majority had them.

use std::collections::{BTreeMap, BTreeSet};

use openraft::entry::RaftEntry;
use openraft::vote::RaftLeaderId;
use openraft::vote::leader_id_adv::LeaderId;
use placement_model::Level;
use uuid::Uuid;

use crate::base::Base;
use crate::data_dir;
use crate::error::OpenError;
use crate::identity::Identity;
use crate::inspect::{Inspection, inspect};
use crate::log::LogDatabase;
use crate::options::StoreOptions;
use crate::types::{Entry, LogId, Member, Membership, Payload};
use crate::wire::{RecordVersion, WireMembership};

/// Why a node was not recovered. Its directory is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The recovery would be unsafe.
    #[error("nothing is changed: {0}")]
    Refused(String),
}

/// The starting point of a recovery. The directory is unchanged so far.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The current identity of the node.
    pub identity: Identity,
    /// The members of its cluster, as far as the node knows.
    pub members: WireMembership,
    /// All entries up to this one are certainly committed.
    pub certain: Option<LogId>,
    /// The last entry of its log. The recovery commits all entries up to this one.
    pub last: Option<LogId>,
    /// Whether the state is ahead of the log.
    is_overtaken: bool,
    /// The term in which the log continues.
    term: u64,
    level: Level,
    member: Member,
}

/// Result of a recovery.
#[derive(Debug, Clone, Copy)]
pub struct Recovered {
    /// Identity before the recovery.
    pub was: Identity,
    /// Identity after the recovery.
    pub is: Identity,
    /// The log entry that makes the node the only voter.
    pub entry: LogId,
}

/// Determines what a recovery of the node would start from.
///
/// # Errors
/// [`RecoverError::Open`], including [`OpenError::Locked`] while the node runs, or
/// [`RecoverError::Refused`] if the directory is damaged or the node has nothing to recover from.
pub fn plan_recovery(options: &StoreOptions) -> Result<Plan, RecoverError> {
    plan(&inspect(&options.dir)?).map_err(RecoverError::Refused)
}

fn plan(found: &Inspection) -> Result<Plan, String> {
    // Damaged snapshots of the node's own state are ignored, because the node can write them again.
    // It cannot replace a received snapshot, because the log that the snapshot covers may have been
    // purged.
    let mut problems = (found.problems.iter()).filter(|one| {
        !one.part.starts_with("snapshots/") || one.part.starts_with("snapshots/received-")
    });
    if let Some(problem) = problems.next() {
        return Err(format!(
            "{} is damaged ({}: {}). Recover another remaining node, or restore a backup",
            found.dir.display(),
            problem.part,
            problem.words
        ));
    }
    if let Some(unfinished) = found.unfinished.first() {
        return Err(format!(
            "{unfinished}. Start the node once, stop it, and try again"
        ));
    }
    let (Some(identity), Some(log), Some(state)) = (found.identity, &found.log, &found.state)
    else {
        return Err("this node has never taken part in a cluster".to_owned());
    };
    // The last membership in the log may be uncommitted. If it does not contain this node, the
    // membership in the state is used.
    let in_log = log.membership.as_ref().map(|(_, members)| members);
    let knows_me = |members: &&WireMembership| members.members.contains_key(&identity.node);
    let known = in_log.into_iter().chain([&state.membership]).find(knows_me);
    let Some(members) = known else {
        return Err(format!(
            "node {} is not a member of its cluster",
            identity.node
        ));
    };
    if members.voters == [BTreeSet::from([identity.node])] {
        return Err(format!(
            "node {} is the only voter of its cluster already: start it",
            identity.node
        ));
    }
    let (last, applied) = (log.last, state.applied);
    let terms = [last.map(|id| id.term), log.vote.map(|vote| vote.term)];
    Ok(Plan {
        identity,
        members: members.clone(),
        certain: applied.max(log.committed).map(LogId::from),
        last: last.max(applied).map(LogId::from),
        is_overtaken: applied > last,
        term: terms.into_iter().flatten().max().unwrap_or_default() + 1,
        level: Level(state.level),
        member: members.members[&identity.node].clone(),
    })
}

/// Makes the node of a directory the only member of the new cluster `cluster`.
///
/// # Errors
/// The errors of [`plan_recovery`]. After an [`OpenError::Io`] the call can be repeated.
pub fn recover(options: &StoreOptions, cluster: Uuid) -> Result<Recovered, RecoverError> {
    let plan = plan_recovery(options)?;
    let dir = &options.dir;
    let base = Base::enter(options)?;
    let was = base.identity;
    let is = Identity::for_new_cluster(cluster, was.node);
    let (log, _) = LogDatabase::open(options, &base.cache)?;
    let index = plan.last.map_or(0, |last| last.index + 1);
    let id = LogId::new(LeaderId::new(plan.term, was.node), index);
    let members = BTreeMap::from([(was.node, plan.member.clone())]);
    let alone = Membership::new(vec![BTreeSet::from([was.node])], members)
        .map_err(|error| RecoverError::Refused(error.to_string()))?;
    let words = |id: Option<LogId>| id.map_or("nothing".to_owned(), |id| id.to_string());
    // The order of the writes: first the record of the recovery, then the identity, which separates
    // the node from its old cluster, and only then the membership. So after a crash at any point,
    // no node of the old cluster can connect to the only voter of the new one.
    let trace = format!(
        "became {cluster}: node {} alone, with its log up to {} (certainly committed up to {}), without \
         the other members of {:?}",
        was.node,
        words(plan.last),
        words(plan.certain),
        plan.members.members.keys().collect::<Vec<_>>()
    );
    let trace = format!("{} {trace}", was.cluster);
    data_dir::add_line(dir, data_dir::RECOVERED, &trace)?;
    data_dir::write_identity(dir, is)?;
    // If the state is ahead of the log, the entries between them may be missing, so the log begins
    // after the state. Otherwise the new entry would follow a gap, and the next start would reject
    // the log.
    if plan.is_overtaken
        && let Some(last) = &plan.last
    {
        log.begin_behind_state(RecordVersion::for_level(plan.level), last)?;
    }
    let entry = Entry::new(id, Payload::Membership(alone));
    log.append_recovery_entry(RecordVersion::for_level(plan.level), &entry)?;
    Ok(Recovered { was, is, entry: id })
}
