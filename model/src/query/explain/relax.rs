//! What could be asked instead: requests that ask for one thing less.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::answer::{Less, Relaxation};
use super::atoms::{Atom, AtomKind, Atoms, Bits, Looks};
use super::explainer::Explainer;
use crate::mutant;
use crate::query::NamedProvider;
use crate::query::candidates::{CandidateRequest, GroupPolicy};
use crate::state::indexes::offer;
use crate::state::tree::{Stock, TreeNumber};
use crate::state::tree_set::TreeSet;
use crate::types::{Given, ResourceClassName};

/// So many amounts are tried until one fits.
const AMOUNTS_TRIED_MAX: usize = 64;

/// So many sums of what other groups ask of the same class are taken into account.
const SUMS_MAX: usize = 256;

/// A way to ask for less, and the trees that may have a candidate then.
pub(super) struct Way {
    less: Atom,
    /// The atoms that it takes away.
    removes: Bits,
    /// The parts that are left.
    parts: Bits,
    change: Change,
    pub(super) trees: TreeSet,
}

enum Change {
    /// To this.
    Whole(CandidateRequest),
    /// To a smaller amount of a class of a group.
    Amount(usize, Given<ResourceClassName>, u64),
}

/// The ways to ask for one thing less.
pub(super) fn ways(atoms: &Atoms<'_>) -> Vec<Way> {
    let all = atoms.all_parts();
    let mut ways = Vec::new();
    for (index, atom) in atoms.list.iter().enumerate() {
        let mut request = atoms.request.clone();
        let at = request
            .groups
            .iter()
            .position(|group| group.suffix == atom.group);
        let group = at.and_then(|at| request.groups.get_mut(at));
        let (mut removes, mut parts) = (1 << index, all);
        match (atom.kind, group) {
            (AtomKind::RootRequired, _) => {
                let is_named = |name: &Given<_>| {
                    atom.traits
                        .iter()
                        .any(|one| one.trim_start_matches('!') == name.as_str())
                };
                match atom.traits.iter().any(|one| one.starts_with('!')) {
                    true => request.root_forbidden.retain(|name| !is_named(name)),
                    false => request.root_required.retain(|name| !is_named(name)),
                }
            }
            (AtomKind::Together, _) => {
                add_together(atoms, atom, &mut ways);
                continue;
            }
            (AtomKind::Unit, _) | (_, None) => continue,
            (AtomKind::Room, Some(_)) => {
                let (Some(at), Some(class), Some(asked)) = (at, &atom.class, atom.asked) else {
                    continue;
                };
                let removes = atoms.which(|group, other| {
                    group == Some(at) && other.asked.is_some() && other.class == atom.class
                });
                let change = Change::Amount(at, class.clone(), asked);
                ways.push(Way::new(atom, removes, all, change));
                continue;
            }
            (AtomKind::Inventory, Some(group)) => {
                let (Some(at), Some(class)) = (at, &atom.class) else {
                    continue;
                };
                group.resources.remove(class);
                if group.resources.is_empty() {
                    let suffix = request.groups.remove(at).suffix;
                    request
                        .same_subtree
                        .iter_mut()
                        .for_each(|set| _ = set.remove(&suffix));
                    removes = atoms.which(|group, _| group == Some(at));
                    parts = without(atoms, |part| atoms.parts[part].group == at);
                } else {
                    removes =
                        atoms.which(|group, other| group == Some(at) && other.class == atom.class);
                    parts = without(atoms, |part| {
                        let part = &atoms.parts[part];
                        part.class.is_some() && part.asks(at, class)
                    });
                }
                if request.groups.is_empty() {
                    continue;
                }
            }
            (AtomKind::MemberOf, Some(group)) => {
                match atom.aggregates.iter().any(|one| one.starts_with('!')) {
                    true => group.not_member_of.clear(),
                    false => group.member_of.retain(|any| {
                        let names = any.iter().map(|aggregate| aggregate.as_str());
                        !names.eq(atom.aggregates.iter().map(String::as_str))
                    }),
                }
            }
            (AtomKind::InTree, Some(group)) => group.in_tree = None,
            (AtomKind::Required, Some(group)) => group.required.retain(|any| {
                let names = any.iter().map(Given::as_str);
                !names.eq(atom.traits.iter().map(String::as_str))
            }),
            (AtomKind::Forbidden, Some(group)) => {
                group
                    .forbidden
                    .retain(|name| atom.traits != [format!("!{name}")]);
            }
        }
        // Two sets of the same aggregates are one condition.
        if atom.kind == AtomKind::MemberOf {
            removes = atoms.which(|group, other| group == at && other == atom);
            if removes.trailing_zeros() as usize != index {
                continue;
            }
        }
        let request = without_empty_subtrees(request);
        ways.push(Way::new(atom, removes, parts, Change::Whole(request)));
    }
    ways
}

/// What is asked of several groups at once.
fn add_together(atoms: &Atoms<'_>, atom: &Atom, ways: &mut Vec<Way>) {
    let mut add = |what: String, request: CandidateRequest| {
        let mut less = atom.clone();
        less.group = what;
        // Groups that were only there for a subtree may be gone, too.
        let is_gone = |at: usize| {
            let suffix = &atoms.request.groups[at].suffix;
            !request.groups.iter().any(|group| group.suffix == *suffix)
        };
        let removes = atoms.which(|group, _| group.is_some_and(is_gone));
        let parts = without(atoms, |part| is_gone(atoms.parts[part].group));
        ways.push(Way::new(&less, removes, parts, Change::Whole(request)));
    };
    if atoms.request.group_policy == Some(GroupPolicy::Isolate) {
        let mut request = atoms.request.clone();
        request.group_policy = Some(GroupPolicy::None);
        add("group_policy=isolate".to_owned(), request);
    }
    for index in 0..atoms.request.same_subtree.len() {
        let mut request = atoms.request.clone();
        let suffixes = request.same_subtree.remove(index);
        let left = &request.same_subtree;
        request.groups.retain(|group| {
            let is_placed = |other: &BTreeSet<String>| other.contains(&group.suffix);
            let was_placed = is_placed(&suffixes) && group.resources.is_empty();
            !was_placed || left.iter().any(is_placed)
        });
        let suffixes: Vec<_> = suffixes.iter().map(String::as_str).collect();
        if !request.groups.is_empty() {
            add(format!("same_subtree={}", suffixes.join(",")), request);
        }
    }
}

fn without(atoms: &Atoms<'_>, is_out: impl Fn(usize) -> bool) -> Bits {
    let parts = (0..atoms.parts.len()).filter(|part| !is_out(*part));
    parts.fold(0, |bits, part| bits | 1 << part)
}

fn without_empty_subtrees(mut request: CandidateRequest) -> CandidateRequest {
    request.same_subtree.retain(|suffixes| !suffixes.is_empty());
    request
}

impl Way {
    fn new(less: &Atom, removes: Bits, parts: Bits, change: Change) -> Self {
        Self {
            less: less.clone(),
            removes,
            parts,
            change,
            trees: TreeSet::default(),
        }
    }

    /// Whether a tree may have a candidate then.
    pub(super) fn may_help(&self, atoms: &Atoms<'_>, looks: &Looks<'_>) -> bool {
        atoms.hold(looks, !self.removes, self.parts)
    }

    /// Whether it gives up a class altogether.
    fn drops_a_class(&self) -> bool {
        self.less.kind == AtomKind::Inventory
    }
}

impl<'a> Explainer<'a> {
    /// Runs each way through the search, those that have candidates first by how many trees have one.
    pub(super) fn relaxations(
        &mut self,
        atoms: &Atoms<'a>,
        ways: Vec<Way>,
        spell: &dyn Fn(&CandidateRequest) -> Option<String>,
    ) -> Vec<Relaxation> {
        let mut found = Vec::new();
        for way in ways.iter().filter(|way| !way.trees.is_empty()) {
            let relaxation = match &way.change {
                Change::Whole(request) => self.run(request, way, spell).map(|(it, _)| it),
                Change::Amount(group, class, asked) => {
                    let amounts = self.amounts(atoms, way, *group, class, *asked);
                    let mut amounts = amounts.into_iter().rev().take(AMOUNTS_TRIED_MAX);
                    amounts.find_map(|amount| {
                        let mut request = atoms.request.clone();
                        let resources = &mut request.groups[*group].resources;
                        resources.insert(class.clone(), amount);
                        let (mut found, number) = self.run(&request, way, spell)?;
                        found.less[0].enough = Some(amount);
                        found.less[0].atom.kind = self.amount_kind(atoms, way, number);
                        Some(found)
                    })
                }
            };
            if let Some(relaxation) = relaxation {
                found.push((way.drops_a_class(), Reverse(relaxation.trees), relaxation));
            }
            if self.budget.stopped() {
                break;
            }
        }
        found.sort_by_key(|(drops, trees, _)| (*drops, *trees));
        found
            .into_iter()
            .map(|(.., relaxation)| relaxation)
            .collect()
    }

    /// Counts the trees with a candidate, and returns the first of them; `None` if no tree has one, or if the time is up.
    fn run(
        &mut self,
        request: &CandidateRequest,
        way: &Way,
        spell: &dyn Fn(&CandidateRequest) -> Option<String>,
    ) -> Option<(Relaxation, TreeNumber)> {
        if self.budget.stopped() {
            return None;
        }
        let state = self.state;
        let query = spell(request)?;
        let mut probe = self.prepare(request)?;
        let (mut trees, mut undecided, mut first) = (0, 0, None);
        for number in way.trees.iter().map(TreeNumber) {
            let tree = state.tree(number)?;
            let found = match mutant!("explain-relaxation-not-run") {
                true => Some(true),
                false => self.probe(&mut probe, number, tree),
            };
            trees += u64::from(found == Some(true));
            undecided += u64::from(found.is_none());
            if found == Some(true) && first.is_none() {
                first = Some((number, tree));
            }
        }
        let (number, tree) = first?;
        let less = Less {
            atom: way.less.clone(),
            enough: None,
        };
        let relaxation = Relaxation {
            less: vec![less],
            trees,
            undecided,
            query,
            example: NamedProvider::of(tree.root()),
        };
        Some((relaxation, number))
    }

    /// Whether a tree lacks room for an amount, or only its units are against it.
    fn amount_kind(&mut self, atoms: &Atoms<'a>, way: &Way, number: TreeNumber) -> AtomKind {
        let mut looks = Looks::default();
        self.look_over(atoms, number, &mut looks);
        let units = atoms.which(|_, atom| atom.kind == AtomKind::Unit);
        match atoms.hold(&looks, !(way.removes & units), way.parts) {
            true => AtomKind::Unit,
            false => AtomKind::Room,
        }
    }

    /// The amounts, less than what is asked, that could be the largest that fits: all that some provider has left once
    /// other groups have taken theirs of it.
    fn amounts(
        &mut self,
        atoms: &Atoms<'a>,
        way: &Way,
        group: usize,
        class: &Given<ResourceClassName>,
        asked: u64,
    ) -> BTreeSet<u64> {
        let Some(id) = self.state.class_given(class) else {
            return BTreeSet::new();
        };
        let mut sums = BTreeSet::from([0]);
        for (index, other) in atoms.request.groups.iter().enumerate() {
            let more = other.resources.get(class).filter(|_| index != group);
            if let Some(more) = more
                && sums.len() < SUMS_MAX
            {
                sums.extend(
                    sums.clone()
                        .into_iter()
                        .map(|sum: u64| sum.saturating_add(*more)),
                );
            }
        }
        let part = atoms.parts.iter().position(|part| part.asks(group, class));
        let mut amounts = BTreeSet::new();
        let mut looks = Looks::default();
        for number in way.trees.iter().map(TreeNumber) {
            if !self.look_over(atoms, number, &mut looks) {
                break;
            }
            let looks = looks.list.iter().filter(|look| Some(look.part) == part);
            let able = looks.filter(|look| look.fails & !way.removes == 0);
            for stock in able.filter_map(|look| look.node.stock(id)) {
                amounts.extend(sums.iter().filter_map(|sum| largest(stock, *sum, asked)));
            }
        }
        amounts
    }
}

/// The largest amount below what is asked that this stock gives once others have taken so much.
fn largest(stock: &Stock, taken: u64, asked: u64) -> Option<u64> {
    let most = offer(stock).checked_sub(taken)?.min(asked - 1);
    let step = u64::from(stock.inventory.step_size);
    let amount = most - most % step;
    (amount > 0 && stock.inventory.permits_amount(amount)).then_some(amount)
}
