use super::*;
use placement_audit::identity::CallingService;
use proptest::prelude::*;

fn holds(rule: &str, roles: &[&str]) -> bool {
    let mut rules = BTreeMap::new();
    rules.insert("it".to_owned(), Check::parse(rule));
    rules.insert("admin".to_owned(), Check::parse("role:admin"));
    rules.insert("unclear".to_owned(), Check::parse("role:admin and"));
    for depth in 0..40 {
        let twice = format!("rule:deep{0} or rule:deep{0}", depth + 1);
        rules.insert(format!("deep{depth}"), Check::parse(&twice));
    }
    for step in 0..if rule.contains("step") { 10_000 } else { 0 } {
        let next = format!("not not rule:step{}", step + 1);
        rules.insert(format!("step{step}"), Check::parse(&next));
    }
    rules.insert("step10000".to_owned(), Check::True);
    rules.insert("not_me".to_owned(), Check::parse("not rule:not_me"));
    rules.insert("loop".to_owned(), Check::parse("rule:loop or rule:loop"));
    let identity = Identity {
        user_id: "u".to_owned(),
        project_id: Some("p".to_owned()),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        is_admin_project: true,
        service: CallingService {
            user_id: Some("nova".to_owned()),
            project_id: Some("services".to_owned()),
            roles: vec!["service".to_owned()],
            ..CallingService::default()
        },
        ..Identity::default()
    };
    let target = Target {
        project_id: Some("p"),
        user_id: None,
    };
    super::holds(&rules, "it", &identity, target)
}

#[test]
fn rules_combine_as_in_any_logic() {
    for (rule, expected) in [
        ("@", true),
        ("", true),
        ("!", false),
        ("not !", true),
        ("role:admin", true),
        ("role:ADMIN", true),
        ("role:reader", false),
        ("rule:admin", true),
        ("not role:reader", true),
        ("not not role:admin", true),
        ("role:admin and role:reader", false),
        ("role:reader and role:x or role:admin", true),
        ("role:admin or role:reader and role:x", true),
        ("(role:admin or role:reader) and role:x", false),
        ("( role:admin )", true),
        ("not (role:admin and role:x)", true),
        ("role:admin AND NOT role:x", true),
        ("project_id:%(project_id)s", true),
        ("project_id:q", false),
        ("'x':x", true),
        ("'x':y", false),
        ("'a%p':a%%%(project_id)s", true),
        ("user_id:%(user_id)s", false),
        ("'None':%(user_id)s", false),
        ("'xNone':x%(user_id)s", false),
        ("role:admin%(user_id)s", false),
        ("not user_id:%(user_id)s", true),
        ("is_admin_project:True", true),
        ("is_admin_project:False", false),
        ("is_admin_project:true", false),
        ("not is_admin_project:True", false),
        ("service_roles:service", true),
        ("service_roles:admin", false),
        ("service_user_id:nova", true),
        ("service_project_id:services", true),
        ("service_user_domain_id:None", true),
        ("service_project_domain_id:x", false),
        ("system:None", false),
        ("roles:admin", true),
        ("True:True", true),
        ("rule:loop", false),
        ("rule:not_me", false),
        ("rule:not_me or @", false),
        ("rule:deep0", false),
        ("rule:step9990", true),
        ("rule:step0", false),
    ] {
        assert_eq!(holds(rule, &["admin"]), expected, "{rule}");
    }
}

#[test]
fn unreadable_rule_allows_nothing() {
    for rule in [
        "role:admin or",
        "and",
        "(role:admin",
        "role:admin)",
        "role:admin role:x",
        "'text'",
        "admin",
        "not",
        "project_id:%(project_id",
        "project_id:%(nothing)s",
        "role:%x",
        "is_admin:True",
        "user:u",
        "tenant:p",
        "roles.name:admin",
        "service_roles.name:service",
        "http://somewhere/x",
        "rule:nowhere",
        "rule:unclear",
    ] {
        for spelled in [rule, &format!("not {rule}"), &format!("not ({rule})")] {
            assert!(!holds(spelled, &["admin"]), "{spelled}");
        }
    }
    assert!(!holds(&"(".repeat(10_000), &["admin"]));
    assert!(!holds(&"not ".repeat(10_000), &["admin"]));
    assert!(!holds(&format!("{}@", "not ".repeat(10_000)), &["admin"]));
}

#[test]
fn readable_checks_count_next_to_an_unreadable_one() {
    assert!(holds("is_admin:True or role:admin", &["admin"]));
    assert!(!holds("is_admin:True or role:admin", &["reader"]));
    assert!(!holds("not is_admin:True and role:admin", &["admin"]));
    assert!(holds("not (rule:nowhere and role:x)", &["admin"]));
}

/// Random rules; some of their checks cannot be parsed.
fn check() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        Just("role:admin"),
        Just("role:reader"),
        Just("@"),
        Just("!"),
        Just("rule:nowhere"),
        Just("rule:unclear"),
        Just("bogus"),
        Just("http://x"),
        Just("colour:red"),
        Just("project_id:%(x)s"),
    ];
    one.prop_map(str::to_owned)
        .prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|one| format!("not ({one})")),
                prop::collection::vec(inner.clone(), 1..3)
                    .prop_map(|all| format!("({})", all.join(" and "))),
                prop::collection::vec(inner, 1..3)
                    .prop_map(|any| format!("({})", any.join(" or "))),
            ]
        })
}

proptest! {
    #[test]
    fn no_rule_breaks_the_parser(rule in "[()@!a-z:%'\" ]{0,60}") {
        holds(&rule, &["admin"]);
    }

    #[test]
    fn no_text_breaks_the_parser(rule in ".{0,60}") {
        holds(&rule, &["admin"]);
    }

    /// Replaces unparsable checks by random truth values: a rule that grants access still does.
    #[test]
    fn unreadable_checks_never_make_a_rule_allow(
        rule in check(),
        truths in prop::collection::vec(any::<bool>(), 30),
    ) {
        let mut truths = truths.into_iter().cycle();
        let mut clear = String::new();
        for word in rule.split_inclusive([' ', '(', ')']) {
            let unclear = ["rule:nowhere", "rule:unclear", "bogus", "http://x", "colour:red"];
            let bare = word.trim_end_matches([' ', ')']);
            let truth = if truths.next() == Some(true) { "@" } else { "!" };
            if unclear.contains(&bare) {
                clear.push_str(&word.replace(bare, truth));
            } else {
                clear.push_str(word);
            }
        }
        let clear = clear.replace("project_id:%(x)s", "@");
        if holds(&rule, &["admin"]) {
            prop_assert!(holds(&clear, &["admin"]), "{rule}\n{clear}");
        }
    }
}
