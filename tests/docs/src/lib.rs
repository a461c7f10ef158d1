//! The form of Markdown pages, and the comparison of pages of `docs/` that are generated from code
//! with the committed files.

use std::path::Path;

/// Maximum number of columns of a line of prose.
pub const COLUMNS_MAX: usize = 160;

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 4] = ["e.g.", "i.e.", "etc.", "vs."];

/// Whether tests write the pages instead of comparing them, that is, `PLACEMENT_WRITE_DOCS` is set.
/// `scripts/documents` sets it for all tests with the name `page_is_up_to_date`.
pub fn are_written() -> bool {
    std::env::var_os("PLACEMENT_WRITE_DOCS").is_some()
}

/// Compares the committed page with the generated one, in the form that [`with_line_breaks`] gives
/// it.
///
/// # Panics
/// If the pages differ.
pub fn assert_kept(name: &str, page: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(name);
    let page = with_line_breaks(page);
    let page = format!("<!-- `scripts/documents` writes this page -->\n\n{page}");
    if are_written() {
        std::fs::write(&path, &page).expect("docs/ is part of the repository");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/{name} is out of date: run scripts/documents and review the difference"
    );
}

/// The code blocks of a document in this language.
pub fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let parts = document.split(fence.as_str()).skip(1);
    parts
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect()
}

/// Whether a line is code, a row of a table, a heading or empty. `in_fence` is the state of the
/// fence around code, which this function updates.
fn is_verbatim(line: &str, in_fence: &mut bool) -> bool {
    let text = line.trim_start();
    if text.starts_with("```") {
        *in_fence = !*in_fence;
        return true;
    }
    *in_fence || text.is_empty() || text.starts_with(['|', '#']) || line.starts_with("    ")
}

/// Splits a line into the mark of a list item, with its indentation, and the text.
fn item(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mark = match digits {
        0 if text.starts_with("* ") || text.starts_with("- ") => 2,
        1.. if text[digits..].starts_with(". ") => digits + 2,
        _ => return None,
    };
    Some(line.split_at(line.len() - text.len() + mark))
}

/// Lines of prose of a page, with their numbers, without indentation and marks of list items.
pub fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    let lines = (1..).zip(page.lines());
    let lines = lines.filter(move |(_, line)| !is_verbatim(line, &mut in_fence));
    lines.map(|(number, line)| (number, item(line).map_or(line, |(_, text)| text).trim()))
}

/// Splits a paragraph into its sentences. A sentence ends before a word that does not begin with a
/// lower-case letter. Code is not split, and bold text at the beginning is a label.
pub fn sentences(paragraph: &str) -> Vec<&str> {
    let (mut sentences, mut start, mut in_code) = (Vec::new(), 0, false);
    for (at, c) in paragraph.char_indices() {
        in_code ^= c == '`';
        if in_code || !matches!(c, '.' | '?' | '!') {
            continue;
        }
        let (before, after) = paragraph.split_at(at + 1);
        let next = after.trim_start_matches([')', '"', '_']);
        let Some(word) = next.strip_prefix(' ') else {
            continue;
        };
        let is_abbreviated = ABBREVIATIONS.iter().any(|short| before.ends_with(short));
        if !is_abbreviated && !word.starts_with(|c: char| c.is_lowercase()) {
            let end = paragraph.len() - next.len();
            sentences.push(paragraph[start..end].trim());
            start = end;
        }
    }
    sentences.push(paragraph[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// A paragraph or an item of a list: the mark of the item and the text.
#[derive(Default)]
struct Paragraph {
    mark: String,
    text: String,
}

impl Paragraph {
    /// Appends the paragraph to a page: a line for each sentence, and more for a long sentence.
    fn write(self, page: &mut String) {
        let indentation = " ".repeat(self.mark.len());
        let mut prefix = self.mark;
        for sentence in sentences(&self.text) {
            let mut line = std::mem::replace(&mut prefix, indentation.clone());
            for (number, word) in sentence.split(' ').enumerate() {
                let columns = line.chars().count() + 1 + word.chars().count();
                if number > 0 && columns > COLUMNS_MAX {
                    *page += &format!("{line}\n");
                    line.clone_from(&indentation);
                } else if number > 0 {
                    line += " ";
                }
                line += word;
            }
            *page += &format!("{line}\n");
        }
    }
}

/// A page whose prose has one sentence per line and no line that is too long.
pub fn with_line_breaks(page: &str) -> String {
    let (mut broken, mut in_fence) = (String::new(), false);
    let mut open: Option<Paragraph> = None;
    for line in page.lines() {
        let is_verbatim = is_verbatim(line, &mut in_fence);
        let item = item(line).filter(|_| !is_verbatim);
        if (is_verbatim || item.is_some())
            && let Some(paragraph) = open.take()
        {
            paragraph.write(&mut broken);
        }
        if is_verbatim {
            broken += &format!("{line}\n");
        } else if let Some((mark, text)) = item {
            open = Some(Paragraph {
                mark: mark.to_owned(),
                text: text.to_owned(),
            });
        } else {
            let paragraph = open.get_or_insert_default();
            let space = if paragraph.text.is_empty() { "" } else { " " };
            paragraph.text += space;
            paragraph.text += line.trim();
        }
    }
    if let Some(paragraph) = open {
        paragraph.write(&mut broken);
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_split_outside_of_code_and_labels() {
        for (paragraph, parts) in [
            ("One. Two? Three! `four`. 0: five.", 5),
            ("One (two). \"Three.\" Four", 3),
            ("A file, e.g. `a.b`, with `C. D` and 1.5 s. of which", 1),
            ("**The answer.** For a route", 1),
            ("", 0),
        ] {
            assert_eq!(sentences(paragraph).len(), parts, "{paragraph}");
        }
    }

    #[test]
    fn prose_is_broken_and_the_rest_stays() {
        let page = "# A. B\n\nOne.\nTwo `a\nb`. Three.\n\n* Four. Five\n  six.\n1. Seven. Eight.\n\n\
            | A. B |\n\n    A. B\n\n```text\nA. B\n```\n";
        let broken = "# A. B\n\nOne.\nTwo `a b`.\nThree.\n\n* Four.\n  Five six.\n1. Seven.\n   Eight.\n\n\
            | A. B |\n\n    A. B\n\n```text\nA. B\n```\n";
        assert_eq!(with_line_breaks(page), broken);
        assert_eq!(with_line_breaks(broken), broken);
        let long = with_line_breaks(&format!("* {}.\n", "word ".repeat(60).trim()));
        assert_eq!(long.lines().count(), 2);
        for line in long.lines() {
            assert!(line.chars().count() <= COLUMNS_MAX, "{line}");
            assert!(line.starts_with("* ") || line.starts_with("  word"));
        }
        let lines: Vec<_> = prose(broken).collect();
        assert_eq!(lines[..2], [(3, "One."), (4, "Two `a b`.")]);
        assert_eq!(lines[3..5], [(7, "Four."), (8, "Five six.")]);
        assert_eq!(lines.len(), 7);
    }
}
