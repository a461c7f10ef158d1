//! The bars, each a value.

use super::super::estates::{Cloud, Dress, Shape};
use super::alone::Place;
use super::measurement::{FULL, Load, Measurement, Quantity, Service, THREE, Work, nowhere};

/// Whom we are held against.
#[derive(Debug, Clone)]
pub(super) enum Peer {
    /// Nobody: the bar is a number.
    Nobody,
    Of(Measurement),
    /// The best of several.
    BestOf(Vec<Measurement>),
}

/// What must hold. Factors are of the peer's figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bar {
    /// Ours is at least so many times the peer's: a rate.
    AtLeast(f64),
    /// The peer's is at least so many times ours: a cost.
    Cheaper(f64),
    /// Ours is at most so many times the peer's.
    AtMost(f64),
    /// Ours is at most the peer's and this much.
    AtMostMore(f64),
    /// Ours is at most this.
    Within(f64),
    /// Nothing: shown beside the others.
    Shown,
}

/// One line of the table.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What `--only` calls it; several lines may share it.
    pub(super) name: &'static str,
    pub(super) quantity: Quantity,
    pub(super) ours: Measurement,
    pub(super) peer: Peer,
    pub(super) bar: Bar,
}

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// Sizes of flat clouds beyond the first, with what each may cost at most, as a factor of the first.
    pub(super) larger: Vec<(u64, f64)>,
    pub(super) flat: u64,
    pub(super) trees: u64,
    pub(super) pci: u64,
    /// Hosts of the cloud with ten consumers each.
    pub(super) full: u64,
    /// Groups of devices that upstream is asked for.
    pub(super) upstream_groups: Vec<u32>,
    /// All loads and all clouds, for the plots.
    pub(super) everything: bool,
}

impl Scope {
    pub(super) fn whole() -> Self {
        Self {
            larger: vec![(10_000, 1.2), (100_000, 1.5)],
            full: 100_000,
            upstream_groups: vec![1, 2, 4],
            everything: true,
            ..Self::quick()
        }
    }

    pub(super) fn quick() -> Self {
        Self {
            larger: vec![(10_000, 1.2)],
            flat: 1_000,
            trees: 1_000,
            pci: 500,
            full: 10_000,
            upstream_groups: vec![1, 2],
            everything: false,
        }
    }

    /// No cloud larger than so many trees.
    pub(super) fn at_most(mut self, most: u64) -> Self {
        for size in [
            &mut self.flat,
            &mut self.trees,
            &mut self.pci,
            &mut self.full,
        ] {
            *size = most.min(*size);
        }
        self.larger.retain(|(size, _)| *size <= most);
        self
    }
}

const CONNECTIONS: [usize; 4] = [1, 16, 64, 256];
const RANDOM: Service = Service::Three { randomize: true };

/// The table.
pub(super) fn rows(scope: &Scope) -> Vec<Row> {
    use Quantity::{Cpu, CpuOfAsked, P50, P99, PerSecond, Resident};
    use Service::{Axum, Disk, Etcd, One, SerdeJson, Upstream};
    let flat = Cloud::of(Shape::Flat, scope.flat);
    let at = Measurement::of;
    let mut rows = Vec::new();
    let mut row = |name, quantity, ours: Measurement, peer, bar| {
        rows.push(Row {
            name,
            quantity,
            ours,
            peer,
            bar,
        });
    };

    for work in [Work::Inventories, Work::Allocations] {
        let ours = at(One, flat, work, 16);
        row(
            "reads",
            PerSecond,
            ours,
            Peer::Of(ours.by(Axum)),
            Bar::AtLeast(0.65),
        );
        row(
            "reads",
            PerSecond,
            ours,
            Peer::Of(ours.by(Upstream)),
            Bar::AtLeast(200.0),
        );
    }

    let linearizable = at(THREE, flat, Work::Inventories, 16);
    let local = at(THREE, flat, Work::InventoriesLocal, 16);
    row(
        "follower",
        P50,
        linearizable,
        Peer::Of(local),
        Bar::AtMostMore(0.3),
    );

    let ten = at(THREE, flat, Work::Candidates(Some(10)), 16);
    row(
        "candidates",
        CpuOfAsked,
        ten,
        Peer::Of(ten.by(Upstream)),
        Bar::Cheaper(4000.0),
    );
    row(
        "candidates",
        Cpu,
        ten,
        Peer::Of(ten.by(Upstream)),
        Bar::Shown,
    );
    for &(hosts, most) in &scope.larger {
        for service in [THREE, RANDOM] {
            let ours = ten.by(service).within(Cloud::of(Shape::Flat, hosts));
            row("size", CpuOfAsked, ours, Peer::Of(ten), Bar::AtMost(most));
            let alone = ours.under(Load::Connections(1));
            row("size", P50, alone, Peer::Nobody, Bar::Within(0.5));
        }
    }
    let all = at(THREE, flat, Work::Candidates(None), 16);
    row(
        "no-limit",
        CpuOfAsked,
        all,
        Peer::Of(all.by(Upstream)),
        Bar::Cheaper(300.0),
    );
    row(
        "no-limit",
        CpuOfAsked,
        all,
        Peer::Of(all.by(SerdeJson)),
        Bar::AtMost(1.5),
    );

    let nested = ten.within(Cloud::of(Shape::Nested, scope.trees));
    row(
        "nested",
        CpuOfAsked,
        nested,
        Peer::Of(nested.by(Upstream)),
        Bar::Cheaper(4000.0),
    );

    let pci = Cloud::of(Shape::Pci, scope.pci);
    for groups in [1, 2, 4, 8] {
        let ours = at(THREE, pci, Work::Devices(groups), 1);
        row("pci", P50, ours, Peer::Nobody, Bar::Within(2.5));
        if scope.upstream_groups.contains(&groups) {
            row(
                "pci",
                P50,
                ours,
                Peer::Of(ours.by(Upstream)),
                Bar::Cheaper(500.0),
            );
        }
    }

    let write = |connections| at(THREE, flat, Work::Write, connections);
    let put = |connections| at(Etcd, nowhere(), Work::Write, connections);
    for connections in [16, 64, 256] {
        let ours = write(connections);
        row(
            "writes",
            PerSecond,
            ours,
            Peer::Of(put(connections)),
            Bar::AtLeast(1.5),
        );
        row(
            "writes",
            PerSecond,
            ours,
            Peer::Of(ours.by(Upstream)),
            Bar::AtLeast(150.0),
        );
    }
    row(
        "one-writer",
        P50,
        write(1),
        Peer::Of(put(1)),
        Bar::AtMost(0.8),
    );
    for place in [Place::Append, Place::Overwrite] {
        let sync = at(Disk, nowhere(), Work::Sync(place), 1);
        row("one-writer", P50, write(1), Peer::Of(sync), Bar::Shown);
    }

    let claims = at(THREE, flat, Work::ClaimLoop, 64);
    row(
        "claims",
        PerSecond,
        claims,
        Peer::Of(claims.by(Upstream)),
        Bar::AtLeast(1000.0),
    );

    let full = Cloud::of(Shape::Flat, scope.full).dressed(Dress::Full);
    let calm = at(One, full, Work::Write, 1).under(Load::PerSecond(1000));
    let beside = Measurement {
        work: Work::WriteBesideSnapshots,
        ..calm
    };
    row("snapshot", P99, beside, Peer::Of(calm), Bar::AtMost(1.5));
    let start = at(One, full, Work::Start, 1);
    row("start", P50, start, Peer::Nobody, Bar::Within(5000.0));
    row("start", Resident, start, Peer::Nobody, Bar::Within(1024.0));

    for (work, service) in [(Work::Write, THREE), (Work::Inventories, One)] {
        let at = |connections| at(service, flat, work, connections);
        let best = Peer::BestOf(CONNECTIONS.map(at).to_vec());
        row("goodput", PerSecond, at(256), best, Bar::AtLeast(0.9));
    }
    rows
}

/// What no bar asks for, and the plots do.
pub(super) fn further(scope: &Scope) -> Vec<Measurement> {
    let flat = Cloud::of(Shape::Flat, scope.flat);
    let at = Measurement::of;
    let ten = at(THREE, flat, Work::Candidates(Some(10)), 16);
    let write = at(THREE, flat, Work::Write, 1);
    let read = at(Service::One, flat, Work::Inventories, 1);
    let mut further = vec![ten.by(RANDOM)];
    let parts: &[u32] = match scope.everything {
        true => &[10, 25, 50, 70, 80, 90, 100],
        false => &[25, 50, 80],
    };
    for what in [write, read, ten] {
        further.push(what.under(Load::Connections(FULL)));
        further.extend(parts.iter().map(|&part| what.under(Load::Offered(part))));
    }
    if scope.everything {
        for what in [write, read, ten] {
            for connections in CONNECTIONS {
                let ours = what.under(Load::Connections(connections));
                further.push(ours);
                further.push(ours.by(Service::Upstream));
            }
        }
        let clouds = [
            Cloud::of(Shape::Flat, 10_000),
            flat.dressed(Dress::Traits),
            flat.dressed(Dress::Used),
            Cloud::of(Shape::Nested, scope.trees).dressed(Dress::Traits),
            Cloud::of(Shape::Nested, scope.trees).dressed(Dress::Used),
            Cloud::of(Shape::Nested, 10_000),
        ];
        for cloud in clouds {
            further.push(ten.within(cloud));
        }
        further.push(ten.within(clouds[0]).by(Service::Upstream));
        let pci = Cloud::of(Shape::Pci, scope.pci);
        for cloud in [
            pci.dressed(Dress::Traits),
            pci.dressed(Dress::Used),
            Cloud::of(Shape::Pci, 100),
        ] {
            for groups in [1, 8] {
                further.push(at(THREE, cloud, Work::Devices(groups), 1));
            }
        }
    }
    further
}

impl Row {
    /// All that it takes.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        let mut all = vec![self.ours];
        match &self.peer {
            Peer::Nobody => {}
            Peer::Of(peer) => all.push(*peer),
            Peer::BestOf(peers) => all.extend(peers),
        }
        all
    }
}

impl Bar {
    /// Whether it holds; `None` if there is nothing to hold.
    pub(super) fn is_met(self, ours: f64, peer: Option<f64>) -> Option<bool> {
        match (self, peer) {
            (Self::Within(most), _) => Some(ours <= most),
            (Self::AtLeast(factor), Some(peer)) => Some(ours >= factor * peer),
            (Self::Cheaper(factor), Some(peer)) => Some(peer >= factor * ours),
            (Self::AtMost(factor), Some(peer)) => Some(ours <= factor * peer),
            (Self::AtMostMore(more), Some(peer)) => Some(ours <= peer + more),
            (Self::Shown, _) | (_, None) => None,
        }
    }

    /// How many times, as the bar counts it.
    pub(super) fn ratio(self, ours: f64, peer: f64) -> f64 {
        match self {
            Self::Cheaper(_) => peer / ours,
            _ => ours / peer,
        }
    }

    /// What it demands.
    pub(super) fn show(self, quantity: Quantity) -> String {
        match self {
            Self::AtLeast(factor) => format!("≥ {factor} ×"),
            Self::Cheaper(factor) => format!("≥ {factor} × less"),
            Self::AtMost(factor) => format!("≤ {factor} ×"),
            Self::AtMostMore(more) => format!("≤ peer + {}", quantity.show(more)),
            Self::Within(most) => format!("≤ {}", quantity.show(most)),
            Self::Shown => "–".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_hold_up_to_their_edge() {
        for (bar, met, missed) in [
            (Bar::AtLeast(1.5), 15.0, 14.9),
            (Bar::Cheaper(5.0), 2.0, 2.1),
            (Bar::AtMost(0.8), 8.0, 8.1),
            (Bar::AtMostMore(0.5), 10.5, 10.6),
            (Bar::Within(3.0), 3.0, 3.1),
        ] {
            assert_eq!(bar.is_met(met, Some(10.0)), Some(true), "{bar:?}");
            assert_eq!(bar.is_met(missed, Some(10.0)), Some(false), "{bar:?}");
        }
        assert_eq!(Bar::AtLeast(1.0).is_met(1.0, None), None);
        assert_eq!(Bar::Shown.is_met(1.0, Some(1.0)), None);
    }

    #[test]
    fn nothing_larger_is_measured_than_asked_for() {
        let scope = Scope::whole().at_most(50);
        let all = rows(&scope).into_iter().flat_map(|row| row.measurements());
        for measurement in all {
            assert!(measurement.cloud.size <= 50, "{measurement}");
        }
    }
}
