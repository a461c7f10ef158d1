//! The admin listener of a node: status, membership, leadership. It is another listener than the
//! REST API's, speaks HTTP and JSON, and is meant for operators on a private network.
//!
//! | request | does |
//! |---|---|
//! | `GET /v1/status` | this node's [`NodeStatus`] |
//! | `POST /v1/init` with `{"members": {"ID": "host:port"}}` | forms a cluster of these nodes, or of this one alone |
//! | `POST /v1/members/{id}/promote` | makes a learner that has caught up a voter |
//! | `POST /v1/members/{id}/demote` | makes a voter a learner |
//! | `DELETE /v1/members/{id}` | removes a node |
//! | `GET /v1/topology` | a [`Topology`] |
//! | `POST`, `GET /v1/join-tokens`, `DELETE /v1/join-tokens/{id}` | a token with which one node joins |
//! | `POST /v1/leader` with `{"to": id or null}` | hands leadership over |
//! | `POST /v1/drain`, `DELETE /v1/drain` | has the asked node's `/readyz` say 503 and hands its leadership over; takes that back |
//! | `GET /v1/check` | recounts the asked node's state, and gives a [`CheckReport`] |
//! | `GET /v1/partitions`, `POST /v1/partitions`, `PUT /v1/partitions/{name}`, `DELETE /v1/partitions/{name}` | the partitions of the cluster |
//! | `PUT /v1/partitions/{name}/content` | fills an empty partition with the content of a backup, and gives an [`ImportReport`] |
//! | `POST /v1/compact` | writes this node's state down and drops the log entries it covers |
//! | any method, `/v1/placement/{partition}/{path}` | the REST API of a partition, without a token |
//! | `GET /v1/log`, `GET /v1/settings`, `GET /v1/metrics`, `GET /v1/host` | text for a support bundle, see [`Admin::look`] |
//! | the same below `/v1/nodes/{id}/`: `status`, `check`, `drain`, `compact`, `log`, `settings`, `metrics`, `host`, `placement` | what another node is asked, through this one |
//!
//! Any node answers; what only the leader can do is passed on to it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use placement_wire::{
    CheckReport, ImportReport, JoinToken, Member, NodeStatus, Partition, Topology,
};

use crate::client::Client;
use crate::consistency::Consistency;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::request::{ApiRequest, encode};
use crate::response::ApiResponse;

/// An import that takes longer is lost.
const IMPORT_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The admin listeners of one cluster.
#[derive(Clone)]
pub struct Admin {
    client: Client,
    /// The node that is asked, through whichever answers first; `None`: that one itself.
    node: Option<u64>,
}

impl Admin {
    /// Speaks to the admin listeners that `client` names as its endpoints.
    pub fn new(client: Client) -> Self {
        Self { client, node: None }
    }

    /// One member: through its admin listener, if that is reached as this one is, else through this
    /// one. It is asked once, for as long as `limit`.
    pub fn of(&self, member: &Member, limit: Duration) -> Result<Self, Error> {
        // Behind a Unix socket no other node can be reached.
        let is_local = self.client.endpoints().iter().all(Endpoint::is_socket);
        let through_this = member.admin.is_empty() || is_local;
        let (client, node) = match through_this {
            true => (self.client.clone(), Some(member.id)),
            false => (self.client.at(&member.admin)?, None),
        };
        let client = (client.with_patience(Duration::ZERO)).with_attempt_timeout(limit);
        Ok(Self { client, node })
    }

    /// A path of the node that is asked.
    fn path(&self, what: &str) -> String {
        match self.node {
            None => format!("/v1/{what}"),
            Some(id) => format!("/v1/nodes/{id}/{what}"),
        }
    }

    /// The REST API of a partition, for operators: it needs no token, and Keystone may be away.
    pub fn placement(&self, partition: &str) -> Client {
        let path = self.path(&format!("placement/{}", encode(partition)));
        self.client.clone().below(&path)
    }

    /// What the node answers to a GET of this path below `/v1`, such as `log`, with or without a
    /// quorum: at most so many bytes of a success, with `true` if there are more, and any other
    /// status but 503.
    pub async fn look(&self, what: &str, bytes_max: usize) -> Result<(ApiResponse, bool), Error> {
        let request = ApiRequest::get(&self.path(what)).consistency(Consistency::Local);
        self.client.request_at_most(request, bytes_max).await
    }

    /// The status of whichever node answers first.
    pub async fn status(&self) -> Result<NodeStatus, Error> {
        self.client.read(&self.path("status")).await
    }

    /// The partitions of the cluster, and those that the asked node serves and the cluster does not
    /// have.
    pub async fn partitions(&self) -> Result<Vec<Partition>, Error> {
        self.client.read("/v1/partitions").await
    }

    /// Makes a partition, whose requests are those for these hosts, or below these paths.
    pub async fn create_partition(
        &self,
        name: &str,
        hosts: &[String],
        prefixes: &[String],
    ) -> Result<(), Error> {
        let body = serde_json::json!({ "name": name, "hosts": hosts, "prefixes": prefixes });
        let request = ApiRequest::post("/v1/partitions").json(&body);
        self.client.execute(request).await
    }

    /// Gives a partition these hosts and paths in place of those that it has.
    pub async fn route_partition(
        &self,
        name: &str,
        hosts: &[String],
        prefixes: &[String],
    ) -> Result<(), Error> {
        let body = serde_json::json!({ "hosts": hosts, "prefixes": prefixes });
        let request = ApiRequest::put(&format!("/v1/partitions/{name}")).json(&body);
        self.client.execute(request).await
    }

    /// Deletes a partition with all that is in it; with `force` although consumers hold allocations
    /// in it.
    pub async fn delete_partition(&self, name: &str, force: bool) -> Result<(), Error> {
        let path = format!("/v1/partitions/{name}?force={force}");
        self.client.execute(ApiRequest::delete(&path)).await
    }

    /// Fills an empty partition without routes with the content of a backup. It takes as long as
    /// that takes, and is not repeated: if no answer comes, a part of it may be there.
    pub async fn import_into_partition(
        &self,
        name: &str,
        backup: impl Into<Bytes>,
    ) -> Result<ImportReport, Error> {
        let path = format!("/v1/partitions/{}/content", encode(name));
        let client = self.client.clone().with_attempt_timeout(IMPORT_LIMIT);
        client.fetch(ApiRequest::put(&path).body(backup)).await
    }

    /// Makes a learner that has caught up a voter. With `force` although a loss that is to be
    /// survived is not survived then.
    pub async fn promote_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let request = ApiRequest::post(&format!("/v1/members/{id}/promote?force={force}"));
        self.client.execute(request).await
    }

    /// Makes a voter a learner, which goes on serving reads. `force` as in
    /// [`Admin::promote_member`].
    pub async fn demote_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let request = ApiRequest::post(&format!("/v1/members/{id}/demote?force={force}"));
        self.client.execute(request).await
    }

    /// Removes a node from the cluster. `force` as in [`Admin::promote_member`].
    pub async fn remove_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let path = format!("/v1/members/{id}?force={force}");
        self.client.execute(ApiRequest::delete(&path)).await
    }

    /// Which losses the cluster survives, and what reads and writes cost where, as the node that
    /// answers first knows it with those that answer it.
    pub async fn topology(&self) -> Result<Topology, Error> {
        self.client.read("/v1/topology").await
    }

    /// Makes a token with which one node joins within `ttl_s` seconds: in the place of another one,
    /// if that is named, and with `though_reachable` even if that one still answers.
    pub async fn create_join_token(
        &self,
        ttl_s: u64,
        replaces: Option<u64>,
        though_reachable: bool,
    ) -> Result<JoinToken, Error> {
        let body = serde_json::json!({
            "ttl_s": ttl_s, "replaces": replaces, "though_reachable": though_reachable,
        });
        let request = ApiRequest::post("/v1/join-tokens").json(&body);
        self.client.fetch(request).await
    }

    /// What became of the tokens that were made lately.
    pub async fn join_tokens(&self) -> Result<Vec<JoinToken>, Error> {
        let request = ApiRequest::get("/v1/join-tokens");
        self.client.fetch_member(request, "join_tokens").await
    }

    /// Revokes a token that no node has used.
    pub async fn revoke_join_token(&self, id: u64) -> Result<(), Error> {
        let request = ApiRequest::delete(&format!("/v1/join-tokens/{id}"));
        self.client.execute(request).await
    }

    /// Hands leadership to a given voter, or to one that the leader chooses. Returns who leads
    /// then.
    pub async fn transfer_leader(&self, to: Option<u64>) -> Result<u64, Error> {
        let request = ApiRequest::post("/v1/leader").json(&serde_json::json!({ "to": to }));
        self.client.fetch_member(request, "leader").await
    }

    /// Forms a cluster of these nodes (`id` and `host:port` for the other nodes), all of which run
    /// and belong to none; of the node that answers first alone, if there are none.
    pub async fn init(&self, members: &BTreeMap<u64, String>) -> Result<(), Error> {
        let body = serde_json::json!({ "members": members });
        let request = ApiRequest::post("/v1/init").json(&body);
        self.client.execute(request).await
    }

    /// Has the node that answers first say that it is not ready, and hand its leadership over.
    /// Returns who leads then.
    pub async fn drain(&self) -> Result<Option<u64>, Error> {
        let request = ApiRequest::post(&self.path("drain"));
        self.client.fetch_member(request, "leader").await
    }

    /// Takes [`Admin::drain`] back.
    pub async fn undrain(&self) -> Result<(), Error> {
        let request = ApiRequest::delete(&self.path("drain"));
        self.client.execute(request).await
    }

    /// Has the node that answers first recount its state. Takes a moment, and as much memory there
    /// as the state.
    pub async fn check(&self) -> Result<CheckReport, Error> {
        self.client.read(&self.path("check")).await
    }

    /// Has the node that answers first write its state down and drop the log entries that it
    /// covers. Not a backup.
    pub async fn compact(&self) -> Result<(), Error> {
        let request = ApiRequest::post(&self.path("compact"));
        self.client.execute(request).await
    }
}
