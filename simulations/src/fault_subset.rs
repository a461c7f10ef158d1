//! Runs with some faults left out, and the search for the fewest faults that still fail.

use std::fmt;
use std::str::FromStr;

use clap::Args;

use crate::faults::Planned;

/// Restricts a run to some of its faults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct FaultSubset {
    /// Run only the faults with these numbers in `explain`, such as `2,5`, or `none`
    #[arg(long)]
    pub only_faults: Option<Numbers>,
}

/// Numbers of faults in the order of `explain`, from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers(pub Vec<usize>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::default());
        }
        let number = |one: &str| {
            one.trim().parse().map_err(|_| {
                format!("{one:?} is not a fault number; write for example 2,5 or none")
            })
        };
        text.split(',')
            .map(number)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (nth, number) in self.0.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

/// Prints the subset as a command line option after a space; nothing for all faults.
impl fmt::Display for FaultSubset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.only_faults {
            Some(numbers) => write!(f, " --only-faults {numbers}"),
            None => Ok(()),
        }
    }
}

impl FaultSubset {
    fn only(numbers: &[usize]) -> Self {
        Self {
            only_faults: Some(Numbers(numbers.to_vec())),
        }
    }

    /// Whether the fault with this number is kept.
    pub fn keeps(&self, number: usize) -> bool {
        (self.only_faults.as_ref()).is_none_or(|numbers| numbers.0.contains(&number))
    }

    /// The faults that are kept.
    pub fn select(&self, faults: Vec<Planned>) -> Vec<Planned> {
        let faults = faults.into_iter().enumerate();
        let kept = faults.filter(|(number, _)| self.keeps(*number));
        kept.map(|(_, fault)| fault).collect()
    }

    /// Finds a small set of the `faults` faults with which the run still fails: leaves out halves
    /// first, single faults last. `fails` runs a restricted run; with all faults it must fail. Each
    /// remaining fault was necessary for the failure when the search tried to leave it out.
    pub fn search(faults: usize, mut fails: impl FnMut(&FaultSubset) -> bool) -> FaultSubset {
        let mut numbers: Vec<usize> = (0..faults).collect();
        let mut piece = numbers.len();
        while piece > 0 {
            let mut at = 0;
            while at < numbers.len() {
                let mut rest = numbers.clone();
                rest.drain(at..(at + piece).min(rest.len()));
                if fails(&Self::only(&rest)) {
                    numbers = rest;
                } else {
                    at += piece;
                }
            }
            piece /= 2;
        }
        Self::only(&numbers)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_they_are_parsed() {
        for text in ["3,7", "none"] {
            let numbers: Numbers = text.parse().unwrap();
            assert_eq!(numbers.to_string(), text);
        }
        let refused = "3,x".parse::<Numbers>().unwrap_err();
        assert!(refused.contains("\"x\""), "{refused}");
    }

    #[test]
    fn search_leaves_the_faults_that_a_failure_needs() {
        let mut runs = 0;
        let least = FaultSubset::search(23, |less| {
            runs += 1;
            less.keeps(2) && less.keeps(19)
        });
        assert_eq!(least.to_string(), " --only-faults 2,19");
        assert!(runs < 60, "{runs} runs");
        let least = FaultSubset::search(9, |_| true);
        assert_eq!(least.to_string(), " --only-faults none");
    }
}
