//! Nodes' own descriptions, as the leader takes them. A node describes itself as it likes but for
//! two things: its name is no other node's, and it is reached at its address.

use std::collections::BTreeMap;

use placement_raft_store::{Member, NodeName};

use super::membership::Membership;
use crate::cluster::error::Refused;
use crate::cluster::replica::older_copy;

impl Membership<'_> {
    /// Writes down a node's own description. Where the others reach it changes only once it is
    /// reached there, and not where it was: so no mistake of one configuration costs a voter, and
    /// an address that only others know stays.
    pub(crate) async fn describe(
        &self,
        id: u64,
        mut own: Member,
        start: Option<u64>,
    ) -> Result<(), Refused> {
        let (unchanged, _) = self.now();
        let mut members = self.replica().members();
        let Some(known) = members.remove(&id) else {
            return Err(Refused::NotFound(format!("node {id} is not a member")));
        };
        if own.name.as_str().is_empty() {
            own.name.clone_from(&known.name);
        }
        must_be_free(&members, id, &own.name_of(id))?;
        if own.peer != known.peer {
            own.peer = match self.is_at(&known.peer, id).await {
                true => known.peer.clone(),
                false => self.moved(id, own.peer, start).await?,
            };
        }
        if own == known {
            return Ok(());
        }
        self.set_member(unchanged, id, own).await
    }

    /// The new address, if the node is there, and is itself.
    async fn moved(&self, id: u64, to: String, start: Option<u64>) -> Result<String, Refused> {
        if let Some(start) = start {
            // What it has written under another leader may not be applied here yet.
            self.0.catch_up().await?;
            let last = self.replica().last_start(id);
            if let Some(last) = last.filter(|last| *last >= start) {
                return Err(Refused::Conflict(older_copy(start, last)));
            }
        }
        if !self.is_at(&to, id).await {
            return Err(Refused::Conflict(format!(
                "node {id} gives {to} as its address, and is not reached there"
            )));
        }
        tracing::info!(node = id, address = to, "a node has another address");
        Ok(to)
    }
}

/// No other member may be called so.
pub(crate) fn must_be_free(
    others: &BTreeMap<u64, Member>,
    id: u64,
    name: &NodeName,
) -> Result<(), Refused> {
    let mut others = others.iter().filter(|(other, _)| **other != id);
    match others.find(|(other, member)| member.name_of(**other) == *name) {
        None => Ok(()),
        Some((other, _)) => Err(Refused::Conflict(format!(
            "node {other} is called {name} already"
        ))),
    }
}
