//! The admin door of a node: status, membership, leadership. It is another listener than the
//! REST API's, speaks HTTP and JSON, and is meant for operators on a private network.
//!
//! | request | does |
//! |---|---|
//! | `GET /v1/status` | this node's [`NodeStatus`] |
//! | `POST /v1/init` with `{"members": {"ID": "host:port"}}` | forms a cluster of these nodes, or of this one alone |
//! | `POST /v1/members` with a [`NewMember`] | adds a fresh node as learner |
//! | `POST /v1/members/{id}/promote` | makes a learner that has caught up a voter |
//! | `POST /v1/members/{id}/demote` | makes a voter a learner |
//! | `DELETE /v1/members/{id}` | removes a node |
//! | `GET /v1/topology` | a [`Topology`] |
//! | `POST`, `GET /v1/join-tokens`, `DELETE /v1/join-tokens/{id}` | a token with which one node joins |
//! | `POST /v1/leader` with `{"to": id or null}` | hands leadership over |
//! | `POST /v1/drain`, `DELETE /v1/drain` | has the asked node's `/readyz` say 503 and hands its leadership over; takes that back |
//! | `GET /v1/check` | recounts the asked node's state, and gives a [`CheckReport`] |
//! | `GET /v1/partitions`, `POST /v1/partitions`, `PUT /v1/partitions/{name}`, `DELETE /v1/partitions/{name}` | the partitions of the cluster |
//! | `POST /v1/compact` | writes this node's state down and drops the log entries it covers |
//!
//! | the same below `/v1/nodes/{id}/`: `status`, `check`, `drain`, `compact` | what another node is asked, through this one |
//!
//! Any node answers; what only the leader can do is passed on to it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;
use crate::topology::Topology;

/// What a node is in the Raft group right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// Takes writes to the log.
    Leader,
    /// Votes and replicates.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Replicates without a vote.
    Learner,
    /// Belongs to no cluster yet.
    Waiting,
    /// Was removed from its cluster.
    Removed,
    /// Is stopping or has stopped taking part.
    Shutdown,
}

/// What the membership says a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Counts for the majority.
    Voter,
    /// Receives the log, does not count.
    Learner,
}

/// One line of the membership as the asked node knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The node's id, never used again after a removal.
    pub id: u64,
    /// What it is called; empty: the asked node knows no names.
    #[serde(default)]
    pub name: String,
    /// Voter or learner.
    pub role: MemberRole,
    /// Where the other nodes reach it, `host:port`.
    pub peer: String,
    /// Where clients reach its REST API, `host:port`.
    pub api: String,
    /// Where operators reach its admin door, `host:port`; empty: nowhere but on its machine.
    pub admin: String,
    /// The region in which it stands; empty: it names none.
    #[serde(default)]
    pub region: String,
    /// The zone of that region, likewise.
    #[serde(default)]
    pub zone: String,
    /// How far the leader knows this node's log to reach; only the leader can say.
    #[serde(default)]
    pub matched: Option<u64>,
}

/// A node to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMember {
    /// An id that no node of this cluster has ever had.
    pub id: u64,
    /// Where the other nodes reach it, `host:port`.
    pub peer: String,
    /// Where clients reach its REST API, `host:port`; empty: as the node says itself.
    pub api: String,
    /// Where operators reach its admin door, `host:port`; empty: as the node says itself.
    pub admin: String,
}

/// The way to another node, measured there and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRoundTrip {
    /// The other node.
    pub node: u64,
    /// The shortest of the last minute or two, in milliseconds: what the distance takes.
    pub ms: f64,
    /// The smoothed mean, in milliseconds, with what waits on the way.
    pub mean_ms: f64,
}

/// What a node says of itself. Indexes are Raft log indexes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// This node.
    pub node_id: u64,
    /// The cluster it belongs to; `None` before it is bootstrapped or has joined.
    pub cluster_id: Option<String>,
    /// What it is.
    pub role: NodeRole,
    /// Its Raft term.
    pub term: u64,
    /// The leader it knows.
    pub leader: Option<u64>,
    /// The last entry of its log.
    pub last_log: Option<u64>,
    /// The last entry it knows to be committed.
    pub committed: Option<u64>,
    /// The last entry it has applied.
    pub applied: Option<u64>,
    /// The last entry its newest snapshot covers.
    pub snapshot: Option<u64>,
    /// The last entry purged from its log.
    pub purged: Option<u64>,
    /// Why its disk cannot be used, if so.
    #[serde(default)]
    pub storage_failure: Option<String>,
    /// The digest of its state: equal on all nodes at an equal `applied`, if they agree on what is
    /// before the point, the form of the rows that it was computed over.
    #[serde(default)]
    pub digest: Option<String>,
    /// The feature level of the cluster, as far as it has applied it.
    #[serde(default)]
    pub level: Option<u32>,
    /// The highest feature level to which it agrees.
    #[serde(default)]
    pub level_max: Option<u32>,
    /// The version of its binary.
    #[serde(default)]
    pub version: Option<String>,
    /// Whether it is ready, as `/readyz` says.
    #[serde(default)]
    pub ready: bool,
    /// Why not.
    #[serde(default)]
    pub not_ready: Option<String>,
    /// When its last good backup was made, in seconds since 1970, if it makes any by itself.
    #[serde(default)]
    pub last_backup: Option<u64>,
    /// Whether it makes any by itself; `None`: it does not say.
    #[serde(default)]
    pub makes_backups: Option<bool>,
    /// What is wrong with the backups that it makes by itself.
    #[serde(default)]
    pub backup_problem: Option<String>,
    /// By `section.key`, the values of its settings that are to be the same on all nodes, and digests of the
    /// policies; empty: it does not say.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// What of its configuration does not fit the partitions of the cluster.
    #[serde(default)]
    pub routing_problem: Option<String>,
    /// Bytes of the files in its data directory.
    #[serde(default)]
    pub disk_used_bytes: Option<u64>,
    /// Bytes that are free on its disk.
    #[serde(default)]
    pub disk_free_bytes: Option<u64>,
    /// The partitions beside the default one, by name.
    #[serde(default)]
    pub partitions: Vec<String>,
    /// The membership it knows.
    pub members: Vec<Member>,
    /// The ways to those members that it has measured.
    #[serde(default)]
    pub round_trips: Vec<MeasuredRoundTrip>,
    /// Why the times of elections do not fit them, if so.
    #[serde(default)]
    pub round_trip_problem: Option<String>,
    /// How far its wall clock is ahead of those of a majority of the voters, if it is too far.
    #[serde(default)]
    pub clock_problem: Option<String>,
}

/// A token with which one node joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinToken {
    /// The number that its node has.
    pub id: u64,
    /// The token itself, shown once: when it is made.
    #[serde(default)]
    pub token: Option<String>,
    /// When it ends, in seconds since 1970.
    pub until: i64,
    /// `open`; `used`: a node has come with it; `joined`: that is a member; `over`.
    pub state: String,
    /// In whose place its node comes, as long as it has not.
    pub replaces: Option<u64>,
}

#[derive(Deserialize)]
struct JoinTokens {
    join_tokens: Vec<JoinToken>,
}

/// A partition: a cloud of its own in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// What stands for it in the log; `None`: the asked node serves it, but the cluster does not have it.
    pub id: Option<u16>,
    /// When it was made, in microseconds since 1970; `None` for the default one.
    pub created_at: Option<i64>,
    /// Resource providers in it.
    pub providers: u64,
    /// Consumers in it.
    pub consumers: u64,
    /// The region in which its cloud is, as the asked node is configured; empty: it names none.
    #[serde(default)]
    pub region: String,
    /// Which requests are its own: by its routes, and by the listener that the asked node has for it.
    pub ways: Vec<String>,
}

/// What a check of one node's state has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// The node.
    pub node_id: u64,
    /// The last entry of the state that was looked at.
    pub applied: Option<u64>,
    /// By their entries: digests of the node's states.
    pub digests: BTreeMap<u64, String>,
    /// How many providers there are.
    pub providers: u64,
    /// How many consumers there are.
    pub consumers: u64,
    /// What must not be.
    pub wrong: Vec<Finding>,
    /// What may be, and few clouds want.
    pub noticed: Vec<Finding>,
}

/// One kind of finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// How often.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<String>,
}

#[derive(Deserialize)]
struct MaybeLeading {
    leader: Option<u64>,
}

#[derive(Deserialize)]
struct Leading {
    leader: u64,
}

/// The admin doors of one cluster.
#[derive(Clone)]
pub struct Admin {
    client: Client,
    /// The node that is asked, through whichever answers first; `None`: that one itself.
    node: Option<u64>,
}

impl Admin {
    /// Speaks to the admin doors that `client` names as its endpoints.
    pub fn new(client: Client) -> Self {
        Self { client, node: None }
    }

    /// A member's own word: by its door, if it has one that is reached as this one is, else through this one. It is
    /// asked once, for as long as `limit`.
    pub fn of(&self, member: &Member, limit: Duration) -> Result<Self, Error> {
        let through_this = member.admin.is_empty() || self.client.is_of_this_machine();
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

    /// The status of whichever node answers first.
    pub async fn status(&self) -> Result<NodeStatus, Error> {
        self.client
            .call(ApiRequest::get(&self.path("status")))
            .await?
            .json()
    }

    /// The partitions of the cluster, and those that the asked node serves and the cluster does not have.
    pub async fn partitions(&self) -> Result<Vec<Partition>, Error> {
        let request = ApiRequest::get("/v1/partitions");
        self.client.call(request).await?.json()
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
        self.client.call(request).await.map(drop)
    }

    /// Gives a partition these hosts and paths in place of those that it has.
    pub async fn route_partition(
        &self,
        name: &str,
        hosts: &[String],
        prefixes: &[String],
    ) -> Result<(), Error> {
        let body = serde_json::json!({ "hosts": hosts, "prefixes": prefixes });
        let path = format!("/v1/partitions/{name}");
        let request = ApiRequest::new(Method::PUT, &path).json(&body);
        self.client.call(request).await.map(drop)
    }

    /// Deletes a partition with all that is in it; with `force` although consumers hold allocations in it.
    pub async fn delete_partition(&self, name: &str, force: bool) -> Result<(), Error> {
        let path = format!("/v1/partitions/{name}?force={force}");
        let request = ApiRequest::new(Method::DELETE, &path);
        self.client.call(request).await.map(drop)
    }

    /// Adds a fresh node as learner. Returns when the leader has committed the change.
    pub async fn add_member(&self, member: &NewMember) -> Result<(), Error> {
        let request = ApiRequest::post("/v1/members").json(member);
        self.client.call(request).await.map(drop)
    }

    /// Makes a learner that has caught up a voter. With `force` although a loss that is to be survived
    /// is not survived then.
    pub async fn promote_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let request = ApiRequest::post(&format!("/v1/members/{id}/promote?force={force}"));
        self.client.call(request).await.map(drop)
    }

    /// Makes a voter a learner, which goes on serving reads. `force` as in [`Admin::promote_member`].
    pub async fn demote_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let request = ApiRequest::post(&format!("/v1/members/{id}/demote?force={force}"));
        self.client.call(request).await.map(drop)
    }

    /// Removes a node from the cluster. `force` as in [`Admin::promote_member`].
    pub async fn remove_member(&self, id: u64, force: bool) -> Result<(), Error> {
        let path = format!("/v1/members/{id}?force={force}");
        let request = ApiRequest::new(Method::DELETE, &path);
        self.client.call(request).await.map(drop)
    }

    /// Which losses the cluster survives, and what reads and writes cost where, as the node that
    /// answers first knows it with those that answer it.
    pub async fn topology(&self) -> Result<Topology, Error> {
        self.client
            .call(ApiRequest::get("/v1/topology"))
            .await?
            .json()
    }

    /// Makes a token with which one node joins within `ttl_s` seconds: in the place of another one, if that is named;
    /// though that is heard, if that is said.
    pub async fn create_join_token(
        &self,
        ttl_s: u64,
        replaces: Option<u64>,
        though_heard: bool,
    ) -> Result<JoinToken, Error> {
        let body = serde_json::json!({
            "ttl_s": ttl_s, "replaces": replaces, "though_heard": though_heard,
        });
        let request = ApiRequest::post("/v1/join-tokens").json(&body);
        self.client.call(request).await?.json()
    }

    /// What became of the tokens that were made lately.
    pub async fn join_tokens(&self) -> Result<Vec<JoinToken>, Error> {
        let listed: JoinTokens = (self.client.call(ApiRequest::get("/v1/join-tokens")))
            .await?
            .json()?;
        Ok(listed.join_tokens)
    }

    /// Takes a token back that nobody has come with.
    pub async fn revoke_join_token(&self, id: u64) -> Result<(), Error> {
        let request = ApiRequest::new(Method::DELETE, &format!("/v1/join-tokens/{id}"));
        self.client.call(request).await.map(drop)
    }

    /// Hands leadership to a given voter, or to one that the leader chooses. Returns who leads then.
    pub async fn transfer_leader(&self, to: Option<u64>) -> Result<u64, Error> {
        let request = ApiRequest::post("/v1/leader").json(&serde_json::json!({ "to": to }));
        let leading: Leading = self.client.call(request).await?.json()?;
        Ok(leading.leader)
    }

    /// Forms a cluster of these nodes (`id` and `host:port` for the other nodes), all of which run
    /// and belong to none; of the node that answers first alone, if there are none.
    pub async fn init(&self, members: &BTreeMap<u64, String>) -> Result<(), Error> {
        let body = serde_json::json!({ "members": members });
        let request = ApiRequest::post("/v1/init").json(&body);
        self.client.call(request).await.map(drop)
    }

    /// Has the node that answers first say that it is not ready, and hand its leadership over. Returns
    /// who leads then.
    pub async fn drain(&self) -> Result<Option<u64>, Error> {
        let request = ApiRequest::post(&self.path("drain"));
        let leading: MaybeLeading = self.client.call(request).await?.json()?;
        Ok(leading.leader)
    }

    /// Takes [`Admin::drain`] back.
    pub async fn undrain(&self) -> Result<(), Error> {
        let request = ApiRequest::new(Method::DELETE, &self.path("drain"));
        self.client.call(request).await.map(drop)
    }

    /// Has the node that answers first recount its state. Takes a moment, and as much memory there as
    /// the state.
    pub async fn check(&self) -> Result<CheckReport, Error> {
        let request = ApiRequest::get(&self.path("check"));
        self.client.call(request).await?.json()
    }

    /// Has the node that answers first write its state down and drop the log entries that it
    /// covers. Not a backup.
    pub async fn compact(&self) -> Result<(), Error> {
        self.client
            .call(ApiRequest::post(&self.path("compact")))
            .await
            .map(drop)
    }
}
