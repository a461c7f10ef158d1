//! `placementd check-backup` and `placementd restore`: verifies a backup, and creates a new cluster
//! from it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, anyhow};
use placement_model::types::PartitionId;
use placement_model::{Cluster, State};
use placement_raft_store::{Backup, NewCluster, RestoreError, Stamp, Until};
use uuid::Uuid;

use super::print;
use crate::admin::backup_report;
use crate::{Config, Env};

/// Reads a whole backup and prints its contents; for a directory, the result of a restore from it.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let metadata = path
        .metadata()
        .with_context(|| path.display().to_string())?;
    let shown = path.display();
    let read = Backup::read(path, Until::End, &*Env::production().storage.applier);
    let backup = read.map_err(|error| match error {
        RestoreError::Backup(_, error) if error.is_newer() => {
            anyhow!("{shown}: {error}: check it with the version that the cluster ran")
        }
        RestoreError::Backup(_, error) if metadata.is_file() => {
            anyhow!("{shown} is not a valid backup: {error}")
        }
        error => error.into(),
    })?;
    let mut text = format!("{}\n", backup_report(&backup.info));
    if metadata.is_file() {
        text += &format!("bytes: {}\n", metadata.len());
    }
    let cluster = backup.cluster();
    for (id, state) in cluster.states() {
        text += &format!("{}\n", sizes(cluster, id, state)?);
    }
    print(&text)?;
    warn(&backup);
    Ok(())
}

/// The size of a partition, as text.
pub(super) fn sizes(cluster: &Cluster, id: PartitionId, state: &State) -> anyhow::Result<String> {
    let name = cluster.name_of(id).context("a partition has no name")?;
    let sizes = state.sizes();
    let (providers, consumers) = (sizes.providers, sizes.consumers);
    Ok(format!(
        "{name}: {providers} providers, {consumers} consumers"
    ))
}

/// Creates the data directory of a member of a new cluster that begins with a backup.
pub(crate) fn run(
    config: &Config,
    from: &Path,
    until: Until,
    named: Option<Uuid>,
) -> anyhow::Result<()> {
    let env = Env::production();
    let backup = Backup::read(from, until, &*env.storage.applier)?;
    let mut members: BTreeMap<u64, String> = (config.initial_members.iter())
        .map(|member| (member.id, member.address.clone()))
        .collect();
    if members.is_empty() {
        let own = match config.peer.advertise.as_str() {
            "" => &config.peer.listen,
            advertised => advertised,
        };
        members.insert(config.node_id, own.to_owned());
    }
    let cluster = match named {
        Some(named) => NewCluster::Named(named),
        None => NewCluster::Drawn(env.ids.uuid().as_u64_pair().1),
    };
    let mut options = env.storage;
    options.dir = config.data_dir.clone();
    let identity = backup.restore(&options, config.node_id, &members, cluster)?;
    print(&format!("{}\n", backup_report(&backup.info)))?;
    if let Some(left) = &backup.left_out {
        let (first, last) = (words(left.first), words(left.last));
        let entries = left.entries;
        print(&format!("left_out: {entries} entries, {first} to {last}\n"))?;
    }
    warn(&backup);
    let new = identity.cluster;
    let epoch = identity.epoch;
    print(&format!("new_cluster_id: {new}\nnew_epoch: {epoch}\n"))?;
    let others: Vec<String> = (members.keys())
        .filter(|id| **id != config.node_id)
        .map(u64::to_string)
        .collect();
    eprintln!(
        "{} contains node {} of the new cluster {new}. Set cluster_id = \"{new}\" in the \
        configuration of this node.",
        config.data_dir.display(),
        config.node_id
    );
    if others.is_empty() {
        eprintln!("Start the node, and add further nodes with `placementctl join-token create`")
    } else {
        eprintln!(
            "On node {}, set the same cluster_id and run `placementd restore` from the same backup \
            with --as {new}. Then start all nodes. Never restore a node of this cluster again once \
            it has run",
            others.join(" and node ")
        )
    }
    Ok(())
}

/// Prints warnings for the operator.
pub(super) fn warn(backup: &Backup) {
    let reasons = [&backup.passed_over, &backup.ends_early, &backup.wrong_times];
    for why in reasons.into_iter().flatten() {
        eprintln!("placementd: warning: {why}");
    }
}

fn words(stamp: Stamp) -> String {
    match stamp.at.and_then(|at| at.rfc3339()) {
        None => stamp.index.to_string(),
        Some(at) => format!("{} ({at})", stamp.index),
    }
}
