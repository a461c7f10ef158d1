//! The atoms of a request: its single conditions, in the order in which they are evaluated.
//!
//! Location comes first, then the properties of a provider, then its free amounts, so that the
//! trees that fail last are probably the hosts that the caller expected. Conditions on a single
//! provider come before conditions on several providers.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Display;

use super::kind::Kind;
use crate::mutant;
use crate::query::candidates::{CandidateRequest, RequestGroup};
use crate::state::State;
use crate::state::change::{ResourceClassId, TraitId};
use crate::state::tree::{Node, TreeNumber};
use crate::types::{AggregateUuid, Given, ProviderUuid, ResourceClassName};

/// A set of atoms or of parts, one bit each.
pub(super) type Bits = u128;

/// The set of the positions at which the iterator yields true.
pub(super) fn bits(all: impl Iterator<Item = bool>) -> Bits {
    let all = all.enumerate();
    all.fold(0, |bits, (index, is_in)| bits | Bits::from(is_in) << index)
}

/// The set of all atoms up to and including this one.
pub(super) fn up_to(atom: usize) -> Bits {
    Bits::MAX >> (Bits::BITS as usize - 1 - atom)
}

/// One condition of a request, as answers show it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Atom {
    /// The kind of condition.
    pub kind: Kind,
    /// The suffix of the group; empty for the unnumbered group and for conditions on the whole
    /// request.
    pub group: String,
    /// The resource class, for `inventory`, `unit` and `room`.
    pub class: Option<Given<ResourceClassName>>,
    /// The requested amount, for `unit` and `room`.
    pub asked: Option<u64>,
    /// The required traits, of which one suffices, or a forbidden trait with the prefix `!`.
    pub traits: Vec<String>,
    /// The required aggregates, of which one suffices, or the forbidden aggregates with the prefix
    /// `!`.
    pub aggregates: Vec<String>,
    /// The provider, for `in_tree`.
    pub provider: Option<Given<ProviderUuid>>,
}

/// The test of an atom.
pub(super) enum Test<'a> {
    /// The root must have the trait (`true`), or must not have it (`false`).
    Root(TraitId, bool),
    Inventory(ResourceClassId),
    MemberOf(&'a BTreeSet<AggregateUuid>),
    NotMemberOf(&'a BTreeSet<AggregateUuid>),
    InTree(TreeNumber),
    Required(Vec<TraitId>),
    Forbidden(TraitId),
    Unit(ResourceClassId, u64),
    Room(ResourceClassId, u64),
    /// Cannot be met: the atom contains an unknown name, or belongs to a resourceless group that no
    /// provider can serve.
    Never,
    /// Cannot be tested on a single provider.
    Together,
}

/// Drops a condition from a request.
type Cut<'a> = Box<dyn Fn(&mut CandidateRequest) + 'a>;

/// An atom with its test.
pub(super) struct Condition<'a> {
    pub(super) atom: Atom,
    /// Index of the group; `None` for conditions on the whole request.
    pub(super) group: Option<usize>,
    pub(super) test: Test<'a>,
    /// Drops the condition. For `room` it does nothing: the relaxation searches for a smaller
    /// amount instead.
    pub(super) cut: Option<Cut<'a>>,
}

/// A part of the request that one provider must serve: a named group, or one class of the
/// unnumbered group.
pub(super) struct RequestPart {
    pub(super) group: usize,
    /// The class, for the unnumbered group.
    pub(super) class: Option<Given<ResourceClassName>>,
    pub(super) atoms: Vec<usize>,
}

/// The atoms of a request over one state.
pub(super) struct Atoms<'a> {
    pub(super) request: &'a CandidateRequest,
    /// The conditions in the order of evaluation. The last one is [`Test::Together`].
    pub(super) list: Vec<Condition<'a>>,
    pub(super) parts: Vec<RequestPart>,
    /// The atoms for required traits of the unnumbered group. For each of them, it suffices
    /// that one provider of the group meets it.
    covering: Bits,
}

/// A provider evaluated for a part.
#[derive(Clone)]
pub(super) struct ProviderCheck<'a> {
    pub(super) part: usize,
    pub(super) node: &'a Node,
    /// The atoms that the provider fails.
    pub(super) fails: Bits,
    /// The atoms of [`Atoms::covering`] that the provider meets.
    covers: Bits,
}

/// All providers evaluated for one tree, sharing providers included.
pub(super) struct TreeCheck<'a> {
    pub(super) list: Vec<ProviderCheck<'a>>,
    /// The atoms that the tree as a whole fails.
    pub(super) fails: Bits,
}

/// The unmet conditions of a tree.
pub(super) struct UnmetConditions<'l, 'a> {
    /// The atoms that the tree as a whole or the best provider of a part fails.
    pub(super) atoms: Bits,
    /// The missing share of each amount in thousandths, summed over the conditions on amounts.
    pub(super) shortfall: u64,
    /// The best provider of each part, which fails last in the order of evaluation.
    pub(super) best: Vec<&'l ProviderCheck<'a>>,
}

/// A request that cannot be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the request has {found} conditions; at most {} can be explained",
    Atoms::MAX
)]
pub struct TooManyAtoms {
    /// Number of conditions in the request.
    pub found: usize,
}

impl<'a> Atoms<'a> {
    /// Maximum number of atoms, including [`Test::Together`].
    pub(super) const MAX: usize = Bits::BITS as usize;

    /// # Errors
    /// The request has more than [`Self::MAX`] conditions.
    pub(super) fn from_request(
        state: &'a State,
        request: &'a CandidateRequest,
    ) -> Result<Self, TooManyAtoms> {
        let mut atoms = Self {
            request,
            list: Vec::new(),
            parts: Vec::new(),
            covering: 0,
        };
        for group in 0..request.groups.len() {
            atoms.add_named_host(state, group);
        }
        for group in 0..request.groups.len() {
            atoms.add_aggregates(group);
        }
        atoms.add_roots(state);
        for group in 0..request.groups.len() {
            atoms.add_what_it_is(state, group);
        }
        atoms.add_amounts(state, Kind::Unit, Test::Unit);
        atoms.add_amounts(state, Kind::Room, Test::Room);
        let together = Atom {
            kind: Kind::Together,
            ..Atom::default()
        };
        atoms.push(None, together, Some(Test::Together), None);
        let found = atoms.list.len();
        if found > Self::MAX {
            return Err(TooManyAtoms { found });
        }
        atoms.add_parts();
        if mutant!("explain-atoms-exchanged") {
            let (first, others) = atoms.list.split_at_mut(1);
            std::mem::swap(&mut first[0].test, &mut others[0].test);
        }
        Ok(atoms)
    }

    /// Adds the `in_tree` condition of a group.
    fn add_named_host(&mut self, state: &State, at: usize) {
        let group = &self.request.groups[at];
        let Some(provider) = &group.in_tree else {
            return;
        };
        let place = state.place_given(provider);
        // Upstream ignores `in_tree` for a resourceless group.
        if !group.resources.is_empty() || place.is_none() {
            let mut atom = group_atom(Kind::InTree, group);
            atom.provider = Some(provider.clone());
            let test = place.map(|place| Test::InTree(place.tree));
            self.add(at, atom, test, |group| group.in_tree = None);
        }
    }

    /// Adds the aggregate conditions of a group.
    fn add_aggregates(&mut self, at: usize) {
        let group = &self.request.groups[at];
        for any in &group.member_of {
            let mut atom = group_atom(Kind::MemberOf, group);
            atom.aggregates = spelled("", any);
            self.add(at, atom, Some(Test::MemberOf(any)), move |group| {
                group.member_of.retain(|other| other != any);
            });
        }
        let all = &group.not_member_of;
        if !all.is_empty() {
            let mut atom = group_atom(Kind::MemberOf, group);
            atom.aggregates = spelled("!", all);
            let test = Some(Test::NotMemberOf(all));
            self.add(at, atom, test, |group| group.not_member_of.clear());
        }
    }

    /// Adds the conditions on roots.
    fn add_roots(&mut self, state: &State) {
        let request = self.request;
        let required = request.root_required.iter().map(|name| (name, true));
        let forbidden = request.root_forbidden.iter().map(|name| (name, false));
        for (name, wanted) in required.chain(forbidden) {
            let atom = Atom {
                kind: Kind::RootRequired,
                traits: spelled(if wanted { "" } else { "!" }, [name]),
                ..Atom::default()
            };
            let test = state.trait_given(name).map(|id| Test::Root(id, wanted));
            let cut: Cut<'a> = Box::new(move |less| {
                if wanted {
                    _ = less.root_required.remove(name)
                } else {
                    _ = less.root_forbidden.remove(name)
                }
            });
            self.push(None, atom, test, Some(cut));
        }
    }

    /// Adds the conditions on classes and traits, independent of free amounts.
    fn add_what_it_is(&mut self, state: &State, at: usize) {
        let group = &self.request.groups[at];
        let of = |kind| group_atom(kind, group);
        let resourceless = group.resources.is_empty();
        for (name, _) in self.request.in_order(group) {
            let mut atom = of(Kind::Inventory);
            atom.class = Some(name.clone());
            let test = state.class_given(name).map(Test::Inventory);
            let cut: Cut<'a> = Box::new(move |less| {
                less.groups[at].resources.remove(name);
                if less.groups[at].resources.is_empty() {
                    let suffix = less.groups.remove(at).suffix;
                    for suffixes in &mut less.same_subtree {
                        suffixes.remove(&suffix);
                    }
                }
            });
            self.push(Some(at), atom, test, Some(cut));
        }
        // Upstream starts from the providers that meet a positive condition. A group without such a
        // condition gets no provider.
        let asks = !group.required.is_empty() || !group.member_of.is_empty();
        if resourceless && (group.suffix.is_empty() || !asks) {
            self.push(Some(at), of(Kind::Inventory), None, None);
        }
        let mut seen = BTreeSet::new();
        for any in group.required.iter().filter(|any| seen.insert(*any)) {
            let mut atom = of(Kind::Required);
            atom.traits = spelled("", any);
            let ids = any.iter().map(|name| state.trait_given(name));
            let test = ids.collect::<Option<_>>().map(Test::Required);
            self.add(at, atom, test, move |group| {
                group.required.retain(|other| other != any);
            });
        }
        for name in &group.forbidden {
            let mut atom = of(Kind::Forbidden);
            atom.traits = spelled("!", [name]);
            let test = state.trait_given(name).map(Test::Forbidden);
            self.add(at, atom, test, |group| _ = group.forbidden.remove(name));
        }
    }

    /// Adds the conditions on amounts, for all groups.
    fn add_amounts(
        &mut self,
        state: &State,
        kind: Kind,
        test: fn(ResourceClassId, u64) -> Test<'a>,
    ) {
        for (at, group) in self.request.groups.iter().enumerate() {
            for (name, amount) in self.request.in_order(group) {
                let atom = Atom {
                    class: Some(name.clone()),
                    asked: Some(amount),
                    ..group_atom(kind, group)
                };
                let test = state.class_given(name).map(|id| test(id, amount));
                match test {
                    Some(Test::Room(..)) => self.add(at, atom, test, |_| {}),
                    _ => self.push(Some(at), atom, test, None),
                }
            }
        }
    }

    /// Adds a condition of a group together with the cut that drops it.
    fn add(
        &mut self,
        at: usize,
        atom: Atom,
        test: Option<Test<'a>>,
        cut: impl Fn(&mut RequestGroup) + 'a,
    ) {
        let cut: Cut<'a> = Box::new(move |less| cut(&mut less.groups[at]));
        self.push(Some(at), atom, test, Some(cut));
    }

    fn push(
        &mut self,
        group: Option<usize>,
        atom: Atom,
        test: Option<Test<'a>>,
        cut: Option<Cut<'a>>,
    ) {
        self.list.push(Condition {
            atom,
            group,
            test: test.unwrap_or(Test::Never),
            cut,
        });
    }

    /// Adds the parts, each with the atoms that concern it.
    fn add_parts(&mut self) {
        for (at, group) in self.request.groups.iter().enumerate() {
            let classes = if group.suffix.is_empty() {
                group.resources.keys().cloned().map(Some).collect()
            } else {
                vec![None]
            };
            for class in classes {
                let is_about = |one: &Condition<'_>| {
                    let own = one.atom.class.as_ref().zip(class.as_ref());
                    one.group == Some(at) && own.is_none_or(|(one, own)| one == own)
                };
                let all = self.list.iter().enumerate();
                let atoms = all.filter(|(_, one)| is_about(one));
                self.parts.push(RequestPart {
                    atoms: atoms.map(|(index, _)| index).collect(),
                    group: at,
                    class,
                });
            }
        }
        self.covering =
            self.which(|one| matches!(one.test, Test::Required(_)) && one.atom.group.is_empty());
    }

    /// The set of the atoms that satisfy `is_one`.
    pub(super) fn which(&self, is_one: impl Fn(&Condition<'a>) -> bool) -> Bits {
        bits(self.list.iter().map(is_one))
    }

    /// Whether `in_tree` of some group selects this tree.
    pub(super) fn names(&self, number: TreeNumber) -> bool {
        let mut tests = self.list.iter().map(|one| &one.test);
        tests.any(|test| matches!(test, Test::InTree(named) if *named == number))
    }

    /// The atoms that a tree fails as a whole.
    pub(super) fn fails(&self, root: &Node) -> Bits {
        self.which(|one| match &one.test {
            Test::Root(id, wanted) => root.traits.contains(id) != *wanted,
            // This applies even if a sharing provider serves the group.
            Test::NotMemberOf(all) => {
                one.atom.group.is_empty() && !all.is_disjoint(&root.aggregates)
            }
            Test::Never => true,
            _ => false,
        })
    }

    /// Evaluates a provider for every part. `root` is the root of its tree; without it the provider
    /// is evaluated as a sharing provider for other trees.
    pub(super) fn look(
        &self,
        number: TreeNumber,
        root: Option<&'a Node>,
        node: &'a Node,
        looks: &mut Vec<ProviderCheck<'a>>,
    ) {
        for (index, part) in self.parts.iter().enumerate() {
            let is_unnumbered = part.class.is_some();
            let look = |aggregates| self.look_at(index, number, root.is_some(), node, aggregates);
            let own = look(&node.aggregates);
            // Providers of the unnumbered group also inherit the aggregates of their root.
            if let Some(root) = root.filter(|root| is_unnumbered && root.id != node.id) {
                let by_root = look(&root.aggregates);
                if by_root.fails != own.fails {
                    looks.push(by_root);
                }
            }
            looks.push(own);
        }
    }

    fn look_at(
        &self,
        part: usize,
        number: TreeNumber,
        is_own: bool,
        node: &'a Node,
        aggregates: &BTreeSet<AggregateUuid>,
    ) -> ProviderCheck<'a> {
        let has_any = |ids: &[TraitId]| ids.iter().any(|id| node.traits.contains(id));
        let is_unnumbered = self.parts[part].class.is_some();
        let (mut fails, mut covers) = (0, 0);
        for atom in &self.parts[part].atoms {
            let holds = match &self.list[*atom].test {
                Test::Inventory(id) => node.stock(*id).is_some(),
                Test::MemberOf(any) => !any.is_disjoint(aggregates),
                Test::NotMemberOf(all) => all.is_disjoint(&node.aggregates),
                Test::InTree(only) => *only == number && (is_own || !is_unnumbered),
                Test::Required(any) if is_unnumbered => {
                    covers |= Bits::from(has_any(any)) << atom;
                    true
                }
                Test::Required(any) => has_any(any),
                Test::Forbidden(id) => !node.traits.contains(id),
                Test::Unit(id, amount) => node.stock(*id).is_none_or(|stock| {
                    stock.inventory.permits_amount(*amount) || mutant!("explain-units-ignored")
                }),
                Test::Room(id, amount) => node
                    .stock(*id)
                    .is_none_or(|stock| stock.inventory.free(stock.used) >= *amount),
                Test::Never => false,
                Test::Root(..) | Test::Together => true,
            };
            fails |= Bits::from(!holds) << atom;
        }
        ProviderCheck {
            part,
            node,
            fails,
            covers,
        }
    }

    /// Whether each of these parts has a provider that meets all atoms of `kept` that concern the
    /// part.
    pub(super) fn hold(&self, looks: &TreeCheck<'a>, kept: Bits, parts: Bits) -> bool {
        if looks.fails & kept != 0 {
            return false;
        }
        let (mut served, mut covered) = (0, 0);
        for look in &looks.list {
            if look.fails & kept == 0 && parts & 1 << look.part != 0 {
                served |= 1 << look.part;
                covered |= look.covers;
            }
        }
        served == parts && self.covering & kept & !covered == 0
    }

    /// The first atom that cannot be met together with the atoms before it. This is the last atom,
    /// [`Test::Together`], if all others can be met.
    pub(super) fn first_unmet(&self, looks: &TreeCheck<'a>) -> usize {
        let parts = bits(self.parts.iter().map(|_| true));
        let (mut met, mut unmet) = (0, self.list.len() - 1);
        while met < unmet {
            let middle = usize::midpoint(met, unmet);
            if self.hold(looks, up_to(middle), parts) {
                met = middle + 1
            } else {
                unmet = middle
            }
        }
        met
    }

    /// Finds the unmet conditions of a tree, given its first unmet atom.
    pub(super) fn lacks<'l>(
        &self,
        looks: &'l TreeCheck<'a>,
        first_unmet: usize,
    ) -> UnmetConditions<'l, 'a> {
        let inventories = self.which(|one| one.atom.kind == Kind::Inventory);
        let best = |part: usize| {
            let of_part = looks.list.iter().filter(|look| look.part == part);
            // A provider without an inventory fails no condition on an amount of that class, so it
            // would look nearer than a provider that has the class.
            let nearness = |look: &&ProviderCheck<'_>| {
                let met_first = look.fails.trailing_zeros();
                let missing = (look.fails & inventories).count_ones();
                let shortfall = self.shortfall(look);
                (
                    Reverse(met_first),
                    missing,
                    look.fails.count_ones(),
                    shortfall,
                )
            };
            of_part.min_by_key(nearness)
        };
        let best: Vec<_> = (0..self.parts.len()).filter_map(best).collect();
        let fails = best.iter().map(|look| look.fails);
        let covered = looks.list.iter().fold(0, |bits, look| bits | look.covers);
        // A required trait may exist only on providers that serve no part; it is then the first
        // unmet atom.
        let own = looks.fails | self.covering & !covered | 1 << first_unmet;
        UnmetConditions {
            atoms: fails.fold(own, |bits, fails| bits | fails),
            shortfall: best.iter().map(|look| self.shortfall(look)).sum(),
            best,
        }
    }

    /// The missing share of each requested amount in thousandths, summed over the conditions on the
    /// amounts of the part. An amount above `max_unit` misses a share, too.
    fn shortfall(&self, look: &ProviderCheck<'_>) -> u64 {
        let atoms = self.parts[look.part].atoms.iter();
        let short = atoms
            .filter(|atom| look.fails & 1 << **atom != 0)
            .map(|atom| match self.list[*atom].test {
                Test::Unit(class, asked) => look.node.stock(class).map_or(0, |stock| {
                    missing_share(stock.inventory.max_unit.into(), asked)
                }),
                Test::Room(class, asked) => look.node.stock(class).map_or(0, |stock| {
                    missing_share(stock.inventory.free(stock.used), asked)
                }),
                _ => 0,
            });
        short.sum()
    }
}

/// The share of an amount that `most` units do not cover, in thousandths.
pub(super) fn missing_share(most: u64, asked: u64) -> u64 {
    if mutant!("explain-shortfall-ignored") {
        return 0;
    }
    let missing = asked.saturating_sub(most);
    (u128::from(missing) * 1000 / u128::from(asked.max(1))) as u64
}

/// An atom of a group without details.
fn group_atom(kind: Kind, group: &RequestGroup) -> Atom {
    Atom {
        kind,
        group: group.suffix.clone(),
        ..Atom::default()
    }
}

fn spelled(sign: &str, names: impl IntoIterator<Item: Display>) -> Vec<String> {
    let names = names.into_iter();
    names.map(|name| format!("{sign}{name}")).collect()
}
