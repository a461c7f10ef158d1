//! Client of the admin listener of a node, which serves operators on a private network. It is
//! separate from the listener of the REST API and speaks HTTP and JSON.
//!
//! `docs/admin-routes.md` lists the routes. Any node answers; it forwards requests that only the
//! leader can serve. Below `/v1/nodes/{id}/` a node relays requests for another node.

use std::time::Duration;

use bytes::Bytes;
use placement_wire::{
    CheckReport, Drained, ImportReport, InitialMembers, JoinToken, JoinTokens, LeadershipTransfer,
    Member, NewJoinToken, NewLeader, NewPartition, NodeStatus, Partition, PartitionRoutes,
    Topology,
};

use crate::client::Client;
use crate::consistency::Consistency;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::request::{ApiRequest, encode};
use crate::response::ApiResponse;

/// Timeout of an import.
const IMPORT_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// A client of the admin listeners of one cluster. Its requests are for one selected node, or for
/// the first node that answers.
#[derive(Clone)]
pub struct Admin {
    client: Client,
    /// The selected node; the first node that answers relays requests to it. `None`: the first node
    /// that answers handles the requests itself.
    node: Option<u64>,
}

impl Admin {
    /// Uses the endpoints of `client`, which must be admin listeners.
    pub fn new(client: Client) -> Self {
        Self { client, node: None }
    }

    /// A client for one member. It sends each request once, with the timeout `limit`, directly to
    /// the member's admin listener. If the member has none on the network, or this client uses a
    /// Unix socket, a node of this client relays the requests.
    pub fn for_member(&self, member: &Member, limit: Duration) -> Result<Self, Error> {
        // Other nodes cannot be reached through the Unix socket of this machine.
        let is_local = self.client.endpoints().iter().all(Endpoint::is_socket);
        if member.admin.is_empty() || is_local {
            return Ok(self.relayed(member.id, limit));
        }
        let client = self.client.for_endpoint(&member.admin)?;
        Ok(Self { client, node: None }.without_repetition(limit))
    }

    /// A client for one member whose requests a node of this client relays. It sends each request
    /// once, with the timeout `limit`.
    pub fn relayed(&self, member: u64, limit: Duration) -> Self {
        let node = Some(member);
        let client = self.client.clone();
        Self { client, node }.without_repetition(limit)
    }

    /// A client that sends each request at most once to each endpoint, with the timeout `limit`.
    pub fn without_repetition(&self, limit: Duration) -> Self {
        let client = self.client.clone().with_patience(Duration::ZERO);
        Self {
            client: client.with_attempt_timeout(limit),
            node: self.node,
        }
    }

    /// The path of a request for the selected node.
    fn path(&self, what: &str) -> String {
        match self.node {
            None => format!("/v1/{what}"),
            Some(id) => format!("/v1/nodes/{id}/{what}"),
        }
    }

    /// The REST API of a partition for operators: it needs neither a token nor Keystone.
    pub fn placement(&self, partition: &str) -> Client {
        let path = self.path(&format!("placement/{}", encode(partition)));
        self.client.clone().with_prefix(&path)
    }

    /// Sends GET for a path below `/v1`, such as `log`; needs no quorum. A successful body is
    /// truncated to `bytes_max` bytes; the second value is `true` if it was longer. Errors are
    /// those of [`Client::request`].
    pub async fn look(&self, what: &str, bytes_max: usize) -> Result<(ApiResponse, bool), Error> {
        let request = ApiRequest::get(&self.path(what)).consistency(Consistency::Local);
        self.client.request_at_most(request, bytes_max).await
    }

    /// The status of the selected node, or of the first node that answers.
    pub async fn status(&self) -> Result<NodeStatus, Error> {
        self.client.read(&self.path("status")).await
    }

    /// The partitions of the cluster, and those that exist only in the configuration of the queried
    /// node.
    pub async fn partitions(&self) -> Result<Vec<Partition>, Error> {
        self.client.read("/v1/partitions").await
    }

    /// Creates a partition, which is empty at first.
    pub async fn create_partition(&self, new: &NewPartition) -> Result<(), Error> {
        let request = ApiRequest::post("/v1/partitions").json(new);
        self.client.execute(request).await
    }

    /// Replaces the routes of a partition.
    pub async fn route_partition(&self, name: &str, routes: &PartitionRoutes) -> Result<(), Error> {
        let request = ApiRequest::put(&format!("/v1/partitions/{name}")).json(routes);
        self.client.execute(request).await
    }

    /// Deletes a partition with its content; fails without `force` if it has allocations.
    pub async fn delete_partition(&self, name: &str, force: bool) -> Result<(), Error> {
        let path = format!("/v1/partitions/{name}?force={force}");
        self.client.execute(ApiRequest::delete(&path)).await
    }

    /// Fills an empty partition without routes with the content of a backup. The timeout is one
    /// day. The request is not repeated; without a response, the partition may be partly filled.
    pub async fn import_into_partition(
        &self,
        name: &str,
        backup: impl Into<Bytes>,
    ) -> Result<ImportReport, Error> {
        let path = format!("/v1/partitions/{}/content", encode(name));
        let client = self.client.clone().with_attempt_timeout(IMPORT_LIMIT);
        let client = client.without_notice();
        client.fetch(ApiRequest::put(&path).body(backup)).await
    }

    /// Makes a learner that has caught up a voter. Unless `force` is set, fails if the cluster
    /// would then not tolerate the failure that `[cluster] survive` requires it to tolerate.
    pub async fn promote_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let request = ApiRequest::post(&format!("/v1/members/{id}/promote?force={force}"));
        self.client.execute(request).await
    }

    /// Demotes a voter to a learner. A learner still serves reads. `force` has the same meaning as
    /// in [`Admin::promote_member`].
    pub async fn demote_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let request = ApiRequest::post(&format!("/v1/members/{id}/demote?force={force}"));
        self.client.execute(request).await
    }

    /// Removes a node from the cluster. `force` has the same meaning as in
    /// [`Admin::promote_member`].
    pub async fn remove_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let path = format!("/v1/members/{id}?force={force}");
        self.client.execute(ApiRequest::delete(&path)).await
    }

    /// Tolerated failures, and the latency of reads and writes at each site, as known to the first
    /// node that answers and the nodes that it reaches.
    pub async fn topology(&self) -> Result<Topology, Error> {
        self.client.read("/v1/topology").await
    }

    /// Creates a token that lets one node join, optionally as the replacement of another node.
    pub async fn create_join_token(&self, new: &NewJoinToken) -> Result<JoinToken, Error> {
        let request = ApiRequest::post("/v1/join-tokens").json(new);
        self.client.fetch(request).await
    }

    /// Recent join tokens with their states.
    pub async fn join_tokens(&self) -> Result<Vec<JoinToken>, Error> {
        let answer: JoinTokens = self.client.read("/v1/join-tokens").await?;
        Ok(answer.join_tokens)
    }

    /// Revokes an unused token.
    pub async fn revoke_join_token(&self, id: u64) -> Result<(), Error> {
        let request = ApiRequest::delete(&format!("/v1/join-tokens/{id}"));
        self.client.execute(request).await
    }

    /// Transfers leadership to the voter `to`, or to a voter that the leader chooses. Returns the
    /// new leader.
    pub async fn transfer_leader(&self, to: Option<u64>) -> Result<u64, Error> {
        let request = ApiRequest::post("/v1/leader").json(&LeadershipTransfer { to });
        let answer: NewLeader = self.client.fetch(request).await?;
        Ok(answer.leader)
    }

    /// Forms a cluster. All its nodes must run and must not belong to a cluster.
    pub async fn init(&self, new: &InitialMembers) -> Result<(), Error> {
        let request = ApiRequest::post("/v1/init").json(new);
        self.client.execute(request).await
    }

    /// Makes the node report that it is not ready, and transfers its leadership. Returns the leader
    /// afterwards.
    pub async fn drain(&self) -> Result<Option<u64>, Error> {
        let request = ApiRequest::post(&self.path("drain"));
        let answer: Drained = self.client.fetch(request).await?;
        Ok(answer.leader)
    }

    /// Ends a drain: the node may lead again. Reverts [`Admin::drain`].
    pub async fn undrain(&self) -> Result<(), Error> {
        let request = ApiRequest::delete(&self.path("drain"));
        self.client.execute(request).await
    }

    /// Makes the node verify its state. During the check it needs additional memory of the size of
    /// its state.
    pub async fn check(&self) -> Result<CheckReport, Error> {
        self.client.read(&self.path("check")).await
    }

    /// Makes the node flush its state to disk and delete the log entries that this state includes.
    /// This is not a backup.
    pub async fn compact(&self) -> Result<(), Error> {
        let request = ApiRequest::post(&self.path("compact"));
        self.client.execute(request).await
    }
}
