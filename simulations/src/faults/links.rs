//! The links between machines under all current faults. A link reopens only when the last fault
//! that closes it ends.

use std::collections::BTreeMap;

use turmoil::Sim;

type Direction = (String, String);

/// Number of current faults that cut each one-way link, and that hold the messages of each pair.
#[derive(Debug, Default)]
pub struct Links {
    cuts: BTreeMap<Direction, usize>,
    holds: BTreeMap<Direction, usize>,
    /// Number of messages that were held and then released.
    pub late: u64,
}

impl Links {
    /// Cuts the link from one machine to another.
    pub fn cut(&mut self, sim: &Sim<'_>, from: &str, to: &str) {
        let count = self.cuts.entry(way(from, to)).or_default();
        *count += 1;
        if *count == 1 {
            sim.partition_oneway(from, to);
        }
    }

    /// Undoes one [`Links::cut`] of this link.
    pub fn heal(&mut self, sim: &Sim<'_>, from: &str, to: &str) {
        if !taken_back(&mut self.cuts, &way(from, to)) {
            return;
        }
        sim.repair_oneway(from, to);
        if self.holds.contains_key(&pair(from, to)) {
            self.keep(sim, from, to);
        }
    }

    /// Holds the messages between two machines.
    pub fn hold(&mut self, sim: &Sim<'_>, a: &str, b: &str) {
        let count = self.holds.entry(pair(a, b)).or_default();
        *count += 1;
        if *count == 1 {
            self.keep(sim, a, b);
        }
    }

    /// Undoes one hold, and releases the messages if it was the last.
    pub fn release(&mut self, sim: &Sim<'_>, a: &str, b: &str) {
        if !taken_back(&mut self.holds, &pair(a, b)) {
            return;
        }
        let mut ends = [sim.lookup(a), sim.lookup(b)];
        ends.sort();
        let mut late = 0;
        sim.links(|links| {
            let held = links.filter(|link| [link.pair().0, link.pair().1] == ends);
            late = held.map(|link| link.count() as u64).sum();
        });
        self.late += late;
        sim.release(a, b);
        self.cut_again(sim, a, b);
    }

    fn keep(&self, sim: &Sim<'_>, a: &str, b: &str) {
        sim.hold(a, b);
        self.cut_again(sim, a, b);
    }

    /// Turmoil opens and holds both directions at once, so cuts have to be repeated.
    fn cut_again(&self, sim: &Sim<'_>, a: &str, b: &str) {
        for (from, to) in [(a, b), (b, a)] {
            if self.cuts.contains_key(&way(from, to)) {
                sim.partition_oneway(from, to);
            }
        }
    }
}

fn way(from: &str, to: &str) -> Direction {
    (from.to_owned(), to.to_owned())
}

fn pair(a: &str, b: &str) -> Direction {
    way(a.min(b), a.max(b))
}

/// Decrements a count. Returns true if it was the last.
fn taken_back(counts: &mut BTreeMap<Direction, usize>, way: &Direction) -> bool {
    match counts.get_mut(way) {
        Some(count) if *count > 1 => {
            *count -= 1;
            false
        }
        Some(_) => counts.remove(way).is_some(),
        None => false,
    }
}
