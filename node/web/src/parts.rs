//! Building blocks of pages. maud escapes everything in parentheses.

use maud::{Markup, html};
use placement_wire::Capacity;
use serde::Serialize;

use crate::words::word;

/// Maximum number of rows on a page.
pub(crate) const ROWS_MAX: usize = 100;

/// Remaining size of the rows of a page, in bytes.
pub(crate) struct RowBudget(pub(crate) usize);

impl Default for RowBudget {
    fn default() -> Self {
        Self(90 * 1024)
    }
}

impl RowBudget {
    /// The first rows that fit into the remaining size.
    pub(crate) fn take(&mut self, rows: impl IntoIterator<Item = Markup>) -> Vec<Markup> {
        let mut taken = Vec::new();
        for row in rows.into_iter().take(ROWS_MAX) {
            match self.0.checked_sub(row.0.len()) {
                Some(left) => self.0 = left,
                None => break,
            }
            taken.push(row);
        }
        taken
    }
}

/// A row; the first cell is its header.
pub(crate) fn row(cells: &[Markup]) -> Markup {
    html! {
        tr {
            @for (at, cell) in cells.iter().enumerate() {
                @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
            }
        }
    }
}

/// The columns of a table; a row is a `T`.
pub(crate) struct Table<'a, T> {
    columns: Vec<Column<'a, T>>,
}

struct Column<'a, T> {
    head: &'static str,
    of: Box<dyn Fn(&T) -> Markup + Send + 'a>,
}

impl<'a, T> Table<'a, T> {
    /// A table without columns.
    pub(crate) fn new() -> Self {
        let columns = Vec::new();
        Self { columns }
    }

    pub(crate) fn column(
        mut self,
        head: &'static str,
        of: impl Fn(&T) -> Markup + Send + 'a,
    ) -> Self {
        let of = Box::new(of);
        self.columns.push(Column { head, of });
        self
    }

    pub(crate) fn row(&self, one: &T) -> Markup {
        let cells: Vec<_> = self.columns.iter().map(|column| (column.of)(one)).collect();
        row(&cells)
    }

    /// The table with these rows, or a line of text if there are no rows.
    pub(crate) fn with(&self, caption: &str, rows: &[Markup]) -> Markup {
        html! {
            @if rows.is_empty() {
                p { (caption) ": none found." }
            } @else {
                // Scrolls horizontally on a narrow screen, also by keyboard.
                div class="wide" tabindex="0" role="region" aria-label=(caption) {
                    table {
                        caption { (caption) }
                        thead { tr { @for one in &self.columns { th scope="col" { (one.head) } } } }
                        tbody { @for row in rows { (row) } }
                    }
                }
            }
        }
    }
}

/// A note that a list is truncated.
pub(crate) fn cut_to(shown: usize, all: usize) -> Markup {
    html! { @if shown < all { p { "Showing the first " (shown) " of " (all) "." } } }
}

/// A value as text.
pub(crate) fn cell(value: impl Serialize) -> Markup {
    html! { (word(value)) }
}

/// Values as a list of names and values.
pub(crate) fn facts(all: &[(&str, String)]) -> Markup {
    html! { dl { @for (name, value) in all { dt { (name) } dd { (value) } } } }
}

/// A link whose text is a value.
pub(crate) fn link(href: &str, text: impl Serialize) -> Markup {
    html! { a href=(href) { (word(text)) } }
}

/// A usage bar; text browsers show its numbers.
pub(crate) fn bar(what: &str, used: u64, capacity: Capacity) -> Markup {
    let (amount, most) = (used as f64, capacity.as_f64());
    let label = format!("{what}: {} of {}", used, word(capacity));
    html! {
        meter min="0" max=(most.max(1.0)) high=(most.max(1.0) * 0.9) value=(amount.min(most.max(1.0)))
            aria-label=(label) { (label) }
        @if amount > most { strong { " over capacity" } }
    }
}

/// A field of a form: parameter, label, example, and value.
pub(crate) type Field<'a> = (&'a str, &'a str, &'a str, &'a str);

pub(crate) fn form(action: &str, fields: &[Field<'_>]) -> Markup {
    html! {
        form method="get" action=(action) {
            @for (name, label, example, value) in fields {
                label { (label) input name=(name) value=(value) placeholder=(example); }
            }
            button { "Search" }
        }
    }
}

/// Links to the previous and the next page.
pub(crate) fn pager(before: Option<String>, after: Option<String>) -> Markup {
    html! {
        @if before.is_some() || after.is_some() {
            nav aria-label="Pages" class="pages" {
                @if let Some(href) = before { a rel="prev" href=(href) { "Previous page" } " " }
                @if let Some(href) = after { a rel="next" href=(href) { "Next page" } }
            }
        }
    }
}

/// Links to the previous and the next page of a list that starts at row `from`; a page is addressed
/// by its first row. `left`: number of rows from `from` on.
pub(crate) fn pages(
    from: usize,
    shown: usize,
    left: usize,
    href: impl Fn(&str) -> String,
) -> Markup {
    let before = (from > 0).then(|| href(&from.saturating_sub(ROWS_MAX).to_string()));
    let end = from.saturating_add(shown);
    let after = (0 < shown && shown < left).then(|| href(&end.to_string()));
    html! {
        @if shown > 0 { p { "Rows " (from + 1) " to " (end) " of " (from + left) "." } }
        (pager(before, after))
    }
}
