//! `placementctl partitions`: the clouds that the cluster holds.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::{Context, ensure};
use clap::Subcommand;
use placement_client::Admin;
use placement_wire::{IMPORT_BYTES_MAX, ImportReport};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::backup::{PROGRESS_AFTER, PROGRESS_EVERY};
use crate::render::{Output, Rows, print};

#[derive(Subcommand)]
pub(crate) enum PartitionsAction {
    /// Lists the partitions with their sizes and routes.
    List,
    /// Creates a partition: a separate cloud with only the standard resource classes and traits.
    Create {
        /// Its name: up to 64 lower-case letters, digits, dashes, underscores and dots.
        name: String,
        #[command(flatten)]
        routes: Routes,
    },
    /// Replaces the hosts and prefixes of a partition, on all nodes at once. Without any, it gets
    /// only requests to a listener of `[[partitions]]`.
    Route {
        /// Its name. `default` has hosts only.
        name: String,
        #[command(flatten)]
        routes: Routes,
    },
    /// Fills an empty partition without routes with the default partition of a backup: of
    /// `placementd import`, or of a cluster. Generations, times and orders stay as they are.
    #[command(
        after_help = "Nothing of it is served before `partitions route` gives the partition routes. An import that stops leaves a \
                      part: delete the partition, and create it again. Exits with 1 then, and if the digests differ."
    )]
    Import {
        /// Its name.
        name: String,
        /// The backup.
        backup: PathBuf,
    },
    /// Deletes a partition with all its data.
    Delete {
        /// Its name.
        name: String,
        /// Deletes it although consumers hold allocations in it.
        #[arg(long)]
        force: bool,
    },
}

/// The requests that a partition gets.
#[derive(clap::Args)]
pub(crate) struct Routes {
    /// A host name of its clients' requests, without a port; may be repeated.
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// A path below which its API is served, such as /north/placement; may be repeated.
    #[arg(long = "prefix", value_name = "PATH")]
    prefixes: Vec<String>,
}

/// Lists them if nothing else is asked for.
pub(crate) async fn run(
    admin: &Admin,
    action: Option<PartitionsAction>,
    output: &Output,
) -> anyhow::Result<()> {
    match action.unwrap_or(PartitionsAction::List) {
        PartitionsAction::List => print(&output.rows(list(admin).await?)?)?,
        PartitionsAction::Create { name, routes } => {
            (admin.create_partition(&name, &routes.hosts, &routes.prefixes)).await?;
            println!("partition {name} is made");
        }
        PartitionsAction::Route { name, routes } => {
            (admin.route_partition(&name, &routes.hosts, &routes.prefixes)).await?;
            println!("partition {name} is routed");
        }
        PartitionsAction::Import { name, backup } => import(admin, &name, &backup).await?,
        PartitionsAction::Delete { name, force } => {
            admin.delete_partition(&name, force).await?;
            println!("partition {name} is deleted");
        }
    }
    Ok(())
}

/// Sends the backup, and says now and then how much of it has come in.
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
        "{shown} has more than {IMPORT_BYTES_MAX} bytes: form a cluster of it with `placementd restore`"
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
    println!("{providers} providers and {consumers} consumers are in partition {name}");
    ensure!(
        digest == digest_of_backup,
        "the content digest of the backup is {digest_of_backup}, and that of the partition {digest}: clients have written to \
         it. Delete it (`placementctl partitions delete {name} --force`), create it without routes, and import again"
    );
    println!("content digest of both: {digest}");
    println!("`placementctl partitions route {name}` with --host or --prefix lets clients use it");
    Ok(())
}

async fn list(admin: &Admin) -> anyhow::Result<Rows> {
    let mut items = Vec::new();
    for partition in admin.partitions().await? {
        let requests = match (partition.id, partition.ways.is_empty()) {
            (None, _) => format!(
                "none: `placementctl partitions create {}` makes it",
                partition.name
            ),
            (Some(0), true) => "all others".to_owned(),
            (Some(_), _) => partition.ways.join(", "),
        };
        let mut item = serde_json::to_value(partition)?;
        item["requests"] = json!(requests);
        items.push(item);
    }
    Ok(Rows::new("name providers consumers region requests", items))
}
