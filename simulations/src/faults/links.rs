//! The ways between two machines, with all faults that are going on: what one of them opens again
//! another may still keep shut.

use std::collections::BTreeMap;

use turmoil::Sim;

type Way = (String, String);

/// Which ways are cut, and between which machines messages are kept, each as often as faults that
/// do so are going on.
#[derive(Debug, Default)]
pub struct Links {
    cuts: BTreeMap<Way, usize>,
    holds: BTreeMap<Way, usize>,
    /// Messages that were kept and then let go.
    pub late: u64,
}

impl Links {
    /// Cuts the way from one machine to another.
    pub fn cut(&mut self, sim: &Sim<'_>, from: &str, to: &str) {
        let count = self.cuts.entry(way(from, to)).or_default();
        *count += 1;
        if *count == 1 {
            sim.partition_oneway(from, to);
        }
    }

    /// Takes one cut back.
    pub fn mend(&mut self, sim: &Sim<'_>, from: &str, to: &str) {
        if !taken_back(&mut self.cuts, &way(from, to)) {
            return;
        }
        sim.repair_oneway(from, to);
        if self.holds.contains_key(&pair(from, to)) {
            self.keep(sim, from, to);
        }
    }

    /// Keeps what two machines say to each other.
    pub fn hold(&mut self, sim: &Sim<'_>, a: &str, b: &str) {
        let count = self.holds.entry(pair(a, b)).or_default();
        *count += 1;
        if *count == 1 {
            self.keep(sim, a, b);
        }
    }

    /// Lets it go, if nothing else keeps it.
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

    /// Turmoil opens and holds both directions at once, cut or not.
    fn cut_again(&self, sim: &Sim<'_>, a: &str, b: &str) {
        for (from, to) in [(a, b), (b, a)] {
            if self.cuts.contains_key(&way(from, to)) {
                sim.partition_oneway(from, to);
            }
        }
    }
}

fn way(from: &str, to: &str) -> Way {
    (from.to_owned(), to.to_owned())
}

fn pair(a: &str, b: &str) -> Way {
    way(a.min(b), a.max(b))
}

/// Counts one less; true if it was the last.
fn taken_back(counts: &mut BTreeMap<Way, usize>, way: &Way) -> bool {
    match counts.get_mut(way) {
        Some(count) if *count > 1 => {
            *count -= 1;
            false
        }
        Some(_) => counts.remove(way).is_some(),
        None => false,
    }
}
