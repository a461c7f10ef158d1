//! Findings of the checks: grouped by kind, counted, with a few examples of each.

use std::fmt;

/// Maximum number of examples per finding.
const EXAMPLES_MAX: usize = 5;

/// All findings, in the order of their first occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings(Vec<Finding>);

/// A kind of finding with its cases.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// Description with its consequence.
    what: &'static str,
    count: u64,
    examples: Vec<String>,
}

impl Findings {
    /// Adds a case of a finding.
    pub(crate) fn note(&mut self, what: &'static str, example: impl FnOnce() -> String) {
        let place = self
            .0
            .iter()
            .position(|finding| finding.what == what)
            .unwrap_or_else(|| {
                let (count, examples) = (0, Vec::new());
                self.0.push(Finding {
                    what,
                    count,
                    examples,
                });
                self.0.len() - 1
            });
        let Finding {
            count, examples, ..
        } = &mut self.0[place];
        *count += 1;
        if examples.len() < EXAMPLES_MAX {
            examples.push(example());
        }
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding {
            what,
            count,
            examples,
        } in &self.0
        {
            writeln!(f, "  {count}: {what}")?;
            for example in examples {
                writeln!(f, "      {example}")?;
            }
            let more = count.saturating_sub(examples.len() as u64);
            if more > 0 {
                writeln!(f, "      and {more} more")?;
            }
        }
        Ok(())
    }
}
