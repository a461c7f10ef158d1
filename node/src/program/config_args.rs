//! The sources of the configuration: a file, the environment, and a flag for each setting.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

use crate::Config;
use placement_base::settings::{Kind, Setting};
use placement_cluster::settle_number;

// No doc comment: clap would use it for the command.
#[derive(Args)]
pub(super) struct ConfigArgs {
    /// TOML file with settings, each of which is also a flag; `placementd config sample` prints all
    #[arg(long, short, value_name = "FILE", env = "PLACEMENTD_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

impl ConfigArgs {
    /// The validated configuration, with the number of the node.
    pub(super) fn load(&self) -> anyhow::Result<Config> {
        Ok(self.load_with_warnings()?.0)
    }

    /// Like `load`, with warnings for the operator.
    pub(super) fn load_with_warnings(&self) -> anyhow::Result<(Config, Vec<String>)> {
        let (mut config, warnings) = self.read()?;
        config.node_id = settle_number(config.node_id, &config.data_dir, &config.cluster)?;
        config.validate()?;
        Ok((config, warnings))
    }

    /// The configuration without validation.
    pub(super) fn read(&self) -> anyhow::Result<(Config, Vec<String>)> {
        let flags = self.flags.0.clone();
        Ok(Config::read(
            self.config.as_deref(),
            std::env::vars(),
            flags,
        )?)
    }

    /// The data directory. If its flag is given, the node number is not required.
    pub(super) fn data_dir(&self) -> anyhow::Result<PathBuf> {
        let mut flags = self.flags.0.iter();
        match flags.find(|(flag, _)| flag == "data-dir") {
            Some((_, dir)) => Ok(PathBuf::from(dir)),
            None => Ok(self.load()?.data_dir),
        }
    }
}

/// The given flags of settings, without dashes, with their values.
struct Flags(Vec<(String, String)>);

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = with_flags().filter_map(|setting| {
            let flag = setting.flag();
            let value = matches.get_one::<String>(&flag)?.clone();
            Some((flag, value))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(with_flags().map(|setting| argument(&setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The settings that have a flag.
fn with_flags() -> impl Iterator<Item = Setting> {
    let settings = Config::settings().into_iter();
    settings.filter(|setting| setting.kind != Kind::Secret)
}

/// The flag of one setting. The names live as long as the program.
fn argument(setting: &Setting) -> Arg {
    let flag: &'static str = Box::leak(setting.flag().into_boxed_str());
    let value = match setting.kind {
        Kind::Text | Kind::Secret => "TEXT",
        Kind::Integer | Kind::Number => "N",
        Kind::Flag => "true|false",
        Kind::List => "A,B,…",
    };
    // Number 0 is no valid number of a node.
    let default = setting.default.as_deref();
    let default = default.filter(|_| flag != "node-id").unwrap_or("unset");
    let words: Vec<&str> = setting.doc.split_whitespace().collect();
    let help = format!(
        "{}\n[default: {default}] [file: {}] [env: {}]",
        words.join(" "),
        setting.path(),
        setting.variable()
    );
    // Short forms of flags that are typed by hand.
    let short = match flag {
        "cluster-join" => Some("join"),
        "cluster-join-token-file" => Some("join-token-file"),
        _ => None,
    };
    // The help of all settings has 400 lines, so it lists those of a node that is started by hand.
    let is_listed = setting.section.is_empty() || short.is_some();
    Arg::new(flag)
        .long(flag)
        .visible_aliases(short)
        .value_name(value)
        .hide(!is_listed)
        .help_heading("Node")
        .help(help)
}
