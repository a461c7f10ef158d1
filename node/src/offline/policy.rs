//! `placementd policy`: what oslo.policy's tools tell of a service's rules, told of ours.

use std::fmt::Write;

use anyhow::bail;

use placement_api::http::{Identity, Policy, Target, default_rules, guarded};

/// Whom and what is asked about.
pub(crate) struct Question {
    /// The caller.
    pub(crate) caller: Identity,
    /// The project that an operation concerns; unset: the caller's.
    pub(crate) target_project: Option<String>,
    /// The rules; none: all of them.
    pub(crate) rules: Vec<String>,
}

/// Says of each rule whether the caller passes it, and whether all that were named are passed.
///
/// # Errors
/// There is no such rule.
pub(crate) fn check(policy: &Policy, question: &Question) -> anyhow::Result<(String, bool)> {
    let known = policy.names();
    if let Some(unknown) = question.rules.iter().find(|rule| !known.contains(rule)) {
        bail!("there is no rule {unknown:?}");
    }
    let rules = match question.rules.as_slice() {
        [] => &known,
        named => named,
    };
    let caller = &question.caller;
    let mut said = String::new();
    let mut all = true;
    for rule in rules {
        let target = Target {
            project_id: (question.target_project.as_deref()).or(caller.project_id.as_deref()),
            user_id: Some(&caller.user_id),
        };
        let passes = policy.authorize(rule, caller, target).is_ok();
        all &= passes;
        writeln!(said, "{}: {rule}", if passes { "passed" } else { "failed" })?;
    }
    Ok((said, all || question.rules.is_empty()))
}

/// The rules of the files that may as well be left out.
pub(crate) fn redundant(policy: &Policy) -> String {
    let rules = policy.redundant().into_iter();
    rules
        .map(|(name, rule)| format!("\"{name}\": \"{rule}\"\n"))
        .collect()
}

/// A policy file with all rules, each as it is by default, behind `#`.
pub(crate) fn sample(enforce_new_defaults: bool) -> String {
    let guarded = guarded();
    let mut text = String::new();
    for (name, rule) in default_rules(enforce_new_defaults) {
        let operations = || guarded.iter().filter(|one| one.rule == name);
        let summary = operations()
            .next()
            .map_or("Other rules refer to it", |first| first.summary);
        text.push_str(&format!("# {summary}\n"));
        for one in operations() {
            text.push_str(&format!("# {}  {}\n", one.method, one.path));
        }
        text.push_str(&format!("#\"{name}\": \"{rule}\"\n\n"));
    }
    text
}
