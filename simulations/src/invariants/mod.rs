//! Invariants of the product, one per file, with their sources. Violations begin with the
//! invariant's name.
//!
//! * [`Invariant`]: checked whenever a node applies a command.
//! * [`LogInvariant`]: checked on each event of a node's log.
//! * [`Leadership`]: checked at each step of time, on the roles that nodes report.
//! * The others are checked on the history at the end ([`from_history`] by [`crate::witness`]).

pub mod applied_never_falls;
pub mod as_of_is_what_it_was;
pub mod carried_out_once;
pub mod claim_is_whole;
pub mod commit_immutable;
pub mod commit_on_a_quorum;
pub mod committed_stays;
mod decided_claims;
mod decisions;
pub mod equal_digest;
pub mod first_choice_wins;
pub mod generations_rise;
pub mod groups_hold;
pub mod hold_goes_with_its_claim;
pub mod indexes_agree;
pub mod leader_completeness;
pub mod leader_settles;
mod leadership;
pub mod liveness;
pub mod log_is_kept;
pub mod log_matching;
pub mod members_change_as_ordered;
pub mod no_503_without_a_fault;
pub mod no_ceiling_is_passed;
pub mod no_event_is_repeated;
pub mod no_event_is_skipped;
pub mod no_lease_ends_early;
pub mod no_limit_is_passed;
pub mod no_over_allocation;
pub mod one_command_per_write_id;
pub mod one_committed_leader_per_term;
pub mod one_start_per_leader;
pub mod own_vote;
pub mod progress_is_the_truth;
pub mod refusals_change_nothing;
pub mod repeated_is_once;
pub mod restored_is_another;
pub mod stamps_rise;
pub mod usages_are_sums;
pub mod votes_are_kept;
pub mod votes_rise;
pub mod well_formed_trees;

use placement_model::state::Digest;
use placement_model::types::PartitionId;
use placement_model::{Changes, Outcome, Stamped, State};
use placement_raft_store::Vote;

use crate::logs::{EntryId, LogChange, Logs};

pub use leadership::Leadership;
pub use placement_witness::{promise as from_history, staleness};

/// Names of all invariants.
pub fn names() -> Vec<&'static str> {
    let mut names = vec![
        from_history::ACKNOWLEDGED_IS_THERE,
        from_history::ANSWERS_FOLLOW,
        from_history::ASKED_FOR,
        from_history::BOUNDED,
        from_history::CLIENT,
        from_history::LINEARIZABLE,
        from_history::NOTHING_COMMITTED,
        from_history::REAL_TIME,
        from_history::REPEATED_ONCE,
        from_history::SAYS_WHAT_IT_KEEPS,
        from_history::SESSION,
        as_of_is_what_it_was::NAME,
        leader_settles::NAME,
        liveness::NAME,
        no_503_without_a_fault::NAME,
        no_event_is_repeated::NAME,
        no_event_is_skipped::NAME,
        one_start_per_leader::NAME,
        progress_is_the_truth::NAME,
        restored_is_another::NAME,
        staleness::NAME,
        votes_are_kept::NAME,
    ];
    names.extend(all().iter().map(|one| one.name()));
    names.extend(
        log_invariants(&members_change_as_ordered::OrderedChanges::default())
            .iter()
            .map(|one| one.name()),
    );
    names
}

/// A role that a node reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// Number of the node.
    pub node: u64,
    /// Number of the node's start, from 1.
    pub start: u64,
    /// The durable vote of the node.
    pub vote: Vote,
    /// Whether the node leads.
    pub leads: bool,
    /// The applied index that its readers see.
    pub applied: Option<u64>,
}

/// A command at the moment when one node applies it.
pub struct Applied<'a> {
    /// The node that applies the command.
    pub node: u64,
    /// Number of the node's start, from 1.
    pub start: u64,
    /// Log index of the command.
    pub index: u64,
    /// Partition of the command, or the default one if that was deleted.
    pub partition: PartitionId,
    /// State of that partition before the command.
    pub before: &'a State,
    /// State of that partition after the command.
    pub after: &'a State,
    /// Digest of the node's whole state after the command.
    pub digest: Digest,
    /// The command with its timestamp and write id.
    pub stamped: &'a Stamped,
    /// Outcome that the node decided.
    pub outcome: &'a Outcome,
    /// Changes that the command makes.
    pub changes: &'a Changes,
}

/// An invariant that is checked whenever a node applies a command.
pub trait Invariant {
    /// Name at the start of violations.
    fn name(&self) -> &'static str;

    /// Checks one applied command.
    ///
    /// # Errors
    /// Description of the violation.
    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String>;
}

/// An event of a node's log, and the commits that it revealed.
#[derive(Debug)]
pub struct LogObservation<'a> {
    /// The node to which the log belongs.
    pub node: u64,
    /// The event, already recorded in the logs.
    pub happened: &'a LogChange,
    /// Entries that are now known to be committed for the first time.
    pub committed: Vec<EntryId>,
}

/// An invariant over the logs of all nodes.
pub trait LogInvariant {
    /// Name at the start of violations.
    fn name(&self) -> &'static str;

    /// Checks one event; `logs` include it.
    ///
    /// # Errors
    /// Description of the violation.
    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String>;
}

/// All invariants of applied commands.
pub fn all() -> Vec<Box<dyn Invariant + Send>> {
    vec![
        Box::<applied_never_falls::AppliedNeverFalls>::default(),
        Box::<carried_out_once::CarriedOutOnce>::default(),
        Box::<decided_claims::EachClaim<claim_is_whole::ClaimIsWhole>>::default(),
        Box::<commit_immutable::CommitImmutable>::default(),
        Box::<equal_digest::EqualDigest>::default(),
        Box::<decided_claims::EachClaim<first_choice_wins::FirstChoiceWins>>::default(),
        Box::<generations_rise::GenerationsRise>::default(),
        Box::<decided_claims::EachClaim<groups_hold::GroupsHold>>::default(),
        Box::<hold_goes_with_its_claim::HoldGoesWithItsClaim>::default(),
        Box::<indexes_agree::IndexesAgree>::default(),
        Box::<decided_claims::EachClaim<no_ceiling_is_passed::NoCeilingIsPassed>>::default(),
        Box::<no_lease_ends_early::NoLeaseEndsEarly>::default(),
        Box::<no_limit_is_passed::NoLimitIsPassed>::default(),
        Box::<no_over_allocation::NoOverAllocation>::default(),
        Box::<one_command_per_write_id::OneCommandPerWriteId>::default(),
        Box::<refusals_change_nothing::RefusalsChangeNothing>::default(),
        Box::<decided_claims::EachClaim<repeated_is_once::RepeatedIsOnce>>::default(),
        Box::<stamps_rise::StampsRise>::default(),
        Box::<usages_are_sums::UsagesAreSums>::default(),
        Box::<well_formed_trees::WellFormedTrees>::default(),
    ]
}

/// All invariants of logs; `ordered` permits changes of the members.
pub fn log_invariants(
    ordered: &members_change_as_ordered::OrderedChanges,
) -> Vec<Box<dyn LogInvariant + Send>> {
    vec![
        Box::<commit_on_a_quorum::CommitOnAQuorum>::default(),
        Box::<committed_stays::CommittedStays>::default(),
        Box::<leader_completeness::LeaderCompleteness>::default(),
        Box::<log_is_kept::LogIsKept>::default(),
        Box::<log_matching::LogMatching>::default(),
        Box::new(members_change_as_ordered::MembersChangeAsOrdered::new(
            ordered.clone(),
        )),
        Box::<one_committed_leader_per_term::OneCommittedLeaderPerTerm>::default(),
        Box::<own_vote::OwnVote>::default(),
        Box::<votes_rise::VotesOnDiskRise>::default(),
    ]
}
