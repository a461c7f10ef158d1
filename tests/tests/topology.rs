//! `placementctl topology` reports which losses the cluster survives, and the report is correct.

use placement_client::{Error, FailureDomain, Reads, Topology};
use placement_tests::cluster::Cluster;
use placement_tests::wait::until_ok;

/// Waits for a topology that fits.
async fn topology(cluster: &Cluster, through: u64, fits: impl Fn(&Topology) -> bool) -> Topology {
    until_ok("a topology", async || {
        let known = cluster
            .admin_of(through)
            .topology()
            .await
            .map_err(|error| error.to_string())?;
        if fits(&known) {
            Ok(known)
        } else {
            Err(format!("{known:#?}"))
        }
    })
    .await
}

fn region(name: &str) -> FailureDomain {
    FailureDomain::Region {
        region: name.to_owned(),
    }
}

/// Whether the topology reports this for one loss: availability of writes, and the reads of each
/// site in the order of their names.
fn reports(topology: &Topology, place: &FailureDomain, writes: bool, reads: &[Reads]) -> bool {
    let loss = topology.losses.iter().find(|loss| loss.place == *place);
    loss.is_some_and(|loss| {
        let of_sites = loss.sites.iter().map(|site| site.reads);
        loss.writes == writes && of_sites.eq(reads.iter().copied())
    })
}

#[tokio::test]
async fn change_that_violates_the_required_survival_is_refused() {
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
    // A busy machine occasionally lengthens measured times or delays a node.
    let is_near = |known: &Topology| {
        known.sites.iter().all(|site| {
            let (read, write) = (site.linearizable_ms, site.write_ms);
            read.is_some_and(|ms| ms < 1_000.0) && write.is_some_and(|ms| ms < 2_000.0)
        })
    };
    topology(&cluster, 2, |known| {
        let south = [Reads::All, Reads::None, Reads::All];
        measured(known)
            && known.survives.region
            && known.survives.node
            && reports(known, &region("south"), true, &south)
            && is_near(known)
    })
    .await;

    // With a fourth vote half of the voters would be in the north.
    let admin = cluster.admin_of(3);
    for refused in [
        admin.promote_member(4, false).await,
        admin.demote_member(2, false).await,
        admin.remove_member(3, false).await,
    ] {
        let Err(Error::Refused(refused)) = refused else {
            panic!("{refused:?}");
        };
        let reason = refused.to_string();
        assert!(reason.contains("[cluster] survive"), "{reason}");
        assert!(reason.contains("region north"), "{reason}");
    }
    cluster.ctl_in_time(&["topology"]).await;

    // With `--force` the change is made, and a warning follows.
    (cluster.ctl_in_time(&["members", "demote", "--force", "3"])).await;
    let warning = ["`[cluster] survive = \"region\"` is not met"];
    cluster.until_shown(&["topology"], 1, &warning).await;
    cluster.ctl_in_time(&["members", "promote", "3"]).await;

    // The report is correct: without the south, writes continue, and the south serves no reads.
    cluster.kill_9(2);
    topology(&cluster, 1, |known| {
        let west = [Reads::Local, Reads::None, Reads::None];
        known.leader.is_some_and(|leader| leader != 2)
            && !known.survives.node
            && reports(known, &region("west"), false, &west)
    })
    .await;
}
