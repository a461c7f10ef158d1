//! The allocations of one consumer.

use maud::html;
use serde_json::Value;

use super::Content;
use super::lists::provider;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cell, cut_to, facts, link, row, table};
use crate::target::encoded;
use crate::words::{command, pairs};

/// Maximum number of provider names to look up; others show UUIDs.
const NAMED_MAX: usize = 20;

pub(super) async fn show(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    uuid: &str,
) -> Result<View, Failure> {
    let path = format!("/allocations/{}", encoded(uuid));
    let answer = questions.get(of.partition.api(&path, &[])).await?;
    let held: Vec<_> = pairs(&answer["allocations"]).collect();
    if held.is_empty() {
        let what = format!("Consumer {uuid} does not exist or has no allocations.");
        return Err(Failure::not_found(&what));
    }
    let named = held.iter().take(NAMED_MAX);
    let named = named.map(|(uuid, _)| of.partition.api("/resource_providers", &[("uuid", uuid)]));
    let named = questions.all(named.collect()).await;
    let name = |at: usize| Some(&named.get(at)?.as_ref().ok()?["resource_providers"][0]["name"]);
    let rows = held.iter().enumerate().map(|(at, (uuid, one))| {
        let uuid = Value::from(uuid.as_str());
        let name = name(at).filter(|name| name.is_string());
        let shown = provider(of, &uuid, name.unwrap_or(&uuid));
        row(&[shown, cell(&one["resources"])])
    });
    let rows = Room::default().take(rows);
    let history = of.partition.page("history", &[("consumer", uuid)]);
    Ok(View {
        title: format!("Consumer {uuid}"),
        body: html! {
            (facts(&answer, "consumer_type project_id user_id consumer_generation"))
            (table("Allocations", "Provider | Resources", &rows))
            (cut_to(rows.len(), held.len()))
            p { (link(&history, &"Changes of this consumer".into())) }
        },
        commands: vec![
            of.command("placementctl consumers show", &[("", uuid)]),
            command("openstack resource provider allocation show", &[("", uuid)]),
        ],
    })
}
