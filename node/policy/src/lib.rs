//! Authorization: a rule per operation, with defaults and files that override them.
//!
//! The syntax and the meaning of rules are those of oslo.policy (docs.openstack.org/oslo.policy).

mod check;
mod defaults;
mod file;
mod files;
mod mistakes;
mod own;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use defaults::{Defaults, is_own_write};
pub use file::PolicyError;
pub use mistakes::Mistake;
pub use settings::PolicySettings;

use check::Check;
use files::{Contents, Fingerprint};

use placement_audit::identity::Identity;
use placement_base::log_messages::log;

/// The rules in force, and the files from which they come.
///
/// A change of the files alone never removes a rule: files that are invalid or lack a rule in force
/// are ignored, as they may be half-written, emptied or deleted by mistake.
pub struct Policy {
    defaults: Defaults,
    in_force: ArcSwap<EffectiveRules>,
    seen: Mutex<WatchState>,
}

/// The rules that requests are checked against.
struct EffectiveRules {
    rules: BTreeMap<String, Check>,
    enforce_scope: bool,
    mistakes: Vec<Mistake>,
}

/// State of the watch on the files.
struct WatchState {
    settings: PolicySettings,
    contents: Contents,
    /// Fingerprint of the files when they were read.
    read: Fingerprint,
    /// Fingerprint of the files at the last check.
    last: Fingerprint,
    /// Fingerprint of the files that were found unusable.
    refused: Option<Fingerprint>,
}

/// The object of an operation, as far as rules can refer to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Target<'a> {
    /// The project of the object. If it is `None`, every check of it fails.
    pub project_id: Option<&'a str>,
    /// The user of the object, if the operation names one.
    pub user_id: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// The target of most operations: upstream does not look up the owner of the object and uses
    /// the caller instead. A caller without a project has the project `None` (the text), as in
    /// upstream's Python.
    pub fn for_caller(caller: &'a Identity) -> Self {
        Self {
            project_id: Some(caller.project_id.as_deref().unwrap_or("None")),
            user_id: Some(&caller.user_id),
        }
    }

    /// The target of an operation whose query can name a project.
    pub fn for_project(project_id: Option<&'a str>) -> Self {
        Self {
            project_id,
            user_id: None,
        }
    }
}

/// Why an operation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// No rule grants access.
    ByRule,
    /// The caller's token has system or domain scope instead of project scope.
    ByScope,
}

impl Policy {
    /// Reads the files that override these default rules. Rules with mistakes are logged; they
    /// grant no access or have no effect.
    pub fn over(defaults: Defaults, settings: &PolicySettings) -> Result<Self, PolicyError> {
        let look = files::look(settings);
        let contents = files::read(settings)?;
        let in_force = EffectiveRules::from_contents(&defaults, settings, &contents);
        Ok(Self {
            defaults,
            in_force: ArcSwap::from_pointee(in_force),
            seen: Mutex::new(WatchState {
                settings: settings.clone(),
                contents,
                read: look.clone(),
                last: look,
                refused: None,
            }),
        })
    }

    /// Reads the rules again, possibly with other settings, and puts them in force.
    ///
    /// # Errors
    /// A file cannot be used; the previous rules stay in force.
    pub fn reload(&self, settings: &PolicySettings) -> Result<(), PolicyError> {
        let Self { in_force, seen, .. } = Self::over(self.defaults.clone(), settings)?;
        let mut known = self.seen.lock();
        *known = seen.into_inner();
        self.in_force.store(in_force.into_inner());
        Ok(())
    }

    /// A digest of the rules in force: nodes of one version with equal rules have equal digests.
    pub fn digest(&self) -> String {
        let in_force = self.in_force.load();
        let rules = format!("{:?} {}", in_force.rules, in_force.enforce_scope);
        let digest = ring::digest::digest(&ring::digest::SHA256, rules.as_bytes());
        let first = digest.as_ref().iter().take(8);
        first.map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether any policy files are configured.
    pub fn has_files(&self) -> bool {
        files::are_configured(&self.seen.lock().settings)
    }

    /// Checks whether the files have changed, and puts them in force once they are the same in two
    /// consecutive checks. It may block on a disk, so no request calls it.
    pub fn reload_if_changed(&self) {
        let (settings, known) = {
            let seen = self.seen.lock();
            (seen.settings.clone(), seen.read.clone())
        };
        let now = files::look(&settings);
        if !self.has_changed(&now) {
            return;
        }
        let read = files::read(&settings);
        let later = files::look(&settings);
        // No disk is accessed while this lock is held, because monitoring waits for it (requests do
        // not).
        let mut seen = self.seen.lock();
        // If the files or the rules changed during the read (by a reload on SIGHUP), the next check
        // decides.
        if seen.settings != settings || seen.read != known || later != now {
            return;
        }
        let usable =
            read.and_then(|contents| seen.contents.is_contained_in(&contents).map(|()| contents));
        match usable {
            Ok(contents) => {
                let in_force = EffectiveRules::from_contents(&self.defaults, &settings, &contents);
                (seen.contents, seen.read, seen.refused) = (contents, now, None);
                self.in_force.store(Arc::new(in_force));
            }
            Err(error) => {
                log!(
                    POLICY_UNUSABLE,
                    %error,
                    "the changed policy files are unusable; the previous rules stay in force"
                );
                seen.refused = Some(now);
            }
        }
    }

    /// Whether the files need to be read: they differ from those read or refused before, and have
    /// not changed since the last check.
    fn has_changed(&self, now: &Fingerprint) -> bool {
        let mut seen = self.seen.lock();
        if seen.read == *now {
            seen.refused = None;
        }
        let is_known = seen.read == *now || seen.refused.as_ref() == Some(now);
        let is_settled = seen.last == *now;
        seen.last = now.clone();
        is_settled && !is_known
    }

    /// Whether the files are unusable, so that older rules stay in force.
    pub fn is_refused(&self) -> bool {
        self.seen.lock().refused.is_some()
    }

    /// The mistakes in the rules in force.
    pub fn mistakes(&self) -> Vec<Mistake> {
        self.in_force.load().mistakes.clone()
    }

    /// The names of all rules in force.
    pub fn names(&self) -> Vec<String> {
        self.in_force.load().rules.keys().cloned().collect()
    }

    /// Checks whether the caller may do `action` to `target`.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn authorize(
        &self,
        action: &str,
        identity: &Identity,
        target: Target<'_>,
    ) -> Result<(), Denied> {
        let in_force = self.in_force.load();
        let scoped = |scope: &Option<String>| scope.as_ref().is_some_and(|scope| !scope.is_empty());
        if in_force.enforce_scope && (scoped(&identity.system_scope) || scoped(&identity.domain_id))
        {
            return Err(Denied::ByScope);
        }
        if check::holds(&in_force.rules, action, identity, target) {
            Ok(())
        } else {
            Err(Denied::ByRule)
        }
    }
}

impl EffectiveRules {
    /// The rules that result from these files. Logs the mistakes.
    fn from_contents(defaults: &Defaults, settings: &PolicySettings, contents: &Contents) -> Self {
        let stated = contents.rules.iter();
        let overrides = stated.map(|(name, stated)| (name.clone(), stated.check.clone()));
        let mut rules = defaults.rules(overrides, settings.enforce_new_defaults);
        own::refuse_comparisons(&mut rules, defaults);
        let mistakes = mistakes::find(&contents.rules, &rules, defaults);
        if files::are_configured(settings) {
            log!(
                POLICY_READ,
                rules = contents.count(),
                "read the policy files"
            );
        }
        for mistake in &mistakes {
            log!(POLICY_RULE_FAULTY, %mistake, "faulty rule in a policy file");
        }
        Self {
            rules: check::without_repeated_conditions(&rules),
            enforce_scope: settings.enforce_scope,
            mistakes,
        }
    }
}

#[cfg(test)]
mod tests;
