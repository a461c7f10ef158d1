//! `placementctl capacity`: capacity and usage over all providers.

use clap::Args;
use placement_wire::capacity::{CapacityBy, CapacityReport, ClassCapacity};
use serde::Serialize;

use crate::content::{Content, EXTENSIONS, filtered};
use crate::render::Rows;

/// Query parameters of `GET /placementd/v1/capacity`.
#[derive(Args, Serialize)]
pub(crate) struct CapacityArgs {
    /// Show only this resource class.
    #[arg(long)]
    class: Option<String>,
    /// Group the sums by resource class alone, or also by aggregate, trait, provider or tree. A
    /// provider counts in each of its aggregates or traits.
    #[arg(long, value_parser = ["class", "aggregate", "trait", "provider", "tree"], default_value = "class")]
    by: String,
}

pub(crate) async fn show(content: &Content, args: CapacityArgs) -> anyhow::Result<String> {
    let request = filtered(
        &format!("{EXTENSIONS}/capacity"),
        &serde_json::to_value(&args)?,
    );
    let answer = content.ask(request).await;
    let answer: CapacityReport<'_> = content.checked_class(answer, args.class.as_deref()).await?;
    let none = match content.as_of {
        Some(_) => "there were no inventories at that moment; the cluster may not have existed yet",
        None => "no inventories found",
    };
    content.source.output.rows(summed(answer).if_none(none))
}

/// A row for each class, or for each class and aggregate, trait, provider or tree.
pub(crate) fn summed(answer: CapacityReport<'static>) -> Rows<ClassCapacity<'static>> {
    let rows = Rows::new(answer.capacity).column("class", |row| row.class.clone());
    let rows = match answer.by {
        CapacityBy::Class => rows,
        CapacityBy::Aggregate => rows.column("aggregate", |row| row.aggregate.clone()),
        CapacityBy::Trait => rows.column("trait", |row| row.r#trait.clone()),
        CapacityBy::Provider | CapacityBy::Tree => rows
            .column("provider", |row| {
                row.provider.as_ref().map(|one| one.name.clone())
            })
            .wide("uuid", |row| {
                row.provider.as_ref().map(|one| one.uuid.clone())
            }),
    };
    let class = |row: &ClassCapacity<'_>| row.class.clone().into_owned();
    rows.column("providers", |row| row.providers)
        .wide("total", |row| row.total)
        .in_units(class)
        .wide("reserved", |row| row.reserved)
        .in_units(class)
        .column("capacity", |row| row.capacity)
        .in_units(class)
        .column("used", |row| row.used)
        .in_units(class)
        .column("free", |row| row.free)
        .in_units(class)
        .column("largest_free", |row| row.largest_free)
        .in_units(class)
}
