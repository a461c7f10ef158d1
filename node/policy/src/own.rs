//! Rules of this service's own operations whose requests name no project.
//!
//! There `%(project_id)s` would be the caller's own project, so a comparison with it would exclude
//! no caller, although the operation shows all projects. Such a comparison is treated as one that
//! cannot be parsed: it never grants access.

use std::collections::{BTreeMap, BTreeSet};

use super::check::Check;
use super::defaults::{ALL_READS, Defaults, UPSTREAM};

/// Refuses comparisons with the request in rules that guard requests without a project.
pub(super) fn refuse_comparisons(rules: &mut BTreeMap<String, Check>, defaults: &Defaults) {
    let comparing = find_comparing(rules);
    let refused: Vec<_> = (defaults.names_without_project())
        .filter_map(|name| {
            let mut check = rules.get(name)?.clone();
            for leaf in check.leaves_mut() {
                let what = match &*leaf {
                    // As at upstream, upstream's rules are evaluated for the caller's own project.
                    Check::Rule(other) if name == ALL_READS && other.starts_with(UPSTREAM) => None,
                    Check::Rule(other) => comparing
                        .contains(resolve(rules, other))
                        .then(|| format!("rule:{other}")),
                    leaf => leaf.compared_attribute().map(str::to_owned),
                };
                if let Some(what) = what {
                    *leaf = Check::NotUnderstood(format!(
                        "{what:?} depends on the project or user of the request, but requests for \
                         {name:?} name none (use roles or fixed ids, such as project_id:ID)"
                    ));
                }
            }
            Some((name.to_owned(), check))
        })
        .collect();
    rules.extend(refused);
}

/// The rules that compare something with the request, directly or through other rules. The rule
/// [`ALL_READS`] is checked by itself.
fn find_comparing(rules: &BTreeMap<String, Check>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let compares = |check: &Check| {
            let mut leaves = check.leaves().into_iter();
            leaves.any(|leaf| match leaf {
                Check::Rule(other) => found.contains(resolve(rules, other)),
                leaf => leaf.compared_attribute().is_some(),
            })
        };
        let more: Vec<_> = (rules.iter())
            .filter(|(name, check)| *name != ALL_READS && !found.contains(*name) && compares(check))
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The name of the rule that a reference to this name means.
fn resolve<'a>(rules: &BTreeMap<String, Check>, name: &'a str) -> &'a str {
    if rules.contains_key(name) {
        name
    } else {
        "default"
    }
}
