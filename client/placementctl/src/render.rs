//! Output formats: tables, JSON, CSV.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use placement_words::{inert, inert_lines};
pub(crate) use placement_words::{list, pairs};
use serde::Serialize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// Leading characters that make a spreadsheet treat a text as a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];
/// Number of names to show before "and N more".
const NAMED_MAX: usize = 10;

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for reading; the layout may change between versions.
    #[default]
    Table,
    /// Table with all columns.
    Wide,
    /// The response of the cluster as JSON.
    Json,
    /// JSON with one line per row.
    Jsonl,
    /// All columns with a header, quoted as in RFC 4180. A text that a spreadsheet would treat as a
    /// formula is prefixed with an apostrophe.
    Csv,
    /// The first column without a header.
    Name,
}

/// Output options.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Output format.
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: Format,
    /// Columns to print in a table or in CSV, by their headers, such as `name,uuid`.
    #[arg(long, global = true, value_delimiter = ',')]
    columns: Vec<String>,
    /// Column to sort by, ascending; a leading dash sorts descending, as in `--sort=-used`.
    #[arg(long, global = true, value_name = "COLUMN")]
    pub(crate) sort: Option<String>,
    /// Maximum number of rows to print.
    #[arg(long, global = true, value_name = "ROWS")]
    pub(crate) limit: Option<usize>,
}

impl Output {
    /// Sorts, truncates and formats rows.
    pub(crate) fn rows<T: Serialize>(&self, mut rows: Rows<T>) -> anyhow::Result<String> {
        if let Some(sort) = &self.sort {
            rows.sort(sort)?;
        }
        if let Some(limit) = self.limit
            && rows.items.len() > limit
        {
            cut(&format!("the first {limit} rows"));
            rows.items.truncate(limit);
        }
        let cells = rows.cells(&self.shown(&rows)?);
        Ok(match self.output {
            Format::Table | Format::Wide => aligned(&cells),
            Format::Csv => cells.iter().map(|row| csv(row)).collect(),
            Format::Name => cells[1..].iter().map(|row| word(&row[0]) + "\n").collect(),
            Format::Json => serde_json::to_string_pretty(&cell(&rows.items))? + "\n",
            Format::Jsonl => (rows.items.iter().map(|item| format!("{}\n", cell(item)))).collect(),
        })
    }

    /// Formats a response that contains more than rows. `text` receives the table of the rows and
    /// returns the text output; JSON contains the complete response. A response without rows
    /// supports only tables and JSON.
    pub(crate) fn report<T: Serialize>(
        &self,
        answer: &impl Serialize,
        rows: Option<Rows<T>>,
        text: impl FnOnce(String) -> String,
    ) -> anyhow::Result<String> {
        Ok(match (self.output, rows) {
            (Format::Json, _) => serde_json::to_string_pretty(answer)? + "\n",
            (Format::Table | Format::Wide, Some(rows)) => text(self.rows(rows)?),
            (_, Some(rows)) => self.rows(rows)?,
            (Format::Table | Format::Wide, None) => text(String::new()),
            (Format::Jsonl, None) => serde_json::to_string(answer)? + "\n",
            _ => bail!("the response has no rows: use -o table, json or jsonl"),
        })
    }

    /// Whether all columns are shown.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self.output, Format::Wide)
    }

    /// Whether the lines of a stream are printed as received, and not formatted as text.
    pub(crate) fn is_raw(&self) -> anyhow::Result<bool> {
        match self.output {
            Format::Table | Format::Wide => Ok(false),
            Format::Jsonl => Ok(true),
            _ => bail!("streams support only -o table and -o jsonl"),
        }
    }

    fn shown<'a, T>(&self, rows: &'a Rows<T>) -> anyhow::Result<Vec<&'a Column<T>>> {
        if !self.columns.is_empty() {
            return self.columns.iter().map(|name| rows.named(name)).collect();
        }
        let is_narrow = matches!(self.output, Format::Table);
        let all = rows.columns.iter();
        Ok(all.filter(|one| !is_narrow || !one.is_wide).collect())
    }
}

/// Warns that the output is truncated.
pub(crate) fn cut(what: &str) {
    warn(&format!("only {what} are shown; use --limit to show more"));
}

/// A cell of a table: nothing, a number, a text, a list, or amounts by name.
pub(crate) type Cell = Value;

/// A value as a cell.
pub(crate) fn cell(value: impl Serialize) -> Cell {
    serde_json::to_value(value).unwrap_or_default()
}

/// A column of a table of `T`.
struct Column<T> {
    /// Lower case with underscores; names of resource classes are unchanged.
    head: Cow<'static, str>,
    /// Whether the format `table` omits it.
    is_wide: bool,
    of: Box<dyn Fn(&T) -> Cell>,
}

/// Rows of one kind, and their columns.
pub(crate) struct Rows<T> {
    columns: Vec<Column<T>>,
    items: Vec<T>,
}

/// Argument of [`Output::report`] for a response without rows.
pub(crate) const NO_ROWS: Option<Rows<()>> = None;

impl<T> Rows<T> {
    /// Rows without columns yet.
    pub(crate) fn new(items: Vec<T>) -> Self {
        let columns = Vec::new();
        Self { columns, items }
    }

    /// Adds a column that all formats show by default.
    pub(crate) fn column<C: Serialize>(
        self,
        head: impl Into<Cow<'static, str>>,
        of: impl Fn(&T) -> C + 'static,
    ) -> Self {
        self.with(head.into(), false, of)
    }

    /// Adds a column that the format `table` omits by default.
    pub(crate) fn wide<C: Serialize>(
        self,
        head: &'static str,
        of: impl Fn(&T) -> C + 'static,
    ) -> Self {
        self.with(head.into(), true, of)
    }

    fn with<C: Serialize>(
        mut self,
        head: Cow<'static, str>,
        is_wide: bool,
        of: impl Fn(&T) -> C + 'static,
    ) -> Self {
        self.columns.push(Column {
            head,
            is_wide,
            of: Box::new(move |row| cell(of(row))),
        });
        self
    }

    /// The rows in the format `table`, for a text of several parts. Output options do not apply.
    pub(crate) fn table(&self) -> String {
        let columns: Vec<_> = self.columns.iter().filter(|one| !one.is_wide).collect();
        aligned(&self.cells(&columns))
    }

    /// Finds a column by name, ignoring case, with spaces or underscores.
    fn named(&self, name: &str) -> anyhow::Result<&Column<T>> {
        let wanted = name.trim().replace(' ', "_");
        let mut all = self.columns.iter();
        let found = all.find(|one| one.head.eq_ignore_ascii_case(&wanted));
        found.with_context(|| {
            let names = self
                .columns
                .iter()
                .map(|one| &*one.head)
                .collect::<Vec<_>>()
                .join(", ");
            format!("no column {name:?}; columns: {names}")
        })
    }

    /// Sorts numbers by value and other values as text; missing values come last. The sort is
    /// stable.
    fn sort(&mut self, by: &str) -> anyhow::Result<()> {
        let column = self.named(by.trim_start_matches('-'))?;
        let cells: Vec<Cell> = self.items.iter().map(|item| (column.of)(item)).collect();
        let is_reversed = by.starts_with('-');
        let items = std::mem::take(&mut self.items);
        let mut rows: Vec<_> = cells.into_iter().zip(items).collect();
        rows.sort_by(|(one, _), (other, _)| ordered(one, other, is_reversed));
        self.items = rows.into_iter().map(|(_, item)| item).collect();
        Ok(())
    }

    /// The header and the cells of each row.
    fn cells(&self, columns: &[&Column<T>]) -> Vec<Vec<Cell>> {
        let header = columns.iter().map(|column| cell(&column.head)).collect();
        let cells = |item: &T| columns.iter().map(|column| (column.of)(item)).collect();
        let mut all = vec![header];
        all.extend(self.items.iter().map(cells));
        all
    }
}

fn ordered(one: &Cell, other: &Cell, is_reversed: bool) -> Ordering {
    let order = match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        _ => plain(one).cmp(&plain(other)),
    };
    let missing = one.is_null().cmp(&other.is_null());
    missing.then(if is_reversed { order.reverse() } else { order })
}

/// A value as raw text: lists with commas, amounts as `VCPU=2`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(all) => {
            let pair = |(key, value)| format!("{key}={}", plain(value));
            all.iter().map(pair).collect::<Vec<_>>().join(" ")
        }
    }
}

/// A value as text on one line, with escaped control characters. A dash if it is empty.
pub(crate) fn word(value: impl Serialize) -> String {
    text(&plain(&cell(value)))
}

/// Like [`word`], for a text.
pub(crate) fn text(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        text => inert(text),
    }
}

/// The first names of a list, and the number of further ones.
pub(crate) fn first_names<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = all.len();
    let names: Vec<_> = all.take(NAMED_MAX).map(text).collect();
    match count.saturating_sub(NAMED_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A table whose first row is the header. Each column is as wide as its widest cell, and columns of
/// numbers are right-aligned.
fn aligned(rows: &[Vec<Value>]) -> String {
    let mut lines = vec![String::new(); rows.len()];
    for at in 0..rows[0].len() {
        let below = rows[1..].iter().map(|row| &row[at]);
        let mut values = below.filter(|cell| !cell.is_null()).peekable();
        let is_number = values.peek().is_some() && values.all(Value::is_number);
        let mut cells: Vec<_> = rows.iter().map(|row| word(&row[at])).collect();
        // Names of resource classes are not changed.
        if !cells[0].contains(char::is_uppercase) {
            cells[0] = cells[0].to_uppercase().replace('_', " ");
        }
        let width = cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(&cells) {
            let blanks = " ".repeat(width - cell.width());
            *line += &if is_number {
                format!("{blanks}{cell}  ")
            } else {
                format!("{cell}{blanks}  ")
            };
        }
    }
    let ended = lines.iter().map(|line| line.trim_end().to_owned() + "\n");
    ended.collect()
}

/// A CSV line (RFC 4180) with its newline. A text that looks like a formula is prefixed with an
/// apostrophe.
fn csv(row: &[Value]) -> String {
    let text = |value: &Value| match plain(value) {
        cell if !value.is_number() && cell.starts_with(FORMULA) => format!("'{cell}"),
        cell => cell,
    };
    let quoted = |cell: String| {
        if cell.contains([',', '"', '\r', '\n']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    };
    let cells: Vec<_> = row.iter().map(text).map(quoted).collect();
    cells.join(",") + "\n"
}

/// Writes to standard output. A closed pipe, as by `head`, is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    is_printed(text.as_bytes()).map(drop)
}

/// Writes to standard output; on a terminal, control characters are escaped. Returns `false` if the
/// reader has closed the pipe.
pub(crate) fn is_printed(text: &[u8]) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() {
        Cow::from(inert_lines(&String::from_utf8_lossy(text)).into_bytes())
    } else {
        Cow::from(text)
    };
    match stdout.write_all(&text).and(stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written
            .context("cannot write to standard output")
            .map(|()| true),
    }
}

/// Prints a message to standard error.
pub(crate) fn warn(text: &str) {
    eprintln!("placementctl: {}", inert_lines(text));
}

#[cfg(test)]
impl Format {
    /// Rows in this format.
    pub(crate) fn printed<T: Serialize>(self, rows: Rows<T>) -> String {
        let output = Output {
            output: self,
            ..Output::default()
        };
        output.rows(rows).expect("no column is named")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Host {
        name: &'static str,
        used: Option<u64>,
        held: Value,
    }

    fn rows() -> Rows<Host> {
        let host = |name, used, held| Host { name, used, held };
        let items = vec![
            host("計算, \"1\"", Some(9), json!({"MEMORY_MB": 8, "VCPU": 2})),
            host("host\u{1b}[2J", Some(10), Value::Null),
            host("cafe\u{301}\nx", None, json!(["A", "B"])),
        ];
        Rows::new(items)
            .column("name", |host| host.name)
            .column("used", |host| host.used)
            .wide("resources", |host| host.held.clone())
    }

    fn printed(format: Format, columns: &str, sort: &str, limit: Option<usize>) -> String {
        let output = Output {
            output: format,
            columns: columns.split_terminator(',').map(str::to_owned).collect(),
            sort: Some(sort.to_owned()).filter(|sort| !sort.is_empty()),
            limit,
        };
        output.rows(rows()).unwrap()
    }

    #[test]
    fn columns_are_aligned_by_display_width() {
        assert_eq!(
            printed(Format::Table, "", "", None),
            "NAME           USED\n\
             計算, \"1\"         9\n\
             host\\u{1b}[2J    10\n\
             cafe\u{301}\\nx           -\n"
        );
        let wide = printed(Format::Wide, "", "", Some(1));
        assert_eq!(
            wide.lines().nth(1),
            Some("計算, \"1\"     9  MEMORY_MB=8 VCPU=2")
        );
    }

    #[test]
    fn csv_has_no_formulas() {
        let cells = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "x=1", "1"].map(Value::from);
        assert_eq!(csv(&cells), "'=1+1,'+1,'-1,'@x,'\tx,\"'\rx\",x=1,1\n");
        assert_eq!(
            csv(&[json!(-1), json!(null), json!(["=1", "2"])]),
            "-1,,\"'=1, 2\"\n"
        );
    }

    #[test]
    fn csv_keeps_cells_unescaped() {
        assert_eq!(
            printed(Format::Csv, "", "", None),
            "name,used,resources\n\"計算, \"\"1\"\"\",9,MEMORY_MB=8 VCPU=2\nhost\u{1b}[2J,10,\n\
             \"cafe\u{301}\nx\",,\"A, B\"\n"
        );
    }

    #[test]
    fn rows_are_sorted_by_number_and_cut_afterwards() {
        let names = |sort| printed(Format::Name, "used", sort, Some(2));
        assert_eq!(names("used"), "9\n10\n");
        assert_eq!(names("-USED"), "10\n9\n");
        assert_eq!(
            printed(Format::Name, "", "name", Some(1)),
            "cafe\u{301}\\nx\n"
        );
    }

    #[test]
    fn json_is_the_unchanged_response() {
        let lines = printed(Format::Jsonl, "", "name", Some(1));
        assert_eq!(
            lines,
            "{\"held\":[\"A\",\"B\"],\"name\":\"cafe\u{301}\\nx\",\"used\":null}\n"
        );
        let whole: Value = serde_json::from_str(&printed(Format::Json, "", "", None)).unwrap();
        assert_eq!(list(&whole).len(), 3);
    }

    #[test]
    fn unknown_columns_and_formats_without_rows_are_refused() {
        let output = |format, column: &str| Output {
            output: format,
            columns: vec![column.to_owned()],
            ..Output::default()
        };
        let error = output(Format::Csv, "size").rows(rows()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no column \"size\"; columns: name, used, resources"
        );
        let text = |_| "text".to_owned();
        let answer = json!({ "a": 1 });
        let output = |format| Output {
            output: format,
            ..Output::default()
        };
        assert!(output(Format::Csv).report(&answer, NO_ROWS, text).is_err());
        assert_eq!(
            output(Format::Wide).report(&answer, NO_ROWS, text).unwrap(),
            "text"
        );
        assert_eq!(
            output(Format::Jsonl)
                .report(&answer, NO_ROWS, text)
                .unwrap(),
            "{\"a\":1}\n"
        );
    }
}
