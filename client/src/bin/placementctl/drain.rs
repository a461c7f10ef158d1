//! `placementctl drain`: a node gets out of the way before it is stopped.

use std::time::Duration;

use anyhow::bail;
use placement_client::Admin;

use crate::survey::survey;

/// Has balancers look elsewhere, and another node lead.
pub(crate) async fn drain(admin: &Admin, id: u64, timeout: Duration) -> anyhow::Result<()> {
    let leader = of(admin, id, timeout).await?.drain().await?;
    let leads = match leader {
        Some(leader) if leader == id => {
            "it still leads, as no other node can: stopping it stops the cluster".to_owned()
        }
        Some(leader) => format!("node {leader} leads"),
        None => "no leader is known".to_owned(),
    };
    println!(
        "node {id} is drained: its /readyz says 503, and {leads}. Stop it once its balancer has \
         noticed; started again, it takes requests again"
    );
    Ok(())
}

/// Takes that back.
pub(crate) async fn undrain(admin: &Admin, id: u64, timeout: Duration) -> anyhow::Result<()> {
    of(admin, id, timeout).await?.undrain().await?;
    println!("node {id} takes requests again, as soon as its /readyz says so");
    Ok(())
}

/// The door of one member, which is the only one that can do this.
async fn of(admin: &Admin, id: u64, timeout: Duration) -> anyhow::Result<Admin> {
    let members = survey(admin, timeout).await?.members;
    let Some((member, _)) = members.iter().find(|(member, _)| member.id == id) else {
        bail!("node {id} is no member of the cluster");
    };
    Ok(admin.of(member, timeout)?)
}
