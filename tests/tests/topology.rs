//! `placementctl topology` says which losses are survived, and what it says is right.

use placement_client::{Error, FailureDomain, Reads, Topology};
use placement_tests::cluster::Cluster;
use placement_tests::wait::until_ok;

/// Waits for a topology that fits.
async fn topology(cluster: &Cluster, through: u64, fits: impl Fn(&Topology) -> bool) -> Topology {
    until_ok("a topology", async || {
        let known = cluster.admin_of(through).topology().await.unwrap();
        if fits(&known) { Ok(known) } else { Err(known) }
    })
    .await
}

fn region(name: &str) -> FailureDomain {
    FailureDomain::Region {
        region: name.to_owned(),
    }
}

/// What is said of one loss: whether writes go on, and the reads of each site in the order of their names.
fn said(topology: &Topology, place: &FailureDomain) -> (bool, Vec<Reads>) {
    let loss = (topology.losses.iter().find(|loss| loss.place == *place)).unwrap();
    (
        loss.writes,
        loss.sites.iter().map(|site| site.reads).collect(),
    )
}

#[tokio::test]
async fn what_is_to_be_survived_is_kept_and_what_would_end_it_is_refused() {
    let config = "[cluster]\nsurvive = \"region\"\n";
    let mut cluster = Cluster::prepare(3, config).unwrap();
    for (id, region) in [(1, "north"), (2, "south"), (3, "west")] {
        cluster.start_node_at(id, region).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let spare = cluster.add_place();
    cluster.admit(spare.id).await.unwrap();
    cluster.start_node_at(spare.id, "north").unwrap();
    cluster.wait_ready(spare.id).await.unwrap();

    let measured = |known: &Topology| {
        let named = known.members.iter().all(|one| !one.region.is_empty());
        let between = |one, other| {
            (known.round_trips.iter()).any(|trip| (trip.from, trip.to) == (one, other))
        };
        named && known.members.len() == 4 && between(1, 2) && between(2, 1) && between(1, 4)
    };
    let known = topology(&cluster, 2, measured).await;
    assert!(known.survives.region && known.survives.node, "{known:#?}");
    assert_eq!(
        said(&known, &region("south")),
        (true, vec![Reads::All, Reads::None, Reads::All])
    );
    for site in &known.sites {
        assert!(site.linearizable_ms.unwrap() < 1_000.0, "{site:?}");
        assert!(site.write_ms.unwrap() < 2_000.0, "{site:?}");
    }

    // A fourth vote, and half of them are in the north.
    let admin = cluster.admin_of(3);
    for refused in [
        admin.promote_member(4, false).await,
        admin.demote_member(2, false).await,
        admin.remove_member(3, false).await,
    ] {
        let Err(Error::Refused(refused)) = refused else {
            panic!("{refused:?}");
        };
        let words = refused.to_string();
        assert!(words.contains("[cluster] survive"), "{words}");
        assert!(words.contains("region north"), "{words}");
    }
    cluster.ctl(&["topology"]);

    // With `--force` the warning comes afterwards.
    cluster.ctl(&["members", "demote", "--force", "3"]);
    let shown = cluster.placementctl(&["topology"]).unwrap();
    assert_eq!(shown.status.code(), Some(1), "{shown:?}");
    let words = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        words.contains("is to be survived ([cluster] survive), and is not"),
        "{words}"
    );
    assert!(words.contains("promote node 3"), "{words}");
    cluster.placementctl(&["members", "promote", "3"]).unwrap();

    // What it says is so: without the south writes go on, and the south reads nothing.
    cluster.kill_9(2);
    let known = topology(&cluster, 1, |known| {
        known.leader.is_some_and(|leader| leader != 2)
    })
    .await;
    assert!(!known.survives.node, "one is lost already: {known:#?}");
    assert_eq!(
        said(&known, &region("west")),
        (false, vec![Reads::Local, Reads::None, Reads::None])
    );
}
