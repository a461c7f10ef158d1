//! Runs a cluster on this machine. `scripts/run-cluster` builds the programs and then calls this.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use placement_client::{Admin, Client};
use placement_local::layout::{NodePlace, PORTS_PER_NODE, initial_members};
use placement_local::node_process::{NodeProcess, StartOptions, log_tail};
use placement_local::{binaries, exit_code, is_ready, ports, sample};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::signal::unix::{self, SignalKind, signal};

const BASE_PORT_DEFAULT: u16 = 8778;
const NODES_DEFAULT: u64 = 3;
const HEALTHY_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const RECORD: &str = "cluster.json";

/// Builds placementd and runs a cluster on loopback, with a data directory for each node and a
/// sample cloud to try. Ctrl-C stops everything; the next start continues with the same data.
#[derive(Parser)]
#[command(name = "scripts/run-cluster")]
struct Command {
    /// Number of nodes [default: 3, or as many as the directory holds].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=50))]
    nodes: Option<u64>,

    /// Directory of data and logs [default: .cluster next to scripts/].
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Port of the first node's REST API; the next two ports are for traffic between nodes and for
    /// the admin listener. The ports of each further node are 10 higher [default: 8778, or the base
    /// port of the cluster that the directory already holds].
    #[arg(long, value_name = "PORT")]
    base_port: Option<u16>,

    /// A placementd.toml for all nodes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Deletes the content of the directory first.
    #[arg(long)]
    clean: bool,

    /// Leaves the cluster empty.
    #[arg(long)]
    no_sample: bool,

    /// Returns once the cluster is healthy and leaves it running; prints on stdout only
    /// `{"nodes": [{"id", "api", "pid", "data_dir"}, …]}`.
    #[arg(long, conflicts_with = "stop")]
    detach: bool,

    /// Stops the cluster that runs detached in this directory.
    #[arg(long)]
    stop: bool,

    #[arg(long, hide = true)]
    state_dir_default: Option<PathBuf>,
}

/// Settings of a directory, recorded for later runs.
#[derive(Serialize, Deserialize)]
struct Record {
    base_port: u16,
    nodes: Vec<RecordedNode>,
}

#[derive(Clone, Serialize, Deserialize)]
struct RecordedNode {
    id: u64,
    api: String,
    pid: u32,
    data_dir: PathBuf,
}

fn main() -> ExitCode {
    exit_code(begin().map(|()| ExitCode::SUCCESS))
}

fn begin() -> anyhow::Result<()> {
    // One thread, because a node gets its death signal when the thread that started it ends.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(run(Command::parse()))
}

async fn run(command: Command) -> anyhow::Result<()> {
    let directory = directory(&command)?;
    if command.stop {
        return stop_detached(&directory).await;
    }
    let record = Record::read(&directory)?;
    let mut recorded = record.iter().flat_map(|record| &record.nodes);
    if let Some(node) = recorded.find(|node| node.is_alive()) {
        let (at, pid) = (directory.display(), node.pid);
        bail!("a cluster already runs in {at} (process {pid}); end it with --stop --dir {at}");
    }
    let record = record.filter(|_| !command.clean);
    if command.clean {
        clean(&directory)?;
    }
    let places = places(&command, &directory, record.as_ref())?;
    check_ports(&places)?;
    let mut interrupt = Interrupt::new()?;
    let mut nodes = start(&command, &places)?;
    Record::write(&directory, places[0].base_port, &nodes)?;

    let prepared = tokio::select! {
        prepared = prepare(&command, &mut nodes) => prepared,
        () = interrupt.wait() => Err(anyhow::anyhow!("interrupted")),
    };
    let report = match prepared {
        Ok(report) => report,
        Err(error) => {
            stop(nodes).await;
            return Err(error);
        }
    };
    if command.detach {
        eprint!("{report}");
        announce(nodes)?;
        return Ok(());
    }
    print!("{report}");
    println!(
        "\nCtrl-C stops the cluster; its data stay in {}. To start over, use --clean.",
        directory.display()
    );
    watch(&mut nodes, &mut interrupt).await;
    stop(nodes).await;
    Ok(())
}

fn directory(command: &Command) -> anyhow::Result<PathBuf> {
    let chosen = command
        .dir
        .as_ref()
        .or(command.state_dir_default.as_ref())
        .map_or(Path::new(".cluster"), PathBuf::as_path);
    std::path::absolute(chosen).with_context(|| format!("invalid path: {}", chosen.display()))
}

/// Deletes only what this tool has created.
fn clean(directory: &Path) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name == RECORD || name.starts_with("node-");
        ensure!(
            ours,
            "--clean deletes nothing: {} contains `{name}`, which is not part of a cluster",
            directory.display()
        );
    }
    fs::remove_dir_all(directory).with_context(|| format!("cannot delete {}", directory.display()))
}

/// Places of the nodes: as recorded, or as chosen for a new cluster. Addresses are part of the
/// membership, so the cluster of a directory keeps its addresses.
fn places(
    command: &Command,
    directory: &Path,
    record: Option<&Record>,
) -> anyhow::Result<Vec<NodePlace>> {
    let (nodes, base_port) = match record {
        Some(record) => (record.nodes.len() as u64, record.base_port),
        None => (
            command.nodes.unwrap_or(NODES_DEFAULT),
            command.base_port.unwrap_or(BASE_PORT_DEFAULT),
        ),
    };
    let other_nodes = command.nodes.is_some_and(|chosen| chosen != nodes);
    let other_ports = command.base_port.is_some_and(|chosen| chosen != base_port);
    if other_nodes || other_ports {
        bail!(
            "{} holds a cluster of {nodes} nodes whose ports begin at {base_port}. Neither can be \
             changed: omit --nodes and --base-port, choose another --dir, or delete the cluster \
             with --clean",
            directory.display()
        );
    }
    let highest = u64::from(base_port) + nodes * u64::from(PORTS_PER_NODE);
    ensure!(
        base_port > 0 && highest <= 65_536,
        "{nodes} nodes from port {base_port} on need ports up to {highest}; choose a lower --base-port"
    );
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(NodePlace::all(directory, base_port, nodes))
}

fn check_ports(places: &[NodePlace]) -> anyhow::Result<()> {
    for place in places {
        for (port, purpose) in place.ports() {
            ensure!(
                ports::is_free(port),
                "port {port} ({purpose} of node {}) is in use by another program; choose others \
                 with --base-port, or end that program",
                place.id
            );
        }
    }
    Ok(())
}

fn start(command: &Command, places: &[NodePlace]) -> anyhow::Result<Vec<NodeProcess>> {
    let absolute = |file: &PathBuf| {
        fs::canonicalize(file).with_context(|| format!("cannot read {}", file.display()))
    };
    let options = StartOptions {
        initial_members: initial_members(places),
        config: command.config.as_ref().map(absolute).transpose()?,
        dies_with_parent: (!command.detach).then_some("TERM"),
        ..StartOptions::default()
    };
    places
        .iter()
        .map(|place| {
            eprintln!(
                "==> starting node {}: REST API {}, data in {}",
                place.id,
                place.api_url(),
                place.data_dir.display()
            );
            NodeProcess::start(place, &options)
        })
        .collect()
}

/// Waits until the cluster is healthy, loads the sample and tries it. Returns the report to print.
async fn prepare(command: &Command, nodes: &mut [NodeProcess]) -> anyhow::Result<String> {
    wait_healthy(nodes).await?;
    let endpoints: Vec<_> = nodes.iter().map(|node| node.place().api_url()).collect();
    let mut report = String::new();
    writeln!(report, "\nThe cluster is up:")?;
    for node in nodes.iter() {
        let place = node.place();
        writeln!(
            report,
            "  node {}   REST API {}   admin {}   pid {}   log {}",
            place.id,
            place.api_url(),
            place.admin(),
            node.pid(),
            place.log.display()
        )?;
    }
    if !command.no_sample {
        let client = Client::new(&endpoints)?;
        load_sample(&client).await?;
        let found = client.call(sample::query().request()).await?;
        let claim = sample::claim(&client, &found.json()?).await?;
        writeln!(
            report,
            "\nThe sample cloud is loaded. Consumer {} has allocations on {} of its providers.",
            sample::CONSUMER,
            claim.allocations.len()
        )?;
    }
    write_commands(nodes, !command.no_sample, &mut report)?;
    writeln!(
        report,
        "\nOpenStack's own client (pip install python-openstackclient osc-placement) talks to it with\n  \
         openstack --os-auth-type admin_token --os-token admin --os-endpoint {} \\\n    \
         --os-placement-api-version 1.39 resource provider list",
        endpoints[0]
    )?;
    write_loss(nodes, !command.no_sample, &mut report).await?;
    Ok(report)
}

/// Prints commands to try, which can be pasted into a shell.
fn write_commands(nodes: &[NodeProcess], sample: bool, report: &mut String) -> anyhow::Result<()> {
    let admins: Vec<_> = nodes.iter().map(|node| node.place().admin()).collect();
    let placementctl = binaries::placementctl()?;
    let folder = placementctl.parent().unwrap_or(Path::new("."));
    writeln!(
        report,
        "\nTry in another terminal:\n  export PATH={}:$PATH\n  export PLACEMENTCTL_ENDPOINT={}",
        shell_word(&folder.to_string_lossy()),
        admins.join(",")
    )?;
    let content: &[(&str, &str)] = if sample {
        &[
            ("capacity", "what the cloud has, and what is used"),
            ("providers list --roots", "the hosts"),
            (
                "candidates VCPU:4 MEMORY_MB:8192",
                "where a server would fit",
            ),
            ("explain VCPU:100", "why there is no room"),
        ]
    } else {
        &[]
    };
    let cluster = [
        ("status", "members, leader and lag"),
        ("top", "the same and the load, continuously"),
        ("web", "the same in a browser"),
    ];
    for (command, purpose) in cluster[..1].iter().chain(content).chain(&cluster[1..]) {
        writeln!(report, "  placementctl {command:32}  # {purpose}")?;
    }
    writeln!(
        report,
        "docs/tutorial.md explains these commands step by step."
    )?;
    Ok(())
}

/// Prints who leads, and how to see that the cluster survives its leader.
async fn write_loss(
    nodes: &[NodeProcess],
    sample: bool,
    report: &mut String,
) -> anyhow::Result<()> {
    let admins = nodes.iter().map(|node| node.place().admin());
    let leader = Admin::new(Client::new(admins)?).status().await?.leader;
    let leads = |node: &&NodeProcess| Some(node.place().id) == leader;
    let survivor = nodes.iter().find(|node| !leads(node));
    // A cluster of two nodes cannot lose one.
    let survivor = survivor.filter(|_| nodes.len() > 2);
    let (Some(leader), Some(survivor)) = (nodes.iter().find(leads), survivor) else {
        return Ok(());
    };
    let question = if sample {
        format!("allocations/{}", sample::CONSUMER)
    } else {
        "resource_providers".to_owned()
    };
    let id = leader.place().id;
    writeln!(
        report,
        "\nNode {id} leads. Kill it: the other nodes continue, with everything that was written:\n  \
         kill -9 {}\n  \
         curl -i -H 'X-Auth-Token: admin' -H 'OpenStack-API-Version: placement 1.39' {}/{question}\n  \
         placementctl status\nTo start node {id} again, stop scripts/run-cluster and start it again.",
        leader.pid(),
        survivor.place().api_url(),
    )?;
    Ok(())
}

/// Quotes a word for the shell.
fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:@%=".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

async fn wait_healthy(nodes: &mut [NodeProcess]) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut reported = started;
    let end_of_log = |place: &NodePlace| {
        let tail = log_tail(&place.log, 15);
        format!(
            "the last lines of its log, {}:\n{tail}",
            place.log.display()
        )
    };
    for at in 0..nodes.len() {
        let place = nodes[at].place().clone();
        let id = place.id;
        while !is_ready(&place).await {
            for node in nodes.iter_mut() {
                if let Some(status) = node.ended() {
                    let (ended, log) = (node.place().id, end_of_log(node.place()));
                    bail!("node {ended} ended with {status}; {log}");
                }
            }
            ensure!(
                started.elapsed() < HEALTHY_LIMIT,
                "node {id} is not healthy after {} s; {}",
                HEALTHY_LIMIT.as_secs(),
                end_of_log(&place)
            );
            if reported.elapsed() > Duration::from_secs(2) {
                reported = Instant::now();
                let waited = started.elapsed().as_secs();
                eprintln!("    ... waiting for node {id}: {waited} s");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let took = started.elapsed().as_secs_f64();
        eprintln!("==> node {id} is healthy ({took:.1} s)");
    }
    Ok(())
}

async fn load_sample(client: &Client) -> anyhow::Result<()> {
    if sample::is_loaded(client).await? {
        eprintln!("==> the sample cloud is already loaded");
        return Ok(());
    }
    eprintln!("==> loading the sample cloud");
    sample::load(client, |name| eprintln!("    {name}"))
        .await
        .context("cannot load the sample cloud")
}

/// Runs until a signal. Reports a node that ends by itself; the other nodes continue.
async fn watch(nodes: &mut Vec<NodeProcess>, interrupt: &mut Interrupt) {
    loop {
        tokio::select! {
            () = interrupt.wait() => return,
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
        nodes.retain_mut(|node| match node.ended() {
            Some(status) => {
                let log = node.place().log.display();
                eprintln!("node {} ended with {status}; see {log}", node.place().id);
                false
            }
            None => true,
        });
        if nodes.is_empty() {
            eprintln!("all nodes have ended");
            return;
        }
    }
}

async fn stop(mut nodes: Vec<NodeProcess>) {
    eprintln!("==> stopping {} nodes", nodes.len());
    for node in &nodes {
        node.signal(Signal::TERM);
    }
    let started = Instant::now();
    while started.elapsed() < STOP_LIMIT {
        nodes.retain_mut(|node| node.ended().is_none());
        if nodes.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for node in nodes {
        eprintln!("node {} does not stop; killing it", node.place().id);
        node.kill_9();
    }
}

async fn stop_detached(directory: &Path) -> anyhow::Result<()> {
    let Some(record) = Record::read(directory)? else {
        bail!("no detached cluster in {}", directory.display());
    };
    let alive = || record.nodes.iter().filter(|node| node.is_alive());
    eprintln!("==> stopping {} nodes", alive().count());
    alive().for_each(|node| node.signal(Signal::TERM));
    let started = Instant::now();
    while alive().next().is_some() && started.elapsed() < STOP_LIMIT {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for node in alive() {
        eprintln!("node {} does not stop; killing it", node.id);
        node.signal(Signal::KILL);
    }
    while alive().next().is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn announce(nodes: Vec<NodeProcess>) -> anyhow::Result<()> {
    let recorded: Vec<_> = nodes.iter().map(RecordedNode::new).collect();
    println!("{}", json!({ "nodes": recorded }));
    nodes.into_iter().for_each(NodeProcess::release);
    Ok(())
}

impl Record {
    fn read(directory: &Path) -> anyhow::Result<Option<Self>> {
        let path = directory.join(RECORD);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        serde_json::from_slice(&text)
            .map(Some)
            .with_context(|| format!("{} was not written by this tool", path.display()))
    }

    fn write(directory: &Path, base_port: u16, nodes: &[NodeProcess]) -> anyhow::Result<()> {
        let record = Self {
            base_port,
            nodes: nodes.iter().map(RecordedNode::new).collect(),
        };
        let path = directory.join(RECORD);
        fs::write(&path, serde_json::to_vec_pretty(&record)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

impl RecordedNode {
    fn new(node: &NodeProcess) -> Self {
        Self {
            id: node.place().id,
            api: node.place().api_url(),
            pid: node.pid(),
            data_dir: node.place().data_dir.clone(),
        }
    }

    /// Whether the recorded process runs and is still this node: the kernel reuses pids.
    fn is_alive(&self) -> bool {
        if (self.process()).is_none_or(|pid| test_kill_process(pid).is_err()) {
            return false;
        }
        let arguments = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let data_dir = self.data_dir.to_string_lossy();
        String::from_utf8_lossy(&arguments).contains(data_dir.as_ref())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.process() {
            // The process may have ended a moment ago.
            let _ = kill_process(pid, signal);
        }
    }

    fn process(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }
}

/// The signals that stop this tool.
struct Interrupt([unix::Signal; 3]);

impl Interrupt {
    fn new() -> anyhow::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn wait(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
