//! Forms a cluster, once.
//!
//! Every initial member has the same list. The node with the lowest number forms the cluster. It
//! waits until all other nodes answer and have no log, and creates the cluster's id (or reuses the
//! id of an interrupted attempt). Then it invites the other nodes and writes the first membership.
//! If a node has lost its data, it finds that the others belong to a formed cluster, and does not
//! form a second one. Nodes that are added later are invited by the leader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use placement_base::coverage::RarePath;
use placement_base::log_messages::log;
use placement_base::runtime;
use placement_model::mutant;
use placement_raft_store::{Identity, Member, OpenError};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::Bootstrap;
use super::member::start;
use crate::error::StartError;
use crate::members::membership::invite;
use crate::replica::older_copy;
use crate::running::Running;
use crate::slot::OUTSIDE;
use placement_peer::raft::messages::Introduction;
use placement_peer::transport::denied::Denied;
use placement_peer::transport::method::Method;

const PAUSE: Duration = Duration::from_millis(200);
const CALL: Duration = Duration::from_secs(2);
/// Minimum time that a starting node waits for the configured members to report their cluster.
const CHECK_MIN: Duration = Duration::from_millis(500);
/// Minimum of the same wait in heartbeat intervals: a round trip takes at most one interval, and
/// connecting, the hello and the request take three round trips.
const CHECK_HEARTBEATS: u32 = 4;

impl Bootstrap {
    /// Whether this node takes part in a formed cluster.
    pub(crate) fn is_formed(&self) -> bool {
        let running = self.slot.get();
        running.is_some_and(|running| running.replica.is_formed())
    }

    /// This node's introduction to other nodes.
    pub(crate) fn introduction(&self) -> Introduction {
        Introduction {
            node: self.config.node_id,
            cluster: self.peers.cluster(),
            formed: self.is_formed(),
            api: url(self.config.api_requires_tls, &self.addresses.api),
            peer: self.addresses.peer.clone(),
            admin: if self.config.admin_requires_tls && !self.addresses.admin.is_empty() {
                url(true, &self.addresses.admin)
            } else {
                self.addresses.admin.clone()
            },
            level: self.peers.level(),
        }
    }

    /// Starts on the existing data directory: opens it if it belongs to a cluster.
    pub async fn resume(self: &Arc<Self>) -> Result<(), StartError> {
        let dir = self.config.data_dir.clone();
        match runtime::blocking(move || placement_raft_store::identity(&dir)).await? {
            Some(identity) => {
                self.check_binding(&identity)?;
                self.check_neighbours(&identity).await?;
                let _joining = self.joining.lock().await;
                self.open(identity).await.map(drop)
            }
            None => Ok(placement_raft_store::check_restored(&self.config.data_dir)?),
        }
    }

    /// Refuses a data directory of another cluster than the configured `cluster_id`.
    fn check_binding(&self, identity: &Identity) -> Result<(), StartError> {
        let bound = self.config.cluster_id.unwrap_or(identity.cluster);
        self.must_be(identity, bound)
    }

    fn must_be(&self, identity: &Identity, expected: Uuid) -> Result<(), StartError> {
        if identity.cluster == expected {
            return Ok(());
        }
        let dir = self.config.data_dir.clone();
        Err(OpenError::OtherCluster(dir, *identity, expected).into())
    }

    /// Refuses a data directory that belongs to another cluster than the configured members, or
    /// that is an older copy of this node's directory. Members that do not answer in time are
    /// ignored, because a node must be able to start alone.
    async fn check_neighbours(&self, identity: &Identity) -> Result<(), StartError> {
        let named = self.config.cluster.join.iter().cloned();
        let others = self
            .config
            .initial_members
            .iter()
            .filter(|member| member.id != identity.node)
            .map(|member| (Some(member.id), member.address.clone()))
            .chain(named.map(|address| (None, address)));
        let heartbeat = Duration::from_millis(self.config.raft.heartbeat_ms);
        let within = CHECK_MIN.max(CHECK_HEARTBEATS * heartbeat);
        let asked = others.map(|(id, address)| async move {
            let asked = self.ask_neighbour(id, &address, identity.node, within);
            timeout(within, asked).await.ok()?
        });
        let dir = &self.config.data_dir;
        let start = placement_raft_store::boots(dir)? + 1;
        let former = placement_raft_store::former_clusters(dir)?;
        for (cluster, last) in join_all(asked).await.into_iter().flatten() {
            // This node was recovered alone from that cluster: nodes that still belong to it are
            // rejected, and their answers do not count.
            if former.contains(&cluster) {
                continue;
            }
            self.must_be(identity, cluster)?;
            if let Some(last) = last.filter(|last| *last >= start)
                && !mutant!("reuse-boots" | "older-copy-takes-part")
            {
                RarePath::OlderCopyRefused.ran();
                return Err(StartError::OlderCopy {
                    dir: dir.clone(),
                    reason: older_copy(start, last),
                });
            }
        }
        Ok(())
    }

    /// The cluster that another node takes part in, and the last start of `me` that has written
    /// there.
    async fn ask_neighbour(
        &self,
        id: Option<u64>,
        address: &str,
        me: u64,
        within: Duration,
    ) -> Option<(Uuid, Option<u64>)> {
        let who = (self.peers).introduce::<_, Introduction>(address, Method::Probe, &(), within);
        let last = (self.peers).introduce(address, Method::LastStart, &me, within);
        // Sends both requests at the same time, because round trips may be long.
        let (who, last) = join(who, last).await;
        let who = who.ok()?;
        let is_meant = id.unwrap_or(who.node) == who.node && who.node != me;
        let cluster = who.cluster.filter(|_| who.formed && is_meant)?;
        Some((cluster, last.ok().flatten()))
    }

    /// Accepts an invitation, if this node has no data or accepted the same one before.
    pub(crate) async fn accept(self: &Arc<Self>, invited: Identity) -> Result<(), Denied> {
        let (me, node) = (self.config.node_id, invited.node);
        if node != me {
            return Err(Denied::Refused(format!(
                "this is node {me}, not node {node}"
            )));
        }
        let denied = |error: StartError| Denied::Refused(error.to_string());
        self.check_binding(&invited).map_err(denied)?;
        self.create(invited).await.map(drop).map_err(denied)
    }

    /// Creates the data directory for this identity, and starts as a member.
    async fn create(self: &Arc<Self>, identity: Identity) -> Result<Arc<Running>, StartError> {
        let _joining = self.joining.lock().await;
        if let Some(running) = self.slot.get() {
            let mine = running.replica.identity;
            if mine == identity {
                return Ok(running);
            }
            return Err(StartError::Joined {
                node: mine.node,
                cluster: mine.cluster,
            });
        }
        let dir = self.config.data_dir.clone();
        runtime::blocking(move || placement_raft_store::create(&dir, identity)).await?;
        log!(
            DATA_DIRECTORY_CREATED,
            cluster = %identity.cluster,
            node = identity.node,
            "created the data directory of a member of the cluster"
        );
        self.open(identity).await
    }

    async fn open(self: &Arc<Self>, identity: Identity) -> Result<Arc<Running>, StartError> {
        let bootstrap = self.clone();
        // Run by `tasks`, so that an operator's request does not start Raft on the threads that
        // serve requests.
        let started = self
            .tasks
            .run(async move { start(&bootstrap, identity).await });
        let running = started.await?;
        self.slot.set(running.clone());
        Ok(running)
    }

    /// Forms the cluster of the configured initial members, if this node has the lowest number and
    /// the cluster is not formed yet.
    pub async fn form(self: Arc<Self>) {
        // A node that joins notes its own reasons, and gets calls before it has its data.
        if self.slot.get().is_none() && !self.config.cluster.joins() {
            self.slot.note_outside(OUTSIDE);
        }
        let members: BTreeMap<u64, String> = (self.config.initial_members.iter())
            .map(|member| (member.id, member.address.clone()))
            .collect();
        let first = members.keys().next();
        if first != Some(&self.config.node_id) {
            if self.slot.get().is_none() {
                match first {
                    Some(first) => {
                        log!(
                            WAITING_FOR_CLUSTER,
                            first,
                            "waiting for node {first} to form the cluster"
                        )
                    }
                    None if self.config.cluster.joins() => {}
                    None => log!(
                        WAITING_FOR_CLUSTER,
                        "waiting for an operator to form a cluster (`placementctl init`)"
                    ),
                }
            }
            return;
        }
        if let Err(reason) = self.may_form() {
            log!(CLUSTER_REFUSED, reason, "cannot form a cluster");
            return;
        }
        let mut logged = String::new();
        loop {
            if self.is_formed() {
                return;
            }
            match self.try_to_form(&members).await {
                Ok(()) => return,
                Err(reason) => {
                    if logged != reason {
                        log!(CLUSTER_NOT_FORMED, reason, "the cluster is not formed yet");
                        logged = reason;
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Notes that a member of a formed cluster calls this node, which has no data: the cluster was
    /// formed with this node.
    pub(crate) fn note_lost_data(&self) {
        let me = self.config.node_id;
        let words = format!(
            "this node has no data, although it is a member of a cluster: mount its data directory \
             and start it again, or replace it with `placementctl replace {me}`"
        );
        if self.slot.renote_outside(&words) {
            log!(DATA_LOST, node = me, "{words}");
        }
    }

    /// Forms a cluster of this node alone, or with `members`, at an operator's request.
    pub async fn form_on_demand(
        self: &Arc<Self>,
        mut members: BTreeMap<u64, String>,
    ) -> Result<(), String> {
        if self.is_formed() {
            return Err("this node already belongs to a formed cluster".to_owned());
        }
        self.may_form()?;
        members
            .entry(self.config.node_id)
            .or_insert_with(|| self.addresses.peer.clone());
        self.try_to_form(&members).await
    }

    /// A node with a configured `cluster_id` and no data must not form a cluster.
    fn may_form(&self) -> Result<(), String> {
        match (self.slot.get(), self.config.cluster_id) {
            (None, Some(bound)) => Err(format!(
                "this node is bound to cluster {bound} (cluster_id), and {} is empty. If it is not \
                 mounted, mount it and start again; if its data is lost, replace the node with \
                 `placementctl replace {}`; to form a new cluster, remove cluster_id from the \
                 configuration",
                self.config.data_dir.display(),
                self.config.node_id
            )),
            _ => Ok(()),
        }
    }

    async fn try_to_form(self: &Arc<Self>, members: &BTreeMap<u64, String>) -> Result<(), String> {
        let (found, left) = self.survey_members(members).await?;
        let identity = match (self.slot.get(), left) {
            (Some(running), _) => running.replica.identity,
            (None, left) => {
                let cluster = left.unwrap_or_else(|| self.env.ids.uuid());
                Identity::for_new_cluster(cluster, self.config.node_id)
            }
        };
        let created = self.create(identity).await;
        let running = created.map_err(|error| error.to_string())?;
        for (id, address) in members {
            if *id != identity.node {
                invite(&self.peers, identity, *id, address)
                    .await
                    .map_err(|error| format!("node {id} at {address} did not join: {error}"))?;
            }
        }
        running
            .replica
            .raft
            .initialize(found)
            .await
            .map_err(|error| format!("cannot write the first membership: {error}"))?;
        // Raft's metrics, from which this node's introduction is made, are updated only after the
        // answer.
        let known = running.replica.raft.wait(None);
        let known = known.log_index_at_least(Some(0), "the first membership");
        known.await.map_err(|error| error.to_string())?;
        let members: Vec<String> = members.keys().map(u64::to_string).collect();
        let members = members.join(", ");
        log!(
            CLUSTER_FORMED,
            cluster = %identity.cluster,
            members,
            "the cluster is formed"
        );
        Ok(())
    }

    /// Asks all other members for their introduction. Returns the members, and the cluster id that
    /// some of them have from an interrupted attempt.
    async fn survey_members(
        &self,
        members: &BTreeMap<u64, String>,
    ) -> Result<(BTreeMap<u64, Member>, Option<Uuid>), String> {
        let mut found = BTreeMap::new();
        let mut left = self.peers.cluster();
        for (id, address) in members {
            let who: Introduction = if *id == self.config.node_id {
                self.introduction()
            } else {
                self.peers
                    .introduce(address, Method::Probe, &(), CALL)
                    .await
                    .map_err(|error| format!("node {id} at {address} does not answer: {error}"))?
            };
            if who.node != *id {
                return Err(format!(
                    "node {} answers at {address}, not node {id}",
                    who.node
                ));
            }
            if who.formed {
                return Err(format!(
                    "node {id} already belongs to cluster {}. If this node has lost its data, \
                     replace it with `placementctl replace {}`",
                    who.cluster.unwrap_or_default(),
                    self.config.node_id
                ));
            }
            match (left, who.cluster) {
                (Some(left), Some(cluster)) if left != cluster => {
                    return Err(format!(
                        "node {id} was invited to cluster {cluster}, another node to {left}: empty \
                         the data directories and start again"
                    ));
                }
                (None, cluster) => left = cluster,
                _ => {}
            }
            let member = Member {
                api: who.api,
                // The address in the list is known to work from this node.
                peer: address.clone(),
                admin: who.admin,
                // The node reports its name and its site itself, as soon as it can.
                ..Member::default()
            };
            found.insert(*id, member);
        }
        Ok((found, left))
    }
}

/// URL of an HTTP address.
fn url(is_tls: bool, address: &str) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}
