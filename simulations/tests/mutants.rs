//! Proves that the checks can fail: each injected bug is caught within a few seeds by the invariant
//! that it breaks. Without the bug the same run has no violations.

use std::collections::BTreeSet;
use std::sync::Mutex;

use placement_simulations::campaign::TestedProgram;
use placement_simulations::invariants::names;
use placement_simulations::mutant::Mutant;
use placement_simulations::seed::Seed;

/// Number of seeds to try, from a seed that has caught the bug on: any change of the product
/// changes what a seed does.
const SEEDS: u64 = 20;

/// Runs without a bug that had no violations; several bugs share a run.
static HELD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn is_caught(mutant: Mutant, first: u64) {
    for seed in (first..first + SEEDS).map(Seed) {
        if mutant.is_caught_by(&TestedProgram::Mutant(mutant).run(seed)) {
            return holds_without(mutant, seed);
        }
    }
    panic!(
        "none of {SEEDS} seeds from {first} caught {} by {:?}",
        mutant.name(),
        mutant.complaint()
    );
}

fn holds_without(mutant: Mutant, seed: Seed) {
    let control = TestedProgram::Control(mutant);
    let course = format!("{:?}", control.course(seed));
    if HELD.lock().unwrap().contains(&course) {
        return;
    }
    let report = control.run(seed);
    let replay = control.replay(seed);
    assert!(
        report.violations.is_empty(),
        "without the bug: {replay}: {:#?}",
        report.violations
    );
    HELD.lock().unwrap().insert(course);
}

macro_rules! caught {
    ($($test:ident: $mutant:ident from $first:literal;)*) => {
        /// The mutants in this test.
        const TRIED: &[Mutant] = &[$(Mutant::$mutant,)*];

        $(
            #[test]
            fn $test() {
                is_caught(Mutant::$mutant, $first);
            }
        )*
    };
}

caught! {
    acknowledging_before_the_sync: AcknowledgeBeforeSync from 1;
    losing_what_was_acknowledged: LoseAcknowledged from 4;
    forgetting_votes: ForgetVotes from 1;
    forgetting_votes_and_leading_twice: ForgetVotesSameLeader from 27;
    forgetting_votes_and_committing_twice: ForgetVotesTwoLeaders from 28;
    dropping_appends: DropAppends from 1;
    taking_the_tail_for_committed: CommitTheTail from 1;
    losing_a_field_on_disk: LoseRequestIds from 1;
    starting_twice_under_one_number: ReuseBoots from 1;
    answering_from_before_the_question: ReuseBootsOutOfOrder from 1;
    putting_an_older_snapshot_back: OlderSnapshotReturns from 1;
    carrying_out_in_the_wrong_partition: PartitionForgotten from 2;
    asking_again_as_another: AskAgainAsAnother from 1;
    denying_what_was_sent: DenyWhatWasSent from 1;
    joining_the_round_under_way: JoinTheRound from 2;
    counting_every_vote: CountEveryVote from 12;
    voting_for_any_log: VoteForAnyLog from 2;
    taking_a_heartbeat_for_agreement: HeartbeatAgrees from 1;
    leaving_what_is_truncated_on_disk: DropTruncations from 1;
    calling_a_state_fresh_as_of_the_answer: FreshAsOfTheAnswer from 1;
    answering_a_session_one_entry_before: TokenLessOne from 22;
    answering_a_session_after_waiting_in_vain: SessionGivesUp from 1;
    leading_without_the_own_vote_on_disk: ForgetOwnVotes from 1;
    writing_an_older_vote: OlderVoteReturns from 1;
    installing_without_a_table: InstallWithoutTraits from 2;
    counting_learners: CountLearners from 1;
    trusting_in_silence: TrustInSilence from 1;
    remembering_replies_under_the_next_id: ReplyOfTheWriteBefore from 1;
    counting_what_is_no_longer_held: HeldStaysCounted from 2;
    finding_a_provider_by_its_old_name: NameStaysFound from 3;
    not_counting_a_child: ChildUncounted from 1;
    not_finding_what_is_free_again: OffersStayBehind from 1;
    one_candidate_too_many: OneCandidateTooMany from 1;
    ignoring_forbidden_traits: ForbiddenTraitIgnored from 32;
    believing_rows_that_have_rotted: RowsUnproved from 1;
    taking_part_with_an_older_copy: OlderCopyTakesPart from 1;
    calling_an_open_write_answered: AnsweredBeforeItIs from 1;
    stamping_by_the_clock: StampByTheClock from 4;
    leading_without_a_quorum: LeadWithoutQuorum from 4;
    reading_before_the_first_entry: ReadBeforeTheFirstEntry from 7;
    ruling_before_all_is_applied: RuleBeforeApplying from 2;
    ruling_behind_a_learner: RuleBehindALearner from 1;
    reading_a_forwarded_write_wrongly: MisreadWrite from 1;
    a_local_read_served_as_linearizable: LocalReadAsLinearizable from 1;
    a_session_read_turned_away: TokenNotWaitedFor from 11;
    a_bounded_read_out_of_bounds: BoundIgnored from 1;
    calling_states_younger_than_they_are: HalvedStaleness from 6;
    answering_with_an_earlier_state: StateOfTheReadBefore from 1;
    skipping_the_capacity_check: SkipCapacityCheck from 3;
    carrying_out_a_repeated_request_again: ApplyRetriesTwice from 1;
    a_node_that_decides_otherwise: DivergingNode from 1;
    keeping_the_first_of_several: FirstOfSeveralStays from 3;
    leaving_the_generation: GenerationStays from 1;
    reporting_a_lost_request_as_not_sent: LostAsNotSent from 7;
    forgetting_the_last_claim: LastClaimForgotten from 2;
    forgetting_the_last_claim_of_a_neighbour: NeighboursLastClaimForgotten from 1;
    preferring_those_who_are_behind: PreferThoseBehind from 1;
    covering_what_is_not_flushed: CoverWhatIsNotFlushed from 1;
    overwriting_the_members: OverwriteMembers from 1;
    calling_a_local_read_linearizable: LocalCalledLinearizable from 1;
    naming_another_epoch: OtherEpoch from 1;
    forgetting_starts_in_a_restore: RestoreForgetsBoots from 1;
    keeping_tokens_in_a_restore: RestoreKeepsTokens from 1;
    counting_the_age_of_a_state_from_zero_again: AgeBeginsAgain from 1;
    keeping_the_ledger_across_a_snapshot: LedgerOutlivesASnapshot from 1;
    forgetting_where_the_ledger_begins: FloorForgotten from 1;
    repeating_the_tail_after_a_start: TailReadTwice from 1;
    promising_progress_before_it_is_made: ProgressComesFirst from 1;
    answering_with_now_what_was_before: BeforeIsNow from 1;
    taking_any_equal_state_for_a_repetition: AnyEqualStateIsDone from 1;
    taking_another_request_for_a_repetition: AnotherIdIsDone from 1;
    refusing_a_repeated_claim: RepeatIsAConflict from 1;
    taking_the_second_choice_first: SecondChoiceFirst from 1;
    counting_what_claimants_release: CeilingBeforeRelease from 1;
    counting_allocations_as_consumers: RowsCountedAsConsumers from 1;
    leaving_a_type_out_of_a_ceiling: TypeLeftOut from 1;
    leaving_a_row_of_a_refused_claim: RefusedClaimLeavesARow from 1;
    naming_the_next_choice_of_a_repetition: RepetitionTakesTheNext from 1;
    comparing_providers_of_a_group: ApartByProvider from 21;
    ending_a_lease_early: LeaseEndsEarly from 1;
    making_a_lease_of_a_due_hold: DueBecomesALease from 1;
    ending_the_hold_of_another: HoldOfAnotherEnds from 1;
    keeping_a_hold_that_is_used: HoldStays from 1;
    ending_no_leases: LeasesStay from 1;
    refusing_moves_above_a_limit: LimitRefusesMoves from 0;
    ignoring_the_limits_of_parents: ParentsAreNotAsked from 0;
}

#[test]
fn every_mutant_is_tested_and_every_invariant_catches_one() {
    for mutant in Mutant::ALL {
        assert!(TRIED.contains(mutant), "{mutant:?}");
    }
    for promise in names() {
        let catches = TRIED.iter().any(|mutant| mutant.complaint() == promise);
        assert!(catches, "{promise}");
    }
}

/// The command line uses the name, and the invariant decides whether the mutant is caught.
#[test]
fn every_mutant_has_a_name_and_breaks_an_invariant() {
    for mutant in Mutant::ALL.iter().copied() {
        assert_eq!(Mutant::named(mutant.name()), Some(mutant));
        assert!(names().contains(&mutant.complaint()), "{mutant:?}");
    }
}
