//! The status of a node, for operators.

use std::collections::BTreeMap;
use std::time::Duration;

use openraft::ServerState;
use placement_model::Cluster;
use placement_model::types::PartitionName;
use placement_wire::{MeasuredRoundTrip, Member, MemberRole, NodeRole, NodeStatus, SlowFollower};

use super::Admin;
use super::partitions::covers;
use crate::partitions::PartitionSection;
use crate::version::VERSION;
use placement_cluster::leadership::round_trips::too_long;
use placement_cluster::leadership::slow_followers::{paces, slow};
use placement_cluster::replica::{Replica, index};
use placement_cluster::start::Bootstrap;
use placement_cluster::topology::ms;
use placement_raft_store::disk_space::nearly_full;

/// Maximum time that an answer waits for the size of the data directory, which takes long if the
/// directory is large or the disk hangs.
const DISK_WAIT: Duration = Duration::from_secs(1);

/// The status of a node, including values that take a moment to compute.
pub(super) async fn full_status(admin: &Admin) -> NodeStatus {
    let bootstrap = &*admin.bootstrap;
    let not_ready = admin.checks.problem().await;
    let is_drained = bootstrap.slot.leaving.is_drained();
    let confirmed = not_ready.is_none() || is_drained && admin.checks.is_confirmed().await;
    let mut settings = (*admin.shared).clone();
    for (name, policy) in &admin.policies {
        let path = match name.as_str() {
            PartitionName::DEFAULT => "policy".to_owned(),
            name => format!("partitions.{name}.policy"),
        };
        settings.insert(path, format!("rules {}", policy.digest()));
    }
    let space = admin.metrics.disk(DISK_WAIT).await.map(|disk| disk.space);
    let free = space.and_then(|space| space.free_bytes);
    let room_min = bootstrap.config.disk.min_free_bytes;
    let running = bootstrap.slot.get();
    NodeStatus {
        ready: not_ready.is_none(),
        confirmed,
        not_ready,
        settings,
        routing_problem: (running.as_ref())
            .and_then(|running| routing_problem(admin, &running.replica.views.current().cluster)),
        last_backup: running
            .as_ref()
            .and_then(|running| running.kept.numbers().last),
        backup_problem: running.and_then(|running| running.kept.problem()),
        disk_used_bytes: space.map(|space| space.used_bytes),
        disk_free_bytes: free,
        disk_problem: free.and_then(|free| nearly_full(free, room_min)),
        requests: admin.metrics.http.by_minute(),
        certificate_ends: (admin.metrics.certificate_ends())
            .map(|(listener, end)| (listener.to_owned(), end))
            .collect(),
        peer_certificate_expired: (admin.metrics)
            .peer_certificate_expired(bootstrap.env.clock.now()),
        certificate_problem: (admin.metrics).certificate_problem(bootstrap.env.clock.now()),
        ..node_status(bootstrap)
    }
}

/// A setting that does not fit the partitions of the cluster, if there is one.
fn routing_problem(admin: &Admin, cluster: &Cluster) -> Option<String> {
    let prefix = &admin.prefix;
    let covering = cluster.partitions().find_map(|(_, row, _)| {
        let mut routes = row.routing.routes.iter();
        let route = routes.find(|route| covers(route, prefix))?.clone();
        Some((row.name.clone(), route))
    });
    if let Some((name, route)) = covering {
        return Some(format!(
            "[api] prefix {prefix} is below {route} of partition {name}: requests for either are \
            rejected; correct [api] prefix, or give the partition another prefix"
        ));
    }
    let unknown = |section: &&PartitionSection| cluster.partition_named(&section.name).is_none();
    let section = admin.sections.iter().find(unknown)?;
    Some(format!(
        "[[partitions]] names {name}, which the cluster does not have: `placementctl partitions \
        create {name}` creates it, or remove the table",
        name = section.name
    ))
}

/// The members that are being replaced, with their replacements.
fn replacements(cluster: &Cluster) -> BTreeMap<u64, u64> {
    let rows = cluster.default_partition().joins();
    let begun = rows.filter(|(_, row)| row.nonce.is_some());
    let replaced = begun.filter_map(|(by, row)| Some((by, row.replaces.as_ref()?)));
    replaced
        .filter(|(_, replaced)| !replaced.stays)
        .map(|(by, replaced)| (replaced.node, by))
        .collect()
}

/// Followers that are much slower than the fastest follower, if this node leads.
fn slow_followers(bootstrap: &Bootstrap, replica: &Replica) -> Vec<SlowFollower> {
    let paces = paces(replica, &bootstrap.peers);
    let (slow, fastest) = slow(&paces);
    let Some(fastest) = fastest else {
        return Vec::new();
    };
    let follower = |node: &u64| SlowFollower {
        node: *node,
        ms: ms(paces[node].acknowledges),
        round_trip_ms: ms(paces[node].round_trip),
        fastest,
        fastest_ms: ms(paces[&fastest].acknowledges),
    };
    slow.iter().map(follower).collect()
}

/// The status of a node, without values that take time to compute.
pub(crate) fn node_status(bootstrap: &Bootstrap) -> NodeStatus {
    let unformed = NodeStatus {
        node_id: bootstrap.config.node_id,
        level_max: bootstrap.peers.level().0,
        version: VERSION.to_owned(),
        makes_backups: bootstrap.config.backup.directory.is_some(),
        ..NodeStatus::default()
    };
    let Some(running) = bootstrap.slot.get() else {
        return unformed;
    };
    let replica = &running.replica;
    let raft = replica.raft_status();
    let applied = replica.views.current();
    let failure = replica.failure();
    let matched = |id: u64| match raft.replication.as_ref()? {
        _ if id == replica.me => raft.last_log_index,
        matched => index(*matched.get(&id)?),
    };
    let voters = replica.voters();
    let lost = bootstrap.peers.lost().borrow().clone();
    let replacements = replacements(&applied.cluster);
    let membership = raft.membership_config.membership();
    let members = (membership.nodes())
        .map(|(id, member)| Member {
            id: *id,
            name: member.name_of(*id).to_string(),
            role: if voters.contains(id) {
                MemberRole::Voter
            } else {
                MemberRole::Learner
            },
            peer: member.peer.clone(),
            api: member.api.trim_start_matches("http://").to_owned(),
            admin: member.admin.clone(),
            region: member.site.region.clone(),
            zone: member.site.zone.clone(),
            matched: matched(*id),
            unreachable: lost.get(id).cloned(),
            replaced_by: replacements.get(id).copied(),
        })
        .collect();
    NodeStatus {
        node_id: replica.me,
        cluster_id: Some(replica.identity.cluster.to_string()),
        role: match raft.state {
            _ if failure.is_some() => NodeRole::Shutdown,
            _ if replica.is_removed() => NodeRole::Removed,
            ServerState::Leader => NodeRole::Leader,
            ServerState::Follower => NodeRole::Follower,
            ServerState::Candidate => NodeRole::Candidate,
            ServerState::Learner => NodeRole::Learner,
            ServerState::Shutdown => NodeRole::Shutdown,
        },
        term: raft.current_term,
        leader: replica.leader_id(),
        last_log: raft.last_log_index,
        committed: index(raft.local_committed),
        applied: applied.index(),
        snapshot: index(raft.snapshot),
        purged: index(raft.purged),
        storage_failure: failure.map(|words| words.to_string()),
        digest: Some(applied.digest().to_string()),
        level: Some(applied.cluster.level().0),
        partitions: (applied.cluster.partitions())
            .map(|(_, row, _)| row.name.to_string())
            .collect(),
        members,
        round_trips: (bootstrap.peers.round_trips.all().into_iter())
            .map(|(node, way)| MeasuredRoundTrip {
                node,
                ms: ms(way.least),
                mean_ms: ms(way.mean),
            })
            .collect(),
        slow_followers: slow_followers(bootstrap, replica),
        round_trip_problem: too_long(replica, &bootstrap.peers.round_trips),
        clock_problem: running.clock_problem().map(|problem| problem.to_string()),
        ..unformed
    }
}
