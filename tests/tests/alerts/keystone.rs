//! Alerts about a Keystone that is down or slow, callers above their limits, and a log pipe that is
//! not read.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::ChildStderr;
use std::time::Duration;

use placement_client::{ApiRequest, Client};
use placement_tests::is_ready;
use placement_tests::keystone::stand_in::{Mood, StandIn};
use placement_tests::layout::{NodePlace, initial_members};
use placement_tests::node_process::{NodeProcess, StartOptions};
use placement_tests::ports::Ports;
use placement_tests::prometheus::Job;
use placement_tests::wait::until;
use rustix::process::Signal;
use tempfile::TempDir;
use uuid::Uuid;

use super::{Story, during, pause};

pub(super) const JOB: &str = "placementd-keystone";

pub(super) struct Stage {
    node: NodeProcess,
    place: NodePlace,
    unread: ChildStderr,
    keystone: StandIn,
    _directory: TempDir,
    _ports: Ports,
}

fn config(keystone: &StandIn, level: &str) -> String {
    let keystone = keystone.config();
    format!("[log]\nlevel = {level:?}\n[callers]\naddress_in_flight = 100\n{keystone}")
}

impl Stage {
    pub(super) async fn set() -> Self {
        let keystone = StandIn::start(&[]).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let ports = Ports::claim(1);
        let place = NodePlace::new(directory.path(), ports.first(), 1);
        let file = directory.path().join("placementd.toml");
        placement_tests::private::write(&file, &config(&keystone, "trace")).unwrap();
        let options = StartOptions {
            initial_members: initial_members(std::slice::from_ref(&place)),
            config: Some(file.clone()),
            ..StartOptions::default()
        };
        let (node, unread) = NodeProcess::start_piped(&place, &options).unwrap();
        until("readiness", async || is_ready(&place).await).await;
        let quiet = config(&keystone, "error");
        fs::write(&file, quiet).unwrap();
        Self {
            node,
            place,
            unread,
            keystone,
            _directory: directory,
            _ports: ports,
        }
    }

    pub(super) fn job(&self) -> Job {
        Job::for_targets(JOB, vec![self.place.admin()])
    }

    pub(super) async fn play(self, story: Story<'_>) {
        let client = Client::new([self.place.api()])
            .unwrap()
            .with_patience(Duration::ZERO);
        // Each request waits up to 10 s for a hung Keystone. More requests are then in flight than
        // the limits per Keystone and per address allow.
        let asks = async || {
            for _ in 0..15 {
                // Each request has a different token, so that no answer is cached.
                tokio::spawn(ask(client.clone(), Uuid::new_v4()));
            }
            pause(500).await;
        };
        for (mood, alerts) in [
            (Mood::Fails, &["PlacementKeystoneAway"][..]),
            (
                Mood::Hangs,
                &["PlacementKeystoneSlow", "PlacementCallersRefused"],
            ),
        ] {
            self.keystone.set(mood);
            during(&asks, story.fires(alerts)).await;
            self.keystone.set(Mood::Well);
            during(&asks, story.ended(alerts)).await;
        }

        let known = Uuid::new_v4();
        let crowds = async || {
            let asks = (0..20).map(|_| ask(client.clone(), known));
            futures::future::join_all(asks).await;
        };
        let crowd = ["PlacementLogLinesDropped"];
        during(crowds, story.fires(&crowd)).await;
        self.node.signal(Signal::HUP);
        let unread = self.unread;
        std::thread::spawn(move || BufReader::new(unread).lines().for_each(drop));
        story.ended(&crowd).await;
    }
}

async fn ask(client: Client, token: Uuid) {
    let client = client.with_token(&token.simple().to_string());
    let _ = client.request_once(ApiRequest::get("/traits")).await;
}
