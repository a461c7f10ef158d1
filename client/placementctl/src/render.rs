//! Output formats: tables, JSON, YAML, CSV.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::iter::once;

use anyhow::Context;
use clap::{Args, ValueEnum};
use placement_words::{amount, inert, inert_lines};
pub(crate) use placement_words::{list, pairs};
use serde::Serialize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use yaml_rust2::{Yaml, YamlEmitter};

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
    /// The response of the cluster as YAML.
    Yaml,
    /// All columns with a header, quoted as in RFC 4180. A text that a spreadsheet would treat as a
    /// formula is prefixed with an apostrophe.
    Csv,
    /// The first column without a header.
    Name,
}

impl Format {
    fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
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
    /// Column to sort by, ascending; a leading dash sorts descending, as in `--sort -used`.
    #[arg(long, global = true, value_name = "COLUMN", allow_hyphen_values = true)]
    pub(crate) sort: Option<String>,
    /// Maximum number of rows to print.
    #[arg(long, global = true, value_name = "ROWS")]
    pub(crate) limit: Option<usize>,
}

impl Output {
    /// Sorts, truncates and formats rows.
    pub(crate) fn rows<T: Serialize>(&self, mut rows: Rows<T>) -> anyhow::Result<String> {
        if rows.items.is_empty()
            && self.output.is_table()
            && let Some(text) = &rows.if_none
        {
            warn(text);
            return Ok(String::new());
        }
        // Columns may depend on the rows.
        if let Some(sort) = &self.sort
            && !rows.items.is_empty()
        {
            rows.sort(sort)?;
        }
        if let Some(limit) = self.limit
            && rows.items.len() > limit
        {
            cut(&format!("the first {limit} rows"));
            rows.items.truncate(limit);
        }
        let shown = self.shown(&rows)?;
        let cells = || rows.cells(&shown);
        Ok(match self.output {
            Format::Table | Format::Wide => rows.aligned(&shown),
            Format::Csv => cells().iter().map(|row| csv(row)).collect(),
            Format::Name => (cells()[1..].iter().map(|row| word(&row[0]) + "\n")).collect(),
            Format::Json => serde_json::to_string_pretty(&cell(&rows.items))? + "\n",
            Format::Yaml => yaml(&cell(&rows.items))?,
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
            (Format::Yaml, _) => yaml(&cell(answer))?,
            (Format::Table | Format::Wide, Some(rows)) => text(self.rows(rows)?),
            (_, Some(rows)) => self.rows(rows)?,
            (Format::Table | Format::Wide, None) => text(String::new()),
            (Format::Jsonl, None) => serde_json::to_string(answer)? + "\n",
            _ => {
                let reason = "the response has no rows: use -o table, json, jsonl or yaml";
                return Err(Misuse(reason.to_owned()).into());
            }
        })
    }

    /// Checks the columns to print and to sort by, before an effect whose result is printed.
    ///
    /// # Errors
    /// The rows do not have one of these columns.
    pub(crate) fn check_columns<T>(&self, rows: &Rows<T>) -> anyhow::Result<()> {
        self.shown(rows)?;
        if let Some(sort) = &self.sort {
            rows.named(sort.trim_start_matches('-'))?;
        }
        Ok(())
    }

    /// Whether the output is a table.
    pub(crate) fn is_table(&self) -> bool {
        self.output.is_table()
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
            _ => Err(Misuse("streams support only -o table and -o jsonl".to_owned()).into()),
        }
    }

    fn shown<'a, T>(&self, rows: &'a Rows<T>) -> anyhow::Result<Vec<&'a Column<T>>> {
        if !self.columns.is_empty() {
            return self.columns.iter().map(|name| rows.named(name)).collect();
        }
        Ok(rows.columns_in(self.output))
    }
}

/// A command line that cannot be carried out as written.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

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

/// The formats that have a column by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFormats {
    All,
    /// All except `table`.
    Wide,
    /// Only `table` and `wide`.
    Tables,
    /// All except `table` and `wide`.
    Raw,
}

impl InFormats {
    fn contains(self, format: Format) -> bool {
        match self {
            Self::All => true,
            Self::Wide => !matches!(format, Format::Table),
            Self::Tables => format.is_table(),
            Self::Raw => !format.is_table(),
        }
    }
}

/// A text of a cell for people, in place of the formatted value.
type Readable<T> = Box<dyn Fn(&T, &Cell) -> Option<String>>;

/// A column of a table of `T`.
struct Column<T> {
    /// Lower case with underscores; names of resource classes are unchanged.
    head: Cow<'static, str>,
    of_formats: InFormats,
    /// The value, by which rows are sorted.
    of: Box<dyn Fn(&T) -> Cell>,
    /// The text in tables.
    readable: Option<Readable<T>>,
}

/// Rows of one kind, and their columns.
pub(crate) struct Rows<T> {
    columns: Vec<Column<T>>,
    items: Vec<T>,
    if_none: Option<String>,
}

/// Argument of [`Output::report`] for a response without rows.
pub(crate) const NO_ROWS: Option<Rows<()>> = None;

impl<T> Rows<T> {
    /// Rows without columns yet.
    pub(crate) fn new(items: Vec<T>) -> Self {
        Self {
            columns: Vec::new(),
            items,
            if_none: None,
        }
    }

    /// Sets the message that replaces an empty table.
    pub(crate) fn if_none(mut self, text: impl Into<String>) -> Self {
        self.if_none = Some(text.into());
        self
    }

    /// Adds a column that all formats show by default.
    pub(crate) fn column<C: Serialize>(
        self,
        head: impl Into<Cow<'static, str>>,
        of: impl Fn(&T) -> C + 'static,
    ) -> Self {
        self.with(head.into(), InFormats::All, of)
    }

    /// Adds a column that the format `table` omits by default.
    pub(crate) fn wide<C: Serialize>(
        self,
        head: &'static str,
        of: impl Fn(&T) -> C + 'static,
    ) -> Self {
        self.with(head.into(), InFormats::Wide, of)
    }

    /// Adds a column of tables for reading, with a text and the value by which rows are sorted.
    pub(crate) fn readable<C: Serialize>(
        self,
        head: impl Into<Cow<'static, str>>,
        sorted_by: impl Fn(&T) -> C + 'static,
        text: impl Fn(&T) -> Option<String> + 'static,
    ) -> Self {
        let rows = self.with(head.into(), InFormats::Tables, sorted_by);
        rows.shown_as(move |row, _| text(row))
    }

    /// Adds a column that tables omit by default.
    pub(crate) fn raw<C: Serialize>(
        self,
        head: impl Into<Cow<'static, str>>,
        of: impl Fn(&T) -> C + 'static,
    ) -> Self {
        self.with(head.into(), InFormats::Raw, of)
    }

    /// Adds units to the amounts of the last column in tables. `class` returns the resource class.
    pub(crate) fn in_units(self, class: impl Fn(&T) -> String + 'static) -> Self {
        self.shown_as(move |row, cell| Some(amount(&class(row), cell.as_f64()?)))
    }

    /// Sets the text of the last column in tables.
    pub(crate) fn shown_as(mut self, text: impl Fn(&T, &Cell) -> Option<String> + 'static) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.readable = Some(Box::new(text));
        }
        self
    }

    fn with<C: Serialize>(
        mut self,
        head: Cow<'static, str>,
        of_formats: InFormats,
        of: impl Fn(&T) -> C + 'static,
    ) -> Self {
        self.columns.push(Column {
            head,
            of_formats,
            of: Box::new(move |row| cell(of(row))),
            readable: None,
        });
        self
    }

    /// The rows in the format `table`, for a text of several parts. Output options do not apply.
    pub(crate) fn table(&self) -> String {
        self.aligned(&self.columns_in(Format::Table))
    }

    fn columns_in(&self, format: Format) -> Vec<&Column<T>> {
        let all = self.columns.iter();
        all.filter(|one| one.of_formats.contains(format)).collect()
    }

    /// A table with a header. Each column is as wide as its widest cell, and columns of numbers are
    /// right-aligned.
    fn aligned(&self, columns: &[&Column<T>]) -> String {
        let mut lines = vec![String::new(); self.items.len() + 1];
        for column in columns {
            let (mut has_number, mut has_other) = (false, false);
            let below: Vec<_> = (self.items.iter())
                .map(|item| {
                    let value = (column.of)(item);
                    has_number |= value.is_number();
                    has_other |= !value.is_number() && !value.is_null();
                    let readable = column.readable.as_ref();
                    match readable.and_then(|readable| readable(item, &value)) {
                        Some(readable) => text(&readable),
                        None => word(&value),
                    }
                })
                .collect();
            let mut head = text(&column.head);
            // Names of resource classes are not changed.
            if !head.contains(char::is_uppercase) {
                head = head.to_uppercase().replace('_', " ");
            }
            let cells = || once(&head).chain(&below);
            let width = cells().map(|cell| cell.width()).max().unwrap_or(0);
            for (line, cell) in lines.iter_mut().zip(cells()) {
                let blanks = " ".repeat(width - cell.width());
                *line += &if has_number && !has_other {
                    format!("{blanks}{cell}  ")
                } else {
                    format!("{cell}{blanks}  ")
                };
            }
        }
        let ended = lines.iter().map(|line| line.trim_end().to_owned() + "\n");
        ended.collect()
    }

    /// Finds a column by name, ignoring case, with spaces or underscores.
    fn named(&self, name: &str) -> anyhow::Result<&Column<T>> {
        let wanted = name.trim().replace(' ', "_");
        let mut all = self.columns.iter();
        let found = all.find(|one| one.head.eq_ignore_ascii_case(&wanted));
        found.ok_or_else(|| {
            let names = self
                .columns
                .iter()
                .map(|one| &*one.head)
                .collect::<Vec<_>>()
                .join(", ");
            Misuse(format!("no column {name:?}; columns: {names}")).into()
        })
    }

    /// Sorts numbers by value, then other values as text; missing values come last. The sort is
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
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => plain(one).cmp(&plain(other)),
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

/// A value as a YAML document.
fn yaml(value: &Value) -> anyhow::Result<String> {
    let mut text = String::new();
    YamlEmitter::new(&mut text).dump(&node(value))?;
    Ok(text.trim_start_matches("---\n").to_owned() + "\n")
}

fn node(value: &Value) -> Yaml {
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(is) => Yaml::Boolean(*is),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Yaml::Integer(number),
            None => Yaml::Real(number.to_string()),
        },
        Value::String(text) => Yaml::String(text.clone()),
        Value::Array(all) => Yaml::Array(all.iter().map(node).collect()),
        Value::Object(all) => {
            let members = all.iter();
            let members = members.map(|(key, value)| (Yaml::String(key.clone()), node(value)));
            Yaml::Hash(members.collect())
        }
    }
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
    if io::stdout().is_terminal() {
        is_written(inert_lines(&String::from_utf8_lossy(text)).as_bytes())
    } else {
        is_written(text)
    }
}

/// Writes to standard output, also control characters. Returns `false` if the reader has closed the
/// pipe.
pub(crate) fn is_written(text: &[u8]) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text);
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written
            .context("cannot write to standard output")
            .map(|()| true),
    }
}

/// Prints a message to standard error. The numbers of the operating system's errors are omitted.
pub(crate) fn warn(text: &str) {
    let mut plain = String::new();
    let mut parts = text.split(" (os error ");
    plain.extend(parts.next());
    plain.extend(parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)));
    eprintln!("placementctl: {}", inert_lines(&plain));
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
mod tests;
