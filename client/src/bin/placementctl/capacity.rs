//! `placementctl capacity`: sums over all providers.

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::content::{Content, EXTENSIONS, filtered};
use crate::render::{Rows, list};

/// As the API has it.
#[derive(Args, Serialize)]
pub(crate) struct Which {
    /// This class alone.
    #[arg(long)]
    class: Option<String>,
    /// What to add up by: by the class alone, or for each aggregate or trait too. A provider counts
    /// in each of its aggregates and traits.
    #[arg(long, value_parser = ["class", "aggregate", "trait"], default_value = "class")]
    by: String,
}

pub(crate) async fn show(content: &Content, which: Which) -> anyhow::Result<String> {
    let request = filtered(
        &format!("{EXTENSIONS}/capacity"),
        &serde_json::to_value(which)?,
    );
    let answer = content.ask(request).await?;
    if content.source.as_of.is_some() && list(&answer["capacity"]).is_empty() {
        eprintln!(
            "placementctl: there were no inventories at that moment, which may be before this cluster was formed"
        );
    }
    content.source.output.rows(summed(&answer))
}

/// A row for each class, and for each aggregate or trait if the answer is by these.
pub(crate) fn summed(answer: &Value) -> Rows {
    let facet = answer["by"]
        .as_str()
        .filter(|by| *by != "class")
        .unwrap_or_default();
    let amounts = "providers +total +reserved capacity used free largest_free";
    let items = list(&answer["capacity"]).to_vec();
    Rows::new(&format!("class {facet} {amounts}"), items)
}
