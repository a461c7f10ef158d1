//! Values over several lines, as Python's `pprint` lays them out in 72 columns.

use super::json::{Json, SHOWN_MAX};
use super::python;

const COLUMNS: usize = 72;

/// How many bytes are laid out. White space makes some values much longer than they are.
const PAGE_MAX: usize = 16 * SHOWN_MAX;

/// The value over as many lines as it needs; a value too long to be shown whole is cut off.
pub(in crate::http) fn pretty(value: &Json) -> String {
    let shown = value.repr();
    if shown.len() > SHOWN_MAX {
        return shown;
    }
    let mut page = Page::default();
    page.value(value, Place::default());
    page.done()
}

/// Where on the page a value begins, and what must fit behind it.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Columns taken before it.
    indent: usize,
    /// Columns that brackets and commas take behind it.
    allowance: usize,
    /// How many values it lies in.
    level: usize,
}

impl Place {
    fn columns(self) -> usize {
        COLUMNS.saturating_sub(self.indent + self.allowance)
    }

    fn inside(self) -> Self {
        Self {
            indent: self.indent + 1,
            allowance: self.allowance + 1,
            level: self.level + 1,
        }
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn is_full(&self) -> bool {
        self.0.len() > PAGE_MAX
    }

    fn done(mut self) -> String {
        if self.is_full() {
            self.0.truncate(self.0.floor_char_boundary(PAGE_MAX));
            self.0.push_str("...");
        }
        self.0
    }

    fn value(&mut self, value: &Json, place: Place) {
        let shown = value.repr();
        if width(&shown) <= place.columns() {
            self.0.push_str(&shown);
            return;
        }
        match value {
            Json::Object(members) => {
                let members = members
                    .iter()
                    .map(|(key, value)| (Some(key.as_str()), value));
                self.parts(['{', '}'], members, place.inside());
            }
            Json::Array(items) => {
                let items = items.iter().map(|item| (None, item));
                self.parts(['[', ']'], items, place.inside());
            }
            Json::Text(text) => self.text(text, place),
            _ => self.0.push_str(&shown),
        }
    }

    fn parts<'a>(
        &mut self,
        [open, close]: [char; 2],
        parts: impl ExactSizeIterator<Item = (Option<&'a str>, &'a Json)>,
        place: Place,
    ) {
        self.0.push(open);
        let last = parts.len().saturating_sub(1);
        for (position, (key, value)) in parts.enumerate() {
            if self.is_full() {
                return;
            }
            if position > 0 {
                self.0.push(',');
                self.new_line(place.indent);
            }
            let key = key.map_or_else(String::new, |key| format!("{}: ", python::repr(key)));
            self.0.push_str(&key);
            self.value(
                value,
                Place {
                    indent: place.indent + width(&key),
                    allowance: if position == last { place.allowance } else { 1 },
                    level: place.level,
                },
            );
        }
        self.0.push(close);
    }

    /// Long text is divided behind its white space; at the top, it stands in parentheses.
    fn text(&mut self, text: &str, place: Place) {
        let at_top = place.level == 0;
        let taken = usize::from(at_top);
        let place = Place {
            indent: place.indent + taken,
            allowance: place.allowance + taken,
            ..place
        };
        let chunks = chunks(text, place);
        let brackets = at_top && chunks.len() > 1;
        if brackets {
            self.0.push('(');
        }
        for (position, chunk) in chunks.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if position > 0 {
                self.new_line(place.indent);
            }
            self.0.push_str(chunk);
        }
        if brackets {
            self.0.push(')');
        }
    }

    fn new_line(&mut self, indent: usize) {
        self.0.push('\n');
        self.0.extend(std::iter::repeat_n(' ', indent));
    }
}

fn chunks(text: &str, place: Place) -> Vec<String> {
    let columns = COLUMNS.saturating_sub(place.indent);
    let on_last = columns.saturating_sub(place.allowance);
    let mut chunks = Vec::new();
    let lines = python::lines(text);
    for (number, line) in lines.iter().enumerate() {
        let last_line = number + 1 == lines.len();
        let whole = python::repr(line);
        if width(&whole) <= if last_line { on_last } else { columns } {
            chunks.push(whole);
            continue;
        }
        let words = python::words(line);
        let mut current = String::new();
        for (position, word) in words.iter().enumerate() {
            let last = last_line && position + 1 == words.len();
            let candidate = format!("{current}{word}");
            if width(&python::repr(&candidate)) <= if last { on_last } else { columns } {
                current = candidate;
                continue;
            }
            if !current.is_empty() {
                chunks.push(python::repr(&current));
            }
            current = (*word).to_owned();
        }
        if !current.is_empty() {
            chunks.push(python::repr(&current));
        }
    }
    chunks
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(json: &str) -> String {
        pretty(&Json::parse(usize::MAX, json.as_bytes()).unwrap())
    }

    #[test]
    fn what_fits_stands_on_one_line() {
        assert_eq!(
            laid_out(r#"{"b": [1, null], "a": {}}"#),
            "{'b': [1, None], 'a': {}}"
        );
        let word = format!("\"{}\"", "w".repeat(100));
        assert_eq!(laid_out(&word), format!("'{}'", "w".repeat(100)));
    }

    #[test]
    fn members_and_items_get_lines_of_their_own() {
        let json = format!(
            r#"{{"{}": [1.0, true, {{"a": []}}], "b": {{}}}}"#,
            "k".repeat(60)
        );
        let indent = " ".repeat(65);
        assert_eq!(
            laid_out(&json),
            format!(
                "{{'{}': [1.0,\n{indent} True,\n{indent} {{'a': []}}],\n 'b': {{}}}}",
                "k".repeat(60)
            )
        );
    }

    #[test]
    fn long_text_is_divided_at_its_lines_and_words() {
        assert_eq!(
            laid_out(&format!("\"{}\"", "word ".repeat(30))),
            "('word word word word word word word word word word word word word '\n \
             'word word word word word word word word word word word word word '\n \
             'word word word word ')"
        );
        assert_eq!(
            laid_out(&format!("[\"{}\"]", "one\\nand two ".repeat(6))),
            "['one\\n'\n 'and two one\\n'\n 'and two one\\n'\n 'and two one\\n'\n \
             'and two one\\n'\n 'and two one\\n'\n 'and two ']"
        );
        assert_eq!(
            laid_out(&format!("{{\"id\": \"{}\"}}", r#"it's \"x\" "#.repeat(12))),
            "{'id': 'it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" '\n       \
             'it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" it\\'s \"x\" '}"
        );
    }

    #[test]
    fn no_value_fills_more_than_a_page() {
        let ones = vec!["1"; 1000].join(", ");
        let wide = format!(r#"{{"{}": [{ones}]}}"#, "k".repeat(1000));
        for json in [wide, format!("\"{}\"", "x".repeat(100_000))] {
            let shown = laid_out(&json);
            assert!(shown.ends_with("..."), "{shown}");
            assert!(shown.len() <= PAGE_MAX + 3);
        }
    }
}
