use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::keystone::KeystoneSection;

fn answer(token: &Value) -> TokenDocument {
    TokenDocument::read(json!({ "token": token }).to_string().as_bytes()).unwrap()
}

fn document() -> Value {
    json!({
        "methods": ["password"],
        "user": {"id": "u", "name": "nova", "domain": {"id": "default", "name": "Default"}},
        "audit_ids": ["x"],
        "expires_at": "2027-01-02T03:04:05.000000Z",
        "issued_at": "2027-01-02T02:04:05.000000Z",
        "project": {"id": "p", "name": "service", "domain": {"id": "pd", "name": "D"}},
        "is_domain": false,
        "roles": [{"id": "1", "name": "admin"}, {"id": "2", "name": "member"}],
    })
}

#[test]
fn a_token_of_a_project_is_read() {
    let token = answer(&document()).into_token().unwrap();
    let expires_at = UNIX_EPOCH + Duration::from_secs(1_798_859_045);
    let expected = Token {
        identity: Identity {
            user_id: "u".to_owned(),
            user_name: Some("nova".to_owned()),
            project_name: Some("service".to_owned()),
            user_domain_id: Some("default".to_owned()),
            project_id: Some("p".to_owned()),
            project_domain_id: Some("pd".to_owned()),
            roles: vec!["admin".to_owned(), "member".to_owned()],
            is_admin_project: true,
            ..Identity::default()
        },
        access_rules: None,
        expires_at,
    };
    assert_eq!(token, expected);
    assert!(token.has_expired(expires_at));
    assert!(!token.has_expired(expires_at - Duration::from_secs(1)));
}

#[test]
fn system_domain_and_unscoped_tokens_differ() {
    let mut of = document();
    of.as_object_mut().unwrap().remove("project");
    of["roles"] = Value::Null;
    of.as_object_mut().unwrap().remove("roles");
    let unscoped = answer(&of).into_token().unwrap().identity;
    assert_eq!((unscoped.project_id, unscoped.domain_id), (None, None));
    assert!(unscoped.system_scope.is_none() && unscoped.roles.is_empty());
    of["domain"] = json!({"id": "d", "name": "D"});
    assert_eq!(
        answer(&of)
            .into_token()
            .unwrap()
            .identity
            .domain_id
            .as_deref(),
        Some("d")
    );
    of["system"] = json!({"all": true});
    let of_the_system = answer(&of).into_token().unwrap().identity;
    assert_eq!(of_the_system.system_scope.as_deref(), Some("all"));
}

#[test]
fn a_token_says_whether_its_project_is_the_admin_project() {
    let mut of = document();
    for expected in [true, false] {
        of["is_admin_project"] = json!(expected);
        let token = answer(&of).into_token().unwrap();
        assert_eq!(token.identity.is_admin_project, expected);
    }
    of["is_admin_project"] = json!("False");
    let unclear = json!({ "token": of }).to_string();
    assert!(TokenDocument::read(unclear.as_bytes()).is_err());
}

#[test]
fn malformed_answer_is_refused_without_being_shown() {
    for body in [
        "",
        "{}",
        "[\"secret\"]",
        "{\"token\": {\"user\": \"secret\"}}",
    ] {
        let refused = TokenDocument::read(body.as_bytes()).err().unwrap();
        assert!(!refused.contains("secret"), "{refused}");
    }
    let mut timeless = document();
    timeless["expires_at"] = json!("soon");
    assert!(answer(&timeless).into_token().is_err());
}

#[test]
fn answer_with_an_empty_id_is_refused() {
    let mut of = document();
    of["domain"] = json!({"id": "d"});
    for place in [
        "/user/id",
        "/user/domain/id",
        "/project/id",
        "/project/domain/id",
        "/domain/id",
    ] {
        let mut empty = json!({ "token": of });
        assert!(TokenDocument::read(empty.to_string().as_bytes()).is_ok());
        *empty.pointer_mut(&format!("/token{place}")).unwrap() = json!("");
        assert!(
            TokenDocument::read(empty.to_string().as_bytes()).is_err(),
            "{place}"
        );
    }
}

proptest! {
    #[test]
    fn damaged_answer_causes_no_panic_and_grants_no_admin_role(
        at in any::<proptest::sample::Index>(),
        cut in 0..4_usize,
        put in proptest::collection::vec(any::<u8>(), 0..6),
    ) {
        let mut token = document();
        token["roles"] = json!([{"id": "2", "name": "reader"}]);
        let mut bytes = json!({ "token": token }).to_string().into_bytes();
        let at = at.index(bytes.len());
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, put);
        if let Ok(answer) = TokenDocument::read(&bytes) {
            let _ = (answer.expires_at(), answer.identity_endpoint("internal", "one"));
            if let Ok(token) = answer.into_token() {
                prop_assert!(!token.identity.user_id.is_empty());
                prop_assert!(!token.identity.roles.iter().any(|role| role == "admin"));
            }
        }
    }
}

#[test]
fn keystone_endpoint_is_found_in_the_catalog() {
    let mut of = document();
    let endpoint = |interface: &str, region: &str, url: &str| json!({"interface": interface, "region_id": region, "url": url});
    of["catalog"] = json!([
        {"type": "placement", "endpoints": [endpoint("internal", "one", "http://p")]},
        {"type": "identity", "endpoints": [
            endpoint("public", "one", "http://public"),
            endpoint("internal", "one", "http://one"),
            endpoint("internal", "two", "http://two"),
        ]},
    ]);
    let answer = answer(&of);
    assert_eq!(
        answer.identity_endpoint("internal", "two"),
        Some("http://two")
    );
    assert_eq!(answer.identity_endpoint("internal", ""), Some("http://one"));
    assert_eq!(answer.identity_endpoint("admin", ""), None);
}

#[test]
fn secrets_are_shown_to_keystone_alone() {
    let section = |text: &str| toml::from_str::<KeystoneSection>(text).unwrap();
    let password = section("username = 'placement'\npassword = 'hidden'\n");
    let application =
        section("application_credential_id = 'id'\napplication_credential_secret = 'hidden'\n");
    for section in [&password, &application] {
        let shown = format!("{section:?} {} {:?}", section.who(), section.credentials());
        assert!(!shown.contains("hidden"), "{shown}");
    }
    assert_eq!(
        password.credentials().question(),
        json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": "placement", "domain": {"name": "Default"}, "password": "hidden"}}},
            "scope": {"project": {"name": "service", "domain": {"name": "Default"}}},
        }})
    );
    assert_eq!(
        application.credentials().question(),
        json!({"auth": {"identity": {
            "methods": ["application_credential"],
            "application_credential": {"id": "id", "secret": "hidden"},
        }}})
    );
}
