//! Rows in columns.

/// Each column as wide as its widest cell.
pub(crate) fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let widths = widths(rows);
    let mut text = String::new();
    for row in rows {
        let line: Vec<_> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The widest cell of each column.
pub(crate) fn widths<const N: usize>(rows: &[[String; N]]) -> [usize; N] {
    std::array::from_fn(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
}

/// `REGION/ZONE`, or the one that is named, or a dash.
pub(crate) fn site(region: &str, zone: &str) -> String {
    match (region, zone) {
        ("", "") => "-".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (region, zone) => format!("{region}/{zone}"),
    }
}
