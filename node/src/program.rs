//! What `placementd` does when it is started: settings, signals, one node.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Command};
use placement_model::types::Timestamp;
use placement_raft_store::{StoreOptions, Until};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use crate::cluster::settle_number;
use crate::logging::{self, Logging};
use crate::offline::{fetch, inspect, policy, recover, restore};
use crate::permissions::{self, check_data_dir};
use crate::tls::Secured;
use crate::{Config, Env, Node, config, descriptors, panics, supervisor};
use placement_api::http::{CallingService, Identity, Policy};
use placement_api::settings::{Kind, Setting};

/// The threads of Raft and of the connections between nodes. What keeps one of them for a while leaves
/// the other one to heartbeats.
const NODE_THREADS: usize = 2;

/// Runs the command line. The exit code is 1 if anything went wrong, and the reason is on stderr.
pub fn main() -> ExitCode {
    permissions::keep_to_oneself();
    let matches = command().get_matches();
    let done = match matches.subcommand() {
        Some(("check-config", matches)) => check(matches),
        Some(("skip-entry", matches)) => skip_entry(matches),
        Some(("inspect", matches)) => look_at(matches),
        Some(("recover", matches)) => go_on_alone(matches),
        Some(("check-backup", matches)) => restore::check(&path(matches, "file")),
        Some(("fetch-backup", matches)) => fetch_backup(matches),
        Some(("restore", matches)) => begin_with_backup(matches),
        Some(("policy", matches)) => judge(matches),
        Some(("config", _)) => print(&config::sample()),
        _ => run(&matches),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("placementd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check(matches: &ArgMatches) -> anyhow::Result<()> {
    let (config, warnings) = load(matches)?;
    for warning in warnings {
        eprintln!("placementd: warning: {warning}");
    }
    logging::check(&config.log.level).map_err(anyhow::Error::msg)?;
    let policy = Policy::read(&config.policy).context("[policy]")?;
    let mut mistakes = policy.mistakes();
    for (name, settings) in config.policies_of_partitions() {
        let policy =
            Policy::read(&settings).with_context(|| format!("[policy] of partition {name}"))?;
        mistakes.extend(policy.mistakes());
    }
    for mistake in &mistakes {
        eprintln!("placementd: {mistake}");
    }
    if !mistakes.is_empty() {
        anyhow::bail!("[policy]: so many mistakes: {}", mistakes.len());
    }
    Secured::open(config.secured()?, config.node_id, Env::production().net)?;
    println!("{}", config.to_toml());
    Ok(())
}

/// Tells of the rules what oslo.policy's tools tell. Who asks need not say which node would have them.
fn judge(matches: &ArgMatches) -> anyhow::Result<()> {
    let (name, matches) = matches
        .subcommand()
        .context("check, list-redundant or sample?")?;
    let (config, _) = read(matches)?;
    let settings = config.policy;
    if name == "sample" {
        return print(&policy::sample(settings.enforce_new_defaults));
    }
    let rules = Policy::read(&settings).context("[policy]")?;
    for mistake in rules.mistakes() {
        eprintln!("placementd: {mistake}");
    }
    if name == "list-redundant" {
        return print(&policy::redundant(&rules));
    }
    let text = |name| matches.get_one::<String>(name).cloned();
    let many = |name| {
        let given = matches.get_many::<String>(name).unwrap_or_default();
        given.cloned().collect::<Vec<_>>()
    };
    let question = policy::Question {
        caller: Identity {
            user_id: text("user").unwrap_or_default(),
            project_id: text("project"),
            domain_id: text("domain"),
            system_scope: text("system-scope"),
            roles: many("roles"),
            is_admin_project: true,
            service: CallingService {
                roles: many("service-roles"),
                ..CallingService::default()
            },
            ..Identity::default()
        },
        target_project: text("target-project"),
        rules: many("rule"),
    };
    let (said, is_passed) = policy::check(&rules, &question)?;
    print(&said)?;
    if !is_passed {
        anyhow::bail!("not all of these rules are passed");
    }
    Ok(())
}

/// Prints to a reader that may leave before the end.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Makes an entry blank that no node can apply.
fn skip_entry(matches: &ArgMatches) -> anyhow::Result<()> {
    let (config, _) = load(matches)?;
    let number = |name| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let (index, term) = (number("index"), number("term"));
    if !matches.get_flag("i-understand") {
        anyhow::bail!(
            "nothing is skipped. The write in entry {index} would not be carried out, even if a \
             client was told that it was. It has to be skipped on all nodes before any of them is \
             started again: one that still has it comes to another state than the others. Say \
             --i-understand if that is what you want"
        );
    }
    let options = storage(&config)?;
    let skipped = placement_raft_store::skip_entry(&options, index, term)?;
    println!(
        "entry {} is blank now on node {}; it was: {}\nnow the same on every other node, before any \
         of them is started",
        skipped.id, config.node_id, skipped.command
    );
    Ok(())
}

/// How the store of a configured node is opened.
fn storage(config: &Config) -> anyhow::Result<StoreOptions> {
    check_data_dir(&config.data_dir)?;
    let mut options = Env::production().storage;
    options.dir = config.data_dir.clone();
    options.node = Some(config.node_id);
    options.cluster = config.cluster_id();
    Ok(options)
}

/// Makes the node the only one of a new cluster.
fn go_on_alone(matches: &ArgMatches) -> anyhow::Result<()> {
    let (config, _) = load(matches)?;
    let cluster = Env::production().ids.uuid();
    let confirmed = matches.get_flag("yes-the-others-are-gone-for-ever");
    recover::run(&storage(&config)?, cluster, confirmed)
}

/// Tells what a bucket has, or fetches some of it.
fn fetch_backup(matches: &ArgMatches) -> anyhow::Result<()> {
    let (config, _) = load(matches)?;
    let to = path(matches, "to");
    let wanted = match matches.get_one::<String>("from") {
        Some(from) => fetch::Wanted::Place { from, to: &to },
        None => fetch::Wanted::List,
    };
    fetch::run(&config, &wanted)
}

/// Makes the data directory of a member of a new cluster, which begins with a backup.
fn begin_with_backup(matches: &ArgMatches) -> anyhow::Result<()> {
    let (config, _) = read(matches)?;
    check_data_dir(&config.data_dir)?;
    // Before anything can be refused: a node that is started all the same must not begin empty.
    placement_raft_store::begin_restore(&config.data_dir)?;
    if config.cluster.joins() {
        anyhow::bail!(
            "this configuration has the node join a cluster by a token ([cluster] join), which gives it \
             neither a number nor the other members. Take join and join_token_file out, and set node_id \
             and initial_members, the same list for all nodes. Any numbers will do, those of the lost \
             cluster too"
        );
    }
    config.validate()?;
    let until = match (
        matches.get_one::<Timestamp>("until"),
        matches.get_one::<u64>("until-index"),
    ) {
        (Some(time), _) => Until::Time(*time),
        (None, Some(index)) => Until::Index(*index),
        (None, None) => Until::End,
    };
    let named = matches.get_one::<Uuid>("as").copied();
    restore::run(&config, &path(matches, "from"), until, named)
}

fn path(matches: &ArgMatches, name: &str) -> PathBuf {
    let path = matches.get_one::<PathBuf>(name);
    path.cloned().unwrap_or_default()
}

/// Prints what is in a data directory, or in one of backups.
fn look_at(matches: &ArgMatches) -> anyhow::Result<()> {
    let as_json = |matches: &ArgMatches| matches.get_flag("json");
    let number = |matches: &ArgMatches, name| matches.get_one::<u64>(name).copied();
    let first = |matches: &ArgMatches| number(matches, "from").unwrap_or_default();
    let last = |matches: &ArgMatches| number(matches, "to").unwrap_or(u64::MAX - 1);
    let part = matches.subcommand();
    if let Some(("kept-log", matches)) = part {
        let dir = path(matches, "directory");
        return inspect::kept_log(&dir, first(matches), last(matches), as_json(matches));
    }
    let given = part.map_or(matches, |(_, matches)| matches);
    // With a directory no node id is needed.
    let dir = match given.get_one::<String>("data-dir") {
        Some(dir) => PathBuf::from(dir),
        None => load(given)?.0.data_dir,
    };
    match part {
        Some(("log", matches)) => {
            inspect::log(&dir, first(matches), last(matches), as_json(matches))
        }
        Some((_rows, matches)) => inspect::rows(&dir, as_json(matches)),
        None => inspect::all(&dir, as_json(matches)),
    }
}

fn run(matches: &ArgMatches) -> anyhow::Result<()> {
    let (config, warnings) = load(matches)?;
    let logging =
        Logging::start(config.log.format, &config.log.level).map_err(anyhow::Error::msg)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let done = serve(matches, config, &logging);
    logging.finish();
    done
}

/// `None`: as many threads as there are processors.
fn runtime(name: &str, threads: Option<usize>) -> anyhow::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let built = builder.thread_name(name).enable_all().build();
    built.context("cannot start the threads")
}

/// Runs a node until the process is asked to stop.
fn serve(matches: &ArgMatches, config: Config, logging: &Logging) -> anyhow::Result<()> {
    check_data_dir(&config.data_dir)?;
    descriptors::raise();
    panics::leave_no_core();
    // The later one is dropped first: requests end before what they ask.
    let node = runtime("placement-node", Some(NODE_THREADS))?;
    let requests = runtime("placement-http", None)?;
    let mut env = Env::production();
    env.requests = Some(requests.handle().clone());
    node.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot take SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot take SIGINT")?;
        // Taken before the node starts: without this, a SIGHUP ends the process.
        let mut hangup = signal(SignalKind::hangup()).context("cannot take SIGHUP")?;
        let mut reports = std::pin::pin!(logging::report_dropped());
        let node = Node::start(env, config).await?;
        supervisor::ready();
        {
            let mut told = std::pin::pin!(supervisor::report(&node));
            loop {
                tokio::select! {
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                    _ = hangup.recv() => {
                        supervisor::reloading();
                        reload(matches, &node, logging);
                        supervisor::ready();
                    }
                    () = &mut reports => {}
                    () = &mut told => {}
                }
            }
        }
        supervisor::stopping();
        tracing::info!("asked to stop; a second signal stops at once");
        tokio::select! {
            () = node.shutdown() => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}

/// Reads the configuration again and takes over what can change while the node runs. What cannot be
/// used stays as it was: a running node is not ended by a mistake in a file.
fn reload(matches: &ArgMatches, node: &Node, logging: &Logging) {
    // Whatever the configuration is by now: who has renamed the file waits for this.
    node.reopen_audit();
    let (config, warnings) = match load(matches) {
        Ok(loaded) => loaded,
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(
                error,
                "SIGHUP: nothing is re-read, the configuration is wrong"
            );
            return;
        }
    };
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    match logging.set_level(&config.log.level) {
        Ok(()) => tracing::info!(level = config.log.level, "SIGHUP: re-read the log level"),
        Err(error) => tracing::error!(error, "SIGHUP: the log level stays as it was"),
    }
    match node.reload(&config) {
        Ok(()) => tracing::info!("SIGHUP: re-read the policy"),
        Err(error) => {
            let error = error.to_string();
            tracing::error!(error, "SIGHUP: the policy stays as it was");
        }
    }
}

/// The configuration that the file, the environment and the flags give.
fn load(matches: &ArgMatches) -> anyhow::Result<(Config, Vec<String>)> {
    let (mut config, warnings) = read(matches)?;
    config.node_id = settle_number(config.node_id, &config.data_dir, &config.cluster)?;
    config.validate()?;
    Ok((config, warnings))
}

/// The same without a look at what the settings must be to each other.
fn read(matches: &ArgMatches) -> anyhow::Result<(Config, Vec<String>)> {
    let file = matches.get_one::<PathBuf>("config").cloned();
    let mut flags = Vec::new();
    for setting in with_flags() {
        let flag = setting.flag();
        if let Some(text) = matches.get_one::<String>(&flag) {
            flags.push((flag, text.clone()));
        }
    }
    Ok(Config::read(file.as_deref(), std::env::vars(), flags)?)
}

fn command() -> Command {
    let common = |mut command: Command| {
        command = command.arg(
            Arg::new("config")
                .long("config")
                .short('c')
                .value_name("FILE")
                .env("PLACEMENTD_CONFIG")
                .value_parser(clap::value_parser!(PathBuf))
                .help("TOML file with any of the settings below"),
        );
        for setting in with_flags() {
            command = command.arg(argument(&setting));
        }
        command
    };
    let about = "One node of a replicated OpenStack Placement service.";
    common(
        Command::new("placementd")
            .version(env!("CARGO_PKG_VERSION"))
            .about(about),
    )
    .after_help(
        "Each setting can stand in the file, in the environment and on the command line; what \
             comes later in this order wins. SIGTERM and SIGINT stop the node after it has handed \
             leadership over. SIGHUP re-reads the policy and the log level, and opens the audit file \
             again.",
    )
    .args_conflicts_with_subcommands(true)
    .subcommand(common(Command::new("check-config").about(
        "Checks the configuration and prints it as it would be used; exits with 1 if it is \
             wrong",
    )))
    .subcommand(
        Command::new("config")
            .about("Prints what a configuration can hold")
            .subcommand_required(true)
            .subcommand(Command::new("sample").about(
                "Prints a file with all settings as they are by default, each behind #",
            )),
    )
    .subcommand(
        Command::new("check-backup")
            .about("Reads a backup, whole, and says what it holds; exits with 1 if it is no good")
            .arg(
                file(
                    "file",
                    "PATH",
                    "The backup, or a directory that [backup] has filled: its newest backup and the \
                     log since are read, as a restore reads them",
                )
                .required(true),
            ),
    )
    .subcommand(common(
        Command::new("fetch-backup")
            .about(
                "Fetches what a node has copied into the bucket of [backup_s3], and checks it; without \
                 --from it tells what is there",
            )
            .arg(
                Arg::new("from")
                    .long("from")
                    .value_name("CLUSTER_ID/node-N")
                    .requires("to")
                    .help("Whose backups, as it tells without this flag"),
            )
            .arg(
                file("to", "DIRECTORY", "Where they go: a directory that is empty or new; `restore` takes it")
                    .long("to")
                    .requires("from"),
            ),
    ))
    .subcommand(common(
        Command::new("restore")
            .about(
                "Makes the data directory of a member of a new cluster, which begins with a backup; \
                 to be run for each of initial_members, before any of them is started",
            )
            .arg(
                file("from", "PATH", "A backup, or a directory that [backup] has filled")
                    .long("from")
                    .required(true),
            )
            .arg(
                Arg::new("until")
                    .long("until")
                    .value_name("TIME")
                    .value_parser(moment)
                    .help(
                        "The moment that is restored, such as 2026-11-22T10:00:00Z, from a directory; \
                         otherwise the last one that is there",
                    ),
            )
            .arg(
                Arg::new("until-index")
                    .long("until-index")
                    .value_name("N")
                    .value_parser(clap::value_parser!(u64))
                    .conflicts_with("until")
                    .help("The last entry of the log that is restored, from a directory; see `inspect kept-log`"),
            )
            .arg(
                Arg::new("as")
                    .long("as")
                    .value_name("CLUSTER_ID")
                    .value_parser(clap::value_parser!(Uuid))
                    .help("The new cluster, as it was named when its first member was restored"),
            ),
    ))
    .subcommand(common(
        Command::new("skip-entry")
            .about(
                "Makes an entry of the log blank that no node can apply; to be run on all nodes \
                 while all of them are stopped",
            )
            .arg(number(
                "index",
                "The entry, as the log of a node names it that ended",
            ))
            .arg(number("term", "Its term"))
            .arg(
                Arg::new("i-understand")
                    .long("i-understand")
                    .action(ArgAction::SetTrue)
                    .help("A write is lost, and it has to be done on all nodes"),
            ),
    ))
    .subcommand(inspect_command(&common))
    .subcommand(policy_command(&common))
    .subcommand(common(
        Command::new("recover")
            .about(
                "After a majority was lost for ever: makes this node the only one of a new cluster, with \
                 everything in its log; to be run on the stopped node that has the most. Without the \
                 flag it only tells what would be kept and lost",
            )
            .arg(
                Arg::new("yes-the-others-are-gone-for-ever")
                    .long("yes-the-others-are-gone-for-ever")
                    .action(ArgAction::SetTrue)
                    .help("Does it. If a majority of the others runs, there are two clusters"),
            ),
    ))
}

fn policy_command(common: &impl Fn(Command) -> Command) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        let argument = Arg::new(name).long(name).value_name(value);
        argument.help_heading("The caller").help(help)
    };
    Command::new("policy")
        .about("Tells of the rules who may do what, as oslo.policy's tools do; needs no node")
        .subcommand_required(true)
        .subcommand(common(
            Command::new("check")
                .about(
                    "Says of each rule whether a caller passes it; exits with 1 if one that was named is \
                     not passed",
                )
                .arg(
                    Arg::new("rule")
                        .value_name("RULE")
                        .num_args(0..)
                        .help("Rules to check; none: all"),
                )
                .arg(text("user", "ID", "Its user"))
                .arg(text("project", "ID", "The project of its token"))
                .arg(text("domain", "ID", "The domain of its token"))
                .arg(text("system-scope", "all", "For a token of the whole system"))
                .arg(text("roles", "A,B,…", "Its roles").value_delimiter(','))
                .arg(
                    text("service-roles", "A,B,…", "Roles of the service that comes with its token")
                        .value_delimiter(','),
                )
                .arg(text(
                    "target-project",
                    "ID",
                    "The project that it asks about; otherwise its own",
                )),
        ))
        .subcommand(common(Command::new("list-redundant").about(
            "Prints the rules in the policy files that say what holds without them",
        )))
        .subcommand(common(Command::new("sample").about(
            "Prints a policy file with all rules as they are by default, each behind #",
        )))
}

fn inspect_command(common: &impl Fn(Command) -> Command) -> Command {
    let json = || {
        Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("JSON for programs")
    };
    common(
        Command::new("inspect")
            .about(
                "Looks at a data directory while its node is stopped, and writes nothing: whose it \
                 is, vote, log, state, snapshots; exits with 1 if something in it is wrong",
            )
            .arg(json()),
    )
    .args_conflicts_with_subcommands(true)
    .subcommand(common(
        Command::new("log")
            .about("Prints the entries of the log, one in a line")
            .arg(number("from", "The first entry").required(false))
            .arg(number("to", "The last entry").required(false))
            .arg(json()),
    ))
    .subcommand(
        Command::new("kept-log")
            .about(
                "Prints the entries of the log that a node has kept with its backups; the node may run",
            )
            .arg(file("directory", "DIRECTORY", "`CLUSTER/node-ID` below `[backup] directory`").required(true))
            .arg(number("from", "The first entry").required(false))
            .arg(number("to", "The last entry").required(false))
            .arg(json()),
    )
    .subcommand(common(
        Command::new("rows")
            .about("Prints how many rows each table of the state has")
            .arg(json()),
    ))
}

/// A moment in RFC 3339.
fn moment(text: &str) -> Result<Timestamp, String> {
    let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|error| error.to_string())?;
    let micros = i64::try_from(moment.unix_timestamp_nanos() / 1_000);
    micros.map(Timestamp).map_err(|error| error.to_string())
}

fn file(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .value_name(value)
        .value_parser(clap::value_parser!(PathBuf))
        .help(help)
}

/// The settings that have a flag.
fn with_flags() -> impl Iterator<Item = Setting> {
    let settings = Config::settings().into_iter();
    settings.filter(|setting| setting.kind != Kind::Secret)
}

fn number(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("N")
        .required(true)
        .value_parser(clap::value_parser!(u64))
        .help(help)
}

/// The flag of one setting. The names live as long as the program.
fn argument(setting: &Setting) -> Arg {
    let flag: &'static str = Box::leak(setting.flag().into_boxed_str());
    let heading: &'static str = match setting.section {
        "" => "Node",
        section => Box::leak(format!("[{section}]").into_boxed_str()),
    };
    let value = match setting.kind {
        Kind::Text | Kind::Secret => "TEXT",
        Kind::Integer => "N",
        Kind::Flag => "true|false",
        Kind::List => "A,B,…",
    };
    let default = setting.default.as_deref().unwrap_or("unset");
    let words: Vec<&str> = setting.doc.split_whitespace().collect();
    let help = format!(
        "{}\n[default: {default}] [file: {}] [env: {}]",
        words.join(" "),
        setting.path(),
        setting.variable()
    );
    // The two that are typed by hand.
    let short = match flag {
        "cluster-join" => Some("join"),
        "cluster-join-token-file" => Some("join-token-file"),
        _ => None,
    };
    Arg::new(flag)
        .long(flag)
        .visible_aliases(short)
        .value_name(value)
        .help_heading(heading)
        .action(ArgAction::Set)
        .help(help)
}
