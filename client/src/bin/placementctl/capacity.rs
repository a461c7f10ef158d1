//! `placementctl capacity`: capacity and usage over all providers.

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::content::{Content, EXTENSIONS, filtered};
use crate::render::{Rows, list};

/// Query parameters of `GET /placementd/v1/capacity`.
#[derive(Args, Serialize)]
pub(crate) struct Which {
    /// Show only this resource class.
    #[arg(long)]
    class: Option<String>,
    /// Group the sums by class alone, or by class and aggregate or trait. A provider counts in each
    /// of its aggregates and traits.
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
            "placementctl: there were no inventories at that time; it may be before the cluster was formed"
        );
    }
    content.source.output.rows(summed(&answer))
}

/// A row for each class, or for each class and aggregate or trait.
pub(crate) fn summed(answer: &Value) -> Rows {
    let facet = answer["by"]
        .as_str()
        .filter(|by| *by != "class")
        .unwrap_or_default();
    let amounts = "providers +total +reserved capacity used free largest_free";
    let items = list(&answer["capacity"]).to_vec();
    Rows::new(&format!("class {facet} {amounts}"), items)
}
