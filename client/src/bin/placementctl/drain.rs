//! `placementctl drain`: nodes get out of the way before they are stopped.

use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use placement_client::{Admin, Member};

use crate::named::Named;
use crate::render::print;
use crate::survey::survey;

/// One node, or those of a region.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The node, by its number or its name.
    #[arg(value_name = "NODE")]
    node: Option<Named>,
    /// All nodes of this region instead; leadership leaves it, if a node elsewhere can lead.
    #[arg(long)]
    region: Option<String>,
}

/// Has balancers look elsewhere, and another node lead.
pub(crate) async fn drain(admin: &Admin, which: &Which, timeout: Duration) -> anyhow::Result<()> {
    each(admin, which, timeout, async |node, id| {
        let leads = match node.drain().await? {
            Some(leader) if leader == id => {
                "it still leads, as no other node can: stopping it stops the cluster".to_owned()
            }
            Some(leader) => format!("node {leader} leads"),
            None => "no leader is known".to_owned(),
        };
        Ok(format!(
            "node {id} is drained: its /readyz says 503, and {leads}. Stop it once its balancer has \
             noticed; started again, it takes requests again"
        ))
    })
    .await
}

/// Takes that back.
pub(crate) async fn undrain(admin: &Admin, which: &Which, timeout: Duration) -> anyhow::Result<()> {
    each(admin, which, timeout, async |node, id| {
        node.undrain().await?;
        Ok(format!(
            "node {id} takes requests again, as soon as its /readyz says so"
        ))
    })
    .await
}

/// Asks those that are meant, one after the other, and prints what came of it. One that cannot be
/// asked does not keep the others from it.
async fn each(
    admin: &Admin,
    which: &Which,
    timeout: Duration,
    ask: impl AsyncFn(&Admin, u64) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for member in meant(admin, which, timeout).await? {
        let id = member.id;
        let asked = async { ask(&admin.of(&member, timeout)?, id).await };
        match asked.await {
            Ok(words) => print(&(words + "\n"))?,
            Err(error) => failed.push(format!("node {id}: {error}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// The members that are meant. The leader comes last: the others of its region are not to lead
/// after it.
async fn meant(admin: &Admin, which: &Which, timeout: Duration) -> anyhow::Result<Vec<Member>> {
    let found = survey(admin, timeout).await?;
    let leader = found.asked.leader;
    let members = found.members.into_iter().map(|(member, _)| member);
    let region = which.region.as_deref().unwrap_or_default();
    let is_meant = |member: &Member| match &which.node {
        Some(node) => node.is(member),
        None => member.region == region,
    };
    let mut meant: Vec<Member> = members.filter(is_meant).collect();
    match &which.node {
        Some(node) if meant.is_empty() => bail!("{node} is no member of the cluster"),
        None if meant.is_empty() => bail!("no member stands in the region {region:?}"),
        _ => {}
    }
    meant.sort_by_key(|member| Some(member.id) == leader);
    Ok(meant)
}
