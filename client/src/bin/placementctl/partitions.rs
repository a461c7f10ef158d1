//! `placementctl partitions`: the clouds that the cluster holds.

use clap::Subcommand;
use placement_client::Admin;
use serde_json::json;

use crate::render::{Output, Rows, print};

#[derive(Subcommand)]
pub(crate) enum PartitionsAction {
    /// Lists the partitions with their sizes and routes.
    List,
    /// Creates a partition: a separate cloud with only the standard resource classes and traits.
    Create {
        /// Its name: up to 64 characters out of a-z, 0-9, -, _ and .
        name: String,
        #[command(flatten)]
        routes: Routes,
    },
    /// Replaces the hosts and prefixes of a partition, on all nodes at once. Without any, it gets only
    /// requests to a listener of `[[partitions]]`.
    Route {
        /// Its name. `default` has hosts only.
        name: String,
        #[command(flatten)]
        routes: Routes,
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
        PartitionsAction::Delete { name, force } => {
            admin.delete_partition(&name, force).await?;
            println!("partition {name} is deleted");
        }
    }
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
