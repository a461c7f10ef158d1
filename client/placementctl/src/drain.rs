//! `placementctl drain`: prepares nodes for a stop.

use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use placement_client::{Admin, Error, Member};

use crate::named::Named;
use crate::render::print;
use crate::survey::survey;

/// One node, or all nodes of a region.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct DrainArgs {
    /// Node, by number or name.
    #[arg(value_name = "NODE")]
    node: Option<Named>,
    /// Select all nodes of this region, one after the other. `drain` transfers leadership to
    /// another region if a node there can lead.
    #[arg(long)]
    region: Option<String>,
}

/// Makes load balancers avoid the nodes, and moves leadership away from them.
pub(crate) async fn drain(
    admin: &Admin,
    args: &DrainArgs,
    timeout: Duration,
) -> anyhow::Result<()> {
    each(admin, args, timeout, async |node, id| {
        let leads = match node.drain().await? {
            Some(leader) if leader == id => {
                "it still leads because no other node can: stopping it stops the cluster".to_owned()
            }
            Some(leader) => format!("node {leader} leads"),
            None => "no leader is known".to_owned(),
        };
        Ok(format!(
            "node {id} is drained: its /readyz returns 503, and {leads}. Stop it once the load balancer \
             sends it no more requests; a restart ends the drain"
        ))
    })
    .await
}

pub(crate) async fn undrain(
    admin: &Admin,
    args: &DrainArgs,
    timeout: Duration,
) -> anyhow::Result<()> {
    each(admin, args, timeout, async |node, id| {
        node.undrain().await?;
        Ok(format!(
            "node {id} is undrained: its /readyz returns 200 as soon as it is ready"
        ))
    })
    .await
}

/// Applies `ask` to the selected nodes, one after the other, and prints the results. If one node
/// fails, the other nodes are still processed.
async fn each(
    admin: &Admin,
    args: &DrainArgs,
    timeout: Duration,
    ask: impl AsyncFn(&Admin, u64) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for member in meant(admin, args, timeout).await? {
        let id = member.id;
        let asked = async { ask(&admin.for_member(&member, timeout)?, id).await };
        match asked.await {
            Ok(words) => print(&(words + "\n"))?,
            Err(error) => failed.push(format!("node {id}: {}", reason(&error))),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// The error. A drain has no outcome that could be unknown or uncommitted.
fn reason(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        Some(Error::NothingCommitted { reason }) => reason.clone(),
        _ => error.to_string(),
    }
}

/// The selected members. The leader comes last, so that leadership does not move to a node that is
/// drained next.
async fn meant(admin: &Admin, args: &DrainArgs, timeout: Duration) -> anyhow::Result<Vec<Member>> {
    let found = survey(admin, timeout).await?;
    let leader = found.asked.leader;
    let members = found.members.into_iter().map(|(member, _)| member);
    let region = args.region.as_deref().unwrap_or_default();
    let is_meant = |member: &Member| match &args.node {
        Some(node) => node.is(member),
        None => member.region == region,
    };
    let mut meant: Vec<Member> = members.filter(is_meant).collect();
    match &args.node {
        Some(node) if meant.is_empty() => bail!("{node} is not a member of the cluster"),
        None if meant.is_empty() => bail!("no member is in region {region:?}"),
        _ => {}
    }
    meant.sort_by_key(|member| Some(member.id) == leader);
    Ok(meant)
}
