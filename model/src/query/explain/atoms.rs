//! The atoms of a request: the conditions that it is made of, in the order in which trees are judged by them.
//!
//! What a host is comes before what it has left, and what one provider must meet comes before what several must meet
//! together.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::mutant;
use crate::query::candidates::{CandidateRequest, RequestGroup};
use crate::state::State;
use crate::state::change::{ResourceClassId, TraitId};
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::types::{AggregateUuid, Given, ProviderUuid, ResourceClassName, TraitName};

/// A set of atoms, or of parts: a bit for each.
pub(super) type Bits = u128;

/// The kinds of atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomKind {
    /// The root has a trait, or has it not.
    RootRequired,
    /// A provider has an inventory of a class.
    Inventory,
    /// It is a member of an aggregate, or not a member of some.
    MemberOf,
    /// It is in the tree of a provider.
    InTree,
    /// It has a trait.
    Required,
    /// It does not have a trait.
    Forbidden,
    /// Its inventory permits the amount: `min_unit`, `max_unit`, `step_size`.
    Unit,
    /// So much is free.
    Room,
    /// All groups can be met at once.
    Together,
}

impl AtomKind {
    /// Its name, as answers, logs and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RootRequired => "root_required",
            Self::Inventory => "inventory",
            Self::MemberOf => "member_of",
            Self::InTree => "in_tree",
            Self::Required => "required",
            Self::Forbidden => "forbidden",
            Self::Unit => "unit",
            Self::Room => "room",
            Self::Together => "together",
        }
    }
}

impl Serialize for AtomKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One condition of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Atom {
    /// What it is about.
    #[serde(rename = "atom")]
    pub kind: AtomKind,
    /// The suffix of its group; empty for the unnumbered group and for what concerns the request as a whole.
    pub group: String,
    /// The resource class, of `inventory`, `unit` and `room`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Given<ResourceClassName>>,
    /// The amount, of `unit` and `room`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Traits of which one is required, or, with `!`, one that is forbidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<String>,
    /// Aggregates, with `!` if a provider must not be a member of any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aggregates: Vec<String>,
    /// The provider of `in_tree`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Given<ProviderUuid>>,
}

/// How an atom is tested.
enum Test<'a> {
    RootRequired(TraitId),
    RootForbidden(TraitId),
    Inventory(ResourceClassId),
    MemberOf(&'a BTreeSet<AggregateUuid>),
    NotMemberOf(&'a BTreeSet<AggregateUuid>),
    InTree(TreeNumber),
    Required(Vec<TraitId>),
    Forbidden(TraitId),
    Unit(ResourceClassId, u64),
    Room(ResourceClassId, u64),
    /// Cannot be met, as it names what does not exist or asks for nothing that a provider could have.
    Never,
    /// Is not a matter of one provider.
    Together,
}

/// What one provider has to serve: a named group, or one class of the unnumbered group.
pub(super) struct Part {
    pub(super) group: usize,
    /// The class, of the unnumbered group.
    pub(super) class: Option<Given<ResourceClassName>>,
    atoms: Vec<usize>,
}

impl Part {
    fn is_unnumbered(&self) -> bool {
        self.class.is_some()
    }

    /// Whether the amount of a class of a group is asked of it.
    pub(super) fn asks(&self, group: usize, class: &Given<ResourceClassName>) -> bool {
        self.group == group && self.class.as_ref().is_none_or(|own| own == class)
    }
}

/// The atoms of a request over one state.
pub(super) struct Atoms<'a> {
    pub(super) request: &'a CandidateRequest,
    /// The last is [`AtomKind::Together`].
    pub(super) list: Vec<Atom>,
    /// The group of each.
    groups: Vec<Option<usize>>,
    tests: Vec<Test<'a>>,
    pub(super) parts: Vec<Part>,
    /// Those that some provider of several must meet: the required traits of the unnumbered group.
    covering: Bits,
}

/// A provider that might serve a part.
#[derive(Clone)]
pub(super) struct Look<'a> {
    pub(super) part: usize,
    pub(super) node: &'a Node,
    /// The atoms that speak against it.
    pub(super) fails: Bits,
    /// Those of [`Atoms::covering`] that it meets.
    covers: Bits,
}

/// All that might serve the parts of a request in one tree, its own providers and those that share with it.
#[derive(Default)]
pub(super) struct Looks<'a> {
    pub(super) list: Vec<Look<'a>>,
    /// The atoms that the tree as a whole fails.
    fails: Bits,
}

/// The set of the first atoms, up to this one.
pub(super) fn up_to(atom: usize) -> Bits {
    Bits::MAX >> (Bits::BITS as usize - 1 - atom)
}

impl<'a> Atoms<'a> {
    /// Most atoms, the last of them included.
    pub(super) const MAX: usize = Bits::BITS as usize;

    /// # Errors
    /// How many atoms the request has, if they are too many.
    pub(super) fn of(state: &'a State, request: &'a CandidateRequest) -> Result<Self, usize> {
        let mut atoms = Self {
            request,
            list: Vec::new(),
            groups: Vec::new(),
            tests: Vec::new(),
            parts: Vec::new(),
            covering: 0,
        };
        for (names, forbidden) in [
            (&request.root_required, false),
            (&request.root_forbidden, true),
        ] {
            for name in names {
                let test = state.trait_given(name).map(match forbidden {
                    false => Test::RootRequired,
                    true => Test::RootForbidden,
                });
                let mut atom = Atom::of(AtomKind::RootRequired, None);
                atom.traits = spelled([name], forbidden);
                atoms.add(None, atom, test);
            }
        }
        for (index, group) in request.groups.iter().enumerate() {
            atoms.add_parts(index, group);
            atoms.add_what_it_is(state, index, group);
        }
        for kind in [AtomKind::Unit, AtomKind::Room] {
            for (index, group) in request.groups.iter().enumerate() {
                for (name, amount) in &group.resources {
                    let test = state.class_given(name).map(|id| match kind {
                        AtomKind::Unit => Test::Unit(id, *amount),
                        _ => Test::Room(id, *amount),
                    });
                    let mut atom = Atom::of(kind, Some(group)).of_class(name);
                    atom.asked = Some(*amount);
                    atoms.add(Some(index), atom, test);
                }
            }
        }
        atoms.add(
            None,
            Atom::of(AtomKind::Together, None),
            Some(Test::Together),
        );
        match atoms.list.len() {
            0..=Self::MAX => {}
            many => return Err(many),
        }
        atoms.hand_out();
        if mutant!("explain-atoms-exchanged") {
            atoms.tests.swap(0, 1);
        }
        Ok(atoms)
    }

    fn add_parts(&mut self, index: usize, group: &RequestGroup) {
        let part = |class| Part {
            group: index,
            class,
            atoms: Vec::new(),
        };
        match group.suffix.is_empty() {
            true => {
                let classes = group.resources.keys();
                self.parts
                    .extend(classes.map(|class| part(Some(class.clone()))));
            }
            false => self.parts.push(part(None)),
        }
    }

    /// What a provider must be, whatever it has left.
    fn add_what_it_is(&mut self, state: &State, index: usize, group: &'a RequestGroup) {
        let index = Some(index);
        let of = |kind| Atom::of(kind, Some(group));
        let resourceless = group.resources.is_empty();
        for name in group.resources.keys() {
            let test = state.class_given(name).map(Test::Inventory);
            self.add(index, of(AtomKind::Inventory).of_class(name), test);
        }
        // Upstream starts from what is asked for. From a group that asks for nothing it gets no provider.
        let asks = !group.required.is_empty() || !group.member_of.is_empty();
        if resourceless && (group.suffix.is_empty() || !asks) {
            self.add(index, of(AtomKind::Inventory), None);
        }
        for any in &group.member_of {
            let mut atom = of(AtomKind::MemberOf);
            atom.aggregates = any.iter().map(ToString::to_string).collect();
            self.add(index, atom, Some(Test::MemberOf(any)));
        }
        if !group.not_member_of.is_empty() {
            let mut atom = of(AtomKind::MemberOf);
            atom.aggregates = (group.not_member_of.iter())
                .map(|aggregate| format!("!{aggregate}"))
                .collect();
            self.add(index, atom, Some(Test::NotMemberOf(&group.not_member_of)));
        }
        if let Some(provider) = &group.in_tree {
            let test = state
                .place_given(provider)
                .map(|place| Test::InTree(place.tree));
            // Upstream finds the providers of a resourceless group without it.
            if !resourceless || test.is_none() {
                let mut atom = of(AtomKind::InTree);
                atom.provider = Some(provider.clone());
                self.add(index, atom, test);
            }
        }
        let sets: BTreeSet<_> = group.required.iter().collect();
        for any in sets {
            let ids = any.iter().map(|name| state.trait_given(name));
            let mut atom = of(AtomKind::Required);
            atom.traits = spelled(any, false);
            self.add(index, atom, ids.collect::<Option<_>>().map(Test::Required));
        }
        for name in &group.forbidden {
            let mut atom = of(AtomKind::Forbidden);
            atom.traits = spelled([name], true);
            self.add(index, atom, state.trait_given(name).map(Test::Forbidden));
        }
    }

    fn add(&mut self, group: Option<usize>, atom: Atom, test: Option<Test<'a>>) {
        self.list.push(atom);
        self.groups.push(group);
        self.tests.push(test.unwrap_or(Test::Never));
    }

    /// Gives each part the atoms that are about it.
    fn hand_out(&mut self) {
        for (index, (atom, group)) in self.list.iter().zip(&self.groups).enumerate() {
            let Some(group) = *group else { continue };
            let concerned = |part: &&mut Part| match &atom.class {
                Some(class) => part.asks(group, class),
                None => part.group == group,
            };
            for part in self.parts.iter_mut().filter(concerned) {
                part.atoms.push(index);
                if part.is_unnumbered() && matches!(self.tests[index], Test::Required(_)) {
                    self.covering |= 1 << index;
                }
            }
        }
    }

    /// The atoms that these are, by what they are about.
    pub(super) fn which(&self, is_one: impl Fn(Option<usize>, &Atom) -> bool) -> Bits {
        let all = self.list.iter().zip(&self.groups).enumerate();
        all.filter(|(_, (atom, group))| is_one(**group, atom))
            .fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// All parts.
    pub(super) fn all_parts(&self) -> Bits {
        (0..self.parts.len()).fold(0, |bits, part| bits | 1 << part)
    }

    /// What speaks for and against one provider as the one that serves the parts, for its own tree or, as one that
    /// shares, for others: the latter without `root`.
    pub(super) fn look(
        &self,
        number: TreeNumber,
        root: Option<&'a Node>,
        node: &'a Node,
        looks: &mut Vec<Look<'a>>,
    ) {
        for (index, part) in self.parts.iter().enumerate() {
            let look =
                |aggregates| self.look_at(index, part, number, root.is_some(), node, aggregates);
            let own = look(&node.aggregates);
            // The unnumbered group's providers are members of what their root is a member of, too.
            if let Some(root) = root.filter(|root| part.is_unnumbered() && root.id != node.id) {
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
        index: usize,
        part: &Part,
        number: TreeNumber,
        is_own: bool,
        node: &'a Node,
        aggregates: &BTreeSet<AggregateUuid>,
    ) -> Look<'a> {
        let has_any = |ids: &[TraitId]| ids.iter().any(|id| node.traits.contains(id));
        let (mut fails, mut covers) = (0, 0);
        for atom in &part.atoms {
            let holds = match &self.tests[*atom] {
                Test::Inventory(id) => node.stock(*id).is_some(),
                Test::MemberOf(any) => !any.is_disjoint(aggregates),
                Test::NotMemberOf(all) => all.is_disjoint(&node.aggregates),
                Test::InTree(only) => *only == number && (is_own || !part.is_unnumbered()),
                Test::Required(any) if part.is_unnumbered() => {
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
                Test::RootRequired(_) | Test::RootForbidden(_) | Test::Together => true,
            };
            fails |= Bits::from(!holds) << atom;
        }
        Look {
            part: index,
            node,
            fails,
            covers,
        }
    }

    /// Lays out a tree and what others share with it.
    pub(super) fn look_over<'s>(
        &self,
        number: TreeNumber,
        tree: &'a Tree,
        shared: impl Iterator<Item = &'s Vec<Look<'a>>>,
        looks: &mut Looks<'a>,
    ) where
        'a: 's,
    {
        let root = tree.root();
        looks.list.clear();
        looks.fails = 0;
        for (index, (test, group)) in self.tests.iter().zip(&self.groups).enumerate() {
            let unnumbered = group.is_none_or(|group| self.request.groups[group].suffix.is_empty());
            let holds = match test {
                Test::RootRequired(id) => root.traits.contains(id),
                Test::RootForbidden(id) => !root.traits.contains(id),
                // Also if a sharing provider would serve.
                Test::NotMemberOf(all) => !unnumbered || all.is_disjoint(&root.aggregates),
                Test::Never => false,
                _ => true,
            };
            looks.fails |= Bits::from(!holds) << index;
        }
        for node in &tree.nodes {
            self.look(number, Some(root), node, &mut looks.list);
        }
        if !mutant!("explain-sharing-forgotten") {
            looks.list.extend(shared.flatten().cloned());
        }
    }

    /// Whether each of these parts has a provider that meets those of `kept` that are about it.
    pub(super) fn hold(&self, looks: &Looks<'a>, kept: Bits, parts: Bits) -> bool {
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

    /// The first atom with which those before cannot be met any more; that of all of them if each is met.
    pub(super) fn first_unmet(&self, looks: &Looks<'a>) -> usize {
        let parts = self.all_parts();
        let (mut met, mut unmet) = (0, self.list.len() - 1);
        while met < unmet {
            let middle = usize::midpoint(met, unmet);
            match self.hold(looks, up_to(middle), parts) {
                true => met = middle + 1,
                false => unmet = middle,
            }
        }
        met
    }

    /// The atoms that speak against the best provider of each part, which meets most of the first ones, and these looks.
    pub(super) fn lacks<'l>(&self, looks: &'l Looks<'a>) -> (Bits, Vec<&'l Look<'a>>) {
        let best = |part: usize| {
            let of_part = looks.list.iter().filter(|look| look.part == part);
            // One without an inventory fails nothing that asks for an amount of it.
            let nearness = |look: &&Look<'_>| {
                let met_first = look.fails.trailing_zeros();
                (Reverse(met_first), look.fails.count_ones())
            };
            of_part.min_by_key(nearness)
        };
        let best: Vec<_> = (0..self.parts.len()).filter_map(best).collect();
        let lacks = best
            .iter()
            .fold(looks.fails, |bits, look| bits | look.fails);
        let covered = looks.list.iter().fold(0, |bits, look| bits | look.covers);
        (lacks | self.covering & !covered, best)
    }
}

impl Atom {
    fn of(kind: AtomKind, group: Option<&RequestGroup>) -> Self {
        Self {
            kind,
            group: group.map_or_else(String::new, |group| group.suffix.clone()),
            class: None,
            asked: None,
            traits: Vec::new(),
            aggregates: Vec::new(),
            provider: None,
        }
    }

    fn of_class(mut self, name: &Given<ResourceClassName>) -> Self {
        self.class = Some(name.clone());
        self
    }
}

fn spelled<'n>(
    names: impl IntoIterator<Item = &'n Given<TraitName>>,
    forbidden: bool,
) -> Vec<String> {
    let sign = if forbidden { "!" } else { "" };
    let names = names.into_iter();
    names.map(|name| format!("{sign}{name}")).collect()
}
