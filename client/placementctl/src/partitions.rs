//! `placementctl partitions`: the clouds of the cluster.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::{Context, ensure};
use clap::Subcommand;
use placement_client::Admin;
use placement_wire::{IMPORT_BYTES_MAX, ImportReport, NewPartition, Partition, PartitionRoutes};
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use crate::backup::{PROGRESS_AFTER, PROGRESS_EVERY};
use crate::render::{Output, Rows, print};

#[derive(Subcommand)]
pub(crate) enum PartitionsAction {
    /// List the partitions with their sizes and routes.
    List,
    /// Create a partition: an independent cloud.
    ///
    /// It starts with only the standard resource classes and traits.
    Create {
        /// Name: up to 64 lower-case letters, digits, dashes, underscores and dots.
        name: String,
        #[command(flatten)]
        routes: Routes,
    },
    /// Replace the routes of a partition on all nodes.
    ///
    /// Without --host and --prefix, the partition gets only the requests to the listener that
    /// `[[partitions]]` configures for it.
    Route {
        /// Name of the partition. `default` can have hosts but no prefixes.
        name: String,
        #[command(flatten)]
        routes: Routes,
    },
    /// Import the default partition of a backup into an empty partition.
    ///
    /// The partition must have no routes. The backup can come from `placementd import` or
    /// from a cluster. Generations, timestamps and the order of rows are preserved.
    #[command(
        after_help = "The partition serves no requests until `partitions route` gives it routes. A failed import leaves it \
                      incomplete: delete it and create it again. Exit codes: 0 = success; 1 = the import failed, or the content \
                      digests of backup and partition differ; 2 = no node answers."
    )]
    Import {
        /// Name of the partition.
        name: String,
        /// Backup file, at most 2 GiB.
        backup: PathBuf,
    },
    /// Delete a partition with all its data.
    Delete {
        /// Name of the partition.
        name: String,
        /// Delete it even if it has allocations.
        #[arg(long)]
        force: bool,
    },
}

/// Routes: the requests that a partition serves.
#[derive(clap::Args)]
pub(crate) struct Routes {
    /// Host name in the requests of clients, without the port. Repeatable.
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Path prefix of its API, such as /north/placement. Repeatable.
    #[arg(long = "prefix", value_name = "PATH")]
    prefixes: Vec<String>,
}

/// Runs an action; lists the partitions by default.
pub(crate) async fn run(
    admin: &Admin,
    action: Option<PartitionsAction>,
    output: &Output,
) -> anyhow::Result<()> {
    match action.unwrap_or(PartitionsAction::List) {
        PartitionsAction::List => print(&output.rows(list(admin).await?)?)?,
        PartitionsAction::Create {
            name,
            routes: Routes { hosts, prefixes },
        } => {
            let new = NewPartition {
                name,
                hosts,
                prefixes,
            };
            admin.create_partition(&new).await?;
            println!("partition {} is created", new.name);
        }
        PartitionsAction::Route {
            name,
            routes: Routes { hosts, prefixes },
        } => {
            let routes = PartitionRoutes { hosts, prefixes };
            admin.route_partition(&name, &routes).await?;
            println!("the routes of partition {name} are replaced");
        }
        PartitionsAction::Import { name, backup } => import(admin, &name, &backup).await?,
        PartitionsAction::Delete { name, force } => {
            admin.delete_partition(&name, force).await?;
            println!("partition {name} is deleted");
        }
    }
    Ok(())
}

/// Sends the backup, and reports progress once a second.
async fn import(admin: &Admin, name: &str, backup: &Path) -> anyhow::Result<()> {
    let shown = backup.display();
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = File::open(backup)?.take(IMPORT_BYTES_MAX + 1);
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().with_context(|| format!("cannot read {shown}"))?;
    ensure!(
        bytes.len() as u64 <= IMPORT_BYTES_MAX,
        "{shown} exceeds {IMPORT_BYTES_MAX} bytes: form a cluster from it with `placementd restore`"
    );
    let mut importing = pin!(admin.import_into_partition(name, bytes));
    let mut say_at = Instant::now() + PROGRESS_AFTER;
    let report = loop {
        tokio::select! {
            biased;
            report = importing.as_mut() => break report,
            () = sleep_until(say_at) => {
                let all = admin.partitions().await.unwrap_or_default();
                if let Some(found) = all.iter().find(|found| found.name == name) {
                    eprintln!("{} providers, {} consumers", found.providers, found.consumers);
                }
                say_at = Instant::now() + PROGRESS_EVERY;
            }
        }
    };
    let ImportReport {
        providers,
        consumers,
        digest_of_backup,
        digest,
        ..
    } = report.with_context(|| format!("{shown} into partition {name}"))?;
    println!(
        "{shown} is imported into partition {name}: {providers} providers, {consumers} consumers"
    );
    ensure!(
        digest == digest_of_backup,
        "the content digest of the backup is {digest_of_backup}, but the digest of the partition is {digest}: clients wrote to \
         it during the import. Delete it (`placementctl partitions delete {name} --force`), create it without routes, \
         and import again"
    );
    println!("content digest of both: {digest}");
    println!(
        "to let clients use it: `placementctl partitions route {name}` with --host or --prefix"
    );
    Ok(())
}

/// A partition, and which requests it gets.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    partition: Partition,
    requests: String,
}

async fn list(admin: &Admin) -> anyhow::Result<Rows<Listed>> {
    let partitions = admin.partitions().await?.into_iter();
    let rows = partitions.map(|partition| {
        let requests = match (partition.id, partition.ways.is_empty()) {
            (None, _) => format!(
                "none: create it with `placementctl partitions create {}`",
                partition.name
            ),
            (Some(0), true) => "all others".to_owned(),
            (Some(_), _) => partition.ways.join(", "),
        };
        Listed {
            partition,
            requests,
        }
    });
    Ok(Rows::new(rows.collect())
        .column("name", |row| row.partition.name.clone())
        .column("providers", |row| row.partition.providers)
        .column("consumers", |row| row.partition.consumers)
        .column("region", |row| row.partition.region.clone())
        .column("requests", |row| row.requests.clone()))
}
