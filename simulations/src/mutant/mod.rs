//! Injected bugs, to prove that the checks can fail. No configuration reaches them: they are
//! injected where a simulation touches the product anyway, in the applier (`rules.rs`), between
//! clients and nodes (`proxy.rs`), or where the product asks `mutant!`
//! ([`placement_model::mutant!`]), which a release does not.

mod courses;
mod proxy;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use placement_raft_store::Applier;

pub(crate) use self::proxy::Proxy;

use crate::faults::{Planned, drawn};
use crate::invariants::{
    applied_never_falls, as_of_is_what_it_was, carried_out_once, commit_immutable,
    commit_on_a_quorum, committed_stays, equal_digest, from_history, generations_rise,
    indexes_agree, leader_completeness, leader_settles, liveness, log_is_kept, log_matching,
    members_change_as_ordered, no_503_without_a_fault, no_event_is_repeated, no_event_is_skipped,
    no_over_allocation, one_command_per_write_id, one_committed_leader_per_term,
    one_start_per_leader, own_vote, progress_is_the_truth, refusals_change_nothing,
    restored_is_another, staleness, stamps_rise, usages_are_sums, votes_are_kept, votes_rise,
    well_formed_trees,
};
use crate::parameters::IN_THE_NEIGHBOUR;
use crate::parameters::Parameters;
use crate::report::Report;
use crate::seed::Seed;

macro_rules! mutants {
    ($($(#[doc = $doc:literal])+ $mutant:ident, $name:literal, $promise:expr;)*) => {
        /// A bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[doc = $doc])+ $mutant,)*
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Mutant] = &[$(Mutant::$mutant,)*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Mutant::$mutant => $name,)*
                }
            }

            /// What it does.
            pub fn description(self) -> &'static str {
                match self {
                    $(Mutant::$mutant => concat!($($doc),+).trim_ascii(),)*
                }
            }

            /// The promise whose complaint must catch it. Another complaint is no proof: a cluster
            /// that does not form fails as well.
            pub fn complaint(self) -> &'static str {
                match self {
                    $(Mutant::$mutant => $promise,)*
                }
            }
        }
    };
}

mutants! {
    /// Log entries and votes are called durable before they are synced.
    AcknowledgeBeforeSync, "acknowledge-before-sync", commit_on_a_quorum::NAME;
    /// The same, where the power of all nodes fails at once.
    LoseAcknowledged, "lose-acknowledged", from_history::ACKNOWLEDGED_IS_THERE;
    /// Votes are answered and never written.
    ForgetVotes, "forget-votes", votes_are_kept::NAME;
    /// The same, where two leaders of a term commit.
    ForgetVotesTwoLeaders, "forget-votes-two-leaders", one_committed_leader_per_term::NAME;
    /// The same, where a node that is elected has not written its own.
    ForgetOwnVotes, "forget-own-votes", own_vote::NAME;
    /// The same, where a node leads again in its term.
    ForgetVotesSameLeader, "forget-votes-same-leader", one_start_per_leader::NAME;
    /// What is truncated stays on disk.
    DropTruncations, "drop-truncations", log_matching::NAME;
    /// Some appends are called durable and never written.
    DropAppends, "drop-appends", log_is_kept::NAME;
    /// A node that starts takes its whole log for committed.
    CommitTheTail, "commit-the-tail", commit_immutable::NAME;
    /// Entries that are read from disk lose a field.
    LoseRequestIds, "lose-request-ids", commit_immutable::NAME;
    /// A start of a node has the number of the one before.
    ReuseBoots, "reuse-boots", one_command_per_write_id::NAME;
    /// The same, where a write is answered from before it was asked for.
    ReuseBootsOutOfOrder, "reuse-boots-out-of-order", from_history::REAL_TIME;
    /// What a snapshot covers is put in place of what was applied since.
    OlderSnapshotReturns, "older-snapshot-returns", applied_never_falls::NAME;
    /// A write of unknown outcome is sent again as another one.
    AskAgainAsAnother, "ask-again-as-another", from_history::ASKED_FOR;
    /// A write that was sent is answered as one that was not committed.
    DenyWhatWasSent, "deny-what-was-sent", from_history::NOTHING_COMMITTED;
    /// A write calls itself answered.
    AnsweredBeforeItIs, "answered-before-it-is", one_command_per_write_id::NAME;
    /// Leaders stamp by their clocks alone.
    StampByTheClock, "stamp-by-the-clock", stamps_rise::NAME;
    /// A leader answers reads without asking a quorum.
    LeadWithoutQuorum, "lead-without-quorum", from_history::LINEARIZABLE;
    /// A read joins the round that is under way.
    JoinTheRound, "join-the-round", from_history::LINEARIZABLE;
    /// A node that follows another leader counts for a read all the same.
    CountEveryVote, "count-every-vote", from_history::LINEARIZABLE;
    /// A new leader answers reads before it has committed an entry of its own.
    ReadBeforeTheFirstEntry, "read-before-the-first-entry", from_history::LINEARIZABLE;
    /// The only voter answers reads before it has applied what is committed.
    RuleBeforeApplying, "rule-before-applying", from_history::LINEARIZABLE;
    /// The same, where a learner has acknowledged a write that the voter has not applied.
    RuleBehindALearner, "rule-behind-a-learner", from_history::LINEARIZABLE;
    /// A state counts as fresh as of the leader's answer.
    FreshAsOfTheAnswer, "fresh-as-of-the-answer", staleness::NAME;
    /// Votes are given whatever the candidate's log lacks.
    VoteForAnyLog, "vote-for-any-log", leader_completeness::NAME;
    /// A heartbeat has a node commit what it has, whether or not it is what the leader has.
    HeartbeatAgrees, "heartbeat-agrees", committed_stays::NAME;
    /// The leader reads a forwarded write otherwise than those who are sent its record.
    MisreadWrite, "misread-write", log_matching::NAME;
    /// A linearizable read is answered from what the node has.
    LocalReadAsLinearizable, "local-read-as-linearizable", from_history::LINEARIZABLE;
    /// A session read is satisfied one entry before its token.
    TokenLessOne, "token-less-one", from_history::SESSION;
    /// A session read that has waited in vain is answered from what the node has.
    SessionGivesUp, "session-gives-up", from_history::SESSION;
    /// A session read does not wait for its token.
    TokenNotWaitedFor, "token-not-waited-for", no_503_without_a_fault::NAME;
    /// A bounded read is answered however old the state is.
    BoundIgnored, "bound-ignored", from_history::BOUNDED;
    /// States are called half as old as they are.
    HalvedStaleness, "halved-staleness", staleness::NAME;
    /// A read is given the state that the read before it was given.
    StateOfTheReadBefore, "state-of-the-read-before", from_history::ANSWERS_FOLLOW;
    /// Allocations are not held against the capacity.
    SkipCapacityCheck, "skip-capacity-check", no_over_allocation::NAME;
    /// A repeated request is carried out again.
    ApplyRetriesTwice, "apply-retries-twice", carried_out_once::NAME;
    /// What is written in another partition is carried out in the default one.
    PartitionForgotten, "partition-forgotten", from_history::ANSWERS_FOLLOW;
    /// One node decides otherwise than the others.
    DivergingNode, "diverging-node", equal_digest::NAME;
    /// Of several consumers of a refused request the first keeps what it asked for.
    FirstOfSeveralStays, "first-of-several-stays", refusals_change_nothing::NAME;
    /// Inventories change without the generation.
    GenerationStays, "generation-stays", generations_rise::NAME;
    /// Of a request without an answer our own client learns that it was not sent.
    LostAsNotSent, "lost-as-not-sent", from_history::CLIENT;
    /// Of several resources that are claimed the last is forgotten.
    LastClaimForgotten, "last-claim-forgotten", from_history::ANSWERS_FOLLOW;
    /// The same, of a neighbour's claims only.
    NeighboursLastClaimForgotten, "neighbours-last-claim-forgotten", from_history::ANSWERS_FOLLOW;
    /// With the commit index an older vote is written.
    OlderVoteReturns, "older-vote-returns", votes_rise::NAME;
    /// A snapshot is installed without the traits of providers.
    InstallWithoutTraits, "install-without-traits", equal_digest::NAME;
    /// A node that starts counts learners among the voters.
    CountLearners, "count-learners", commit_on_a_quorum::NAME;
    /// A connection that says nothing counts as alive.
    TrustInSilence, "trust-in-silence", liveness::NAME;
    /// What a write was answered is remembered under the id of the next one.
    ReplyOfTheWriteBefore, "reply-of-the-write-before", from_history::ANSWERS_FOLLOW;
    /// What a consumer held before is still counted when it holds something else.
    HeldStaysCounted, "held-stays-counted", usages_are_sums::NAME;
    /// A provider is found by the name that it had before.
    NameStaysFound, "name-stays-found", indexes_agree::NAME;
    /// The parent of a new provider does not learn that it has a child.
    ChildUncounted, "child-uncounted", well_formed_trees::NAME;
    /// The search does not learn what is free again when a consumer goes.
    OffersStayBehind, "offers-stay-behind", indexes_agree::NAME;
    /// A search gives one candidate more than its limit.
    OneCandidateTooMany, "one-candidate-too-many", from_history::ANSWERS_FOLLOW;
    /// A search does not look at what traits are forbidden.
    ForbiddenTraitIgnored, "forbidden-trait-ignored", from_history::ANSWERS_FOLLOW;
    /// A node that starts does not hold its rows against their digest.
    RowsUnproved, "rows-unproved", equal_digest::NAME;
    /// A node starts on an older copy of its data directory.
    OlderCopyTakesPart, "older-copy-takes-part", log_is_kept::NAME;
    /// A state is taken for durable that was applied while the rows were flushed.
    CoverWhatIsNotFlushed, "cover-what-is-not-flushed", liveness::NAME;
    /// A change of the members is made on whatever they have become since it was decided.
    OverwriteMembers, "overwrite-members", members_change_as_ordered::NAME;
    /// A local read is called linearizable.
    LocalCalledLinearizable, "local-called-linearizable", from_history::SAYS_WHAT_IT_KEEPS;
    /// Reads name another history than writes.
    OtherEpoch, "other-epoch", from_history::SAYS_WHAT_IT_KEEPS;
    /// A restored node begins to count its starts again.
    RestoreForgetsBoots, "restore-forgets-boots", liveness::NAME;
    /// A restored cluster lets in a node with a token of the one that it was.
    RestoreKeepsTokens, "restore-keeps-tokens", restored_is_another::NAME;
    /// Leadership moves to a preferred site whether or not anybody there has caught up.
    PreferThoseBehind, "prefer-those-behind", leader_settles::NAME;
    /// A node that is cut off counts the age of its state from zero again.
    AgeBeginsAgain, "age-begins-again", staleness::NAME;
    /// Where a snapshot is installed, what was kept of the entries before counts as all that there
    /// is.
    LedgerOutlivesASnapshot, "ledger-outlives-a-snapshot", no_event_is_skipped::NAME;
    /// A node forgets from where on it has kept what was changed.
    FloorForgotten, "floor-forgotten", no_event_is_skipped::NAME;
    /// After a start, what is on the disk is taken for a part of the tail that is in memory alone.
    TailReadTwice, "tail-read-twice", no_event_is_repeated::NAME;
    /// A stream says how far it will be with what follows.
    ProgressComesFirst, "progress-comes-first", progress_is_the_truth::NAME;
    /// A read at an earlier moment is answered from what is there now.
    BeforeIsNow, "before-is-now", as_of_is_what_it_was::NAME;
}

impl Mutant {
    /// The mutant of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|mutant| mutant.name() == name)
    }

    /// Whether the run was caught for the right reason.
    pub fn is_caught_by(self, report: &Report) -> bool {
        let (words, more) = (self.complaint(), self.evidence());
        let caught = |one: &String| one.starts_with(words) && one.contains(more);
        report.violations.iter().any(caught)
    }

    /// The name by which the product asks for it (`mutant!`), if it does: several promises are
    /// broken by one bug.
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

    /// What else the complaint must say: of many answers that follow from the log, which one does
    /// not.
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

    /// Whether those catch it who follow what is changed.
    pub(crate) fn is_of_watchers(self) -> bool {
        matches!(
            self,
            Mutant::LedgerOutlivesASnapshot
                | Mutant::FloorForgotten
                | Mutant::TailReadTwice
                | Mutant::ProgressComesFirst
                | Mutant::BeforeIsNow
        )
    }

    /// The run that shall catch it: the one that is drawn from the seed, or one that brings about
    /// what the bug needs. Without the bug it must hold.
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
            Mutant::TrustInSilence | Mutant::SessionGivesUp => courses::each_is_cut_off(seed),
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
            Mutant::TailReadTwice => courses::ledgers(courses::each_is_killed(seed), 1 << 20),
            _ => drawn(seed),
        }
    }
}

/// The rules that a node with this bug applies.
pub fn rules(mutant: Option<Mutant>, node: u64) -> Arc<dyn Applier> {
    rules::rules(mutant, node)
}
