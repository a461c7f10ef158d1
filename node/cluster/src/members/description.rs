//! The leader's checks of the description (name, site and addresses) that a node gives of itself. A
//! node may choose its description freely, with two limits: its name must be unique, and the node
//! must be reachable at its address.

use std::collections::BTreeMap;

use placement_raft_store::{Member, NodeName};

use super::membership::Membership;
use crate::error::Refused;
use crate::replica::older_copy;
use placement_base::log_messages::log;

impl Membership<'_> {
    /// Records a node's description of itself. The address changes only if the node is reachable at
    /// the new address and no longer at the old one. So a mistake in a node's configuration does
    /// not make the node unreachable, and a working address is kept.
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
            own.peer = if self.is_at(&known.peer, id).await {
                known.peer.clone()
            } else {
                self.moved(id, own.peer, start).await?
            };
        }
        if own == known {
            return Ok(());
        }
        self.set_member(unchanged, id, own).await
    }

    /// Returns the new address, after a check that node `id` answers there.
    async fn moved(&self, id: u64, to: String, start: Option<u64>) -> Result<String, Refused> {
        if let Some(start) = start {
            // This node may not have applied yet what node `id` wrote through an earlier leader.
            self.0.catch_up().await?;
            let last = self.replica().last_start(id);
            if let Some(last) = last.filter(|last| *last >= start) {
                return Err(Refused::Conflict(older_copy(start, last)));
            }
        }
        if !self.is_at(&to, id).await {
            return Err(Refused::Conflict(format!(
                "node {id} gives {to} as its address but does not answer there"
            )));
        }
        log!(
            MEMBER_MOVED,
            node = id,
            address = to,
            "a node has a new address"
        );
        Ok(to)
    }
}

/// Refuses a name that another member has.
pub(crate) fn must_be_free(
    others: &BTreeMap<u64, Member>,
    id: u64,
    name: &NodeName,
) -> Result<(), Refused> {
    let mut others = others.iter().filter(|(other, _)| **other != id);
    match others.find(|(other, member)| member.name_of(**other) == *name) {
        None => Ok(()),
        Some((other, _)) => Err(Refused::Conflict(format!(
            "node {other} already has the name {name}"
        ))),
    }
}
