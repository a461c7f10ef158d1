//! Starts this node as a member: opens its store, starts Raft on it, and then the tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use openraft::SnapshotPolicy;
use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::{Identity, Raft};
use tokio::sync::{OnceCell, mpsc};

use super::Bootstrap;
use crate::backlog::Backlog;
use crate::error::StartError;
use crate::kept_backups::KeptBackups;
use crate::leadership::{round_trips, watch};
use crate::members::{autopilot, removal, replacement};
use crate::replica::Replica;
use crate::running::Running;
use crate::settings::Settings;
use crate::upkeep::{backups, disk_watch, divergence, leases, mirror, room, snapshots, upgrade};
use crate::write::own_past;
use crate::write::proposals::Proposer;
use crate::write_ids::WriteIds;
use placement_peer::raft::network::{Limits, Networks};
use placement_peer::raft::snapshots::Sending;
use placement_raft_store::disk_space::SpaceCheck;

/// Minimum deadline of an append.
const APPEND_DEADLINE_MIN: Duration = Duration::from_secs(10);

/// Opens the store and starts Raft on it.
pub(super) async fn start(
    bootstrap: &Bootstrap,
    identity: Identity,
) -> Result<Arc<Running>, StartError> {
    let Bootstrap {
        env,
        config,
        peers,
        tasks,
        ..
    } = bootstrap;
    let mut options = env.storage.clone();
    options.dir = config.data_dir.clone();
    options.node = Some(config.node_id);
    options.cluster = Some(identity.cluster);
    let store = runtime::blocking(move || placement_raft_store::open(options)).await?;
    peers.join(store.identity.cluster);

    let room = SpaceCheck::new(config.data_dir.clone(), &store);
    let sending = Arc::new(Sending::new(
        store.drafts.clone(),
        room.clone(),
        config.raft.snapshot_bytes_per_s,
    ));
    let networks = Networks::new(peers.clone(), limits(config), sending.clone());
    let log_reader = store.log.reader();
    let raft_config = raft_config(config, &identity)?;
    let raft = Raft::new(
        config.node_id,
        Arc::new(raft_config),
        networks,
        store.log,
        store.machine,
    )
    .await
    .map_err(|error| StartError::Raft(error.to_string()))?;

    let replica = Arc::new(Replica::new(
        store.identity,
        raft,
        (store.views, store.ledger),
        store.health,
        config.clone(),
        env.clock.clone(),
    ));
    // The configuration cannot lower a level that the cluster has reached.
    peers.agree_to(config.cluster.level_max().max(replica.level()));
    let (proposals, proposed) = mpsc::unbounded_channel();
    let (reads, waiting) = mpsc::unbounded_channel();
    let running = Arc::new(Running {
        standards: env.standards.clone(),
        has_standards: AtomicBool::new(false),
        store_metrics: store.metrics,
        kept: KeptBackups::default(),
        room,
        snapshots: store.snapshots,
        drafts: store.drafts,
        sending,
        peers: peers.clone(),
        actions: bootstrap.actions.clone(),
        clock: env.clock.clone(),
        ids: Arc::new(WriteIds::new(replica.me, store.boot)),
        start: store.boot,
        is_latest_start: OnceCell::new(),
        backlog: Backlog::new("the leader", config),
        proposals,
        reads,
        read_metrics: bootstrap.read_metrics.clone(),
        replica,
    });
    let replica = &running.replica;
    let proposer = Proposer::new(running.clone(), tasks.clone());
    tasks.spawn_vital("proposing writes", proposer.run(proposed));
    tasks.spawn_vital("confirming reads", running.clone().confirm_reads(waiting));
    tasks.spawn(watch::quarantine_on_task_end(
        replica.clone(),
        tasks.clone(),
    ));
    tasks.spawn(own_past::watch(running.clone()));
    tasks.spawn_vital("watching who leads", watch::watch(replica.clone()));
    tasks.spawn(watch::quarantine_on_failure(replica.clone()));
    tasks.spawn(watch::send_to_those_found(replica.clone(), peers.clone()));
    tasks.spawn(round_trips::measure(running.clone(), tasks.clone()));
    let follows = watch::follow_members(replica.clone(), peers.clone());
    tasks.spawn_vital("following members that move", follows);
    tasks.spawn(upgrade::write_standards(running.clone()));
    tasks.spawn(upgrade::raise_level(running.clone()));
    tasks.spawn(divergence::watch(running.clone()));
    tasks.spawn(leases::watch(running.clone()));
    tasks.spawn_vital(
        "watching the room on the disks",
        room::watch(running.clone()),
    );
    if config.disk.hung_after_ms > 0 {
        tasks.spawn_vital(
            "watching for a disk that hangs",
            disk_watch::watch(running.clone()),
        );
    }
    if config.backup.directory.is_some() {
        tasks.spawn(backups::make(running.clone()));
        tasks.spawn(backups::keep_log(running.clone(), log_reader));
    }
    if config.backup_s3.is_used() {
        // On HTTP's threads rather than Raft's: copying hashes and encrypts the data.
        let copying = mirror::run(running.clone(), env.net.clone());
        tasks.on_runtime(env.requests.clone()).spawn(copying);
    }
    tasks.spawn(snapshots::watch(running.clone()));
    tasks.spawn(snapshots::end_streams_of_those_behind(running.clone()));
    tasks.spawn(replacement::run(running.clone()));
    if config.cluster.autopilot_after_s > 0 {
        let after = Duration::from_secs(config.cluster.autopilot_after_s);
        tasks.spawn(autopilot::watch(running.clone(), after));
    }
    tasks.spawn(removal::watch(replica.clone(), peers.clone()));
    log!(
        REPLICATION_STARTED,
        node = replica.me,
        cluster = %replica.identity.cluster,
        boot = running.start,
        applied = replica.views.applied_index(),
        "replication runs"
    );
    Ok(running)
}

fn limits(config: &Settings) -> Limits {
    Limits {
        append_bytes_max: config.raft.append_bytes_max,
        append_deadline: Duration::from_millis(config.disk.hung_after_ms).max(APPEND_DEADLINE_MIN),
        snapshot_chunk_bytes: config.raft.snapshot_chunk_bytes,
        snapshot_chunk_deadline: Duration::from_millis(config.raft.snapshot_timeout_ms),
    }
}

fn raft_config(config: &Settings, identity: &Identity) -> Result<openraft::Config, StartError> {
    let raft = &config.raft;
    openraft::Config {
        cluster_name: identity.cluster.to_string(),
        heartbeat_interval: raft.heartbeat_ms,
        election_timeout_min: raft.election_min_ms,
        election_timeout_max: raft.election_max_ms,
        install_snapshot_timeout: raft.snapshot_timeout_ms,
        snapshot_max_chunk_size: raft.snapshot_chunk_bytes as u64,
        max_payload_entries: raft.append_entries_max,
        // This node builds snapshots itself, and then notifies openraft.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: raft.log_keep(),
        // A follower whose next entry is still in the log receives entries, not a snapshot.
        replication_lag_threshold: raft.snapshot_after + raft.log_keep(),
        purge_batch_size: (raft.snapshot_after / 4).clamp(1, 256),
        backoff: "100ms 200ms ...1s".to_owned(),
        // A node that was away must not depose a healthy leader by its higher term.
        enable_pre_vote: Some(true),
        // A restarted leader may have lost applied entries, so it asks for votes again.
        enable_leader_restore: Some(false),
        ..openraft::Config::default()
    }
    .validate()
    .map_err(|error| StartError::Raft(error.to_string()))
}
