//! `placementctl refuge`: shows whether hosts could be emptied, and where their consumers would go.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use placement_client::ApiRequest;
use placement_wire::refuge::{EachRefuge, Refuge};
use placement_words::{each_refuge, refuge};
use serde::Serialize;
use serde_json::Value;

use crate::content::{Content, EXTENSIONS};
use crate::explain::WORDS;
use crate::held::{Amounts, add_held};
use crate::render::{Rows, cell, text, word};

#[derive(Args)]
pub(crate) struct RefugeArgs {
    /// UUID, name or beginning of the name of a host to empty. Repeatable.
    #[arg(
        required_unless_present = "each",
        conflicts_with = "each",
        value_name = "HOST"
    )]
    hosts: Vec<String>,
    /// Look at each host by itself, and list the hosts that cannot be emptied.
    #[arg(long)]
    each: bool,
    /// Require new hosts to have these traits, separated by commas; `!TRAIT` forbids one.
    #[arg(long, value_name = "TRAITS")]
    required: Option<String>,
    /// UUID of an aggregate that new hosts must be in, such as an availability zone's.
    #[arg(long, value_name = "AGGREGATE")]
    member_of: Option<String>,
    /// Which hosts to prefer.
    #[arg(long, value_enum, default_value_t = Order::Pack)]
    order: Order,
    /// Show a new host for each consumer that has one.
    #[arg(long, conflicts_with = "each")]
    moves: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    /// The hosts with the smallest share of free capacity.
    Pack,
    /// The hosts with the largest share of free capacity.
    Spread,
    /// The hosts in the order of their creation.
    Any,
}

pub(crate) async fn show(content: &Content, args: RefugeArgs) -> anyhow::Result<String> {
    let mut request = ApiRequest::get(&format!("{EXTENSIONS}/refuge"));
    for host in &args.hosts {
        request = request.query("provider", &content.provider_of_tree(host).await?);
    }
    for (name, value) in [("required", args.required), ("member_of", args.member_of)] {
        if let Some(value) = value {
            request = request.query(name, &value);
        }
    }
    let order = match args.order {
        Order::Pack => "pack",
        Order::Spread => "spread",
        Order::Any => "any",
    };
    let request = request.query("order", order);
    let output = &content.source.output;
    if args.each {
        let answer: EachRefuge<'_> = content.ask(request.query("each", "root")).await?;
        return output.report(&cell(&answer), Some(stuck(&answer)), |table| {
            with_table(&each_refuge(&answer), &table, !answer.stuck.is_empty())
        });
    }
    let moves = args.moves.to_string();
    let answer: Refuge<'_> = content.ask(request.query("moves", &moves)).await?;
    output.report(&cell(&answer), Some(listed(&answer)), |table| {
        let has_rows = args.moves || !answer.left.is_empty();
        with_table(&refuge(&answer), &table, has_rows)
    })
}

fn with_table(summary: &[String], table: &str, has_rows: bool) -> String {
    let summary = summary.join("\n");
    if has_rows {
        format!("{summary}\n\n{table}")
    } else {
        format!("{summary}\n")
    }
}

/// A host with consumers that have no room elsewhere.
#[derive(Serialize)]
struct Stuck {
    provider: String,
    consumers: u64,
    left: u64,
    largest: Value,
    exact: bool,
    provider_uuid: String,
}

fn stuck(answer: &EachRefuge<'_>) -> Rows<Stuck> {
    let rows = answer.stuck.iter().map(|tree| Stuck {
        provider: text(&tree.provider.name),
        consumers: tree.consumers,
        left: tree.left,
        largest: cell(&tree.largest),
        exact: tree.exact,
        provider_uuid: tree.provider.uuid.to_string(),
    });
    Rows::new(rows.collect())
        .column("provider", |row: &Stuck| row.provider.clone())
        .column("consumers", |row| row.consumers)
        .column("left", |row| row.left)
        .column("largest", |row| word(&row.largest))
        .wide("exact", |row| row.exact)
        .wide("provider_uuid", |row| row.provider_uuid.clone())
}

/// A consumer with its new hosts, or with the reason why it has none.
#[derive(Serialize)]
struct Searched {
    consumer: String,
    project_id: String,
    resources: Value,
    to: String,
    why: String,
}

fn listed(answer: &Refuge<'_>) -> Rows<Searched> {
    let left = answer.left.iter().map(|one| Searched {
        consumer: one.consumer.to_string(),
        project_id: one.project_id.to_string(),
        resources: cell(&one.resources),
        to: String::new(),
        why: (one.why.and_then(|index| answer.explanations.get(index)))
            .map_or_else(String::new, |why| WORDS.cause(why)),
    });
    let moves = answer.moves.iter().flatten().map(|one| {
        let mut resources = Amounts::new();
        add_held(&mut resources, &one.to);
        let hosts: BTreeSet<_> = one.to.iter().map(|part| &part.root.name).collect();
        let hosts: Vec<_> = hosts.into_iter().map(|name| text(name)).collect();
        Searched {
            consumer: one.consumer.to_string(),
            project_id: one.project_id.to_string(),
            resources: cell(&resources),
            to: hosts.join(", "),
            why: String::new(),
        }
    });
    Rows::new(left.chain(moves).collect())
        .column("consumer", |row: &Searched| row.consumer.clone())
        .wide("project_id", |row| row.project_id.clone())
        .column("resources", |row| word(&row.resources))
        .column("to", |row| row.to.clone())
        .column("why", |row| row.why.clone())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::render::Format;

    #[test]
    fn consumers_have_a_new_host_or_a_reason() {
        let answer = json!({
            "consumers": 2, "moved": 1, "complete": true, "exact": true,
            "left": [{"consumer": "big", "project_id": "p", "resources": {"VCPU": 8}, "why": 0}],
            "explanations": [{"verdict": "none", "trees": 0}],
            "moves": [{"consumer": "small", "project_id": "p", "to": [
                {"provider": {"name": "cmp-2_numa0"}, "root": {"name": "cmp-2"}, "resources": {"VCPU": 1}},
                {"provider": {"name": "cmp-2_numa1"}, "root": {"name": "cmp-2"}, "resources": {"VCPU": 2}}]}],
        });
        let answer = Refuge::deserialize(answer).unwrap();
        let printed = Format::Csv.printed(listed(&answer));
        let expected = "consumer,project_id,resources,to,why\n\
                        big,p,VCPU=8,,no candidates: there are no providers\n\
                        small,p,VCPU=3,cmp-2,\n";
        assert_eq!(printed, expected);
    }

    #[test]
    fn hosts_that_cannot_be_emptied_are_listed() {
        let answer = json!({
            "trees": 3, "empties": 2, "complete": true, "left_out": 0,
            "stuck": [{"provider": {"name": "cmp-1", "uuid": "1"}, "consumers": 2, "left": 1,
                       "largest": {"VCPU": 8}, "exact": true}],
        });
        let answer = EachRefuge::deserialize(answer).unwrap();
        let printed = Format::Csv.printed(stuck(&answer));
        let expected = "provider,consumers,left,largest,exact,provider_uuid\n\
                        cmp-1,2,1,VCPU=8,yes,1\n";
        assert_eq!(printed, expected);
    }
}
