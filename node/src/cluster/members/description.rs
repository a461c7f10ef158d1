//! What nodes say of themselves, as the leader takes it. A node may say anything of itself but for two things: its name
//! is no other node's, and it is reached where it says.

use std::collections::BTreeMap;

use placement_raft_store::{Member, NodeName};

use super::membership::Membership;
use crate::cluster::error::Refused;
use crate::cluster::replica::older_copy;

impl Membership<'_> {
    /// Writes down what a node says of itself. Where the others reach it changes only once it is reached there, and not
    /// where it was: so no mistake of one configuration costs a voter, and an address that only others know stays.
    pub(crate) async fn describe(
        &self,
        id: u64,
        mut told: Member,
        start: Option<u64>,
    ) -> Result<(), Refused> {
        let (unchanged, _) = self.now();
        let mut members = self.replica().members();
        let Some(known) = members.remove(&id) else {
            return Err(Refused::NotFound(format!("node {id} is not a member")));
        };
        if told.name.as_str().is_empty() {
            told.name.clone_from(&known.name);
        }
        must_be_free(&members, id, &told.name_of(id))?;
        if told.peer != known.peer {
            told.peer = match self.is_at(&known.peer, id).await {
                true => known.peer.clone(),
                false => self.moved(id, told.peer, start).await?,
            };
        }
        if told == known {
            return Ok(());
        }
        self.set_member(unchanged, id, told).await
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
                "node {id} says that it is reached at {to}, and it is not"
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
