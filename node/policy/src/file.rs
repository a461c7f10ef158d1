//! A policy file: a YAML mapping of rule names to rules, in the format of oslo.policy.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::Chars;

use yaml_rust2::Yaml;
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{Marker, TScalarStyle};

use super::check::Check;

/// Maximum size of a file.
const MAX_BYTES: u64 = 1024 * 1024;

/// A policy file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A file or directory is missing or cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// The file has no rules: it may have been emptied by accident.
    #[error("{0} has no rules; if this is intended, write {{}} to it or remove it from [policy]")]
    Empty(PathBuf),
    /// The file does not end with a line break: it may be half-written.
    #[error("{0} does not end with a line break, so it may be truncated; add a line break")]
    CutOff(PathBuf),
    /// The file is not valid; the text says where and why.
    #[error("{0} is not a YAML mapping of rule names to rules: {1}")]
    Malformed(PathBuf, String),
    /// A rule that is in force is missing from the file. Contains the name of the first missing
    /// rule.
    #[error(
        "{0} no longer has a rule for {1}; if this is intended, send SIGHUP or restart the node"
    )]
    Gone(PathBuf, String),
}

/// A rule with its file and line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocatedRule {
    pub(super) check: Check,
    pub(super) path: PathBuf,
    pub(super) line: usize,
}

/// Reads the rules of a file.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, LocatedRule>, PolicyError> {
    let text = text(path).map_err(|error| PolicyError::Unreadable(path.to_owned(), error))?;
    parse(path, &text)
}

/// Reads a file's text. Accepts only regular files, since reading from a pipe could block.
fn text(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "the file has more than {MAX_BYTES} bytes"
        )));
    }
    Ok(text)
}

/// Parses a file's text event by event, so that nested input cannot cause deep recursion.
fn parse(path: &Path, text: &str) -> Result<BTreeMap<String, LocatedRule>, PolicyError> {
    let mut events = Events {
        path,
        parser: Parser::new_from_str(text).keep_tags(true),
    };
    let rules = events
        .document()?
        .ok_or_else(|| PolicyError::Empty(path.to_owned()))?;
    // Text in braces cannot be truncated unnoticed, and programs that write JSON may omit the last
    // line break.
    if !text.ends_with('\n') && !text.ends_with('}') {
        return Err(PolicyError::CutOff(path.to_owned()));
    }
    Ok(rules)
}

struct Events<'a> {
    path: &'a Path,
    parser: Parser<Chars<'a>>,
}

impl Events<'_> {
    fn next(&mut self) -> Result<(Event, Marker), PolicyError> {
        let next = self.parser.next_token();
        next.map_err(|error| PolicyError::Malformed(self.path.to_owned(), error.to_string()))
    }

    fn malformed<T>(&self, at: Marker, what: &str) -> Result<T, PolicyError> {
        let reason = format!("line {}: {what}", at.line());
        Err(PolicyError::Malformed(self.path.to_owned(), reason))
    }

    /// `None` if the document is empty, without even an empty mapping.
    fn document(&mut self) -> Result<Option<BTreeMap<String, LocatedRule>>, PolicyError> {
        let mut rules = None;
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart | Event::DocumentEnd, _) => {}
                (Event::Nothing, _) => {}
                (Event::StreamEnd, _) => return Ok(rules),
                (Event::Scalar(text, TScalarStyle::Plain, _, None), _)
                    if rules.is_none() && Yaml::from_str(&text) == Yaml::Null => {}
                (Event::MappingStart(..), _) if rules.is_none() => rules = Some(self.mapping()?),
                (Event::MappingStart(..), at) => {
                    return self.malformed(at, "there is a second document");
                }
                (_, at) => return self.malformed(at, "expected a mapping"),
            }
        }
    }

    fn mapping(&mut self) -> Result<BTreeMap<String, LocatedRule>, PolicyError> {
        let mut rules = BTreeMap::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(rules);
            }
            let Some(name) = plain_text(event).filter(|name| !name.is_empty()) else {
                return self.malformed(at, "a rule's name is not text");
            };
            let check = self.rule(&name)?;
            match rules.entry(name) {
                Entry::Vacant(entry) => drop(entry.insert(LocatedRule {
                    check,
                    path: self.path.to_owned(),
                    line: at.line(),
                })),
                Entry::Occupied(entry) => {
                    return self.malformed(at, &format!("{:?} has a rule already", entry.key()));
                }
            }
        }
    }

    /// A rule is a text in the rule language, or a list of lists of checks: it holds if all checks
    /// of any inner list hold.
    fn rule(&mut self, name: &str) -> Result<Check, PolicyError> {
        let (event, at) = self.next()?;
        let rule = match event {
            Event::SequenceStart(_, None) => self.list()?,
            event => plain_text(event).map(|text| Check::parse(&text)),
        };
        let Some(rule) = rule else {
            let what = format!(
                "the rule of {name:?} is neither text nor a list of lists of text; quote text that YAML \
                 reads as another type, such as \"!\""
            );
            return self.malformed(at, &what);
        };
        Ok(rule)
    }

    /// Parses the remaining elements of a list, each a check or a list of checks; `None` if it
    /// contains anything else.
    fn list(&mut self) -> Result<Option<Check>, PolicyError> {
        let mut any = Vec::new();
        let mut is_empty = true;
        // The checks of an inner list while it is being read.
        let mut inner: Option<Vec<Check>> = None;
        loop {
            match (self.next()?.0, &mut inner) {
                (Event::SequenceEnd, Some(_)) => {
                    // An empty inner list is ignored, as in oslo.policy.
                    let all = inner.take().filter(|all| !all.is_empty());
                    any.extend(all.map(Check::And));
                }
                (Event::SequenceEnd, None) if is_empty => return Ok(Some(Check::True)),
                (Event::SequenceEnd, None) => return Ok(Some(Check::Or(any))),
                (Event::SequenceStart(_, None), None) => inner = Some(Vec::new()),
                (event, _) => match plain_text(event) {
                    Some(text) => inner
                        .as_mut()
                        .unwrap_or(&mut any)
                        .push(Check::parse_one(&text)),
                    None => return Ok(None),
                },
            }
            is_empty = false;
        }
    }
}

/// The text of a scalar that YAML reads as a string.
fn plain_text(event: Event) -> Option<String> {
    match event {
        Event::Scalar(text, TScalarStyle::Plain, _, None) => Yaml::from_str(&text).into_string(),
        Event::Scalar(text, _, _, None) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Policy, Target};
    use super::*;
    use crate::check;
    use crate::settings::PolicySettings;
    use placement_audit::identity::Identity;

    fn parse(text: &str) -> Result<BTreeMap<String, LocatedRule>, PolicyError> {
        super::parse(Path::new("policy.yaml"), text)
    }

    #[test]
    fn rules_are_text_or_lists() {
        let rules = parse("---\n# comment\n\"a\": \"role:x\"\nb: []\nc: [[\"role:x\", \"role:y\"], [\"@\"]]\nd: ''\n").unwrap();
        assert_eq!(rules.len(), 4);
        assert_eq!(rules["b"].check, Check::True);
        assert_eq!(rules["d"].check, Check::True);
        assert!(matches!(&rules["c"].check, Check::Or(any) if any.len() == 2));
        assert_eq!(rules["c"].line, 5, "the line");
        assert!(parse("{}\n").unwrap().is_empty());
        assert_eq!(parse("{\"a\": \"@\"}").unwrap()["a"].check, Check::True);
        assert_eq!(
            parse("a: [[]]\n").unwrap()["a"].check,
            Check::Or(Vec::new())
        );
    }

    #[test]
    fn empty_and_truncated_files_differ_from_files_without_rules() {
        for empty in [
            "",
            "\n",
            "# a: b\n",
            "---\n",
            "---\n# nothing\n...\n",
            "~\n",
        ] {
            assert!(
                matches!(parse(empty), Err(PolicyError::Empty(_))),
                "{empty:?}"
            );
        }
        for cut in ["a: role:x", "a: role:x and", "a: '@'"] {
            assert!(matches!(parse(cut), Err(PolicyError::CutOff(_))), "{cut:?}");
        }
    }

    #[test]
    fn other_yaml_is_refused() {
        for bad in [
            "- a\n",
            "a\n",
            "a: 5\n",
            "a: true\n",
            "a:\n",
            "a: ~\n",
            "a: !\n",
            "a: !!str x\n",
            "a: {b: c}\n",
            "a: [{b: c}]\n",
            "a: [[[b]]]\n",
            "1: x\n",
            "'': x\n",
            "[a]: x\n",
            "a: [[5]]\n",
            "a: [\n",
            "a: 'x\n",
            "a: x\na: y\n",
            "a: x\n---\nb: y\n",
            "a: &x role:x\nb: *x\n",
        ] {
            assert!(
                matches!(parse(bad), Err(PolicyError::Malformed(..))),
                "{bad:?}: {:?}",
                parse(bad)
            );
        }
    }

    #[test]
    fn no_nesting_is_too_deep() {
        for deep in ["[", "{", "- ", "a: [", "? ", "!x "] {
            let text = format!("{}\n", deep.repeat(100_000));
            assert!(parse(&text).is_err(), "{deep}");
        }
    }

    const REAL: &str = "# who may\n\"placement:usages\": \"role:admin and project_id:p\"\n\
        placement:traits:list: rule:admin_api and role:x\n\
        \"placement:reshaper:reshape\": [[\"role:service\", \"role:x\"]]\nadmin_api: 'role:y'\n";

    proptest! {
        #[test]
        fn no_file_breaks_the_parser(text in "[-a-z:\\[\\]{}&*!|>'\"#%@, \n\t]{0,80}|.{0,80}") {
            // The parser only has to return.
            let _ = parse(&text);
        }

        #[test]
        fn truncated_file_allows_no_more_than_whole_file(cut in 0..REAL.len()) {
            let Ok(rules) = parse(&REAL[..cut]) else { return Ok(()) };
            let whole = parse(REAL).unwrap();
            for (name, stated) in &rules {
                prop_assert_eq!(Some(&stated.check), whole.get(name).map(|stated| &stated.check));
            }
        }

        #[test]
        fn damaged_file_lets_in_no_caller_without_role(
            at in 0..REAL.len(), byte in any::<u8>(), mode in 0..3_u8,
        ) {
            let mut bytes = REAL.as_bytes().to_vec();
            match mode {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
            let text = String::from_utf8_lossy(&bytes);
            let Ok(rules) = parse(&text) else { return Ok(()) };
            let policy = Policy::read(&PolicySettings::default()).unwrap();
            let overrides = rules.into_iter().map(|(name, stated)| (name, stated.check));
            let rules = policy.defaults.rules(overrides, true);
            let anonymous = Identity::default();
            for name in rules.keys() {
                let holds = check::holds(&rules, name, &anonymous, Target::default());
                prop_assert!(!holds, "{name} lets in a caller without a role:\n{text}");
            }
        }
    }
}
