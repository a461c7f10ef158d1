//! One round: a cluster of processes, its clients, a fault phase, a recovery phase, and the
//! verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::future::join_all;
use placement_model::types::PartitionId;
use placement_witness::client::read_all;
use placement_witness::history::History;
use placement_witness::seed::Seed;
use placement_witness::workload::Choices;
use placement_witness::{staleness, wgl, witness};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use super::board::{Phase, RoundContext};
use super::client::Client;
use super::faults::{Fault, INVITED_MAX, Injector};
use super::kept_log::KeptLog;
use crate::cluster::{Cluster, HEALTHY_LIMIT};
use crate::power::Power;
use crate::wait::within;

/// Snapshots and log truncation happen early. The log still retains more entries than these clients
/// write in two seconds, and the nodes archive new entries next to their backups within one second,
/// so the archive has no gap.
const CONFIG: &str = "[cluster]\nwait_ms = 1500\n\
    [raft]\nsnapshot_after = 100\n\
    [backup]\nevery_s = 86400\nkeep = 1000\n\
    [log]\nlevel = \"warn,placement::access=off\"\n";
/// Bandwidth of the links: more than the nodes ever send.
const BITS_PER_S: u32 = 200_000_000;
const CLIENTS: usize = 6;
/// How long a node may continue a request whose client has timed out.
const LATE: Duration = Duration::from_secs(2);
/// Interval of progress reports.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// Parameters of one round.
#[derive(Debug, Clone)]
pub struct Round {
    /// Determines the requests and the faults. Scheduling is not controlled: the same seed does not
    /// give the same history.
    pub seed: u64,
    /// Number of nodes in the cluster.
    pub nodes: u64,
    /// Whether the nodes require TLS between each other.
    pub encrypted: bool,
    /// Faults that are injected in turn, and how long each lasts.
    pub script: Vec<(Fault, Duration)>,
    /// Duration of the random faults after the script.
    pub fault_phase: Duration,
}

/// Result of a round.
#[derive(Debug, Default)]
pub struct RoundResult {
    /// Requests and answers of the clients.
    pub history: History,
    /// Log that the nodes kept.
    pub log: KeptLog,
    /// Number of faults of each kind.
    pub faults: BTreeMap<&'static str, usize>,
    /// Result of the check of the history.
    pub verdict: Verdict,
    /// Directory with all files of the round, if something is wrong.
    pub kept: Option<PathBuf>,
}

/// Result of the check of a history.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Violations of the API's guarantees, as text.
    pub violations: Vec<String>,
    /// Answers that were compared with the expected ones.
    pub compared: usize,
    /// Writes without an answer that were found in the log.
    pub resolved: usize,
    /// Consumers whose histories were checked for linearizability without the log.
    pub searched: usize,
}

/// Checks a history against the log.
pub fn judge(history: &History, log: &KeptLog) -> Verdict {
    let finding = witness::check(history, &log.commands);
    let opinion = wgl::check(history, &finding);
    let mut violations = log.wrong.clone();
    violations.extend(finding.violations.iter().cloned());
    violations.extend(opinion.violations);
    violations.extend(staleness::check(history));
    let events = history.events.iter();
    violations.extend(events.filter_map(witness::broken_answer));
    Verdict {
        violations,
        compared: finding.compared,
        resolved: finding.resolved,
        searched: opinion.searched,
    }
}

impl Round {
    fn prepare(&self) -> anyhow::Result<Cluster> {
        if !self.encrypted {
            return Cluster::prepare_linked(self.nodes, CONFIG, BITS_PER_S);
        }
        let config = format!("{CONFIG}[peer]\ntls = \"require\"\n");
        let mut cluster = Cluster::prepare_linked(self.nodes, &config, BITS_PER_S)?;
        let authority = cluster.authority()?;
        for new in 1..=INVITED_MAX {
            authority.node(self.nodes + new, 1)?;
        }
        cluster.options_mut().authority = Some(authority);
        Ok(cluster)
    }

    /// Runs the round. `say` is called from time to time with its progress.
    ///
    /// # Errors
    /// If the cluster cannot be prepared. Every other failure is a violation.
    pub async fn run(&self, say: impl Fn(&str) + 'static) -> anyhow::Result<RoundResult> {
        let mut cluster = self.prepare()?;
        let backups = cluster.directory().join("backups");
        let flag = backups.display().to_string();
        cluster.options_mut().flags = vec!["--backup-directory".to_owned(), flag];
        let power = Power::new(cluster.directory());
        let choices = Choices {
            seed: Seed(self.seed),
            providers: 3,
            consumers: 12,
            unchecked_percent: 30,
            equal_percent: 20,
            repeated_percent: 70,
            choices_percent: 20,
            holds_percent: 20,
            limits_percent: 20,
        };
        let api = |id| (id, cluster.place(id).api());
        let nodes = cluster.ids().into_iter().map(api).collect();
        let board = Rc::new(RoundContext::new(choices, nodes));
        let mut injector = Injector::new(&mut cluster, &board, power, choices.seed);
        let mut log = KeptLog::default();
        let went = LocalSet::new()
            .run_until(self.go(&mut injector, &board, &backups, &mut log, say))
            .await;
        let faults = injector.met().clone();
        let story = injector.story().join("\n");
        let history = board.history.borrow().clone();
        let panics = cluster.panics();
        let mut verdict = Verdict::default();
        if went.is_ok() {
            verdict = judge(&history, &log);
        }
        verdict.violations.extend(panics);
        verdict
            .violations
            .extend(went.err().map(|error| format!("{error:#}")));
        let mut course = RoundResult {
            history,
            log,
            faults,
            verdict,
            kept: None,
        };
        if !course.verdict.violations.is_empty() {
            let directory = cluster.keep();
            course.write(&directory, &story)?;
            course.kept = Some(directory);
        }
        Ok(course)
    }

    async fn go(
        &self,
        injector: &mut Injector<'_>,
        board: &Rc<RoundContext>,
        backups: &Path,
        log: &mut KeptLog,
        say: impl Fn(&str) + 'static,
    ) -> anyhow::Result<()> {
        for id in injector.cluster.ids() {
            injector.start(id)?;
        }
        injector.cluster.wait_healthy().await?;
        let mut first = Client::new(0, board.clone());
        let set_up = timeout(HEALTHY_LIMIT, first.set_up()).await;
        set_up.context("the first providers cannot be created")?;
        // The oldest backup comes first, so that the kept log begins with the first entry.
        let members = injector.members().iter().copied();
        injector.cluster.wait_backed_up(members).await?;
        for number in 1..CLIENTS {
            spawn_local(Client::new(number, board.clone()).work());
        }
        spawn_local(first.work());
        let speaker = spawn_local(report_progress(self.clone(), board.clone(), say));
        for (fault, lasts) in &self.script {
            injector.inject(*fault, *lasts).await?;
            sleep(Duration::from_millis(500)).await;
        }
        injector.run_for(self.fault_phase).await?;
        for id in injector.members().to_vec() {
            injector.cluster.wait_ready(id).await?;
        }
        board.phase.set(Phase::Recovery);
        let recovered = within(HEALTHY_LIMIT, async || {
            (board.content.get() == CLIENTS).then_some(()).ok_or(())
        });
        if recovered.await.is_err() {
            bail!("not every client completed its writes after the fault phase");
        }
        board.phase.set(Phase::Over);
        speaker.abort();
        sleep(LATE).await;
        *log = all_is_kept(injector, backups).await?;
        scan(injector, board, log).await?;
        *log = all_is_kept(injector, backups).await?;
        for id in injector.members() {
            let report = injector.cluster.admin_of(*id).check().await?;
            if !report.wrong.is_empty() {
                bail!(
                    "the indexes of node {id} do not match its rows: {:?}",
                    report.wrong
                );
            }
        }
        Ok(())
    }
}

/// Waits until all nodes have applied the same entries, with equal states, and the kept log reaches
/// them.
async fn all_is_kept(injector: &Injector<'_>, backups: &Path) -> anyhow::Result<KeptLog> {
    let begun = Instant::now();
    let (mut states, mut reaches) = (BTreeSet::new(), 0);
    while begun.elapsed() < HEALTHY_LIMIT {
        states.clear();
        for id in injector.members() {
            let status = injector.cluster.admin_of(*id).status().await?;
            states.insert((status.applied, status.digest));
        }
        let places: BTreeSet<_> = states.iter().map(|(applied, _)| *applied).collect();
        if states.len() > places.len() {
            bail!("the same entries, but different states: {states:?}");
        }
        if let (1, Some(Some(applied))) = (places.len(), places.first()) {
            let log = KeptLog::read(backups)?;
            reaches = log.reaches();
            if reaches >= *applied {
                return Ok(log);
            }
        }
        sleep(Duration::from_millis(300)).await;
    }
    bail!("the nodes are at {states:?}, but their kept log ends at {reaches}")
}

/// Sends every query to every node.
async fn scan(
    injector: &Injector<'_>,
    board: &Rc<RoundContext>,
    log: &KeptLog,
) -> anyhow::Result<()> {
    let questions = witness::every_question(&log.commands, PartitionId::DEFAULT, &board.names);
    let members = (CLIENTS..).zip(injector.members());
    let scans = members.map(|(scanner, id)| read_all(&**board, scanner, *id, &questions));
    let answered = timeout(HEALTHY_LIMIT, join_all(scans)).await;
    answered.context("not every node answered everything after the fault phase")?;
    Ok(())
}

async fn report_progress(round: Round, board: Rc<RoundContext>, say: impl Fn(&str)) {
    loop {
        sleep(SAY_EVERY).await;
        let requests = board.history.borrow().events.len();
        let passed = board.elapsed().as_secs();
        let leader = board.leader().unwrap_or_default();
        let (seed, nodes) = (round.seed, round.nodes);
        say(&format!(
            "seed {seed}, {nodes} nodes: {passed} s, {requests} requests, node {leader} leads"
        ));
    }
}

impl RoundResult {
    /// Writes history, log and fault events next to the data directories, for the analysis of a
    /// failure.
    fn write(&self, directory: &Path, story: &str) -> anyhow::Result<()> {
        std::fs::write(directory.join("history.txt"), self.history.text())?;
        std::fs::write(directory.join("log.txt"), self.log.text())?;
        std::fs::write(directory.join("faults.txt"), story)?;
        let violations = self.verdict.violations.join("\n");
        std::fs::write(directory.join("violations.txt"), violations)?;
        Ok(())
    }
}
