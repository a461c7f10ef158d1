//! The policy file: a YAML mapping of rule names to rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use yaml_rust2::{Yaml, YamlLoader};

use super::check::Check;

/// A policy file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// There is none.
    #[error("there is no policy file {path}")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read the policy file {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not what it should be.
    #[error("the policy file {path} is not a YAML mapping of rule names to rules: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
}

/// What tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState(Option<(SystemTime, u64)>);

impl FileState {
    /// The state of a file now.
    pub(super) fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self(metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len()))))
    }
}

/// Reads the rules of a file.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Check>, PolicyError> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => PolicyError::Missing {
            path: path.to_owned(),
        },
        _ => PolicyError::Unreadable {
            path: path.to_owned(),
            error,
        },
    })?;
    parse(&text).map_err(|reason| PolicyError::Malformed {
        path: path.to_owned(),
        reason,
    })
}

/// The rules in a file's text.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Check>, String> {
    let documents = YamlLoader::load_from_str(text).map_err(|error| error.to_string())?;
    let mapping = match documents.into_iter().next() {
        None | Some(Yaml::Null) => return Ok(BTreeMap::new()),
        Some(Yaml::Hash(mapping)) => mapping,
        Some(_) => return Err("the file holds something else".to_owned()),
    };
    mapping
        .into_iter()
        .map(|(name, rule)| {
            let name = name.into_string().ok_or("a rule's name is not text")?;
            let check = parse_rule(&rule).ok_or_else(|| {
                format!("the rule of {name:?} is neither text nor a list of lists of text")
            })?;
            Ok((name, check))
        })
        .collect()
}

/// A rule is text in the rule language, or a list of lists: any of the outer, all of an inner.
fn parse_rule(rule: &Yaml) -> Option<Check> {
    match rule {
        Yaml::String(text) => Some(Check::parse(text)),
        Yaml::Null => Some(Check::True),
        Yaml::Array(any) if any.is_empty() => Some(Check::True),
        Yaml::Array(any) => {
            let mut alternatives = Vec::new();
            for all in any {
                match all {
                    Yaml::String(text) => alternatives.push(Check::parse_one(text)),
                    Yaml::Array(all) if all.is_empty() => {}
                    Yaml::Array(all) => alternatives.push(Check::And(
                        all.iter()
                            .map(|one| one.as_str().map(Check::parse_one))
                            .collect::<Option<_>>()?,
                    )),
                    _ => return None,
                }
            }
            Some(Check::Or(alternatives))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_are_text_or_lists() {
        let rules = parse("---\n# comment\n\"a\": \"role:x\"\nb: []\nc: [[\"role:x\", \"role:y\"], [\"@\"]]\nd: ''\n").unwrap();
        assert_eq!(rules.len(), 4);
        assert_eq!(rules["b"], Check::True);
        assert_eq!(rules["d"], Check::True);
        assert!(matches!(&rules["c"], Check::Or(any) if any.len() == 2));
        assert!(parse("").unwrap().is_empty());
        for bad in ["- a", "a: 5", "a: {b: c}", "1: x", "a: [[5]]", "a: [", "\t"] {
            assert!(
                parse(bad).is_err() || parse(bad).unwrap().is_empty(),
                "{bad:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_file_breaks_the_parser(text in "[-a-z:\\[\\]{}&*!|>'\"#%@, \n\t]{0,80}|.{0,80}") {
            // What counts is that it returns.
            let _ = parse(&text);
        }
    }
}
