use std::collections::BTreeSet;

use super::*;

impl Policy {
    /// Reads a policy over the default rules of some operations of the REST API.
    pub(crate) fn read(settings: &PolicySettings) -> Result<Self, PolicyError> {
        let operations = [
            "placement:allocations:manage",
            RESHAPE,
            LIST,
            "placement:traits:delete",
            "placement:traits:list",
            "placement:traits:show",
            "placement:traits:update",
            USAGES,
            "placementd:consumers",
            "placementd:explain",
        ];
        Self::over(defaults(&operations), settings)
    }
}

/// The defaults for these operations, of which two name a project.
fn defaults(operations: &[&'static str]) -> Defaults {
    let operations: BTreeSet<_> = operations.iter().copied().collect();
    let with_project = BTreeSet::from([USAGES, "placementd:consumers"]);
    Defaults {
        without_project: &operations - &with_project,
        operations,
    }
}

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
    let policy = Policy::read(&PolicySettings::default()).unwrap();
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
fn own_routes_are_for_admins_services_and_readers_of_placement() {
    const EXPLAIN: &str = "placementd:explain";
    for enforce_new_defaults in [true, false] {
        let settings = PolicySettings {
            enforce_new_defaults,
            ..PolicySettings::default()
        };
        let policy = Policy::over(defaults(&[EXPLAIN, LIST]), &settings).unwrap();
        for role in ["admin", "service", "placement_reader"] {
            assert!(allowed(&policy, EXPLAIN, &caller(&[role], "p")), "{role}");
        }
        for roles in [&["member", "reader"][..], &[]] {
            assert!(!allowed(&policy, EXPLAIN, &caller(roles, "p")), "{roles:?}");
        }
        let reader = caller(&["placement_reader"], "p");
        assert!(allowed(&policy, LIST, &reader));
    }
}

#[test]
fn the_old_defaults_let_admins_reshape() {
    let settings = PolicySettings {
        enforce_new_defaults: false,
        ..PolicySettings::default()
    };
    assert!(allowed(
        &Policy::read(&settings).unwrap(),
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
    let policy = Policy::read(&PolicySettings::default()).unwrap();
    let denied = policy.authorize(LIST, &identity, Target::default());
    assert_eq!(denied, Err(Denied::ByScope));
    let settings = PolicySettings {
        enforce_scope: false,
        ..PolicySettings::default()
    };
    assert!(allowed(&Policy::read(&settings).unwrap(), LIST, &identity));
}

/// A policy with files that a test writes.
struct Story {
    dir: tempfile::TempDir,
    settings: PolicySettings,
    policy: Policy,
}

const CLOSED: &str = "placement:resource_providers:list: '!'\n";
const OPEN: &str = "\"placement:resource_providers:list\": \"@\"\n";
const ANYBODY: &[&str] = &[];
const ADMIN: &[&str] = &["admin"];

impl Story {
    /// Starts with this file, and a directory with these files.
    fn with_files(file: &str, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.yaml");
        std::fs::write(&path, file).unwrap();
        let directory = dir.path().join("policy.d");
        std::fs::create_dir(&directory).unwrap();
        for (name, text) in files {
            std::fs::write(directory.join(name), text).unwrap();
        }
        let settings = PolicySettings {
            file: Some(path),
            policy_dirs: vec![directory],
            ..PolicySettings::default()
        };
        let policy = Policy::read(&settings).unwrap();
        Self {
            dir,
            settings,
            policy,
        }
    }

    /// Rewrites or removes a file, and lets the policy check it twice.
    fn becomes(&self, name: &str, text: Option<&str>) {
        let path = self.dir.path().join(name);
        match text {
            Some(text) => std::fs::write(path, text).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        self.policy.reload_if_changed();
        self.policy.reload_if_changed();
    }

    fn lets(&self, roles: &[&str]) -> bool {
        allowed(&self.policy, LIST, &caller(roles, "p"))
    }
}

#[test]
fn a_changed_file_is_read_once_it_has_settled() {
    let story = Story::with_files(OPEN, &[]);
    assert!(story.lets(ANYBODY));
    let path = story.dir.path().join("policy.yaml");
    std::fs::write(&path, format!("{CLOSED}admin_api: role:chief # and on\n")).unwrap();
    story.policy.reload_if_changed();
    assert!(story.lets(ANYBODY), "the file may be incomplete");
    story.policy.reload_if_changed();
    assert!(!story.lets(ADMIN));
    story.becomes(
        "policy.yaml",
        Some(&format!("{OPEN}admin_api: role:chief\n")),
    );
    assert!(story.lets(ANYBODY));
}

#[test]
fn missing_empty_or_truncated_file_grants_nothing() {
    let whole = format!("{CLOSED}placement:traits:list: role:a and role:b\n");
    let story = Story::with_files(&whole, &[]);
    let half = &whole[..whole.len() - 12];
    assert!(half.ends_with("role:a"));
    let first_line = CLOSED;
    let lacks_the_first = "placement:traits:list: role:a and role:b\n";
    for what in [
        None,
        Some(""),
        Some("# nothing\n"),
        Some("{}\n"),
        Some("[broken, list"),
        Some("- a\n- list\n"),
        Some(half),
        Some(first_line),
        Some(lacks_the_first),
    ] {
        story.becomes("policy.yaml", what);
        assert!(story.policy.is_refused(), "{what:?}");
        assert!(!story.lets(ADMIN), "{what:?}");
        let both = caller(&["a", "b"], "p");
        assert!(allowed(&story.policy, "placement:traits:list", &both));
        let one = caller(&["a"], "p");
        assert!(!allowed(&story.policy, "placement:traits:list", &one));
        story.becomes("policy.yaml", Some(&whole));
        assert!(!story.policy.is_refused());
    }
    // An explicit reload may remove rules.
    std::fs::write(story.dir.path().join("policy.yaml"), "{}\n").unwrap();
    story.policy.reload(&story.settings).unwrap();
    assert!(story.lets(ADMIN));
    // But it fails if the file is missing.
    std::fs::remove_file(story.dir.path().join("policy.yaml")).unwrap();
    assert!(story.policy.reload(&story.settings).is_err());
}

#[test]
fn files_of_a_directory_override_each_other_in_the_order_of_their_names() {
    let files = [
        ("20-open.yaml", OPEN),
        ("10-closed.yaml", CLOSED),
        (".hidden", "half"),
    ];
    let story = Story::with_files(CLOSED, &files);
    assert!(story.lets(ANYBODY));
    story.becomes("policy.d/30-closed.yaml", Some(CLOSED));
    assert!(!story.lets(ADMIN));
    // The remaining files would grant access to everyone.
    story.becomes("policy.d/30-closed.yaml", None);
    assert!(story.policy.is_refused() && !story.lets(ADMIN));
    story.policy.reload(&story.settings).unwrap();
    assert!(!story.policy.is_refused() && story.lets(ANYBODY));
}

#[test]
fn unusable_policy_file_prevents_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.yaml");
    let from = |file: bool, text: Option<&str>| {
        let _ = std::fs::remove_file(&path);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let mut settings = PolicySettings::default();
        if file {
            settings.file = Some(path.clone())
        } else {
            settings.policy_dirs = vec![path.clone()]
        }
        Policy::read(&settings)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    for text in [
        None,
        Some(""),
        Some("- a\n- list\n"),
        Some("admin_api: role:x"),
    ] {
        let error = from(true, text).unwrap_err();
        assert!(error.contains("policy.yaml"), "{error}");
    }
    assert!(from(false, None).is_err(), "there is no such directory");
    assert!(from(false, Some(OPEN)).is_err(), "it is no directory");
    assert!(from(true, Some("{}\n")).is_ok());
    assert!(Policy::read(&PolicySettings::default()).is_ok());
}

#[test]
fn faulty_rules_are_reported() {
    let wrong = [
        (
            "placement:allocation:manage",
            "'!'",
            "placement:allocations:manage",
        ),
        ("admin_ap", "role:x", "admin_api"),
        ("admin_api", "role:x or", "is not a rule"),
        ("service_api", "rule:nowhere", "nowhere"),
        ("placement:usages", "rule:placement:usages", "itself"),
        (
            "placement:traits:list",
            "is_admin:True or role:admin",
            "is_admin",
        ),
        ("placement:traits:show", "http://x/y", "http"),
        (
            "placement:traits:update",
            "[[\"project_id:%(domain)s\"]]",
            "domain",
        ),
    ];
    let right = "mine: role:x\nplacement:traits:delete: rule:mine or rule:admin_api\n";
    let lines = wrong.map(|(name, rule, _)| format!("{name}: {rule}\n"));
    let story = Story::with_files(&format!("{right}{}", lines.concat()), &[]);
    let found = story.policy.mistakes();
    assert_eq!(found.len(), wrong.len(), "{found:#?}");
    for (name, rule, expected) in wrong {
        let mistake = found.iter().find(|mistake| mistake.rule == name).unwrap();
        assert!(mistake.what.contains(expected), "{rule}: {mistake}");
    }
    assert_eq!(found.iter().map(|mistake| mistake.line).min(), Some(3));
}

#[test]
fn comparison_with_the_request_grants_no_access_to_own_routes_without_a_project() {
    const OF_PROJECT: &str = "role:reader and project_id:%(project_id)s";
    let explains = |rules: &str| {
        let story = Story::with_files(rules, &[]);
        let mistakes = story.policy.mistakes();
        let explains = [["reader"], ["admin"]]
            .map(|roles| allowed(&story.policy, "placementd:explain", &caller(&roles, "p")));
        (mistakes, explains)
    };
    for wrong in [
        &format!("placementd:explain: role:admin or {OF_PROJECT}\n"),
        "placementd:explain: role:admin or not project_id:%(project_id)s\n",
        "placementd:explain: role:admin or user_id:%(user_id)s\n",
        "placementd:explain: role:admin or 'p':%(project_id)s\n",
        "placementd:explain: role:admin or rule:project_reader_api\n",
        "placementd:explain: role:admin or rule:placement:usages\n",
        &format!("mine: {OF_PROJECT}\nplacementd:explain: role:admin or not rule:mine\n"),
        &format!("all_reads_api: role:admin or {OF_PROJECT}\n"),
    ] {
        let (mistakes, explains) = explains(wrong);
        assert_eq!(explains, [false, true], "{wrong}");
        let [mistake] = &mistakes[..] else {
            panic!("{wrong}: {mistakes:?}");
        };
        assert!(mistake.what.contains("never grants access"), "{mistake}");
    }
    // The default rule is right, whatever a file says about upstream's rules.
    let reads = [LIST, "placement:traits:list", "placement:traits:show"];
    let reads = reads.map(|name| format!("{name}: {OF_PROJECT}\n"));
    for (right, expected) in [
        (reads.concat(), [true, false]),
        (format!("placement:usages: {OF_PROJECT}\n"), [false, false]),
        (
            format!("placementd:consumers: {OF_PROJECT}\n"),
            [false, true],
        ),
        (
            "placementd:explain: role:admin and project_id:p\n".to_owned(),
            [false, true],
        ),
        (
            "placementd:explain: rule:admin_api or rule:all_reads_api\n".to_owned(),
            [false, true],
        ),
    ] {
        assert_eq!(explains(&right), (Vec::new(), expected), "{right}");
    }
}

/// Requests to this service's own routes need all of upstream's read rules; most are equal.
#[test]
fn equal_rules_are_evaluated_once() {
    let policy = Policy::read(&PolicySettings::default()).unwrap();
    let in_force = policy.in_force.load();
    let Check::And(reads) = &in_force.rules["all_reads_api"] else {
        panic!("several rules are required");
    };
    assert_eq!(reads.len(), 2, "{reads:?}");
}
