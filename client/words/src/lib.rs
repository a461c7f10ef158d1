//! What `placementctl` and the pages of a node have in common: the answer of `GET /placementd/v1/explain` in the words of
//! people, and JSON for them.

use serde_json::Value;

/// So many names of one list are written.
const NAMES_MAX: usize = 10;

/// Writes explanations, and each value in them by this function: it leaves nothing in a value that a terminal or a page
/// would act on, and has a sign for what is missing.
pub struct Words(pub fn(&Value) -> String);

impl Words {
    /// The cause in one line: a name that no provider has, what would help if it were not asked for, or else the condition
    /// that no tree meets of those that meet all before it.
    pub fn cause(&self, answer: &Value) -> String {
        let verdict = answer["verdict"].as_str();
        let names = list(&answer["unknown"])
            .iter()
            .map(|name| self.unknown(name));
        let unused = list(&answer["unused"]).iter().map(|name| self.unused(name));
        let name = names.chain(unused).next();
        let mut steps = list(&answer["funnel"]).iter();
        let relaxation = list(&answer["relaxations"]).first();
        let trees = self.count(&answer["trees"], "tree");
        let what = match (verdict, name, steps.find(|step| step["left"] == 0)) {
            (Some("some"), ..) => {
                format!(
                    "{} of {trees} with candidates",
                    self.word(&answer["with_candidates"])
                )
            }
            (_, Some(name), _) => format!("no candidates: {name}"),
            (Some("undecided"), ..) => format!("undecided: no candidates on {trees} so far"),
            _ if let Some(one) = relaxation => {
                format!("no candidates; there are some {}", self.less(one))
            }
            (.., Some(step)) => format!(
                "no candidates: no tree has {}; {} of {trees} met all before it",
                self.condition(step),
                self.word(&step["gone"])
            ),
            _ => format!("no candidates on {trees}"),
        };
        match answer["undecided"].as_u64() {
            None | Some(0) => what,
            _ => {
                let undecided = self.count(&answer["undecided"], "tree");
                format!("{what} ({undecided} not searched to the end)")
            }
        }
    }

    /// A name that does not exist.
    pub fn unknown(&self, name: &Value) -> String {
        let what = self.absent(name);
        match list(&name["nearest"]) {
            [] => format!("there is no {what}"),
            nearest => format!("there is no {what}; similar: {}", self.names(nearest, ", ")),
        }
    }

    /// A name that exists, and no provider has.
    pub fn unused(&self, name: &Value) -> String {
        format!("no provider has the {}", self.absent(name))
    }

    fn absent(&self, name: &Value) -> String {
        let what = match (name.get("class"), name.get("trait")) {
            (Some(_), _) => ("resource class", "class"),
            (_, Some(_)) => ("trait", "trait"),
            _ => ("aggregate", "aggregate"),
        };
        format!("{} {}", what.0, self.word(&name[what.1]))
    }

    /// One condition of a query, as what a tree has that meets it.
    pub fn condition(&self, atom: &Value) -> String {
        let (class, asked) = (self.word(&atom["class"]), self.word(&atom["asked"]));
        let what = match atom["atom"].as_str().unwrap_or_default() {
            "root_required" => format!("a root with {}", self.named(atom)),
            "member_of" | "required" => self.named(atom),
            "forbidden" => format!("a provider without the forbidden {}", self.named(atom)),
            "inventory" => format!("an inventory of {class}"),
            "in_tree" => format!("the provider {}", self.word(&atom["provider"])),
            "unit" => format!("units for {class}:{asked} (min_unit, max_unit, step_size)"),
            "room" => format!("room for {class}:{asked}"),
            "together" if atom["group"] != "" => return self.word(&atom["group"]),
            "together" => "a place for all groups and resources together".to_owned(),
            _ => self.word(&atom["atom"]),
        };
        let group = match atom["group"].as_str() {
            None | Some("") => String::new(),
            _ => format!(" for group {}", self.word(&atom["group"])),
        };
        let free = match (atom.get("most_free"), atom.get("free")) {
            (Some(most), _) => format!(" ({} free at most)", self.word(most)),
            (_, Some(free)) => format!(" ({} free)", self.word(free)),
            _ => String::new(),
        };
        what + &group + &free
    }

    /// The traits or aggregates of a condition.
    fn named(&self, atom: &Value) -> String {
        match list(&atom["traits"]) {
            [] => format!(
                "aggregate {}",
                self.names(list(&atom["aggregates"]), " or ")
            ),
            traits => format!("trait {}", self.names(traits, " or ")),
        }
    }

    /// What a query does without, and on how many trees it has candidates then.
    pub fn less(&self, relaxation: &Value) -> String {
        let less = |atom: &Value| {
            let [class, asked, enough] =
                ["class", "asked", "enough"].map(|key| self.word(&atom[key]));
            let unit = " (min_unit, max_unit, step_size)";
            match (atom.get("enough"), atom["atom"].as_str()) {
                (Some(_), Some("unit")) => {
                    format!("with {class}:{enough} in place of {asked}{unit}")
                }
                (Some(_), _) => format!("with {class}:{enough} in place of {asked}"),
                (_, Some("forbidden")) => format!("with {} allowed", self.named(atom)),
                _ => format!("without asking for {}", self.condition(atom)),
            }
        };
        let all: Vec<_> = list(&relaxation["less"])
            .iter()
            .take(NAMES_MAX)
            .map(less)
            .collect();
        let trees = self.count(&relaxation["trees"], "tree");
        let example = match &relaxation["example"]["name"] {
            Value::Null => String::new(),
            name => format!(", such as {}", self.word(name)),
        };
        format!("{}: {trees}{example}", all.join(" and "))
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

/// A text on which neither a terminal nor a browser acts: what controls the one, and what turns the direction of writing in
/// both, is written as its number.
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

/// A text of several lines on which a terminal does not act. The escapes are those of JSON: a document in JSON has the same
/// value afterwards.
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

/// Whether a terminal or a browser acts on a character: it is a control character, or turns the direction of writing.
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

/// A value without the members that another one has alike.
pub fn rest(value: &Value, other: &Value) -> Value {
    let mut rest = value.clone();
    if let Value::Object(members) = &mut rest {
        members.retain(|name, member| other.get(name) != Some(member));
    }
    rest
}

/// A number of bytes with the largest unit that leaves something before the point.
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
    fn nothing_turns_the_direction_of_writing() {
        assert_eq!(
            inert("a\u{202e}b\u{2066}\n\u{1b}[2J計"),
            "a\\u{202e}b\\u{2066}\\n\\u{1b}[2J計"
        );
    }

    #[test]
    fn a_document_that_a_terminal_does_not_act_on_has_the_same_value() {
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
