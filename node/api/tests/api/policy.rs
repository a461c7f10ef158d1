use std::collections::BTreeMap;

use placement_api::http::{ApiSettings, CorsSettings, FitSection, Identity, WEB, read_policy};
use placement_policy::{PolicySettings, Target};
use serde_json::{Value, json};

use crate::cloud::{Answer, Cloud, uuid};
use crate::explain::explained;

#[tokio::test]
async fn tokens_and_roles_decide() {
    let cloud = Cloud::new();
    let path = "/resource_providers";
    let none = cloud.get(path).token(None).expect(401).await;
    assert_eq!(none.json()["code"], "401 Unauthorized");
    assert_eq!(none.json()["title"], "Unauthorized");
    assert_eq!(
        (none.header("openstack-api-version"), none.header("vary")),
        (None, None)
    );
    cloud.get("/").token(None).expect(200).await;
    cloud
        .get(path)
        .token(Some("admin:anything"))
        .expect(200)
        .await;
    let denied = cloud.get(path).token(Some("user")).send().await.refused(
        403,
        "Policy does not allow placement:resource_providers:list to be performed.",
    );
    assert_eq!(denied.header("vary"), None);
    assert_eq!(
        denied.header("openstack-api-version"),
        Some("placement 1.39")
    );
    cloud.get(path).token(Some("")).expect(403).await;
    cloud.get(path).header("x-roles", "").expect(403).await;
    cloud
        .get(path)
        .token(Some("user"))
        .header("x-roles", "reader, Service ")
        .expect(200)
        .await;
    let system = cloud
        .get(path)
        .header("openstack-system-scope", "all")
        .expect(403)
        .await;
    assert_ne!(
        system.json()["errors"][0]["detail"],
        denied.json()["errors"][0]["detail"]
    );
}

#[tokio::test]
async fn unknown_path_needs_no_role() {
    let cloud = Cloud::new();
    cloud
        .ask("PATCH", "/resource_providers")
        .token(Some("user"))
        .expect(405)
        .await;
    cloud.get("/nowhere").token(Some("user")).expect(404).await;
    cloud.get("/nowhere").token(None).expect(401).await;
}

/// Sends a request for every operation with a rule, with the roles of a service and of a plain
/// user. The operations come from the API's description, which is generated from the routes.
#[tokio::test]
async fn every_operation_is_closed_to_a_plain_user_and_open_to_the_service() {
    let description = placement_api::http::description();
    let mut guarded = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let Some(rule) = operation["x-placement-policy"].as_str() else {
                continue;
            };
            let versions = &operation["x-placement-microversions"];
            for version in [&versions["min"], &versions["max"]] {
                let status = async |roles| request_as(roles, method, path, version).await;
                let refused = status("member,reader").await.refused(403, rule);
                let shown = refused.json()["errors"][0]["detail"].clone();
                let expected = format!("Policy does not allow {rule} to be performed.");
                assert!(shown.as_str().unwrap().contains(&expected), "{shown}");
                let open = status("admin,service").await.status;
                assert!(open != 401 && open != 403, "{method} {path}: {open}");
                guarded += usize::from(rule.starts_with("placement:"));
            }
        }
    }
    assert_eq!(guarded, 2 * 35, "the reference's operations");
}

/// Settings with a policy file of these rules, for the time of `with`.
fn with_file<T>(rules: &str, with: impl FnOnce(PolicySettings) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.yaml");
    std::fs::write(&file, rules).unwrap();
    with(PolicySettings {
        file: Some(file),
        ..PolicySettings::default()
    })
}

/// A cloud with a policy file of these rules.
fn cloud_with(rules: &str) -> Cloud {
    with_file(rules, |policy| {
        Cloud::with(ApiSettings {
            policy,
            ..ApiSettings::default()
        })
    })
}

/// Whether a policy file of these rules lets a caller with this role see the pages.
fn shows_pages(rules: &str, role: &str) -> bool {
    let policy = with_file(rules, |settings| read_policy(&settings).unwrap());
    let caller = Identity {
        roles: vec![role.to_owned()],
        ..Identity::default()
    };
    let target = Target::for_caller(&caller);
    policy.authorize(WEB, &caller, target).is_ok()
}

#[tokio::test]
async fn placement_reader_reads_everything_and_changes_nothing() {
    let description = placement_api::http::description();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation["x-placement-policy"].is_null() {
                continue;
            }
            let version = &operation["x-placement-microversions"]["max"];
            let answer = request_as("placement_reader", method, path, version).await;
            let reads = method == "get" || path == "/placementd/v1/what-if";
            assert_eq!(answer.status == 403, !reads, "{method} {path}");
        }
    }
}

/// Each of this service's own routes that is not a `GET` has a rule without a reader role, except
/// for `what-if`, which writes nothing.
#[tokio::test]
async fn own_routes_that_write_have_no_reader() {
    let rules: BTreeMap<_, _> = placement_api::http::default_rules(true)
        .into_iter()
        .collect();
    let mut writing = Vec::new();
    for one in placement_api::http::guarded() {
        let is_own = one.path.starts_with("/placementd/");
        if !is_own || one.method == "GET" || one.path == "/placementd/v1/what-if" {
            continue;
        }
        assert_eq!(rules[one.rule], "rule:admin_or_service_api", "{}", one.path);
        writing.push(one.rule);
    }
    assert_eq!(
        writing,
        [
            "placementd:claims:create",
            "placementd:holds:update",
            "placementd:limits:update"
        ]
    );
    assert_eq!(rules["admin_or_service_api"], "role:admin or role:service");
}

/// This service's own routes that show content and need no query.
const OWN: [&str; 12] = [
    "capacity",
    "consumers",
    "trees/00000000-0000-0000-0000-000000000001",
    "explain",
    "fits",
    "searches",
    "events?follow=false",
    "history",
    "limits",
    "limits/usage",
    "refuge?provider=00000000-0000-0000-0000-000000000001",
    "what-if",
];

#[tokio::test]
async fn file_that_restricts_an_upstream_read_restricts_own_routes() {
    let rules = placement_api::http::default_rules(true).into_iter();
    let of_upstream: Vec<_> = rules
        .map(|(name, _)| name)
        .filter(|name| {
            let reads = [":list", ":show", ":usages"];
            name.starts_with("placement:") && reads.iter().any(|end| name.ends_with(end))
        })
        .collect();
    assert_eq!(of_upstream.len(), 15, "{of_upstream:?}");
    for rule in of_upstream {
        let rules = format!("\"{rule}\": \"role:cloud_admin\"\n");
        assert!(!shows_pages(&rules, "admin"), "in spite of {rule}");
        assert!(shows_pages(&rules, "placement_reader"), "{rule}");
        let cloud = cloud_with(&rules);
        for path in OWN {
            let path = format!("/placementd/v1/{path}");
            let ask = async |roles: &str| cloud.get(&path).header("x-roles", roles).send().await;
            let status = ask("admin").await.status;
            assert_eq!(status, 403, "{path} in spite of {rule}");
            for roles in ["admin,cloud_admin", "placement_reader"] {
                assert_ne!(ask(roles).await.status, 403, "{path} for {roles}");
            }
        }
    }
    // A rule of the file for the own route takes precedence.
    let rules = "\"placement:allocations:list\": \"!\"\n\"placementd:capacity\": \"role:admin\"\n";
    let cloud = cloud_with(rules);
    assert!(!shows_pages(rules, "admin"));
    assert!(shows_pages(
        &format!("{rules}\"{WEB}\": \"role:admin\"\n"),
        "admin"
    ));
    cloud.get("/placementd/v1/capacity").expect(200).await;
    cloud.get("/placementd/v1/consumers").expect(403).await;
}

#[tokio::test]
async fn levels_of_fits_may_be_shown_without_counts() {
    let large = FitSection {
        name: "large".to_owned(),
        query: "resources=VCPU:5".to_owned(),
    };
    let cloud = with_file("\"placementd:fits\": \"role:reader\"\n", |policy| {
        Cloud::with(ApiSettings {
            policy,
            fits: vec![large],
            ..ApiSettings::default()
        })
    });
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 8).await;
    let ask = async |roles: &str| {
        let asked = cloud.get("/placementd/v1/fits").token(Some("eve:project"));
        let answer = asked.header("x-roles", roles).expect(200).await.json();
        answer["fits"][0].clone()
    };
    assert_eq!(
        ask("reader").await,
        json!({"name": "large", "level": "few", "complete": true})
    );
    let counted = ask("reader,placement_reader").await;
    assert_eq!(counted["count"], 1, "{counted}");
}

#[tokio::test]
async fn project_rule_applies_to_the_project_in_the_query() {
    const OF_PROJECT: &str = "role:reader and project_id:%(project_id)s";
    let own = ["consumers", "events", "history", "searches"];
    let rules = own.map(|own| format!("\"placementd:{own}\": \"{OF_PROJECT}\"\n"));
    let cloud = cloud_with(&rules.concat());
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 8).await;
    claim_of(&cloud, "victim", 900).await;
    claim_of(&cloud, "eves-project", 901).await;
    for own in own {
        for (query, status) in [
            ("project=eves-project", 200),
            ("project=victim", 403),
            ("", 403),
            ("project=", 403),
            ("project=None", 403),
            ("project=eves-project&project=victim", 403),
        ] {
            let query = match own {
                "events" => format!("{query}&follow=false"),
                _ => query.to_owned(),
            };
            let ask = cloud
                .get(&format!("/placementd/v1/{own}?{query}"))
                .token(Some("eve:eves-project"));
            let answer = ask.header("x-roles", "reader").send().await;
            assert_eq!(answer.status, status, "{own}?{query}");
            if status == 200 {
                let text = answer.text();
                assert!(
                    !text.contains("victim") && !text.contains(&uuid(900)),
                    "{text}"
                );
                assert!(own == "searches" || text.contains(&uuid(901)), "{text}");
            }
        }
    }
}

/// The explanation of a full host names its consumers and their projects.
#[tokio::test]
async fn explanations_of_searches_need_the_rule_of_explain_too() {
    let cloud = cloud_with(
        "\"placementd:searches\": \"role:admin or role:reader and project_id:%(project_id)s\"\n\
         \"placement:allocation_candidates:list\": \"role:admin or role:reader\"\n",
    );
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 4).await;
    claim_of(&cloud, "victim", 900).await;
    let request_id = format!("req-{}", uuid(77));
    let ask = |roles: &'static str, path: &str| {
        let ask = cloud.get(path).token(Some("eve:eves-project"));
        ask.header("x-roles", roles)
    };
    let search = ask("reader", "/allocation_candidates?resources=VCPU:1");
    let search = search.header("x-openstack-request-id", &request_id);
    search.expect(200).await;
    let path = format!("/placementd/v1/searches?project=eves-project&request_id={request_id}");
    let kept = explained(&cloud, &request_id).await;
    let holder = &kept["explanation"]["nearest"][0]["holders"][0];
    assert_eq!(holder["project"], "victim", "{kept}");
    let shown = ask("reader", &path).expect(200).await;
    let search = &shown.json()["searches"][0];
    assert_eq!(search["reason"], "room", "{search}");
    assert_eq!(search.get("explanation"), None, "{search}");
    let shown = ask("reader,placement_reader", &path).expect(200).await;
    let search = &shown.json()["searches"][0];
    assert_eq!(search["explanation"], kept["explanation"]);
}

/// Claims 4 VCPUs of provider 1 for a consumer of a project.
async fn claim_of(cloud: &Cloud, project: &str, consumer: u64) {
    let body = json!({
        "allocations": {uuid(1): {"resources": {"VCPU": 4}}},
        "project_id": project, "user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE",
    });
    let path = format!("/allocations/{}", uuid(consumer));
    cloud.put(&path, body).expect(204).await;
}

#[tokio::test]
async fn rules_hold_for_operators_too() {
    let cloud = cloud_with("\"placement:traits:list\": \"!\"\n");
    let ask = |path| cloud.get(path).token(None).operator(Some("alice"));
    ask("/traits").refused(403, "placement:traits:list").await;
    ask("/resource_providers").expect(200).await;
}

/// A request with these roles that is otherwise as valid as possible without knowledge of the noun.
async fn request_as(roles: &str, method: &str, path: &str, version: &Value) -> Answer {
    let path = path
        .replace("{uuid}", &uuid(1))
        .replace("{consumer_uuid}", &uuid(1))
        .replace("{resource_class}", "VCPU")
        .replace("{name}", "CUSTOM_X");
    let query = match path.as_str() {
        "/usages" => "?project_id=p",
        "/placementd/v1/events" => "?follow=false",
        _ => "",
    };
    let cloud = Cloud::new();
    let ask = cloud
        .ask(&method.to_uppercase(), &format!("{path}{query}"))
        .version(version.as_str().unwrap())
        .header("x-roles", roles);
    match method {
        "put" | "post" => ask.body(json!({})).send().await,
        _ => ask.send().await,
    }
}

#[tokio::test]
async fn a_rule_can_ask_for_the_admin_project_and_for_a_service() {
    let cloud = cloud_with(
        "\"placement:traits:list\": \"role:admin and is_admin_project:True\"\n\
         \"placement:usages\": \"service_roles:service\"\n",
    );
    for (given, expected) in [(None, 200), (Some("True"), 200), (Some("False"), 403)] {
        let ask = cloud.get("/traits");
        let ask = match given {
            Some(given) => ask.header("x-is-admin-project", given),
            None => ask,
        };
        ask.expect(expected).await;
    }
    let usages = || cloud.get("/usages?project_id=p");
    usages().expect(403).await;
    let with_service = usages().header("x-service-roles", "service");
    with_service.expect(200).await;
}

/// A browser sends no token with a preflight request, so its 401 is replaced by the CORS headers.
#[tokio::test]
async fn a_preflight_request_of_a_known_origin_needs_no_token() {
    let cors = CorsSettings {
        allowed_origin: vec!["http://valid.example.com".to_owned()],
    };
    let cloud = Cloud::with(ApiSettings {
        cors,
        ..ApiSettings::default()
    });
    let permitted = cloud
        .ask("OPTIONS", "/traits")
        .token(None)
        .header("origin", "http://valid.example.com")
        .header("access-control-request-method", "PUT")
        .header("access-control-request-headers", "x-auth-token")
        .expect(200)
        .await;
    assert_eq!(
        permitted.header("access-control-allow-methods"),
        Some("PUT")
    );
    for of_another_status in ["www-authenticate", "retry-after", "allow", "content-type"] {
        assert_eq!(permitted.header(of_another_status), None);
    }
}
