//! Removes the parts of a command's output that differ from run to run.

use regex_lite::Regex;

/// Patterns of volatile parts and their replacements. Names and amounts stay.
const VOLATILE: [(&str, &str); 8] = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"\d{4}-\d\d-\d\d[T ][0-9:.]+Z?", "TIME"),
    (r"(state|--as-of) \d+\.\d+", "TOKEN"),
    (r"http://127.0.0.1:\d+/\?key=\w+", "ADDRESS"),
    // The leader differs, and so do the rows that show it.
    (r"leader node \d", "leader node N"),
    (r"term \d+|feature level \d", "N"),
    (r"\b(leader|follower)\b", "ROLE"),
    // Column widths depend on the content.
    (r" +", " "),
];

/// Replaces the volatile parts of a text.
pub(super) fn normalize(text: &str) -> String {
    VOLATILE
        .iter()
        .fold(text.to_owned(), |text, (pattern, word)| {
            let pattern = Regex::new(pattern).expect("a pattern of this list is valid");
            pattern.replace_all(&text, *word).into_owned()
        })
}
