//! Runs of which something is left out, and the search for the least that still fails.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::faults::Planned;
use crate::parameters::Parameters;

/// What is left of a run that follows from a seed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Less {
    /// The only faults that happen, by their numbers as `explain` lists them: `2,5`, or `none`.
    #[arg(long)]
    pub only_faults: Option<Numbers>,
    /// How long the storm lasts, in milliseconds.
    #[arg(long)]
    pub storm_ms: Option<u64>,
    /// How many clients there are.
    #[arg(long)]
    pub clients: Option<usize>,
    /// How long a client pauses at most between two requests, in milliseconds.
    #[arg(long)]
    pub pause_ms: Option<u64>,
}

/// Numbers of faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers(pub Vec<usize>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::default());
        }
        let number = |one: &str| {
            one.trim()
                .parse()
                .map_err(|_| format!("{one:?} is not the number of a fault; write 2,5 or none"))
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

/// As it is written on the command line, with a blank before each option.
impl fmt::Display for Less {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            only_faults,
            storm_ms,
            clients,
            pause_ms,
        } = self;
        if let Some(numbers) = only_faults {
            write!(f, " --only-faults {numbers}")?;
        }
        if let Some(ms) = storm_ms {
            write!(f, " --storm-ms {ms}")?;
        }
        if let Some(clients) = clients {
            write!(f, " --clients {clients}")?;
        }
        if let Some(ms) = pause_ms {
            write!(f, " --pause-ms {ms}")?;
        }
        Ok(())
    }
}

impl Less {
    /// Whether the fault of this number happens.
    pub fn keeps(&self, number: usize) -> bool {
        (self.only_faults.as_ref()).is_none_or(|numbers| numbers.0.contains(&number))
    }

    /// What is left of these choices and faults.
    pub fn of(
        &self,
        mut parameters: Parameters,
        faults: Vec<Planned>,
    ) -> (Parameters, Vec<Planned>) {
        if let Some(ms) = self.storm_ms {
            parameters.storm = Duration::from_millis(ms);
        }
        if let Some(clients) = self.clients {
            parameters.clients = clients;
        }
        if let Some(ms) = self.pause_ms {
            parameters.pause_max = Duration::from_millis(ms);
        }
        let faults = faults.into_iter().enumerate();
        let kept = faults.filter(|(number, _)| self.keeps(*number));
        (parameters, kept.map(|(_, fault)| fault).collect())
    }

    /// The least of the run that still fails. `fails` carries out what is left and says whether it does;
    /// this was the case for all of it. Each thing that is left is needed, as far as one at a time tells.
    pub fn search(
        parameters: &Parameters,
        faults: usize,
        mut fails: impl FnMut(&Less) -> bool,
    ) -> Less {
        let mut least = Less::default();
        let mut numbers: Vec<usize> = (0..faults).collect();
        thin_out(&mut numbers, |numbers| {
            let less = Less {
                only_faults: Some(Numbers(numbers.to_vec())),
                ..Less::default()
            };
            fails(&less)
        });
        if numbers.len() < faults {
            least.only_faults = Some(Numbers(numbers));
        }
        let storm = u64::try_from(parameters.storm.as_millis()).unwrap_or(u64::MAX);
        let pause = u64::try_from(parameters.pause_max.as_millis()).unwrap_or(u64::MAX);
        let mut first = |before: Less, tries: Vec<Less>| {
            let found = tries.into_iter().find(|less| fails(less));
            found.unwrap_or(before)
        };
        let with = |storm_ms| Less {
            storm_ms: Some(storm_ms),
            ..least.clone()
        };
        let tries = (1..8).map(|eighths| with(storm * eighths / 8)).collect();
        let least = first(least.clone(), tries);
        let with = |clients| Less {
            clients: Some(clients),
            ..least.clone()
        };
        let tries = (1..parameters.clients).map(with).collect();
        let least = first(least.clone(), tries);
        let with = |times| Less {
            pause_ms: Some(pause * times),
            ..least.clone()
        };
        let tries = [16, 4, 2].map(with).into();
        first(least.clone(), tries)
    }
}

/// Takes away as many as it can while it still fails: halves first, then single ones.
fn thin_out(numbers: &mut Vec<usize>, mut fails: impl FnMut(&[usize]) -> bool) {
    let mut piece = numbers.len();
    while piece > 0 {
        let mut at = 0;
        while at < numbers.len() {
            let mut rest = numbers.clone();
            rest.drain(at..(at + piece).min(rest.len()));
            if fails(&rest) {
                *numbers = rest;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn what_is_left_is_said_as_it_is_understood() {
        let less = Less {
            only_faults: Some("3,7".parse().unwrap()),
            storm_ms: Some(900),
            ..Less::default()
        };
        assert_eq!(less.to_string(), " --only-faults 3,7 --storm-ms 900");
        let none: Numbers = "none".parse().unwrap();
        assert_eq!(none.to_string(), "none");
        let refused = "3,x".parse::<Numbers>().unwrap_err();
        assert!(refused.contains("\"x\""), "{refused}");
    }

    #[test]
    fn no_more_is_left_than_what_fails() {
        let parameters = Parameters {
            clients: 5,
            storm: Duration::from_secs(8),
            pause_max: Duration::from_millis(10),
            ..Parameters::from_seed(Seed(1))
        };
        let mut runs = 0;
        // Two faults that are far apart, three seconds and two clients are needed.
        let least = Less::search(&parameters, 23, |less| {
            runs += 1;
            less.keeps(2)
                && less.keeps(19)
                && less.storm_ms.is_none_or(|ms| ms >= 3_000)
                && less.clients.is_none_or(|clients| clients >= 2)
                && less.pause_ms.is_none_or(|ms| ms <= 40)
        });
        assert_eq!(
            least.to_string(),
            " --only-faults 2,19 --storm-ms 3000 --clients 2 --pause-ms 40"
        );
        assert!(runs < 60, "{runs} runs");
    }

    #[test]
    fn what_fails_of_itself_needs_no_fault() {
        let parameters = Parameters::from_seed(Seed(1));
        let least = Less::search(&parameters, 9, |_| true);
        assert_eq!(least.only_faults, Some(Numbers::default()));
    }
}
