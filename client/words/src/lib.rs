//! Texts that `placementctl` and the web pages share: the health of a cluster, the response of `GET
//! /placementd/v1/explain` in sentences, amounts with units, and helpers for JSON. They are
//! separate from `placement-wire`, because crates without JSON use that crate.

mod amounts;
mod health;

pub use amounts::{amount, share};
pub use health::{Condition, Health, Survey, nodes};

use std::borrow::Cow;

use placement_wire::explain::{
    AbsentName, Atom, Bound, ClassShortage, Detail, Explanation, Kind, Name, NearTree, Relaxation,
    RelaxedCondition, Stage, UnmetCondition, Verdict,
};
use serde_json::Value;

/// Number of names of a list that are printed.
const NAMES_MAX: usize = 10;
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

impl Words {
    /// The cause in one line, the first of these that applies: a name that no provider has, the
    /// unmet conditions of the host that was requested by name, the best relaxation, or the
    /// condition that no remaining tree meets.
    pub fn cause(&self, answer: &Explanation<'_>) -> String {
        let trees = counted(answer.trees, "tree");
        let what = match (answer.verdict, self.absent_names(answer).next()) {
            (Verdict::Some, _) => {
                format!("{} of {trees} with candidates", answer.with_candidates)
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
        let hint = answer
            .relaxations
            .first()
            .filter(|one| !is_class(one) || is_less(one, stage));
        match hint {
            Some(one) if is_less(one, stage) && stage.detail.short.is_none() => {
                format!("no candidates; there are some {}", self.less(one, &[]))
            }
            Some(one) => format!(
                "no candidates: {}; there are some {}",
                self.unmet(answer, stage),
                self.less(one, &[])
            ),
            None => format!("no candidates: {}", self.unmet(answer, stage)),
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
    pub fn condition(&self, stage: &Stage<'_>) -> String {
        let free = match stage.most_free {
            Some(most) => format!(" ({most} free at most)"),
            None => String::new(),
        };
        self.met(&stage.atom, stage.detail.bound) + &free
    }

    fn met(&self, atom: &Atom<'_>, bound: Option<Bound>) -> String {
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
        what + &self.group(atom)
    }

    /// A condition that no remaining tree meets, as a sentence.
    fn unmet(&self, answer: &Explanation<'_>, stage: &Stage<'_>) -> String {
        let (atom, is_one) = (&stage.atom, stage.gone == 1);
        let trees = counted(stage.gone, "remaining tree");
        let group = self.group(atom);
        match atom.kind {
            Kind::InTree => format!("no remaining tree has provider {}", self.provider(atom)),
            Kind::MemberOf if is_forbidden(atom) => {
                let name = self.named(atom);
                format!("each remaining tree is in {name}, which is excluded{group}")
            }
            Kind::MemberOf => format!("no remaining tree is in {}{group}", self.named(atom)),
            Kind::RootRequired if is_forbidden(atom) => {
                format!("each remaining root has the forbidden {}", self.named(atom))
            }
            Kind::RootRequired => format!(
                "no remaining root has {}{}",
                self.named(atom),
                self.elsewhere(stage)
            ),
            Kind::Inventory => format!("no remaining tree has {}{group}", self.class(atom)),
            Kind::Required => {
                let place = match stage.detail.elsewhere {
                    Some(_) => self.serving(answer, atom),
                    None => String::new(),
                };
                let (name, elsewhere) = (self.named(atom), self.elsewhere(stage));
                format!("no remaining tree has {name}{place}{group}{elsewhere}")
            }
            Kind::Forbidden => {
                let name = self.named(atom);
                format!("each remaining tree has the forbidden {name}{group}")
            }
            Kind::Unit => format!(
                "{trees} {} not allow {} in one allocation{}{group}",
                if is_one { "does" } else { "do" },
                self.amount(atom),
                limit(stage.detail.bound)
            ),
            Kind::Room => format!(
                "{trees} {} at most {} {} free{group}; {} requested",
                if is_one { "has" } else { "have" },
                self.number(stage.most_free),
                self.class(atom),
                self.are(atom.asked)
            ),
            Kind::Together | Kind::Unknown => match &stage.detail.short {
                Some(short) => self.short(short),
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
        let all = &near.lacks;
        let lacks = all
            .iter()
            .take(NAMES_MAX)
            .map(|lack| self.lack(lack))
            .collect::<Vec<_>>()
            .join(" and ");
        match all.len().saturating_sub(NAMES_MAX) {
            0 => lacks,
            more => format!("{lacks} and {more} more"),
        }
    }

    /// An unmet condition of a tree, as a predicate that follows its name.
    fn lack(&self, lack: &UnmetCondition<'_>) -> String {
        let (atom, detail) = (&lack.atom, &lack.detail);
        let group = self.group(atom);
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
                "has {free} of {} {} free{group} ({} requested)",
                self.number(lack.capacity),
                self.class(atom),
                self.are(atom.asked)
            ),
            Kind::Together => match &detail.short {
                Some(short) => format!("has {}", self.short(short)),
                None => "cannot serve all groups at once".to_owned(),
            },
            Kind::Room | Kind::Unknown => format!("lacks {}", self.met(atom, detail.bound)),
        }
    }

    /// A sentence about a class of which all groups together request more units than any one host
    /// has.
    fn short(&self, short: &ClassShortage<'_>) -> String {
        let (class, asked) = (self.word(&short.class), self.are(Some(short.asked)));
        let groups: Vec<&str> = short.groups.iter().map(AsRef::as_ref).collect();
        let (most, groups) = (short.most, self.groups(&groups));
        format!("at most {most} {class} on one host; {asked} requested ({groups})")
    }

    /// The consumers of the missing resources, as a short clause.
    fn held(&self, near: &NearTree<'_>) -> String {
        let Some(first) = near.holders.first() else {
            return String::new();
        };
        let mut holders = near.holders.iter();
        let others = holders.any(|one| one.consumer != first.consumer);
        let others = if others { " and others" } else { "" };
        format!("; held by {}{others}", self.word(&first.consumer))
    }

    /// Number of further consumers of the missing resources, as text.
    pub fn more_holders(&self, near: &NearTree<'_>) -> Option<String> {
        let more = near.holders_more?.get();
        let noun = if more == 1 { "consumer" } else { "consumers" };
        Some(format!("{more} more {noun}"))
    }

    /// Title of the list of nearly fitting trees, with their number.
    pub fn nearest_title(&self, answer: &Explanation<'_>) -> String {
        let gone = answer
            .funnel
            .iter()
            .map(|stage| stage.gone)
            .fold(0, u64::saturating_add);
        match answer.nearest.len() as u64 {
            shown if shown < gone => {
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

    /// The group of a condition, as the end of a sentence; empty if it has none.
    fn group(&self, atom: &Atom<'_>) -> String {
        match &*atom.group {
            "" => String::new(),
            _ if atom.kind == Kind::Together => String::new(),
            group => format!(" for group {}", self.word(group)),
        }
    }

    /// Suffixes of groups; consecutive numbers become `groups 1 to 5`.
    fn groups(&self, suffixes: &[&str]) -> String {
        let numbers: Option<Vec<_>> = suffixes.iter().map(|one| one.parse::<u32>().ok()).collect();
        let in_a_row = |numbers: &Vec<u32>| {
            numbers
                .windows(2)
                .all(|two| two[0].checked_add(1) == Some(two[1]))
        };
        if let Some([first, .., last]) = numbers.filter(in_a_row).as_deref()
            && suffixes.len() > 2
        {
            return format!("groups {first} to {last}");
        }
        let named = |one: &&'_ str| match *one {
            "" => "unnumbered".to_owned(),
            one => one.to_owned(),
        };
        let all: Vec<_> = suffixes.iter().map(named).collect();
        format!("groups {}", self.names(&all, ", "))
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
            _ => self.group(atom),
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

    /// The stages that remove trees, and the number of the other stages. If there is only one other
    /// stage, it is returned, too, and the number is 0.
    pub fn stages<'a>(&self, answer: &'a Explanation<'a>) -> (Vec<&'a Stage<'a>>, usize) {
        let all = &answer.funnel;
        let taking: Vec<_> = all.iter().filter(|stage| stage.gone != 0).collect();
        match all.len() - taking.len() {
            0 | 1 => (all.iter().collect(), 0),
            others => (taking, others),
        }
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
    let is_alike = atom.group == of_stage.group
        && atom.class == of_stage.class
        && atom.traits == of_stage.traits
        && atom.aggregates == of_stage.aggregates
        && atom.provider == of_stage.provider;
    atom.kind == of_stage.kind && (is_alike || atom.kind == Kind::Together)
}

/// Whether two relaxations are equal except for the group and the query.
fn are_alike_but_for_the_group(one: &Relaxation<'_>, other: &Relaxation<'_>) -> bool {
    let ([first], [second]) = (&*one.less, &*other.less) else {
        return false;
    };
    let (atom, of_other) = (&first.atom, &second.atom);
    atom.kind == of_other.kind
        && atom.class == of_other.class
        && atom.asked == of_other.asked
        && atom.traits == of_other.traits
        && atom.aggregates == of_other.aggregates
        && atom.provider == of_other.provider
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
