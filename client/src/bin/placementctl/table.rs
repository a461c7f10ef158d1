//! Rows in columns.

use std::array;
use std::iter::once;

/// A header and rows, each column as wide as its widest cell.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let header = header.map(str::to_owned);
    let rows: Vec<[String; N]> = once(header).chain(rows).collect();
    let widths: [_; N] = array::from_fn(|column| rows.iter().map(|row| row[column].len()).max());
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<0$}", width.unwrap_or(0)))
            .collect();
        text += cells.join("  ").trim_end();
        text += "\n";
    }
    text
}

/// `REGION/ZONE`, or the one that is named, or a dash.
pub(crate) fn site(region: &str, zone: &str) -> String {
    match (region, zone) {
        ("", "") => "-".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (region, zone) => format!("{region}/{zone}"),
    }
}
