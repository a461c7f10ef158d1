//! Alerts about nodes that crash or are drained, certificates, leader changes, and missing backups.

use std::time::Duration;

use placement_tests::binaries;
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host;
use rustix::process::Signal;
use uuid::Uuid;

use super::{Story, during, pause};

pub(super) const JOB: &str = "placementd-members";

const CERTIFICATES: [&str; 2] = ["PlacementCertificateEnds", "PlacementCertificateEndsSoon"];

/// Starts three nodes with certificates that are valid for a day.
pub(super) async fn set() -> Cluster {
    // The binary may have to be built first.
    binaries::rehearsal().unwrap();
    let config = format!("{STEADY_LEADER}[cluster]\nwait_ms = 1000\n");
    Cluster::start_secured(3, &config).await.unwrap()
}

pub(super) async fn play(story: Story<'_>, mut cluster: Cluster) {
    certificates(&story, &cluster).await;
    let leader = cluster.leader().await.unwrap();
    let provider = host::with_processors(&cluster.client_of(leader)).await;
    slow_follower(&story, &mut cluster, provider).await;
    leaders(&story, &mut cluster).await;
    losses(&story, &mut cluster, provider).await;
}

async fn certificates(story: &Story<'_>, cluster: &Cluster) {
    story.fires(&CERTIFICATES).await;
    let authority = cluster.options().authority.clone().unwrap();
    for id in cluster.ids() {
        authority.renew_node(id, 90).unwrap();
    }
    cluster.admin_of(2).drain().await.unwrap();
    story.ended(&CERTIFICATES).await;
    story.fires(&["PlacementNodeDrained"]).await;
    cluster.admin_of(2).undrain().await.unwrap();
    story.ended(&["PlacementNodeDrained"]).await;
}

async fn slow_follower(story: &Story<'_>, cluster: &mut Cluster, provider: Uuid) {
    let slow = cluster.followers().await.unwrap()[0];
    let client = cluster.client_of(cluster.leader().await.unwrap());
    // The process runs for a fifth of the time, while clients write.
    let pulse = async || {
        cluster.process(slow).signal(Signal::STOP);
        for _ in 0..4 {
            host::claim(&client, provider).await.unwrap();
            pause(200).await;
        }
        cluster.process(slow).signal(Signal::CONT);
        pause(200).await;
    };
    during(pulse, story.fires(&["PlacementFollowerSlow"])).await;
    cluster.process(slow).signal(Signal::CONT);
    story.ended(&["PlacementFollowerSlow"]).await;
}

async fn leaders(story: &Story<'_>, cluster: &mut Cluster) {
    let hand_over = async || {
        // There may be no leader at the moment.
        let _ = cluster.admin_of(1).transfer_leader(None).await;
        pause(300).await;
    };
    during(hand_over, story.fires(&["PlacementLeaderChanges"])).await;
    // The node runs the next version; the others do not.
    cluster.options_mut().binary = Some(binaries::rehearsal().unwrap());
    let restart = async || {
        cluster.kill_9(3);
        cluster.start_node(3).unwrap();
        cluster.wait_ready(3).await.unwrap();
        // Lets Prometheus scrape after each start.
        pause(2_500).await;
    };
    during(restart, story.fires(&["PlacementNodeRestarts"])).await;
    story
        .fires(&["PlacementVersionsDiffer", "PlacementNoBackups"])
        .await;
    let backups = cluster.directory().join("backups").display().to_string();
    let options = cluster.options_mut();
    options.binary = None;
    options.flags = vec!["--backup-directory".to_owned(), backups];
    cluster.kill_9(3);
    cluster.start_node(3).unwrap();
    cluster.wait_ready(3).await.unwrap();
    let all = [
        "PlacementLeaderChanges",
        "PlacementNodeRestarts",
        "PlacementVersionsDiffer",
        "PlacementNoBackups",
    ];
    story.ended(&all).await;
}

async fn losses(story: &Story<'_>, cluster: &mut Cluster, provider: Uuid) {
    let leader = cluster.leader().await.unwrap();
    let followers = cluster.followers().await.unwrap();
    let client = cluster.client_of(leader);
    cluster.kill_9(followers[0]);
    for _ in 0..150 {
        host::claim(&client, provider).await.unwrap();
    }
    let one = [
        "PlacementNodeDown",
        "PlacementCanLoseNone",
        "PlacementFollowerLags",
    ];
    story.fires(&one).await;
    cluster.kill_9(followers[1]);
    let majority = [
        "PlacementQuorumLost",
        "PlacementNodeNotReady",
        "PlacementUnavailable",
    ];
    let hasty = client.with_patience(Duration::ZERO);
    let asks = async || drop(host::claim(&hasty, provider).await);
    during(asks, story.fires(&majority)).await;
    for id in followers {
        cluster.start_node(id).unwrap();
    }
    story.ended(&one).await;
    story.ended(&majority).await;
}
