//! Names that a request gives and no provider has.

use std::collections::BTreeSet;

use strsim::levenshtein;

use super::answer::AbsentName;
use crate::query::candidates::CandidateRequest;
use crate::state::State;
use crate::types::{AggregateUuid, Given, ResourceClassName, TraitName};

/// Names that are shown as nearly those that were given.
const NEAREST: usize = 3;
/// Names of which others are looked for that are spelled nearly so.
const MISSPELLED_MAX: usize = 4;
/// Longer names are compared with no other.
const COMPARED_MAX_BYTES: usize = 64;
/// One of so many letters may be wrong in a name.
const LETTERS_PER_MISTAKE: usize = 4;

/// The names that do not exist, and those that exist and no provider has, where no other would do.
pub(super) fn absent(
    state: &State,
    request: &CandidateRequest,
) -> (Vec<AbsentName>, Vec<AbsentName>) {
    let groups = || request.groups.iter();
    let classes: BTreeSet<_> = groups().flat_map(|group| group.resources.keys()).collect();
    let required: BTreeSet<_> = groups().flat_map(|group| group.required.iter()).collect();
    let forbidden = groups().flat_map(|group| &group.forbidden);
    let traits = (required.iter().copied().flatten().chain(forbidden))
        .chain(&request.root_required)
        .chain(&request.root_forbidden);
    let traits: BTreeSet<_> = traits.collect();

    let is_unknown = |name: &&&Given<TraitName>| state.trait_given(name).is_none();
    let traits = traits.iter().filter(is_unknown).take(MISSPELLED_MAX);
    let traits = traits.map(|name| AbsentName {
        nearest: nearest(
            name.as_str(),
            state.traits.rows().map(|(_, row)| row.name.as_str()),
        ),
        ..of_trait(name)
    });
    let is_unknown = |name: &&&Given<ResourceClassName>| state.class_given(name).is_none();
    let unknown = classes.iter().filter(is_unknown).take(MISSPELLED_MAX);
    let unknown = unknown.map(|name| {
        let known = state.resource_classes.rows();
        AbsentName {
            nearest: nearest(name.as_str(), known.map(|(_, row)| row.name.as_str())),
            ..of_class(name)
        }
    });
    let unknown = unknown.chain(traits).collect();

    let is_unused = |name: &Given<TraitName>| {
        let id = state.trait_given(name);
        id.is_some_and(|id| state.traits.uses(id.0) == 0)
    };
    let at_roots = request.root_required.iter().filter(|name| is_unused(name));
    let all_unused = |any: &&&BTreeSet<_>| any.iter().all(is_unused);
    let traits = required
        .iter()
        .filter(all_unused)
        .copied()
        .flatten()
        .chain(at_roots);
    let traits: BTreeSet<_> = traits.collect();
    let is_memberless = |one: &AggregateUuid| state.indexes().with_member(one).is_none();
    let aggregates = groups().flat_map(|group| &group.member_of);
    let aggregates = aggregates
        .filter(|any| any.iter().all(is_memberless))
        .flatten();
    let aggregates: BTreeSet<_> = aggregates.collect();
    let is_unused = |name: &&Given<ResourceClassName>| {
        let id = state.class_given(name);
        id.is_some_and(|id| state.resource_classes.uses(id.0) == 0)
    };
    let unused = classes.into_iter().filter(is_unused).map(of_class);
    let unused = unused.chain(traits.into_iter().map(of_trait));
    let unused = unused.chain(aggregates.into_iter().map(|aggregate| AbsentName {
        aggregate: Some(aggregate.clone()),
        ..AbsentName::default()
    }));
    (unknown, unused.collect())
}

fn of_class(name: &Given<ResourceClassName>) -> AbsentName {
    AbsentName {
        class: Some(name.clone()),
        ..AbsentName::default()
    }
}

fn of_trait(name: &Given<TraitName>) -> AbsentName {
    AbsentName {
        trait_name: Some(name.clone()),
        ..AbsentName::default()
    }
}

/// The names that are spelled most like this one.
fn nearest<'a>(text: &str, all: impl Iterator<Item = &'a str>) -> Vec<String> {
    if text.len() > COMPARED_MAX_BYTES {
        return Vec::new();
    }
    let most = text.len() / LETTERS_PER_MISTAKE;
    let as_long = all.filter(|name| name.len().abs_diff(text.len()) <= most);
    let mistakes = as_long.map(|name| (levenshtein(text, name), name));
    let mut alike: Vec<_> = mistakes.filter(|(mistakes, _)| *mistakes <= most).collect();
    alike.sort_unstable();
    alike.truncate(NEAREST);
    alike.into_iter().map(|(_, name)| name.to_owned()).collect()
}
