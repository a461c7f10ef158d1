//! Selects the condition that is the reason for having no candidate.

use super::answer::{Explanation, Reason, Stage, Verdict};
use super::atoms::Atom;
use super::kind::Kind;
use super::relax::RelaxationTrial;
use crate::mutant;

/// The reason for having no candidate.
pub(super) fn reason(found: &Explanation) -> Reason {
    if found.verdict == Verdict::Undecided {
        return Reason::Undecided;
    }
    if !found.unknown.is_empty() {
        return Reason::UnknownName;
    }
    if !found.unused.is_empty() {
        return Reason::UnusedName;
    }
    let stage = found.cause.map(|cause| &found.funnel[cause]);
    stage.map_or(Reason::NoTrees, |stage| Reason::Condition(stage.atom.kind))
}

/// The stage that is the cause. Only stages of the same level as the last stage that eliminates
/// trees are considered, since the trees eliminated last are probably the hosts that the caller
/// expected. A stage whose relaxation has candidates is preferred; otherwise the cause is the stage
/// that is the only unmet condition of most trees.
pub(super) fn cause(found: &Explanation, ways: &[RelaxationTrial]) -> Option<usize> {
    let stages = || found.funnel.iter().enumerate();
    let (_, last) = stages().rev().find(|(_, stage)| stage.gone > 0)?;
    let level = last.atom.kind.level();
    let of_level = |(_, stage): &(usize, &Stage)| {
        let is_alike = stage.atom.kind.level() == level || mutant!("explain-place-blamed");
        stage.gone > 0 && is_alike
    };
    let is_less = |stage: &Stage, less: &Atom| match less.kind {
        Kind::Together => stage.atom.kind == Kind::Together,
        _ => stage.atom == *less,
    };
    let mut helping = found.relaxations.iter().map(|one| &one.less[0].atom);
    let helped = helping.find_map(|less| {
        let mut stages = stages().filter(of_level);
        stages.find(|(_, stage)| is_less(stage, less))
    });
    let alone = |(index, stage): &(usize, &Stage)| {
        let trees = ways
            .iter()
            .filter(|way| way.gives_up(*index))
            .map(|way| way.trees.iter().count() as u64)
            .max();
        let trees = match stage.atom.kind {
            Kind::Together => stage.gone,
            // A resourceless group has no relaxation for its missing resources.
            Kind::Inventory if stage.atom.class.is_none() => stage.gone,
            _ => trees.unwrap_or(0),
        };
        (trees, stage.gone, *index)
    };
    let found = helped.or_else(|| stages().filter(of_level).max_by_key(alone));
    found.map(|(index, _)| index)
}
