//! Claims: clients that race for the same hosts, and `placementctl claim`.

use std::collections::BTreeSet;

use placement_client::claims::{ClaimRequest, Claimant, Claimed, Order, Want};
use placement_client::{ApiRequest, Client, Error, Inventory};
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::wait::until_ok;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

/// A cluster with these hosts of `total` processors each.
async fn cloud(hosts: &[&str], total: u64) -> Cluster {
    let cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    for name in hosts {
        let host = create(&client, name).await;
        let offer = [("VCPU", Inventory::with_total(total))];
        client.replace_inventories(host, 0, offer).await.unwrap();
    }
    cluster
}

/// A claim of a candidate of this query for a new consumer.
fn wanting(consumer: Uuid, query: &str) -> ClaimRequest {
    let claimant = Claimant {
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        consumer_type: Some("INSTANCE".to_owned()),
        consumer_generation: None,
    };
    ClaimRequest {
        consumers: [(consumer.to_string(), claimant)].into(),
        want: Some(Want {
            query: query.to_owned(),
            order: Order::Pack,
        }),
        ..ClaimRequest::default()
    }
}

/// Claims until there is an answer, also while nodes fail.
async fn claim(client: Client, consumer: Uuid) -> (Uuid, Result<Claimed, Error>) {
    let client = client.repeating_unknown();
    let answer = client.claim(&wanting(consumer, "resources=VCPU:2")).await;
    (consumer, answer)
}

/// 200 clients want one of 50 places on two hosts, through all nodes. The leader is killed, and so
/// is the next one.
#[tokio::test]
async fn racing_clients_take_exactly_the_room() {
    let mut cluster = cloud(&["host-1", "host-2"], 50).await;
    let mut leader = cluster.leader().await.unwrap();
    let mut racing = JoinSet::new();
    for number in 0..200_u64 {
        let ids = (0..3).map(|node| (number + node) % 3 + 1);
        racing.spawn(claim(cluster.client_in_order(ids), Uuid::new_v4()));
    }
    let mut answers = vec![racing.join_next().await.unwrap().unwrap()];
    for _ in 0..2 {
        cluster.kill_9(leader);
        let next = cluster.leader_other_than(Some(leader)).await.unwrap();
        cluster.start_node(leader).unwrap();
        leader = next;
    }
    while let Some(answer) = racing.join_next().await {
        answers.push(answer.unwrap());
    }
    let mut won = BTreeSet::new();
    for (consumer, answer) in answers {
        match answer {
            Ok(_) => assert!(won.insert(consumer.to_string())),
            Err(Error::Refused(error)) => {
                let code = error.code.unwrap_or_default();
                assert!(code.starts_with("placement.claim.no_"), "{code}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(won.len(), 50);
    let held: Value = cluster
        .client()
        .fetch(ApiRequest::get("/placementd/v1/consumers"))
        .await
        .unwrap();
    let held = held["consumers"].as_array().unwrap().iter();
    let held: BTreeSet<_> = held
        .map(|one| one["uuid"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(held, won);
}

#[tokio::test]
async fn placementctl_claims_and_explains_a_refusal() {
    let cluster = cloud(&["host-1"], 4).await;
    let consumer = "5e24e200-0000-4000-8000-000000000001";
    let claim = [
        "claim",
        "VCPU:3",
        "--project=p",
        "--user=u",
        "--consumer",
        consumer,
    ];
    let shown = cluster.ctl(&claim);
    assert!(shown.contains(consumer) && shown.contains("host-1") && shown.contains("VCPU=3"));
    let again = cluster.ctl(&claim);
    assert!(
        again.starts_with("claimed before; nothing was changed\n"),
        "{again}"
    );
    let json: Value =
        serde_json::from_str(&cluster.ctl(&[&claim[..], &["-o", "json"]].concat())).unwrap();
    assert_eq!(json["consumer_generations"][consumer], 1);
    let alone = cluster.ctl(&["refuge", "host-1"]);
    let begin = "no: no room elsewhere for 1 of 1 consumer\n\nCONSUMER ";
    assert!(
        alone.starts_with(begin) && alone.contains(consumer),
        "{alone}"
    );
    let refused = cluster
        .placementctl(&["claim", "VCPU:3", "--project=p", "--user=u"])
        .unwrap();
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("has no candidates"), "{text}");

    // A claim of choices that exceeds a ceiling.
    let host = cluster
        .client()
        .fetch::<Value>(ApiRequest::get("/resource_providers"))
        .await;
    let host = host.unwrap()["resource_providers"][0]["uuid"].clone();
    let host = host.as_str().unwrap();
    let other = Uuid::new_v4().to_string();
    let body = json!({
        "consumers": {(&*other): {"project_id": "p", "user_id": "u", "consumer_generation": null}},
        "choices": [{(&*other): {"allocations": {host: {"resources": {"VCPU": 1}}}}}],
        "ceilings": [{"projects": ["p"], "class": "VCPU", "limit": 3}],
    });
    let id = format!("req-{}", Uuid::new_v4());
    let request = ApiRequest::post("/placementd/v1/claims").json(&body);
    let answer = cluster
        .client()
        .request(request.header("x-openstack-request-id", &id))
        .await;
    assert_eq!(answer.unwrap().status, 409);
    let explained = until_ok("the claim", async || {
        let text = cluster.ctl(&["explain", &id]);
        let says =
            "The claim would exceed ceiling 0: 3 are used and 1 requested, but the limit is 3.";
        text.starts_with(says).then_some(()).ok_or(text)
    });
    explained.await;
    let listed = cluster.ctl(&["searches", "--since", "1h", "-o", "csv"]);
    assert!(listed.contains("over_ceiling"), "{listed}");
}
