//! The allocations of one consumer.

use std::collections::BTreeMap;

use maud::html;
use placement_wire::upstream::{Allocation, Allocations, Providers};
use serde::de::IgnoredAny;

use super::Content;
use super::lists::provider;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{RowBudget, Table, cell, cut_to, facts, link};
use crate::target::encoded;
use crate::words::{command, word};

/// Maximum number of provider names to look up; other providers are shown by UUID.
const NAMED_MAX: usize = 20;

pub(super) async fn show(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    uuid: &str,
) -> Result<View, Failure> {
    let path = format!("/allocations/{}", encoded(uuid));
    let answer: Allocations = questions.get(of.partition.api(&path, &[])).await?;
    let held = &answer.allocations;
    if held.is_empty() {
        let what = format!("Consumer {uuid} does not exist or has no allocations.");
        return Err(Failure::not_found(&what));
    }
    let named = held
        .keys()
        .take(NAMED_MAX)
        .map(|uuid| of.partition.api("/resource_providers", &[("uuid", uuid)]));
    let named = questions
        .all(named.collect())
        .await
        .into_iter()
        .flatten()
        .flat_map(|found: Providers<IgnoredAny>| found.resource_providers);
    let names: BTreeMap<String, String> = named.map(|one| (one.uuid, one.name)).collect();
    let table = Table::new()
        .column("Provider", |(uuid, _): &(&String, &Allocation)| {
            provider(of, uuid, names.get(*uuid).unwrap_or(uuid))
        })
        .column("Resources", |(_, one)| cell(&one.resources));
    let rows = RowBudget::default().take(held.iter().map(|one| table.row(&one)));
    let history = of.partition.page("history", &[("consumer", uuid)]);
    let facts = facts(&[
        ("consumer type", word(&answer.consumer_type)),
        ("project id", word(&answer.project_id)),
        ("user id", word(&answer.user_id)),
        ("consumer generation", word(answer.consumer_generation)),
    ]);
    Ok(View {
        title: format!("Consumer {uuid}"),
        body: html! {
            (facts)
            (table.with("Allocations", &rows))
            (cut_to(rows.len(), held.len()))
            p { (link(&history, "Changes of this consumer")) }
        },
        commands: vec![
            of.command("placementctl consumers show", &[("", uuid)]),
            command("openstack resource provider allocation show", &[("", uuid)]),
        ],
    })
}
