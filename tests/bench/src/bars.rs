//! Bars: limits that measured figures must meet. A bar is met if all rounds meet it, missed if none
//! does, and undecided otherwise.

use anyhow::ensure;

/// Number of rounds. In each round, a service and the services it is compared with take turns.
pub(crate) const ROUNDS: usize = 5;

/// Limit of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// Whether a busy load generator may have distorted a rate. The true rate is higher if the load
/// generator limited our service; the true ratio is lower if it limited the peer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Doubt {
    pub(crate) is_higher: bool,
    pub(crate) is_lower: bool,
}

/// Table of bars, and the number of missed ones.
#[derive(Default)]
pub(crate) struct Bars {
    lines: Vec<String>,
    missed: usize,
    undecided: usize,
}

impl Bars {
    /// Compares the figures of all rounds with the bar, if there is one.
    pub(crate) fn hold(
        &mut self,
        what: &str,
        rounds: &[f64],
        bound: Option<Bound>,
        doubt: Doubt,
        show: impl Fn(f64) -> String,
    ) {
        let (least, most) = rounds
            .iter()
            .fold((f64::MAX, f64::MIN), |(least, most), at| {
                (least.min(*at), most.max(*at))
            });
        let (demand, verdict) = match bound {
            None => (String::new(), "shown".to_owned()),
            Some(bound) => {
                let demand = match bound {
                    Bound::AtLeast(least) => format!("≥ {}", show(least)),
                    Bound::AtMost(most) => format!("≤ {}", show(most)),
                };
                let verdict = match (bound.holds(least), bound.holds(most)) {
                    (true, true) if doubt.is_lower => "undecided: the peer's load was too busy",
                    (false, false) if doubt.is_higher => "undecided: the load was too busy",
                    (true, true) => "pass",
                    (false, false) => "miss",
                    _ => "undecided",
                };
                let verdict = verdict.to_owned();
                self.missed += usize::from(verdict == "miss");
                self.undecided += usize::from(verdict.starts_with("undecided"));
                (demand, verdict)
            }
        };
        let [median, least, most] = [median(rounds), least, most].map(show);
        let line = format!("| {what} | {median} | {least} to {most} | {demand} | {verdict} |");
        self.lines.push(line);
    }

    /// Adds a row for a figure that could not be measured; its bar counts as missed.
    pub(crate) fn miss(&mut self, what: &str, has_bar: bool) {
        self.missed += usize::from(has_bar);
        self.lines.push(format!("| {what} | | | | not measured |"));
    }

    /// Prints the table. Fails if a bar was missed.
    pub(crate) fn report(&self) -> anyhow::Result<()> {
        println!(
            "\n| measurement | median | lowest to highest round | target | verdict |\n\
             |---|---:|---:|---:|---|"
        );
        println!("{}", self.lines.join("\n"));
        let Self {
            missed, undecided, ..
        } = self;
        println!("\n{missed} targets missed, {undecided} undecided.");
        ensure!(*missed == 0, "{missed} targets missed or not measured");
        Ok(())
    }
}

/// Median of the figures of all rounds.
pub(crate) fn median(rounds: &[f64]) -> f64 {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(f64::NAN)
}
