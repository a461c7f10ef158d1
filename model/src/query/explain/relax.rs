//! Relaxations: requests with one condition dropped or reduced.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU64;

use super::answer::{Bound, Relaxation, RelaxedCondition};
use super::atoms::{Atom, Atoms, Bits, Condition, ProviderCheck, Test, TreeCheck, bits};
use super::explainer::Explainer;
use super::kind::Kind;
use crate::mutant;
use crate::query::NamedProvider;
use crate::query::candidates::{CandidateRequest, GroupPolicy};
use crate::state::change::ResourceClassId;
use crate::state::indexes::offer;
use crate::state::tree::{Stock, TreeNumber};
use crate::state::tree_set::TreeSet;
use crate::types::{Given, ResourceClassName};

/// Maximum number of amounts to try per relaxation.
const AMOUNTS_TRIED_MAX: usize = 64;

/// Maximum number of sums to consider. Each adds up amounts of the same class in other groups.
const SUMS_MAX: usize = 256;

/// Writes a request as a query string, if the query language can express it.
type QueryWriter<'s> = &'s dyn Fn(&CandidateRequest) -> Option<String>;

/// A relaxation, and the trees that may then have a candidate.
pub(super) struct RelaxationTrial {
    less: Atom,
    /// The index of `less` in [`Atoms::list`].
    pub(super) index: usize,
    /// The atoms that the relaxation removes.
    removes: Bits,
    /// The parts that remain in the request.
    parts: Bits,
    /// The relaxed request; for `room` it still contains the original amount.
    request: CandidateRequest,
    pub(super) trees: TreeSet,
}

/// The relaxations that drop or reduce one condition.
pub(super) fn ways(atoms: &Atoms<'_>) -> Vec<RelaxationTrial> {
    let mut ways = Vec::new();
    let mut add = |index: usize, less: Atom, cut: &dyn Fn(&mut CandidateRequest)| {
        let mut request = atoms.request.clone();
        cut(&mut request);
        request.same_subtree.retain(|suffixes| !suffixes.is_empty());
        if !request.groups.is_empty() {
            ways.push(RelaxationTrial::new(atoms, index, less, request));
        }
    };
    for (index, one) in atoms.list.iter().enumerate() {
        // Two equal sets of aggregates are one condition.
        let mut before = atoms.list[..index].iter();
        if let Some(cut) = &one.cut
            && before.all(|other| other.atom != one.atom)
        {
            add(index, one.atom.clone(), cut);
        }
    }
    // Conditions on several groups at once.
    let index = atoms.list.len() - 1;
    let several = |group| Atom {
        group,
        ..atoms.list[index].atom.clone()
    };
    if atoms.request.group_policy == Some(GroupPolicy::Isolate) {
        let less = several("group_policy=isolate".to_owned());
        add(index, less, &|less| {
            less.group_policy = Some(GroupPolicy::None);
        });
    }
    for (at, suffixes) in atoms.request.same_subtree.iter().enumerate() {
        let joined = Vec::from_iter(suffixes.iter().map(String::as_str)).join(",");
        add(index, several(format!("same_subtree={joined}")), &|less| {
            less.same_subtree.remove(at);
            // Resourceless groups that are in no other `same_subtree` are removed, too.
            let left = &less.same_subtree;
            less.groups.retain(|group| {
                let is_placed = |other: &BTreeSet<String>| other.contains(&group.suffix);
                let was_placed = is_placed(suffixes) && group.resources.is_empty();
                !was_placed || left.iter().any(is_placed)
            });
        });
    }
    ways
}

impl RelaxationTrial {
    fn new(atoms: &Atoms<'_>, index: usize, less: Atom, request: CandidateRequest) -> Self {
        let is_left = |group: usize, class: Option<&Given<ResourceClassName>>| {
            let suffix = &atoms.request.groups[group].suffix;
            let mut groups = request.groups.iter();
            let group = groups.find(|group| group.suffix == *suffix);
            group.is_some_and(|group| class.is_none_or(|class| group.resources.contains_key(class)))
        };
        let of_class = |one: &Condition<'_>| (one.group, one.atom.class.clone(), one.atom.asked);
        let given_up = &atoms.list[index];
        let removes = atoms.which(|one| {
            let is_gone = |group| !is_left(group, one.atom.class.as_ref());
            // A relaxed amount removes both conditions on the amount, `unit` and `room`.
            let is_amount = less.asked.is_some() && of_class(one) == of_class(given_up);
            one.atom == less || is_amount || one.group.is_some_and(is_gone)
        });
        let parts = atoms.parts.iter();
        let parts = bits(parts.map(|part| is_left(part.group, part.class.as_ref())));
        Self {
            less,
            index,
            removes,
            parts,
            request,
            trees: TreeSet::default(),
        }
    }

    /// Whether the relaxation drops this atom. Relaxing an amount drops both `unit` and `room`.
    pub(super) fn gives_up(&self, index: usize) -> bool {
        let is_amount = self.less.asked.is_some() && self.removes & 1 << index != 0;
        self.index == index || is_amount
    }

    /// Whether the tree may have a candidate with this relaxation.
    pub(super) fn may_help(&self, atoms: &Atoms<'_>, looks: &TreeCheck<'_>) -> bool {
        atoms.hold(looks, !self.removes, self.parts)
    }
}

impl Explainer<'_> {
    /// Searches the trees with each relaxation. Relaxations that probably keep the hosts that the
    /// caller expected come first: reduced amounts, then dropped properties, then dropped
    /// locations, and last dropped classes. Ties are sorted by the number of trees, largest first.
    pub(super) fn relaxations(
        &mut self,
        ways: &[RelaxationTrial],
        spell: QueryWriter<'_>,
    ) -> Vec<Relaxation> {
        let mut found = Vec::new();
        for way in ways.iter().filter(|way| !way.trees.is_empty()) {
            found.extend(match self.atoms.list[way.index].test {
                Test::Room(class, asked) => {
                    let mut amounts = self
                        .amounts(way, class, asked)
                        .into_iter()
                        .rev()
                        .take(AMOUNTS_TRIED_MAX);
                    amounts.find_map(|amount| self.run(way, Some(amount), spell))
                }
                _ => self.run(way, None, spell),
            });
        }
        found.sort_by_key(|one| {
            let kind = one.less[0].atom.kind;
            let is_dropped = kind == Kind::Inventory;
            (is_dropped, Reverse(kind.level()), Reverse(one.trees))
        });
        found
    }

    /// Counts the trees with a candidate; `None` if no tree has one or time has run out.
    fn run(
        &mut self,
        way: &RelaxationTrial,
        enough: Option<u64>,
        spell: QueryWriter<'_>,
    ) -> Option<Relaxation> {
        if self.budget.stopped() {
            return None;
        }
        let mut request = way.request.clone();
        let (group, class) = (self.atoms.list[way.index].group, &way.less.class);
        if let (Some(amount), Some(group), Some(class)) = (enough, group, class) {
            let resources = &mut request.groups[group].resources;
            resources.insert(class.clone(), amount);
        }
        let state = self.state;
        let query = spell(&request)?;
        let mut probe = self.prepare(&request)?;
        let (mut trees, mut undecided, mut first) = (0, 0, None);
        for number in way.trees.iter().map(TreeNumber) {
            let tree = state.tree(number)?;
            let found = if mutant!("explain-relaxation-not-run") {
                Some(true)
            } else {
                self.probe(&mut probe, number, tree)
            };
            trees += u64::from(found == Some(true));
            undecided += u64::from(found.is_none());
            if found == Some(true) && first.is_none() {
                first = Some((number, tree));
            }
        }
        let (number, tree) = first?;
        let mut atom = way.less.clone();
        let mut bound = None;
        if enough.is_some() {
            (atom.kind, bound) = self.amount_kind(way, number);
        }
        let less = RelaxedCondition {
            atom,
            enough,
            bound,
        };
        Some(Relaxation {
            less: [less],
            trees,
            undecided: NonZeroU64::new(undecided),
            query,
            example: NamedProvider::from_node(tree.root()),
        })
    }

    /// Returns `unit` if a tree fails because no provider permits the amount, and `room` otherwise.
    fn amount_kind(&mut self, way: &RelaxationTrial, number: TreeNumber) -> (Kind, Option<Bound>) {
        let Some(looks) = self.check_tree(number) else {
            return (Kind::Room, None);
        };
        let first = self.atoms.first_unmet(&looks);
        let Test::Unit(class, asked) = self.atoms.list[first].test else {
            return (Kind::Room, None);
        };
        let able = looks.list.iter().filter(|look| self.is_able(way, look));
        let stocks = able.filter_map(|look| look.node.stock(class));
        let bounds = stocks.filter_map(|stock| Bound::against(&stock.inventory, asked));
        (Kind::Unit, bounds.reduce(Bound::nearer))
    }

    /// Whether a provider meets all its conditions except the amount that the relaxation reduces.
    fn is_able(&self, way: &RelaxationTrial, look: &ProviderCheck<'_>) -> bool {
        let is_asked = self.atoms.parts[look.part].atoms.contains(&way.index);
        is_asked && look.fails & !way.removes == 0
    }

    /// The amounts below `asked` that could be the largest one with a candidate: the free units of
    /// each provider after other groups have taken their amounts.
    fn amounts(
        &mut self,
        way: &RelaxationTrial,
        class: ResourceClassId,
        asked: u64,
    ) -> BTreeSet<u64> {
        let atoms = self.atoms;
        let mut sums = BTreeSet::from([0_u64]);
        for one in &atoms.list {
            if let Test::Room(of, more) = one.test
                && of == class
                && one.group != atoms.list[way.index].group
                && sums.len() < SUMS_MAX
            {
                let more = sums.iter().map(|sum| sum.saturating_add(more));
                sums.extend(more.collect::<Vec<_>>());
            }
        }
        let mut amounts = BTreeSet::new();
        for number in way.trees.iter().map(TreeNumber) {
            let Some(looks) = self.check_tree(number) else {
                break;
            };
            let able = looks.list.iter().filter(|look| self.is_able(way, look));
            for stock in able.filter_map(|look| look.node.stock(class)) {
                amounts.extend(sums.iter().filter_map(|sum| largest(stock, *sum, asked)));
            }
        }
        amounts
    }
}

/// The largest amount below `asked` that this inventory permits after others have taken `taken`
/// units.
fn largest(stock: &Stock, taken: u64, asked: u64) -> Option<u64> {
    let most = offer(stock).checked_sub(taken)?.min(asked - 1);
    let step = u64::from(stock.inventory.step_size);
    let amount = most - most % step;
    (amount > 0 && stock.inventory.permits_amount(amount)).then_some(amount)
}
