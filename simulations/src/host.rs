//! A simulated machine: data directory, disk and the node on it. It outlives crashes of the node.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use placement_base::settings::Text;
use placement_cluster::InitialMember;
use placement_machine::{Gate, SimulatedDisk};
use placement_model::command::SyncStandards;
use placement_model::state::Digest;
use placement_node::{Config, Env, Node};
use placement_raft_store::{
    Backup, NewCluster, StoreOptions, Until, boots, identity, write_backup,
};
use tempfile::TempDir;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::history::ChangeLogRange;
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

/// Name of the token file.
const TOKEN: &str = "join-token";

/// A machine with its disk, its clock and at most one running process.
pub struct Host {
    /// Number of the node on this machine.
    pub node: u64,
    /// Host name in the simulated network.
    pub name: String,
    parameters: Parameters,
    mutant: Option<Mutant>,
    /// Mount point of the disk; contains the data directory.
    top: TempDir,
    disk: SimulatedDisk,
    /// Whether the disk has lost data that the node had stored. Then the node may refuse to start,
    /// and in that case stays down.
    is_rotten: Cell<bool>,
    /// The error with which the node refused to start.
    refused: RefCell<Option<String>>,
    /// A copy of the data directory, and the node's number of starts at that time.
    copy: RefCell<Option<(TempDir, u64)>>,
    /// Directory of the join token. It is not on the machine's disk, as an operator provides it.
    token: RefCell<Option<TempDir>>,
    ledger: SharedLedger,
    /// The machine's wall clock.
    pub wall: Arc<WallClock>,
    /// Bandwidth of its connections.
    pub bandwidth: Bandwidth,
    running: RefCell<Option<Node>>,
    starts: Cell<u64>,
    /// Whether the operator of the machine wants the node to run.
    wanted: Cell<bool>,
    decided: Notify,
    /// Gate of the running process, and the number of faults that keep it closed.
    gate: RefCell<Gate>,
    pauses: Cell<usize>,
}

impl Host {
    /// A machine with an empty disk.
    ///
    /// # Errors
    /// A temporary directory cannot be created.
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

    /// Starts the node, and shuts it down gracefully when asked to.
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

    /// Asks the node to stop or to start again, as a supervisor does.
    pub fn set_running(&self, wanted: bool) {
        self.wanted.set(wanted);
        self.decided.notify_one();
    }

    /// Stops the process, as SIGSTOP does. Faults may overlap.
    pub fn pause(&self) {
        self.pauses.set(self.pauses.get() + 1);
        self.gate.borrow().close();
    }

    /// Continues the process when the last of these faults ends. A process that was started in the
    /// meantime was never stopped.
    pub fn resume(&self) {
        self.pauses.set(self.pauses.get().saturating_sub(1));
        if self.pauses.get() == 0 {
            self.gate.borrow().open();
        }
    }

    /// Records that the process was killed. All tasks of the machine must have ended.
    pub fn forget(&self) {
        self.running.borrow_mut().take();
    }

    /// Discards unsynced data: all of it, or a random part if `torn`. All tasks of the machine must
    /// have ended. Returns the number of bytes lost from the log.
    ///
    /// # Errors
    /// The log's files cannot be truncated.
    pub fn lose_power(&self, torn: bool) -> io::Result<u64> {
        self.forget();
        self.disk.cut_power(&self.data_dir(), torn)
    }

    /// Flips a bit of the log. The node must not run. Returns false if the log is still empty.
    ///
    /// # Errors
    /// The log's files cannot be read or written.
    pub fn rot_log(&self) -> io::Result<bool> {
        let rots = self.disk.rot_log(&self.data_dir())?;
        self.note(rots);
        Ok(rots)
    }

    /// Flips a bit in a row of the state. The node must not run. Returns false if the state is
    /// still empty.
    ///
    /// # Errors
    /// The state cannot be read or written.
    pub fn rot_row(&self) -> io::Result<bool> {
        let rots = rot_row(&self.data_dir(), self.number("rot row"))?;
        self.note(rots);
        Ok(rots)
    }

    /// Copies the disk. The node must not run. Returns false if the node has never started, or if
    /// its disk may have lost data.
    ///
    /// # Errors
    /// Errors of the file system.
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

    /// The node whose disk was copied, and its number of starts at that time.
    pub fn copied(&self) -> Option<(u64, u64)> {
        let copy = self.copy.borrow();
        copy.as_ref().map(|(_, starts)| (self.node, *starts))
    }

    /// Restores the disk from its copy. The node must not run.
    ///
    /// # Errors
    /// Errors of the file system, or there is no copy.
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

    /// A random number, unique to this purpose and this start of the node.
    fn number(&self, purpose: &str) -> u64 {
        let purpose = format!("{purpose} {} {}", self.node, self.starts.get());
        self.parameters.seed.number(&purpose)
    }

    /// Replaces the disk by an empty one. The node must not run.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn wipe(&self) -> io::Result<()> {
        self.disk.wipe(&self.data_dir())
    }

    /// Writes a backup if the node runs. Returns the index of its last entry.
    ///
    /// # Errors
    /// Errors of the file system.
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

    /// Restores a backup on this node, either to begin a new cluster or to join one as a further
    /// member. The node must not run and must have no data.
    ///
    /// # Errors
    /// The backup or the disk is unusable.
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

    /// Allows the node to refuse to start; it then stays down.
    pub fn may_be_refused(&self) {
        self.note(true);
    }

    /// Makes the node join with this token from its next start on.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn set_join_token(&self, token: &str) -> io::Result<()> {
        let paper = scratch()?;
        let mut open = fs::OpenOptions::new();
        open.write(true).create_new(true).mode(0o600);
        let mut file = open.open(paper.path().join(TOKEN))?;
        file.write_all(token.as_bytes())?;
        *self.token.borrow_mut() = Some(paper);
        Ok(())
    }

    /// Whether the disk has lost data that the node had stored.
    pub fn is_rotten(&self) -> bool {
        self.is_rotten.get()
    }

    /// The error with which the node refused to start on damaged data.
    pub fn refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    /// The disk, for fault injection.
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    fn data_dir(&self) -> PathBuf {
        self.top.path().join("data")
    }

    /// Makes syncs slow, or restores their normal latency.
    pub fn slow_disk(&self, slow: bool) {
        if slow {
            self.disk
                .set_latency(Duration::from_millis(50)..=Duration::from_millis(400));
        } else {
            self.disk
                .set_latency(self.parameters.sync_min..=self.parameters.sync_max);
        }
    }

    /// The role that the node reports, if it runs.
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

    /// The number of the node's start and the range of its change log, if it runs.
    pub fn change_log(&self) -> Option<(u64, ChangeLogRange)> {
        let running = self.running.borrow();
        let node = running.as_ref()?;
        let range = ChangeLogRange {
            after: node.change_log_floor()?,
            last: node.views()?.applied_index()?,
        };
        Some((self.starts.get(), range))
    }

    /// The latest start in which `node` has written, as far as this node has applied the log.
    pub fn last_start_of(&self, node: u64) -> Option<u64> {
        let applied = self.running.borrow().as_ref()?.views()?.current();
        Some(applied.cluster.session(node)?.boot)
    }

    /// Description of an acknowledged vote that the disk had lost when the node started again.
    pub fn lost_vote(&self) -> Option<String> {
        self.disk.lost_vote()
    }

    /// Whether everything that the node derives from its rows equals the same data computed again
    /// from the rows. True if the node does not run.
    pub fn agrees_with_recount(&self) -> bool {
        let running = self.running.borrow();
        let views = running.as_ref().and_then(Node::views);
        views.is_none_or(|views| views.current().cluster.agrees_with_recount())
    }

    /// Whether the state of the running node has a lease that is over by the time of the log.
    pub fn has_leases_that_are_over(&self) -> bool {
        let running = self.running.borrow();
        let Some(views) = running.as_ref().and_then(Node::views) else {
            return false;
        };
        let current = views.current();
        let mut states = current.cluster.states();
        states.any(|(_, state)| {
            let end = state.next_lease_end();
            end.is_some_and(|end| Some(end) <= current.last_stamp)
        })
    }

    /// Index of the last applied entry, and the members at that index.
    pub fn members(&self) -> Option<(u64, BTreeSet<u64>)> {
        let current = self.running.borrow().as_ref()?.views()?.current();
        let nodes = current.membership.membership().nodes();
        Some((current.index()?, nodes.map(|(node, _)| *node).collect()))
    }

    /// Index of the last applied entry, and the digest of the state.
    pub fn applied(&self) -> Option<(u64, Digest)> {
        let current = self.running.borrow().as_ref()?.views()?.current();
        Some((current.index()?, current.digest()))
    }

    fn config(&self) -> Config {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).expect("short");
        let mut config = Config {
            node_id: self.node,
            data_dir: self.data_dir(),
            // A spare has no initial members: it waits until an operator adds it.
            initial_members: (1..=self.parameters.nodes)
                .filter(|_| self.node <= self.parameters.nodes)
                .map(|node| {
                    let address = format!("{}:{PEER_PORT}", node_name(node));
                    Text(InitialMember { id: node, address })
                })
                .collect(),
            ..Config::default()
        };
        if let Some(token) = &*self.token.borrow() {
            // The founders of the cluster may have been removed since.
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
        // Free space on the host must not influence a run.
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
            standards: SyncStandards::from_this_binary(),
            http_date: false,
        }
    }

    fn storage(&self) -> StoreOptions {
        let rules = mutant::rules(self.mutant, self.node);
        let mut storage = StoreOptions::new("");
        storage.applier = self.ledger.applier(self.node, rules);
        storage.log_observer = Some(self.ledger.log_observer(self.node));
        storage.disk = Arc::new(self.disk.clone());
        // A small cache, so that entries are also read from disk.
        storage.log_cache_bytes = self.parameters.knobs.log_cache_bytes;
        storage.rows_behind = self.parameters.knobs.rows_behind;
        storage.ledger_behind = self.parameters.knobs.ledger_behind;
        storage.ledger_bytes = self.parameters.knobs.ledger_bytes;
        storage.block_cache_bytes = 1 << 20;
        // The write buffers keep the product's 64 MiB, so that no run fills them: RocksDB would
        // flush them in a thread of its own, and the state after a loss of power would depend on
        // when that was. The smaller `Limits::rows_buffer` causes flushes instead.
        storage
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A temporary directory that is removed with the machine, in memory if possible.
pub(crate) fn scratch() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    }
}
