//! Formats JSON values as text.

use placement_words::inert;
pub(crate) use placement_words::{bytes, list, pairs};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Maximum length of a text in characters, which bounds the size of pages.
const TEXT_MAX: usize = 300;
/// Maximum number of shown list elements.
const LIST_MAX: usize = 12;

/// The string; empty for other values.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A value on one line, truncated if long.
pub(crate) fn word(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.is_empty() => "–".to_owned(),
        Value::String(text) => cut(text),
        Value::Array(all) => some(all),
        Value::Object(all) => {
            let pair = |(name, value): (&String, _)| format!("{}={}", cut(name), word(value));
            let shown: Vec<String> = all.iter().take(LIST_MAX).map(pair).collect();
            cut(&(shown.join(" ") + &more(all.len())))
        }
    }
}

/// The first elements, and the number of further ones.
pub(crate) fn some(all: &[Value]) -> String {
    match all {
        [] => "–".to_owned(),
        [one] => word(one),
        all => {
            let shown: Vec<String> = all.iter().take(LIST_MAX).map(word).collect();
            shown.join(", ") + &more(all.len())
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

/// `1 tree`, `2 trees`.
pub(crate) fn count(value: &Value, noun: &str) -> String {
    let number = value.as_u64().unwrap_or_default();
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats seconds since 1970 as RFC 3339.
pub(crate) fn date(value: &Value) -> String {
    let moment = value.as_i64().map(OffsetDateTime::from_unix_timestamp);
    let moment = moment.and_then(Result::ok);
    let shown = moment.and_then(|moment| moment.format(&Rfc3339).ok());
    shown.unwrap_or_else(|| word(value))
}

/// `REGION/ZONE`, or the configured one of them.
pub(crate) fn site(place: &Value) -> String {
    let mut named = [&place["region"], &place["zone"]]
        .map(|name| cut(text(name)))
        .to_vec();
    named.retain(|name| !name.is_empty());
    match named.as_slice() {
        [] => "–".to_owned(),
        named => named.join("/"),
    }
}

/// Quotes a text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A command line: its words, then the options with a value.
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
        assert_eq!(word(&json!("a".repeat(1000))).chars().count(), 301);
        let many: Vec<Value> = (0..20).map(|number| json!(number)).collect();
        assert_eq!(
            some(&many),
            "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"
        );
        assert_eq!(word(&json!("a\u{202e}b")), "a\\u{202e}b");
        assert_eq!(word(&json!({"VCPU": 2, "X": null})), "VCPU=2 X=–");
        assert_eq!(date(&json!(1_795_532_432)), "2026-11-24T15:00:32Z");
        assert_eq!(date(&json!(i64::MAX)), i64::MAX.to_string());
    }

    #[test]
    fn a_name_cannot_leave_its_word_of_a_command() {
        let line = command("placementctl explain", &[("", "a'; rm -rf /"), ("--x", "")]);
        assert_eq!(line, r"placementctl explain 'a'\''; rm -rf /'");
        assert_eq!(command("a", &[("--name", "-o")]), "a --name=-o");
    }
}
