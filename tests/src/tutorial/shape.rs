//! What two runs of a command have in common.

use regex_lite::Regex;

/// What differs from run to run, and what stands for it. Names and amounts stay.
const VOLATILE: [(&str, &str); 8] = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"\d{4}-\d\d-\d\d[T ][0-9:.]+Z?", "TIME"),
    (r"state \d+\.\d+", "TOKEN"),
    (r"http://127.0.0.1:\d+/\?key=\w+", "ADDRESS"),
    // Who leads, and which rows say so.
    (r"leader node \d", "leader node N"),
    (r"term \d+|feature level \d", "N"),
    (r"\b(leader|follower)\b", "ROLE"),
    // Columns are as wide as what stands in them.
    (r" +", " "),
];

/// A text without what is volatile in it.
pub(super) fn of(text: &str) -> String {
    VOLATILE
        .iter()
        .fold(text.to_owned(), |text, (pattern, word)| {
            let pattern = Regex::new(pattern).expect("a pattern of this list is valid");
            pattern.replace_all(&text, *word).into_owned()
        })
}
