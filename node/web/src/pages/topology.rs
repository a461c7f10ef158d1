//! Which losses are survived, and what reads and writes cost where.

use maud::html;
use serde_json::{Value, json};

use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cells, row, table};
use crate::words::{cut, list, site, text, word};

/// So many sites are named in a row.
const SITES_MAX: usize = 10;
pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let topology = questions.get("/v1/topology".to_owned()).await?;
    let mut room = Room::default();
    // By its list in the answer, with its heads and the members of its rows.
    let mut shown = |of: &str, caption: &str, heads: &str, members: &str| {
        let rows = list(&topology[of]).iter().map(named);
        let rows = room.take(rows.map(|one| row(&cells(&one, members))));
        table(caption, heads, &rows)
    };
    Ok(View {
        title: "Topology".to_owned(),
        body: html! {
            p class="verdict" { (summary(&topology)) }
            (shown("losses", "Losses", "Loss | Nodes | Writes go on | Reads", "lost nodes writes reads"))
            (shown("sites", "Sites", "Site | Nodes | Linearizable read (ms) | Write (ms)", "site nodes linearizable_ms write_ms"))
            (shown("members", "Members", "Node | Site | Votes | Answers", "node site votes reachable"))
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
        false => format!(" That of a {asked} is to be survived ([cluster] survive), and is not."),
    };
    match survived.join(" or ") {
        kinds if kinds.is_empty() => format!("The loss of any voter stops writes.{missed}"),
        kinds => format!("The loss of any one {kinds} is survived.{missed}"),
    }
}

/// A row with what it names in one member each.
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
