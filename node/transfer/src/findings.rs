//! What a look over the rows has found: grouped, counted, and with a few examples of each.

use std::fmt;

/// So many examples of a finding are shown.
const EXAMPLES_MAX: usize = 5;

/// Something that was found in the rows, once or often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// What it means, and what to do.
    pub advice: &'static str,
    /// How often.
    pub count: u64,
    /// The first of them: the row, and the statement that shows it.
    pub examples: Vec<String>,
}

/// All that was found, in the order in which it was found first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings(pub Vec<Finding>);

/// What may be found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) what: &'static str,
    pub(crate) advice: &'static str,
}

impl Findings {
    /// Notes a case.
    pub(crate) fn note(&mut self, kind: Kind, example: impl FnOnce() -> String) {
        self.note_many(kind, 1, example);
    }

    /// Notes cases that one example stands for.
    pub(crate) fn note_many(&mut self, kind: Kind, count: u64, example: impl FnOnce() -> String) {
        let Kind { what, advice } = kind;
        let place = self.0.iter().position(|finding| finding.what == what);
        let place = place.unwrap_or_else(|| {
            self.0.push(Finding {
                what,
                advice,
                count: 0,
                examples: Vec::new(),
            });
            self.0.len() - 1
        });
        let finding = &mut self.0[place];
        finding.count += count;
        if finding.examples.len() < EXAMPLES_MAX {
            finding.examples.push(example());
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.0 {
            writeln!(f, "  {} ({})", finding.what, finding.count)?;
            for example in &finding.examples {
                writeln!(f, "      {example}")?;
            }
            let more = finding.count.saturating_sub(finding.examples.len() as u64);
            if more > 0 && !finding.examples.is_empty() {
                writeln!(f, "      and {more} more")?;
            }
            writeln!(f, "    {}", finding.advice)?;
        }
        Ok(())
    }
}
