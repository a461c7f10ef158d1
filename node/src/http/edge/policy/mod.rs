//! Who may do what: a rule per operation, with defaults and a file that overrides them.
//!
//! The rule language and its meaning are oslo.policy's (docs.openstack.org/oslo.policy).

mod check;
mod defaults;
mod file;
mod target;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use file::PolicyError;

use check::{Check, Evaluation};
use file::FileState;
pub(in crate::http) use target::Target;

use super::auth::Identity;
use super::settings::PolicySettings;

/// Parses a policy file without using it, for checks of a configuration.
///
/// # Errors
/// A file that cannot be read or is not a YAML mapping of names to rules.
pub fn check_policy_file(path: &Path) -> Result<(), PolicyError> {
    file::read(path).map(|_| ())
}

/// The rules in force.
pub(in crate::http) struct Policy {
    rules: ArcSwap<BTreeMap<String, Check>>,
    file: Option<PathBuf>,
    seen: Mutex<Option<FileState>>,
    enforce_new_defaults: bool,
    enforce_scope: bool,
}

/// Why an operation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Denied {
    /// No rule allows it.
    ByRule,
    /// The caller's token is for the whole system or for a domain, not for a project.
    ByScope,
}

impl Policy {
    /// The defaults, and what the file says otherwise. A file that cannot be understood denies
    /// everything until it is mended: what the operator wanted to forbid is unknown.
    pub(in crate::http) fn new(settings: &PolicySettings) -> Self {
        Self::read(settings).unwrap_or_else(|error| {
            tracing::error!(%error, "the policy file cannot be used; everything is denied until it is mended");
            let seen = settings.file.as_deref().map(FileState::of);
            Self::of(settings, seen, BTreeMap::new())
        })
    }

    /// The same for a node that has rules already.
    ///
    /// # Errors
    /// A file that cannot be understood.
    pub(in crate::http) fn read(settings: &PolicySettings) -> Result<Self, PolicyError> {
        let seen = settings.file.as_deref().map(FileState::of);
        let rules = rules(settings.file.as_deref(), settings.enforce_new_defaults)?;
        Ok(Self::of(settings, seen, rules))
    }

    fn of(
        settings: &PolicySettings,
        seen: Option<FileState>,
        rules: BTreeMap<String, Check>,
    ) -> Self {
        Self {
            rules: ArcSwap::from_pointee(rules),
            file: settings.file.clone(),
            seen: Mutex::new(seen),
            enforce_new_defaults: settings.enforce_new_defaults,
            enforce_scope: settings.enforce_scope,
        }
    }

    /// Whether the caller may do `action` to `target`.
    ///
    /// # Errors
    /// The reason why not.
    pub(in crate::http) fn authorize(
        &self,
        action: &str,
        identity: &Identity,
        target: Target<'_>,
    ) -> Result<(), Denied> {
        self.reload_if_changed();
        let scoped = |scope: &Option<String>| scope.as_ref().is_some_and(|scope| !scope.is_empty());
        if self.enforce_scope && (scoped(&identity.system_scope) || scoped(&identity.domain_id)) {
            return Err(Denied::ByScope);
        }
        let rules = self.rules.load();
        if Evaluation::new(&rules, identity, target).rule(action) {
            Ok(())
        } else {
            Err(Denied::ByRule)
        }
    }

    fn reload_if_changed(&self) {
        let Some(path) = &self.file else { return };
        let now = FileState::of(path);
        let mut seen = self.seen.lock();
        if *seen == Some(now) {
            return;
        }
        *seen = Some(now);
        match rules(Some(path), self.enforce_new_defaults) {
            Ok(rules) => self.rules.store(Arc::new(rules)),
            Err(error) => {
                tracing::error!(%error, "the changed policy file cannot be used; the rules from before stay in force");
            }
        }
    }
}

/// The defaults, and what the file says otherwise. Without a file, the defaults.
fn rules(
    file: Option<&Path>,
    enforce_new_defaults: bool,
) -> Result<BTreeMap<String, Check>, PolicyError> {
    let overrides = match file.map(|path| (path, file::read(path))) {
        None => BTreeMap::new(),
        Some((path, Ok(overrides))) => {
            tracing::info!(path = %path.display(), rules = overrides.len(), "read the policy file");
            overrides
        }
        Some((path, Err(PolicyError::Missing { .. }))) => {
            tracing::warn!(path = %path.display(), "there is no policy file; the defaults are in force");
            BTreeMap::new()
        }
        Some((_, Err(error))) => return Err(error),
    };
    Ok(defaults::rules(&overrides, enforce_new_defaults))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(roles: &[&str], project: &str) -> Identity {
        Identity {
            user_id: "u".to_owned(),
            project_id: Some(project.to_owned()),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            ..Identity::default()
        }
    }

    fn allowed(policy: &Policy, action: &str, identity: &Identity) -> bool {
        let target = Target {
            project_id: Some("p"),
            user_id: None,
        };
        policy.authorize(action, identity, target).is_ok()
    }

    const LIST: &str = "placement:resource_providers:list";
    const RESHAPE: &str = "placement:reshaper:reshape";
    const USAGES: &str = "placement:usages";

    #[test]
    fn by_default_admins_and_services_do_everything_but_reshaping_is_for_services() {
        let policy = Policy::new(&PolicySettings::default());
        assert!(allowed(&policy, LIST, &caller(&["ADMIN"], "p")));
        assert!(allowed(&policy, LIST, &caller(&["service"], "p")));
        assert!(!allowed(&policy, LIST, &caller(&["reader"], "p")));
        assert!(allowed(&policy, RESHAPE, &caller(&["service"], "p")));
        assert!(!allowed(&policy, RESHAPE, &caller(&["admin"], "p")));
        assert!(allowed(&policy, USAGES, &caller(&["reader"], "p")));
        assert!(!allowed(&policy, USAGES, &caller(&["reader"], "q")));
        assert!(!allowed(
            &policy,
            "placement:nonsense",
            &caller(&["admin"], "p")
        ));
    }

    #[test]
    fn the_old_defaults_let_admins_reshape() {
        let settings = PolicySettings {
            enforce_new_defaults: false,
            ..PolicySettings::default()
        };
        assert!(allowed(
            &Policy::new(&settings),
            RESHAPE,
            &caller(&["admin"], "p")
        ));
    }

    #[test]
    fn system_tokens_are_out_of_scope() {
        let identity = Identity {
            system_scope: Some("all".to_owned()),
            ..caller(&["admin"], "p")
        };
        let policy = Policy::new(&PolicySettings::default());
        let denied = policy.authorize(LIST, &identity, Target::default());
        assert_eq!(denied, Err(Denied::ByScope));
        let settings = PolicySettings {
            enforce_scope: false,
            ..PolicySettings::default()
        };
        assert!(allowed(&Policy::new(&settings), LIST, &identity));
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.yaml");
        std::fs::write(&path, "\"placement:resource_providers:list\": \"@\"\n").unwrap();
        let settings = PolicySettings {
            file: Some(path.clone()),
            ..PolicySettings::default()
        };
        let policy = Policy::new(&settings);
        assert!(allowed(&policy, LIST, &caller(&[], "p")));
        std::fs::write(&path, "placement:resource_providers:list: '!' # nobody\n").unwrap();
        assert!(!allowed(&policy, LIST, &caller(&["admin"], "p")));
        std::fs::write(&path, "[broken, list").unwrap();
        assert!(
            !allowed(&policy, LIST, &caller(&["admin"], "p")),
            "the old rules stay"
        );
        std::fs::remove_file(&path).unwrap();
        assert!(
            allowed(&policy, LIST, &caller(&["admin"], "p")),
            "back to the defaults"
        );
    }

    #[test]
    fn a_file_that_cannot_be_understood_at_the_start_denies_everything() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.yaml");
        std::fs::write(&path, "- a\n- list\n").unwrap();
        let settings = PolicySettings {
            file: Some(path),
            ..PolicySettings::default()
        };
        assert!(!allowed(
            &Policy::new(&settings),
            LIST,
            &caller(&["admin"], "p")
        ));
    }
}
