//! SQL's `LIKE 'X%'`, where X is a client's text: the filter of `GET /traits?name=startswith:X`.
//!
//! The reference hands X to its database unescaped, so the database decides what X means. Where
//! databases differ, this is MySQL's default (and PostgreSQL's): `\` takes the character behind it
//! literally. SQLite knows no such character. `_` is one character, `%` any number of them, and
//! letters match in both cases, as in MySQL and SQLite.
//!
//! A pattern ends with `%`, so each run of plain elements may be put as far left as it fits, and
//! nothing has to be taken back: at most one comparison per element and character.

/// The longest name that there is, in characters.
const NAME_MAX: usize = 255;

/// A pattern that names can be held against.
pub(in crate::http) struct StartsLike {
    /// What stands between the `%`s, in order; the first run may be empty. `None` if no name can
    /// match.
    runs: Option<Vec<Vec<Element>>>,
}

/// What one character of a name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Any,
    Letter(char),
}

impl Element {
    fn admits(self, c: char) -> bool {
        match self {
            Self::Any => true,
            Self::Letter(letter) => letter.eq_ignore_ascii_case(&c),
        }
    }
}

impl StartsLike {
    /// Reads `prefix` as the X of `LIKE 'X%'`. Stops reading where it has become too long for any
    /// name.
    pub(in crate::http) fn new(prefix: &str) -> Self {
        Self { runs: runs(prefix) }
    }

    /// Whether a name matches.
    pub(in crate::http) fn admits(&self, name: &str) -> bool {
        self.admits_by(name, Element::admits)
    }

    fn admits_by(&self, name: &str, mut fits: impl FnMut(Element, char) -> bool) -> bool {
        let Some((first, others)) = self.runs.as_deref().and_then(<[_]>::split_first) else {
            return false;
        };
        let name: Vec<char> = name.chars().collect();
        let mut run_fits = |run: &[Element], at: usize| {
            name.get(at..at + run.len())
                .is_some_and(|part| run.iter().zip(part).all(|(e, c)| fits(*e, *c)))
        };
        if !run_fits(first, 0) {
            return false;
        }
        let mut at = first.len();
        others.iter().all(|run| {
            let found = (at..=name.len()).find(|at| run_fits(run, *at));
            at = found.unwrap_or(at) + run.len();
            found.is_some()
        })
    }
}

fn runs(prefix: &str) -> Option<Vec<Vec<Element>>> {
    let mut runs = vec![Vec::new()];
    let mut length = 0;
    let mut characters = prefix.chars();
    while let Some(c) = characters.next() {
        let element = match c {
            '%' => {
                if runs.len() == 1 || runs.last().is_some_and(|run| !run.is_empty()) {
                    runs.push(Vec::new());
                }
                continue;
            }
            '_' => Element::Any,
            // The last `\` would take the `%` of `LIKE 'X%'` literally, and no name has one.
            '\\' => Element::Letter(characters.next()?),
            c => Element::Letter(c),
        };
        length += 1;
        if length > NAME_MAX {
            return None;
        }
        runs.last_mut().expect("there is a first run").push(element);
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn like(name: &str, prefix: &str) -> bool {
        StartsLike::new(prefix).admits(name)
    }

    /// `LIKE` as the standard words it: `%` is nothing, or one character and again `%`.
    fn naive(name: &[char], pattern: &[char]) -> bool {
        let same = |one: &char, other: &char| one.eq_ignore_ascii_case(other);
        match pattern {
            [] => name.is_empty(),
            ['%', rest @ ..] => {
                naive(name, rest) || (!name.is_empty() && naive(&name[1..], pattern))
            }
            ['_', rest @ ..] => !name.is_empty() && naive(&name[1..], rest),
            ['\\', literal, rest @ ..] | [literal, rest @ ..] => {
                name.first().is_some_and(|c| same(c, literal)) && naive(&name[1..], rest)
            }
        }
    }

    /// How many comparisons a name costs.
    fn comparisons(name: &str, prefix: &str) -> usize {
        let mut count = 0;
        StartsLike::new(prefix).admits_by(name, |element, c| {
            count += 1;
            element.admits(c)
        });
        count
    }

    #[test]
    fn a_prefix_may_hold_wildcards() {
        for (prefix, expected) in [
            ("", true),
            ("CUSTOM", true),
            ("custom_", true),
            ("C_STOM", true),
            ("C%A", true),
            ("%_A", true),
            ("%%M%%A%", true),
            ("________", true),
            ("_________", false),
            ("CUSTOM_AB", false),
            ("X", false),
            ("%X", false),
        ] {
            assert_eq!(like("CUSTOM_A", prefix), expected, "{prefix}");
        }
    }

    #[test]
    fn what_has_failed_is_not_taken_up_again_behind_a_percent() {
        for prefix in ["X%", "CUSTOM_T%", "CUSTOM_A_%", "%X%", "X%%A", "_X%_"] {
            assert!(!like("CUSTOM_A", prefix), "{prefix}");
        }
    }

    #[test]
    fn a_backslash_takes_what_follows_literally() {
        assert!(like("CUSTOM_A", "CUSTOM\\_A"));
        assert!(like("CUSTOM_A", "\\custom"));
        assert!(!like("CUSTOM_A", "CUSTO\\_"));
        assert!(!like("CUSTOM_A", "CUSTOM\\%"));
        assert!(!like("CUSTOM_A", "CUSTOM\\"));
        assert!(!like("CUSTOM_A", "CUSTOM\\\\_A"));
    }

    proptest! {
        #[test]
        fn names_match_as_the_standard_words_it(
            name in "[AB_]{0,7}",
            prefix in r"[Aab_%\\]{0,7}",
        ) {
            let pattern: Vec<char> = prefix.chars().chain(['%']).collect();
            let name_chars: Vec<char> = name.chars().collect();
            prop_assert_eq!(like(&name, &prefix), naive(&name_chars, &pattern));
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_a_short_one() {
        let long = |text: &str| text.repeat(100_000);
        let name = "A".repeat(NAME_MAX);
        for (prefix, at_most) in [
            (long("%"), 0),
            (long("%_"), 0),
            (long("A%"), 0),
            (long("A"), 0),
            (long("\\A"), 0),
            ("%A".repeat(255), 255),
            (format!("%{}B", "A".repeat(127)), 128 * 129),
            (format!("{}B", "%A".repeat(127)), 256 + 128),
        ] {
            let seen = comparisons(&name, &prefix);
            assert!(seen <= at_most, "{seen} comparisons for {:.20}…", prefix);
        }
    }

    #[test]
    fn of_many_percents_one_is_kept() {
        let runs = StartsLike::new(&"%".repeat(100_000)).runs.unwrap();
        assert_eq!(runs, [vec![], vec![]]);
    }
}
