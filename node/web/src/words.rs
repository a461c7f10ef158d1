//! Formats values as text.

use placement_wire::explain::Explanation;
use placement_words::{Words, inert};
pub(crate) use placement_words::{bytes, counted};
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Maximum length of a text in characters, which bounds the size of pages.
const TEXT_MAX: usize = 300;
/// Maximum number of shown list elements.
const LIST_MAX: usize = 12;

/// The same phrases as in `placementctl explain`.
pub(crate) const WORDS: Words = Words(text);

/// A value on one line, truncated if long.
pub(crate) fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    shown(&value)
}

/// Like [`word`], for a text.
pub(crate) fn text(text: &str) -> String {
    match text {
        "" => "–".to_owned(),
        text => cut(text),
    }
}

/// Turns a phrase into a sentence.
pub(crate) fn sentence(line: &str) -> String {
    let mut rest = line.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.collect::<String>() + rest.as_str() + "."
}

/// The names in a query that do not exist, each as a sentence.
pub(crate) fn unknown_names(answer: &Explanation<'_>) -> String {
    let names = Words(text).absent_names(answer);
    let names = names.take(answer.unknown.len().min(LIST_MAX));
    let sentences: Vec<_> = names.map(|name| sentence(&name)).collect();
    sentences.join(" ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(value) => text(value),
        Value::Array(all) => first_elements(all),
        Value::Object(all) => {
            let pair = |(name, value): (&String, _)| format!("{}={}", cut(name), shown(value));
            let shown: Vec<String> = all.iter().take(LIST_MAX).map(pair).collect();
            cut(&(shown.join(" ") + &more(all.len())))
        }
    }
}

/// The first elements, and the number of further ones.
fn first_elements(all: &[Value]) -> String {
    match all {
        [] => "–".to_owned(),
        [one] => shown(one),
        all => {
            let first: Vec<String> = all.iter().take(LIST_MAX).map(shown).collect();
            first.join(", ") + &more(all.len())
        }
    }
}

fn more(count: usize) -> String {
    match count.saturating_sub(LIST_MAX) {
        0 => String::new(),
        left => format!(" and {left} more"),
    }
}

/// The beginning of a text without control characters.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", inert(&text[..end])),
        None => inert(text),
    }
}

/// Formats seconds since 1970 as RFC 3339.
pub(crate) fn date(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok();
    let moment = moment.and_then(|moment| OffsetDateTime::from_unix_timestamp(moment).ok());
    let shown = moment.and_then(|moment| moment.format(&Rfc3339).ok());
    shown.unwrap_or_else(|| seconds.to_string())
}

/// `REGION/ZONE`, or the region or the zone alone.
pub(crate) fn site(region: &str, zone: &str) -> String {
    let mut named = [region, zone].map(cut).to_vec();
    named.retain(|name| !name.is_empty());
    match named.as_slice() {
        [] => "–".to_owned(),
        named => named.join("/"),
    }
}

/// Quotes a text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A command line: the words, then each option that has a value.
pub(crate) fn command(words: &str, options: &[(&str, &str)]) -> String {
    let given = options.iter().filter(|(_, value)| !value.is_empty());
    let given = given.map(|(option, value)| match *option {
        "" => format!(" {}", quoted(value)),
        // With `=`, a value that begins with a hyphen is not an option.
        option => format!(" {option}={}", quoted(value)),
    });
    words.to_owned() + &given.collect::<String>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_bounded_words() {
        assert_eq!(word(json!("a".repeat(1000))).chars().count(), 301);
        let many: Vec<Value> = (0..20).map(|number| json!(number)).collect();
        assert_eq!(
            word(&many),
            "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"
        );
        assert_eq!(word(json!("a\u{202e}b")), "a\\u{202e}b");
        assert_eq!(word(json!({"VCPU": 2, "X": null})), "VCPU=2 X=–");
        assert_eq!(date(1_795_532_432), "2026-11-24T15:00:32Z");
        assert_eq!(date(u64::MAX), u64::MAX.to_string());
    }

    #[test]
    fn a_name_cannot_leave_its_word_of_a_command() {
        let line = command("placementctl explain", &[("", "a'; rm -rf /"), ("--x", "")]);
        assert_eq!(line, r"placementctl explain 'a'\''; rm -rf /'");
        assert_eq!(command("a", &[("--name", "-o")]), "a --name=-o");
    }
}
