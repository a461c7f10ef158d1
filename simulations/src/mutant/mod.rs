//! Injected bugs that prove that the checks can fail. No configuration enables them: they are
//! injected where the simulation meets the product, in the applier (`rules.rs`) or between clients
//! and nodes (`proxy.rs`), or where the product calls `mutant!` ([`placement_model::mutant!`]),
//! which release builds do not contain.

mod courses;
mod proxy;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use placement_raft_store::Applier;

pub(crate) use self::proxy::Proxy;

use crate::faults::{Planned, drawn};
use crate::invariants::{
    applied_never_falls, as_of_is_what_it_was, carried_out_once, claim_is_whole, commit_immutable,
    commit_on_a_quorum, committed_stays, equal_digest, first_choice_wins, from_history,
    generations_rise, groups_hold, hold_goes_with_its_claim, indexes_agree, leader_completeness,
    leader_settles, liveness, log_is_kept, log_matching, members_change_as_ordered,
    no_503_without_a_fault, no_ceiling_is_passed, no_event_is_repeated, no_event_is_skipped,
    no_lease_ends_early, no_limit_is_passed, no_over_allocation, one_command_per_write_id,
    one_committed_leader_per_term, one_start_per_leader, own_vote, progress_is_the_truth,
    refusals_change_nothing, repeated_is_once, restored_is_another, staleness, stamps_rise,
    usages_are_sums, votes_are_kept, votes_rise, well_formed_trees,
};
use crate::parameters::IN_THE_NEIGHBOUR;
use crate::parameters::Parameters;
use crate::report::Report;
use crate::seed::Seed;

macro_rules! mutants {
    ($($(#[doc = $doc:literal])+ $mutant:ident, $name:literal, $promise:expr;)*) => {
        /// An injected bug, with the invariant that must catch it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[doc = $doc])+ $mutant,)*
        }

        impl Mutant {
            /// All mutants, in the order of `simulate mutants`.
            pub const ALL: &[Mutant] = &[$(Mutant::$mutant,)*];

            /// Name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Mutant::$mutant => $name,)*
                }
            }

            /// Description of the bug.
            pub fn description(self) -> &'static str {
                match self {
                    $(Mutant::$mutant => concat!($($doc),+).trim_ascii(),)*
                }
            }

            /// The invariant that must catch it. Another violation is no proof: a cluster that does
            /// not form fails as well.
            pub fn complaint(self) -> &'static str {
                match self {
                    $(Mutant::$mutant => $promise,)*
                }
            }
        }
    };
}

mutants! {
    /// Log entries and votes are acknowledged before they are synced.
    AcknowledgeBeforeSync, "acknowledge-before-sync", commit_on_a_quorum::NAME;
    /// Log entries are acknowledged before they are synced, and the power of all nodes fails at
    /// once.
    LoseAcknowledged, "lose-acknowledged", from_history::ACKNOWLEDGED_IS_THERE;
    /// Votes are acknowledged and never written.
    ForgetVotes, "forget-votes", votes_are_kept::NAME;
    /// Votes are not written, and two leaders of one term commit.
    ForgetVotesTwoLeaders, "forget-votes-two-leaders", one_committed_leader_per_term::NAME;
    /// Votes are not written, and an elected node has no vote of its own on disk.
    ForgetOwnVotes, "forget-own-votes", own_vote::NAME;
    /// Votes are not written, and a restarted node leads again in the same term.
    ForgetVotesSameLeader, "forget-votes-same-leader", one_start_per_leader::NAME;
    /// Truncated entries stay on disk.
    DropTruncations, "drop-truncations", log_matching::NAME;
    /// Some appended entries are acknowledged and never written.
    DropAppends, "drop-appends", log_is_kept::NAME;
    /// A starting node treats its whole log as committed.
    CommitTheTail, "commit-the-tail", commit_immutable::NAME;
    /// Entries read from disk lose a field.
    LoseRequestIds, "lose-request-ids", commit_immutable::NAME;
    /// A start of a node reuses the number of the previous start.
    ReuseBoots, "reuse-boots", one_command_per_write_id::NAME;
    /// A start reuses the number of the previous one, and a write gets an answer from before its
    /// request.
    ReuseBootsOutOfOrder, "reuse-boots-out-of-order", from_history::REAL_TIME;
    /// A snapshot replaces entries that were applied after it.
    OlderSnapshotReturns, "older-snapshot-returns", applied_never_falls::NAME;
    /// A write of unknown outcome is sent again with another id.
    AskAgainAsAnother, "ask-again-as-another", from_history::ASKED_FOR;
    /// A write that was sent is reported as not committed.
    DenyWhatWasSent, "deny-what-was-sent", from_history::NOTHING_COMMITTED;
    /// A write marks itself as answered.
    AnsweredBeforeItIs, "answered-before-it-is", one_command_per_write_id::NAME;
    /// Leaders take timestamps from their own clocks only.
    StampByTheClock, "stamp-by-the-clock", stamps_rise::NAME;
    /// A leader answers linearizable reads without contacting a quorum.
    LeadWithoutQuorum, "lead-without-quorum", from_history::LINEARIZABLE;
    /// A read joins a quorum round that began before the read.
    JoinTheRound, "join-the-round", from_history::LINEARIZABLE;
    /// A node that follows another leader still counts for a read's quorum.
    CountEveryVote, "count-every-vote", from_history::LINEARIZABLE;
    /// A new leader answers linearizable reads before it has committed an entry of its own.
    ReadBeforeTheFirstEntry, "read-before-the-first-entry", from_history::LINEARIZABLE;
    /// A single voter answers linearizable reads before it has applied the committed entries.
    RuleBeforeApplying, "rule-before-applying", from_history::LINEARIZABLE;
    /// A single voter answers reads before it has applied a write that a learner acknowledged.
    RuleBehindALearner, "rule-behind-a-learner", from_history::LINEARIZABLE;
    /// The age of a state counts from the arrival of the leader's answer.
    FreshAsOfTheAnswer, "fresh-as-of-the-answer", staleness::NAME;
    /// Votes are granted to candidates with incomplete logs.
    VoteForAnyLog, "vote-for-any-log", leader_completeness::NAME;
    /// A heartbeat makes a node commit its own entries, whether or not they match the leader's.
    HeartbeatAgrees, "heartbeat-agrees", committed_stays::NAME;
    /// The leader decodes a forwarded write differently from the nodes that receive its record.
    MisreadWrite, "misread-write", log_matching::NAME;
    /// A linearizable read is answered from the local state.
    LocalReadAsLinearizable, "local-read-as-linearizable", from_history::LINEARIZABLE;
    /// A session read is answered one entry before its token.
    TokenLessOne, "token-less-one", from_history::SESSION;
    /// A session read that times out is answered from the local state.
    SessionGivesUp, "session-gives-up", from_history::SESSION;
    /// A session read does not wait for its token.
    TokenNotWaitedFor, "token-not-waited-for", no_503_without_a_fault::NAME;
    /// A bounded read is answered however old the state is.
    BoundIgnored, "bound-ignored", from_history::BOUNDED;
    /// The reported age of a state is halved.
    HalvedStaleness, "halved-staleness", staleness::NAME;
    /// A read gets the answer of the previous read.
    StateOfTheReadBefore, "state-of-the-read-before", from_history::ANSWERS_FOLLOW;
    /// Allocations are not checked against the capacity.
    SkipCapacityCheck, "skip-capacity-check", no_over_allocation::NAME;
    /// A repeated request is executed again.
    ApplyRetriesTwice, "apply-retries-twice", carried_out_once::NAME;
    /// A write to another partition is executed in the default partition.
    PartitionForgotten, "partition-forgotten", from_history::ANSWERS_FOLLOW;
    /// One node decides differently from the others.
    DivergingNode, "diverging-node", equal_digest::NAME;
    /// The first of several consumers in a refused request keeps its allocations.
    FirstOfSeveralStays, "first-of-several-stays", refusals_change_nothing::NAME;
    /// Inventories change without a new generation.
    GenerationStays, "generation-stays", generations_rise::NAME;
    /// The transport of our client library reports an unanswered request as not sent.
    LostAsNotSent, "lost-as-not-sent", from_history::CLIENT;
    /// The last of several claimed resources is dropped.
    LastClaimForgotten, "last-claim-forgotten", from_history::ANSWERS_FOLLOW;
    /// The last of several claimed resources is dropped, in the neighbour partition only.
    NeighboursLastClaimForgotten, "neighbours-last-claim-forgotten", from_history::ANSWERS_FOLLOW;
    /// An older vote is written with the commit index.
    OlderVoteReturns, "older-vote-returns", votes_rise::NAME;
    /// A snapshot is installed without the traits of providers.
    InstallWithoutTraits, "install-without-traits", equal_digest::NAME;
    /// A starting node counts learners as voters.
    CountLearners, "count-learners", commit_on_a_quorum::NAME;
    /// A silent connection counts as alive.
    TrustInSilence, "trust-in-silence", liveness::NAME;
    /// The outcome of a write is stored under the id of the next write.
    ReplyOfTheWriteBefore, "reply-of-the-write-before", from_history::ANSWERS_FOLLOW;
    /// The former allocations of a consumer still count after they are replaced.
    HeldStaysCounted, "held-stays-counted", usages_are_sums::NAME;
    /// A provider is found by its former name.
    NameStaysFound, "name-stays-found", indexes_agree::NAME;
    /// The parent of a new provider does not record its child.
    ChildUncounted, "child-uncounted", well_formed_trees::NAME;
    /// The search index misses the resources that a deleted consumer frees.
    OffersStayBehind, "offers-stay-behind", indexes_agree::NAME;
    /// A search returns one candidate more than its limit.
    OneCandidateTooMany, "one-candidate-too-many", from_history::ANSWERS_FOLLOW;
    /// A search ignores forbidden traits.
    ForbiddenTraitIgnored, "forbidden-trait-ignored", from_history::ANSWERS_FOLLOW;
    /// A starting node does not verify its rows against their digest.
    RowsUnproved, "rows-unproved", equal_digest::NAME;
    /// A node starts on an older copy of its data directory.
    OlderCopyTakesPart, "older-copy-takes-part", log_is_kept::NAME;
    /// State that is applied during a flush of the rows counts as flushed.
    CoverWhatIsNotFlushed, "cover-what-is-not-flushed", liveness::NAME;
    /// A membership change overwrites changes made since it was decided.
    OverwriteMembers, "overwrite-members", members_change_as_ordered::NAME;
    /// A local read is reported as linearizable.
    LocalCalledLinearizable, "local-called-linearizable", from_history::SAYS_WHAT_IT_KEEPS;
    /// Reads report another epoch than writes.
    OtherEpoch, "other-epoch", from_history::SAYS_WHAT_IT_KEEPS;
    /// A restored node restarts the count of its starts.
    RestoreForgetsBoots, "restore-forgets-boots", liveness::NAME;
    /// A restored cluster accepts join tokens of the lost cluster.
    RestoreKeepsTokens, "restore-keeps-tokens", restored_is_another::NAME;
    /// Leadership moves to a preferred site whether or not a node there has caught up.
    PreferThoseBehind, "prefer-those-behind", leader_settles::NAME;
    /// A node that is cut off restarts the age of its state from zero.
    AgeBeginsAgain, "age-begins-again", staleness::NAME;
    /// After a snapshot is installed, the change ledger of the entries before it counts as
    /// complete.
    LedgerOutlivesASnapshot, "ledger-outlives-a-snapshot", no_event_is_skipped::NAME;
    /// A node forgets the index from which its change ledger is complete.
    FloorForgotten, "floor-forgotten", no_event_is_skipped::NAME;
    /// After a start, changes on disk also count as part of the tail in memory.
    TailReadTwice, "tail-read-twice", no_event_is_repeated::NAME;
    /// A stream reports progress before it sends the events.
    ProgressComesFirst, "progress-comes-first", progress_is_the_truth::NAME;
    /// A read at an earlier moment is answered from the current state.
    BeforeIsNow, "before-is-now", as_of_is_what_it_was::NAME;
    /// A claim that equals the state counts as a repetition, even if another request made it.
    AnyEqualStateIsDone, "any-equal-state-is-done", from_history::REPEATED_ONCE;
    /// A claim counts as a repetition of an equal claim with another request id.
    AnotherIdIsDone, "another-id-is-done", from_history::REPEATED_ONCE;
    /// A repeated claim gets a conflict with its own first attempt.
    RepeatIsAConflict, "repeat-is-a-conflict", from_history::REPEATED_ONCE;
    /// A claim takes its second choice, if that fits, before its first one.
    SecondChoiceFirst, "second-choice-first", first_choice_wins::NAME;
    /// A ceiling still counts what the claimants release.
    CeilingBeforeRelease, "ceiling-before-release", first_choice_wins::NAME;
    /// A ceiling of consumers counts their allocations as well.
    RowsCountedAsConsumers, "rows-counted-as-consumers", first_choice_wins::NAME;
    /// A ceiling does not count the first of its consumer types.
    TypeLeftOut, "type-left-out", no_ceiling_is_passed::NAME;
    /// A refused claim creates its first consumer, without allocations.
    RefusedClaimLeavesARow, "refused-claim-leaves-a-row", claim_is_whole::NAME;
    /// The reply to a repeated claim names the choice after the one that the consumers hold.
    RepetitionTakesTheNext, "repetition-takes-the-next", repeated_is_once::NAME;
    /// The members of a group count as apart if they are on different providers of a tree.
    ApartByProvider, "apart-by-provider", groups_hold::NAME;
    /// A lease ends ten seconds before its time.
    LeaseEndsEarly, "lease-ends-early", no_lease_ends_early::NAME;
    /// A hold with a due time becomes a lease.
    DueBecomesALease, "due-becomes-a-lease", no_lease_ends_early::NAME;
    /// A claim ends the hold of another consumer, too.
    HoldOfAnotherEnds, "hold-of-another-ends", hold_goes_with_its_claim::NAME;
    /// A claim does not end the holds that are kept for it.
    HoldStays, "hold-stays", hold_goes_with_its_claim::NAME;
    /// No leader ends leases.
    LeasesStay, "leases-stay", liveness::NAME;
    /// A limit also refuses or reports writes that do not increase a usage above it.
    LimitRefusesMoves, "limit-refuses-moves", no_limit_is_passed::NAME;
    /// The limits of the parent of a project are ignored.
    ParentsAreNotAsked, "parents-are-not-asked", no_limit_is_passed::NAME;
}

impl Mutant {
    /// Finds a mutant by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|mutant| mutant.name() == name)
    }

    /// Whether the run violates the invariant that must catch the mutant.
    pub fn is_caught_by(self, report: &Report) -> bool {
        let (words, more) = (self.complaint(), self.evidence());
        let caught = |one: &String| one.starts_with(words) && one.contains(more);
        report.violations.iter().any(caught)
    }

    /// The name under which the product asks for the bug (`mutant!`). Several mutants may share one
    /// bug that breaks several invariants.
    pub(crate) fn bug(self) -> &'static str {
        match self {
            Mutant::LoseAcknowledged => "acknowledge-before-sync",
            Mutant::ForgetOwnVotes
            | Mutant::ForgetVotesTwoLeaders
            | Mutant::ForgetVotesSameLeader => "forget-votes",
            Mutant::ReuseBootsOutOfOrder => "reuse-boots",
            Mutant::RuleBehindALearner => "rule-before-applying",
            _ => self.name(),
        }
    }

    /// Text that the violation must also contain, to tell which of many answers is wrong.
    fn evidence(self) -> &'static str {
        match self {
            Mutant::OneCandidateTooMany | Mutant::ForbiddenTraitIgnored => {
                "GET /allocation_candidates"
            }
            Mutant::NeighboursLastClaimForgotten => IN_THE_NEIGHBOUR,
            Mutant::OtherEpoch => "it is of epoch",
            Mutant::LocalCalledLinearizable => "local was asked for",
            _ => "",
        }
    }

    /// Whether the watchers of the change stream catch it.
    pub(crate) fn is_caught_by_watchers(self) -> bool {
        matches!(
            self,
            Mutant::LedgerOutlivesASnapshot
                | Mutant::FloorForgotten
                | Mutant::TailReadTwice
                | Mutant::ProgressComesFirst
                | Mutant::BeforeIsNow
        )
    }

    /// The run that should catch it: the random run of the seed, or a run that creates the
    /// conditions that the bug needs. Without the bug it must succeed.
    pub fn course(self, seed: Seed) -> (Parameters, Vec<Planned>) {
        match self {
            Mutant::LoseAcknowledged => courses::power_cuts(seed),
            Mutant::CountEveryVote => courses::two_leaders_are_reachable(seed),
            Mutant::LeadWithoutQuorum => courses::leaders_are_cut_off(seed),
            Mutant::ReadBeforeTheFirstEntry => courses::leaders_fall_mute(seed),
            Mutant::VoteForAnyLog | Mutant::HeartbeatAgrees => courses::truncations(seed),
            Mutant::JoinTheRound | Mutant::FreshAsOfTheAnswer => courses::slow_links(seed),
            Mutant::RuleBeforeApplying => courses::only_voter(seed),
            Mutant::RuleBehindALearner => courses::learner_is_ahead(seed),
            Mutant::LostAsNotSent => courses::careful_client(seed),
            Mutant::DropTruncations => courses::long_tails(seed),
            Mutant::CountLearners => courses::learners(seed),
            Mutant::TrustInSilence | Mutant::SessionGivesUp | Mutant::BoundIgnored => {
                courses::each_is_cut_off(seed)
            }
            Mutant::CommitTheTail => courses::tails(seed),
            Mutant::AskAgainAsAnother | Mutant::ApplyRetriesTwice => {
                courses::leaders_fall(seed, Duration::from_secs(5))
            }
            Mutant::DenyWhatWasSent => courses::leaders_fall(seed, Duration::from_millis(800)),
            Mutant::TokenNotWaitedFor => courses::lagging_followers(seed, 8),
            Mutant::TokenLessOne => courses::lagging_followers(seed, 2),
            Mutant::PreferThoseBehind => courses::preferred_falls_behind(seed),
            Mutant::AgeBeginsAgain => courses::edge_is_cut_off(seed),
            Mutant::PartitionForgotten | Mutant::NeighboursLastClaimForgotten => {
                courses::neighbours(seed)
            }
            Mutant::RowsUnproved => courses::rotten_rows(seed),
            Mutant::OlderSnapshotReturns | Mutant::CoverWhatIsNotFlushed => {
                courses::power_cuts_behind_snapshots(seed)
            }
            Mutant::RestoreForgetsBoots | Mutant::RestoreKeepsTokens => courses::lost(seed),
            Mutant::OverwriteMembers => courses::two_operators(seed),
            Mutant::OlderCopyTakesPart => courses::copied_disks(seed),
            Mutant::InstallWithoutTraits => courses::snapshots(seed),
            Mutant::LedgerOutlivesASnapshot => courses::ledgers(courses::snapshots(seed), 1 << 20),
            Mutant::FloorForgotten => courses::ledgers(courses::each_is_cut_off(seed), 2 << 10),
            Mutant::ProgressComesFirst | Mutant::BeforeIsNow => {
                courses::ledgers(courses::each_is_cut_off(seed), 1 << 20)
            }
            Mutant::AnyEqualStateIsDone | Mutant::AnotherIdIsDone => courses::equal_claims(seed),
            Mutant::RepeatIsAConflict => courses::repeated_claims(seed),
            Mutant::SecondChoiceFirst
            | Mutant::CeilingBeforeRelease
            | Mutant::RowsCountedAsConsumers
            | Mutant::TypeLeftOut
            | Mutant::RefusedClaimLeavesARow
            | Mutant::RepetitionTakesTheNext
            | Mutant::ApartByProvider => courses::choices(seed),
            Mutant::LeaseEndsEarly
            | Mutant::DueBecomesALease
            | Mutant::HoldOfAnotherEnds
            | Mutant::HoldStays
            | Mutant::LeasesStay => courses::holds(seed),
            Mutant::LimitRefusesMoves | Mutant::ParentsAreNotAsked => courses::limits(seed),
            Mutant::TailReadTwice => courses::ledgers(courses::each_is_killed(seed), 1 << 20),
            _ => drawn(seed),
        }
    }
}

/// The rules that a node with this bug applies.
pub fn rules(mutant: Option<Mutant>, node: u64) -> Arc<dyn Applier> {
    rules::rules(mutant, node)
}
