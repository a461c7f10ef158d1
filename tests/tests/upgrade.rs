//! Two versions of the binary in one cluster. The newer one has a higher feature level, and
//! features that need it: a command, a rule, a field of a row, and a version of records.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use placement_client::{ApiRequest, Client, Error, NewProvider};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::wait::{PATIENCE, until_ok};
use serde_json::json;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Path of the trait that the newer version creates with its new command.
const NEW_COMMAND: &str = "/traits/CUSTOM_REHEARSAL";

/// The newest feature level of the older version.
const OLD: u32 = 1;

/// Flags of a node that does not agree to a higher level.
fn held_at(level: u32) -> Vec<String> {
    vec!["--cluster-level-max".to_owned(), level.to_string()]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    Old,
    /// The new version at the old level, which allows a rollback.
    NewHeld,
    New,
}

struct Story {
    cluster: Cluster,
    client: Client,
    host: Uuid,
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<BTreeSet<Uuid>>>,
}

impl Story {
    /// Starts three nodes of the old version, and claims through each of them.
    async fn begin() -> Self {
        let cluster = Cluster::start(3).await.unwrap();
        let client = cluster.client().with_patience(PATIENCE);
        let host = host::with_processors(&client).await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut urls: Vec<_> = (cluster.ids().iter())
            .map(|&id| cluster.place(id).api_url())
            .collect();
        let writers = (0..3)
            .map(|_| {
                urls.rotate_left(1);
                let client = Client::new(urls.clone()).unwrap().with_patience(PATIENCE);
                tokio::spawn(write(client, host, stop.clone()))
            })
            .collect();
        Self {
            cluster,
            client,
            host,
            stop,
            writers,
        }
    }

    /// Restarts a node as this version.
    async fn restart(&mut self, id: u64, version: Version) {
        self.cluster.stop_node(id).await.unwrap();
        self.run(version);
        self.cluster.start_node(id).unwrap();
        self.cluster.wait_ready(id).await.unwrap();
    }

    fn run(&mut self, version: Version) {
        let options = self.cluster.options_mut();
        options.binary = (version != Version::Old).then(|| binaries::rehearsal().unwrap());
        options.flags = match version {
            Version::NewHeld => held_at(OLD),
            Version::Old | Version::New => Vec::new(),
        };
    }

    /// Has the newer version on node `id` use its new command.
    async fn use_new_command(&self, id: u64) -> (StatusCode, String) {
        let client = self.cluster.client_of(id);
        until_ok("an answer under a leader", async || {
            let answer = client
                .request_once(ApiRequest::put(NEW_COMMAND))
                .await
                .map_err(|error| error.to_string())?;
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            match answer.status {
                StatusCode::SERVICE_UNAVAILABLE if !body.contains("feature level") => Err(body),
                status => Ok((status, body)),
            }
        })
        .await
    }

    /// Initial generation of a new provider, which follows the new version's rule.
    async fn first_generation(&self) -> u64 {
        let provider = NewProvider::named(&Uuid::new_v4().to_string()).uuid(Uuid::new_v4());
        let made = self.client.create_provider(&provider).await.unwrap();
        made.generation
    }

    /// Feature levels that the nodes have applied.
    async fn levels(&self) -> BTreeSet<Option<u32>> {
        let mut levels = BTreeSet::new();
        for id in self.cluster.ids() {
            let status = self.cluster.admin_of(id).status().await.unwrap();
            levels.insert(status.level);
        }
        levels
    }

    /// Asserts that a claim through a node leads back to its request, whichever version the node
    /// runs.
    async fn claim_is_traced(&self, id: u64) {
        let request = format!("req-{}", Uuid::new_v4());
        let client = self.cluster.client_of(id).with_patience(PATIENCE);
        let consumer = host::claim_for_request(&client, self.host, &request).await;
        for id in self.cluster.ids() {
            let client = self.cluster.client_of(id).with_patience(PATIENCE);
            assert_eq!(host::request_of(&client, consumer).await, json!(request));
        }
    }

    /// Stops the claims and asserts that every node has each acknowledged one.
    async fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut acknowledged = BTreeSet::new();
        for writer in std::mem::take(&mut self.writers) {
            let mine = writer.await.unwrap();
            assert!(!mine.is_empty(), "a writer has no acknowledged claim");
            acknowledged.extend(mine);
        }
        self.cluster.assert_equal_states().await;
        for id in self.cluster.ids() {
            let client = self.cluster.client_of(id);
            let held: BTreeSet<_> = client
                .provider_allocations(self.host)
                .await
                .unwrap()
                .allocations
                .keys()
                .copied()
                .collect();
            let lost: Vec<_> = acknowledged.difference(&held).collect();
            assert!(lost.is_empty(), "node {id} lost {lost:?}");
        }
    }
}

/// Claims until `stop` is set; returns the acknowledged claims.
async fn write(client: Client, host: Uuid, stop: Arc<AtomicBool>) -> BTreeSet<Uuid> {
    let mut acknowledged = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        match host::claim(&client, host).await {
            Ok(consumer) => drop(acknowledged.insert(consumer)),
            Err(Error::OutcomeUnknown { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_upgrade_can_be_rolled_back_until_the_level_rises() {
    let mut story = Story::begin().await;
    story.cluster.until_level(OLD).await;

    // Old and new version decide alike, whichever leads.
    for id in [1, 2] {
        story.restart(id, Version::NewHeld).await;
        assert_eq!(story.first_generation().await, 0);
        let (status, body) = story.use_new_command(id).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        let needed = format!("needs feature level {}", OLD + 1);
        assert!(body.contains(&needed), "{body}");
        story.claim_is_traced(id).await;
        story.cluster.assert_equal_states().await;
    }

    // A rollback, and an upgrade again.
    story.restart(1, Version::Old).await;
    story.restart(2, Version::Old).await;
    assert_eq!(story.first_generation().await, 0);
    for id in [1, 2, 3] {
        story.restart(id, Version::NewHeld).await;
    }
    assert_eq!(story.first_generation().await, 0);

    // The level does not rise as long as one node does not agree to it.
    for id in [1, 2] {
        story.restart(id, Version::New).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(story.levels().await, BTreeSet::from([Some(OLD)]));
    story.restart(3, Version::Old).await;

    // Once the last node agrees, the level rises and enables the new features.
    story.restart(3, Version::New).await;
    story.cluster.until_level(OLD + 1).await;
    story.claim_is_traced(1).await;
    assert_eq!(story.first_generation().await, 1);
    for (id, expected) in [(1, StatusCode::CREATED), (2, StatusCode::NO_CONTENT)] {
        let (status, body) = story.use_new_command(id).await;
        assert_eq!(status, expected, "{body}");
    }
    story.cluster.assert_equal_states().await;

    // The old version then refuses to start and logs the reason; the new version starts.
    story.cluster.stop_node(3).await.unwrap();
    story.run(Version::Old);
    story.cluster.start_node(3).unwrap();
    let ended = story.cluster.process(3).wait(PATIENCE).unwrap();
    assert_eq!(ended.code(), Some(1));
    let log = story.cluster.log(3, 5);
    assert!(log.contains("newer"), "{log}");
    story.run(Version::New);
    story.cluster.start_node(3).unwrap();
    story.cluster.wait_ready(3).await.unwrap();
    assert_eq!(story.levels().await, BTreeSet::from([Some(OLD + 1)]));
    story.end().await;
}

/// An unreachable member may have been rolled back to the older version, which cannot start once
/// the level has risen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn level_waits_for_absent_members_and_keeps_those_held_below_it() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    cluster.options_mut().binary = Some(binaries::rehearsal().unwrap());
    for id in cluster.ids() {
        let flags = if id == 2 { held_at(OLD) } else { Vec::new() };
        cluster.options_mut().flags = flags;
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    cluster.kill_9(3);
    // A member counts as reachable for a while after its last answer.
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.stop_node(2).await.unwrap();
    cluster.options_mut().flags.clear();
    cluster.start_node(2).unwrap();
    cluster.wait_ready(2).await.unwrap();
    // The leader checks every second whether the level can be raised.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let levels: Vec<_> = cluster
        .statuses()
        .await
        .into_iter()
        .map(|status| status.level)
        .collect();
    assert_eq!(levels, [Some(OLD); 2]);
    cluster.start_node(3).unwrap();
    cluster.until_level(OLD + 1).await;

    cluster.stop_node(3).await.unwrap();
    cluster.options_mut().flags = held_at(OLD);
    cluster.start_node(3).unwrap();
    cluster.wait_ready(3).await.unwrap();
    let client = cluster.client_of(3).with_patience(PATIENCE);
    let made = client.create_provider(&NewProvider::named("held")).await;
    assert_eq!(made.unwrap().generation, 1, "the rule of the new level");
    cluster.assert_equal_states().await;
}
