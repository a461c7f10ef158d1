//! Limits of projects: `/placementd/v1/limits`, and writes of allocations that exceed them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::claims::{CLAIMS, claim, held, hosts, on, one, refused, used, wanting};
use crate::cloud::{Ask, Cloud, uuid};
use crate::log::Log;

const LIMITS: &str = "/placementd/v1/limits";
const EXCEEDED: &str = "placement.project.over_limit";
const REQUEST: &str = "req-00000000-0000-4000-8000-0000000000bb";

/// Replaces the limits, whatever their generation is.
async fn limit(cloud: &Cloud, mut limits: Value) {
    limits["generation"] = cloud.read(LIMITS).await["generation"].clone();
    cloud.put(LIMITS, limits).expect(200).await;
}

/// Two hosts with 8 processors each, and a limit of the processors of project `p`.
async fn limited(mode: &str, processors: u64) -> Cloud {
    let cloud = hosts([1, 2]).await;
    let projects = json!({"p": {"limits": {"VCPU": processors}}});
    limit(&cloud, json!({"mode": mode, "projects": projects})).await;
    cloud
}

/// The allocations of an instance: processors of one host, or none.
fn instance(project: &str, generation: Value, processors: Option<(u64, u64)>) -> Value {
    let allocations = processors.map(|(host, amount)| {
        let resources = json!({"resources": {"VCPU": amount}});
        (uuid(host), resources)
    });
    json!({
        "allocations": Map::from_iter(allocations), "project_id": project, "user_id": "u",
        "consumer_generation": generation, "consumer_type": "INSTANCE",
    })
}

/// Gives a new instance processors of host 1.
fn boot(cloud: &Cloud, consumer: u64, project: &str, processors: u64) -> Ask {
    let body = instance(project, Value::Null, Some((1, processors)));
    cloud.put(&format!("/allocations/{}", uuid(consumer)), body)
}

/// The lines about exceeded limits.
fn lines(log: &Log) -> Vec<Value> {
    let text = log.text();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["event"] == "project-over-limit")
        .collect()
}

/// Numbers of exceeded limits of processors, by writes that were carried out and refused.
fn counts(cloud: &Cloud) -> (u64, u64) {
    let counts = cloud.exceeded_limits();
    let of = |counts: &BTreeMap<String, u64>| {
        assert_eq!((counts["consumers"], counts["other"]), (0, 0));
        counts.get("VCPU").copied().unwrap_or(0)
    };
    (of(&counts.reported), of(&counts.refused))
}

#[tokio::test]
async fn limits_are_put_as_they_are_read() {
    let cloud = Cloud::new();
    let mut expected = json!({
        "generation": 0, "mode": "report", "types": ["INSTANCE", null], "defaults": {},
        "projects": {}, "updated_at": null,
    });
    assert_eq!(cloud.read(LIMITS).await, expected);
    let written = cloud
        .put(LIMITS, json!({"generation": 0}))
        .expect(200)
        .await;
    assert_eq!(written.json(), json!({"generation": 1}));
    let mut read = cloud.read(LIMITS).await;
    assert!(read["updated_at"].take().is_string());
    expected["generation"] = json!(1);
    assert_eq!(read, expected);

    let mut limits = json!({
        "generation": 1, "mode": "enforce", "types": ["INSTANCE", "MIGRATION", null],
        "defaults": {"consumers": 20, "VCPU": 40, "CUSTOM_UNKNOWN": null},
        "projects": {
            "child": {"parent": "parent", "limits": {"VCPU": 100, "MEMORY_MB": null}},
            "parent": {"parent": null, "limits": {}},
        },
    });
    cloud.put(LIMITS, limits.clone()).expect(200).await;
    let read = cloud.read(LIMITS).await;
    limits["generation"] = json!(2);
    limits["updated_at"] = read["updated_at"].clone();
    assert_eq!(read, limits);
    // The answer can be sent back.
    cloud.put(LIMITS, read).expect(200).await;
    assert_eq!(cloud.read(LIMITS).await["generation"], 3);
}

#[tokio::test]
async fn limits_of_another_generation_are_a_conflict() {
    let cloud = limited("report", 4).await;
    for generation in [0, 2, -1] {
        let body = json!({"generation": generation, "mode": "enforce"});
        let says = format!("actual: 1, given: {generation}");
        let answer = cloud.put(LIMITS, body).refused(409, &says).await;
        answer.code("placement.concurrent_update");
    }
    let read = cloud.read(LIMITS).await;
    assert_eq!(
        (&read["generation"], &read["mode"]),
        (&json!(1), &json!("report"))
    );
}

#[tokio::test]
async fn reported_write_is_done_counted_and_logged() {
    let (log, _guard) = Log::start("info", true);
    let cloud = limited("report", 4).await;
    boot(&cloud, 50, "p", 3).expect(204).await;
    assert_eq!((counts(&cloud), lines(&log).len()), ((0, 0), 0));
    let sent = |ask: Ask| ask.header("x-openstack-request-id", REQUEST);
    sent(boot(&cloud, 51, "p", 2)).expect(204).await;
    assert_eq!(held(&cloud, 51).await, [(1, 2)]);
    let by_claim = one(52, [on(2, 1)]);
    let claimed = sent(claim(&cloud, &by_claim)).expect(200).await;
    assert_eq!(claimed.json()["repeated"], false);
    assert_eq!(counts(&cloud), (2, 0));
    let lines_of_both = lines(&log);
    for (line, (before, after)) in lines_of_both.iter().zip([(3, 5), (5, 6)]) {
        for (name, value) in [
            ("level", json!("WARN")),
            ("project", json!("p")),
            ("resource", json!("VCPU")),
            ("used", json!(before)),
            ("requested", json!(after)),
            ("limit", json!(4)),
            ("outcome", json!("reported")),
            ("request_id", json!(REQUEST)),
        ] {
            assert_eq!(line[name], value, "{name}: {line}");
        }
    }
    assert_eq!(lines_of_both.len(), 2);
    // A write that is sent again counts once.
    sent(boot(&cloud, 51, "p", 2)).expect(204).await;
    let again = sent(claim(&cloud, &by_claim)).expect(200).await;
    assert_eq!(again.json()["repeated"], true);
    assert_eq!((counts(&cloud), lines(&log).len()), ((2, 0), 2));
}

/// The refused write of [`REQUEST`] in the list of searches.
async fn found(cloud: &Cloud) -> Value {
    let path = format!("/placementd/v1/searches?request_id={REQUEST}");
    cloud.read(&path).await["searches"][0].clone()
}

#[tokio::test]
async fn enforced_limit_refuses_the_write() {
    const MESSAGE: &str = "Project p is at its limit of VCPU: 3 used, 5 after this write, limit 4.";
    let (log, _guard) = Log::start("info", true);
    let cloud = limited("enforce", 4).await;
    boot(&cloud, 50, "p", 3).expect(204).await;
    // Another project has no limit.
    let other = instance("q", Value::Null, Some((2, 5)));
    let path = format!("/allocations/{}", uuid(60));
    cloud.put(&path, other).expect(204).await;
    let sent = |ask: Ask| ask.header("x-openstack-request-id", REQUEST);
    let answer = sent(boot(&cloud, 51, "p", 2)).refused(409, MESSAGE).await;
    answer.code(EXCEEDED);
    let search = found(&cloud).await;
    let shown = ["claim", "refusal", "query"].map(|member| search[member].as_str());
    assert_eq!(shown, [Some("over_limit"), Some(MESSAGE), Some("")]);
    assert_eq!(search["candidates"], 1);
    let own = |host| instance("p", Value::Null, Some((host, 1)));
    let many = json!({uuid(51): own(1), uuid(52): own(2)});
    let answer = cloud.post("/allocations", many).refused(409, MESSAGE).await;
    answer.code(EXCEEDED);
    // The first choice has no room, and the second exceeds the limit.
    let answer = refused(&cloud, &one(51, [on(1, 8), on(2, 2)]), EXCEEDED).await;
    let detail = answer["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains(MESSAGE), "{detail}");
    assert_eq!((used(&cloud, 1).await, used(&cloud, 2).await), (3, 5));
    assert_eq!(cloud.claims().outcomes["over_limit"], 1);
    assert_eq!(counts(&cloud), (0, 3));
    let outcomes: Vec<_> = lines(&log)
        .iter()
        .map(|line| line["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["refused"; 3]);
    // A claim takes the choice that is within the limit.
    let answer = claim(&cloud, &one(51, [on(2, 2), on(2, 1)]));
    assert_eq!(answer.expect(200).await.json()["choice"], 1);
    limit(
        &cloud,
        json!({"defaults": {"consumers": 1}, "mode": "enforce"}),
    )
    .await;
    let full = "Project q is at its limit of consumers: 1 used, 2 after this write";
    let other = instance("q", Value::Null, Some((2, 1)));
    let answer = cloud.put(&format!("/allocations/{}", uuid(61)), other);
    answer.refused(409, full).await.code(EXCEEDED);
}

#[tokio::test]
async fn move_between_consumers_of_a_project_is_accepted() {
    let cloud = limited("enforce", 4).await;
    boot(&cloud, 50, "p", 4).expect(204).await;
    let shift = |from: u64, to: u64, host| {
        let given = instance("p", Value::Null, Some((host, 4)));
        let body = json!({uuid(from): instance("p", json!(1), None), uuid(to): given});
        cloud.post("/allocations", body)
    };
    shift(50, 51, 2).expect(204).await;
    assert_eq!(
        (held(&cloud, 50).await, held(&cloud, 51).await),
        (vec![], vec![(2, 4)])
    );
    boot(&cloud, 50, "p", 4)
        .refused(409, "4 used, 8 after this write")
        .await;
    // The usage is now above the limit. It can move and decrease, but not increase.
    let projects = json!({"p": {"limits": {"VCPU": 2}}});
    limit(&cloud, json!({"mode": "enforce", "projects": projects})).await;
    shift(51, 52, 1).expect(204).await;
    boot(&cloud, 50, "p", 1)
        .refused(409, "4 used, 5 after this write")
        .await;
    let path = format!("/allocations/{}", uuid(52));
    let smaller = instance("p", json!(1), Some((1, 3)));
    cloud.put(&path, smaller).expect(204).await;
    // A type that does not count.
    let mut migration = instance("p", Value::Null, Some((2, 4)));
    migration["consumer_type"] = json!("MIGRATION");
    cloud
        .put(&format!("/allocations/{}", uuid(53)), migration)
        .expect(204)
        .await;
    cloud.delete(&path).expect(204).await;
    assert_eq!(counts(&cloud), (0, 2));
}

#[tokio::test]
async fn limits_of_a_parent_apply_to_its_children_together() {
    let cloud = hosts([1, 2]).await;
    let projects = json!({
        "a": {"parent": "parent"}, "b": {"parent": "parent", "limits": {"VCPU": null}},
        "parent": {"limits": {"VCPU": 4}},
    });
    limit(&cloud, json!({"mode": "enforce", "projects": projects})).await;
    boot(&cloud, 50, "a", 3).expect(204).await;
    let says = "Project parent is at its limit of VCPU: 3 used, 5 after this write";
    let answer = boot(&cloud, 51, "b", 2).refused(409, says).await;
    answer.code(EXCEEDED);
    boot(&cloud, 51, "b", 1).expect(204).await;
    boot(&cloud, 52, "parent", 1).expect(409).await;
    // The usage of the parent stays the same.
    let body = json!({
        uuid(50): instance("a", json!(1), None),
        uuid(53): instance("b", Value::Null, Some((1, 3))),
    });
    cloud.post("/allocations", body).expect(204).await;
    let page = cloud.read(&format!("{LIMITS}/usage")).await;
    let used_of_parent = json!({"VCPU": {"used": 4, "limit": 4}});
    let parent = json!({"project_id": "parent", "parent": null, "resources": used_of_parent});
    assert_eq!(page["projects"], json!([parent]));
}

/// The projects of a page with their resources, and its `next`.
async fn usage(cloud: &Cloud, query: &str) -> (Vec<(String, Value)>, Option<String>) {
    let page = cloud.read(&format!("{LIMITS}/usage?{query}")).await;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let projects = page["projects"].as_array().unwrap().iter();
    let projects =
        projects.map(|one| (text(&one["project_id"]).unwrap(), one["resources"].clone()));
    (projects.collect(), text(&page["next"]))
}

#[tokio::test]
async fn usage_is_listed_with_limits() {
    let cloud = hosts([1, 2]).await;
    assert_eq!(usage(&cloud, "").await, (vec![], None));
    boot(&cloud, 50, "p", 3).expect(204).await;
    boot(&cloud, 51, "q", 5).expect(204).await;
    let free = instance("free", Value::Null, Some((2, 1)));
    let path = format!("/allocations/{}", uuid(52));
    cloud.put(&path, free).expect(204).await;
    let projects = json!({
        "free": {"limits": {"VCPU": null}}, "named": {"parent": "free", "limits": {"consumers": 1}},
    });
    limit(
        &cloud,
        json!({"defaults": {"VCPU": 4}, "projects": projects}),
    )
    .await;
    let of = |used: u64, limit: u64| json!({"used": used, "limit": limit});
    let all = [
        ("named", json!({"VCPU": of(0, 4), "consumers": of(0, 1)})),
        ("p", json!({"VCPU": of(3, 4)})),
        ("q", json!({"VCPU": of(5, 4)})),
    ];
    let all = all.map(|(project, resources)| (project.to_owned(), resources));
    assert_eq!(usage(&cloud, "over=false").await, (all.to_vec(), None));
    let [named, p, q] = &all;
    assert_eq!(usage(&cloud, "over=true").await, (vec![q.clone()], None));
    assert_eq!(usage(&cloud, "project=p").await, (vec![p.clone()], None));
    assert_eq!(usage(&cloud, "project=p&over=true").await, (vec![], None));
    assert_eq!(usage(&cloud, "project=free").await, (vec![], None));
    let page = cloud.read(&format!("{LIMITS}/usage?project=named")).await;
    assert_eq!(page["projects"][0]["parent"], "free");

    let (mut found, mut next) = usage(&cloud, "limit=1").await;
    assert_eq!(
        (&found[..], next.as_deref()),
        (&[named.clone()][..], Some("named"))
    );
    while let Some(marker) = next {
        let page = usage(&cloud, &format!("limit=1&marker={marker}")).await;
        found.extend(page.0);
        next = page.1;
    }
    assert_eq!(found, all);
    for (query, what) in [
        ("limit=0", "limit"),
        ("limit=1001", "from 1 to 1000"),
        ("over=maybe", "over"),
        ("marker=", "marker"),
        ("project=p&project=q", "only once"),
        ("colour=red", "colour"),
    ] {
        let path = format!("{LIMITS}/usage?{query}");
        cloud.get(&path).refused(400, what).await;
    }
    for path in [LIMITS.to_owned(), format!("{LIMITS}/usage")] {
        let earlier = cloud.get(&path).header("placement-as-of", "1.1");
        earlier
            .refused(400, "earlier limits are not available")
            .await;
    }
}

#[tokio::test]
async fn malformed_limits_are_refused() {
    let cloud = Cloud::new();
    let with = |member: &str, value: Value| json!({"generation": 0, member: value});
    let numbered = |prefix: &str, count: u64, value: Value| -> Value {
        let members = (0..count).map(|number| (format!("{prefix}{number}"), value.clone()));
        Value::Object(members.collect())
    };
    let types = (0..17).map(|number| json!(format!("TYPE_{number}")));
    let (long, longest) = ("X".repeat(256), "X".repeat(255));
    for (body, what) in [
        (json!({}), "'generation' is a required property"),
        (json!({"generation": null}), "integer"),
        (json!([]), "object"),
        (with("mode", json!("off")), "is not one of"),
        (with("types", json!([])), "non-empty"),
        (with("types", json!(["instance"])), "does not match"),
        (with("types", types.collect()), "more than 16 types"),
        (with("defaults", json!({"vcpu": 1})), "does not match"),
        (
            with("defaults", json!({"VCPU": -1})),
            "less than the minimum of 0",
        ),
        (with("defaults", json!({"VCPU": 1.5})), "integer"),
        (
            with("defaults", json!({"VCPU": u64::MAX})),
            "greater than the maximum",
        ),
        (with("defaults", json!({long.clone(): 1})), "is not a valid"),
        (
            with("defaults", numbered("CUSTOM_", 65, json!(1))),
            "at most 64 are allowed",
        ),
        (
            with("projects", numbered("p", 10_001, json!({}))),
            "at most 10000 are allowed",
        ),
        (with("projects", json!({"": {}})), "does not match"),
        (
            with("projects", json!({long.clone(): {}})),
            "does not match",
        ),
        (
            with("projects", json!({"a": {"limit": {}}})),
            "'limit' was unexpected",
        ),
        (with("projects", json!({"a": {"limits": []}})), "object"),
        (
            with("projects", json!({"a": {"limits": {"VCPU": "4"}}})),
            "integer",
        ),
        (with("projects", json!({"a": {"parent": ""}})), "non-empty"),
        (with("projects", json!({"a": {"parent": long}})), "too long"),
        (
            with("projects", json!({"a": {"parent": "b"}})),
            "the parent b of project a is not among the projects",
        ),
        (
            with("projects", json!({"a": {"parent": "a"}})),
            "has a parent itself",
        ),
        (
            with(
                "projects",
                json!({"a": {"parent": "b"}, "b": {"parent": "c"}, "c": {}}),
            ),
            "the parent b of project a has a parent itself",
        ),
        (with("updated_at", json!(7)), "string"),
        (with("colour", json!("red")), "'colour' was unexpected"),
    ] {
        cloud.put(LIMITS, body).refused(400, what).await;
    }
    for roles in ["placement_reader", "reader,member"] {
        cloud
            .put(LIMITS, json!({"generation": 0}))
            .header("x-roles", roles)
            .refused(403, "placementd:limits:update")
            .await;
    }
    assert_eq!(cloud.read(LIMITS).await["generation"], 0);
    let mut most = with("projects", numbered("p", 10_000, json!({})));
    most["defaults"] = numbered("CUSTOM_", 63, json!(0));
    most["defaults"][longest] = json!(9_007_199_254_740_991_u64);
    cloud.put(LIMITS, most).expect(200).await;
    let read = cloud.read(LIMITS).await;
    assert_eq!(read["projects"].as_object().unwrap().len(), 10_000);
}

#[tokio::test]
async fn what_if_changes_limits_in_a_copy() {
    let (log, _guard) = Log::start("info", true);
    let cloud = limited("report", 4).await;
    let server = instance("p", Value::Null, Some((1, 5)));
    let projects = json!({"p": {"limits": {"VCPU": 6}}});
    let limits = json!({"generation": 1, "mode": "enforce", "projects": projects});
    let changes = json!([
        {"method": "PUT", "path": format!("/allocations/{}", uuid(50)), "body": server},
        {"method": "POST", "path": CLAIMS, "body": one(51, [on(1, 1)])},
        {"method": "PUT", "path": LIMITS, "body": limits},
        {"method": "POST", "path": CLAIMS, "body": one(52, [on(1, 1)])},
    ]);
    let ask = json!({"changes": changes});
    let answer = cloud.post("/placementd/v1/what-if", ask).expect(200).await;
    let answer = answer.json();
    let statuses = [0, 1, 2, 3].map(|index| answer["changes"][index]["status"].as_u64());
    assert_eq!(statuses, [204, 200, 200, 409].map(Some), "{answer}");
    assert_eq!((used(&cloud, 1).await, counts(&cloud)), (0, (0, 0)));
    assert!(lines(&log).is_empty(), "{}", log.text());
    assert_eq!(cloud.read(LIMITS).await["mode"], "report");
}

#[tokio::test]
async fn further_refusals_of_a_request_are_only_counted() {
    let (log, _guard) = Log::start("info", true);
    let cloud = limited("enforce", 4).await;
    let sent = |ask: Ask| ask.header("x-openstack-request-id", REQUEST);
    // nova-scheduler tries one host after the other.
    for host in [1, 2, 1] {
        let body = instance("p", Value::Null, Some((host, 5)));
        let path = format!("/allocations/{}", uuid(50));
        sent(cloud.put(&path, body)).expect(409).await;
    }
    boot(&cloud, 51, "p", 6).expect(409).await;
    assert_eq!(counts(&cloud), (0, 4));
    assert_eq!(lines(&log).len(), 2);
    let searches = cloud.read("/placementd/v1/searches").await;
    assert_eq!(searches["searches"].as_array().unwrap().len(), 2);
    assert_eq!(cloud.searched(), [("found", 0), ("empty", 0), ("ended", 0)]);
}

#[tokio::test]
async fn questions_about_room_are_answered_without_limits() {
    let cloud = hosts([1, 2]).await;
    let path = "/placementd/v1/what-if?resources=VCPU:2";
    let room = cloud.read(path).await;
    limit(&cloud, json!({"mode": "enforce", "defaults": {"VCPU": 4}})).await;
    assert_eq!(cloud.read(path).await, room);
    // The candidates of both consumers are found; the claim of both exceeds the limit.
    let body = wanting([50, 51], "resources=VCPU:3");
    let answer = refused(&cloud, &body, EXCEEDED).await;
    let detail = answer["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("0 used, 6 after this write"), "{detail}");
}
