//! The other nodes: one connection per node and lane, made when needed, kept while it works.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use placement_model::Level;
use placement_raft_store::wire;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use uuid::Uuid;

use super::channel::{CallError, Channel, Lane};
use super::message::{Hello, Method, VERSIONS};
use crate::env::Net;
use crate::tasks::Tasks;

/// Makes and keeps connections to other nodes.
pub(crate) struct Peers {
    net: Arc<dyn Net>,
    me: u64,
    cluster: OnceLock<Uuid>,
    connect: Duration,
    silence: Duration,
    newest: u16,
    tasks: Tasks,
    /// The highest feature level to which this node agrees.
    level: AtomicU32,
    /// What other nodes said of theirs when they were last connected.
    levels: Mutex<BTreeMap<u64, Level>>,
    slots: Mutex<BTreeMap<(u64, Lane), Arc<Slot>>>,
    /// Peers that could not be reached when last tried: said once.
    lost: Mutex<BTreeSet<u64>>,
}

#[derive(Default)]
struct Slot {
    open: Mutex<Option<(String, Channel)>>,
    /// Held while connecting, so that a crowd of callers makes one connection.
    connecting: tokio::sync::Mutex<()>,
}

impl Slot {
    fn get(&self, address: &str) -> Option<Channel> {
        let open = self.open.lock();
        open.as_ref()
            .filter(|(to, channel)| to == address && !channel.is_closed())
            .map(|(_, channel)| channel.clone())
    }

    fn set(&self, address: &str, channel: Channel) {
        let mut open = self.open.lock();
        *open = Some((address.to_owned(), channel));
    }
}

impl Peers {
    pub(crate) fn new(
        net: Arc<dyn Net>,
        me: u64,
        connect: Duration,
        silence: Duration,
        newest: u16,
        tasks: Tasks,
    ) -> Self {
        Self {
            net,
            me,
            newest,
            cluster: OnceLock::new(),
            connect,
            silence,
            tasks,
            level: AtomicU32::new(Level::NEWEST.0),
            levels: Mutex::default(),
            slots: Mutex::default(),
            lost: Mutex::default(),
        }
    }

    /// From now on this node calls as a member of `cluster`.
    pub(crate) fn join(&self, cluster: Uuid) {
        // Set once: a node joins one cluster in its life.
        let _ = self.cluster.set(cluster);
    }

    /// The cluster this node belongs to.
    pub(crate) fn cluster(&self) -> Option<Uuid> {
        self.cluster.get().copied()
    }

    /// The newest version of the protocol that this node speaks.
    pub(crate) fn newest(&self) -> u16 {
        self.newest
    }

    /// From now on this node agrees to feature levels up to this one.
    pub(crate) fn agree_to(&self, level: Level) {
        self.level.store(level.0, Ordering::Relaxed);
    }

    /// The highest feature level to which this node agrees.
    pub(crate) fn level(&self) -> Level {
        Level(self.level.load(Ordering::Relaxed))
    }

    /// The highest feature level to which another node agreed when it was last connected.
    pub(crate) fn level_of(&self, node: u64) -> Option<Level> {
        self.levels.lock().get(&node).copied()
    }

    /// Notes to which feature level another node agrees.
    pub(crate) fn note_level(&self, node: u64, level: Level) {
        self.levels.lock().insert(node, level);
    }

    /// A working connection to a node of this cluster.
    pub(crate) async fn channel(
        &self,
        to: u64,
        address: &str,
        lane: Lane,
    ) -> Result<Channel, CallError> {
        let slot = {
            let mut slots = self.slots.lock();
            slots.entry((to, lane)).or_default().clone()
        };
        if let Some(channel) = slot.get(address) {
            return Ok(channel);
        }
        let _connecting = slot.connecting.lock().await;
        if let Some(channel) = slot.get(address) {
            return Ok(channel);
        }
        let connected = self.connect(Some(to), address, false).await;
        self.note(to, address, connected.as_ref().err());
        let channel = connected?;
        slot.set(address, channel.clone());
        Ok(channel)
    }

    /// Logs when a peer is lost or found again, not each attempt.
    fn note(&self, peer: u64, address: &str, error: Option<&CallError>) {
        let mut lost = self.lost.lock();
        match error {
            Some(error) if lost.insert(peer) => {
                tracing::warn!(peer, address, %error, "a peer cannot be reached");
            }
            None if lost.remove(&peer) => tracing::info!(peer, address, "a peer is reached again"),
            _ => {}
        }
    }

    /// One typed call to a node of this cluster.
    pub(crate) async fn call<Q, A>(
        &self,
        (to, address): (u64, &str),
        lane: Lane,
        method: Method,
        question: &Q,
        deadline: Duration,
    ) -> Result<A, CallError>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let channel = self.channel(to, address, lane).await?;
        let answer = channel
            .call(method, &wire::encode(channel.records(), question), deadline)
            .await?;
        decode(&answer)
    }

    /// One typed call to whoever listens at `address`, of whatever cluster.
    pub(crate) async fn introduce<Q, A>(
        &self,
        address: &str,
        method: Method,
        question: &Q,
        deadline: Duration,
    ) -> Result<A, CallError>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let channel = self.connect(None, address, true).await?;
        let answer = channel
            .call(method, &wire::encode(channel.records(), question), deadline)
            .await;
        channel.close("the introduction is over");
        decode(&answer?)
    }

    async fn connect(
        &self,
        to: Option<u64>,
        address: &str,
        introduction: bool,
    ) -> Result<Channel, CallError> {
        let hello = Hello {
            oldest: *VERSIONS.start(),
            newest: self.newest,
            cluster: self.cluster(),
            from: self.me,
            to,
            introduction,
            level: self.level(),
        };
        let (net, to) = (self.net.clone(), address.to_owned());
        let (connect, silence, tasks) = (self.connect, self.silence, self.tasks.clone());
        // On the node's own runtime, also for a request that is served on another one.
        let opened = self.tasks.run(async move {
            let stream = timeout(connect, net.connect(&to))
                .await
                .map_err(|_| {
                    CallError::NotSent(format!("cannot connect to {to} within {connect:?}"))
                })?
                .map_err(|error| CallError::NotSent(format!("cannot connect to {to}: {error}")))?;
            Channel::open(stream, &hello, silence, &tasks).await
        });
        let (channel, welcome) = opened.await?;
        self.note_level(welcome.node, welcome.level);
        tracing::debug!(
            node = welcome.node,
            address,
            version = welcome.version,
            "connected"
        );
        Ok(channel)
    }
}

pub(crate) fn decode<A: DeserializeOwned>(answer: &[u8]) -> Result<A, CallError> {
    wire::decode(answer).map_err(|error| CallError::Failed(format!("an answer that is {error}")))
}
