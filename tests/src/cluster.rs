//! A cluster of real processes for one test; stopped and removed when dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use parking_lot::Mutex;
use placement_client::{
    Admin, ApiRequest, Client, NewJoinToken, NewPartition, NodeStatus, PartitionRoutes, Trust,
};
use placement_local::says_ready;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::authority::Authority;
use crate::binaries;
use crate::layout::{NodePlace, initial_members, linked_members};
use crate::link::{Direction, Directions, Link};
use crate::node_process::{NodeProcess, StartOptions, log_tail};
use crate::ports::Ports;
use crate::private;
use crate::wait::{PATIENCE, until_ok, within};

/// Longest time for a cluster to become healthy.
pub const HEALTHY_LIMIT: Duration = PATIENCE;
/// Longest time for a node to stop.
pub const STOP_LIMIT: Duration = PATIENCE;

/// A cluster of `placementd` processes. Node ids begin at 1.
pub struct Cluster {
    directory: TempDir,
    ports: Ports,
    options: StartOptions,
    places: Vec<NodePlace>,
    /// Trust settings of clients, if the cluster requires TLS.
    secured: Option<Trust>,
    running: Vec<Option<NodeProcess>>,
    links: Vec<Link>,
    /// Bandwidth of each link, in bits per second; `None` does not limit it.
    bits_per_s: Option<u32>,
    ways: Directions,
    /// Node id of each process that was started, to find the owner of a connection.
    pids: Arc<Mutex<BTreeMap<u32, u64>>>,
}

/// How long a request waits for a leader where a test does not configure it. An election on a
/// loaded machine may take longer than the default, and a request must not fail for that. Shorter
/// than the timeout of a client.
const WAIT_MS: u32 = 20_000;

/// Raft settings with election timeouts so long that no node of a loaded machine misses heartbeats:
/// the leader stays until a test moves it.
pub const STEADY_LEADER: &str = "[raft]\nround_trip_ms = 400\n";

impl Cluster {
    /// Starts a healthy cluster of this many nodes with the default configuration.
    pub async fn start(nodes: u64) -> anyhow::Result<Self> {
        Self::start_with(nodes, "").await
    }

    /// Starts a healthy cluster whose nodes share this configuration file.
    pub async fn start_with(nodes: u64, config: &str) -> anyhow::Result<Self> {
        let mut cluster = Self::prepare(nodes, config)?;
        cluster.start_all().await?;
        Ok(cluster)
    }

    /// Starts a healthy cluster that requires TLS on all listeners; `config` is the rest of its
    /// configuration.
    pub async fn start_secured(nodes: u64, config: &str) -> anyhow::Result<Self> {
        let required =
            ["api", "peer", "admin"].map(|listener| format!("[{listener}]\ntls = \"require\"\n"));
        let mut cluster = Self::prepare(nodes, &format!("{config}{}", required.concat()))?;
        let authority = cluster.authority()?;
        authority.operator("test")?;
        cluster.secured = Some(authority.trust(Some("admin-test")));
        cluster.options.authority = Some(authority);
        cluster.start_all().await?;
        Ok(cluster)
    }

    /// Starts a healthy cluster whose nodes require TLS of each other.
    pub async fn start_with_peer_tls(nodes: u64) -> anyhow::Result<(Self, Authority)> {
        let mut cluster = Self::prepare(nodes, "[peer]\ntls = \"require\"\n")?;
        let authority = cluster.authority()?;
        cluster.options.authority = Some(authority.clone());
        cluster.start_all().await?;
        Ok((cluster, authority))
    }

    /// Starts a healthy cluster whose clients may use TLS; `config` is the rest of its
    /// configuration.
    pub async fn start_with_optional_tls(nodes: u64, config: &str) -> anyhow::Result<Self> {
        let mut cluster = Self::prepare(nodes, &format!("{config}[api]\ntls = \"allow\"\n"))?;
        cluster.options.authority = Some(cluster.authority()?);
        cluster.start_all().await?;
        Ok(cluster)
    }

    /// Creates a certificate authority and a certificate for each node.
    pub fn authority(&self) -> anyhow::Result<Authority> {
        let authority = Authority::new(&self.directory().join("tls"))?;
        for id in self.ids() {
            authority.node(id, 1)?;
        }
        Ok(authority)
    }

    /// Starts a healthy cluster whose nodes reach each other over links of this bandwidth.
    pub async fn start_linked(nodes: u64, config: &str, bits_per_s: u32) -> anyhow::Result<Self> {
        let mut cluster = Self::prepare_linked(nodes, config, bits_per_s)?;
        cluster.start_all().await?;
        Ok(cluster)
    }

    /// Prepares a cluster over links of this bandwidth without starting a node.
    pub fn prepare_linked(nodes: u64, config: &str, bits_per_s: u32) -> anyhow::Result<Self> {
        Self::prepare_links(nodes, config, Some(bits_per_s))
    }

    /// Prepares a cluster over links of unlimited bandwidth, whose delays
    /// [`Cluster::set_round_trips`] sets. Starts no node.
    pub fn prepare_far(nodes: u64, config: &str) -> anyhow::Result<Self> {
        Self::prepare_links(nodes, config, None)
    }

    fn prepare_links(nodes: u64, config: &str, bits_per_s: Option<u32>) -> anyhow::Result<Self> {
        let mut cluster = Self::prepare(nodes, config)?;
        cluster.options.linked = true;
        cluster.options.initial_members = linked_members(&cluster.places);
        cluster.bits_per_s = bits_per_s;
        for place in cluster.places.clone() {
            cluster.link(&place)?;
        }
        Ok(cluster)
    }

    /// Starts the link in front of a node of a linked cluster.
    fn link(&mut self, place: &NodePlace) -> anyhow::Result<()> {
        if self.options.linked {
            let (from, to) = (place.link().parse()?, place.peer().parse()?);
            let pids = self.pids.clone();
            let who_has = Arc::new(move |ends| process_of(&pids.lock(), ends));
            let link = Link::start(from, (place.id, to), self.bits_per_s, &self.ways, who_has)?;
            self.links.push(link);
        }
        Ok(())
    }

    async fn start_all(&mut self) -> anyhow::Result<()> {
        for id in self.ids() {
            self.start_node(id)?;
        }
        self.wait_healthy().await
    }

    /// Prepares a cluster without starting a node.
    pub fn prepare(nodes: u64, config: &str) -> anyhow::Result<Self> {
        Self::prepare_with_room(nodes, 3, config)
    }

    /// Prepares a cluster with ports for `more` nodes that are added later.
    pub fn prepare_with_room(nodes: u64, more: u16, config: &str) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("placement-test-")
            .tempdir()?;
        let room = u16::try_from(nodes)? + more;
        let ports = Ports::claim(room);
        let places = NodePlace::all(directory.path(), ports.first(), nodes);
        let file = directory.path().join("placementd.toml");
        private::write(&file, config)?;
        let options = StartOptions {
            initial_members: initial_members(&places),
            config: Some(file),
            wait_ms: (!config.contains("wait_ms")).then_some(WAIT_MS),
            ..StartOptions::default()
        };
        Ok(Self {
            directory,
            ports,
            options,
            running: places.iter().map(|_| None).collect(),
            places,
            secured: None,
            links: Vec::new(),
            bits_per_s: None,
            ways: Directions::default(),
            pids: Arc::default(),
        })
    }

    /// Directory of all files of the cluster.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps the directory after the cluster is dropped; returns its path.
    pub fn keep(&mut self) -> PathBuf {
        self.directory.disable_cleanup(true);
        self.directory().to_owned()
    }

    /// Address at which the other nodes reach this one.
    pub fn peer_of(&self, id: u64) -> String {
        let place = self.place(id);
        if self.options.linked {
            place.link()
        } else {
            place.peer()
        }
    }

    /// Ids of all nodes, running or not.
    pub fn ids(&self) -> Vec<u64> {
        self.places.iter().map(|place| place.id).collect()
    }

    /// Ports and directories of a node.
    pub fn place(&self, id: u64) -> &NodePlace {
        &self.places[index(id)]
    }

    /// Start options of the nodes.
    pub fn options(&self) -> &StartOptions {
        &self.options
    }

    /// Start options of the nodes that are started from now on.
    pub fn options_mut(&mut self) -> &mut StartOptions {
        &mut self.options
    }

    /// Adds a place for one more node. The node is not started and is not a member.
    ///
    /// # Panics
    /// If the link to it cannot be started.
    pub fn add_place(&mut self) -> NodePlace {
        let place = self.spare_place();
        self.link(&place).expect("its ports are claimed");
        self.places.push(place.clone());
        self.running.push(None);
        place
    }

    /// Moves a node that does not run to the ports of the spare place.
    pub fn move_node(&mut self, id: u64) {
        let spare = self.spare_place();
        self.places[index(id)].base_port = spare.base_port;
    }

    /// Place of the next node that would be added.
    pub fn spare_place(&self) -> NodePlace {
        let id = self.places.len() as u64 + 1;
        NodePlace::new(self.directory.path(), self.ports.first(), id)
    }

    /// Starts a node that does not run. A node added by [`Cluster::add_place`] joins if it has a
    /// token.
    pub fn start_node(&mut self, id: u64) -> anyhow::Result<()> {
        let place = self.place(id).clone();
        let mut options = self.options.clone();
        let founder = [place.peer(), place.link()]
            .iter()
            .any(|address| options.initial_members.contains(address));
        let token = self.token_file(id);
        if !founder || token.exists() {
            options.initial_members.clear();
        }
        if token.exists() {
            let others: Vec<_> = self
                .places
                .iter()
                .filter(|other| other.id != id)
                .map(|other| self.peer_of(other.id))
                .collect();
            options.numbered = false;
            options.flags.extend([
                "--join".to_owned(),
                others.join(","),
                "--join-token-file".to_owned(),
                token.display().to_string(),
            ]);
        }
        let process = NodeProcess::start(&place, &options)?;
        self.pids.lock().insert(process.pid(), id);
        self.running[index(id)] = Some(process);
        Ok(())
    }

    /// Starts a node at a site, `REGION` or `REGION/ZONE`. The site applies
    /// until the node is started again.
    pub fn start_node_at(&mut self, id: u64, site: &str) -> anyhow::Result<()> {
        let (region, zone) = site.split_once('/').unwrap_or((site, ""));
        let more = [
            ("PLACEMENTD_NODE_REGION".to_owned(), region.to_owned()),
            ("PLACEMENTD_NODE_ZONE".to_owned(), zone.to_owned()),
        ];
        let before = self.options.environment.clone();
        self.options.environment.extend(more);
        let started = self.start_node(id);
        self.options.environment = before;
        started
    }

    /// Creates a join token for a node added by [`Cluster::add_place`], which then joins at its
    /// start.
    pub async fn admit(&self, id: u64) -> anyhow::Result<()> {
        let runs = |id: &u64| self.running[index(*id)].is_some();
        let by = self.ids().into_iter().find(runs).context("no node runs")?;
        let admin = self.admin_of(by);
        let made = within(HEALTHY_LIMIT, async || {
            admin.create_join_token(&NewJoinToken::default()).await
        })
        .await
        .with_context(|| format!("node {id}"))?;
        ensure!(made.id == id, "the next node is node {}, not {id}", made.id);
        self.give_token(id, &made.token.context("the answer has no token")?)
    }

    /// Has a node without data join with this token when it is started.
    pub fn give_token(&self, id: u64, token: &str) -> anyhow::Result<()> {
        Ok(private::write(&self.token_file(id), token)?)
    }

    /// File of the join token of a node.
    pub fn token_file(&self, id: u64) -> PathBuf {
        self.directory.path().join(format!("join-token-{id}"))
    }

    /// Creates a partition for requests to these hosts and below these paths, and waits until all
    /// nodes have it. Retries, as the nodes of a new cluster may not know yet that all of them
    /// support partitions.
    pub async fn create_partition(
        &self,
        name: &str,
        hosts: &[&str],
        prefixes: &[&str],
    ) -> anyhow::Result<()> {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let admin = self.admin_of(1);
        if !hosts.is_empty() {
            // Tests address the default partition of a node by this host.
            let own = PartitionRoutes {
                hosts: owned(&["127.0.0.1"]),
                prefixes: Vec::new(),
            };
            let routed = async || admin.route_partition("default", &own).await;
            within(HEALTHY_LIMIT, routed).await?;
        }
        let new = NewPartition {
            name: name.to_owned(),
            hosts: owned(hosts),
            prefixes: owned(prefixes),
        };
        let created = async || admin.create_partition(&new).await;
        within(HEALTHY_LIMIT, created).await?;
        self.assert_equal_states().await;
        Ok(())
    }

    /// Cuts links between nodes of a linked cluster, each in one direction.
    pub fn cut(&self, ways: impl IntoIterator<Item = Direction>) {
        assert!(!self.links.is_empty(), "the nodes have no links");
        self.ways.cut(ways);
    }

    /// Sets the round-trip times between nodes of a linked cluster, from now on.
    pub fn set_round_trips(&self, round_trip: impl Fn(u64, u64) -> Duration) {
        assert!(!self.links.is_empty(), "the nodes have no links");
        let ids = 1..=self.links.len() as u64;
        let to_all = |from| ids.clone().map(move |to| (from, to));
        let pairs = ids.clone().flat_map(to_all);
        let halves = pairs.map(|way| (way, round_trip(way.0, way.1) / 2));
        self.ways.set_delays(halves);
    }

    /// Restores all links that were cut.
    pub fn heal(&self) {
        self.ways.heal();
    }

    /// Whether the process of a node runs.
    pub fn runs(&mut self, id: u64) -> bool {
        let process = self.running[index(id)].as_mut();
        process.is_some_and(|process| process.ended().is_none())
    }

    /// Exit status of a node that ended by itself.
    pub fn ended_by_itself(&mut self, id: u64) -> Option<ExitStatus> {
        self.running[index(id)].as_mut()?.ended()
    }

    /// Lines about panics in the logs of all nodes.
    pub fn panics(&self) -> Vec<String> {
        let mut panics = Vec::new();
        for place in &self.places {
            let log = log_tail(&place.log, usize::MAX);
            let lines = log.lines().filter(|line| line.contains("panicked"));
            panics.extend(lines.map(str::to_owned));
        }
        panics
    }

    /// Process of a running node.
    pub fn process(&mut self, id: u64) -> &mut NodeProcess {
        let process = self.running[index(id)].as_mut();
        process.expect("the test started this node")
    }

    /// Kills a node with SIGKILL.
    pub fn kill_9(&mut self, id: u64) {
        if let Some(process) = self.running[index(id)].take() {
            process.kill_9();
        }
    }

    /// Shuts a node down cleanly.
    pub async fn stop_node(&mut self, id: u64) -> anyhow::Result<()> {
        let Some(mut process) = self.running[index(id)].take() else {
            return Ok(());
        };
        process.signal(Signal::TERM);
        // A blocking wait would keep this thread's clients from noticing that their connections
        // close.
        match within(STOP_LIMIT, async || process.ended().ok_or(())).await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => bail!("node {id} stopped with {status}:\n{}", self.log(id, 20)),
            Err(()) => bail!("node {id} does not stop:\n{}", self.log(id, 30)),
        }
    }

    /// The last lines of a node's log.
    pub fn log(&self, id: u64, lines: usize) -> String {
        log_tail(&self.place(id).log, lines)
    }

    /// A client of all nodes, in the order of their ids.
    pub fn client(&self) -> Client {
        self.client_in_order(self.ids())
    }

    /// A client of these nodes, in this order.
    pub fn client_in_order(&self, ids: impl IntoIterator<Item = u64>) -> Client {
        self.connect(ids.into_iter().map(|id| self.place(id).api()))
    }

    /// A client of these addresses.
    fn connect(&self, listeners: impl IntoIterator<Item = String>) -> Client {
        let made = match &self.secured {
            None => Client::new(listeners),
            Some(trust) => {
                let listeners = listeners.into_iter();
                let https = listeners.map(|address| format!("https://{address}"));
                Client::trusting(https, trust.clone())
            }
        };
        made.expect("places are endpoints")
    }

    /// A client of one node.
    pub fn client_of(&self, id: u64) -> Client {
        self.client_in_order([id])
    }

    /// One client per node, in the order of their ids.
    pub fn clients(&self) -> Vec<Client> {
        self.ids().iter().map(|&id| self.client_of(id)).collect()
    }

    /// A client of one node's admin listener. The node may still be starting.
    pub fn admin_of(&self, id: u64) -> Admin {
        let client = self.connect([self.place(id).admin()]);
        Admin::new(client.with_patience(HEALTHY_LIMIT))
    }

    /// Runs `placementctl` against all admin listeners.
    pub fn placementctl(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let endpoints: Vec<_> = self.places.iter().map(NodePlace::admin).collect();
        Command::new(binaries::placementctl()?)
            .env("PLACEMENTCTL_ENDPOINT", endpoints.join(","))
            .args(arguments)
            .output()
            .context("cannot start placementctl")
    }

    /// Runs `placementctl` and returns its output.
    ///
    /// # Panics
    /// If it fails.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let printed = self.printed(arguments);
        printed.unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// Output of `placementctl`, or its standard error if it fails.
    fn printed(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.placementctl(arguments).expect("placementctl starts");
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stderr))
        }
    }

    /// Runs `placementctl` until it succeeds and returns its output. A new cluster may not accept
    /// join tokens yet, and a cluster without a leader refuses changes.
    ///
    /// # Panics
    /// If it does not succeed in time.
    pub async fn ctl_in_time(&self, arguments: &[&str]) -> String {
        let printed = async || self.printed(arguments);
        until_ok(&format!("{arguments:?}"), printed).await
    }

    /// Runs a read-only `placementctl` command until it exits with this code and its output has all
    /// of these words; returns the output.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub async fn until_shown(&self, arguments: &[&str], code: i32, words: &[&str]) -> String {
        until_ok(&format!("{arguments:?}: {words:?}"), async || {
            let output = self.placementctl(arguments).expect("placementctl starts");
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            let is_expected = output.status.code() == Some(code)
                && words.iter().all(|words| text.contains(words));
            is_expected
                .then_some(text.clone())
                .ok_or((output.status, text))
        })
        .await
    }

    /// Metrics of a node in Prometheus' text format.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn metrics(&self, id: u64) -> String {
        let client = self.connect([self.place(id).admin()]);
        let answer = client.call(ApiRequest::get("/metrics")).await;
        String::from_utf8_lossy(&answer.expect("a node that runs").body).into_owned()
    }

    /// Waits until one of these nodes logs this.
    ///
    /// # Panics
    /// If none does in time.
    pub async fn until_logged(&self, ids: &[u64], words: &str) {
        until_ok(words, async || {
            let logs: String = ids.iter().map(|&id| self.log(id, 1000)).collect();
            if logs.contains(words) {
                Ok(())
            } else {
                Err(logs)
            }
        })
        .await;
    }

    /// Waits until this node leads.
    ///
    /// # Panics
    /// If it does not in time.
    pub async fn until_leader(&self, id: u64) {
        until_ok(&format!("node {id} to lead"), async || {
            match self.leader().await {
                Ok(leader) if leader == id => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }

    /// Waits until each of these nodes has taken its first backup.
    ///
    /// # Errors
    /// If one of them takes none in time.
    pub async fn wait_backed_up(&self, ids: impl IntoIterator<Item = u64>) -> anyhow::Result<()> {
        for id in ids {
            let admin = self.admin_of(id);
            within(HEALTHY_LIMIT, async || {
                let last = admin.status().await?.last_backup;
                last.with_context(|| format!("node {id} has taken no backup"))
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until every running node is ready.
    pub async fn wait_healthy(&mut self) -> anyhow::Result<()> {
        for id in self.ids() {
            if self.running[index(id)].is_some() {
                self.wait_ready(id).await?;
            }
        }
        Ok(())
    }

    /// Waits until one node reports that it is ready.
    pub async fn wait_ready(&mut self, id: u64) -> anyhow::Result<()> {
        let ended = within(HEALTHY_LIMIT, async || {
            if says_ready(self.client_of(id)).await {
                Ok(None)
            } else {
                self.process(id).ended().map(Some).ok_or(())
            }
        });
        match ended.await {
            Ok(None) => Ok(()),
            Ok(Some(status)) => bail!("node {id} ended with {status}:\n{}", self.log(id, 30)),
            Err(()) => bail!(
                "node {id} is not ready after {HEALTHY_LIMIT:?}:\n{}",
                self.log(id, 30)
            ),
        }
    }

    /// Waits until each node has applied this feature level, or a later one.
    pub async fn until_level(&self, level: u32) {
        until_ok("the level on all nodes", async || {
            let statuses = self.statuses().await;
            let levels: Vec<_> = statuses.iter().filter_map(|status| status.level).collect();
            let is_there = |reached: &u32| *reached >= level;
            let are_all = levels.len() == self.places.len() && levels.iter().all(is_there);
            are_all.then_some(()).ok_or(levels)
        })
        .await;
    }

    /// Status of every node that answers.
    pub async fn statuses(&self) -> Vec<NodeStatus> {
        let mut statuses = Vec::new();
        for id in self.ids() {
            let client = self
                .connect([self.place(id).admin()])
                .with_patience(Duration::ZERO)
                .with_attempt_timeout(Duration::from_secs(5));
            if let Ok(status) = Admin::new(client).status().await {
                statuses.push(status);
            }
        }
        statuses
    }

    /// Waits until all nodes answer and have applied the same entries, and asserts that their
    /// states are equal.
    ///
    /// # Panics
    /// If the digests differ, or a node lags for too long.
    pub async fn assert_equal_states(&self) {
        until_ok("the same entry on all nodes", async || {
            let statuses = self.statuses().await;
            let applied: BTreeSet<_> = statuses.iter().map(|status| status.applied).collect();
            if statuses.len() != self.places.len() || applied.len() != 1 {
                return Err(statuses);
            }
            let digests: BTreeSet<_> = statuses.iter().map(|status| &status.digest).collect();
            assert!(
                digests.len() == 1 && !digests.contains(&None),
                "the same entries, but different states: {statuses:#?}"
            );
            Ok(())
        })
        .await;
    }

    /// Whether a provider of this name exists, according to all nodes, asked in turn. A write with
    /// an unknown outcome may be committed in the meantime; then all nodes are asked again.
    ///
    /// # Panics
    /// If a node has the provider and a later one does not, or a node cannot be asked.
    pub async fn has_provider(&self, name: &str) -> bool {
        let mut there = false;
        loop {
            let before = there;
            for id in self.ids() {
                let found = self
                    .client_of(id)
                    .providers(&[("name", name)])
                    .await
                    .unwrap_or_else(|error| panic!("node {id}: {error}"));
                assert!(
                    !there || !found.is_empty(),
                    "node {id} lacks {name:?}, which another node has shown"
                );
                there = !found.is_empty();
            }
            if there == before || !there {
                return there;
            }
        }
    }

    /// Waits until the leader of the newest term that the nodes report also reports itself as
    /// leader.
    pub async fn leader(&self) -> anyhow::Result<u64> {
        self.leader_other_than(None).await
    }

    /// Waits for a leader other than this one.
    pub async fn leader_other_than(&self, old: Option<u64>) -> anyhow::Result<u64> {
        within(HEALTHY_LIMIT, async || {
            let statuses = self.statuses().await;
            let newest = statuses.iter().max_by_key(|status| status.term);
            let leader = newest.and_then(|status| status.leader);
            let agrees = |status: &&NodeStatus| {
                leader == Some(status.node_id) && status.leader == leader && leader != old
            };
            match statuses.iter().find(agrees) {
                Some(status) => Ok(status.node_id),
                None => bail!("no leader after {HEALTHY_LIMIT:?}: {statuses:#?}"),
            }
        })
        .await
    }

    /// Nodes that do not lead.
    pub async fn followers(&self) -> anyhow::Result<Vec<u64>> {
        let leader = self.leader().await?;
        Ok(self.ids().into_iter().filter(|&id| id != leader).collect())
    }

    /// Data directory of a node.
    pub fn data_dir(&self, id: u64) -> PathBuf {
        self.place(id).data_dir.clone()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for place in &self.places {
                let tail = log_tail(&place.log, 25);
                eprintln!("--- the end of node {}'s log ---\n{tail}", place.id);
            }
        }
    }
}

/// Which of these processes holds the first endpoint of a connection, according to /proc/net/tcp.
/// Its port alone does not identify it: other connections, open or closed, may use the same one.
fn process_of(pids: &BTreeMap<u32, u64>, ends: [SocketAddr; 2]) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let [near, far] = ends.map(|end| format!(":{:04X}", end.port()));
    let inode = table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_its = words.next()?.ends_with(&near) && words.next()?.ends_with(&far);
        is_its.then(|| words.nth(6)).flatten()
    })?;
    let socket = PathBuf::from(format!("socket:[{inode}]"));
    let has = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
        open.is_ok_and(|mut open| {
            open.any(|one| one.is_ok_and(|one| one.path().read_link().is_ok_and(|to| to == socket)))
        })
    };
    pids.iter().find(|(pid, _)| has(pid)).map(|(_, id)| *id)
}

fn index(id: u64) -> usize {
    usize::try_from(id - 1).expect("a cluster on one machine has few nodes")
}
