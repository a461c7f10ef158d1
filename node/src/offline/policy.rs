//! `placementd policy`: the counterpart of oslo.policy's tools for the rules of this service.

use std::fmt::Write;

use anyhow::bail;

use placement_api::http::{Identity, default_rules, guarded};
use placement_policy::{Policy, Target};

/// Reports for each of these rules, or for all if none is named, whether the caller passes it, and
/// whether all named rules are passed. `project`: the project in the query, for rules that depend
/// on it; unset: the caller's.
///
/// # Errors
/// A rule does not exist, or a named rule does not depend on the project in the query.
pub(crate) fn check(
    policy: &Policy,
    caller: &Identity,
    project: Option<&str>,
    named: &[String],
) -> anyhow::Result<(String, bool)> {
    let known = policy.names();
    if let Some(unknown) = named.iter().find(|rule| !known.contains(rule)) {
        bail!("unknown rule {unknown:?}");
    }
    let rules = if named.is_empty() { &known } else { named };
    let guarded = guarded();
    // A rule that guards no operation is used only by other rules.
    let is_of_own_project = |rule: &str| {
        let mut operations = guarded.iter().filter(|one| one.rule == rule);
        operations.any(|one| one.queried_project.is_none())
    };
    if project.is_some()
        && let Some(rule) = named.iter().find(|rule| is_of_own_project(rule))
    {
        bail!(
            "--target-project: {rule:?} depends on the caller's own project, not on the one in \
            the query; leave the flag out"
        );
    }
    let mut report = String::new();
    let mut all = true;
    for rule in rules {
        let target = if is_of_own_project(rule) {
            Target::for_caller(caller)
        } else {
            Target::for_project(project.or(caller.project_id.as_deref()))
        };
        let passes = policy.authorize(rule, caller, target).is_ok();
        all &= passes;
        writeln!(
            report,
            "{}: {rule}",
            if passes { "passed" } else { "failed" }
        )?;
    }
    Ok((report, all || named.is_empty()))
}

/// A policy file with the default of each rule, commented out.
pub(crate) fn sample(enforce_new_defaults: bool) -> String {
    let guarded = guarded();
    let mut text = String::new();
    for (name, rule) in default_rules(enforce_new_defaults) {
        let operations = || guarded.iter().filter(|one| one.rule == name);
        let summary = operations().next().map(|first| first.summary);
        text += &format!("# {}\n", summary.unwrap_or("Used by other rules"));
        for one in operations() {
            text += &format!("# {}  {}\n", one.method, one.path);
        }
        text += &format!("#\"{name}\": \"{rule}\"\n\n");
    }
    text
}
