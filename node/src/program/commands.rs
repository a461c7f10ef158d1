//! The commands of `placementd` that do not run a node. Their doc comments are the `--help` texts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command, Subcommand};
use placement_model::types::{PartitionName, Timestamp};
use placement_raft_store::{StoreOptions, Until};
use placement_transfer::Dialect;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::config_args::ConfigArgs;
use crate::config::ClusterId;
use crate::offline::{fetch, inspect, policy, print, recover, replay, restore, transfer};
use crate::partitions::own_policies;
use crate::{Config, Env, config, logging};
use placement_api::http::{CallingService, Identity};
use placement_base::permissions::check_data_dir;
use placement_peer::tls::Secured;

#[derive(Subcommand)]
pub(super) enum Task {
    /// Check the configuration and print it with all defaults; exit code 1 if it is invalid
    CheckConfig(ConfigArgs),
    /// Print the available settings
    #[command(subcommand)]
    Config(ConfigTask),
    /// Verify a whole backup and print its contents; exit code 1 if it is invalid
    CheckBackup {
        #[arg(
            value_name = "PATH",
            help = "The backup, or a directory of [backup]: its newest backup and the log since \
                are verified, as for a restore"
        )]
        file: PathBuf,
    },
    #[command(
        about = "Fetch a node's backups and archived log from the bucket of [backup_s3] and \
            verify them; without --from, list what the bucket has of each node"
    )]
    FetchBackup(FetchBackup),
    /// Create the data directory of a member of a new cluster that begins with a backup; run it
    /// for each of initial_members, before any of them is started
    Restore(Restore),
    /// Serve the REST API and the web pages over a backup, read-only and on loopback, for
    /// `openstack`, `placementctl` and `placementctl web`; no token is required. The backup is read
    /// completely before the first answer. Ctrl-C ends it
    Replay(Replay),
    /// Convert a dump of OpenStack Placement's database to a backup: restore creates a cluster
    /// from it, and `placementctl partitions import` imports it into a running one
    Import(Import),
    /// Write a backup, or the state of a running cluster, as SQL for an empty database of
    /// OpenStack Placement
    Export(Export),
    /// Blank an entry of the log that no node can apply; run it on all nodes while all are stopped
    SkipEntry(SkipEntry),
    /// Print the contents of the data directory of a stopped node, read-only: identity, vote, log,
    /// state, snapshots; exit code 1 if it finds a problem
    Inspect(Inspect),
    /// Check and print the policy rules, like oslo.policy's tools; needs no node
    #[command(subcommand)]
    Policy(PolicyTask),
    /// Write the manual pages to a directory
    Man {
        /// Directory for the manual pages
        directory: PathBuf,
    },
    /// Make this node the only member of a new cluster, after the permanent loss of a majority;
    /// run it on the stopped node with the most recent log, which the new cluster keeps. Without
    /// `--yes-the-others-are-gone-for-ever` it only prints what would be kept and lost
    Recover(Recover),
}

impl Task {
    /// Carries out this command of `program`.
    pub(super) fn carry_out(self, program: Command) -> anyhow::Result<()> {
        match self {
            Self::CheckConfig(given) => check(&given),
            Self::Config(ConfigTask::Sample) => Ok(print(&config::sample())?),
            Self::CheckBackup { file } => restore::check(&file),
            Self::FetchBackup(task) => task.carry_out(),
            Self::Restore(task) => task.carry_out(),
            Self::Replay(task) => replay::run(task.backup, task.moment.end(), &task.listen),
            Self::Import(task) => transfer::import(&task.dump, &task.out),
            Self::Export(task) => transfer::export(
                &task.from,
                &task.partition,
                task.dialect,
                task.out.as_deref(),
            ),
            Self::SkipEntry(task) => task.carry_out(),
            Self::Inspect(task) => task.carry_out(),
            Self::Policy(task) => task.carry_out(),
            Self::Man { directory } => manual(program, &directory),
            Self::Recover(task) => task.carry_out(),
        }
    }
}

/// Writes a manual page for each command of `program`.
pub(super) fn manual(program: Command, directory: &Path) -> anyhow::Result<()> {
    let written =
        fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(program, directory));
    written.with_context(|| format!("cannot write to {}", directory.display()))
}

fn check(given: &ConfigArgs) -> anyhow::Result<()> {
    let (config, warnings) = given.load_with_warnings()?;
    for warning in warnings {
        eprintln!("placementd: warning: {warning}");
    }
    logging::check(&config.log.level).map_err(anyhow::Error::msg)?;
    let policy = placement_api::http::read_policy(&config.policy).context("[policy]")?;
    let mut mistakes = policy.mistakes();
    for (name, settings) in own_policies(&config.partitions, &config.policy) {
        let policy = placement_api::http::read_policy(&settings)
            .with_context(|| format!("[policy] of partition {name}"))?;
        mistakes.extend(policy.mistakes());
    }
    for mistake in &mistakes {
        eprintln!("placementd: {mistake}");
    }
    if !mistakes.is_empty() {
        anyhow::bail!(
            "[policy]: the policy files have {} mistakes",
            mistakes.len()
        );
    }
    let env = Env::production();
    let secured = Secured::open(config.secured()?, config.node_id, env.net)?;
    for (listener, certificates) in secured.certificates {
        let of_listener = || format!("the certificate of [{listener}]");
        (certificates.must_be_valid(env.clock.now())).with_context(of_listener)?;
    }
    Ok(print(&format!("{}\n", config.to_toml()))?)
}

#[derive(Subcommand)]
pub(super) enum ConfigTask {
    /// Print a file with all settings and their defaults, commented out
    Sample,
}

#[derive(Args)]
pub(super) struct FetchBackup {
    /// The cluster and node, as listed without this flag
    #[arg(long, value_name = "CLUSTER_ID/node-N", requires = "to")]
    from: Option<String>,
    /// The directory to write to, empty or new; the input of `restore`
    #[arg(long, value_name = "DIRECTORY", requires = "from")]
    to: Option<PathBuf>,
    #[command(flatten)]
    given: ConfigArgs,
}

impl FetchBackup {
    fn carry_out(self) -> anyhow::Result<()> {
        let copy = self.from.as_deref().zip(self.to.as_deref());
        fetch::run(&self.given.load()?, copy)
    }
}

#[derive(Args)]
pub(super) struct Restore {
    #[arg(long, value_name = "PATH", help = FROM)]
    from: PathBuf,
    #[command(flatten)]
    moment: MomentArgs,
    /// The id of the new cluster, as printed by the restore of its first member
    #[arg(long = "as", value_name = "CLUSTER_ID")]
    cluster: Option<ClusterId>,
    #[command(flatten)]
    given: ConfigArgs,
}

const FROM: &str = "A backup, or a directory of [backup]";

/// A moment in a directory of `[backup]`.
#[derive(Args)]
struct MomentArgs {
    /// Use the state at this time, such as 2026-11-22T10:00:00Z; needs a directory of `[backup]`;
    /// default: the newest state
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Timestamp>,
    /// Restore up to this log entry from a directory; `inspect kept-log` lists the entries
    #[arg(long, value_name = "N", conflicts_with = "until")]
    until_index: Option<u64>,
}

impl MomentArgs {
    fn end(&self) -> Until {
        match (self.until, self.until_index) {
            (Some(time), _) => Until::Time(time),
            (None, Some(index)) => Until::Index(index),
            (None, None) => Until::End,
        }
    }
}

#[derive(Args)]
pub(super) struct Replay {
    #[arg(value_name = "PATH", help = FROM)]
    backup: PathBuf,
    #[command(flatten)]
    moment: MomentArgs,
    /// Loopback address, `host:port`; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8778")]
    listen: String,
}

impl Restore {
    fn carry_out(self) -> anyhow::Result<()> {
        let (config, _) = self.given.read()?;
        check_data_dir(&config.data_dir)?;
        // Before any check can fail: a node that is started nevertheless must not begin with an
        // empty state.
        placement_raft_store::begin_restore(&config.data_dir)?;
        if config.cluster.joins() {
            anyhow::bail!(
                "in this configuration the node joins a cluster with a token ([cluster] join), so \
                it has neither a number nor the other members. Remove join and join_token_file, \
                and set node_id and initial_members, the same list for all nodes. Any numbers \
                work, including those of the lost cluster"
            );
        }
        config.validate()?;
        let cluster = self.cluster.map(|id| id.0);
        restore::run(&config, &self.from, self.moment.end(), cluster)
    }
}

/// Parses a moment in RFC 3339.
fn moment(text: &str) -> Result<Timestamp, String> {
    let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|error| error.to_string())?;
    let micros = i64::try_from(moment.unix_timestamp_nanos() / 1_000);
    micros.map(Timestamp).map_err(|error| error.to_string())
}

#[derive(Args)]
pub(super) struct Import {
    #[arg(
        help = "Output of mysqldump --single-transaction, pg_dump --inserts or sqlite3 .dump; - \
            for standard input"
    )]
    dump: PathBuf,
    /// The backup to write; must not exist
    #[arg(long, value_name = "BACKUP")]
    out: PathBuf,
}

#[derive(Args)]
pub(super) struct Export {
    /// A backup, a directory of `[backup]`, or the admin listener of a node (`unix:/path`,
    /// `http://host:port` or `https://host:port`), from which `placementctl` takes a backup
    #[arg(long, value_name = "BACKUP|ENDPOINT")]
    from: PathBuf,
    /// The partition to write
    #[arg(long, value_name = "NAME", default_value = PartitionName::DEFAULT)]
    partition: String,
    /// The target database: mysql (also for MariaDB), postgresql or sqlite
    #[arg(long, value_name = "NAME")]
    dialect: Dialect,
    /// The file to write, which must not exist; default: standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct SkipEntry {
    /// The index of the entry, as logged by a node that crashed
    #[arg(long, value_name = "N")]
    index: u64,
    /// The term of the entry
    #[arg(long, value_name = "N")]
    term: u64,
    /// Required to change the log: you accept that the write will be lost, and you will run this
    /// command on all nodes
    #[arg(long)]
    i_understand: bool,
    #[command(flatten)]
    given: ConfigArgs,
}

impl SkipEntry {
    fn carry_out(self) -> anyhow::Result<()> {
        let config = self.given.load()?;
        if !self.i_understand {
            anyhow::bail!(
                "nothing is skipped. The write in entry {} would be lost, even if it was \
                acknowledged to a client. Skip it on all nodes before any of them is started \
                again: a node that still has it would diverge from the others. Use --i-understand \
                if that is what you want",
                self.index
            );
        }
        let skipped = placement_raft_store::skip_entry(&storage(&config)?, self.index, self.term)?;
        let (id, node, was) = (skipped.id, config.node_id, skipped.command);
        Ok(print(&format!(
            "entry {id} is now blank on node {node}; it was: {was}\nrepeat this on every other \
            node, before any of them is started\n"
        ))?)
    }
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Inspect {
    #[command(subcommand)]
    part: Option<InspectPart>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    given: ConfigArgs,
}

/// A part of a data directory or of backups.
#[derive(Subcommand)]
enum InspectPart {
    /// Print the entries of the log, one per line
    Log {
        #[command(flatten)]
        range: Range,
        #[command(flatten)]
        given: ConfigArgs,
    },
    /// Print the entries of the log that a node has archived with its backups; the node may be
    /// running
    KeptLog {
        /// `CLUSTER/node-ID` below `[backup] directory`
        directory: PathBuf,
        #[command(flatten)]
        range: Range,
    },
    /// Print the number of rows of each table of the state
    Rows {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        given: ConfigArgs,
    },
}

#[derive(Args)]
struct Range {
    /// The first entry to print
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// The last entry to print
    #[arg(long, value_name = "N")]
    to: Option<u64>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Range {
    fn ends(&self) -> [u64; 2] {
        let last = self.to.unwrap_or(u64::MAX - 1);
        [self.from.unwrap_or_default(), last]
    }
}

impl Inspect {
    fn carry_out(self) -> anyhow::Result<()> {
        match self.part {
            None => inspect::all(&self.given.data_dir()?, self.json),
            Some(InspectPart::Log { range, given }) => {
                inspect::log(&given.data_dir()?, false, range.ends(), range.json)
            }
            Some(InspectPart::KeptLog { directory, range }) => {
                inspect::log(&directory, true, range.ends(), range.json)
            }
            Some(InspectPart::Rows { json, given }) => inspect::rows(&given.data_dir()?, json),
        }
    }
}

#[derive(Subcommand)]
pub(super) enum PolicyTask {
    /// Print for each rule whether it grants access to a caller; exit code 1 if a named rule does
    /// not
    Check {
        /// The rules to check; default: all
        rule: Vec<String>,
        #[command(flatten)]
        given: ConfigArgs,
        #[command(flatten)]
        caller: Caller,
    },
    /// Print a policy file with all rules and their defaults, commented out
    Sample(ConfigArgs),
}

#[derive(Args)]
#[command(next_help_heading = "The caller")]
pub(super) struct Caller {
    /// User id of the caller
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Id of the project that the caller's token is scoped to
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Id of the domain that the caller's token is scoped to
    #[arg(long, value_name = "ID")]
    domain: Option<String>,
    /// System scope of the caller's token
    #[arg(long, value_name = "all")]
    system_scope: Option<String>,
    /// Roles of the caller
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    roles: Vec<String>,
    /// Roles of the service that forwards the request with its own token
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    service_roles: Vec<String>,
    /// The project in the query, for rules that depend on it; default: the caller's own
    #[arg(long, value_name = "ID")]
    target_project: Option<String>,
}

impl Caller {
    fn identity(self) -> Identity {
        Identity {
            user_id: self.user.unwrap_or_default(),
            project_id: self.project,
            domain_id: self.domain,
            system_scope: self.system_scope,
            roles: self.roles,
            is_admin_project: true,
            service: CallingService {
                roles: self.service_roles,
                ..CallingService::default()
            },
            ..Identity::default()
        }
    }
}

impl PolicyTask {
    /// Prints the reports of oslo.policy's tools. A node number is not required.
    fn carry_out(self) -> anyhow::Result<()> {
        let (Self::Check { given, .. } | Self::Sample(given)) = &self;
        let settings = given.read()?.0.policy;
        let Self::Check { rule, caller, .. } = self else {
            return Ok(print(&policy::sample(settings.enforce_new_defaults))?);
        };
        let rules = placement_api::http::read_policy(&settings).context("[policy]")?;
        for mistake in rules.mistakes() {
            eprintln!("placementd: {mistake}");
        }
        let project = caller.target_project.clone();
        let caller = caller.identity();
        let (report, is_passed) = policy::check(&rules, &caller, project.as_deref(), &rule)?;
        print(&report)?;
        if !is_passed {
            anyhow::bail!("some of these rules do not grant access to this caller");
        }
        Ok(())
    }
}

#[derive(Args)]
pub(super) struct Recover {
    /// Carries out the plan. If a majority of the other nodes still runs, there will be two
    /// clusters
    #[arg(long)]
    yes_the_others_are_gone_for_ever: bool,
    #[command(flatten)]
    given: ConfigArgs,
}

impl Recover {
    fn carry_out(self) -> anyhow::Result<()> {
        let options = storage(&self.given.load()?)?;
        let cluster = Env::production().ids.uuid();
        recover::run(&options, cluster, self.yes_the_others_are_gone_for_ever)
    }
}

/// Store options of a configured node.
fn storage(config: &Config) -> anyhow::Result<StoreOptions> {
    check_data_dir(&config.data_dir)?;
    Ok(StoreOptions {
        dir: config.data_dir.clone(),
        node: Some(config.node_id),
        cluster: config.cluster_id(),
        ..Env::production().storage
    })
}
