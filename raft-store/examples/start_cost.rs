//! What a node costs at rest: `cargo run --release --workspace --example start_cost`.
//!
//! Fills stores through the state machine, without Raft and without a log: an empty one, one with
//! hosts, one with hosts and consumers. Opens each in a fresh process three times and prints the
//! median start, its CPU time, memory, bytes on disk and in a snapshot that is sent, and by difference what
//! one host and one consumer cost. The sizes can be given: `start_cost 100000 1000000`.
//!
//! At last the full store is written to, 16 claims at a time, each group appended to the log, synced and
//! applied: alone, beside flushes of its rows, which are its own snapshots, and beside files of snapshots, as
//! they are written for a node that must be sent one.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command as Process;
use std::time::Duration;

use futures::stream;
use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogStorageExt, RaftStateMachine};
use openraft::vote::leader_id_adv::LeaderId;
use placement_model::command::{
    CapacityRule, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, CreateProvider,
    ProviderAmounts, ReplaceAllocations, ReplaceInventories, ReplaceProviderTraits, RequestId,
};
use placement_model::types::{
    ConsumerUuid, Generation, Given, Inventory, PartitionId, ProjectId, ProviderUuid, Timestamp,
    UserId,
};
use placement_model::{Command, Stamped, standard};
use placement_raft_store::wire::RecordVersion;
use placement_raft_store::{
    Entry, Identity, LogId, LoggedCommand, Payload, StateMachine, StoreOptions, create, open,
    runtime,
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

type Outcome<T> = Result<T, Box<dyn Error>>;

const PROJECTS: u32 = 1_000;
const USERS_PER_PROJECT: u32 = 5;
const STARTS: usize = 3;
/// Claims that are appended and applied together.
const GROUP: u32 = 16;
/// How long groups are written in each of the three ways.
const WRITES: Duration = Duration::from_secs(10);
/// Between what disturbs them.
const PAUSE: Duration = Duration::from_millis(500);

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => compare(100_000, 1_000_000),
        ["fill", dir, hosts, consumers] => fill(Path::new(dir), hosts.parse()?, consumers.parse()?),
        ["start", dir] => start(Path::new(dir)),
        ["write", dir, hosts, consumers] => {
            write(Path::new(dir), hosts.parse()?, consumers.parse()?)
        }
        [hosts, consumers] => compare(hosts.parse()?, consumers.parse()?),
        _ => Err("usage: start_cost [HOSTS CONSUMERS]".into()),
    }
}

/// What one store costs, in seconds and bytes.
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
    resident: f64,
    peak: f64,
    disk: f64,
    snapshot: f64,
}

fn compare(hosts: u32, consumers: u32) -> Outcome<()> {
    println!("| | start | CPU | resident | peak | on disk | snapshot |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let mut writes = String::new();
    let nothing = measure(0, 0, &mut writes)?;
    print_whole("nothing", &nothing);
    let only_hosts = measure(hosts, 0, &mut writes)?;
    print_whole(&format!("{hosts} hosts"), &only_hosts);
    let both = measure(hosts, consumers, &mut writes)?;
    print_whole(&format!("and {consumers} consumers"), &both);
    print_each("one host", &nothing, &only_hosts, hosts);
    print_each("one consumer", &only_hosts, &both, consumers);
    print!("\n{writes}");
    Ok(())
}

fn print_whole(what: &str, cost: &Cost) {
    println!(
        "| {what} | {:.2} s | {:.2} s | {} | {} | {} | {} |",
        cost.seconds,
        cost.cpu_seconds,
        mebibytes(cost.resident),
        mebibytes(cost.peak),
        mebibytes(cost.disk),
        mebibytes(cost.snapshot)
    );
}

fn print_each(what: &str, less: &Cost, more: &Cost, count: u32) {
    let each = |of: fn(&Cost) -> f64| (of(more) - of(less)) / f64::from(count);
    println!(
        "| {what} | {:.2} µs | {:.2} µs | {:.0} B | {:.0} B | {:.0} B | {:.0} B |",
        each(|cost| cost.seconds) * 1e6,
        each(|cost| cost.cpu_seconds) * 1e6,
        each(|cost| cost.resident),
        each(|cost| cost.peak),
        each(|cost| cost.disk),
        each(|cost| cost.snapshot)
    );
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / f64::from(1 << 20))
}

fn measure(hosts: u32, consumers: u32, writes: &mut String) -> Outcome<Cost> {
    let dir = tempfile::tempdir()?;
    let filled = Instant::now();
    let snapshot = run_again(
        &["fill", &hosts.to_string(), &consumers.to_string()],
        dir.path(),
    )?;
    eprintln!(
        "{hosts} hosts and {consumers} consumers were put in {:.1} s",
        filled.elapsed().as_secs_f64()
    );
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let printed = run_again(&["start"], dir.path())?;
        let numbers: Result<Vec<f64>, _> = printed.split_whitespace().map(str::parse).collect();
        starts.push(numbers?);
    }
    starts.sort_by(|one, other| one[0].total_cmp(&other[0]));
    if consumers > 0 {
        let numbers = [hosts.to_string(), consumers.to_string()];
        writes.push_str(&run_again(
            &["write", &numbers[0], &numbers[1]],
            dir.path(),
        )?);
    }
    let median = &starts[STARTS / 2];
    Ok(Cost {
        seconds: median[0],
        cpu_seconds: median[1],
        resident: median[2],
        peak: median[3],
        disk: bytes_below(&dir.path().join("state"))?,
        snapshot: snapshot.trim().parse()?,
    })
}

/// What disturbs those who write.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    Flushes,
    Files,
}

/// Prints how long groups of claims take, alone, beside flushes and beside files of snapshots.
fn write(dir: &Path, hosts: u32, consumers: u32) -> Outcome<()> {
    let mut store = open(StoreOptions::new(dir))?;
    println!("| groups of {GROUP} claims beside | groups | p50 | p99 | longest | done beside |");
    println!("|---|---:|---:|---:|---:|---:|");
    workers()?.block_on(async {
        let mut consumer = consumers;
        for beside in [Beside::Nothing, Beside::Flushes, Beside::Files] {
            let (drafts, views) = (store.drafts.clone(), store.views.clone());
            let until = Instant::now() + WRITES;
            let disturber = runtime::spawn(async move {
                let mut done = 0;
                while Instant::now() < until {
                    match beside {
                        Beside::Nothing => return Ok(0),
                        Beside::Flushes => drafts.flush().await?,
                        Beside::Files => {
                            drop(drafts.write_down(&views.current().to_snapshot()).await?)
                        }
                    }
                    done += 1;
                    sleep(PAUSE).await;
                }
                Ok::<_, std::io::Error>(done)
            });
            let mut took = Vec::new();
            while Instant::now() < until {
                let first = store.views.applied_index().map_or(0, |index| index + 1);
                let claims = (consumer..consumer + GROUP).map(|number| claim(number, hosts));
                let group: Vec<_> = entries(first, claims).collect();
                consumer += GROUP;
                let started = Instant::now();
                store.log.blocking_append(group.clone()).await?;
                let group = group.into_iter().map(|entry| Ok((entry, None)));
                store.machine.apply(stream::iter(group)).await?;
                took.push(started.elapsed());
            }
            let done = disturber.await??;
            took.sort_unstable();
            let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
            println!(
                "| {beside:?} | {} | {:.2} ms | {:.2} ms | {:.2} ms | {done} |",
                took.len(),
                at(50),
                at(99),
                at(100)
            );
        }
        Ok(())
    })
}

/// Runs this program anew, so that what was done before costs nothing.
fn run_again(words: &[&str], dir: &Path) -> Outcome<String> {
    let (verb, numbers) = words.split_first().ok_or("a verb comes first")?;
    let output = Process::new(std::env::current_exe()?)
        .arg(verb)
        .arg(dir)
        .args(numbers)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{verb} ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn bytes_below(dir: &Path) -> Outcome<f64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes as f64)
}

fn fill(dir: &Path, hosts: u32, consumers: u32) -> Outcome<()> {
    let identity = Identity {
        cluster: Uuid::from_u128(1),
        epoch: 1,
        node: 1,
    };
    create(dir, identity)?;
    let mut store = open(StoreOptions::new(dir))?;
    workers()?.block_on(async {
        let made = (0..hosts).flat_map(host);
        let claimed = (0..consumers).map(|number| claim(number, hosts));
        let commands = std::iter::once(standard::sync()).chain(made).chain(claimed);
        let (started, before) = (Instant::now(), cpu_seconds()?);
        apply(&mut store.machine, commands).await?;
        let seconds = started.elapsed().as_secs_f64();
        let each = (cpu_seconds()? - before) * 1e6 / f64::from(1 + 3 * hosts + consumers);
        eprintln!("applied in {seconds:.1} s, {each:.1} µs of CPU a command");
        let started = Instant::now();
        store.drafts.flush().await?;
        eprintln!("flushed in {:.2} s", started.elapsed().as_secs_f64());
        let started = Instant::now();
        let file = store
            .drafts
            .write_down(&store.views.current().to_snapshot())
            .await?;
        eprintln!(
            "the file of a snapshot written in {:.2} s",
            started.elapsed().as_secs_f64()
        );
        println!("{}", file.length());
        let sizes = store.views.current().cluster.default_partition().sizes();
        assert_eq!(sizes.providers, hosts as usize);
        assert_eq!(sizes.consumers, consumers as usize);
        Ok(())
    })
}

async fn apply(
    machine: &mut StateMachine,
    commands: impl Iterator<Item = Command> + Send,
) -> Outcome<()> {
    let entries = entries(0, commands).map(|entry| Ok((entry, None)));
    machine.apply(stream::iter(entries)).await?;
    Ok(())
}

/// The entries of a log from an index on.
fn entries(
    first: u64,
    commands: impl Iterator<Item = Command> + Send,
) -> impl Iterator<Item = Entry> + Send {
    (first..).zip(commands).map(|(index, command)| {
        let stamped = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(1_800_000_000_000_000 + index as i64),
            request: Some(RequestId {
                origin: 1,
                boot: 1,
                sequence: index,
                answered_below: index.saturating_sub(16),
            }),
            command,
        };
        let id = LogId::new(
            LeaderId {
                term: 1,
                node_id: 1,
            },
            index,
        );
        let command = LoggedCommand::encoded(RecordVersion::NEWEST, stamped);
        Entry::new(id, Payload::Normal(command))
    })
}

/// Opens a store and prints seconds, CPU seconds, resident bytes and the most that were resident.
fn start(dir: &Path) -> Outcome<()> {
    let started = Instant::now();
    let store = open(StoreOptions::new(dir))?;
    let seconds = started.elapsed().as_secs_f64();
    let (resident, peak) = (memory("VmRSS")?, memory("VmHWM")?);
    println!("{seconds} {} {resident} {peak}", cpu_seconds()?);
    drop(store);
    Ok(())
}

/// A line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kibibytes.ok_or("Linux counts this")?.parse::<u64>()? << 10)
}

/// What Linux counts in hundredths of a second.
fn cpu_seconds() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("the name ends")?;
    let times = fields.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<f64>, _> = times.map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / 100.0)
}

fn workers() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()?)
}

/// A UUID in an order of its own, as ids come in a cloud.
fn scattered(kind: &str, number: u32) -> Uuid {
    Uuid::from_u128(xxh3_128(format!("{kind}{number}").as_bytes()))
}

fn host(number: u32) -> [Command; 3] {
    let uuid = ProviderUuid(scattered("host", number));
    let inventory = |total, reserved, allocation_ratio| Inventory {
        total,
        reserved,
        min_unit: 1,
        max_unit: total,
        step_size: 1,
        allocation_ratio,
    };
    let inventories = [
        ("VCPU", inventory(128, 2, 4.0)),
        ("MEMORY_MB", inventory(1 << 20, 4096, 1.0)),
        ("DISK_GB", inventory(20_000, 100, 1.0)),
    ];
    let mut traits = BTreeSet::from(["COMPUTE_NODE", "HW_CPU_X86_AVX2", "COMPUTE_TRUSTED_CERTS"]);
    if number.is_multiple_of(2) {
        traits.insert("HW_CPU_X86_AVX512F");
    }
    [
        Command::CreateProvider(CreateProvider {
            uuid,
            name: known(format!("compute-{number:06}.example.org").try_into()),
            parent: None,
        }),
        Command::ReplaceInventories(ReplaceInventories {
            provider: uuid,
            generation: Generation(0),
            inventories: inventories
                .map(|(name, inventory)| (known(name.parse()), inventory))
                .into(),
            capacity_rule: CapacityRule::Positive,
        }),
        Command::ReplaceProviderTraits(ReplaceProviderTraits {
            provider: uuid,
            generation: Generation(1),
            traits: traits.into_iter().map(|name| known(name.parse())).collect(),
        }),
    ]
}

fn claim(number: u32, hosts: u32) -> Command {
    let project = number % PROJECTS;
    let user = project * USERS_PER_PROJECT + number / PROJECTS % USERS_PER_PROJECT;
    let amounts = [("VCPU", 2), ("MEMORY_MB", 4096), ("DISK_GB", 20)];
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: vec![ConsumerAllocations {
            consumer: ConsumerUuid::from(scattered("consumer", number).to_string()),
            allocations: vec![ProviderAmounts {
                provider: Given::from(scattered("host", number % hosts).to_string()),
                resources: BTreeMap::from(
                    amounts.map(|(name, amount)| (known(name.parse()), amount)),
                ),
            }],
            project: ProjectId::from(scattered("project", project).simple().to_string()),
            user: UserId::from(scattered("user", user).simple().to_string()),
            generation: ConsumerGeneration::New,
            consumer_type: ConsumerTypeUpdate::Set(known("INSTANCE".parse())),
        }],
    })
}

fn known<T, E: std::fmt::Debug>(parsed: Result<T, E>) -> T {
    parsed.expect("the names of this example are valid")
}
