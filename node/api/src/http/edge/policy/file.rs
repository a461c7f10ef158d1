//! A policy file: a YAML mapping of rule names to rules, as oslo.policy has it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::Chars;

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{Marker, TScalarStyle};
use yaml_rust2::{ScanError, Yaml};

use super::check::Check;

/// Longest file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Policy files that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A file or directory cannot be read, or there is none.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It says nothing: it may have been emptied.
    #[error("{path} has no rule; if that is meant, write {{}} into it, or take it out of [policy]")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It ends in the middle of a line: it may be half-written.
    #[error(
        "the last line of {path} does not end: the file may be cut off; end it with a line break"
    )]
    CutOff {
        /// The file.
        path: PathBuf,
    },
    /// It is not what it should be.
    #[error("{path} is not a YAML mapping of rule names to rules: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// What the rules in force say is said no more.
    #[error(
        "{path} no longer has a rule for {rule}; if that is meant, send SIGHUP, or restart the node"
    )]
    Gone {
        /// The file.
        path: PathBuf,
        /// The first such rule.
        rule: String,
    },
}

/// A rule, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stated {
    pub(super) check: Check,
    pub(super) path: PathBuf,
    pub(super) line: usize,
}

/// Reads the rules of a file.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Stated>, PolicyError> {
    let unreadable = |error| PolicyError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let text = text(path).map_err(unreadable)?;
    let path = path.to_owned();
    let rules = parse(&text).map_err(|flaw| match flaw {
        Flaw::Empty => PolicyError::Empty { path: path.clone() },
        Flaw::CutOff => PolicyError::CutOff { path: path.clone() },
        Flaw::Malformed(reason) => PolicyError::Malformed {
            path: path.clone(),
            reason,
        },
    })?;
    let stated = |(name, (check, line))| {
        let path = path.clone();
        (name, Stated { check, path, line })
    };
    Ok(rules.into_iter().map(stated).collect())
}

/// A file's text. Nothing else than a file is waited for.
fn text(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {MAX_BYTES} bytes"
        )));
    }
    Ok(text)
}

/// Why a text is no policy.
#[derive(Debug, PartialEq, Eq)]
enum Flaw {
    Empty,
    CutOff,
    Malformed(String),
}

fn malformed<T>(at: Marker, what: &str) -> Result<T, Flaw> {
    Err(Flaw::Malformed(format!("line {}: {what}", at.line())))
}

/// A rule and its line.
type Ruled = (Check, usize);

/// The rules in a file's text. It is read event by event, as what is nested has no end otherwise.
fn parse(text: &str) -> Result<BTreeMap<String, Ruled>, Flaw> {
    let mut events = Events(Parser::new_from_str(text).keep_tags(true));
    let rules = events.document()?.ok_or(Flaw::Empty)?;
    // What is in braces cannot be cut off unnoticed, and programs that write JSON end no line.
    if !text.ends_with('\n') && !text.ends_with('}') {
        return Err(Flaw::CutOff);
    }
    Ok(rules)
}

struct Events<'a>(Parser<Chars<'a>>);

impl Events<'_> {
    fn next(&mut self) -> Result<(Event, Marker), Flaw> {
        let next = self.0.next_token();
        next.map_err(|error: ScanError| Flaw::Malformed(error.to_string()))
    }

    /// `None`: it has nothing, not even an empty mapping.
    fn document(&mut self) -> Result<Option<BTreeMap<String, Ruled>>, Flaw> {
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
                    return malformed(at, "there is a second document");
                }
                (_, at) => return malformed(at, "this is something else"),
            }
        }
    }

    fn mapping(&mut self) -> Result<BTreeMap<String, Ruled>, Flaw> {
        let mut rules = BTreeMap::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(rules);
            }
            let Some(name) = plain_text(event).filter(|name| !name.is_empty()) else {
                return malformed(at, "a rule's name is not text");
            };
            let check = self.rule(&name)?;
            match rules.entry(name) {
                Entry::Vacant(place) => drop(place.insert((check, at.line()))),
                Entry::Occupied(place) => {
                    return malformed(at, &format!("{:?} has a rule already", place.key()));
                }
            }
        }
    }

    /// A rule is text in the rule language, or a list of lists: any of the outer, all of an inner.
    fn rule(&mut self, name: &str) -> Result<Check, Flaw> {
        let (event, at) = self.next()?;
        let no_rule = || {
            let what = format!(
                "the rule of {name:?} is neither text nor a list of lists of text; text that YAML might \
                 take for something else, such as \"!\", stands in quotes"
            );
            malformed(at, &what)
        };
        if !matches!(event, Event::SequenceStart(_, None)) {
            return plain_text(event).map_or_else(no_rule, |text| Ok(Check::parse(&text)));
        }
        let mut any = Vec::new();
        let mut is_empty = true;
        loop {
            match self.next()?.0 {
                Event::SequenceEnd if is_empty => return Ok(Check::True),
                Event::SequenceEnd => return Ok(Check::Or(any)),
                Event::SequenceStart(_, None) => {
                    let mut all = Vec::new();
                    loop {
                        let event = self.next()?.0;
                        if event == Event::SequenceEnd {
                            break;
                        }
                        let Some(text) = plain_text(event) else {
                            return no_rule();
                        };
                        all.push(Check::parse_one(&text));
                    }
                    // An empty one says nothing, as in oslo.policy.
                    if !all.is_empty() {
                        any.push(Check::And(all));
                    }
                }
                event => match plain_text(event) {
                    Some(text) => any.push(Check::parse_one(&text)),
                    None => return no_rule(),
                },
            }
            is_empty = false;
        }
    }
}

/// Text that YAML takes for text.
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

    use super::super::Target;
    use super::super::defaults;
    use super::*;
    use crate::http::edge::auth::Identity;
    use crate::http::edge::policy::check::Evaluation;

    #[test]
    fn rules_are_text_or_lists() {
        let rules = parse("---\n# comment\n\"a\": \"role:x\"\nb: []\nc: [[\"role:x\", \"role:y\"], [\"@\"]]\nd: ''\n").unwrap();
        assert_eq!(rules.len(), 4);
        assert_eq!(rules["b"].0, Check::True);
        assert_eq!(rules["d"].0, Check::True);
        assert!(matches!(&rules["c"].0, Check::Or(any) if any.len() == 2));
        assert_eq!(rules["c"].1, 5, "the line");
        assert!(parse("{}\n").unwrap().is_empty());
        assert_eq!(parse("{\"a\": \"@\"}").unwrap()["a"].0, Check::True);
        assert_eq!(parse("a: [[]]\n").unwrap()["a"].0, Check::Or(Vec::new()));
    }

    #[test]
    fn what_is_empty_or_cut_off_is_told_from_what_has_no_rules() {
        for empty in [
            "",
            "\n",
            "# a: b\n",
            "---\n",
            "---\n# nothing\n...\n",
            "~\n",
        ] {
            assert_eq!(parse(empty), Err(Flaw::Empty), "{empty:?}");
        }
        for cut in ["a: role:x", "a: role:x and", "a: '@'"] {
            assert_eq!(parse(cut), Err(Flaw::CutOff), "{cut:?}");
        }
    }

    #[test]
    fn what_else_yaml_can_say_is_refused() {
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
                matches!(parse(bad), Err(Flaw::Malformed(_))),
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
            // What counts is that it returns.
            let _ = parse(&text);
        }

        #[test]
        fn no_cut_lets_anybody_in_whom_the_whole_file_keeps_out(cut in 0..REAL.len()) {
            let Ok(rules) = parse(&REAL[..cut]) else { return Ok(()) };
            let whole = parse(REAL).unwrap();
            for (name, (check, _)) in &rules {
                prop_assert_eq!(Some(check), whole.get(name).map(|(check, _)| check));
            }
        }

        #[test]
        fn no_damage_breaks_what_judges(
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
            let overrides = rules.into_iter().map(|(name, (check, _))| (name, check)).collect();
            let rules = defaults::rules(&overrides, true);
            let nobody = Identity::default();
            for name in rules.keys() {
                let holds = Evaluation::new(&rules, &nobody, Target::default()).rule(name);
                prop_assert!(!holds, "{name} lets in a caller without a role:\n{text}");
            }
        }
    }
}
