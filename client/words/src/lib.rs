//! Texts that `placementctl` and the web pages share: the health of a cluster, the failures that it
//! tolerates, the responses of `explain` and `refuge` below `/placementd/v1` in sentences, amounts
//! with units, and helpers for JSON. They are separate from `placement-wire`, because crates
//! without JSON use that crate.

mod amounts;
mod health;
mod refuge;
pub mod topology;

pub use amounts::{amount, class_order, share};
pub use health::{Condition, Health, Survey, nodes};
pub use refuge::{each_refuge, refuge};

use std::borrow::Cow;

use placement_wire::explain::{
    AbsentName, Atom, Bound, ClassShortage, Detail, Explanation, Kind, Name, NearTree,
    ReducedCapacity, Relaxation, RelaxedCondition, Stage, UnmetCondition, Verdict,
};
use placement_wire::holds::Hold;
use serde_json::Value;

/// Number of names of a list that are printed.
const NAMES_MAX: usize = 10;
/// Number of suffixes of groups that are printed, since Nova's suffixes contain UUIDs.
const GROUPS_MAX: usize = 3;
/// Text for a condition that only newer nodes know.
const UNKNOWN: &str = "a condition that this version does not know";

/// Formats explanations. The function formats each name: it escapes characters that a terminal or a
/// page would act on, and replaces an empty name by a placeholder.
pub struct Words(pub fn(&str) -> String);

/// A relaxation, merged with the relaxations that differ from it only in the group.
pub struct Folded<'a> {
    /// The first of the merged relaxations.
    pub relaxation: &'a Relaxation<'a>,
    groups: Vec<&'a str>,
}

/// A stage of the funnel, merged with the stages of equal groups, which remove no further trees.
pub struct FoldedStage<'a> {
    /// The first of the merged stages.
    pub stage: &'a Stage<'a>,
    groups: Vec<&'a str>,
}

impl Words {
    /// The cause in one line, the first of these that applies: a name that no provider has, the
    /// unmet conditions of the host that was requested by name, the best relaxation, or the
    /// condition that no or only some of the remaining trees meet.
    pub fn cause(&self, answer: &Explanation<'_>) -> String {
        let trees = counted(answer.trees, "tree");
        let what = match (answer.verdict, self.absent_names(answer).next()) {
            (Verdict::Some, _) => format!("candidates on {} of {trees}", answer.with_candidates),
            (Verdict::None, _) if answer.trees == 0 => {
                "no candidates: there are no providers".to_owned()
            }
            (_, Some(name)) => format!("no candidates: {name}"),
            (Verdict::Undecided, _) => format!("undecided: no candidates on {trees} so far"),
            (Verdict::None, _) => self.no_candidates(answer),
        };
        match answer.undecided {
            0 => what,
            undecided => {
                let undecided = counted(undecided, "tree");
                format!("{what} ({undecided} not searched to the end)")
            }
        }
    }

    fn no_candidates(&self, answer: &Explanation<'_>) -> String {
        let Some(stage) = answer.cause.and_then(|cause| answer.funnel.get(cause)) else {
            return format!("no candidates on {}", counted(answer.trees, "tree"));
        };
        let mut conditions = answer.funnel.iter();
        let is_named =
            stage.atom.kind != Kind::InTree && conditions.any(|one| one.atom.kind == Kind::InTree);
        if let Some(host) = answer.nearest.first()
            && is_named
        {
            let host = format!("{}{}", self.near(host), self.held(host));
            return format!("no candidates: {host}");
        }
        // A relaxation that drops a whole resource class is not a useful hint.
        let is_class = |one: &Relaxation<'_>| {
            let mut less = one.less.iter();
            less.next()
                .is_some_and(|less| less.atom.kind == Kind::Inventory)
        };
        let folded = self.relaxations(answer);
        let hint = folded.first().filter(|one| !is_class(one.relaxation));
        let Some(hint) = hint else {
            return format!("no candidates: {}", self.unmet(answer, stage));
        };
        // The unmet condition says more than the hint.
        let has_detail = stage.detail.short.is_some() || stage.detail.elsewhere.is_some();
        let less = self.folded(hint);
        if is_less(hint.relaxation, stage) && !has_detail {
            format!("no candidates; there are candidates {less}")
        } else {
            let unmet = self.unmet(answer, stage);
            format!("no candidates: {unmet}; there are candidates {less}")
        }
    }

    /// Names in a request that no provider has, each as a sentence.
    pub fn absent_names(&self, answer: &Explanation<'_>) -> impl Iterator<Item = String> {
        let unknown = answer.unknown.iter().map(|name| self.unknown(name));
        unknown.chain(answer.unused.iter().map(|name| self.unused(name)))
    }

    /// Sentence about a name that does not exist.
    fn unknown(&self, name: &AbsentName<'_>) -> String {
        let what = self.absent(&name.name);
        match &*name.nearest {
            [] => format!("there is no {what}"),
            nearest => format!("there is no {what}; similar: {}", self.names(nearest, ", ")),
        }
    }

    /// Sentence about an existing name that no provider has.
    fn unused(&self, name: &AbsentName<'_>) -> String {
        format!("no provider has the {}", self.absent(&name.name))
    }

    fn absent(&self, name: &Name<'_>) -> String {
        let (what, name) = match name {
            Name::Class(name) => ("resource class", name),
            Name::Trait(name) => ("trait", name),
            Name::Aggregate(uuid) => ("aggregate", uuid),
            Name::Provider(uuid) => ("provider", uuid),
        };
        format!("{what} {}", self.word(name))
    }

    /// A condition of a query as a noun phrase.
    pub fn condition(&self, answer: &Explanation<'_>, one: &FoldedStage<'_>) -> String {
        let FoldedStage { stage, groups } = one;
        let (atom, detail) = (&stage.atom, &stage.detail);
        if atom.kind == Kind::Required && detail.elsewhere.is_some() {
            return self.named(atom) + &self.serving(answer, atom) + &self.group(atom, groups);
        }
        let free = match stage.most_free {
            Some(0) => " (none free)".to_owned(),
            Some(most) => format!(" ({most} free at most)"),
            None => String::new(),
        };
        self.met(atom, detail.bound, groups) + &free
    }

    fn met(&self, atom: &Atom<'_>, bound: Option<Bound>, groups: &[&str]) -> String {
        let what = match atom.kind {
            Kind::RootRequired if is_forbidden(atom) => {
                format!("a root without {}", self.named(atom))
            }
            Kind::RootRequired => format!("a root with {}", self.named(atom)),
            Kind::MemberOf | Kind::Forbidden if is_forbidden(atom) => {
                format!("a provider without {}", self.named(atom))
            }
            Kind::MemberOf | Kind::Required => self.named(atom),
            Kind::Inventory => format!("an inventory of {}", self.class(atom)),
            Kind::InTree => format!("the tree of provider {}", self.provider(atom)),
            Kind::Unit => format!("{} in one allocation{}", self.amount(atom), limit(bound)),
            Kind::Room => format!("room for {}", self.amount(atom)),
            Kind::Together => "a place for all groups at once".to_owned(),
            Kind::Forbidden | Kind::Unknown => UNKNOWN.to_owned(),
        };
        what + &self.group(atom, groups)
    }

    /// A condition that no or only some of the remaining trees meet, as a sentence.
    fn unmet(&self, answer: &Explanation<'_>, stage: &Stage<'_>) -> String {
        let (atom, is_one) = (&stage.atom, stage.gone == 1);
        let before = stage.gone.saturating_add(stage.left);
        // No earlier condition has removed a tree.
        let (tree, root) = if before == answer.trees {
            ("tree", "root")
        } else {
            ("remaining tree", "remaining root")
        };
        let trees = counted(stage.gone, tree);
        // The trees that fail, with the verb for all, one or some of them.
        let who = |all: &str, noun: &str, [of_all, of_one, of_some]: [&str; 3]| match stage.left {
            0 => format!("{all} {noun} {of_all}"),
            _ => {
                let verb = if is_one { of_one } else { of_some };
                format!("{} of {} {verb}", stage.gone, counted(before, noun))
            }
        };
        let lacking = |noun: &str| who("no", noun, ["has", "does not have", "do not have"]);
        let having = |noun: &str| who("each", noun, ["has", "has", "have"]);
        let alike = answer.funnel.iter();
        let alike = alike.filter(|one| are_merged(answer, stage, one));
        let groups: Vec<&str> = alike.map(|one| &*one.atom.group).collect();
        let group = self.group(atom, &groups);
        match atom.kind {
            Kind::InTree => format!("{} provider {}", lacking(tree), self.provider(atom)),
            Kind::MemberOf if is_forbidden(atom) => {
                let inside = who("each", tree, ["is", "is", "are"]);
                let name = self.named(atom);
                format!("{inside} in {name}, which is excluded{group}")
            }
            Kind::MemberOf => {
                let outside = who("no", tree, ["is", "is not", "are not"]);
                format!("{outside} in {}{group}", self.named(atom))
            }
            Kind::RootRequired if is_forbidden(atom) => {
                format!("{} the forbidden {}", having(root), self.named(atom))
            }
            Kind::RootRequired => format!(
                "{} {}{}",
                lacking(root),
                self.named(atom),
                self.elsewhere(stage)
            ),
            Kind::Inventory => format!("{} {}{group}", lacking(tree), self.class(atom)),
            Kind::Required => {
                let place = match stage.detail.elsewhere {
                    Some(_) => self.serving(answer, atom),
                    None => String::new(),
                };
                let (name, elsewhere) = (self.named(atom), self.elsewhere(stage));
                format!("{} {name}{place}{group}{elsewhere}", lacking(tree))
            }
            Kind::Forbidden => {
                let name = self.named(atom);
                format!("{} the forbidden {name}{group}", having(tree))
            }
            Kind::Unit => format!(
                "{trees} {} not allow {} in one allocation{}{group}",
                if is_one { "does" } else { "do" },
                self.amount(atom),
                limit(stage.detail.bound)
            ),
            Kind::Room => format!(
                "{trees} {} {} {} free{group}; {} requested{}",
                if is_one { "has" } else { "have" },
                match stage.most_free {
                    Some(0) => "no".to_owned(),
                    most => format!("at most {}", self.number(most)),
                },
                self.class(atom),
                self.are(atom.asked),
                requester(&groups)
            ),
            Kind::Together | Kind::Unknown => match &stage.detail.short {
                Some(short) => {
                    let (class, asked) = (self.word(&short.class), self.are(Some(short.asked)));
                    let (most, groups) = (short.most, self.groups(&suffixes(short)));
                    format!("at most {most} {class} on one host; {asked} requested ({groups})")
                }
                None => format!("{trees} cannot serve all groups at once"),
            },
        }
    }

    /// A tree and its unmet conditions, as a sentence.
    pub fn near(&self, near: &NearTree<'_>) -> String {
        format!("{} {}", self.word(&near.root.name), self.lacks(near))
    }

    /// The unmet conditions of a tree, as predicates that follow its name.
    pub fn lacks(&self, near: &NearTree<'_>) -> String {
        let mut all: Vec<(&UnmetCondition<'_>, Vec<&str>)> = Vec::new();
        for lack in near.lacks.iter().filter(|lack| !self.follows(near, lack)) {
            let group = &*lack.atom.group;
            match all.iter_mut().find(|(first, _)| are_alike(first, lack)) {
                Some((_, groups)) => groups.push(group),
                None => all.push((lack, vec![group])),
            }
        }
        let lacks = all
            .iter()
            .take(NAMES_MAX)
            .map(|(lack, groups)| self.lack(lack, groups))
            .collect::<Vec<_>>()
            .join(" and ");
        match all.len().saturating_sub(NAMES_MAX) {
            0 => lacks,
            more => format!("{lacks} and {more} more"),
        }
    }

    /// Whether a condition fails only because the tree has no inventory of its class at all.
    fn follows(&self, near: &NearTree<'_>, lack: &UnmetCondition<'_>) -> bool {
        matches!(lack.atom.kind, Kind::Unit | Kind::Room)
            && near.lacks.iter().map(|other| &other.atom).any(|atom| {
                atom.kind == Kind::Inventory
                    && atom.group == lack.atom.group
                    && self.class(atom) == self.class(&lack.atom)
            })
    }

    /// An unmet condition of a tree, as a predicate that follows its name.
    fn lack(&self, lack: &UnmetCondition<'_>, groups: &[&str]) -> String {
        let (atom, detail) = (&lack.atom, &lack.detail);
        let group = self.group(atom, groups);
        match atom.kind {
            Kind::InTree => format!("is not the tree of provider {}", self.provider(atom)),
            Kind::MemberOf if is_forbidden(atom) => {
                format!("is in {}, which is excluded{group}", self.named(atom))
            }
            Kind::MemberOf => format!("is not in {}{group}", self.named(atom)),
            Kind::RootRequired if is_forbidden(atom) => {
                format!("has the forbidden {} on its root", self.named(atom))
            }
            Kind::RootRequired => {
                let on = self.on(detail);
                format!("lacks {} on its root{on}", self.named(atom))
            }
            Kind::Inventory => format!("has no {}{group}", self.class(atom)),
            Kind::Required => {
                let place = if detail.elsewhere.is_some() {
                    " on a suitable provider"
                } else {
                    ""
                };
                format!(
                    "lacks {}{place}{group}{}",
                    self.named(atom),
                    self.on(detail)
                )
            }
            Kind::Forbidden => format!("has the forbidden {}{group}", self.named(atom)),
            Kind::Unit => format!(
                "does not allow {} in one allocation{}{group}",
                self.amount(atom),
                limit(detail.bound)
            ),
            Kind::Room if let Some(free) = lack.free => format!(
                "has {free} of {} {} free{group} ({} requested{}{})",
                self.number(lack.capacity),
                self.class(atom),
                self.are(atom.asked),
                requester(groups),
                lack.reduced.as_ref().map(reduction).unwrap_or_default()
            ),
            Kind::Together => match &detail.short {
                Some(short) => {
                    let (class, asked) = (self.word(&short.class), self.are(Some(short.asked)));
                    let (most, groups) = (short.most, self.groups(&suffixes(short)));
                    format!("has at most {most} {class} for {groups} ({asked} requested)")
                }
                None => "cannot serve all groups at once".to_owned(),
            },
            Kind::Room | Kind::Unknown => {
                format!("lacks {}", self.met(atom, detail.bound, groups))
            }
        }
    }

    /// The consumers of the missing resources, as a short clause.
    fn held(&self, near: &NearTree<'_>) -> String {
        let Some(first) = near.holders.first() else {
            return String::new();
        };
        let mut holders = near.holders.iter();
        let others = holders.any(|one| one.consumer != first.consumer);
        let others = if others { " and others" } else { "" };
        let hold = self.hold(first.hold.as_ref());
        format!("; held by {}{hold}{others}", self.word(&first.consumer))
    }

    /// The hold of a consumer as the end of a clause, such as ` (held for UUID until TIME)`; empty
    /// without a hold.
    pub fn hold(&self, hold: Option<&Hold>) -> String {
        let Some(hold) = hold else {
            return String::new();
        };
        let kept_for = match &*hold.kept_for {
            [] => String::new(),
            [one] => format!(" for {}", self.word(one)),
            [one, others @ ..] => format!(" for {} and {} more", self.word(one), others.len()),
        };
        let end = match (&hold.lease_until, &hold.due) {
            (Some(until), _) => format!(" until {}", self.word(until)),
            (None, Some(due)) => format!(", due {}", self.word(due)),
            (None, None) => String::new(),
        };
        format!(" (held{kept_for}{end})")
    }

    /// Number of further consumers of the missing resources, as text.
    pub fn more_holders(&self, near: &NearTree<'_>) -> Option<String> {
        let more = near.holders_more?.get();
        let noun = if more == 1 { "consumer" } else { "consumers" };
        Some(format!("{more} more {noun}"))
    }

    /// The nearly fitting trees. If `in_tree` selects a tree, the other trees are no help.
    pub fn nearest<'a, 'b>(&self, answer: &'a Explanation<'b>) -> Vec<&'a NearTree<'b>> {
        let is_other = |near: &NearTree<'_>| {
            let mut lacks = near.lacks.iter();
            lacks.any(|lack| lack.atom.kind == Kind::InTree)
        };
        let all: Vec<_> = answer.nearest.iter().collect();
        let selected: Vec<_> = all.iter().copied().filter(|near| !is_other(near)).collect();
        if selected.is_empty() { all } else { selected }
    }

    /// Title of the list of nearly fitting trees, with their number.
    pub fn nearest_title(&self, answer: &Explanation<'_>) -> String {
        let gone = answer
            .funnel
            .iter()
            .map(|stage| stage.gone)
            .fold(0, u64::saturating_add);
        let shown = self.nearest(answer).len();
        let is_selection = shown < answer.nearest.len();
        match shown as u64 {
            shown if shown < gone && !is_selection => {
                format!("what nearly fits (the nearest {shown} of {gone} trees)")
            }
            _ => "what nearly fits".to_owned(),
        }
    }

    /// A clause that names a provider that has the trait but cannot serve the request.
    fn elsewhere(&self, stage: &Stage<'_>) -> String {
        let Some(one) = &stage.detail.elsewhere else {
            return String::new();
        };
        let root = self.word(&one.root.name);
        if one.root == one.provider {
            format!("; {root} has it on its root")
        } else {
            format!("; {root} has it on {}", self.word(&one.provider.name))
        }
    }

    fn on(&self, detail: &Detail<'_>) -> String {
        let Some(one) = &detail.elsewhere else {
            return String::new();
        };
        if one.root == one.provider {
            " (its root has it)".to_owned()
        } else {
            format!(" ({} has it)", self.word(&one.provider.name))
        }
    }

    /// Where a trait is required: on a provider of the resource classes of its group.
    fn serving(&self, answer: &Explanation<'_>, atom: &Atom<'_>) -> String {
        let of_group =
            |one: &&Stage<'_>| one.atom.kind == Kind::Inventory && one.atom.group == atom.group;
        let funnel = answer.funnel.iter().filter(of_group);
        let classes: Vec<_> = funnel
            .map(|one| one.atom.class.as_deref().unwrap_or_default())
            .collect();
        if classes.is_empty() {
            " on a suitable provider".to_owned()
        } else {
            format!(" on a provider of {}", self.names(&classes, " or "))
        }
    }

    fn amount(&self, atom: &Atom<'_>) -> String {
        format!("{}:{}", self.class(atom), self.number(atom.asked))
    }

    /// The groups of a condition, as the end of a sentence, or an empty text.
    fn group(&self, atom: &Atom<'_>, groups: &[&str]) -> String {
        match groups {
            _ if atom.kind == Kind::Together => String::new(),
            [""] => String::new(),
            _ => format!(" for {}", self.groups(groups)),
        }
    }

    /// Groups by their suffixes; consecutive numbers become `groups 1 to 5`.
    fn groups(&self, suffixes: &[&str]) -> String {
        let named = suffixes.iter().copied().filter(|one| !one.is_empty());
        let named: Vec<&str> = named.collect();
        let numbered = match named[..] {
            [] => String::new(),
            [one] => format!("group {}", self.word(one)),
            [first, .., last] if named.len() > 2 && are_consecutive(&named) => {
                format!("groups {} to {}", self.word(first), self.word(last))
            }
            _ => {
                let first = named.iter().take(GROUPS_MAX);
                let shown: Vec<_> = first.map(|one| self.word(one)).collect();
                match named.len() - shown.len() {
                    0 => format!("groups {}", shown.join(", ")),
                    more => format!("groups {} and {more} more", shown.join(", ")),
                }
            }
        };
        match (named.len() < suffixes.len(), &*numbered) {
            (false, _) => numbered,
            (true, "") => "the unnumbered group".to_owned(),
            (true, _) => format!("the unnumbered group and {numbered}"),
        }
    }

    /// The traits or aggregates of a condition.
    fn named(&self, atom: &Atom<'_>) -> String {
        let plain = |all: &[Cow<'_, str>]| {
            let plain = all.iter().map(|one| one.trim_start_matches('!').to_owned());
            plain.collect::<Vec<_>>()
        };
        match &*plain(&atom.traits) {
            [] => format!("aggregate {}", self.names(&plain(&atom.aggregates), " or ")),
            traits => format!("trait {}", self.names(traits, " or ")),
        }
    }

    /// Removed conditions of a relaxed query, and the number of trees that then have candidates.
    pub fn folded(&self, folded: &Folded<'_>) -> String {
        self.less(folded.relaxation, &folded.groups)
    }

    fn less(&self, relaxation: &Relaxation<'_>, groups: &[&str]) -> String {
        let all: Vec<_> = relaxation
            .less
            .iter()
            .take(NAMES_MAX)
            .map(|less| self.without(less, groups))
            .collect();
        let trees = counted(relaxation.trees, "tree");
        let example = match &*relaxation.example.name {
            "" => String::new(),
            name => format!(", such as {}", self.word(name)),
        };
        format!("{}: {trees}{example}", all.join(" and "))
    }

    fn without(&self, less: &RelaxedCondition<'_>, groups: &[&str]) -> String {
        let atom = &less.atom;
        let group = match groups {
            [_, _, ..] => format!(" for one of {}", self.groups(groups)),
            _ => self.group(atom, &[&*atom.group]),
        };
        match atom.kind {
            _ if let Some(enough) = less.enough => format!(
                "with {}:{enough} in place of {}{}{group}",
                self.class(atom),
                self.number(atom.asked),
                limit(less.bound)
            ),
            Kind::Inventory => format!("without {}{group}", self.class(atom)),
            Kind::InTree => format!("without in_tree={}{group}", self.provider(atom)),
            Kind::Together => format!("without {}", self.word(&atom.group)),
            _ if is_forbidden(atom) => format!("with {} allowed{group}", self.named(atom)),
            Kind::RootRequired => format!("without {} on the root", self.named(atom)),
            _ => format!("without {}{group}", self.named(atom)),
        }
    }

    /// The relaxed queries; relaxations that differ only in the group are merged.
    pub fn relaxations<'a>(&self, answer: &'a Explanation<'a>) -> Vec<Folded<'a>> {
        let mut folded: Vec<Folded<'a>> = Vec::new();
        for relaxation in &answer.relaxations {
            let group = relaxation.less.first().map(|less| &*less.atom.group);
            let mut seen = folded.iter_mut();
            match seen.find(|first| are_alike_but_for_the_group(first.relaxation, relaxation)) {
                Some(first) => first.groups.extend(group),
                None => folded.push(Folded {
                    relaxation,
                    groups: group.into_iter().collect(),
                }),
            }
        }
        folded
    }

    /// The stages that remove trees, with equal groups merged, and the number of the other stages.
    /// If there is only one other stage, it is returned, too, and the number is 0.
    pub fn stages<'a>(&self, answer: &'a Explanation<'a>) -> (Vec<FoldedStage<'a>>, usize) {
        let mut folded: Vec<FoldedStage<'a>> = Vec::new();
        for stage in &answer.funnel {
            let mut seen = folded.iter_mut();
            match seen.find(|first| are_merged(answer, first.stage, stage)) {
                Some(first) => first.groups.push(&stage.atom.group),
                None => folded.push(FoldedStage::of(stage)),
            }
        }
        let others = folded.iter().filter(|one| one.stage.gone == 0);
        match others.clone().count() {
            0 | 1 => (folded, 0),
            _ => {
                let others = others.map(|one| one.groups.len()).sum();
                folded.retain(|one| one.stage.gone != 0);
                (folded, others)
            }
        }
    }

    /// Each stage as a row of its own.
    pub fn all_stages<'a>(&self, answer: &'a Explanation<'a>) -> Vec<FoldedStage<'a>> {
        answer.funnel.iter().map(FoldedStage::of).collect()
    }

    fn word(&self, name: &str) -> String {
        (self.0)(name)
    }

    fn class(&self, atom: &Atom<'_>) -> String {
        self.word(atom.class.as_deref().unwrap_or_default())
    }

    fn provider(&self, atom: &Atom<'_>) -> String {
        self.word(atom.provider.as_deref().unwrap_or_default())
    }

    fn number(&self, number: Option<u64>) -> String {
        number.map_or_else(|| self.word(""), |number| number.to_string())
    }

    /// A number with "is" or "are".
    fn are(&self, number: Option<u64>) -> String {
        let verb = if number == Some(1) { "is" } else { "are" };
        format!("{} {verb}", self.number(number))
    }

    fn names<T: AsRef<str>>(&self, all: &[T], between: &str) -> String {
        let first: Vec<_> = all
            .iter()
            .take(NAMES_MAX)
            .map(|name| self.word(name.as_ref()))
            .collect();
        match all.len().saturating_sub(NAMES_MAX) {
            0 => first.join(between),
            more => format!("{} and {more} more", first.join(between)),
        }
    }
}

impl<'a> FoldedStage<'a> {
    fn of(stage: &'a Stage<'a>) -> Self {
        let groups = vec![&*stage.atom.group];
        Self { stage, groups }
    }
}

/// Why a capacity is below the total of its inventory, as the end of a clause.
fn reduction(reduced: &ReducedCapacity) -> String {
    let ReducedCapacity {
        total,
        reserved,
        allocation_ratio,
    } = reduced;
    let ratio = format!("allocation_ratio is {allocation_ratio}");
    match *reserved {
        0 => format!("; total is {total}, {ratio}"),
        _ if *allocation_ratio < 1.0 => format!("; {reserved} of {total} reserved, {ratio}"),
        _ => format!("; {reserved} of {total} reserved"),
    }
}

/// The end of a clause about an amount that several groups request.
fn requester(groups: &[&str]) -> &'static str {
    if groups.len() > 1 { " by each" } else { "" }
}

/// The suffixes of the groups that lack units together.
fn suffixes<'a>(short: &'a ClassShortage<'_>) -> Vec<&'a str> {
    short.groups.iter().map(AsRef::as_ref).collect()
}

/// Whether suffixes differ only in their numbers, each of which follows its predecessor.
fn are_consecutive(suffixes: &[&str]) -> bool {
    let parts = |suffix: &str| {
        let prefix = suffix.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = suffix[prefix.len()..].parse::<u64>().ok()?;
        Some((prefix.to_owned(), number))
    };
    suffixes.windows(2).all(|two| {
        let follower = parts(two[0]).map(|(prefix, number)| (prefix, number.saturating_add(1)));
        follower.is_some() && follower == parts(two[1])
    })
}

/// Whether two conditions are equal except for the group.
fn are_equal_but_for_the_group(one: &Atom<'_>, other: &Atom<'_>) -> bool {
    one.kind == other.kind
        && one.class == other.class
        && one.asked == other.asked
        && one.traits == other.traits
        && one.aggregates == other.aggregates
        && one.provider == other.provider
}

/// Whether the second stage is shown with the first: it is of an equal group, and removes no tree.
fn are_merged(answer: &Explanation<'_>, first: &Stage<'_>, second: &Stage<'_>) -> bool {
    let is_same = std::ptr::eq(first, second);
    is_same
        || second.gone == 0
            && are_equal_but_for_the_group(&first.atom, &second.atom)
            && are_equal_groups(answer, &first.atom.group, &second.atom.group)
}

/// Whether two groups have equal conditions, so that a tree meets those of both or of neither. The
/// unnumbered group may use several providers, so no other group is equal to it.
fn are_equal_groups(answer: &Explanation<'_>, one: &str, other: &str) -> bool {
    let of = |group: &str| {
        let atoms = answer.funnel.iter().map(|stage| &stage.atom);
        atoms.filter(|atom| atom.group == group).collect::<Vec<_>>()
    };
    let (conditions, others) = (of(one), of(other));
    let mut pairs = conditions.iter().zip(&others);
    one.is_empty() == other.is_empty()
        && conditions.len() == others.len()
        && pairs.all(|(one, other)| are_equal_but_for_the_group(one, other))
}

/// Whether two unmet conditions of a tree are equal except for the group.
fn are_alike(one: &UnmetCondition<'_>, other: &UnmetCondition<'_>) -> bool {
    are_equal_but_for_the_group(&one.atom, &other.atom)
        && (one.free, one.capacity, one.reduced) == (other.free, other.capacity, other.reduced)
        && one.detail == other.detail
}

/// The limit that an amount violates.
fn limit(bound: Option<Bound>) -> String {
    bound.map_or_else(String::new, |bound| {
        let (name, units) = match bound {
            Bound::MaxUnit(units) => ("max_unit", units),
            Bound::MinUnit(units) => ("min_unit", units),
            Bound::StepSize(units) => ("step_size", units),
        };
        format!(" ({name} is {units})")
    })
}

/// Whether a relaxation drops the condition of a stage.
fn is_less(relaxation: &Relaxation<'_>, stage: &Stage<'_>) -> bool {
    let Some(RelaxedCondition { atom, .. }) = relaxation.less.first() else {
        return false;
    };
    let of_stage = &stage.atom;
    let is_alike = atom.group == of_stage.group && are_equal_but_for_the_group(atom, of_stage);
    is_alike || atom.kind == Kind::Together && of_stage.kind == Kind::Together
}

/// Whether two relaxations are equal except for the group and the query.
fn are_alike_but_for_the_group(one: &Relaxation<'_>, other: &Relaxation<'_>) -> bool {
    let ([first], [second]) = (&*one.less, &*other.less) else {
        return false;
    };
    are_equal_but_for_the_group(&first.atom, &second.atom)
        && first.enough == second.enough
        && first.bound == second.bound
        && one.trees == other.trees
        && one.undecided == other.undecided
        && one.example == other.example
}

/// Whether a condition forbids its traits or aggregates.
fn is_forbidden(atom: &Atom<'_>) -> bool {
    let mut names = atom.traits.iter().chain(&atom.aggregates);
    names.next().is_some_and(|name| name.starts_with('!'))
}

/// `1 tree`, `2 trees`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Escapes control characters and characters that change the text direction, so that neither a
/// terminal nor a browser acts on the text.
pub fn inert(text: &str) -> String {
    let mut inert = String::new();
    for c in text.chars() {
        if acts(c) {
            inert.extend(c.escape_default())
        } else {
            inert.push(c)
        }
    }
    inert
}

/// Like [`inert`] for a text of several lines. Uses JSON escapes, so a JSON document keeps its
/// value.
pub fn inert_lines(text: &str) -> String {
    let mut inert = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\t' => inert.push(c),
            c if acts(c) => inert += &format!("\\u{:04x}", u32::from(c)),
            c => inert.push(c),
        }
    }
    inert
}

/// Whether a terminal or a browser acts on a character: a control character, or a character that
/// changes the text direction.
fn acts(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control()
}

/// The elements of an array; empty for anything else.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The members of an object; empty for anything else.
pub fn pairs(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// A value without the members that are equal in `other`.
pub fn without_equal_members(value: &Value, other: &Value) -> Value {
    let mut rest = value.clone();
    if let Value::Object(members) = &mut rest {
        members.retain(|name, member| other.get(name) != Some(member));
    }
    rest
}

/// A number of bytes in the largest unit that yields at least 1.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_direction_characters_are_escaped() {
        assert_eq!(
            inert("a\u{202e}b\u{2066}\n\u{1b}[2J計"),
            "a\\u{202e}b\\u{2066}\\n\\u{1b}[2J計"
        );
    }

    #[test]
    fn an_escaped_json_document_keeps_its_value() {
        let value =
            serde_json::json!({"name": "a\u{1b}]0;x\u{7}\u{7f}\u{9b}2J\u{61c}\u{202e}計\n"});
        let document = format!("{value:#}\n");
        let inert = inert_lines(&document);
        let is_printable = |c: char| c == '\n' || !acts(c);
        assert!(inert.chars().all(is_printable), "{inert:?}");
        assert!(inert.contains("\\u009b2J\\u061c\\u202e計"), "{inert}");
        assert_eq!(serde_json::from_str::<Value>(&inert).unwrap(), value);
    }
}
