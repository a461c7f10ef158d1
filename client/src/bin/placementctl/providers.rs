//! `placementctl providers`: inventories, usage and consumers of resource providers.

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::content::{Content, EXTENSIONS, named};
use crate::render::{Rows, list, pairs, phrase};

/// Width of a bar in characters.
const BAR_WIDTH: usize = 20;
/// Header of `show`, above the table of inventories.
const SHOWN: &str = "{name}
  uuid        {uuid}
  parent      {parent}
  generation  {generation}
  consumers   {holders}
  aggregates  {aggregates}
  traits      {traits}

";

#[derive(Args)]
pub(crate) struct Which {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List providers. A provider must match all given conditions.
    List(Filters),
    /// Draw the tree of a provider with the usage of each inventory.
    Tree(Named),
    /// Show the details of one provider.
    Show(Named),
    /// List the consumers of a provider, those with the largest share of a capacity first.
    Holders {
        #[command(flatten)]
        named: Named,
        /// Compare the allocations of this resource class only.
        #[arg(long)]
        class: Option<String>,
    },
}

#[derive(Args)]
struct Filters {
    /// Show only providers with room for one unit of this class, or for this amount. May be
    /// repeated.
    #[arg(long, value_name = "CLASS[:AMOUNT]")]
    class: Vec<String>,
    /// Show only providers with this trait, or without it if `!` precedes it. May be repeated.
    #[arg(long, value_name = "TRAIT")]
    r#trait: Vec<String>,
    /// Show only providers in this aggregate. May be repeated.
    #[arg(long, value_name = "UUID")]
    aggregate: Vec<String>,
    /// Show only providers whose name begins with this prefix.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
}

#[derive(Args)]
struct Named {
    /// Provider, by UUID, name, or the beginning of its name.
    provider: String,
}

pub(crate) async fn run(content: &Content, which: Which) -> anyhow::Result<String> {
    let output = &content.source.output;
    match which.action {
        Action::List(filters) => {
            let found = content.providers(filters.json()).await?;
            let found = named(found, &filters.name.unwrap_or_default());
            let parents = "+parent:parent_provider_uuid +root:root_provider_uuid";
            output.rows(Rows::new(&format!("name uuid generation {parents}"), found))
        }
        Action::Tree(Named { provider }) => {
            let (tree, _) = tree(content, &provider).await?;
            let providers = list(&tree["providers"]);
            output.report(&tree, Some(inventories(providers)), |_| {
                drawn(providers, &Value::Null, "")
            })
        }
        Action::Show(Named { provider }) => {
            let (_, shown) = tree(content, &provider).await?;
            let rows = inventories(std::slice::from_ref(&shown));
            output.report(&shown, Some(rows), |table| phrase(SHOWN, &shown) + &table)
        }
        Action::Holders { named, class } => {
            let (_, provider) = tree(content, &named.provider).await?;
            let filters = json!({ "provider": provider["uuid"], "class": class });
            let consumers = content.consumers(&filters).await?;
            output.rows(holders(&provider, consumers, class.as_deref()))
        }
    }
}

impl Filters {
    /// The filters as query parameters of `GET /resource_providers`.
    fn json(&self) -> Value {
        let amount = |class: &String| match class.contains(':') {
            true => class.clone(),
            false => format!("{class}:1"),
        };
        let resources = self.class.iter().map(amount).collect::<Vec<_>>().join(",");
        let required = self.r#trait.join(",");
        json!({ "resources": resources, "required": required, "member_of": self.aggregate })
    }
}

/// The tree of a provider, and the provider in it.
async fn tree(content: &Content, given: &str) -> anyhow::Result<(Value, Value)> {
    let uuid = content.provider(given).await?;
    let tree = content.get(&format!("{EXTENSIONS}/trees/{uuid}")).await?;
    let mut all = list(&tree["providers"]).iter();
    let found = all.find(|one| one["uuid"] == *uuid).cloned();
    let found =
        found.with_context(|| format!("provider {uuid} has just left its tree: try again"))?;
    Ok((tree, found))
}

/// A row for each inventory of each provider.
fn inventories(providers: &[Value]) -> Rows {
    let mut items = Vec::new();
    for one in providers {
        for (class, inventory) in pairs(&one["inventories"]) {
            let mut item = inventory.clone();
            item["class"] = json!(class);
            (item["provider"], item["uuid"]) = (one["name"].clone(), one["uuid"].clone());
            items.push(item);
        }
    }
    let columns = "+provider +uuid class total reserved allocation_ratio capacity used \
                   +min_unit +max_unit +step_size";
    Rows::new(columns, items)
}

/// Draws the children of `parent` with their inventories and subtrees. `margin` precedes each line.
fn drawn(providers: &[Value], parent: &Value, margin: &str) -> String {
    let mut text = String::new();
    let below = providers.iter().filter(|one| one["parent"] == *parent);
    let mut below = below.peekable();
    while let Some(one) = below.next() {
        let (fork, stem) = match (parent, below.peek()) {
            (Value::Null, _) => ("", ""),
            (_, None) => ("└─ ", "   "),
            (_, Some(_)) => ("├─ ", "│  "),
        };
        text += &(margin.to_owned() + fork + &phrase("{name}  ({holders*consumer})\n", one));
        let margin = format!("{margin}{stem}");
        let children = drawn(providers, &one["uuid"], &margin);
        let stem = if children.is_empty() { " " } else { "│" };
        for line in bars(&one["inventories"]) {
            text += &format!("{margin}{stem}    {line}\n");
        }
        text += &children;
    }
    text
}

/// A line for each class: a bar, and used/capacity.
fn bars(inventories: &Value) -> Vec<String> {
    let longest = pairs(inventories).map(|(class, _)| class.len()).max();
    let width = longest.unwrap_or_default();
    let line = |(class, inventory): (&String, &Value)| {
        let [used, capacity] = ["used", "capacity"].map(|key| inventory[key].as_u64().unwrap_or(0));
        format!("{class:<width$} {} {used}/{capacity}", bar(used, capacity))
    };
    pairs(inventories).map(line).collect()
}

/// A bar. Any usage shows at least one mark; usage above the capacity ends with an exclamation
/// mark.
fn bar(used: u64, capacity: u64) -> String {
    let part = u128::from(used.min(capacity)) * BAR_WIDTH as u128;
    let filled = "#".repeat(part.div_ceil(u128::from(capacity.max(1))) as usize);
    let end = if used > capacity { '!' } else { ']' };
    format!("[{filled:.<BAR_WIDTH$}{end}")
}

/// The consumers of a provider with their allocations there, ordered by their largest share of a
/// capacity.
fn holders(provider: &Value, mut consumers: Vec<Value>, class: Option<&str>) -> Rows {
    let percent = |(name, amount): (&String, &Value)| {
        let capacity = provider["inventories"][name]["capacity"].as_f64();
        let is_meant = class.is_none_or(|class| class == name);
        let amount = amount.as_f64().filter(|_| is_meant).unwrap_or(0.0);
        (amount * 1000.0 / capacity.unwrap_or(0.0).max(1.0)).round() / 10.0
    };
    for consumer in &mut consumers {
        let mut all = list(&consumer["allocations"]).iter();
        let here = all.find(|one| one["provider"]["uuid"] == provider["uuid"]);
        let held = here.map_or(Value::Null, |one| one["resources"].clone());
        consumer["percent"] = json!(pairs(&held).map(percent).fold(0.0, f64::max));
        consumer["resources"] = held;
    }
    let order = |one: &Value| one["percent"].as_f64().unwrap_or_default();
    consumers.sort_by(|one, other| order(other).total_cmp(&order(one)));
    let held = "percent resources updated_at +user:user_id";
    Rows::new(
        &format!("consumer:uuid type project:project_id {held}"),
        consumers,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::filtered;
    use crate::render::Format;

    fn tree() -> Value {
        let inventory = |used: u64, capacity: u64| {
            json!({"total": capacity, "reserved": 0, "allocation_ratio": 1.0, "capacity": capacity, "used": used,
                   "min_unit": 1, "max_unit": capacity, "step_size": 1})
        };
        let provider = |name: &str, parent: Value, inventories: Value, traits: Value| {
            json!({"uuid": name, "name": name, "parent": parent, "generation": 3, "inventories": inventories,
                   "traits": traits, "aggregates": [], "holders": 2})
        };
        json!({"root": "cmp", "providers": [
            provider("cmp", Value::Null, json!({"MEMORY_MB": inventory(9, 8), "VCPU": inventory(1, 64)}), json!(["A"])),
            provider("numa0", json!("cmp"), json!({}), json!(["A", "B"])),
            provider("計算", json!("numa0"), json!({"VGPU": inventory(2, 4)}), json!([])),
            provider("numa1", json!("cmp"), json!({"VGPU": inventory(0, 0)}), json!([])),
        ]})
    }

    #[test]
    fn a_tree_is_drawn_with_bars() {
        let expected = "\
cmp  (2 consumers)
│    MEMORY_MB [####################! 9/8
│    VCPU      [#...................] 1/64
├─ numa0  (2 consumers)
│  └─ 計算  (2 consumers)
│          VGPU [##########..........] 2/4
└─ numa1  (2 consumers)
        VGPU [....................] 0/0
";
        assert_eq!(
            drawn(list(&tree()["providers"]), &Value::Null, ""),
            expected
        );
    }

    #[test]
    fn a_bar_is_full_only_at_full_usage() {
        assert_eq!(bar(0, 5), "[....................]");
        assert_eq!(bar(u64::MAX, u64::MAX), "[####################]");
        assert_eq!(bar(1, 0), "[....................!");
        assert_eq!(bar(94, 100), "[###################.]");
    }

    #[test]
    fn inventories_are_rows() {
        let tree = tree();
        let csv = Format::Csv.printed(inventories(list(&tree["providers"])));
        assert!(
            csv.ends_with("\nnuma1,numa1,VGPU,0,0,1.0,0,0,1,0,1\n"),
            "{csv}"
        );
    }

    #[test]
    fn the_largest_holder_comes_first() {
        let consumer = |uuid: &str, memory: u64, vcpus: u64| {
            json!({"uuid": uuid, "type": null, "project_id": "p", "user_id": "u", "updated_at": "now", "allocations": [
                {"provider": {"uuid": "other"}, "resources": {"VCPU": 1000}},
                {"provider": {"uuid": "cmp"}, "resources": {"MEMORY_MB": memory, "VCPU": vcpus}}]})
        };
        let tree = tree();
        let order = |class| {
            let consumers = vec![
                consumer("a", 1, 32),
                consumer("b", 2, 48),
                consumer("c", 8, 1),
            ];
            let rows = holders(&tree["providers"][0], consumers, class);
            Format::Name.printed(rows)
        };
        assert_eq!(order(None), "c\nb\na\n");
        assert_eq!(order(Some("VCPU")), "b\na\nc\n");
    }

    #[test]
    fn filters_become_query_parameters() {
        let of = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let filters = Filters {
            class: of(&["VCPU", "DISK_GB:8"]),
            r#trait: of(&["!A"]),
            aggregate: of(&["u1", "u2"]),
            name: None,
        };
        let request = filtered("/resource_providers", &filters.json());
        let path = "/resource_providers?member_of=u1&member_of=u2&required=%21A&resources=VCPU%3A1%2CDISK_GB%3A8";
        assert!(format!("{request:?}").contains(path), "{request:?}");
    }
}
