//! Texts that `placementctl` and the web pages share: the health of a cluster, the response of `GET
//! /placementd/v1/explain` in sentences, and helpers for JSON.

mod health;

pub use health::{Condition, Health, Survey};

use serde_json::{Value, json};

/// Number of names of a list that are printed.
const NAMES_MAX: usize = 10;
/// At most a thousand consumers of a provider are counted, and three of them are shown.
const HOLDERS_COUNTED: u64 = 997;

/// Formats explanations. The function formats each value: it removes characters that a terminal or
/// a page would act on, and has a placeholder for missing values.
pub struct Words(pub fn(&Value) -> String);

impl Words {
    /// The cause in one line, the first of these that applies: a name that no provider has, the
    /// unmet conditions of the host that was requested by name, the best relaxation, or the
    /// condition that no remaining tree meets.
    pub fn cause(&self, answer: &Value) -> String {
        let trees = self.count(&answer["trees"], "tree");
        let what = match (answer["verdict"].as_str(), self.absent_names(answer).next()) {
            (Some("some"), _) => {
                format!(
                    "{} of {trees} with candidates",
                    self.word(&answer["with_candidates"])
                )
            }
            (_, Some(name)) => format!("no candidates: {name}"),
            (Some("undecided"), _) => format!("undecided: no candidates on {trees} so far"),
            _ => self.no_candidates(answer),
        };
        match answer["undecided"].as_u64() {
            None | Some(0) => what,
            _ => {
                let undecided = self.count(&answer["undecided"], "tree");
                format!("{what} ({undecided} not searched to the end)")
            }
        }
    }

    fn no_candidates(&self, answer: &Value) -> String {
        let cause = answer["cause"].as_u64().unwrap_or(u64::MAX);
        let stage = usize::try_from(cause).ok();
        let Some(stage) = stage.and_then(|cause| list(&answer["funnel"]).get(cause)) else {
            return format!("no candidates on {}", self.count(&answer["trees"], "tree"));
        };
        let mut conditions = list(&answer["funnel"]).iter();
        let is_named = conditions.any(|one| one["atom"] == "in_tree") && stage["atom"] != "in_tree";
        if let Some(host) = list(&answer["nearest"]).first()
            && is_named
        {
            let host = format!("{}{}", self.near(host), self.held(host));
            return format!("no candidates: {host}");
        }
        // A relaxation without a whole class is not a useful hint.
        let hint = list(&answer["relaxations"]).first();
        let hint = hint.filter(|one| one["less"][0]["atom"] != "inventory" || is_less(one, stage));
        match hint {
            Some(one) if is_less(one, stage) && stage.get("short").is_none() => {
                format!("no candidates; there are some {}", self.less(one))
            }
            Some(one) => format!(
                "no candidates: {}; there are some {}",
                self.unmet(answer, stage),
                self.less(one)
            ),
            None => format!("no candidates: {}", self.unmet(answer, stage)),
        }
    }

    /// Names in a request that no provider has, each as a sentence.
    pub fn absent_names(&self, answer: &Value) -> impl Iterator<Item = String> {
        let unknown = list(&answer["unknown"]).iter();
        let unused = list(&answer["unused"]).iter();
        let unknown = unknown.map(|name| self.unknown(name));
        unknown.chain(unused.map(|name| self.unused(name)))
    }

    /// Sentence about a name that does not exist.
    fn unknown(&self, name: &Value) -> String {
        let what = self.absent(name);
        match list(&name["nearest"]) {
            [] => format!("there is no {what}"),
            nearest => format!("there is no {what}; similar: {}", self.names(nearest, ", ")),
        }
    }

    /// Sentence about an existing name that no provider has.
    fn unused(&self, name: &Value) -> String {
        format!("no provider has the {}", self.absent(name))
    }

    fn absent(&self, name: &Value) -> String {
        let kinds = [
            ("class", "resource class"),
            ("trait", "trait"),
            ("provider", "provider"),
        ];
        let found = kinds.iter().find(|(key, _)| name.get(key).is_some());
        let (key, what) = found.unwrap_or(&("aggregate", "aggregate"));
        format!("{what} {}", self.word(&name[key]))
    }

    /// A condition of a query as a noun phrase.
    pub fn condition(&self, atom: &Value) -> String {
        let what = match atom["atom"].as_str().unwrap_or_default() {
            "root_required" if is_forbidden(atom) => format!("a root without {}", self.named(atom)),
            "root_required" => format!("a root with {}", self.named(atom)),
            "member_of" | "forbidden" if is_forbidden(atom) => {
                format!("a provider without {}", self.named(atom))
            }
            "member_of" | "required" => self.named(atom),
            "inventory" => format!("an inventory of {}", self.word(&atom["class"])),
            "in_tree" => format!("the tree of provider {}", self.word(&atom["provider"])),
            "unit" => format!("{} in one piece{}", self.amount(atom), self.bound(atom)),
            "room" => format!("room for {}", self.amount(atom)),
            "together" => "a place for all groups at once".to_owned(),
            _ => self.word(&atom["atom"]),
        };
        let free = match atom.get("most_free") {
            Some(most) => format!(" ({} free at most)", self.word(most)),
            None => String::new(),
        };
        what + &self.group(atom) + &free
    }

    /// A condition that no remaining tree meets, as a sentence.
    fn unmet(&self, answer: &Value, stage: &Value) -> String {
        let is_one = stage["gone"] == 1;
        let trees = self.count(&stage["gone"], "remaining tree");
        let group = self.group(stage);
        match stage["atom"].as_str().unwrap_or_default() {
            "in_tree" => format!(
                "no remaining tree has provider {}",
                self.word(&stage["provider"])
            ),
            "member_of" if is_forbidden(stage) => {
                format!(
                    "each remaining tree is in {}, which is excluded{group}",
                    self.named(stage)
                )
            }
            "member_of" => format!("no remaining tree is in {}{group}", self.named(stage)),
            "root_required" if is_forbidden(stage) => {
                format!(
                    "each remaining root has the forbidden {}",
                    self.named(stage)
                )
            }
            "root_required" => format!(
                "no remaining root has {}{}",
                self.named(stage),
                self.elsewhere(stage)
            ),
            "inventory" => format!(
                "no remaining tree has {}{group}",
                self.word(&stage["class"])
            ),
            "required" => {
                let place = match stage.get("elsewhere") {
                    Some(_) => self.serving(answer, stage),
                    None => String::new(),
                };
                let elsewhere = self.elsewhere(stage);
                let name = self.named(stage);
                format!("no remaining tree has {name}{place}{group}{elsewhere}")
            }
            "forbidden" => format!(
                "each remaining tree has the forbidden {}{group}",
                self.named(stage)
            ),
            "unit" => format!(
                "{trees} {} not give {} in one piece{}{group}",
                if is_one { "does" } else { "do" },
                self.amount(stage),
                self.bound(stage)
            ),
            "room" => format!(
                "{trees} {} at most {} {} free{group}; {} asked",
                if is_one { "has" } else { "have" },
                self.word(&stage["most_free"]),
                self.word(&stage["class"]),
                are(&stage["asked"], &self.word(&stage["asked"]))
            ),
            _ if let Some(short) = stage.get("short") => self.short(short),
            _ => format!("{trees} cannot serve all groups at once"),
        }
    }

    /// A tree and its unmet conditions, as a sentence.
    pub fn near(&self, near: &Value) -> String {
        format!("{} {}", self.word(&near["root"]["name"]), self.lacks(near))
    }

    /// The unmet conditions of a tree, as predicates that follow its name.
    pub fn lacks(&self, near: &Value) -> String {
        let all = list(&near["lacks"]);
        let lacks = all.iter().take(NAMES_MAX).map(|lack| self.lack(lack));
        let lacks = lacks.collect::<Vec<_>>().join(" and ");
        match all.len().saturating_sub(NAMES_MAX) {
            0 => lacks,
            more => format!("{lacks} and {more} more"),
        }
    }

    /// An unmet condition of a tree, as a predicate that follows its name.
    fn lack(&self, lack: &Value) -> String {
        let group = self.group(lack);
        match lack["atom"].as_str().unwrap_or_default() {
            "in_tree" => format!(
                "is not the tree of provider {}",
                self.word(&lack["provider"])
            ),
            "member_of" if is_forbidden(lack) => {
                format!("is in {}, which is excluded{group}", self.named(lack))
            }
            "member_of" => format!("is not in {}{group}", self.named(lack)),
            "root_required" if is_forbidden(lack) => {
                format!("has the forbidden {} on its root", self.named(lack))
            }
            "root_required" => format!("lacks {} on its root{}", self.named(lack), self.on(lack)),
            "inventory" => format!("has no {}{group}", self.word(&lack["class"])),
            "required" => {
                let place = if lack.get("elsewhere").is_some() {
                    " where it would serve"
                } else {
                    ""
                };
                format!("lacks {}{place}{group}{}", self.named(lack), self.on(lack))
            }
            "forbidden" => format!("has the forbidden {}{group}", self.named(lack)),
            "unit" => format!(
                "does not give {} in one piece{}{group}",
                self.amount(lack),
                self.bound(lack)
            ),
            "room" if lack.get("free").is_some() => format!(
                "has {} of {} {} free{group} ({} asked)",
                self.word(&lack["free"]),
                self.word(&lack["capacity"]),
                self.word(&lack["class"]),
                are(&lack["asked"], &self.word(&lack["asked"]))
            ),
            "together" if let Some(short) = lack.get("short") => {
                format!("has {}", self.short(short))
            }
            "together" => "cannot serve all groups at once".to_owned(),
            _ => format!("lacks {}", self.condition(lack)),
        }
    }

    /// A class of which the groups need more than one host has.
    fn short(&self, short: &Value) -> String {
        let [class, most, asked] = ["class", "most", "asked"].map(|key| self.word(&short[key]));
        let asked = are(&short["asked"], &asked);
        let groups = self.groups(list(&short["groups"]));
        format!("at most {most} {class} on one host; {asked} asked ({groups})")
    }

    /// The consumers of the missing resources, as a short clause.
    fn held(&self, near: &Value) -> String {
        let holders = list(&near["holders"]);
        let Some(first) = holders.first() else {
            return String::new();
        };
        let others = holders
            .iter()
            .any(|one| one["consumer"] != first["consumer"]);
        let others = if others { " and others" } else { "" };
        format!("; held by {}{others}", self.word(&first["consumer"]))
    }

    /// Number of further consumers of the missing resources, as text.
    pub fn more_holders(&self, near: &Value) -> Option<String> {
        let more = near["holders_more"].as_u64().filter(|more| *more > 0)?;
        let noun = if more == 1 { "consumer" } else { "consumers" };
        let least = if more >= HOLDERS_COUNTED {
            "at least "
        } else {
            ""
        };
        Some(format!("{least}{more} more {noun}"))
    }

    /// Title of the list of nearly fitting trees, with their number.
    pub fn nearest_title(&self, answer: &Value) -> String {
        let gone = list(&answer["funnel"])
            .iter()
            .filter_map(|stage| stage["gone"].as_u64());
        let gone = gone.fold(0, u64::saturating_add);
        match list(&answer["nearest"]).len() as u64 {
            shown if shown < gone => {
                format!("what nearly fits (the nearest {shown} of {gone} trees)")
            }
            _ => "what nearly fits".to_owned(),
        }
    }

    /// A clause that names a provider with the trait where it does not help.
    fn elsewhere(&self, stage: &Value) -> String {
        let Some(one) = stage.get("elsewhere") else {
            return String::new();
        };
        let root = self.word(&one["root"]["name"]);
        match one["root"] == one["provider"] {
            true => format!("; {root} has it on its root"),
            false => format!("; {root} has it on {}", self.word(&one["provider"]["name"])),
        }
    }

    fn on(&self, lack: &Value) -> String {
        let Some(one) = lack.get("elsewhere") else {
            return String::new();
        };
        match one["root"] == one["provider"] {
            true => " (its root has it)".to_owned(),
            false => format!(" ({} has it)", self.word(&one["provider"]["name"])),
        }
    }

    /// The place where a trait is required: a provider of the classes of its group.
    fn serving(&self, answer: &Value, stage: &Value) -> String {
        let funnel = list(&answer["funnel"]).iter();
        let classes =
            funnel.filter(|one| one["atom"] == "inventory" && one["group"] == stage["group"]);
        let classes: Vec<_> = classes.map(|one| one["class"].clone()).collect();
        match classes.is_empty() {
            true => " where it would serve".to_owned(),
            false => format!(" where it provides {}", self.names(&classes, " or ")),
        }
    }

    fn amount(&self, atom: &Value) -> String {
        format!(
            "{}:{}",
            self.word(&atom["class"]),
            self.word(&atom["asked"])
        )
    }

    /// The limit that an amount violates.
    fn bound(&self, atom: &Value) -> String {
        let bound = pairs(&atom["bound"]).next();
        bound.map_or(String::new(), |(name, units)| {
            format!(
                " ({} is {})",
                self.word(&name.as_str().into()),
                self.word(units)
            )
        })
    }

    /// The group of a condition, or the groups from which it may be dropped.
    fn group(&self, atom: &Value) -> String {
        if let [_, _, ..] = list(&atom["groups"]) {
            return format!(" for one of {}", self.groups(list(&atom["groups"])));
        }
        match atom["group"].as_str() {
            None | Some("") => String::new(),
            _ if atom["atom"] == "together" => String::new(),
            _ => format!(" for group {}", self.word(&atom["group"])),
        }
    }

    /// Suffixes of groups; consecutive numbers become `groups 1 to 5`.
    fn groups(&self, suffixes: &[Value]) -> String {
        let numbers = suffixes.iter().map(|one| one.as_str()?.parse::<u32>().ok());
        let numbers: Option<Vec<_>> = numbers.collect();
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
        let named = |one: &Value| match one.as_str() {
            Some("") => "unnumbered".into(),
            _ => one.clone(),
        };
        let all: Vec<_> = suffixes.iter().map(named).collect();
        format!("groups {}", self.names(&all, ", "))
    }

    /// The traits or aggregates of a condition.
    fn named(&self, atom: &Value) -> String {
        let plain = |all: &Value| {
            let all = list(all).iter();
            let plain = all.map(|one| {
                one.as_str()
                    .map_or(one.clone(), |one| one.trim_start_matches('!').into())
            });
            plain.collect::<Vec<_>>()
        };
        match &*plain(&atom["traits"]) {
            [] => format!(
                "aggregate {}",
                self.names(&plain(&atom["aggregates"]), " or ")
            ),
            traits => format!("trait {}", self.names(traits, " or ")),
        }
    }

    /// Removed conditions of a relaxed query, and the number of trees with candidates then.
    pub fn less(&self, relaxation: &Value) -> String {
        let all = list(&relaxation["less"]).iter().take(NAMES_MAX);
        let all: Vec<_> = all.map(|atom| self.without(atom)).collect();
        let trees = self.count(&relaxation["trees"], "tree");
        let example = match &relaxation["example"]["name"] {
            Value::Null => String::new(),
            name => format!(", such as {}", self.word(name)),
        };
        format!("{}: {trees}{example}", all.join(" and "))
    }

    fn without(&self, atom: &Value) -> String {
        let group = self.group(atom);
        match atom["atom"].as_str().unwrap_or_default() {
            _ if atom.get("enough").is_some() => format!(
                "with {}:{} in place of {}{}{group}",
                self.word(&atom["class"]),
                self.word(&atom["enough"]),
                self.word(&atom["asked"]),
                self.bound(atom)
            ),
            "inventory" => format!("without {}{group}", self.word(&atom["class"])),
            "in_tree" => format!("without in_tree={}{group}", self.word(&atom["provider"])),
            "together" => format!("without {}", self.word(&atom["group"])),
            _ if is_forbidden(atom) => format!("with {} allowed{group}", self.named(atom)),
            "root_required" => format!("without {} on the root", self.named(atom)),
            _ => format!("without {}{group}", self.named(atom)),
        }
    }

    /// The relaxed queries; those that differ only in the group are merged.
    pub fn relaxations(&self, answer: &Value) -> Vec<Value> {
        let mut folded: Vec<(Option<Value>, Value)> = Vec::new();
        for one in list(&answer["relaxations"]) {
            let key = alike_but_for_the_group(one);
            let mut seen = folded.iter_mut();
            match seen.find(|(other, _)| key.is_some() && *other == key) {
                Some((_, first)) => {
                    if let Some(groups) = first["less"][0]["groups"].as_array_mut() {
                        groups.push(one["less"][0]["group"].clone());
                    }
                }
                None => {
                    let mut first = one.clone();
                    if key.is_some() {
                        first["less"][0]["groups"] = json!([one["less"][0]["group"]]);
                    }
                    folded.push((key, first));
                }
            }
        }
        folded.into_iter().map(|(_, one)| one).collect()
    }

    /// The stages that remove trees, and the number of other stages. A single other stage is
    /// included.
    pub fn stages<'a>(&self, answer: &'a Value) -> (Vec<&'a Value>, usize) {
        let all = list(&answer["funnel"]);
        let taking: Vec<_> = all.iter().filter(|stage| stage["gone"] != 0).collect();
        match all.len() - taking.len() {
            0 | 1 => (all.iter().collect(), 0),
            others => (taking, others),
        }
    }

    fn word(&self, value: &Value) -> String {
        (self.0)(value)
    }

    fn count(&self, number: &Value, noun: &str) -> String {
        let plural = if *number == 1 { "" } else { "s" };
        format!("{} {noun}{plural}", self.word(number))
    }

    fn names(&self, all: &[Value], between: &str) -> String {
        let first: Vec<_> = all.iter().take(NAMES_MAX).map(self.0).collect();
        match all.len().saturating_sub(NAMES_MAX) {
            0 => first.join(between),
            more => format!("{} and {more} more", first.join(between)),
        }
    }
}

/// Whether a relaxation drops the condition of a stage.
fn is_less(relaxation: &Value, stage: &Value) -> bool {
    let less = &relaxation["less"][0];
    let is_alike = ["group", "class", "traits", "aggregates", "provider"]
        .iter()
        .all(|key| less.get(key) == stage.get(key));
    less["atom"] == stage["atom"] && (is_alike || less["atom"] == "together")
}

/// The parts of a relaxation except its group and query.
fn alike_but_for_the_group(relaxation: &Value) -> Option<Value> {
    let mut less = relaxation["less"].get(0)?.as_object()?.clone();
    less.remove("group");
    let rest = ["trees", "undecided", "example"].map(|key| &relaxation[key]);
    Some(json!([less, rest]))
}

/// Whether a condition forbids its traits or aggregates.
fn is_forbidden(atom: &Value) -> bool {
    let names = list(&atom["traits"])
        .iter()
        .chain(list(&atom["aggregates"]));
    let mut names = names.filter_map(Value::as_str);
    names.next().is_some_and(|name| name.starts_with('!'))
}

/// A number with "is" or "are".
fn are(number: &Value, text: &str) -> String {
    format!("{text} {}", if *number == 1 { "is" } else { "are" })
}

/// Escapes control characters and characters that change the text direction, so that neither a
/// terminal nor a browser acts on the text.
pub fn inert(text: &str) -> String {
    let mut inert = String::new();
    for c in text.chars() {
        match acts(c) {
            true => inert.extend(c.escape_default()),
            false => inert.push(c),
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

/// Whether a terminal or a browser acts on a character: a control character, or one that changes
/// the text direction.
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
pub fn rest(value: &Value, other: &Value) -> Value {
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
