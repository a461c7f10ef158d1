//! `placementctl providers`: inventories, usage and consumers of resource providers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::Context;
use clap::{Args, Subcommand};
use placement_wire::consumers::Consumer;
use placement_wire::trees::{Tree, TreeInventory, TreeProvider};
use placement_words::counted;
use serde::Serialize;
use serde_json::{Value, json};

use crate::content::{Content, EXTENSIONS, filtered, named};
use crate::explain::suggest_names;
use crate::render::{Rows, cell, text, word};

/// Width of a bar in characters.
const BAR_WIDTH: usize = 20;
#[derive(Args)]
pub(crate) struct ProvidersArgs {
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
    /// List the consumers of a provider, sorted by the largest share of any resource class that
    /// they hold, largest share first.
    Holders {
        #[command(flatten)]
        named: Named,
        /// Show only consumers with allocations of this resource class, sorted by their share of
        /// it.
        #[arg(long)]
        class: Option<String>,
    },
}

#[derive(Args)]
struct Filters {
    /// Show only providers with room for this amount (default: 1) of this resource class. May be
    /// repeated.
    #[arg(long, value_name = "CLASS[:AMOUNT]")]
    class: Vec<String>,
    /// Show only providers with this trait, or without the trait if `!` precedes it. May be
    /// repeated.
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

pub(crate) async fn run(content: &Content, args: ProvidersArgs) -> anyhow::Result<String> {
    let output = &content.source.output;
    match args.action {
        Action::List(filters) => {
            let found = match content.providers(filters.json()).await {
                Ok(found) => found,
                Err(error) => {
                    let explain = filtered(&format!("{EXTENSIONS}/explain"), &filters.request());
                    return Err(suggest_names(content, explain, error).await);
                }
            };
            let found = named(found, &filters.name.unwrap_or_default());
            output.rows(
                Rows::new(found)
                    .column("name", |one| one.name.clone())
                    .column("uuid", |one| one.uuid.clone())
                    .column("generation", |one| one.generation)
                    .wide("parent", |one| one.parent_provider_uuid.clone())
                    .wide("root", |one| one.root_provider_uuid.clone()),
            )
        }
        Action::Tree(Named { provider }) => {
            let (tree, _) = tree(content, &provider).await?;
            let rows = inventories(&tree.providers);
            output.report(&cell(&tree), Some(rows), |_| {
                drawn(&tree.providers, None, "")
            })
        }
        Action::Show(Named { provider }) => {
            let (_, shown) = tree(content, &provider).await?;
            let rows = inventories(std::slice::from_ref(&shown));
            output.report(&cell(&shown), Some(rows), |table| head(&shown) + &table)
        }
        Action::Holders { named, class } => {
            let (_, provider) = tree(content, &named.provider).await?;
            let filters = json!({ "provider": provider.uuid, "class": class });
            let consumers = content.consumers(&filters).await?;
            output.rows(holders(&provider, consumers, class.as_deref()))
        }
    }
}

/// Header of `show`, above the table of inventories.
fn head(provider: &TreeProvider<'_>) -> String {
    format!(
        "{}\n  uuid        {}\n  parent      {}\n  generation  {}\n  consumers   {}\n  aggregates  {}\n  \
         traits      {}\n\n",
        text(&provider.name),
        text(&provider.uuid),
        word(&provider.parent),
        provider.generation,
        provider.holders,
        word(&provider.aggregates),
        word(&provider.traits)
    )
}

impl Filters {
    /// The filters as query parameters of `GET /resource_providers`.
    fn json(&self) -> Value {
        let amount = |class: &String| {
            if class.contains(':') {
                class.clone()
            } else {
                format!("{class}:1")
            }
        };
        let resources = self.class.iter().map(amount).collect::<Vec<_>>().join(",");
        let required = self.r#trait.join(",");
        json!({ "resources": resources, "required": required, "member_of": self.aggregate })
    }

    /// The filters as a request for candidates, which always contains a resource class.
    fn request(&self) -> Value {
        let mut request = self.json();
        if self.class.is_empty() {
            request["resources"] = json!("VCPU:1");
        }
        request
    }
}

/// A tree, and the provider in it that the user asked for.
async fn tree(
    content: &Content,
    given: &str,
) -> anyhow::Result<(Tree<'static>, TreeProvider<'static>)> {
    let uuid = content.provider(given).await?;
    let path = format!("{EXTENSIONS}/trees/{uuid}");
    let tree: Tree<'_> = content.get(&path).await?;
    let mut all = tree.providers.iter();
    let found = all
        .find(|one| one.uuid == uuid)
        .cloned()
        .with_context(|| format!("provider {uuid} has just moved to another tree: try again"))?;
    Ok((tree, found))
}

/// An inventory of a provider.
#[derive(Serialize)]
struct Listed {
    provider: String,
    uuid: String,
    class: String,
    #[serde(flatten)]
    inventory: TreeInventory,
}

/// A row for each inventory of each provider.
fn inventories(providers: &[TreeProvider<'_>]) -> Rows<Listed> {
    let mut items = Vec::new();
    for one in providers {
        items.extend(one.inventories.iter().map(|(class, inventory)| Listed {
            provider: one.name.to_string(),
            uuid: one.uuid.to_string(),
            class: class.to_string(),
            inventory: *inventory,
        }));
    }
    Rows::new(items)
        .wide("provider", |row| row.provider.clone())
        .wide("uuid", |row| row.uuid.clone())
        .column("class", |row| row.class.clone())
        .column("total", |row| row.inventory.total)
        .column("reserved", |row| row.inventory.reserved)
        .column("allocation_ratio", |row| row.inventory.allocation_ratio)
        .column("capacity", |row| row.inventory.capacity)
        .column("used", |row| row.inventory.used)
        .wide("min_unit", |row| row.inventory.min_unit)
        .wide("max_unit", |row| row.inventory.max_unit)
        .wide("step_size", |row| row.inventory.step_size)
}

/// Draws the children of `parent` with their inventories and subtrees. `margin` precedes each line.
fn drawn(providers: &[TreeProvider<'_>], parent: Option<&str>, margin: &str) -> String {
    let mut drawing = String::new();
    let mut below = providers
        .iter()
        .filter(|one| one.parent.as_deref() == parent)
        .peekable();
    while let Some(one) = below.next() {
        let (fork, stem) = match (parent, below.peek()) {
            (None, _) => ("", ""),
            (_, None) => ("└─ ", "   "),
            (_, Some(_)) => ("├─ ", "│  "),
        };
        let (name, consumers) = (text(&one.name), counted(one.holders, "consumer"));
        drawing += &format!("{margin}{fork}{name}  ({consumers})\n");
        let margin = format!("{margin}{stem}");
        let children = drawn(providers, Some(&one.uuid), &margin);
        let stem = if children.is_empty() { " " } else { "│" };
        for line in bars(&one.inventories) {
            drawing += &format!("{margin}{stem}    {line}\n");
        }
        drawing += &children;
    }
    drawing
}

/// A line for each class: a bar, and used/capacity.
fn bars(inventories: &BTreeMap<Cow<'_, str>, TreeInventory>) -> Vec<String> {
    let longest = inventories.keys().map(|class| class.len()).max();
    let width = longest.unwrap_or_default();
    let line = |(class, inventory): (&Cow<'_, str>, &TreeInventory)| {
        let (used, capacity) = (inventory.used, inventory.capacity.clipped());
        format!("{class:<width$} {} {used}/{capacity}", bar(used, capacity))
    };
    inventories.iter().map(line).collect()
}

/// A bar. Any usage shows at least one mark; usage above the capacity ends with an exclamation
/// mark.
fn bar(used: u64, capacity: u64) -> String {
    let part = u128::from(used.min(capacity)) * BAR_WIDTH as u128;
    let filled = "#".repeat(part.div_ceil(u128::from(capacity.max(1))) as usize);
    let end = if used > capacity { '!' } else { ']' };
    format!("[{filled:.<BAR_WIDTH$}{end}")
}

/// A consumer and its allocation on one provider.
#[derive(Serialize)]
struct Holder {
    #[serde(flatten)]
    consumer: Consumer<'static>,
    /// Largest share of the capacity of a resource class of the provider, in percent.
    percent: f64,
    resources: Option<BTreeMap<Cow<'static, str>, u64>>,
}

/// The consumers of a provider with their allocations on it, sorted by their largest share of the
/// capacity of a resource class.
fn holders(
    provider: &TreeProvider<'_>,
    consumers: Vec<Consumer<'static>>,
    class: Option<&str>,
) -> Rows<Holder> {
    let percent = |(name, amount): (&Cow<'_, str>, &u64)| {
        let inventory = provider.inventories.get(name);
        let capacity = inventory.map_or(0.0, |inventory| inventory.capacity.as_f64());
        let is_meant = class.is_none_or(|class| class == name);
        let amount = if is_meant { *amount as f64 } else { 0.0 };
        (amount * 1000.0 / capacity.max(1.0)).round() / 10.0
    };
    let holder = |consumer: Consumer<'static>| {
        let mut all = consumer.allocations.iter();
        let here = all.find(|one| one.provider.uuid == provider.uuid);
        let resources = here.map(|one| one.resources.clone());
        let shares = resources.iter().flatten().map(percent);
        Holder {
            percent: shares.fold(0.0, f64::max),
            resources,
            consumer,
        }
    };
    let mut holders: Vec<_> = consumers.into_iter().map(holder).collect();
    holders.sort_by(|one, other| other.percent.total_cmp(&one.percent));
    Rows::new(holders)
        .column("consumer", |one| one.consumer.uuid.clone())
        .column("type", |one| one.consumer.r#type.clone())
        .column("project", |one| one.consumer.project_id.clone())
        .column("percent", |one| one.percent)
        .column("resources", |one| one.resources.clone())
        .column("updated_at", |one| one.consumer.updated_at.clone())
        .wide("user", |one| one.consumer.user_id.clone())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::render::Format;

    fn tree() -> Tree<'static> {
        let inventory = |used: u64, capacity: u64| {
            json!({"total": capacity, "reserved": 0, "allocation_ratio": 1.0, "capacity": capacity, "used": used,
                   "min_unit": 1, "max_unit": capacity, "step_size": 1})
        };
        let provider = |name: &str, parent: Value, inventories: Value, traits: Value| {
            json!({"uuid": name, "name": name, "parent": parent, "generation": 3, "inventories": inventories,
                   "traits": traits, "aggregates": [], "holders": 2})
        };
        let tree = json!({"root": "cmp", "providers": [
            provider("cmp", Value::Null, json!({"MEMORY_MB": inventory(9, 8), "VCPU": inventory(1, 64)}), json!(["A"])),
            provider("numa0", json!("cmp"), json!({}), json!(["A", "B"])),
            provider("計算", json!("numa0"), json!({"VGPU": inventory(2, 4)}), json!([])),
            provider("numa1", json!("cmp"), json!({"VGPU": inventory(0, 0)}), json!([])),
        ]});
        Tree::deserialize(tree).unwrap()
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
        assert_eq!(drawn(&tree().providers, None, ""), expected);
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
        let csv = Format::Csv.printed(inventories(&tree().providers));
        assert!(
            csv.ends_with("\nnuma1,numa1,VGPU,0,0,1.0,0,0,1,0,1\n"),
            "{csv}"
        );
    }

    #[test]
    fn the_largest_holder_comes_first() {
        let consumer = |uuid: &str, memory: u64, vcpus: u64| {
            let consumer = json!({"uuid": uuid, "type": null, "project_id": "p", "user_id": "u", "updated_at": "now", "allocations": [
                {"provider": {"uuid": "other"}, "resources": {"VCPU": 1000}},
                {"provider": {"uuid": "cmp"}, "resources": {"MEMORY_MB": memory, "VCPU": vcpus}}]});
            Consumer::deserialize(consumer).unwrap()
        };
        let tree = tree();
        let order = |class| {
            let consumers = vec![
                consumer("a", 1, 32),
                consumer("b", 2, 48),
                consumer("c", 8, 1),
            ];
            let rows = holders(&tree.providers[0], consumers, class);
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
