//! No write of allocations raises the usage of a project above an enforced limit, a write that
//! raises it above a reported one names exactly that limit, and only writes that would raise it are
//! refused (docs/api.md: limits).

use placement_model::command::{Claim, ReplaceLimits};
use placement_model::types::{LimitExcess, LimitMode, PartitionId};
use placement_model::{Command, Outcome, Refusal, Reply, Stamped};
use placement_naive::Naive;

use super::decisions::Decisions;
use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "no limit is passed";

/// Counts the usage of all projects before and after each write of allocations.
#[derive(Debug, Default)]
pub struct NoLimitIsPassed(Decisions);

impl Invariant for NoLimitIsPassed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        if !self.0.is_new(applied) {
            return Ok(());
        }
        match (&applied.stamped.command, applied.outcome) {
            (Command::ReplaceLimits(replace), Outcome::Done(_)) => replaced(applied, replace),
            _ if applied.before.limits() != applied.after.limits() => {
                let command = applied.stamped.command.name();
                Err(format!("{command} changed the limits"))
            }
            (
                Command::ReplaceAllocations(_) | Command::Claim(_),
                Outcome::Refused(Refusal::OverLimit(excess)),
            ) => refused(applied, excess),
            (Command::ReplaceAllocations(_) | Command::Claim(_), Outcome::Done(reply)) => {
                written(applied, reply)
            }
            _ => Ok(()),
        }
    }
}

/// Checks that the limits are those of the command.
fn replaced(applied: &Applied<'_>, replace: &ReplaceLimits) -> Result<(), String> {
    let after = applied.after.limits().map(|row| &row.limits);
    if after == Some(&replace.limits) {
        Ok(())
    } else {
        Err(format!("the limits are {after:?} after {replace:?}"))
    }
}

/// Checks the reply to a write that was done.
fn written(applied: &Applied<'_>, reply: &Reply) -> Result<(), String> {
    let reported = match reply {
        Reply::OverLimits { excesses, .. } => excesses.as_slice(),
        _ => &[],
    };
    let Some(row) = applied.before.limits() else {
        return if reported.is_empty() {
            Ok(())
        } else {
            Err(format!("{reported:?} is reported without limits"))
        };
    };
    let [before, after] = [applied.before, applied.after].map(|state| Naive::load(state.rows()));
    let passed = after.excesses(&before);
    if row.limits.mode == LimitMode::Enforce && !passed.is_empty() {
        return Err(format!("a write passes {passed:?}"));
    }
    if passed != reported {
        return Err(format!(
            "a write passes {passed:?}, but {reported:?} is reported"
        ));
    }
    Ok(())
}

/// Checks that the write, or one choice of the claim, would have passed the limit.
fn refused(applied: &Applied<'_>, excess: &LimitExcess) -> Result<(), String> {
    let before = Naive::load(applied.before.rows());
    let mut unlimited = before.clone();
    unlimited.forget_limits();
    let attempts: Vec<_> = match &applied.stamped.command {
        Command::Claim(claim) => {
            let choices = claim.choices.iter();
            let alone = |choice: &Vec<_>| Claim {
                choices: vec![choice.clone()],
                ..claim.clone()
            };
            choices.map(alone).map(Command::Claim).collect()
        }
        other => vec![other.clone()],
    };
    let passes = |command| {
        let stamped = Stamped {
            write_id: None,
            command,
            partition: PartitionId::DEFAULT,
            routes: before.route_changes(PartitionId::DEFAULT),
            ..applied.stamped.clone()
        };
        let mut after = unlimited.clone();
        after.apply(&stamped);
        after.excesses(&before).contains(excess)
    };
    if attempts.into_iter().any(passes) {
        Ok(())
    } else {
        Err(format!("a write that does not pass {excess:?} is refused"))
    }
}
