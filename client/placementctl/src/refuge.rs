//! `placementctl refuge`: shows whether hosts could be emptied, and where their consumers would go.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, ValueEnum};
use placement_client::ApiRequest;
use placement_wire::refuge::Refuge;
use placement_words::counted;
use serde::Serialize;
use serde_json::Value;

use crate::content::{Content, EXTENSIONS};
use crate::explain::WORDS;
use crate::render::{Rows, cell, text, word};

#[derive(Args)]
pub(crate) struct RefugeArgs {
    /// UUID, name or beginning of the name of a host to empty. Repeatable.
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Require new hosts to have these traits, separated by commas; `!TRAIT` forbids one.
    #[arg(long, value_name = "TRAITS")]
    required: Option<String>,
    /// UUID of an aggregate that new hosts must be in, such as that of an availability zone.
    #[arg(long, value_name = "AGGREGATE")]
    member_of: Option<String>,
    /// Which hosts to prefer.
    #[arg(long, value_enum, default_value_t = Order::Pack)]
    order: Order,
    /// Show a new host for each consumer that has one.
    #[arg(long)]
    moves: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    /// The hosts with the smallest share of free capacity.
    Pack,
    /// The hosts with the largest share of free capacity.
    Spread,
    /// The hosts in random order.
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
    let moves = args.moves.to_string();
    let request = request.query("order", order).query("moves", &moves);
    let answer: Refuge<'_> = content.ask(request).await?;
    let output = &content.source.output;
    output.report(&cell(&answer), Some(listed(&answer)), |table| {
        let table = if answer.left.is_empty() && !args.moves {
            String::new()
        } else {
            format!("\n{table}")
        };
        summary(&answer) + &table
    })
}

/// The number of consumers with room elsewhere, and how sure it is.
fn summary(answer: &Refuge<'_>) -> String {
    let consumers = counted(answer.consumers, "consumer");
    let mut text = match (answer.consumers, answer.left.len()) {
        (0, _) => "there are no consumers to move\n".to_owned(),
        (_, 0) if answer.complete => format!("yes: room elsewhere for {consumers}\n"),
        (_, 0) => format!(
            "undecided: room elsewhere for {} of {consumers} so far\n",
            answer.moved
        ),
        (_, left) => format!("no: no room elsewhere for {left} of {consumers}\n"),
    };
    if !answer.complete {
        text += "the time limit was reached: the other consumers were not searched for\n";
    } else if !answer.exact {
        text += "another assignment of the consumers may have room for more of them\n";
    }
    if answer.migrations > 0 {
        let migrations = counted(answer.migrations, "migration");
        text += &format!("{migrations} in progress: not moved\n");
    }
    text
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
        why: one
            .why
            .as_ref()
            .map_or_else(String::new, |why| WORDS.cause(why)),
    });
    let moves = answer.moves.iter().flatten().map(|one| {
        let mut resources: BTreeMap<&str, u64> = BTreeMap::new();
        for (class, units) in one.to.iter().flat_map(|part| &part.resources) {
            *resources.entry(class).or_default() += units;
        }
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
            "left": [{"consumer": "big", "project_id": "p", "resources": {"VCPU": 8},
                      "why": {"verdict": "none", "trees": 0}}],
            "moves": [{"consumer": "small", "project_id": "p", "to": [
                {"provider": {"name": "cmp-2_numa0"}, "root": {"name": "cmp-2"}, "resources": {"VCPU": 1}},
                {"provider": {"name": "cmp-2_numa1"}, "root": {"name": "cmp-2"}, "resources": {"VCPU": 2}}]}],
        });
        let answer = Refuge::deserialize(answer).unwrap();
        assert_eq!(
            summary(&answer),
            "no: no room elsewhere for 1 of 2 consumers\n"
        );
        let printed = Format::Csv.printed(listed(&answer));
        let expected = "consumer,project_id,resources,to,why\n\
                        big,p,VCPU=8,,no candidates: there are no providers\n\
                        small,p,VCPU=3,cmp-2,\n";
        assert_eq!(printed, expected);
    }

    #[test]
    fn doubts_are_named() {
        let answer = Refuge {
            consumers: 2,
            moved: 2,
            complete: true,
            exact: true,
            ..Refuge::default()
        };
        assert_eq!(summary(&answer), "yes: room elsewhere for 2 consumers\n");
        let late = Refuge {
            moved: 1,
            complete: false,
            migrations: 1,
            ..answer
        };
        let expected = "undecided: room elsewhere for 1 of 2 consumers so far\n\
                        the time limit was reached: the other consumers were not searched for\n\
                        1 migration in progress: not moved\n";
        assert_eq!(summary(&late), expected);
    }
}
