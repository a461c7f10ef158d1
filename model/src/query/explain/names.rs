//! Names that a request gives and no provider has.

use std::collections::BTreeSet;

use strsim::levenshtein;

use super::AbsentName;
use crate::query::candidates::CandidateRequest;
use crate::state::State;

/// Names that are shown as nearly those that were given.
const NEAREST: usize = 3;
/// Names of which others are looked for that are spelled nearly so.
const MISSPELLED_MAX: usize = 16;
/// Names have so many bytes at most.
const NAME_MAX_BYTES: usize = 255;
/// One of so many letters may be wrong in a name.
const LETTERS_PER_MISTAKE: usize = 4;

/// The names that do not exist, and those that exist and no provider has.
pub(super) fn absent(
    state: &State,
    request: &CandidateRequest,
) -> (Vec<AbsentName>, Vec<AbsentName>) {
    let groups = || request.groups.iter();
    let (mut unknown, mut unused) = (Vec::new(), Vec::new());
    let mut take =
        |name: AbsentName, text: &str, uses: Option<u64>, all: &dyn Fn() -> Vec<String>| match uses
        {
            None if unknown.len() < MISSPELLED_MAX => {
                let nearest = nearest(text, all());
                unknown.push(AbsentName { nearest, ..name });
            }
            Some(0) => unused.push(name),
            _ => {}
        };
    let classes: BTreeSet<_> = groups().flat_map(|group| group.resources.keys()).collect();
    for class in classes {
        let id = state.class_given(class);
        let uses = id.map(|id| state.resource_classes.uses(id.0));
        let name = AbsentName {
            class: Some(class.clone()),
            ..AbsentName::default()
        };
        take(name, class.as_str(), uses, &|| {
            let rows = state.resource_classes.rows();
            rows.map(|(_, row)| row.name.to_string()).collect()
        });
    }
    // Whether a provider has a trait that is forbidden does not matter, but it must exist.
    let required = groups().flat_map(|group| group.required.iter().flatten());
    let required: BTreeSet<_> = required.chain(&request.root_required).collect();
    let forbidden = groups().flat_map(|group| &group.forbidden);
    let forbidden: BTreeSet<_> = forbidden.chain(&request.root_forbidden).collect();
    for name in required.union(&forbidden) {
        let id = state.trait_given(name);
        let uses = id.map(|id| match required.contains(name) {
            true => state.traits.uses(id.0),
            false => 1,
        });
        let absent = AbsentName {
            trait_name: Some((*name).clone()),
            ..AbsentName::default()
        };
        take(absent, name.as_str(), uses, &|| {
            let rows = state.traits.rows();
            rows.map(|(_, row)| row.name.to_string()).collect()
        });
    }
    let aggregates: BTreeSet<_> = groups()
        .flat_map(|group| group.member_of.iter().flatten())
        .collect();
    let memberless = aggregates
        .into_iter()
        .filter(|one| state.indexes().with_member(one).is_none());
    unused.extend(memberless.map(|aggregate| AbsentName {
        aggregate: Some(aggregate.clone()),
        ..AbsentName::default()
    }));
    (unknown, unused)
}

/// The names that are spelled most like this one.
fn nearest(text: &str, all: Vec<String>) -> Vec<String> {
    // Longer ones are of no name.
    let most = text.len().min(NAME_MAX_BYTES) / LETTERS_PER_MISTAKE;
    let as_long = |name: &String| name.len().abs_diff(text.len()) <= most;
    let mistakes = all.into_iter().filter(as_long);
    let mistakes = mistakes.map(|name| (levenshtein(text, &name), name));
    let mut alike: Vec<_> = mistakes.filter(|(mistakes, _)| *mistakes <= most).collect();
    alike.sort_unstable();
    alike.truncate(NEAREST);
    alike.into_iter().map(|(_, name)| name).collect()
}
