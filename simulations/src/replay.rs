//! Replays the log of a real node against the naive model: the product's rules and the naive rules
//! execute each command, and must give the same outcome and the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::{fmt, io};

use anyhow::{Context, anyhow, bail, ensure};
use placement_model::command::{Command, Stamped};
use placement_model::{Cluster, Outcome};
use placement_naive::NaiveCluster;
use placement_raft_store::{
    Applier, Backup, KeptFile, LogLine, Payload, Rules, Until, check_backup, inspect,
    inspect_kept_log, inspect_log,
};

/// Entries between two comparisons of all rows. One comparison costs as much as several commands of
/// the naive model.
const ROWS_EVERY: u64 = 1_000;

/// A difference between the product and the naive model, or a recorded digest.
#[derive(Debug, thiserror::Error)]
#[error("log entry {index}: {what}\n    the product: {product}\n    {other}")]
pub struct Difference {
    /// Index of the log entry after which the two differ.
    pub index: u64,
    /// The command or the row.
    pub what: String,
    product: String,
    other: String,
}

/// Counts of a replay without differences.
#[derive(Debug, Default)]
pub struct Counts {
    /// Log entries that were read.
    pub entries: u64,
    /// Commands among the entries.
    pub commands: u64,
    /// Commands that were refused.
    pub refused: u64,
    /// Compared digests that a node had recorded of its state.
    pub digests: usize,
    /// Rows at the end.
    pub rows: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            entries,
            commands,
            refused,
            digests,
            rows,
        } = self;
        write!(
            f,
            "{entries} entries, {commands} commands, {refused} of them refused, {digests} digests, {rows} rows"
        )
    }
}

/// The product and the naive model, side by side.
pub struct ModelPair<'a> {
    applier: &'a dyn Applier,
    cluster: Cluster,
    naive: NaiveCluster,
    /// Counts up to the last command.
    pub counts: Counts,
}

impl<'a> ModelPair<'a> {
    /// Starts both from this state; `applier` decides for the product.
    pub fn new(cluster: Cluster, applier: &'a dyn Applier) -> Self {
        Self {
            applier,
            naive: NaiveCluster::from_cluster(&cluster),
            cluster,
            counts: Counts::default(),
        }
    }

    /// State of the product.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Executes a command on both.
    ///
    /// # Errors
    /// The outcomes differ.
    pub fn carry_out(&mut self, index: u64, stamped: &Stamped) -> Result<(), Difference> {
        let (outcome, changes) = self.applier.apply(index, &self.cluster, stamped);
        self.cluster.commit(&changes);
        let naive = self.naive.apply(stamped);
        self.counts.commands += 1;
        self.counts.refused += u64::from(matches!(outcome, Outcome::Refused(_)));
        if outcome == naive || is_join_command(&stamped.command) {
            return Ok(());
        }
        Err(Difference {
            index,
            what: format!("{stamped:?}"),
            product: format!("{outcome:?}"),
            other: format!("the naive model: {naive:?}"),
        })
    }

    /// Compares all rows after an entry.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare_rows(&mut self, index: u64) -> Result<(), Difference> {
        let (product, naive) = (
            NaiveCluster::from_cluster(&self.cluster).rows(),
            self.naive.rows(),
        );
        self.counts.rows = product.len();
        let names: BTreeSet<_> = product.keys().chain(naive.keys()).collect();
        let mut names = names.into_iter();
        let Some(name) = names.find(|name| product.get(*name) != naive.get(*name)) else {
            return Ok(());
        };
        let text = |row: Option<&String>| row.cloned().unwrap_or("no such row".to_owned());
        Err(Difference {
            index,
            what: format!("{} of partition {}", name.1, name.0.0),
            product: text(product.get(name)),
            other: format!("the naive model: {}", text(naive.get(name))),
        })
    }

    /// Compares the digest of the state with a digest recorded by a node.
    fn compare_digest(&mut self, index: u64, noted: String) -> Result<(), Difference> {
        self.counts.digests += 1;
        let digest = self.cluster.digest().to_string();
        if digest == noted {
            return Ok(());
        }
        Err(Difference {
            index,
            what: "the digest of the state".to_owned(),
            product: digest,
            other: format!("recorded by the node: {noted}"),
        })
    }
}

/// The naive model does not implement joining nodes.
fn is_join_command(command: &Command) -> bool {
    matches!(
        command,
        Command::IssueJoinToken(_)
            | Command::RevokeJoinToken(_)
            | Command::RedeemJoinToken(_)
            | Command::SetReplacement(_)
    )
}

/// The initial state of a replay.
struct InitialState {
    cluster: Cluster,
    /// The first entry after the state.
    next: u64,
    /// Digests recorded after later entries.
    digests: BTreeMap<u64, String>,
}

/// Replays the log in a directory: the data directory of a stopped node, or a directory of backups
/// with the archived log. `progress` gets the index of each entry.
///
/// # Errors
/// [`Difference`]; or the directory cannot be read, or has no state from before its log.
pub fn replay(
    dir: &Path,
    applier: &dyn Applier,
    mut progress: impl FnMut(u64),
) -> anyhow::Result<Counts> {
    let backups = backups(dir).with_context(|| dir.display().to_string())?;
    let InitialState {
        cluster,
        mut next,
        mut digests,
    } = if backups.is_empty() {
        load_node(dir)?
    } else {
        load_backups(dir, &backups)?
    };
    let mut pair = ModelPair::new(cluster, applier);
    let (from, mut done) = (next, Ok(()));
    let each = |line: LogLine| {
        if done.is_ok() && line.index >= next {
            done = one(&mut pair, &line, next, &mut digests);
            next = line.index + 1;
            progress(line.index);
        }
    };
    // `u64::MAX` is reserved; the largest index is one less.
    if backups.is_empty() {
        inspect_log(dir, from, u64::MAX - 1, each)?
    } else {
        inspect_kept_log(dir, from, u64::MAX - 1, each)?
    }
    done?;
    pair.compare_rows(next.saturating_sub(1))?;
    Ok(pair.counts)
}

fn one(
    pair: &mut ModelPair<'_>,
    line: &LogLine,
    next: u64,
    digests: &mut BTreeMap<u64, String>,
) -> anyhow::Result<()> {
    let index = line.index;
    let entry = (line.entry.as_ref()).map_err(|reason| anyhow!("entry {index}: {reason}"))?;
    ensure!(index == next, "the log has no entry {next}");
    pair.counts.entries += 1;
    if let Payload::Normal(logged) = &entry.payload {
        pair.carry_out(index, logged.stamped())?;
    }
    if let Some(noted) = digests.remove(&index) {
        pair.compare_digest(index, noted)?;
    }
    if index.is_multiple_of(ROWS_EVERY) {
        pair.compare_rows(index)?;
    }
    Ok(())
}

/// The backups in a directory, oldest first.
fn backups(dir: &Path) -> io::Result<Vec<KeptFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        found.extend(name.to_str().and_then(|name| KeptFile::parse(name, 0)));
    }
    found.retain(|file| file.is_backup);
    found.sort_by_key(|file| file.index);
    Ok(found)
}

fn load_backups(dir: &Path, backups: &[KeptFile]) -> anyhow::Result<InitialState> {
    let oldest = Backup::read(&dir.join(&backups[0].name), Until::End, &Rules)?;
    let mut digests = BTreeMap::new();
    for later in &backups[1..] {
        let info =
            check_backup(File::open(dir.join(&later.name))?).with_context(|| later.name.clone())?;
        digests.insert(info.index, info.digest);
    }
    Ok(InitialState {
        next: oldest.info.index + 1,
        cluster: Cluster::clone(&oldest.applied.cluster),
        digests,
    })
}

fn load_node(dir: &Path) -> anyhow::Result<InitialState> {
    let found = inspect(dir)?;
    if let Some(problem) = found.problems.first() {
        bail!("{}: {}: {}", dir.display(), problem.part, problem.words);
    }
    let log = found.log.context("there is no log")?;
    if let Some(purged) = log.purged {
        bail!(
            "the log begins after entry {} without a state for it: use the directory in which the node \
             keeps its backups",
            purged.index
        );
    }
    let state = found.state.into_iter();
    let digests = state.filter_map(|state| Some((state.applied?.index, state.digest)));
    Ok(InitialState {
        cluster: Cluster::default(),
        next: 0,
        digests: digests.collect(),
    })
}
