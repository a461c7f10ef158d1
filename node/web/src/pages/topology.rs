//! Tolerated failures, and the latency of reads and writes at each site.

use maud::html;
use serde_json::{Value, json};

use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cells, row, table};
use crate::words::{cut, list, site, text, word};

/// Maximum number of sites in a row.
const SITES_MAX: usize = 10;
pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let topology = questions.get("/v1/topology".to_owned()).await?;
    let mut room = Room::default();
    // A table: member of the response, caption, headings, and members of a row.
    let mut shown = |of: &str, caption: &str, heads: &str, members: &str| {
        let rows = list(&topology[of]).iter().map(named);
        let rows = room.take(rows.map(|one| row(&cells(&one, members))));
        table(caption, heads, &rows)
    };
    Ok(View {
        title: "Topology".to_owned(),
        body: html! {
            p class="verdict" { (summary(&topology)) }
            (shown("losses", "Failures", "Failure | Nodes | Writes continue | Reads", "lost nodes writes reads"))
            (shown("sites", "Sites", "Site | Nodes | Linearizable read (ms) | Write (ms)", "site nodes linearizable_ms write_ms"))
            (shown("members", "Members", "Node | Site | Voter | Reachable", "node site votes reachable"))
            (shown("round_trips", "Round trips", "From node | To node | Milliseconds", "from to ms"))
        },
        commands: vec!["placementctl topology".to_owned()],
    })
}

fn summary(topology: &Value) -> String {
    let mut survived = vec!["node", "zone", "region"];
    let members = list(&topology["members"]);
    let is_named = |kind: &str| members.iter().any(|one| !text(&one[kind]).is_empty());
    survived.retain(|kind| topology["survives"][kind] == true);
    survived.retain(|kind| *kind == "node" || is_named(kind));
    let asked = &*cut(text(&topology["survive"]));
    let missed = match asked.is_empty() || survived.contains(&asked) {
        true => String::new(),
        false => format!(
            " [cluster] survive = \"{asked}\" is not met: the loss of a {asked} can stop writes."
        ),
    };
    match survived.join(" or ") {
        kinds if kinds.is_empty() => format!("The loss of any voter stops writes.{missed}"),
        kinds => format!("The cluster tolerates the loss of any one {kinds}.{missed}"),
    }
}

/// Adds the displayed texts of a row as members.
fn named(one: &Value) -> Value {
    let (mut named, place) = (one.clone(), &one["place"]);
    if named.is_object() {
        named["site"] = json!(site(one));
        named["lost"] = match place["node"].as_u64() {
            Some(node) => json!(format!("node {node}")),
            None => json!(format!("{} {}", word(&place["kind"]), site(place))),
        };
        let reads = list(&one["sites"]).iter().take(SITES_MAX);
        let reads = reads.map(|one| format!("{}: {}", site(one), word(&one["reads"])));
        named["reads"] = json!(reads.collect::<Vec<_>>());
    }
    named
}
