//! Connections to the other nodes: one per node and lane. A connection is opened when it is needed,
//! and kept while it works.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use placement_base::log_messages::log;
use placement_base::tasks::Tasks;
use placement_model::Level;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::acknowledgements::Acknowledgements;
use crate::tls::Link;
use crate::transport::channel::{CallError, Channel, Extras};
use crate::transport::damage::Damage;
use crate::transport::greeting::{Hello, VERSIONS};
use crate::transport::method::{Lane, Method};
use crate::transport::packing::Traffic;
use crate::transport::round_trips::RoundTrips;

/// Opens and keeps connections to other nodes.
pub struct Peers {
    link: Link,
    pub(super) me: u64,
    cluster: OnceLock<Uuid>,
    connect: Duration,
    silence: Duration,
    tasks: Tasks,
    /// The highest feature level that this node supports.
    level: AtomicU32,
    /// Feature levels of other nodes when this node last connected to them.
    levels: Mutex<BTreeMap<u64, Level>>,
    /// Addresses of the members, as this node knows them.
    addresses: Mutex<BTreeMap<u64, String>>,
    /// Connections, with their addresses.
    slots: Mutex<BTreeMap<(u64, Lane), (String, Attempt)>>,
    /// The nodes that could not be reached at the last attempt, with the reason.
    lost: watch::Sender<BTreeMap<u64, String>>,
    /// Round trips to the other nodes, and the clocks of these nodes.
    pub round_trips: Arc<RoundTrips>,
    /// How long the other nodes take to acknowledge the log entries that this node sends.
    pub acknowledgements: Acknowledgements,
    /// Bytes sent to each node.
    pub traffic: Traffic,
    /// Damaged frames, on connections in both directions.
    pub damage: Arc<Damage>,
    /// The region of this node.
    pub region: String,
}

/// The text of a network error for people, without the error number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// A connection, or the attempt to open one. All callers share it; the attempt continues if a
/// caller stops waiting.
type Attempt = watch::Receiver<Option<Result<Channel, CallError>>>;

/// Whether a connection works or is being opened.
fn is_usable(attempt: &Attempt) -> bool {
    match &*attempt.borrow() {
        None => attempt.has_changed().is_ok(),
        Some(connected) => (connected.as_ref()).is_ok_and(|channel| !channel.is_closed()),
    }
}

impl Peers {
    pub fn new(
        link: Link,
        me: u64,
        region: String,
        connect: Duration,
        silence: Duration,
        tasks: Tasks,
    ) -> Self {
        Self {
            link,
            me,
            cluster: OnceLock::new(),
            connect,
            silence,
            tasks,
            level: AtomicU32::new(Level::NEWEST.0),
            levels: Mutex::default(),
            addresses: Mutex::default(),
            slots: Mutex::default(),
            lost: watch::Sender::default(),
            round_trips: Arc::default(),
            acknowledgements: Acknowledgements::default(),
            traffic: Traffic::default(),
            damage: Arc::default(),
            region,
        }
    }

    /// From now on, this node connects to others as a member of `cluster`.
    pub fn join(&self, cluster: Uuid) {
        // Setting it twice is ignored: a node joins only one cluster in its life.
        let _ = self.cluster.set(cluster);
    }

    /// The cluster that this node belongs to.
    pub fn cluster(&self) -> Option<Uuid> {
        self.cluster.get().copied()
    }

    /// From now on, this node supports feature levels up to `level`.
    pub fn agree_to(&self, level: Level) {
        self.level.store(level.0, Ordering::Relaxed);
    }

    /// The highest feature level that this node supports.
    pub fn level(&self) -> Level {
        Level(self.level.load(Ordering::Relaxed))
    }

    /// The highest feature level that another node supported when it was last connected.
    pub fn level_of(&self, node: u64) -> Option<Level> {
        self.levels.lock().get(&node).copied()
    }

    /// Address of a member, as far as this node knows.
    pub(crate) fn address_of(&self, node: u64) -> Option<String> {
        self.addresses.lock().get(&node).cloned()
    }

    /// Records the addresses of the members.
    pub fn note_addresses(&self, addresses: BTreeMap<u64, String>) {
        *self.addresses.lock() = addresses;
    }

    /// Records the highest feature level that another node supports.
    pub fn note_level(&self, node: u64, level: Level) {
        self.levels.lock().insert(node, level);
    }

    /// A working connection to a node of this cluster.
    pub async fn channel(
        self: &Arc<Self>,
        to: u64,
        address: &str,
        lane: Lane,
    ) -> Result<Channel, CallError> {
        let mut attempt = {
            let mut slots = self.slots.lock();
            match slots.get(&(to, lane)) {
                Some((at, attempt)) if at == address && is_usable(attempt) => attempt.clone(),
                _ => {
                    let attempt = self.begin(to, address.to_owned(), lane);
                    slots.insert((to, lane), (address.to_owned(), attempt.clone()));
                    attempt
                }
            }
        };
        let ended = attempt.wait_for(Option::is_some).await;
        let connected = ended.ok().and_then(|connected| connected.clone());
        connected.unwrap_or_else(|| Err(CallError::NotSent("this node stops".to_owned())))
    }

    /// Measures the round trip to a node, if the connection for urgent messages (`Lane::Control`)
    /// is open.
    pub fn measure_if_connected(&self, to: u64) {
        if let Some(channel) = self.connected(to, Lane::Control) {
            channel.ping();
        }
    }

    /// Closes the connection of one lane to a node, if it is open. All calls on it fail.
    pub fn close(&self, to: u64, lane: Lane, reason: &str) {
        if let Some(channel) = self.connected(to, lane) {
            channel.close(reason);
        }
    }

    fn connected(&self, to: u64, lane: Lane) -> Option<Channel> {
        let slots = self.slots.lock();
        let (_, attempt) = slots.get(&(to, lane))?;
        attempt.borrow().as_ref()?.as_ref().ok().cloned()
    }

    fn begin(self: &Arc<Self>, to: u64, address: String, lane: Lane) -> Attempt {
        let (ended, attempt) = watch::channel(None);
        let peers = self.clone();
        self.tasks.spawn(async move {
            let connected = peers.connect(Some(to), &address, Some(lane)).await;
            peers.note(to, &address, connected.as_ref().err());
            ended.send_replace(Some(connected));
        });
        attempt
    }

    /// Logs when a peer becomes unreachable, and when it is reachable again, but not every attempt.
    fn note(&self, peer: u64, address: &str, error: Option<&CallError>) {
        self.lost.send_if_modified(|lost| match error {
            Some(error) => {
                let is_new = lost.insert(peer, error.to_string()).is_none();
                if is_new {
                    log!(PEER_UNREACHABLE, peer, address, %error, "a peer cannot be reached");
                }
                is_new
            }
            None if lost.remove(&peer).is_some() => {
                log!(PEER_REACHABLE, peer, address, "a peer is reachable again");
                true
            }
            None => false,
        });
    }

    /// Subscribes to the peers that were unreachable at the last attempt, with the reasons. A
    /// change of the reason is not reported.
    pub fn lost(&self) -> watch::Receiver<BTreeMap<u64, String>> {
        self.lost.subscribe()
    }

    /// One typed call to a node of this cluster.
    pub async fn call<Q: Serialize + Sync, A: DeserializeOwned>(
        self: &Arc<Self>,
        to: u64,
        address: &str,
        method: Method,
        question: &Q,
        deadline: Duration,
    ) -> Result<A, CallError> {
        let channel = self.channel(to, address, method.lane()).await?;
        channel.ask(method, question, deadline).await
    }

    /// One typed call to the node that listens at `address`, which may belong to another cluster or
    /// to none.
    pub async fn introduce<Q: Serialize + Sync, A: DeserializeOwned>(
        self: &Arc<Self>,
        address: &str,
        method: Method,
        question: &Q,
        deadline: Duration,
    ) -> Result<A, CallError> {
        let channel = self.connect(None, address, None).await?;
        let answer = channel.ask(method, question, deadline).await;
        channel.close("the introduction is over");
        answer
    }

    /// Connects on the node's own runtime, even if the caller runs on another one. `lane` is `None`
    /// for an introduction.
    async fn connect(
        self: &Arc<Self>,
        to: Option<u64>,
        address: &str,
        lane: Option<Lane>,
    ) -> Result<Channel, CallError> {
        let (peers, address) = (self.clone(), address.to_owned());
        let opened = async move { peers.open(to, &address, lane).await };
        self.tasks.run(opened).await
    }

    async fn open(
        &self,
        to: Option<u64>,
        address: &str,
        lane: Option<Lane>,
    ) -> Result<Channel, CallError> {
        let not_sent =
            |reason: String| CallError::NotSent(format!("cannot connect to {address}{reason}"));
        let (stream, certificate) = timeout(self.connect, self.link.connect(address, to))
            .await
            .map_err(|_| not_sent(format!(" within {:?}", self.connect)))?
            .map_err(|error| not_sent(format!(": {}", plain(&error))))?;
        let hello = Hello {
            oldest: *VERSIONS.start(),
            newest: *VERSIONS.end(),
            cluster: self.cluster(),
            from: self.me,
            to,
            introduction: lane.is_none(),
            level: self.level().0,
            region: self.region.clone(),
        };
        // Round trips are not measured on the other lanes, where pings may have to wait for long
        // messages.
        let is_measured = lane == Some(Lane::Control);
        let extras = Extras {
            round_trips: is_measured.then(|| self.round_trips.clone()),
            sent: to.map(|to| self.traffic.to(to)).unwrap_or_default(),
            damage: self.damage.clone(),
        };
        let opened = Channel::open(stream, &hello, self.silence, extras, &self.tasks);
        let (channel, welcome) = opened.await?;
        if certificate.is_some_and(|certificate| !certificate.belongs_to_node(welcome.node)) {
            let reason = format!(
                "it claims to be node {}, but its certificate belongs to another node",
                welcome.node
            );
            channel.close(&reason);
            return Err(CallError::Refused(reason));
        }
        tracing::debug!(
            node = welcome.node,
            address,
            version = welcome.version,
            "connected"
        );
        self.note_level(welcome.node, Level(welcome.level));
        if is_measured {
            // The first ping is sent before any call, so that a node that is elected soon knows the
            // clocks of its voters.
            channel.ping();
        }
        Ok(channel)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use tokio::sync::Semaphore;

    use super::*;
    use placement_base::net::{BoxStream, Listener, Net};

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A network on which connections fail when the test permits it.
    struct Slow {
        tried: AtomicUsize,
        may_fail: Semaphore,
    }

    impl Net for Slow {
        fn bind<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
            unreachable!("these tests do not listen")
        }

        fn connect<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
            Box::pin(async {
                self.tried.fetch_add(1, Ordering::Relaxed);
                self.may_fail.acquire().await.unwrap().forget();
                Err(io::ErrorKind::ConnectionRefused.into())
            })
        }
    }

    #[tokio::test]
    async fn attempt_to_connect_goes_on_when_its_first_caller_gives_up() {
        let net = Arc::new(Slow {
            tried: AtomicUsize::new(0),
            may_fail: Semaphore::new(0),
        });
        let tasks = Tasks::default();
        let peers = Peers::new(
            Link::new(net.clone(), None),
            1,
            String::new(),
            PATIENCE,
            PATIENCE,
            tasks.clone(),
        );
        let peers = Arc::new(peers);
        let lost = peers.lost();
        let impatient = peers.channel(2, "two:1", Lane::Log);
        let gave_up = timeout(Duration::from_millis(20), impatient).await;
        assert!(gave_up.is_err());
        let mut others = [(); 2].map(|()| Box::pin(peers.channel(2, "two:1", Lane::Log)));
        for other in &mut others {
            assert!(other.now_or_never().is_none());
        }
        assert_eq!(net.tried.load(Ordering::Relaxed), 1);
        net.may_fail.add_permits(1);
        for other in others {
            assert!(matches!(other.await, Err(CallError::NotSent(_))));
        }
        assert!(lost.borrow().contains_key(&2));
        // A call after a failed attempt starts a new attempt, and so does a call with another
        // address.
        let again = peers.channel(2, "two:1", Lane::Log).now_or_never();
        let elsewhere = peers.channel(2, "two:2", Lane::Log).now_or_never();
        assert!(again.is_none() && elsewhere.is_none());
        tokio::task::yield_now().await;
        assert_eq!(net.tried.load(Ordering::Relaxed), 3);
        // When the node stops, waiting callers get an error.
        let waiting = peers.channel(2, "two:2", Lane::Log);
        tasks.abandon();
        assert!(waiting.await.is_err());
    }
}
