//! Reads the configuration: file, environment, flags.

use std::path::Path;

use super::{Config, LISTS, value};
use placement_base::permissions::{Exposed, check_secret_file};
use placement_base::settings::{Invalid, Kind, Setting};
use placement_model::similar::similar;

/// The configuration is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {0}: {1}")]
    Unreadable(String, std::io::Error),
    /// The file is not TOML, a setting does not exist, or a value has the wrong type.
    #[error("{source_name}: {message}")]
    Malformed {
        /// The file, variable or flag.
        source_name: String,
        /// The error and its position.
        message: String,
    },
    /// The value has the right type but is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Other users can read the secrets in a file.
    #[error("secrets: {0}")]
    Exposed(#[from] Exposed),
}

impl Config {
    /// Reads the file, then the environment, then the flags (`(flag without dashes, text)`), and
    /// validates the result. Also returns warnings for the log.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let (config, warnings) = Self::read(file, environment, flags)?;
        config.validate()?;
        Ok((config, warnings))
    }

    /// Like `load`, but without the validation of the result, for callers that need only a part of
    /// it.
    pub(crate) fn read(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let settings = Self::settings();
        let mut table = match file {
            Some(path) => read_file(path, &settings)?,
            None => toml::Table::new(),
        };
        let mut warnings = Vec::new();
        for (variable, text) in environment {
            if !variable.starts_with("PLACEMENTD_") || variable == "PLACEMENTD_CONFIG" {
                continue;
            }
            let mut named = settings.iter();
            match named.find(|setting| setting.variable() == variable) {
                Some(setting) => put(&mut table, setting, &variable, setting.parse(&text))?,
                // Not an error: platforms add variables with this prefix.
                None => warnings.push(format!(
                    "the environment variable {variable} does not name a setting{}",
                    suggestion(&variable, settings.iter().map(Setting::variable))
                )),
            }
        }
        for (flag, text) in flags {
            let name = format!("--{flag}");
            let named = |setting: &&Setting| setting.flag() == flag && setting.kind != Kind::Secret;
            match settings.iter().find(named) {
                Some(setting) => put(&mut table, setting, &name, setting.parse(&text))?,
                None => {
                    let flags = settings.iter().map(Setting::flag);
                    return Err(unknown("command line", &name, &suggestion(&flag, flags)));
                }
            }
        }
        // Each single value has been checked; this checks the form of lists of tables.
        let mut config: Config = table.try_into().map_err(|error: toml::de::Error| {
            let source = file.map_or("settings".into(), Path::to_string_lossy);
            malformed(&source, error.to_string().trim().replace('\n', ", "))
        })?;
        config.raft.follow_round_trip();
        let connection_ms = config.raft.connection_ms();
        config.peer.silence_ms = config.peer.silence_ms.max(connection_ms);
        config.peer.connect_ms = config.peer.connect_ms.max(connection_ms);
        let secrets = [
            &config.backup_s3.credentials_file,
            &config.trace.headers_file,
        ];
        for file in secrets.into_iter().flatten() {
            check_secret_file(file)?;
        }
        Ok((config, warnings))
    }
}

fn read_file(path: &Path, settings: &[Setting]) -> Result<toml::Table, ConfigError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable(name.clone(), error))?;
    let given: toml::Table =
        (text.parse()).map_err(|error| malformed(&name, at_its_line(&text, &error)))?;
    let mut table = toml::Table::new();
    let mut take = |path: String, value: toml::Value| {
        let Some(setting) = settings.iter().find(|setting| setting.path() == path) else {
            let paths = settings.iter().map(Setting::path);
            return Err(unknown(&name, &path, &suggestion(&path, paths)));
        };
        put(&mut table, setting, &name, Ok(value))
    };
    let mut lists = toml::Table::new();
    for (key, value) in given {
        let is_section = settings.iter().any(|setting| setting.section == key);
        match value {
            toml::Value::Table(inner) if is_section => {
                for (inner_key, value) in inner {
                    take(format!("{key}.{inner_key}"), value)?;
                }
            }
            _ if is_section => {
                return Err(Invalid::new(&key, "is a table: write it as `[section]`").into());
            }
            toml::Value::Array(_) if LISTS.contains(&&*key) => _ = lists.insert(key, value),
            _ if LISTS.contains(&&*key) => {
                let words = format!("is a list of tables: write each as `[[{key}]]`");
                return Err(Invalid::new(&key, words).into());
            }
            _ => take(key, value)?,
        }
    }
    let mut secrets = settings.iter().filter(|one| one.kind == Kind::Secret);
    if secrets.any(|secret| value(&table, secret).is_some()) {
        check_secret_file(path)?;
    }
    table.extend(lists);
    Ok(table)
}

fn malformed(source: &str, message: String) -> ConfigError {
    ConfigError::Malformed {
        source_name: source.to_owned(),
        message,
    }
}

fn unknown(source: &str, key: &str, hint: &str) -> ConfigError {
    malformed(source, format!("unknown setting `{key}`{hint}"))
}

/// The error in a file and its line number, without the line itself, which may contain a secret.
fn at_its_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.unwrap_or_default().matches('\n').count() + 1;
    format!("line {line}: {}", error.message())
}

fn put(
    table: &mut toml::Table,
    setting: &Setting,
    source: &str,
    value: Result<toml::Value, String>,
) -> Result<(), ConfigError> {
    let value = value.map_err(|message| malformed(source, message))?;
    let target = match setting.section {
        "" => table,
        section => table
            .entry(section)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .expect("sections are tables"),
    };
    if setting.is_unset_by(&value) {
        target.remove(setting.key);
        return Ok(());
    }
    (setting.check(value.clone()))
        .map_err(|message| malformed(source, format!("`{}`: {message}", setting.path())))?;
    target.insert(setting.key.to_owned(), value);
    Ok(())
}

/// A hint that names the known name that is most similar to `name`; empty if none is similar.
fn suggestion(name: &str, known: impl Iterator<Item = String>) -> String {
    fn key(name: &str) -> &str {
        name.rsplit('.').next().unwrap_or_default()
    }
    let known: Vec<String> = known.collect();
    let known = || known.iter().map(String::as_str);
    // The right key in the wrong section is similar, too.
    let in_other_section = || {
        let near = *similar(key(name), known().map(key), 1).first()?;
        known().find(|known| key(known) == near)
    };
    let near = similar(name, known(), 1).first().copied();
    near.or_else(in_other_section)
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
