//! `placementd check-backup` and `placementd restore`: what is in a backup, and a new cluster that begins
//! with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, anyhow};
use placement_raft_store::{Backup, NewCluster, Stamp, Until, check_backup};
use uuid::Uuid;

use crate::admin::backup_report;
use crate::{Config, Env};

/// Reads a backup, whole, and says what it holds; of a directory, what a restore from it would come to.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        let backup = Backup::read(path, Until::End, &*Env::production().storage.applier)?;
        println!("{}", backup_report(&backup.info));
        warn(&backup);
        return Ok(());
    }
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let shown = path.display();
    let info = check_backup(file).map_err(|error| match error.is_newer() {
        true => anyhow!("{shown}: {error}: check it with the version that the cluster ran"),
        false => anyhow!("{shown} is no good backup: {error}"),
    })?;
    println!("{}\nbytes: {bytes}", backup_report(&info));
    Ok(())
}

/// Makes the data directory of a member of a new cluster, which begins with a backup.
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
    println!("{}", backup_report(&backup.info));
    if let Some(left) = &backup.left_out {
        let (first, last) = (words(left.first), words(left.last));
        println!("left_out: {} entries, {first} to {last}", left.entries);
    }
    warn(&backup);
    let new = identity.cluster;
    println!("new_cluster_id: {new}\nnew_epoch: {}", identity.epoch);
    let others: Vec<String> = (members.keys())
        .filter(|id| **id != config.node_id)
        .map(u64::to_string)
        .collect();
    eprintln!(
        "{} holds node {} of the new cluster {new}. Set cluster_id = \"{new}\" in its configuration",
        config.data_dir.display(),
        config.node_id
    );
    match others.is_empty() {
        true => {
            eprintln!("and start it; bring further nodes in with `placementctl join-token create`")
        }
        false => eprintln!(
            "and do the same on node {}, from the same backup and with --as {new}; then start them. \
             Never restore a node of this cluster again once it has run",
            others.join(" and node ")
        ),
    }
    Ok(())
}

/// What a person should know of it.
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
