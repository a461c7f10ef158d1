//! `PUT /v1/partitions/{name}/content`: a partition that no client uses gets the content of a backup.
//!
//! It comes in as many commands as it takes. Each names the rows of those before it, so none is carried out twice, or
//! in the wrong order, whatever becomes of an attempt.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use placement_api::backend::{Consistency, Unavailable, WriteBackend};
use placement_api::world::compute;
use placement_model::command::{Command, FillPartition, Filled};
use placement_model::types::PartitionName;
use placement_model::{Cluster, Level, Outcome, Refusal, State as Model};
use placement_raft_store::runtime;
use placement_transfer::content_digest;
use placement_wire::ImportReport;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::partitions::no_partition;
use super::upload::Turn;
use super::{Admin, Answer, Failed, detailed, failed, upload};
use crate::cluster::Refused;
use crate::partitions::PartitionSection;

/// About as much goes into the log at once, so that others' writes do not wait long.
const PIECE_BYTES: usize = 256 * 1024;
/// What a command has in the log besides its rows, generously.
const ENVELOPE_BYTES: usize = 4 * 1024;
/// How long a piece is sent again while no leader takes it.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn put(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    body: Body,
) -> Answer {
    let imported = import(&admin, &name, body).await;
    let report = imported.map(|report| Json(report).into_response());
    detailed(format!("import a backup into partition {name:?}"), report)
}

async fn import(admin: &Admin, name: &str, body: Body) -> Result<ImportReport, Failed> {
    let Ok(turn) = admin.imports.clone().try_lock_owned() else {
        let detail = "this node imports a backup already; try again once it is done, or through another node";
        return Err(failed(StatusCode::CONFLICT, detail));
    };
    // Held until the last thread has ended, which may be after the client is gone.
    let turn = Arc::new(turn);
    let backup = upload::receive(body, turn.clone()).await?;
    let name: PartitionName = name.parse().map_err(|_| no_partition(name))?;
    let view = admin.read.view(Consistency::Linearizable).await;
    view.map_err(Refused::from)?;
    let current = admin.running()?.replica.views.current();
    must_be_new(&current.cluster, &name, &admin.sections)?;
    must_be_known(backup.level(), current.cluster.level())?;
    drop(current);
    let from = Arc::new(backup.default_partition().clone());
    drop(backup);
    let write = admin.partitions.writes(&name);
    let command_bytes = admin.bootstrap.config.raft.command_bytes;
    let mut pieces = pieces(from.clone(), command_bytes, &turn).await?;
    let mut count = 0;
    while let Some(piece) = pieces.recv().await {
        if let Err((reason, may_be_done)) = bring(&*write, piece).await {
            return Err(stopped(&name, &reason, count > 0 || may_be_done));
        }
        count += 1;
    }
    let after = admin.read.view(Consistency::Linearizable).await;
    let after = after.and_then(|view| view.within(&name));
    let after = after.map_err(|reason| stopped(&name, &reason.to_string(), true))?;
    let sizes = after.state.sizes();
    let work = move || {
        let _turn = turn;
        (
            content_digest(&from, &from),
            content_digest(&after.state, &from),
        )
    };
    let offload = &*admin.bootstrap.env.offload;
    let digests = compute(|work| offload.run(work), work).await;
    let (of_backup, digest) = digests.ok_or_else(|| {
        let detail =
            "the digests could not be computed, which is a bug; the log of this node says where";
        failed(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(ImportReport {
        providers: sizes.providers as u64,
        consumers: sizes.consumers as u64,
        commands: count,
        digest_of_backup: of_backup,
        digest,
    })
}

/// What apply refuses too, and what it does not see: names that a client has made, and a listener of this node.
fn must_be_new(
    cluster: &Cluster,
    name: &PartitionName,
    sections: &[PartitionSection],
) -> Result<(), Failed> {
    let found = cluster.partition_named(name.as_str());
    let (id, state) = found.ok_or_else(|| no_partition(name.as_str()))?;
    let has_names = (state.resource_classes().iter()).any(|(name, _)| name.is_custom())
        || state.traits(None).iter().any(|(name, _)| name.is_custom());
    let mut own = (sections.iter()).filter(|section| section.name == name.as_str());
    let detail = if cluster.is_routed_to(id) {
        let refusal = Refusal::PartitionRouted(id);
        format!(
            "{refusal}; nothing was changed. Import into a new one: `placementctl partitions create NAME`, without routes"
        )
    } else if has_names || state.filled() != Filled::default() {
        format!(
            "the partition is not empty; nothing was changed. If an import has filled it in part, delete it (`placementctl \
             partitions delete {name} --force`), create it, and import again"
        )
    } else if own.any(|section| !section.listen.is_empty()) {
        format!(
            "clients reach partition {name} through `[[partitions]] listen` of this node; nothing was changed. Import into \
             one that no node has a listener for"
        )
    } else {
        return Ok(());
    };
    Err(failed(StatusCode::CONFLICT, detail))
}

/// Commands have what their levels know.
fn must_be_known(of_backup: Level, level: Level) -> Result<(), Failed> {
    let needed = of_backup.max(Level::FILLS);
    if needed <= level {
        return Ok(());
    }
    let detail = format!(
        "this needs feature level {needed}, and the cluster is at {level}: it rises once all nodes run a version that \
         knows it; nothing was changed"
    );
    Err(failed(StatusCode::CONFLICT, detail))
}

/// The commands, as they are asked for.
///
/// # Errors
/// 413 if a row is too long for one; then there are none.
async fn pieces(
    from: Arc<Model>,
    command_bytes: usize,
    turn: &Turn,
) -> Result<mpsc::Receiver<FillPartition>, Failed> {
    let bytes_max = command_bytes.saturating_sub(ENVELOPE_BYTES);
    let bytes = PIECE_BYTES.min(bytes_max);
    let (looked_at, held) = (from.clone(), turn.clone());
    let wrong = runtime::blocking(move || {
        let _turn = held;
        looked_at.pieces(bytes, bytes_max).find_map(Result::err)
    });
    if let Some(wrong) = wrong.await {
        let detail = format!("{wrong}; nothing was changed");
        return Err(failed(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let (sender, pieces) = mpsc::channel(1);
    let held = turn.clone();
    runtime::spawn(runtime::blocking(move || {
        let _turn = held;
        let mut all = from.pieces(bytes, bytes_max).flatten();
        // If the import has stopped, so be it.
        all.all(|piece| sender.blocking_send(piece).is_ok());
    }));
    Ok(pieces)
}

/// Has a piece carried out, once.
///
/// # Errors
/// Why not, and whether it may have been all the same.
async fn bring(write: &dyn WriteBackend, piece: FillPartition) -> Result<(), (String, bool)> {
    let deadline = Instant::now() + PATIENCE;
    let then = piece.then();
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
        let may_be_sent_again = match &unavailable {
            Unavailable::OutcomeUnknown(_) => {
                may_be_done = true;
                true
            }
            Unavailable::NothingCommitted(_) | Unavailable::Busy(_) => true,
            _ => false,
        };
        if !may_be_sent_again || Instant::now() > deadline {
            return Err((unavailable.to_string(), may_be_done));
        }
        sleep(PAUSE).await;
    }
}

/// A part may be there, so this is no refusal.
fn stopped(name: &PartitionName, reason: &str, is_begun: bool) -> Failed {
    if !is_begun {
        return failed(
            StatusCode::CONFLICT,
            format!("{reason}; nothing was changed"),
        );
    }
    let detail = format!(
        "{reason}; the import has stopped, and partition {name} may have a part of the backup. Delete it (`placementctl \
         partitions delete {name} --force`), create it, and import again"
    );
    failed(StatusCode::SERVICE_UNAVAILABLE, detail)
}
