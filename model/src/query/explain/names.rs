//! Names in a request that no provider has.

use std::collections::BTreeSet;

use super::answer::{AbsentName, Name};
use crate::query::candidates::CandidateRequest;
use crate::similar::similar;
use crate::state::State;
use crate::state::names::NameTable;
use crate::types::{AggregateUuid, Given};

/// Number of similar names shown per unknown name.
const NEAREST: usize = 3;
/// Number of unknown names per type for which similar names are searched.
const MISSPELLED_MAX: usize = 4;

/// Returns the names that do not exist, and the names that exist but that no provider has. An
/// alternative is reported only if no provider has any other name of its set.
pub(super) fn absent(
    state: &State,
    request: &CandidateRequest,
) -> (Vec<AbsentName>, Vec<AbsentName>) {
    let (classes, traits) = (&state.resource_classes, &state.traits);
    let groups = || request.groups.iter();
    let asked: BTreeSet<_> = groups().flat_map(|group| group.resources.keys()).collect();
    let required = || groups().flat_map(|group| &group.required);
    let forbidden = groups().flat_map(|group| &group.forbidden);
    let roots = (request.root_required.iter()).chain(&request.root_forbidden);
    let named: BTreeSet<_> = required().flatten().chain(forbidden).chain(roots).collect();
    let hosts: BTreeSet<_> = groups()
        .filter_map(|group| group.in_tree.as_ref())
        .collect();
    let hosts = hosts
        .into_iter()
        .filter(|provider| state.place_given(provider).is_none())
        .map(|provider| AbsentName {
            name: Name::Provider(provider.clone()),
            nearest: Vec::new(),
        });
    let unknown = unknown(classes, &asked, Name::Class)
        .chain(unknown(traits, &named, Name::Trait))
        .chain(hosts)
        .collect();

    let asked = asked.into_iter().filter(|name| is_unused(classes, name));
    let at_roots = (request.root_required.iter()).filter(|name| is_unused(traits, name));
    let required: BTreeSet<_> = required()
        .filter(|any| any.iter().all(|name| is_unused(traits, name)))
        .flatten()
        .chain(at_roots)
        .collect();
    let is_memberless = |one: &AggregateUuid| state.indexes().with_member(one).is_none();
    let member_of: BTreeSet<_> = groups()
        .flat_map(|group| &group.member_of)
        .filter(|any| any.iter().all(is_memberless))
        .flatten()
        .collect();
    let unused = (asked.cloned().map(Name::Class))
        .chain(required.into_iter().cloned().map(Name::Trait))
        .chain(member_of.into_iter().cloned().map(Name::Aggregate))
        .map(|name| AbsentName {
            name,
            nearest: Vec::new(),
        });
    (unknown, unused.collect())
}

/// The names that the table does not contain, each with similar names.
fn unknown<N: Clone + Ord + AsRef<str>>(
    table: &NameTable<N>,
    names: &BTreeSet<&Given<N>>,
    of: fn(Given<N>) -> Name,
) -> impl Iterator<Item = AbsentName> {
    let unknown = names.iter().filter(|name| table.given(name).is_none());
    unknown.enumerate().map(move |(index, name)| {
        let count = if index < MISSPELLED_MAX { NEAREST } else { 0 };
        let known = table.rows().map(|(_, row)| row.name.as_ref());
        let nearest = similar(name.as_str(), known, count);
        AbsentName {
            nearest: nearest.into_iter().map(str::to_owned).collect(),
            name: of((*name).clone()),
        }
    })
}

fn is_unused<N: Clone + Ord>(table: &NameTable<N>, name: &Given<N>) -> bool {
    table.given(name).is_some_and(|id| table.uses(id) == 0)
}
