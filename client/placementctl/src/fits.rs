//! `placementctl fits`: shows how often the named queries fit.

use clap::Args;
use placement_client::ApiRequest;
use placement_wire::fits::{Fits, NamedFit};
use serde::Serialize;

use crate::content::{Content, EXTENSIONS};
use crate::render::{Rows, cell, text};

#[derive(Args)]
pub(crate) struct FitsArgs {}

pub(crate) async fn show(content: &Content, _: FitsArgs) -> anyhow::Result<String> {
    let request = ApiRequest::get(&format!("{EXTENSIONS}/fits"));
    let answer: Fits<'_> = content.ask(request).await?;
    let output = &content.source.output;
    output.report(&cell(&answer), Some(rows(&answer)), |table| {
        if answer.fits.is_empty() {
            "no named queries: the configuration of the node has no [[fits]]\n".to_owned()
        } else {
            table
        }
    })
}

/// A named query and how often it fits.
#[derive(Serialize)]
struct Row {
    name: String,
    level: &'static str,
    count: Option<u64>,
    exact: Option<bool>,
    unknown: String,
}

fn row(fit: &NamedFit<'_>) -> Row {
    let unknown = fit.counted.iter().find_map(|one| one.unknown.as_deref());
    Row {
        name: text(&fit.name),
        level: fit.level.as_str(),
        count: fit.counted.as_ref().map(|counted| counted.count),
        exact: fit.counted.as_ref().map(|counted| counted.exact),
        unknown: unknown.map_or_else(String::new, text),
    }
}

fn rows(answer: &Fits<'_>) -> Rows<Row> {
    Rows::new(answer.fits.iter().map(row).collect())
        .column("name", |row: &Row| row.name.clone())
        .column("level", |row| row.level)
        .column("count", |row| {
            row.count.map_or_else(String::new, |one| one.to_string())
        })
        .column("exact", |row| {
            row.exact.map_or("", |one| if one { "yes" } else { "no" })
        })
        .column("unknown", |row| row.unknown.clone())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::render::Format;

    #[test]
    fn counts_levels_and_unknown_names_are_shown() {
        let answer = json!({"fits": [
            {"name": "m1.large", "level": "some", "count": 42, "exact": true, "complete": true},
            {"name": "gpu", "level": "few", "count": 3, "exact": false, "complete": true},
            {"name": "odd", "level": "none", "count": 0, "exact": true, "complete": true,
             "unknown": "no such resource class CUSTOM_ODD"},
            {"name": "hidden", "level": "many"},
        ]});
        let answer = Fits::deserialize(answer).unwrap();
        let printed = Format::Csv.printed(rows(&answer));
        let expected = "name,level,count,exact,unknown\n\
                        m1.large,some,42,yes,\n\
                        gpu,few,3,no,\n\
                        odd,none,0,yes,no such resource class CUSTOM_ODD\n\
                        hidden,many,,,\n";
        assert_eq!(printed, expected);
    }
}
