//! Mistakes in rules whose files can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use placement_model::similar::similar;

use super::check::Check;
use super::defaults::{Defaults, OPERATIONS};
use super::file::LocatedRule;

/// A rule in a policy file that has no effect or never grants access.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}, line {line}: rule {rule:?}: {what}", .path.display())]
pub struct Mistake {
    /// Path of the policy file.
    pub path: PathBuf,
    /// Line in the file, from 1.
    pub line: usize,
    /// Name of the rule.
    pub rule: String,
    /// Description of the mistake.
    pub what: String,
}

/// Finds the mistakes in the rules of files; `rules` are all rules in force, including the
/// defaults.
pub(super) fn find(
    stated_rules: &BTreeMap<String, LocatedRule>,
    rules: &BTreeMap<String, Check>,
    defaults: &Defaults,
) -> Vec<Mistake> {
    // In force, a reference may be replaced by a check that never grants access.
    let stated = stated_rules.values().map(|stated| &stated.check);
    let referred: BTreeSet<&str> = (rules.values().chain(stated))
        .flat_map(Check::referred)
        .collect();
    let mut found = Vec::new();
    for (name, stated) in stated_rules {
        let mut note = |what: String| {
            found.push(Mistake {
                path: stated.path.clone(),
                line: stated.line,
                rule: name.clone(),
                what,
            });
        };
        let is_default = defaults.names().any(|known| known == name);
        if !is_default && !is_own(name, &referred) {
            let near = similar(name, defaults.names(), 1);
            let hint = (near.first())
                .map(|near| format!("; did you mean {near:?}?"))
                .unwrap_or_default();
            note(format!("no operation and no rule uses it{hint}"));
        }
        for leaf in rules.get(name).unwrap_or(&stated.check).leaves() {
            match leaf {
                Check::NotUnderstood(why) => note(format!("{why}; it never grants access")),
                Check::Rule(other) if !rules.contains_key(other) => {
                    note(format!("there is no rule {other:?}"));
                }
                _ => {}
            }
        }
        if is_circular(name, rules) {
            note("it refers to itself, so it never grants access".to_owned());
        }
    }
    found
}

/// Whether this is the operator's own helper rule: `default`, or a rule that other rules reference.
fn is_own(name: &str, referred: &BTreeSet<&str>) -> bool {
    let is_operation = OPERATIONS.iter().any(|prefix| name.starts_with(prefix));
    name == "default" || !is_operation && referred.contains(name)
}

/// Whether a rule refers to itself, directly or through others.
fn is_circular(name: &str, rules: &BTreeMap<String, Check>) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = vec![name];
    while let Some(one) = left.pop() {
        if let Some(check) = rules.get(one).or_else(|| rules.get("default")) {
            left.extend(check.referred().filter(|next| seen.insert(*next)));
        }
    }
    seen.contains(name)
}
