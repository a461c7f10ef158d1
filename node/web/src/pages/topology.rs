//! Which losses are survived, and what reads and writes cost where.

use maud::{Markup, html};
use serde_json::Value;

use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cell, row, table};
use crate::words::{cut, list, site, some, text, word};

pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let topology = questions.get("/v1/topology".to_owned()).await?;
    let mut room = Room::default();
    let advice = list(&topology["advice"]).iter();
    let advice = room.take(advice.map(|one| html! { li { (word(one)) } }));
    let mut filled = |caption, heads: &[&str], of: &str, shown: fn(&Value) -> Markup| {
        let rows = room.take(list(&topology[of]).iter().map(shown));
        table(caption, heads, &rows)
    };
    let body = html! {
        p class="verdict" { (summary(&topology)) }
        @if !advice.is_empty() {
            h2 { "Advice" }
            ul { @for one in &advice { (one) } }
        }
        (filled("Losses", &["Loss", "Nodes", "Writes", "Reads"], "losses", loss))
        (filled("Sites", &["Site", "Nodes", "Linearizable read", "Write"], "sites", site_costs))
        (filled("Members", &["Node", "Site", "Votes", "Answers"], "members", member))
        (filled("Round trips", &["From node", "To node", "Milliseconds"], "round_trips", round_trip))
    };
    Ok(View {
        title: "Topology".to_owned(),
        body,
        commands: vec!["placementctl topology".to_owned()],
    })
}

fn summary(topology: &Value) -> String {
    let kinds = ["node", "zone", "region"].into_iter();
    let survived: Vec<&str> = kinds
        .filter(|kind| topology["survives"][kind] == true)
        .collect();
    let asked = &*cut(text(&topology["survive"]));
    let missed = match asked.is_empty() || survived.contains(&asked) {
        true => String::new(),
        false => format!(" That of a {asked} is to be survived ([cluster] survive), and is not."),
    };
    match survived.as_slice() {
        [] => format!("The loss of any voter stops writes.{missed}"),
        names => format!(
            "The loss of any one {} is survived.{missed}",
            names.join(", ")
        ),
    }
}

fn loss(loss: &Value) -> Markup {
    let place = &loss["place"];
    let kind = word(&place["kind"]);
    let name = match place["node"].as_u64() {
        Some(node) => format!("node {node}"),
        None => format!("{kind} {}", site(place)),
    };
    let reads = list(&loss["sites"]).iter().take(10);
    let reads: Vec<String> = reads
        .map(|one| format!("{}: {}", site(one), word(&one["reads"])))
        .collect();
    let writes = if loss["writes"] == true {
        "go on"
    } else {
        "stop"
    };
    row(&[
        html! { (name) },
        html! { (some(list(&loss["nodes"]))) },
        html! { (writes) },
        html! { (reads.join("; ")) },
    ])
}

fn site_costs(costs: &Value) -> Markup {
    let ms = |value: &Value| {
        value
            .as_f64()
            .map_or("–".to_owned(), |ms| format!("{ms:.1} ms"))
    };
    row(&[
        html! { (site(costs)) },
        html! { (some(list(&costs["nodes"]))) },
        html! { (ms(&costs["linearizable_ms"])) },
        html! { (ms(&costs["write_ms"])) },
    ])
}

fn member(member: &Value) -> Markup {
    row(&[
        cell(&member["node"]),
        html! { (site(member)) },
        cell(&member["votes"]),
        cell(&member["reachable"]),
    ])
}

fn round_trip(trip: &Value) -> Markup {
    row(&[cell(&trip["from"]), cell(&trip["to"]), cell(&trip["ms"])])
}
