//! Claims: `POST /placementd/v1/claims`.

use placement_model::Command;
use placement_model::command::{
    ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReplaceAllocations,
};
use serde_json::{Value, json};

use crate::cloud::{Ask, Cloud, uuid};
use crate::explain::explained;

pub(crate) const CLAIMS: &str = "/placementd/v1/claims";
const REQUEST: &str = "req-00000000-0000-4000-8000-0000000000aa";

/// Hosts with these numbers, each with 8 processors.
pub(crate) async fn hosts(numbers: impl IntoIterator<Item = u64>) -> Cloud {
    let cloud = Cloud::new();
    for number in numbers {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    cloud
}

/// A new instance of project `p`.
fn new() -> Value {
    of("p", Value::Null)
}

fn of(project: &str, generation: Value) -> Value {
    json!({"project_id": project, "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": generation})
}

/// Processors of one host.
pub(crate) fn on(host: u64, amount: u64) -> Value {
    json!({"allocations": {uuid(host): {"resources": {"VCPU": amount}}}})
}

/// A claim of one new consumer with these choices.
pub(crate) fn one(consumer: u64, choices: impl IntoIterator<Item = Value>) -> Value {
    let choices: Vec<_> = choices
        .into_iter()
        .map(|taken| json!({uuid(consumer): taken}))
        .collect();
    json!({"consumers": {uuid(consumer): new()}, "choices": choices})
}

/// A claim in which these new consumers each want a candidate.
pub(crate) fn wanting(consumers: impl IntoIterator<Item = u64>, query: &str) -> Value {
    let consumers = consumers.into_iter().map(|one| (uuid(one), new()));
    let consumers: serde_json::Map<String, Value> = consumers.collect();
    json!({"consumers": consumers, "want": {"query": query}})
}

pub(crate) fn claim(cloud: &Cloud, body: &Value) -> Ask {
    cloud.post(CLAIMS, body.clone())
}

async fn claimed(cloud: &Cloud, body: &Value) -> Value {
    claim(cloud, body).expect(200).await.json()
}

/// The member of the error.
fn error<'a>(answer: &'a Value, member: &str) -> &'a Value {
    &answer["errors"][0][member]
}

pub(crate) async fn refused(cloud: &Cloud, body: &Value, code: &str) -> Value {
    claim(cloud, body).expect(409).await.code(code).json()
}

/// The hosts of a consumer, and its processors on each.
pub(crate) async fn held(cloud: &Cloud, consumer: u64) -> Vec<(u64, u64)> {
    let found = cloud
        .read(&format!("/allocations/{}", uuid(consumer)))
        .await;
    let found = found["allocations"].as_object().unwrap().clone();
    let mut hosts: Vec<_> = (0..100)
        .filter_map(|host| {
            let amount = found.get(&uuid(host))?["resources"]["VCPU"].as_u64()?;
            Some((host, amount))
        })
        .collect();
    hosts.sort_unstable();
    hosts
}

pub(crate) async fn used(cloud: &Cloud, host: u64) -> u64 {
    let path = format!("/resource_providers/{}/usages", uuid(host));
    cloud.read(&path).await["usages"]["VCPU"].as_u64().unwrap()
}

#[tokio::test]
async fn first_choice_with_room_is_taken() {
    let cloud = hosts([1, 2]).await;
    cloud.claim(90, 1, "VCPU", 6).await.expect(204);
    let body = one(50, [on(1, 4), on(2, 4), on(2, 1)]);
    let answer = claim(&cloud, &body).expect(200).await;
    assert!(answer.header("placement-index").is_some());
    let expected = json!({
        "choice": 1,
        "allocations": {uuid(50): {uuid(2): {"resources": {"VCPU": 4}}}},
        "consumer_generations": {uuid(50): 1},
        "repeated": false,
    });
    assert_eq!(answer.json(), expected);
    assert_eq!(held(&cloud, 50).await, [(2, 4)]);
    assert_eq!((used(&cloud, 1).await, used(&cloud, 2).await), (6, 4));
    let consumer = cloud.read(&format!("/allocations/{}", uuid(50))).await;
    assert_eq!(consumer["project_id"], "p");
    assert_eq!(consumer["consumer_type"], "INSTANCE");
}

#[tokio::test]
async fn claim_of_several_consumers_is_whole() {
    let cloud = hosts([1, 2]).await;
    let both = |first: Value, second: Value| {
        json!({
            "consumers": {uuid(50): new(), uuid(51): new()},
            "choices": [{uuid(51): second, uuid(50): first}],
        })
    };
    let answer = refused(&cloud, &both(on(1, 5), on(1, 4)), "placement.claim.no_room").await;
    assert_eq!(error(&answer, "reasons")[0]["choice"], 0);
    assert!(held(&cloud, 50).await.is_empty());
    // A refusal creates no consumer.
    let consumers = cloud.read("/placementd/v1/consumers").await;
    assert_eq!(consumers["consumers"], json!([]));
    let answer = claimed(&cloud, &both(on(1, 5), on(2, 4))).await;
    assert_eq!(
        answer["consumer_generations"],
        json!({uuid(50): 1, uuid(51): 1})
    );
    assert_eq!(held(&cloud, 50).await, [(1, 5)]);
    assert_eq!(held(&cloud, 51).await, [(2, 4)]);
}

#[tokio::test]
async fn repeated_claim_changes_nothing() {
    let cloud = hosts([1, 2]).await;
    let body = one(50, [on(1, 4), on(2, 4)]);
    let first = claimed(&cloud, &body).await;
    let generation = cloud.generation(1).await;
    let mut expected = first.clone();
    expected["repeated"] = json!(true);
    assert_eq!(claimed(&cloud, &body).await, expected);
    assert_eq!(cloud.generation(1).await, generation);
    assert_eq!((used(&cloud, 1).await, used(&cloud, 2).await), (4, 0));
    // Another owner, other amounts, or a known generation is another claim.
    let mut other = body.clone();
    other["consumers"][uuid(50)]["user_id"] = json!("another");
    refused(&cloud, &other, "placement.concurrent_update").await;
    let other = one(50, [on(1, 3)]);
    refused(&cloud, &other, "placement.concurrent_update").await;
    let mut next = body.clone();
    next["consumers"][uuid(50)]["consumer_generation"] = json!(1);
    let answer = claimed(&cloud, &next).await;
    assert_eq!(answer["repeated"], false);
    assert_eq!(answer["consumer_generations"][uuid(50)], 2);
}

#[tokio::test]
async fn resize_releases_what_it_replaces() {
    let cloud = hosts([1]).await;
    claimed(&cloud, &one(50, [on(1, 6)])).await;
    let mut resize = one(50, [on(1, 8)]);
    resize["consumers"][uuid(50)]["consumer_generation"] = json!(1);
    claimed(&cloud, &resize).await;
    assert_eq!(used(&cloud, 1).await, 8);
}

#[tokio::test]
async fn refusal_has_the_reason_of_each_of_four_choices() {
    let cloud = hosts([1, 2]).await;
    cloud.claim(90, 1, "VCPU", 6).await.expect(204);
    let unknown = json!({"allocations": {uuid(7): {"resources": {"VCPU": 1}}}});
    let class = json!({"allocations": {uuid(2): {"resources": {"CUSTOM_NONE": 1}}}});
    let disk = json!({"allocations": {uuid(2): {"resources": {"DISK_GB": 1}}}});
    let body = one(50, [on(1, 4), class, disk, on(2, 9), unknown.clone()]);
    let answer = refused(&cloud, &body, "placement.claim.no_room").await;
    let reasons = error(&answer, "reasons").as_array().unwrap();
    let codes: Vec<_> = reasons.iter().map(|one| one["code"].as_str()).collect();
    let expected = ["capacity", "resource_class", "inventory", "capacity"];
    assert_eq!(codes, expected.map(Some), "{answer}");
    assert_eq!(
        reasons[0],
        json!({"choice": 0, "code": "capacity", "provider": uuid(1), "resource_class": "VCPU",
               "requested": 4, "free": 2})
    );
    let detail = error(&answer, "detail").as_str().unwrap();
    let text = format!(
        "resource provider {} has 2 VCPU free, but 4 are requested",
        uuid(1)
    );
    assert!(detail.contains(&text), "{detail}");
    let answer = refused(&cloud, &one(50, [unknown]), "placement.claim.no_room").await;
    let expected = json!([{"choice": 0, "code": "provider", "provider": uuid(7)}]);
    assert_eq!(error(&answer, "reasons"), &expected);
}

#[tokio::test]
async fn no_ceiling_is_passed() {
    let cloud = hosts([1, 2]).await;
    let limited = |consumer, amount, ceiling: Value| {
        let mut body = one(consumer, [on(1, amount), on(2, 1)]);
        body["ceilings"] = json!([{"projects": ["other"], "class": "VCPU", "limit": 0}, ceiling]);
        body
    };
    let vcpu = json!({"projects": ["p"], "types": ["INSTANCE"], "class": "VCPU", "limit": 5});
    claimed(&cloud, &limited(50, 4, vcpu.clone())).await;
    // The first choice exceeds the ceiling, the second fits.
    assert_eq!(
        claimed(&cloud, &limited(51, 2, vcpu.clone())).await["choice"],
        1
    );
    let answer = refused(
        &cloud,
        &limited(52, 2, vcpu.clone()),
        "placement.claim.over_ceiling",
    )
    .await;
    let numbers = ["ceiling", "used", "requested", "limit"].map(|name| error(&answer, name));
    assert_eq!(numbers.map(Value::as_u64), [1, 5, 2, 5].map(Some));
    let detail = error(&answer, "detail").as_str().unwrap();
    assert!(
        detail.contains("ceiling 1: 5 are used and 2 requested, but the limit is 5"),
        "{detail}"
    );
    let count = json!({"projects": ["p"], "count": true, "limit": 2});
    refused(
        &cloud,
        &limited(52, 1, count),
        "placement.claim.over_ceiling",
    )
    .await;
    // Consumers without a type do not count for this ceiling.
    let untyped = json!({"projects": ["p"], "types": [null], "count": true, "limit": 0});
    claimed(&cloud, &limited(52, 1, untyped)).await;
    let counts = cloud.claims();
    assert_eq!(counts.over_ceiling["VCPU"], 1);
    assert_eq!(counts.over_ceiling["consumers"], 1);
}

#[tokio::test]
async fn groups_hold() {
    let cloud = hosts([1, 2]).await;
    let grouped = |consumer, host, kind: &str, members: [u64; 3]| {
        let mut body = one(consumer, [on(host, 1)]);
        body[kind] = json!([{"members": members.map(uuid)}]);
        body
    };
    claimed(&cloud, &grouped(50, 1, "apart", [50, 51, 52])).await;
    let answer = refused(
        &cloud,
        &grouped(51, 1, "apart", [50, 51, 52]),
        "placement.claim.group",
    )
    .await;
    let found = ["group", "provider", "members"].map(|name| error(&answer, name));
    assert_eq!(found, [&json!(0), &json!(uuid(1)), &json!(2)]);
    claimed(&cloud, &grouped(51, 2, "apart", [50, 51, 52])).await;
    let answer = refused(
        &cloud,
        &grouped(53, 2, "together", [50, 53, 54]),
        "placement.claim.group",
    )
    .await;
    assert_eq!(error(&answer, "group"), 0);
    claimed(&cloud, &grouped(53, 1, "together", [50, 53, 54])).await;
    // Two members of a group per host.
    let mut two = grouped(55, 1, "apart", [50, 53, 55]);
    two["apart"][0]["most"] = json!(2);
    refused(&cloud, &two, "placement.claim.group").await;
    two["apart"][0]["most"] = json!(3);
    claimed(&cloud, &two).await;
}

/// The room of one host in ten, found by the node.
#[tokio::test]
async fn wanted_candidate_is_found_and_taken() {
    let cloud = hosts(1..=10).await;
    for host in 2..=10 {
        let consumer = 900 + host;
        cloud.claim(consumer, host, "VCPU", 8).await.expect(204);
    }
    let body = wanting([50], "resources=VCPU:4");
    let answer = claimed(&cloud, &body).await;
    assert_eq!(answer["choice"], 0);
    assert_eq!(
        answer["allocations"][uuid(50)],
        json!({uuid(1): {"resources": {"VCPU": 4}}})
    );
    // Sent again, it draws no other host, although this one is full by now.
    cloud.claim(90, 1, "VCPU", 4).await.expect(204);
    let again = claimed(&cloud, &body).await;
    assert_eq!(again["repeated"], true);
    assert_eq!(again["allocations"], answer["allocations"]);
    let body = wanting([51], "resources=VCPU:4");
    let answer = refused(&cloud, &body, "placement.claim.no_candidates").await;
    let detail = error(&answer, "detail").as_str().unwrap();
    assert!(detail.contains("has no candidates"), "{detail}");
    assert!(held(&cloud, 51).await.is_empty());
}

#[tokio::test]
async fn order_packs_or_spreads() {
    for (order, host) in [("pack", 2), ("spread", 3)] {
        let cloud = hosts(1..=3).await;
        cloud.claim(90, 1, "VCPU", 2).await.expect(204);
        cloud.claim(91, 2, "VCPU", 4).await.expect(204);
        let mut body = wanting([50], "resources=VCPU:4");
        body["want"]["order"] = json!(order);
        claimed(&cloud, &body).await;
        assert_eq!(held(&cloud, 50).await, [(host, 4)], "{order}");
    }
}

#[tokio::test]
async fn several_consumers_get_a_candidate_each() {
    let cloud = hosts(1..=3).await;
    let mut body = wanting(50..=55, "resources=VCPU:4");
    body["want"]["order"] = json!("pack");
    claimed(&cloud, &body).await;
    for host in 1..=3 {
        assert_eq!(used(&cloud, host).await, 8);
    }
    let answer = claimed(&cloud, &body).await;
    assert_eq!(answer["repeated"], true);
    // There is room for none of two: nothing is taken.
    cloud
        .delete(&format!("/allocations/{}", uuid(50)))
        .expect(204)
        .await;
    let answer = refused(
        &cloud,
        &wanting([60, 61], "resources=VCPU:4"),
        "placement.claim.no_candidates",
    )
    .await;
    let detail = error(&answer, "detail").as_str().unwrap();
    assert!(detail.contains("for only 1 of 2 consumers"), "{detail}");
    assert!(held(&cloud, 60).await.is_empty());
}

#[tokio::test]
async fn wanted_candidates_keep_the_groups() {
    let cloud = hosts(1..=8).await;
    let mut body = wanting(50..=57, "resources=VCPU:1");
    body["want"]["order"] = json!("pack");
    body["apart"] = json!([{"members": (50..=58).map(uuid).collect::<Vec<_>>()}]);
    claimed(&cloud, &body).await;
    for host in 1..=8 {
        assert_eq!(used(&cloud, host).await, 1);
    }
    // A ninth member finds no host; the answer names the group.
    let mut ninth = wanting([58], "resources=VCPU:1");
    ninth["apart"] = body["apart"].clone();
    refused(&cloud, &ninth, "placement.claim.group").await;
    // A member joins the host of the first.
    let mut friend = wanting([59], "resources=VCPU:1");
    friend["together"] = json!([{"members": [uuid(50), uuid(59)]}]);
    claimed(&cloud, &friend).await;
    assert_eq!(held(&cloud, 59).await, held(&cloud, 50).await);
}

/// A write of another client: consumers that take processors of hosts.
fn taking(taken: &[(u64, u64, u64)]) -> Command {
    let consumers = taken.iter().map(|(consumer, host, amount)| {
        let resources = [("VCPU".into(), *amount)].into();
        ConsumerAllocations {
            consumer: uuid(*consumer).into(),
            allocations: vec![ProviderAmounts {
                provider: uuid(*host).into(),
                resources,
            }],
            project: "p".into(),
            user: "u".into(),
            generation: ConsumerGeneration::Unchecked,
            consumer_type: ConsumerTypeUpdate::Set("INSTANCE".parse().unwrap()),
        }
    });
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: consumers.collect(),
    })
}

/// Two hosts, of which the second is full.
async fn with_room_on_the_first() -> Cloud {
    let cloud = hosts([1, 2]).await;
    cloud.claim(90, 2, "VCPU", 8).await.expect(204);
    cloud
}

/// The node proposes a choice from a state that another write has changed since.
#[tokio::test]
async fn node_searches_once_more_if_another_client_takes_the_room() {
    let cloud = with_room_on_the_first().await;
    let body = wanting([50], "resources=VCPU:8");
    // The other consumer moves to the first host.
    cloud.memory.before_next_write(taking(&[(90, 1, 8)]));
    claimed(&cloud, &body).await;
    assert_eq!(held(&cloud, 50).await, [(2, 8)]);

    let cloud = with_room_on_the_first().await;
    cloud.memory.before_next_write(taking(&[(91, 1, 8)]));
    let answer = refused(&cloud, &body, "placement.claim.no_room").await;
    assert_eq!(error(&answer, "reasons")[0]["provider"], uuid(1));
}

/// The first attempt of the claim is committed while the node searches for the second one.
#[tokio::test]
async fn repetition_is_recognized_in_the_state_of_the_conflict() {
    let cloud = with_room_on_the_first().await;
    let first = taking(&[(90, 1, 1), (50, 2, 8)]);
    cloud.memory.before_next_write(first);
    let answer = claimed(&cloud, &wanting([50], "resources=VCPU:8&limit=1")).await;
    assert_eq!(answer["repeated"], true);
    assert_eq!(held(&cloud, 50).await, [(2, 8)]);
    assert_eq!(cloud.claims().outcomes["repeated"], 1);
}

#[tokio::test]
async fn node_that_is_behind_proposes_what_the_cluster_accepts() {
    // The class is new, so the node's own state does not know it.
    let cloud = hosts([1]).await;
    cloud.memory.stay_behind();
    let class = cloud.ask("PUT", "/resource_classes/CUSTOM_GPU");
    class.expect(201).await;
    cloud.stock(1, "CUSTOM_GPU", 1).await;
    claimed(&cloud, &wanting([50], "resources=CUSTOM_GPU:1")).await;

    // The only host that the node knows has filled up since.
    let cloud = hosts([1]).await;
    cloud.memory.stay_behind();
    cloud.claim(90, 1, "VCPU", 8).await.expect(204);
    cloud.provider(2, None).await;
    cloud.stock(2, "VCPU", 8).await;
    claimed(&cloud, &wanting([50], "resources=VCPU:8")).await;
    assert_eq!(held(&cloud, 50).await, [(2, 8)]);

    // The consumer has left the host since, and another one took its place.
    let cloud = hosts([1, 2]).await;
    cloud.claim(50, 1, "VCPU", 8).await.expect(204);
    cloud.memory.stay_behind();
    cloud
        .delete(&format!("/allocations/{}", uuid(50)))
        .expect(204)
        .await;
    cloud.claim(90, 1, "VCPU", 8).await.expect(204);
    let answer = claimed(&cloud, &wanting([50], "resources=VCPU:8")).await;
    assert_eq!(answer["repeated"], false);
    assert_eq!(held(&cloud, 50).await, [(2, 8)]);

    // No state has a candidate.
    let body = wanting([51], "resources=VCPU:9");
    refused(&cloud, &body, "placement.claim.no_candidates").await;
}

#[tokio::test]
async fn choices_that_break_a_group_are_left_out_if_others_keep_it() {
    let cloud = hosts(1..=3).await;
    // The first hosts have room for one of the consumers only.
    for (consumer, host) in [(90, 1), (91, 2)] {
        cloud.claim(consumer, host, "VCPU", 4).await.expect(204);
    }
    let together = json!([{"members": [uuid(50), uuid(51)]}]);
    for order in ["pack", "spread", "any"] {
        let mut body = wanting([50, 51], "resources=VCPU:4");
        body["want"]["order"] = json!(order);
        body["together"] = together.clone();
        let answer = claimed(&cloud, &body).await;
        assert_eq!(answer["choice"], 0, "{order}: {answer}");
        assert_eq!(held(&cloud, 50).await, [(3, 4)]);
        for consumer in [50, 51] {
            let path = format!("/allocations/{}", uuid(consumer));
            cloud.delete(&path).expect(204).await;
        }
    }
}

#[tokio::test]
async fn hostile_claims_get_400() {
    let cloud = hosts([1]).await;
    let good = one(50, [on(1, 1)]);
    let with = |path: &str, value: Value| {
        let mut body = good.clone();
        *body.pointer_mut(path).unwrap() = value;
        body
    };
    let and = |member: &str, value: Value| {
        let mut body = good.clone();
        body[member] = value;
        body
    };
    let without = |member: &str| {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(member);
        body
    };
    let wanted = |query: &str| wanting([50], query);
    let consumer = |member: &str| format!("/consumers/{}/{member}", uuid(50));
    let taken = format!("/choices/0/{}/allocations", uuid(50));
    let ceiling = |changed: Value| {
        let mut ceiling = json!({"projects": ["p"], "class": "VCPU", "limit": 1});
        for (name, value) in changed.as_object().unwrap() {
            ceiling[name] = value.clone();
        }
        and("ceilings", json!([ceiling]))
    };
    let members = |count: u64| (0..count).map(uuid).collect::<Vec<_>>();
    let both = "give either 'choices' or 'want'";
    for (body, message) in [
        (json!([]), "[] is not of type 'object'"),
        (json!({}), "'consumers' is a required property"),
        (with("/consumers", json!({})), "{} should be non-empty"),
        (
            with("/consumers", json!({"x": new()})),
            "'x' does not match any of the regexes",
        ),
        (
            with(&consumer("project_id"), json!("")),
            "'' should be non-empty",
        ),
        (
            with(&consumer("user_id"), json!("u".repeat(256))),
            "is too long",
        ),
        (
            with(&consumer("consumer_type"), json!("instance")),
            "does not match",
        ),
        (
            with(&consumer("consumer_generation"), json!("1")),
            "is not of type 'integer', and not null",
        ),
        (
            json!({"consumers": {uuid(50): {"project_id": "p", "user_id": "u"}}, "choices": good["choices"]}),
            "'consumer_generation' is a required property",
        ),
        (without("choices"), both),
        (and("want", json!({"query": "resources=VCPU:1"})), both),
        (with("/choices", json!([])), "[] should be non-empty"),
        (with("/choices/0", json!({})), "{} should be non-empty"),
        (
            with("/choices/0", json!({uuid(51): on(1, 1)})),
            "a choice must name exactly the consumers of the claim, at /choices/0",
        ),
        (
            with(
                "/choices/0",
                json!({uuid(50): on(1, 1), uuid(51): on(1, 1)}),
            ),
            "exactly the consumers",
        ),
        (with(&taken, json!({})), "{} should be non-empty"),
        (
            with(&taken, json!({"1": {"resources": {"VCPU": 1}}})),
            "does not match any of the regexes",
        ),
        (
            with(&taken, json!({uuid(1): {"resources": {}}})),
            "{} should be non-empty",
        ),
        (
            with(&taken, json!({uuid(1): {"resources": {"VCPU": 0}}})),
            "0 is less than the minimum of 1",
        ),
        (
            with(&taken, json!({uuid(1): {"resources": {"vcpu": 1}}})),
            "does not match any of the regexes",
        ),
        (and("choice", json!(1)), "'choice' was unexpected"),
        (and("ceilings", json!({})), "{} is not of type 'array'"),
        (
            ceiling(json!({"count": true})),
            "a ceiling has either a 'class' or 'count': true",
        ),
        (
            ceiling(json!({"count": "yes"})),
            "'yes' is not of type 'boolean'",
        ),
        (
            ceiling(json!({"limit": -1})),
            "-1 is less than the minimum of 0",
        ),
        (
            ceiling(json!({"limit": 1.5})),
            "1.5 is not of type 'integer'",
        ),
        (ceiling(json!({"projects": []})), "[] should be non-empty"),
        (ceiling(json!({"types": []})), "[] should be non-empty"),
        (ceiling(json!({"types": ["instance"]})), "does not match"),
        (
            and(
                "ceilings",
                json!([{"projects": ["p"], "count": false, "limit": 1}]),
            ),
            "a ceiling has either a 'class' or 'count': true",
        ),
        (
            and("apart", json!([{"members": []}])),
            "[] should be non-empty",
        ),
        (and("apart", json!([{"members": ["x"]}])), "does not match"),
        (
            and("apart", json!([{"members": [uuid(50)], "most": 0}])),
            "0 is less than the minimum of 1",
        ),
        (
            and("together", json!([{"members": [uuid(50)], "most": 1}])),
            "'most' was unexpected",
        ),
        (wanted(""), "'' should be non-empty"),
        (wanted("resources=VCPU:0"), "requires amount >= 1"),
        (
            wanted("resources=CUSTOM_NONE:1"),
            "No such resource class CUSTOM_NONE",
        ),
        (
            wanted("resources=VCPU:1&required=CUSTOM_NONE"),
            "No such trait(s): CUSTOM_NONE",
        ),
        (
            wanted("resources=VCPU:1&randomize=true"),
            "'randomize' does not match any of the regexes",
        ),
        (wanted("limit=1"), "There must be at least one resources"),
        (
            json!({"consumers": good["consumers"], "want": {"query": "resources=VCPU:1", "order": "best"}}),
            "'best' is not one of ['pack', 'spread', 'any']",
        ),
    ] {
        claim(&cloud, &body).refused(400, message).await;
    }
    for (body, what) in [
        (
            with("/choices", json!(vec![good["choices"][0].clone(); 33])),
            "32 choices",
        ),
        (
            and(
                "ceilings",
                json!(vec![
                    json!({"projects": ["p"], "count": true, "limit": 1});
                    65
                ]),
            ),
            "64 ceilings",
        ),
        (
            ceiling(json!({"projects": vec!["p"; 101]})),
            "100 projects in a ceiling",
        ),
        (
            ceiling(json!({"types": vec!["T"; 101]})),
            "100 types in a ceiling",
        ),
        (
            and("apart", json!([{"members": members(1001)}])),
            "1000 members in a group",
        ),
        (
            and("together", json!(vec![json!({"members": [uuid(50)]}); 9])),
            "8 groups",
        ),
        (wanted(&"resources=VCPU:1&".repeat(2000)), "more than"),
    ] {
        let answer = claim(&cloud, &body).refused(400, what).await;
        answer.code("placement.limit_exceeded");
    }
    let plain = cloud.ask("POST", CLAIMS).raw(b"{}");
    plain.header("content-type", "text/plain").expect(415).await;
    cloud.get(CLAIMS).expect(405).await;
    let readers = ["placement_reader", "reader,member"];
    for roles in readers {
        let ask = claim(&cloud, &good).header("x-roles", roles);
        ask.refused(403, "placementd:claims:create").await;
    }
    assert_eq!(used(&cloud, 1).await, 0);
    claim(&cloud, &good)
        .header("x-roles", "service")
        .expect(200)
        .await;
}

/// The answer of `searches` about the request.
async fn found(cloud: &Cloud) -> Value {
    let path = format!("/placementd/v1/searches?request_id={REQUEST}");
    cloud.read(&path).await["searches"][0].clone()
}

#[tokio::test]
async fn refused_claim_is_found_by_its_request_id() {
    let cloud = hosts([1]).await;
    let send = |body: &Value| claim(&cloud, body).header("x-openstack-request-id", REQUEST);
    send(&one(50, [on(1, 1)])).expect(200).await;
    assert_eq!(
        found(&cloud).await,
        Value::Null,
        "an accepted choice is no search"
    );
    let mut body = one(51, [on(1, 2), on(1, 3)]);
    body["ceilings"] = json!([{"projects": ["p"], "count": true, "limit": 1}]);
    send(&body).expect(409).await;
    let search = found(&cloud).await;
    assert_eq!(search["claim"], "over_ceiling");
    assert_eq!(search["candidates"], 2);
    assert_eq!(search["query"], "");
    let refusal = search["refusal"].as_str().unwrap();
    assert!(refusal.contains("1 are used and 1 requested"), "{refusal}");
    send(&wanting([52], "resources=VCPU:9")).expect(409).await;
    let search = explained(&cloud, REQUEST).await;
    assert_eq!(search["claim"], "no_candidates");
    assert_eq!(search["query"], "resources=VCPU:9");
    assert_eq!(search["reason"], "room", "{search}");
    send(&wanting([53], "resources=VCPU:2")).expect(200).await;
    let search = found(&cloud).await;
    assert_eq!(
        (&search["claim"], &search["candidates"]),
        (&json!("claimed"), &json!(1))
    );
}

#[tokio::test]
async fn outcomes_and_choices_are_counted() {
    let cloud = hosts([1, 2]).await;
    let body = one(50, [on(1, 9), on(2, 4)]);
    claimed(&cloud, &body).await;
    claimed(&cloud, &body).await;
    refused(&cloud, &one(51, [on(1, 9)]), "placement.claim.no_room").await;
    refused(&cloud, &one(50, [on(1, 1)]), "placement.concurrent_update").await;
    claim(&cloud, &json!({})).expect(400).await;
    let counts = cloud.claims();
    let expected = [
        ("claimed", 1),
        ("conflict", 1),
        ("group", 0),
        ("no_candidates", 0),
        ("no_room", 1),
        ("over_ceiling", 0),
        ("over_limit", 0),
        ("repeated", 1),
    ];
    assert_eq!(counts.outcomes, expected.into());
    assert_eq!((counts.choices[0], counts.choices[1]), (0, 1));
}

#[tokio::test]
async fn what_if_answers_a_claim_and_changes_nothing() {
    let cloud = hosts([1]).await;
    let change = |body: Value| json!({"method": "POST", "path": CLAIMS, "body": body});
    let changes = [
        change(one(50, [on(1, 5)])),
        change(wanting([51], "resources=VCPU:3")),
        change(wanting([52], "resources=VCPU:1")),
    ];
    let ask = json!({"changes": changes});
    let answer = cloud.post("/placementd/v1/what-if", ask).expect(200).await;
    let found = answer.json();
    let statuses = [0, 1, 2].map(|index| found["changes"][index]["status"].as_u64());
    assert_eq!(statuses, [200, 200, 409].map(Some), "{found}");
    assert_eq!(used(&cloud, 1).await, 0);
    assert_eq!(cloud.claims().outcomes["claimed"], 0);
}
