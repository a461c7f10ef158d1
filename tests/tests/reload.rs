//! SIGHUP re-reads the reloadable settings and never ends a node.

use std::fs;
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Client};
use placement_tests::cluster::Cluster;
use placement_tests::wait::{PATIENCE, until};
use rustix::process::Signal;

struct Story {
    cluster: Cluster,
    reader: Client,
}

impl Story {
    async fn begin() -> Self {
        let cluster = Cluster::start_with(1, "").await.unwrap();
        let reader = cluster.client_of(1).with_token("somebody");
        Self { cluster, reader }
    }

    /// Rewrites the configuration file, sends SIGHUP, and waits until the log has these words.
    async fn reload(&mut self, config: &str, words: &str) {
        fs::write(self.cluster.directory().join("placementd.toml"), config).unwrap();
        let before = self.log().len();
        self.cluster.process(1).signal(Signal::HUP);
        let started = Instant::now();
        while !self.log()[before..].contains(words) {
            assert!(self.cluster.runs(1), "{}", self.log());
            assert!(
                started.elapsed() < PATIENCE,
                "no {words:?} in {}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.cluster.place(1).log).unwrap()
    }

    /// Status of the list of traits for a user without a role.
    async fn traits(&self) -> u16 {
        let request = ApiRequest::get("/traits");
        self.reader.request(request).await.unwrap().status.as_u16()
    }

    /// Whether a health check is logged, which happens at `debug` only.
    async fn probe_is_logged(&self) -> bool {
        let mark = uuid::Uuid::new_v4();
        let probe = format!("/livez?{mark}");
        // Lines are logged in order: once the later line appears, an earlier one would have.
        let later = format!("/nowhere/{mark}");
        for path in [&probe, &later] {
            self.reader.request(ApiRequest::get(path)).await.unwrap();
        }
        let started = Instant::now();
        while !self.log().contains(&format!("uri={later:?}")) {
            assert!(started.elapsed() < PATIENCE, "{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.log().contains(&format!("uri={probe:?}"))
    }
}

#[tokio::test]
async fn sighup_re_reads_the_policy_and_the_log_level() {
    let mut story = Story::begin().await;
    assert_eq!(story.traits().await, 403);
    assert!(!story.probe_is_logged().await);

    let policy = story.cluster.directory().join("policy.yaml");
    fs::write(&policy, "\"placement:traits:list\": \"@\"\n").unwrap();
    let open = format!("[policy]\nfile = {policy:?}\n");
    let debug = "[log]\nlevel = \"info,placement::access=debug\"\n";
    story
        .reload(&format!("{open}{debug}"), "SIGHUP: re-read the policy")
        .await;
    assert_eq!(story.traits().await, 200);
    until("a line", async || story.probe_is_logged().await).await;

    story.reload(&open, "SIGHUP: re-read the policy").await;
    assert!(!story.probe_is_logged().await);
    story.reload("", "SIGHUP: re-read the policy").await;
    assert_eq!(story.traits().await, 403);

    let other = "[api]\nmax_connections = 4711\n";
    story
        .reload(other, "settings=\"api.max_connections\"")
        .await;
    story.cluster.stop_node(1).await.unwrap();
}

#[tokio::test]
async fn unusable_settings_are_refused_and_the_old_ones_kept() {
    let mut story = Story::begin().await;
    let policy = story.cluster.directory().join("policy.yaml");
    fs::write(&policy, "\"placement:traits:list\": \"@\"\n").unwrap();
    let good = format!("[policy]\nfile = {policy:?}\n");
    story.reload(&good, "SIGHUP: re-read the policy").await;

    let broken = story.cluster.directory().join("broken.yaml");
    fs::write(&broken, "[no, mapping").unwrap();
    for (config, words) in [
        ("[policy\n".to_owned(), "SIGHUP: nothing is re-read"),
        (
            "[api]\nlistn = \"x:1\"\n".to_owned(),
            "did you mean `api.listen`",
        ),
        (
            format!("{good}[log]\nlevel = \"placement=loud\"\n"),
            "SIGHUP: the log level is unchanged",
        ),
        (
            format!("[policy]\nfile = {broken:?}\n"),
            "SIGHUP: the policy is unchanged",
        ),
    ] {
        story.reload(&config, words).await;
        assert_eq!(story.traits().await, 200, "{config}");
        assert!(!story.probe_is_logged().await, "{config}");
    }
    story.cluster.stop_node(1).await.unwrap();
}
