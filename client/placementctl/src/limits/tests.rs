use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use placement_client::{Body, BoxFuture, Client, Transport, TransportError, whole};
use serde::Deserialize;
use serde_json::{Value, json};

use super::change::{self, Change, carry_out, changes, left};
use super::conversion::{Copied, convert};
use super::keystone::{
    Answers, Keystone, check_scope, entries, is_two_level, login, next_page, prefix,
};
use super::*;
use crate::plan;
use crate::render::Format;

fn registered(region: &str, name: &str, limit: i64) -> Value {
    json!({"service_id": "nova", "region_id": region, "resource_name": name, "default_limit": limit})
}

fn limit(region: &str, owner: (&str, &str), name: &str, limit: i64) -> Value {
    let mut one = json!({"service_id": "nova", "region_id": region, "resource_name": name, "resource_limit": limit,
        "project_id": null, "domain_id": null});
    one[owner.0] = json!(owner.1);
    one
}

fn project(id: &str, parent: &str) -> Value {
    json!({"id": id, "parent_id": parent, "domain_id": "d", "is_domain": false})
}

fn services() -> Vec<Value> {
    let image = json!({"id": "glance", "type": "image"});
    vec![image, json!({"id": "nova", "type": "compute"})]
}

/// A domain `d` with limits, a project `a` with limits in it, and a project `b` without limits.
fn two_levels() -> Answers {
    Answers {
        services: services(),
        registered_limits: vec![registered("R", "class:VCPU", 40)],
        limits: vec![
            limit("R", ("domain_id", "d"), "class:VCPU", 100),
            limit("R", ("project_id", "a"), "class:VCPU", 10),
        ],
        projects: Some(vec![
            project("a", "d"),
            project("b", "d"),
            project("c", "e"),
            project("x", "b"),
        ]),
    }
}

fn converted(answers: &Answers, region: Option<&str>) -> Result<Copied, String> {
    convert(answers, region).map_err(|error| format!("{error:#}"))
}

#[test]
fn limits_of_nova_get_the_names_of_placement() {
    let mut answers = Answers {
        services: services(),
        registered_limits: vec![
            registered("R", "servers", 20),
            registered("R", "class:VCPU", 40),
            registered("R", "class:MEMORY_MB", -1),
            registered("R", "class:bad-name", 1),
            registered("R", "server_groups", 10),
            registered("R", "image_size_total", 1000),
        ],
        limits: vec![
            limit("R", ("project_id", "p"), "servers", 0),
            limit("R", ("project_id", "p"), "class:VCPU", -1),
            limit("R", ("project_id", "q"), "server_groups", 3),
        ],
        projects: None,
    };
    answers.registered_limits[5]["service_id"] = json!("glance");
    let copied = converted(&answers, None).unwrap();
    let defaults = json!({"MEMORY_MB": null, "VCPU": 40, "consumers": 20});
    assert_eq!(json!(copied.defaults), defaults);
    let projects = json!({"p": {"parent": null, "limits": {"VCPU": null, "consumers": 0}}});
    assert_eq!(json!(copied.projects), projects);
    assert_eq!(
        copied.note().as_deref(),
        Some(
            "skipped 3 limits of resources that are not in allocations: class:bad-name, server_groups"
        )
    );
    assert_eq!(converted(&two_levels(), None).unwrap().note(), None);
}

#[test]
fn limits_of_one_region_are_copied() {
    let mut answers = Answers {
        services: services(),
        registered_limits: vec![
            registered("R", "servers", 20),
            registered("S", "servers", 30),
        ],
        limits: vec![
            limit("R", ("project_id", "p"), "servers", 5),
            limit("S", ("project_id", "p"), "servers", 6),
        ],
        projects: None,
    };
    let copied = converted(&answers, Some("S")).unwrap();
    assert_eq!(json!(copied.defaults), json!({"consumers": 30}));
    assert_eq!(json!(copied.projects["p"].limits), json!({"consumers": 6}));
    for (region, reason) in [
        (None, "of several regions: R, S. Choose one with --region"),
        (Some("T"), "of the region \"T\", but of R, S"),
    ] {
        let error = converted(&answers, region).unwrap_err();
        assert!(error.ends_with(reason), "{error}");
    }
    answers.registered_limits[1]["region_id"] = Value::Null;
    let error = converted(&answers, None).unwrap_err();
    assert!(error.contains("(no region), R"), "{error}");
    answers.registered_limits.pop();
    let copied = converted(&answers, None).unwrap();
    assert_eq!(json!(copied.defaults), json!({"consumers": 20}));
}

#[test]
fn projects_have_parents_if_the_model_has_two_levels() {
    let answers = two_levels();
    let projects = json!({
        "a": {"parent": "d", "limits": {"VCPU": 10}},
        "b": {"parent": "d", "limits": {}},
        "d": {"parent": null, "limits": {"VCPU": 100}},
    });
    let copied = converted(&answers, Some("R")).unwrap();
    assert_eq!(json!(copied.projects), projects);

    let flat = Answers {
        projects: None,
        ..two_levels()
    };
    let projects = json!({
        "a": {"parent": null, "limits": {"VCPU": 10}},
        "d": {"parent": null, "limits": {"VCPU": 100}},
    });
    assert_eq!(json!(converted(&flat, None).unwrap().projects), projects);

    let mut three_levels = two_levels();
    let of_b = limit("R", ("project_id", "b"), "class:VCPU", 20);
    three_levels.limits.push(of_b);
    let error = converted(&three_levels, None).unwrap_err();
    let reason = "project \"x\" has the parent \"b\", which has the parent \"d\"";
    assert!(error.ends_with(reason), "{error}");
}

/// Makes an answer of Keystone wrong.
type Flaw = fn(&mut Answers);

#[test]
fn wrong_answers_are_refused_with_their_place() {
    let cases: [(Flaw, &str); 13] = [
        (
            |answers| answers.services.truncate(1),
            "Keystone has no service of the type compute",
        ),
        (
            |answers| answers.services[0] = json!("nova"),
            "entry 0 of Keystone's list \"services\": it has no \"id\"",
        ),
        (
            |answers| answers.registered_limits.clear(),
            "Keystone has no registered limits of a service of the type compute",
        ),
        (
            |answers| answers.registered_limits[0]["default_limit"] = json!("40"),
            "entry 0 of Keystone's list \"registered_limits\": \"default_limit\" is not an integer",
        ),
        (
            |answers| answers.registered_limits[0]["default_limit"] = json!(-2),
            "entry 0 of Keystone's list \"registered_limits\": \"default_limit\" is below -1",
        ),
        (
            |answers| answers.registered_limits[0]["region_id"] = json!(1),
            "entry 0 of Keystone's list \"registered_limits\": \"region_id\" is not a text, or is empty",
        ),
        (
            |answers| {
                answers
                    .registered_limits
                    .push(registered("R", "class:VCPU", 1))
            },
            "Keystone has two registered limits of \"class:VCPU\"",
        ),
        (
            |answers| {
                answers
                    .services
                    .push(json!({"id": "nova2", "type": "compute"}));
                let mut other = registered("R", "servers", 1);
                other["service_id"] = json!("nova2");
                answers.registered_limits.push(other);
            },
            "Keystone has registered limits of several services of the type compute: nova, nova2",
        ),
        (
            |answers| answers.limits[1]["resource_name"] = json!(""),
            "entry 1 of Keystone's list \"limits\": \"resource_name\" is not a text, or is empty",
        ),
        (
            |answers| answers.limits[1]["domain_id"] = json!("d"),
            "entry 1 of Keystone's list \"limits\": it must have either \"project_id\" or \"domain_id\"",
        ),
        (
            |answers| answers.limits[1]["resource_limit"] = json!(1.5),
            "entry 1 of Keystone's list \"limits\": \"resource_limit\" is not an integer",
        ),
        (
            |answers| answers.limits.push(answers.limits[1].clone()),
            "Keystone has two limits of \"class:VCPU\" for project \"a\"",
        ),
        (
            |answers| answers.projects = Some(vec![json!({"id": "a"})]),
            "entry 0 of Keystone's list \"projects\": it has no \"parent_id\"",
        ),
    ];
    for (change, reason) in cases {
        let mut answers = two_levels();
        change(&mut answers);
        assert_eq!(converted(&answers, None), Err(reason.to_owned()));
    }
}

#[test]
fn wrong_pages_are_refused() {
    let page = |answer: Value| entries(answer, "limits").map_err(|error| error.to_string());
    let link = "http://k/v3/limits?marker=1";
    let next = json!({"limits": [1], "links": {"next": link}, "truncated": true});
    assert_eq!(page(next), Ok((vec![json!(1)], Some(link.to_owned()))));
    let last = json!({"limits": [], "links": {"next": null}});
    assert_eq!(page(last), Ok((vec![], None)));
    for (answer, reason) in [
        (json!({"limits": {}}), "it has no list \"limits\""),
        (json!([]), "it has no list \"limits\""),
        (
            json!({"limits": [], "links": {"next": 1}}),
            "\"next\" in \"links\" is not a text",
        ),
        (
            json!({"limits": [], "links": {"next": null}, "truncated": true}),
            "Keystone has truncated the list \"limits\": raise `list_limit` in its configuration",
        ),
    ] {
        assert_eq!(page(answer), Err(reason.to_owned()));
    }

    let path = "/services?type=compute";
    let next = next_page(path, "https://elsewhere/v3/services?type=compute&marker=a");
    assert_eq!(next.unwrap(), "/services?type=compute&marker=a");
    for link in ["https://k/v3/services", "https://k/v3/users?marker=a", ""] {
        next_page(path, link).unwrap_err();
    }

    let model = |name: Value| is_two_level(&json!({"model": {"name": name}}));
    assert!(!model(json!("flat")).unwrap());
    assert!(model(json!("strict_two_level")).unwrap());
    for name in [json!("other"), json!(7), Value::Null] {
        model(name).unwrap_err();
    }
}

/// A Keystone below the path `/identity`, with its answers by path.
#[derive(Clone)]
struct Fake(Arc<BTreeMap<&'static str, Value>>);

impl Transport for Fake {
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Body>, TransportError>> {
        assert_eq!(request.uri().host(), Some("keystone"));
        let path = request.uri().path_and_query().unwrap().as_str();
        let path = path.strip_prefix("/identity/v3").unwrap();
        let is_login = request.method() == Method::POST;
        let token = if is_login { "" } else { "secret" };
        assert_eq!(request.headers()["x-auth-token"], token);
        let answer = match self.0.get(path) {
            Some(answer) => Response::builder().body(whole(answer.to_string().into())),
            None => {
                let error = json!({"error": {"message": "You are not allowed."}});
                let answer = Response::builder().status(403);
                answer.body(whole(error.to_string().into()))
            }
        };
        let mut answer = answer.unwrap();
        if is_login {
            let token = "secret".parse().unwrap();
            answer.headers_mut().insert("x-subject-token", token);
        }
        Box::pin(async { Ok(answer) })
    }
}

fn cloud() -> BTreeMap<&'static str, Value> {
    let Answers {
        services,
        registered_limits,
        limits,
        projects,
    } = two_levels();
    let next = json!({"next": "http://public.example/identity/v3/limits?marker=1"});
    let (first, second) = (&limits[..1], &limits[1..]);
    BTreeMap::from([
        ("/auth/tokens", json!({"token": {"system": {"all": true}}})),
        ("/services?type=compute", json!({ "services": services })),
        (
            "/registered_limits",
            json!({ "registered_limits": registered_limits }),
        ),
        ("/limits", json!({"limits": first, "links": next})),
        (
            "/limits?marker=1",
            json!({"limits": second, "links": {"next": null}}),
        ),
        (
            "/limits/model",
            json!({"model": {"name": "strict_two_level"}}),
        ),
        ("/projects", json!({ "projects": projects })),
    ])
}

/// Logs in with a token or a password, and reads everything.
async fn read(
    answers: BTreeMap<&'static str, Value>,
    token: Option<&str>,
) -> anyhow::Result<Answers> {
    let client = Client::over(["http://keystone:5000"], Fake(Arc::new(answers)))?;
    let client = client.with_prefix(&prefix("/identity/")).with_token("");
    let variable = |name: &str| match name {
        "OS_USERNAME" => Some("limits".to_owned()),
        "OS_PASSWORD" => Some("password".to_owned()),
        _ => None,
    };
    let url = "http://keystone:5000/identity";
    Keystone::open(client, url, token, variable)
        .await?
        .answers()
        .await
}

#[tokio::test]
async fn all_pages_are_read_with_one_token() {
    for token in [None, Some("secret")] {
        let answers = read(cloud(), token).await.unwrap();
        assert_eq!(converted(&answers, None), converted(&two_levels(), None));
    }
    let mut flat = cloud();
    flat.insert("/limits/model", json!({"model": {"name": "flat"}}));
    flat.remove("/projects");
    assert_eq!(read(flat, None).await.unwrap().projects, None);
}

#[tokio::test]
async fn failures_of_keystone_are_explained() {
    let mut forbidden = cloud();
    forbidden.remove("/projects");
    let mut circle = cloud();
    let first = circle["/limits"].clone();
    circle.insert("/limits?marker=1", first);
    let mut of_project = cloud();
    of_project.insert("/auth/tokens", json!({"token": {"project": {"id": "p"}}}));
    let mut broken = cloud();
    broken.insert("/limits", json!({"limits": null}));
    for (answers, reason) in [
        (
            forbidden,
            "Keystone at http://keystone:5000/identity refuses GET /projects: 403 Forbidden: You are not allowed. (the \
             user needs a role on the system, such as `reader`)",
        ),
        (
            circle,
            "Keystone's answers to GET /limits do not end: 2 pages were read",
        ),
        (
            broken,
            "Keystone's answer to GET /limits: it has no list \"limits\"",
        ),
        (
            of_project,
            "the token is not for the whole system, so Keystone may list only the limits of one project or domain: use \
             a token of `openstack --os-system-scope all token issue -f value -c id`",
        ),
    ] {
        let error = read(answers, None).await.unwrap_err();
        assert_eq!(format!("{error:#}"), reason);
    }
    let error = read(cloud(), Some("secret\n")).await.unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_login_is_for_the_whole_system() {
    let with = |set: &[(&str, &str)]| {
        login(|name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    let (name, password) = (("OS_USERNAME", "u"), ("OS_PASSWORD", "p"));
    let user = |set: &[(&str, &str)]| {
        let auth = with(set).unwrap()["auth"].take();
        assert_eq!(auth["scope"], json!({"system": {"all": true}}));
        auth["identity"]["password"]["user"].clone()
    };
    assert_eq!(
        user(&[name, password, ("OS_USER_DOMAIN_NAME", "D")]),
        json!({"name": "u", "domain": {"name": "D"}, "password": "p"})
    );
    assert_eq!(
        user(&[name, password, ("OS_USER_DOMAIN_ID", "")]),
        json!({"name": "u", "domain": {"id": "default"}, "password": "p"})
    );
    assert_eq!(
        user(&[("OS_USER_ID", "i"), name, password]),
        json!({"id": "i", "password": "p"})
    );
    for set in [&[][..], &[name], &[password], &[name, ("OS_PASSWORD", "")]] {
        assert!(with(set).unwrap_err().is::<crate::render::Misuse>());
    }
    check_scope(&json!({"token": {"system": {"all": false}}})).unwrap_err();
    for path in ["/", "/v3", "/v3/"] {
        assert_eq!(prefix(path), "/v3");
    }
    assert_eq!(prefix("/identity/v3"), "/identity/v3");
}

/// The stored limits: the project `p` has another limit than in Keystone, and `old` is not there.
fn stored() -> Limits<'static> {
    let stored = json!({"generation": 3, "mode": "enforce", "types": ["INSTANCE"],
        "defaults": {"consumers": 20, "DISK_GB": 7},
        "projects": {"p": {"limits": {"VCPU": 10}}, "old": {"parent": "p"}},
        "updated_at": "2026-11-30T20:00:00Z"});
    Limits::deserialize(stored).unwrap()
}

fn in_keystone() -> Copied {
    let answers = Answers {
        services: services(),
        registered_limits: vec![
            registered("R", "servers", 25),
            registered("R", "class:VCPU", 40),
        ],
        limits: vec![
            limit("R", ("domain_id", "d"), "class:VCPU", 100),
            limit("R", ("project_id", "p"), "class:VCPU", -1),
        ],
        projects: Some(vec![project("p", "d")]),
    };
    convert(&answers, None).unwrap()
}

#[test]
fn changes_are_listed_by_project_and_resource() {
    let found = changes(&stored(), &in_keystone());
    let expected = "\
PROJECT     RESOURCE   CHANGE   BEFORE  AFTER
(defaults)  DISK_GB    removed  7       -
(defaults)  VCPU       added    -       40
(defaults)  consumers  changed  20      25
d           VCPU       added    -       100
old         parent     removed  p       -
p           parent     added    -       d
p           VCPU       changed  10      unlimited
";
    assert_eq!(Format::Table.printed(change::listed(found)), expected);
}

#[test]
fn an_applied_plan_makes_the_limits_those_of_keystone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plan.jsonl");
    let found = changes(&stored(), &in_keystone());
    plan::write(&file, &found).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text.lines().next(),
        Some(r#"{"after":null,"before":7,"generation":3,"project":null,"resource":"DISK_GB"}"#)
    );
    let planned = || plan::parse(&file, Change::flaw).unwrap();
    assert_eq!(planned(), found);

    let mut limits = stored();
    let all = left(&limits, planned()).unwrap();
    assert_eq!(all, found);
    carry_out(&mut limits, &all);
    assert!(changes(&limits, &in_keystone()).is_empty());
    let expected = json!({"generation": 3, "mode": "enforce", "types": ["INSTANCE"],
        "defaults": {"VCPU": 40, "consumers": 25},
        "projects": {"d": {"parent": null, "limits": {"VCPU": 100}},
                     "p": {"parent": "d", "limits": {"VCPU": null}}},
        "updated_at": "2026-11-30T20:00:00Z"});
    assert_eq!(json!(limits), expected);

    limits.generation = 4;
    assert!(left(&limits, planned()).unwrap().is_empty());
}

#[test]
fn a_plan_for_other_limits_is_refused() {
    let found = changes(&stored(), &in_keystone());
    let later = Limits {
        generation: 4,
        ..stored()
    };
    let error = left(&later, found).unwrap_err().to_string();
    assert_eq!(
        error,
        "the limits have changed since the plan was written: their generation is 4, and the plan is for 3. Nothing was \
         changed; write a new plan"
    );
}

#[test]
fn wrong_lines_of_a_plan_are_refused() {
    let line = |project: Value, resource: &str, after: Value| {
        let line = json!({"generation": 3, "project": project, "resource": resource, "before": null, "after": after});
        Change::deserialize(line)
    };
    for (project, resource, after, is_right) in [
        (json!("p"), "VCPU", json!(4), true),
        (json!(null), "VCPU", json!("unlimited"), true),
        (json!("p"), "parent", json!("d"), true),
        (json!("p"), "parent", json!(null), true),
        (json!("p"), "VCPU", json!("many"), false),
        (json!("p"), "parent", json!(4), false),
        (json!("p"), "parent", json!(""), false),
        (json!(null), "parent", json!("d"), false),
    ] {
        let read = line(project, resource, after).unwrap();
        assert_eq!(read.flaw().is_none(), is_right, "{read:?}");
    }
    line(json!("p"), "VCPU", json!(-1)).unwrap_err();
    line(json!("p"), "VCPU", json!([4])).unwrap_err();
}

#[test]
fn usage_is_listed_with_the_limit() {
    let project = json!({"project_id": "p", "parent": "d", "resources": {
        "VCPU": {"used": 22, "limit": 20}, "consumers": {"used": 5, "limit": 20}}});
    let rows = || listed(vec![LimitedProject::deserialize(&project).unwrap()]);
    let expected = "\
PROJECT  RESOURCE     USE
p        VCPU       22/20
p        consumers   5/20
";
    assert_eq!(Format::Table.printed(rows()), expected);
    let expected = "\
project,resource,used,limit,parent
p,VCPU,22,20,d
p,consumers,5,20,d
";
    assert_eq!(Format::Csv.printed(rows()), expected);
}

#[test]
fn the_summary_has_the_mode_and_the_defaults() {
    let mut limits = stored();
    let expected = "\
mode        enforce: a write above a limit is refused
generation  3
updated at  2026-11-30T20:00:00Z
types       INSTANCE
projects    2, 1 of them with a parent

";
    assert_eq!(head(&limits), expected);
    limits.defaults.insert("MEMORY_MB".into(), None);
    let expected = "\
RESOURCE       LIMIT
DISK_GB        7 GiB
MEMORY_MB  unlimited
consumers         20
";
    assert_eq!(Format::Table.printed(defaults(&limits)), expected);

    let before = Limits::deserialize(json!({"generation": 0})).unwrap();
    let expected = "\
mode        report: a write above a limit is done and reported
generation  0
updated at  -
types       INSTANCE, unknown
projects    0

";
    assert_eq!(head(&before), expected);
    assert_eq!(before, Limits::default());
    Limits::deserialize(json!({"generation": 0, "limits": {}})).unwrap_err();
}

#[test]
fn parent_stays_while_it_has_children() {
    let mut limits: Limits<'static> = serde_json::from_value(json!({
        "generation": 1, "mode": "report", "types": [], "defaults": {},
        "projects": {
            "child": {"parent": "top", "limits": {"VCPU": 1}}, "gone": {"parent": null, "limits": {}},
            "top": {"parent": null, "limits": {}},
        },
    }))
    .unwrap();
    carry_out(&mut limits, &[]);
    let left: Vec<_> = limits.projects.keys().map(ToString::to_string).collect();
    assert_eq!(left, ["child", "top"]);
}
