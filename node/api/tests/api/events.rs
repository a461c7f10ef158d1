//! The stream of changes.

use std::time::Duration;

use placement_api::http::ApiSettings;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cloud::{Cloud, Lines, uuid};
use crate::history::host;

fn path(query: &str) -> String {
    format!("/placementd/v1/events?{query}")
}

async fn lines(cloud: &Cloud, query: &str) -> Lines {
    cloud.get(&path(query)).lines().await
}

/// All lines of a stream that ends by itself.
async fn all(cloud: &Cloud, query: &str) -> Vec<Value> {
    let mut lines = lines(cloud, query).await;
    let mut all = Vec::new();
    while let Some(line) = lines.next().await {
        all.push(line);
    }
    all
}

#[tokio::test]
async fn entries_after_a_token_come_once_and_in_order() {
    let cloud = host().await;
    let all = all(&cloud, "after=1.2&follow=false").await;
    let indexes: Vec<_> = all
        .iter()
        .filter_map(|line| line["index"].as_str())
        .collect();
    assert_eq!(indexes, ["1.3", "1.4", "1.5", "1.6"]);
    assert_eq!(*all.last().unwrap(), json!({"progress": "1.6"}));
    assert_eq!(all.len(), 5);
}

#[tokio::test]
async fn progress_advances_past_filtered_entries() {
    let cloud = host().await;
    let all = all(&cloud, "after=1.2&follow=false&kind=inventory").await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["index"], "1.3");
    assert_eq!(all[1], json!({"progress": "1.6"}));
}

#[tokio::test]
async fn stream_without_token_begins_with_snapshot() {
    let cloud = host().await;
    cloud.claim(901, 1, "VCPU", 2).await.expect(204);
    let query = "kind=provider,inventory,consumer,allocation";
    let mut lines = lines(&cloud, query).await;
    let snapshot = lines.until("snapshot_end").await;
    assert_eq!(snapshot[0], json!({"snapshot": "1.7"}));
    assert_eq!(snapshot[snapshot.len() - 1], json!({"snapshot_end": "1.7"}));
    let kinds: Vec<_> = (snapshot.iter().filter_map(|line| line["kind"].as_str())).collect();
    assert_eq!(kinds, ["provider", "inventory", "consumer", "allocation"]);
    assert_eq!(
        snapshot[4],
        json!({
            "kind": "allocation", "key": {"consumer": uuid(901), "resource_provider": uuid(1)},
            "value": {"resources": {"VCPU": 2}},
        })
    );
    cloud
        .delete(&format!("/allocations/{}", uuid(901)))
        .expect(204)
        .await;
    let next = lines.until("progress").await;
    assert_eq!(next[0]["index"], "1.8");
    assert_eq!(next[1], json!({"progress": "1.8"}));
}

/// Some writes rewrite rows without a change, such as providers below a moved provider, or
/// inventories of a replaced set.
#[tokio::test]
async fn unchanged_writes_are_sent_on_request() {
    let cloud = host().await;
    cloud.provider(2, Some(1)).await;
    cloud.provider(3, None).await;
    let moved = json!({"name": "provider 1", "parent_provider_uuid": uuid(3)});
    let path = format!("/resource_providers/{}", uuid(1));
    cloud.put(&path, moved).expect(200).await;
    let same = json!({"VCPU": {"total": 8}});
    for _ in 0..2 {
        let generation = cloud.generation(1).await;
        let body = json!({"resource_provider_generation": generation, "inventories": same});
        cloud
            .put(&format!("{path}/inventories"), body)
            .expect(200)
            .await;
    }
    let query = "after=1.8&follow=false&kind=provider,inventory";
    let changed = all(&cloud, query).await;
    let written = all(&cloud, &format!("{query}&rewritten=true")).await;
    let kinds = |lines: &[Value]| -> Vec<String> {
        let changes = lines.iter().filter_map(|line| line["changes"].as_array());
        let kinds = changes.flatten().map(|change| {
            let is_same = change["before"] == change["after"];
            let kind = change["kind"].as_str().unwrap();
            format!("{kind}{}", if is_same { " again" } else { "" })
        });
        kinds.collect()
    };
    assert_eq!(kinds(&changed).last().unwrap(), "provider");
    assert!(!kinds(&changed).iter().any(|kind| kind.ends_with("again")));
    let [first, below, ..] = &written[0]["changes"].as_array().unwrap()[..] else {
        panic!("{written:?}");
    };
    assert_eq!(
        [&first["key"]["uuid"], &below["key"]["uuid"]],
        [&uuid(1), &uuid(2)]
    );
    let last = kinds(&written);
    assert_eq!(last[1], "provider again");
    assert_eq!(last[last.len() - 2..], ["inventory again", "provider"]);
}

/// A client that applies every line has the current state.
#[tokio::test]
async fn snapshot_and_changes_make_the_state() {
    let cloud = host().await;
    let mut lines = lines(&cloud, "").await;
    let mut mirror = std::collections::BTreeMap::new();
    for line in lines.until("snapshot_end").await {
        if line["kind"].is_string() {
            let key = (line["kind"].to_string(), line["key"].to_string());
            mirror.insert(key, line["value"].clone());
        }
    }
    for number in 2..40 {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", number).await;
        cloud
            .claim(900 + number, number, "VCPU", 1)
            .await
            .expect(204);
        if number % 3 == 0 {
            let freed = format!("/allocations/{}", uuid(900 + number));
            cloud.delete(&freed).expect(204).await;
        }
    }
    let newest = cloud.get("/traits").expect(200).await;
    let newest = newest.header("placement-index").unwrap().to_owned();
    loop {
        let line = lines.next().await.unwrap();
        if line["progress"] == newest {
            break;
        }
        for change in line["changes"].as_array().into_iter().flatten() {
            let key = (change["kind"].to_string(), change["key"].to_string());
            let before = match change["after"].clone() {
                Value::Null => mirror.remove(&key),
                after => mirror.insert(key, after),
            };
            assert_eq!(before.unwrap_or_default(), change["before"], "{change}");
        }
    }
    let now = all(&cloud, "follow=false").await;
    let now = now.iter().filter(|line| line["kind"].is_string());
    let now = now.map(|line| {
        let key = (line["kind"].to_string(), line["key"].to_string());
        (key, line["value"].clone())
    });
    assert_eq!(mirror, now.collect());
}

#[tokio::test(start_paused = true)]
async fn quiet_stream_reports_progress_and_ends_after_five_minutes() {
    let cloud = host().await;
    let begun = Instant::now();
    let mut lines = lines(&cloud, "after=1.6").await;
    for beat in 1..=5 {
        assert_eq!(lines.next().await, Some(json!({"progress": "1.6"})));
        let elapsed = begun.elapsed();
        let due = beat * Duration::from_secs(5);
        assert!(
            elapsed >= due && elapsed < due + Duration::from_secs(1),
            "{elapsed:?}"
        );
    }
    let end = lines.until("end").await;
    assert_eq!(
        end[end.len() - 1],
        json!({"end": "lifetime", "next": "1.6"})
    );
    assert!(begun.elapsed() < Duration::from_secs(301));
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn stream_ends_when_its_node_shuts_down() {
    let cloud = host().await;
    let mut lines = lines(&cloud, "after=1.6").await;
    cloud.memory.leave();
    assert_eq!(
        lines.next().await,
        Some(json!({"end": "drain", "next": "1.6"}))
    );
    assert_eq!(lines.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn client_that_takes_nothing_is_too_slow() {
    let cloud = host().await;
    let mut lines = lines(&cloud, "after=1.2").await;
    let mut write = 0;
    for _ in 0..4 {
        write += 1;
        cloud.provider(100 + write, None).await;
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(60)).await;
    let end = lines.until("end").await;
    let (end, sent) = end.split_last().unwrap();
    assert_eq!(end["end"], "slow");
    // The client can resume after the last line that it received.
    let progress = sent.last().unwrap()["progress"].clone();
    assert_eq!(end["next"], progress);
}

/// A client may be so slow that the node drops the entries that it needs next.
#[tokio::test]
async fn stream_ends_with_gone_when_its_position_expires() {
    let cloud = host().await;
    let mut lines = lines(&cloud, "after=1.5").await;
    let before = lines.until("progress").await;
    let forget = async {
        for number in 2..1000 {
            cloud.provider(number, None).await;
            cloud.memory.keep_after(5 + number);
            // The stream may have been faster; try again.
            sleep(Duration::from_millis(1)).await;
        }
    };
    let sent = tokio::select! {
        sent = lines.until("end") => sent,
        () = forget => panic!("the stream does not end"),
    };
    assert_eq!(lines.next().await, None);
    let (end, sent) = sent.split_last().unwrap();
    let last = before.iter().chain(sent).next_back().unwrap();
    assert_eq!(*end, json!({"end": "gone", "next": last["progress"]}));
    // A client that resumes from there gets 410, or a snapshot if it asks for one.
    let after = format!("after={}", last["progress"].as_str().unwrap());
    let gone = cloud.get(&path(&after)).refused(410, "not kept").await;
    gone.code("placement.events.gone");
    let again = all(&cloud, &(after + "&or_snapshot=true&follow=false")).await;
    assert!(again[0]["reset"].is_string(), "{}", again[0]);
}

#[tokio::test]
async fn expired_token_is_gone_or_restarts_with_snapshot() {
    let cloud = host().await;
    cloud.memory.keep_after(4);
    let gone = cloud.get(&path("after=1.3")).refused(410, "1.3").await;
    let gone = gone.code("placement.events.gone").json();
    assert_eq!(gone["errors"][0]["oldest"], "1.4");
    let from_oldest = all(&cloud, "after=1.4&follow=false").await;
    assert_eq!(from_oldest.len(), 3);
    let again = all(
        &cloud,
        "after=1.3&or_snapshot=true&follow=false&kind=provider",
    )
    .await;
    let provider = json!({
        "uuid": uuid(1), "name": "provider 1", "generation": 3, "parent_provider_uuid": null,
    });
    assert_eq!(
        again,
        [
            json!({"reset": "1.6"}),
            json!({"snapshot": "1.6"}),
            json!({"kind": "provider", "key": {"uuid": uuid(1)}, "value": provider}),
            json!({"snapshot_end": "1.6"}),
        ]
    );
}

#[tokio::test]
async fn unknown_token_is_refused() {
    let cloud = host().await;
    cloud.get(&path("after=7.1")).expect(412).await;
    cloud.get(&path("after=1.99")).expect(503).await;
    for (query, says) in [
        ("after=cow", "after"),
        ("follow=maybe", "maybe"),
        ("after=1.1&after=1.2", "once"),
        ("kind=provider,cow", "cow"),
        ("kind=", "kind"),
    ] {
        cloud.get(&path(query)).refused(400, says).await;
    }
    let header = cloud.get(&path("")).header("last-event-id", "cow");
    header.refused(400, "Last-Event-ID").await;
}

#[tokio::test]
async fn last_event_id_resumes_a_stream() {
    let cloud = host().await;
    let ask = |query: &str| {
        cloud
            .get(&path(query))
            .header("accept", "text/event-stream")
    };
    let answer = ask("after=1.4&follow=false&kind=allocation")
        .expect(200)
        .await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = answer.text();
    let events: Vec<_> = text.split_terminator("\n\n").collect();
    assert_eq!(events.len(), 3, "{text}");
    assert!(
        events[0].starts_with("id: 1.5\ndata: {\"index\":\"1.5\""),
        "{text}"
    );
    assert_eq!(events[2], "id: 1.6\ndata: {\"progress\":\"1.6\"}");
    let again = ask("after=1.4&follow=false").header("last-event-id", "1.6");
    assert_eq!(
        again.expect(200).await.text(),
        "id: 1.6\ndata: {\"progress\":\"1.6\"}\n\n"
    );
    // A snapshot that was not read to its end starts again.
    let snapshot = ask("follow=false&kind=provider").expect(200).await.text();
    let ids: Vec<_> = snapshot
        .lines()
        .filter(|line| line.starts_with("id: "))
        .collect();
    assert_eq!(ids, ["id: 1.6"]);
    assert!(
        snapshot.ends_with("id: 1.6\ndata: {\"snapshot_end\":\"1.6\"}\n\n"),
        "{snapshot}"
    );
}

#[tokio::test]
async fn one_user_gets_at_most_half_of_the_streams() {
    let mut settings = ApiSettings::default();
    settings.public.trust_proxy_headers = true;
    let cloud = Cloud::with(settings);
    let mut open = Vec::new();
    for _ in 0..256 {
        open.push(lines(&cloud, "kind=trait").await);
    }
    let refused = cloud
        .get(&path("kind=trait"))
        .refused(503, "no more streams of events for this user")
        .await;
    refused.code("placement.unavailable.busy");
    // Other requests do not count as streams.
    cloud.get("/traits").expect(200).await;
    let other = cloud.get(&path("kind=trait&follow=false"));
    other.of_another_caller().expect(200).await;
    // A client that disconnects frees its share.
    open.pop();
    cloud
        .get(&path("kind=trait&follow=false"))
        .expect(200)
        .await;
}
