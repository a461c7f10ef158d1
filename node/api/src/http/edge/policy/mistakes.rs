//! What is wrong with rules although their files can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use strsim::levenshtein;

use super::check::Check;
use super::defaults::Defaults;
use super::file::Stated;

/// With these prefixes begin the rules of operations.
const OPERATIONS: [&str; 2] = ["placement:", "placementd:"];

/// Something in a policy file that does not say what it seems to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}, line {line}: rule {rule:?}: {what}", .path.display())]
pub struct Mistake {
    /// The file.
    pub path: PathBuf,
    /// Its line.
    pub line: usize,
    /// The rule.
    pub rule: String,
    /// What is wrong with it.
    pub what: String,
}

/// The mistakes in what files say; `rules` are all that are in force with them.
pub(super) fn of(
    stated_rules: &BTreeMap<String, Stated>,
    rules: &BTreeMap<String, Check>,
    defaults: &Defaults,
) -> Vec<Mistake> {
    let referred: BTreeSet<&str> = rules.values().flat_map(Check::referred).collect();
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
            let near = (defaults.names())
                .map(|known| (levenshtein(name, known), known))
                .min()
                .filter(|(distance, known)| *distance <= known.len() / 4);
            let hint = near.map(|(_, near)| format!("; did you mean {near:?}?"));
            let hint = hint.unwrap_or_default();
            note(format!("it guards nothing, and no rule refers to it{hint}"));
        }
        for leaf in stated.check.leaves() {
            match leaf {
                Check::NotUnderstood(why) => note(format!("{why}; it allows nothing")),
                Check::Rule(other) if !rules.contains_key(other) => {
                    note(format!("there is no rule {other:?}"));
                }
                _ => {}
            }
        }
        if is_in_circle(name, rules) {
            note("it refers to itself, and so allows nothing".to_owned());
        }
    }
    found
}

/// Whether it is an operator's own rule, to which others refer.
fn is_own(name: &str, referred: &BTreeSet<&str>) -> bool {
    let is_operation = OPERATIONS.iter().any(|prefix| name.starts_with(prefix));
    name == "default" || !is_operation && referred.contains(name)
}

/// Whether a rule refers to itself, directly or through others.
fn is_in_circle(name: &str, rules: &BTreeMap<String, Check>) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = vec![name];
    while let Some(one) = left.pop() {
        if let Some(check) = rules.get(one).or_else(|| rules.get("default")) {
            left.extend(check.referred().filter(|next| seen.insert(*next)));
        }
    }
    seen.contains(name)
}
