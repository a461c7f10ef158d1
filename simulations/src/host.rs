//! A simulated machine: data directory, disk and the node that runs on it, across crashes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use placement_api::settings::Text;
use placement_machine::{Gate, SimulatedDisk};
use placement_model::command::SyncStandards;
use placement_model::state::Digest;
use placement_node::cluster::InitialMember;
use placement_node::{Config, Env, Node};
use placement_raft_store::{
    Backup, NewCluster, StoreOptions, Until, boots, identity, write_backup,
};
use tempfile::TempDir;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::http::{API_PORT, NEIGHBOUR_PORT, node_name};
use crate::invariants::{Role, liveness};
use crate::ledger::SharedLedger;
use crate::mutant::{self, Mutant};
use crate::neighbour::{self, Neighbour};
use crate::net::{Bandwidth, TurmoilNet};
use crate::operator::{ADMIN_PORT, PEER_PORT};
use crate::outside::{SimulatedWorld, WallClock};
use crate::parameters::{Clouds, Parameters};
use crate::regions::Regions;
use crate::rot::rot_row;

/// The file of a token.
const TOKEN: &str = "join-token";

/// One machine.
pub struct Host {
    /// The node's number.
    pub node: u64,
    /// Its name in the network.
    pub name: String,
    parameters: Parameters,
    mutant: Option<Mutant>,
    /// The machine's disk, with the data directory in it.
    top: TempDir,
    disk: SimulatedDisk,
    /// What is on the disk is not all that the node has known: it may refuse to start, and stays
    /// away then.
    is_rotten: Cell<bool>,
    /// The error with which the node then refused its data.
    refused: RefCell<Option<String>>,
    /// A copy of the data directory, and how often the node had started when it was made.
    copy: RefCell<Option<(TempDir, u64)>>,
    /// Where the token is with which its node joins: an operator brings it, whatever becomes of the
    /// disk.
    token: RefCell<Option<TempDir>>,
    ledger: SharedLedger,
    /// Its wall clock.
    pub wall: Arc<WallClock>,
    /// What its connections carry.
    pub bandwidth: Bandwidth,
    running: RefCell<Option<Node>>,
    starts: Cell<u64>,
    /// Whether its node shall run, as far as the operator of the machine wants it to.
    wanted: Cell<bool>,
    decided: Notify,
    /// What the process that runs passes at each step, and how many faults keep it shut.
    gate: RefCell<Gate>,
    pauses: Cell<usize>,
}

impl Host {
    /// A machine with an empty disk.
    ///
    /// # Errors
    /// No temporary directory can be made.
    pub fn new(
        node: u64,
        parameters: &Parameters,
        mutant: Option<Mutant>,
        ledger: SharedLedger,
    ) -> io::Result<Rc<Self>> {
        let seed = parameters.seed.number(&format!("disk {node}"));
        let number = usize::try_from(node - 1).expect("small");
        let skew = parameters.skews.get(number).copied().unwrap_or_default();
        let top = scratch()?;
        let disk = SimulatedDisk::new(seed, parameters.sync_min..=parameters.sync_max);
        disk.mount(top.path())?;
        Ok(Rc::new(Self {
            node,
            name: node_name(node),
            parameters: parameters.clone(),
            mutant,
            top,
            disk,
            is_rotten: Cell::new(false),
            refused: RefCell::default(),
            copy: RefCell::default(),
            token: RefCell::default(),
            ledger,
            wall: WallClock::new(skew),
            bandwidth: Bandwidth::default(),
            running: RefCell::new(None),
            starts: Cell::new(0),
            wanted: Cell::new(true),
            decided: Notify::new(),
            gate: RefCell::default(),
            pauses: Cell::new(0),
        }))
    }

    /// Runs the node until the machine crashes.
    ///
    /// # Errors
    /// The node could not start.
    pub async fn run(self: Rc<Self>) -> turmoil::Result {
        let gate = Gate::default();
        *self.gate.borrow_mut() = gate.clone();
        self.wanted.set(true);
        gate.around(self.administer()).await
    }

    /// Starts the node, and stops it in good order when it is asked to.
    async fn administer(self: Rc<Self>) -> turmoil::Result {
        loop {
            self.starts.set(self.starts.get() + 1);
            let node = match Node::start(self.env(), self.config()).await {
                Err(error) if self.is_rotten.get() => {
                    *self.refused.borrow_mut() = Some(error.to_string());
                    return std::future::pending().await;
                }
                started => started.map_err(|error| {
                    let name = liveness::NAME;
                    format!("{name}: node {} does not start: {error}", self.node)
                })?,
            };
            let neighbour = self.neighbour(&node);
            *self.running.borrow_mut() = Some(node);
            let lives = async {
                if let Some(neighbour) = neighbour {
                    neighbour.live().await;
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                () = self.until_wanted(false) => {}
                () = lives => {}
            }
            let node = self.running.borrow_mut().take();
            if let Some(node) = node {
                node.shutdown().await;
            }
            self.until_wanted(true).await;
        }
    }

    /// Clients of another partition, if the run has one.
    fn neighbour(&self, node: &Node) -> Option<Neighbour> {
        (self.parameters.clouds != Clouds::Alone).then(|| {
            let stream = format!("neighbour {} {}", self.node, self.starts.get());
            let random = self.parameters.seed.stream(&stream);
            Neighbour::new(&self.parameters, node, random)
        })
    }

    async fn until_wanted(&self, wanted: bool) {
        while self.wanted.get() != wanted {
            self.decided.notified().await;
        }
    }

    /// Asks the node to stop, or to start again, as a supervisor does.
    pub fn want(&self, wanted: bool) {
        self.wanted.set(wanted);
        self.decided.notify_one();
    }

    /// Stops the process where it is, as SIGSTOP does. Faults may overlap.
    pub fn pause(&self) {
        self.pauses.set(self.pauses.get() + 1);
        self.gate.borrow().close();
    }

    /// Lets it go on when the last of them ends. What was started in between was not stopped.
    pub fn resume(&self) {
        self.pauses.set(self.pauses.get().saturating_sub(1));
        if self.pauses.get() == 0 {
            self.gate.borrow().open();
        }
    }

    /// To be called once all tasks of the machine are gone: the process was killed.
    pub fn forget(&self) {
        self.running.borrow_mut().take();
    }

    /// To be called once all tasks of the machine are gone: what was not synced is lost, all of it
    /// unless it is `torn`. Returns how many bytes that was.
    ///
    /// # Errors
    /// The log's files cannot be cut.
    pub fn lose_power(&self, torn: bool) -> io::Result<u64> {
        self.forget();
        self.disk.cut_power(&self.data_dir(), torn)
    }

    /// Turns a bit of the log, while the node does not run. False if there is none yet.
    ///
    /// # Errors
    /// The log's files cannot be read or written.
    pub fn rot_log(&self) -> io::Result<bool> {
        let rots = self.disk.rot_log(&self.data_dir())?;
        self.note(rots);
        Ok(rots)
    }

    /// Turns a bit of a row of the state, while the node does not run. False if there is none yet.
    ///
    /// # Errors
    /// The state cannot be read or written.
    pub fn rot_row(&self) -> io::Result<bool> {
        let rots = rot_row(&self.data_dir(), self.number("rot row"))?;
        self.note(rots);
        Ok(rots)
    }

    /// Copies the disk, while the node does not run. False if it has never started, or cannot be
    /// vouched for.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn copy(&self) -> io::Result<bool> {
        let starts = boots(&self.data_dir()).map_err(io::Error::other)?;
        if starts == 0 || self.is_rotten() {
            return Ok(false);
        }
        let copy = scratch()?;
        copy_all(&self.data_dir(), &copy.path().join("data"))?;
        *self.copy.borrow_mut() = Some((copy, starts));
        Ok(true)
    }

    /// The node whose disk was copied, and how often it had started then.
    pub fn copied(&self) -> Option<(u64, u64)> {
        let copy = self.copy.borrow();
        copy.as_ref().map(|(_, starts)| (self.node, *starts))
    }

    /// Puts the copy in the place of what is on the disk, while the node does not run.
    ///
    /// # Errors
    /// Those of the file system, or there is no copy.
    pub fn put_back(&self) -> io::Result<()> {
        let copy = self.copy.borrow_mut().take();
        let (copy, _) = copy.ok_or_else(|| io::Error::other("there is no copy"))?;
        fs::remove_dir_all(self.data_dir())?;
        copy_all(&copy.path().join("data"), &self.data_dir())?;
        self.note(true);
        Ok(())
    }

    fn note(&self, rots: bool) {
        self.is_rotten.set(self.is_rotten.get() || rots);
    }

    /// A number that no other start of the node has, and no other purpose.
    fn number(&self, purpose: &str) -> u64 {
        let purpose = format!("{purpose} {} {}", self.node, self.starts.get());
        self.parameters.seed.number(&purpose)
    }

    /// Puts an empty disk into the machine, while the node does not run.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn wipe(&self) -> io::Result<()> {
        self.disk.wipe(&self.data_dir())
    }

    /// Writes a backup, if the node runs. Returns the last entry that it has.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn back_up(&self, file: &Path) -> io::Result<Option<u64>> {
        let running = self.running.borrow();
        let Some(applied) = running
            .as_ref()
            .and_then(Node::views)
            .map(|views| views.current())
        else {
            return Ok(None);
        };
        let identity = identity(&self.data_dir()).map_err(io::Error::other)?;
        let (Some(index), Some(identity)) = (applied.index(), identity) else {
            return Ok(None);
        };
        write_backup(&mut fs::File::create(file)?, &identity, &applied)?;
        Ok(Some(index))
    }

    /// Has the node, which does not run and has no data, begin a new cluster with a backup, or as a
    /// further member of one.
    ///
    /// # Errors
    /// What is wrong with the backup or the disk.
    pub fn restore(&self, file: &Path, cluster: NewCluster) -> anyhow::Result<Uuid> {
        let members = (1..=self.parameters.nodes)
            .map(|node| (node, format!("{}:{PEER_PORT}", node_name(node))))
            .collect();
        let storage = self.storage();
        let backup = Backup::read(file, Until::End, storage.applier.as_ref())?;
        let options = StoreOptions {
            dir: self.data_dir(),
            ..storage
        };
        Ok(backup
            .restore(&options, self.node, &members, cluster)?
            .cluster)
    }

    /// The node may be refused when it starts, and stays away then.
    pub fn may_be_refused(&self) {
        self.note(true);
    }

    /// From its next start on the node joins with this token.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn joins_by(&self, token: &str) -> io::Result<()> {
        let paper = scratch()?;
        let mut open = fs::OpenOptions::new();
        open.write(true).create_new(true).mode(0o600);
        let mut file = open.open(paper.path().join(TOKEN))?;
        file.write_all(token.as_bytes())?;
        *self.token.borrow_mut() = Some(paper);
        Ok(())
    }

    /// Whether what is on the disk is not all that the node has known.
    pub fn is_rotten(&self) -> bool {
        self.is_rotten.get()
    }

    /// The error with which the node refused to start on rotten data.
    pub fn refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    /// The disk, for faults.
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    fn data_dir(&self) -> PathBuf {
        self.top.path().join("data")
    }

    /// Makes syncs slow, or as fast as they were.
    pub fn slow_disk(&self, slow: bool) {
        if slow {
            self.disk
                .set_latency(Duration::from_millis(50)..=Duration::from_millis(400));
        } else {
            self.disk
                .set_latency(self.parameters.sync_min..=self.parameters.sync_max);
        }
    }

    /// What the node says of itself, if it runs.
    pub fn role(&self) -> Option<Role> {
        let role = self.running.borrow().as_ref()?.role()?;
        Some(Role {
            node: self.node,
            start: self.starts.get(),
            vote: role.vote,
            leads: role.leads,
            applied: self.running.borrow().as_ref()?.views()?.applied_index(),
        })
    }

    /// The last start of a node in which it has written, as far as this one has applied it.
    pub fn last_start_of(&self, node: u64) -> Option<u64> {
        let applied = self.running.borrow().as_ref()?.views()?.current();
        Some(applied.cluster.session(node)?.boot)
    }

    /// What the disk says of a vote that was acknowledged and was not there when the node was
    /// started again.
    pub fn lost_vote(&self) -> Option<String> {
        self.disk.lost_vote()
    }

    /// Whether all that the node derives from its rows is what a recount gives; yes if it does not
    /// run.
    pub fn agrees_with_recount(&self) -> bool {
        let running = self.running.borrow();
        let views = running.as_ref().and_then(Node::views);
        views.is_none_or(|views| views.current().cluster.agrees_with_recount())
    }

    /// How far the node has applied the log, and who is a member then.
    pub fn members(&self) -> Option<(u64, BTreeSet<u64>)> {
        let current = self.running.borrow().as_ref()?.views()?.current();
        let nodes = current.membership.membership().nodes();
        Some((current.index()?, nodes.map(|(node, _)| *node).collect()))
    }

    /// How far the node has applied the log, and its state's digest.
    pub fn applied(&self) -> Option<(u64, Digest)> {
        let current = self.running.borrow().as_ref()?.views()?.current();
        Some((current.index()?, current.digest()))
    }

    fn config(&self) -> Config {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).expect("short");
        let mut config = Config {
            node_id: self.node,
            data_dir: self.data_dir(),
            initial_members: match self.node <= self.parameters.nodes {
                true => (1..=self.parameters.nodes)
                    .map(|node| {
                        let address = format!("{}:{PEER_PORT}", node_name(node));
                        Text(InitialMember { id: node, address })
                    })
                    .collect(),
                // A spare waits until it is added.
                false => Vec::new(),
            },
            ..Config::default()
        };
        if let Some(token) = &*self.token.borrow() {
            // Those that founded the cluster may have been removed since.
            config.cluster.join = (1..=self.parameters.machines())
                .filter(|node| *node != self.node)
                .map(|node| format!("{}:{PEER_PORT}", node_name(node)))
                .collect();
            config.cluster.join_token_file = Some(token.path().join(TOKEN));
        }
        config.api.listen = format!("0.0.0.0:{API_PORT}");
        config.api.drain_notice_ms = 0;
        config.auth.noauth2_beyond_loopback = true;
        config.api.advertise = format!("{}:{API_PORT}", self.name);
        config.peer.listen = format!("0.0.0.0:{PEER_PORT}");
        config.peer.advertise = format!("{}:{PEER_PORT}", self.name);
        config.admin.listen = format!("0.0.0.0:{ADMIN_PORT}");
        config.admin.plain_beyond_loopback = true;
        config.admin.has_socket = false;
        config.admin.advertise = format!("{}:{ADMIN_PORT}", self.name);
        // The room on this machine is no part of a seed.
        config.disk.min_free_bytes = 0;
        let knobs = &self.parameters.knobs;
        config.disk.hung_after_ms = ms(knobs.hung_after);
        config.peer.silence_ms = match self.mutant {
            Some(Mutant::TrustInSilence) => 3_600_000,
            _ => ms(knobs.silence),
        };
        config.reads.probe_ms = ms(knobs.probe);
        config.raft.append_bytes_max = knobs.append_bytes;
        config.raft.append_entries_max = knobs.append_entries;
        config.raft.snapshot_chunk_bytes = knobs.chunk_bytes;
        config.cluster.wait_ms = ms(self.parameters.wait);
        config.raft.heartbeat_ms = ms(self.parameters.heartbeat);
        config.raft.election_min_ms = ms(self.parameters.election);
        config.raft.election_max_ms = ms(self.parameters.election * 2);
        config.raft.snapshot_after = self.parameters.snapshot_every;
        config.raft.log_keep = Some(self.parameters.keep_in_log);
        config.raft.snapshot_timeout_ms = 10_000;
        let [clients, neighbour] = [API_PORT, NEIGHBOUR_PORT].map(|port| format!("0.0.0.0:{port}"));
        match self.parameters.clouds {
            Clouds::Alone => {}
            Clouds::First => config.partitions = vec![neighbour::second(neighbour)],
            Clouds::Second => {
                config.partitions = vec![neighbour::second(clients)];
                config.api.listen = neighbour;
            }
        }
        if let Some(regions) = &self.parameters.regions {
            config.node.region = Regions::name(regions.site(self.node));
            config.node.zone = Regions::zone(self.node);
            let preferred = regions.preference.iter().copied();
            config.cluster.leader_preference = preferred.map(Regions::name).collect();
            config.raft.promote_lag_max = regions.lag_max;
        }
        config
    }

    fn env(&self) -> Env {
        let ids = self
            .parameters
            .seed
            .stream(&format!("ids {} {}", self.node, self.starts.get()));
        let world = Arc::new(SimulatedWorld::new(self.wall.clone(), ids));
        Env {
            net: Arc::new(TurmoilNet::new(self.bandwidth.clone())),
            clock: world.clone(),
            ids: world.clone(),
            requests: None,
            offload: world,
            storage: self.storage(),
            standards: SyncStandards::of_this_binary(),
            http_date: false,
        }
    }

    fn storage(&self) -> StoreOptions {
        let rules = mutant::rules(self.mutant, self.node);
        let mut storage = StoreOptions::new("");
        storage.applier = self.ledger.applier(self.node, rules);
        storage.log_observer = Some(self.ledger.log_observer(self.node));
        storage.disk = Arc::new(self.disk.clone());
        // Small, so that entries are read from the disk too.
        storage.log_cache_bytes = self.parameters.knobs.log_cache_bytes;
        storage.rows_behind = self.parameters.knobs.rows_behind;
        storage.ledger_behind = self.parameters.knobs.ledger_behind;
        storage.ledger_bytes = self.parameters.knobs.ledger_bytes;
        storage.block_cache_bytes = 1 << 20;
        // The write buffers keep the product's 64 MiB, so that no run fills them: RocksDB would
        // flush them in a thread of its own, and what a loss of power leaves of the state would
        // depend on when that was. `Limits::rows_buffer` stands for it.
        storage
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_all(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// A directory that vanishes with the machine, in memory where there is such a place.
pub(crate) fn scratch() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    }
}
