//! `PUT /v1/partitions/{name}/content`: imports the content of a backup into an unused partition.
//!
//! The import is split into several commands. Each command contains the number of rows that the
//! earlier commands have added, so no command is applied out of order, and a repeated command
//! changes nothing. A command with an unknown outcome can therefore be sent again.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use placement_base::backend::{Consistency, Unavailable, WriteBackend};
use placement_base::runtime;
use placement_base::world::compute;
use placement_model::command::{Command, FillPartition, Filled};
use placement_model::types::{PartitionId, PartitionName};
use placement_model::{Cluster, Level, Outcome, Refusal, State as Model};
use placement_transfer::content_digest;
use placement_wire::ImportReport;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::partitions::no_partition;
use super::upload::ImportGuard;
use super::{Admin, Failed, HandlerResult, detailed, failed, upload};
use crate::partitions::PartitionSection;
use placement_cluster::Refused;

/// Approximate size of a log entry, in bytes; small, so that other clients' writes do not wait
/// long.
const PIECE_BYTES: usize = 256 * 1024;
/// Upper bound for the bytes of a command in the log without its rows.
const ENVELOPE_BYTES: usize = 4 * 1024;
/// How long a piece is retried while no leader accepts it.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn put(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    body: Body,
) -> HandlerResult {
    let imported = import(&admin, &name, body).await;
    let report = imported.map(|report| Json(report).into_response());
    detailed(format!("import a backup into partition {name:?}"), report)
}

async fn import(admin: &Admin, name: &str, body: Body) -> Result<ImportReport, Failed> {
    let Ok(turn) = admin.imports.clone().try_lock_owned() else {
        let detail = "this node is already importing a backup; retry once it is done, or use \
            another node";
        return Err(failed(StatusCode::CONFLICT, detail));
    };
    let turn = Arc::new(turn);
    let backup = upload::receive(body, turn.clone()).await?;
    let name: PartitionName = name.parse().map_err(|_| no_partition(name))?;
    let view = admin.read.view(Consistency::Linearizable).await;
    view.map_err(Refused::from)?;
    let current = admin.running()?.replica.views.current();
    let id = must_be_new(&current.cluster, &name, &admin.sections)?;
    must_be_known(backup.level(), current.cluster.level())?;
    drop(current);
    // The lock is held until the last thread has ended, even if the client disconnects.
    let from = Arc::new((backup.default_partition().clone(), turn));
    drop(backup);
    let write = admin.partitions.writes(id, &name);
    let raft = &admin.bootstrap.config.raft;
    let bytes_max = raft.command_bytes.saturating_sub(ENVELOPE_BYTES);
    let checked = from.clone();
    let digest_of_backup = computed(admin, move || check(&checked.0, bytes_max)).await??;
    let mut pieces = pieces(from.clone(), bytes_max);
    let mut count = 0;
    while let Some(piece) = pieces.recv().await {
        if let Err((reason, may_be_done)) = submit_piece(&*write, piece).await {
            return Err(stopped(&name, &reason, count > 0 || may_be_done));
        }
        count += 1;
    }
    let after = admin.read.view(Consistency::Linearizable).await;
    let missing = || Unavailable::NoPartition(name.clone());
    let after = after
        .and_then(|view| view.in_partition(id).ok_or_else(missing))
        .map_err(|reason| stopped(&name, &reason.to_string(), true))?;
    let filled = after.state.filled();
    let digest = computed(admin, move || content_digest(&after.state, &from.0));
    Ok(ImportReport {
        providers: filled.providers,
        consumers: filled.consumers,
        commands: count,
        digest_of_backup,
        digest: digest.await?,
    })
}

async fn computed<T: Send + 'static>(
    admin: &Admin,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failed> {
    let offload = &*admin.bootstrap.env.offload;
    let made = compute(|work| offload.run(work), work).await;
    made.ok_or_else(|| {
        let detail =
            "computing the digest has panicked, which is a bug; the log of this node has the \
            details";
        failed(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}

/// Repeats the checks of apply, and adds two that apply cannot make: that clients have created no
/// names in the partition, and that it has no listener on this node. Returns the partition.
fn must_be_new(
    cluster: &Cluster,
    name: &PartitionName,
    sections: &[PartitionSection],
) -> Result<PartitionId, Failed> {
    let found = cluster.partition_named(name.as_str());
    let (id, state) = found.ok_or_else(|| no_partition(name.as_str()))?;
    let has_names = (state.resource_classes().iter()).any(|(name, _)| name.is_custom())
        || state.traits(None).iter().any(|(name, _)| name.is_custom());
    let mut own = (sections.iter()).filter(|section| section.name == name.as_str());
    let detail = if cluster.is_routed_to(id) {
        let refusal = Refusal::PartitionRouted(id);
        format!(
            "{refusal}; nothing was changed. Import into a new partition: `placementctl \
            partitions create NAME`, without routes"
        )
    } else if has_names || state.filled() != Filled::default() {
        format!(
            "the partition is not empty; nothing was changed. If an import has filled it partly, \
            delete it (`placementctl partitions delete {name} --force`), create it, and import \
            again"
        )
    } else if own.any(|section| !section.listen.is_empty()) {
        format!(
            "clients reach partition {name} through `[[partitions]] listen` of this node; nothing \
            was changed. Import into a partition without a listener"
        )
    } else {
        return Ok(id);
    };
    Err(failed(StatusCode::CONFLICT, detail))
}

/// Checks that the cluster's feature level permits the commands of the backup's level.
fn must_be_known(of_backup: Level, level: Level) -> Result<(), Failed> {
    if of_backup <= level {
        return Ok(());
    }
    let detail = format!(
        "this needs feature level {of_backup}, but the cluster is at {level}: the level rises once all \
        nodes run a version that supports {of_backup}; nothing was changed"
    );
    Err(failed(StatusCode::CONFLICT, detail))
}

/// The digest of the content, if each row can be imported.
///
/// # Errors
/// 400, with the first row that cannot be imported.
fn check(from: &Model, bytes_max: usize) -> Result<String, Failed> {
    let Some(misfit) = from.pieces(bytes_max, bytes_max).find_map(Result::err) else {
        return Ok(content_digest(from, from));
    };
    let detail = format!("the backup: {misfit}; nothing was changed");
    Err(failed(StatusCode::BAD_REQUEST, detail))
}

/// The commands, created on demand.
fn pieces(from: Arc<(Model, ImportGuard)>, bytes_max: usize) -> mpsc::Receiver<FillPartition> {
    let bytes = PIECE_BYTES.min(bytes_max);
    let (sender, pieces) = mpsc::channel(1);
    runtime::spawn(runtime::blocking(move || {
        let mut all = from.0.pieces(bytes, bytes_max).flatten();
        // Sending fails once the import has stopped.
        all.all(|piece| sender.blocking_send(piece).is_ok());
    }));
    pieces
}

/// Commits a piece, once.
///
/// # Errors
/// The reason, and whether the piece may have been committed nevertheless.
async fn submit_piece(
    write: &dyn WriteBackend,
    piece: FillPartition,
) -> Result<(), (String, bool)> {
    let deadline = Instant::now() + PATIENCE;
    let then = piece.rows_after();
    let mut may_be_done = false;
    loop {
        let command = Command::FillPartition(piece.clone());
        let written = write.submit(command, "partitions: import".to_owned()).await;
        let unavailable = match written.map(|written| written.outcome) {
            Ok(Outcome::Done(_)) => return Ok(()),
            Ok(Outcome::Refused(Refusal::PartitionNotEmpty { has, .. }))
                if may_be_done && has == then =>
            {
                return Ok(());
            }
            Ok(Outcome::Refused(refusal)) => return Err((refusal.to_string(), may_be_done)),
            Ok(Outcome::AnsweredBefore) => Unavailable::outcome_unknown("it was answered before"),
            Err(unavailable) => unavailable,
        };
        may_be_done |= matches!(unavailable, Unavailable::OutcomeUnknown(_));
        let passes = matches!(
            unavailable,
            Unavailable::OutcomeUnknown(_)
                | Unavailable::NothingCommitted(_)
                | Unavailable::Busy(_)
        );
        if !passes || Instant::now() > deadline {
            return Err((unavailable.to_string(), may_be_done));
        }
        sleep(PAUSE).await;
    }
}

/// The error after a failed piece: 409 if nothing was imported, else 503.
fn stopped(name: &PartitionName, reason: &str, is_begun: bool) -> Failed {
    if !is_begun {
        return failed(
            StatusCode::CONFLICT,
            format!("{reason}; nothing was changed"),
        );
    }
    let detail = format!(
        "{reason}; the import has stopped, and partition {name} may contain a part of the backup. \
        Delete it (`placementctl partitions delete {name} --force`), create it, and import again"
    );
    failed(StatusCode::SERVICE_UNAVAILABLE, detail)
}
