//! `placementctl providers`: inventories, usage and consumers of resource providers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use clap::{Args, Subcommand};
use http::StatusCode;
use placement_client::{ApiRequest, encode};
use placement_wire::capacity::CapacityReport;
use placement_wire::consumers::Consumer;
use placement_wire::trees::{Tree, TreeInventory, TreeProvider};
use placement_wire::upstream::{Provider, SummaryResource};
use placement_words::{class_order, counted, share};
use serde::Serialize;
use serde_json::{Value, json};

use crate::content::{Content, EXTENSIONS, similar_names};
use crate::holds::ends;
use crate::render::{Rows, cell, pairs, text, warn, word};

/// Width of a bar in characters.
const BAR_WIDTH: usize = 20;
/// Number of levels of a tree that are drawn. A level makes each line longer.
const LEVELS_MAX: usize = 64;
/// Maximum number of classes with a column of their own.
const CLASSES_MAX: usize = 6;
/// Message if a provider has no consumers: those of a host may be on its children.
pub(crate) const NO_HOLDERS: &str =
    "no consumers found on this provider; `placementctl providers tree` shows its whole tree";

#[derive(Args)]
pub(crate) struct ProvidersArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List providers and the used part of their capacity.
    ///
    /// A provider must match all given conditions.
    List(Filters),
    /// Draw the tree of a provider with the usage of each inventory.
    Tree(Named),
    /// Show the details of one provider.
    Show(Named),
    /// List the consumers of a provider, largest first.
    ///
    /// A consumer is as large as its largest share of a resource class of the provider.
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
    /// Show only providers with room for this amount (default: 1) of this resource class.
    /// Repeatable.
    #[arg(long, value_name = "CLASS[:AMOUNT]")]
    class: Vec<String>,
    /// Show only providers with this trait, or without the trait if `!` precedes it.
    /// Repeatable.
    #[arg(long, value_name = "TRAIT")]
    r#trait: Vec<String>,
    /// Show only providers in this aggregate. Repeatable.
    #[arg(long, value_name = "UUID")]
    aggregate: Vec<String>,
    /// Show only providers whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Show the roots of the trees of these providers, each with the sums of its whole tree.
    #[arg(long)]
    roots: bool,
}

#[derive(Args)]
struct Named {
    /// Provider, by UUID, name, or the beginning of its name. If several providers match, the only
    /// root among them is used.
    provider: String,
}

pub(crate) async fn run(content: &Content, args: ProvidersArgs) -> anyhow::Result<String> {
    let output = &content.source.output;
    match args.action {
        Action::List(filters) => {
            let (found, none) = matching(content, &filters).await?;
            let resources = if found.is_empty() {
                BTreeMap::new()
            } else {
                resources(content, if filters.roots { "tree" } else { "provider" }).await?
            };
            output.rows(listed(found, resources).if_none(none))
        }
        Action::Tree(Named { provider }) => {
            let uuid = content.provider_of_tree(&provider).await?;
            let (tree, _) = tree(content, uuid).await?;
            let rows = inventories(&tree.providers);
            output.report(&cell(&tree), Some(rows), |_| drawn(&tree.providers))
        }
        Action::Show(Named { provider }) => {
            let (_, shown) = tree(content, content.provider(&provider).await?).await?;
            let rows = inventories(std::slice::from_ref(&shown)).if_none("no inventories found");
            output.report(&cell(&shown), Some(rows), |table| head(&shown) + &table)
        }
        Action::Holders { named, class } => {
            let (_, provider) = tree(content, content.provider(&named.provider).await?).await?;
            let filters = json!({ "provider": provider.uuid, "class": class });
            let consumers = content.consumers(&filters).await;
            let consumers = content.checked_class(consumers, class.as_deref()).await?;
            let rows = holders(&provider, consumers, class.as_deref());
            output.rows(rows.if_none(NO_HOLDERS))
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

    /// The filters as a query of candidates, which always contains a resource class.
    fn query(&self) -> String {
        let mut asked = self.json();
        if self.class.is_empty() {
            asked["resources"] = json!("VCPU:1");
        }
        let given = pairs(&asked).filter_map(|(name, value)| {
            let value = value.as_str().filter(|value| !value.is_empty())?;
            Some(format!("{name}={}", encode(value)))
        });
        given.collect::<Vec<_>>().join("&")
    }

    /// Whether there is a condition apart from the name.
    fn has_conditions(&self) -> bool {
        [&self.class, &self.r#trait, &self.aggregate]
            .iter()
            .any(|all| !all.is_empty())
    }
}

/// The providers that match the filters, or the roots of their trees; and the message if there are
/// no such providers.
async fn matching(content: &Content, filters: &Filters) -> anyhow::Result<(Vec<Provider>, String)> {
    let found = content.providers(filters.json()).await;
    let mut found = content.checked(found, &filters.query()).await?;
    if filters.roots && filters.has_conditions() {
        let roots: BTreeSet<_> = (found.into_iter())
            .filter_map(|one| one.root_provider_uuid)
            .collect();
        found = content.providers(Value::Null).await?;
        found.retain(|one| roots.contains(&one.uuid));
    } else if filters.roots {
        found.retain(|one| one.parent_provider_uuid.is_none());
    }
    let mut none = "no providers found".to_owned();
    if let Some(part) = &filters.name {
        if !found.is_empty() {
            none += &unnamed(part, &found);
        }
        found.retain(|one| one.name.contains(part));
    }
    Ok((found, none))
}

/// The end of the message if no name of these providers contains a text.
fn unnamed(part: &str, found: &[Provider]) -> String {
    format!(": no name contains {part:?}{}", similar_names(part, found))
}

/// Capacity and used amount of each resource class.
type Resources = BTreeMap<String, SummaryResource>;

/// The resources of each provider, or of the tree of each root, by UUID. Empty, with a warning, if
/// the node has too many of them for one response or is older.
async fn resources(content: &Content, by: &str) -> anyhow::Result<BTreeMap<String, Resources>> {
    let request = ApiRequest::get(&format!("{EXTENSIONS}/capacity")).query("by", by);
    let answer: CapacityReport<'_> = match content.ask(request).await {
        Err(error) if error.status() == Some(StatusCode::BAD_REQUEST) => {
            warn(&format!("the usage of the providers is missing: {error}"));
            CapacityReport::default()
        }
        answer => answer?,
    };
    let mut all: BTreeMap<String, Resources> = BTreeMap::new();
    for row in answer.capacity {
        let Some(provider) = row.provider else {
            continue;
        };
        let (capacity, used) = (row.capacity, row.used);
        all.entry(provider.uuid.into_owned())
            .or_default()
            .insert(row.class.into_owned(), SummaryResource { capacity, used });
    }
    Ok(all)
}

/// A provider, and its resources or those of its tree.
#[derive(Serialize)]
struct WithResources {
    #[serde(flatten)]
    provider: Provider,
    resources: Resources,
}

/// A row for each provider. The most usual classes have a column each.
fn listed(
    providers: Vec<Provider>,
    mut resources: BTreeMap<String, Resources>,
) -> Rows<WithResources> {
    let items: Vec<_> = (providers.into_iter())
        .map(|provider| WithResources {
            resources: resources.remove(&provider.uuid).unwrap_or_default(),
            provider,
        })
        .collect();
    let mut classes: Vec<String> = {
        let all: BTreeSet<_> = items.iter().flat_map(|row| row.resources.keys()).collect();
        all.into_iter().cloned().collect()
    };
    // The sort is stable, so other classes stay in the order of their names.
    classes.sort_by_key(|class| class_order(class));
    let others = classes.split_off(classes.len().min(CLASSES_MAX));
    let mut rows = Rows::new(items).column("name", |row| row.provider.name.clone());
    for class in &classes {
        let (name, of_share) = (class.clone(), class.clone());
        rows = rows.readable(
            class.clone(),
            move |row| row.resources.get(&of_share).map(|one| used_part(*one)),
            move |row| {
                let one = row.resources.get(&name)?;
                Some(share(&name, one.used, one.capacity))
            },
        );
    }
    if !others.is_empty() {
        let names = others.clone();
        let shares = move |row: &WithResources| {
            let shares = names.iter().filter_map(|name| {
                let one = row.resources.get(name)?;
                Some(format!("{name} {}", share(name, one.used, one.capacity)))
            });
            shares.collect::<Vec<_>>().join(", ")
        };
        rows = rows.readable("others", shares, |_| None);
    }
    for class in classes.into_iter().chain(others) {
        let (head, of_used, of_capacity) = (class.clone(), class.clone(), class);
        rows = rows
            .raw(format!("{head}_used"), move |row| {
                row.resources.get(&of_used).map(|one| one.used)
            })
            .raw(format!("{head}_capacity"), move |row| {
                row.resources.get(&of_capacity).map(|one| one.capacity)
            });
    }
    rows.wide("uuid", |row| row.provider.uuid.clone())
        .wide("generation", |row| row.provider.generation)
        .wide("parent", |row| row.provider.parent_provider_uuid.clone())
        .wide("root", |row| row.provider.root_provider_uuid.clone())
}

/// The used part of a capacity, by which rows are sorted.
fn used_part(one: SummaryResource) -> f64 {
    one.used as f64 / one.capacity.as_f64().max(1.0)
}

/// A tree, and the provider with this UUID in it.
async fn tree(
    content: &Content,
    uuid: String,
) -> anyhow::Result<(Tree<'static>, TreeProvider<'static>)> {
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
    let class = |row: &Listed| row.class.clone();
    Rows::new(items)
        .wide("provider", |row| row.provider.clone())
        .wide("uuid", |row| row.uuid.clone())
        .column("class", |row| row.class.clone())
        .column("total", |row| row.inventory.total)
        .in_units(class)
        .column("reserved", |row| row.inventory.reserved)
        .in_units(class)
        .column("allocation_ratio", |row| row.inventory.allocation_ratio)
        .column("capacity", |row| row.inventory.capacity)
        .in_units(class)
        .column("used", |row| row.inventory.used)
        .in_units(class)
        .wide("min_unit", |row| row.inventory.min_unit)
        .wide("max_unit", |row| row.inventory.max_unit)
        .wide("step_size", |row| row.inventory.step_size)
}

/// Draws the providers of a tree with their inventories. The response may be faulty: each provider
/// is drawn at most once, and none below [`LEVELS_MAX`].
fn drawn(providers: &[TreeProvider<'_>]) -> String {
    let mut below: BTreeMap<Option<&str>, Vec<&TreeProvider<'_>>> = BTreeMap::new();
    for one in providers {
        below.entry(one.parent.as_deref()).or_default().push(one);
    }
    let roots = below.remove(&None).unwrap_or_default();
    // Margin and fork precede the name, margin and stem the lines below it.
    let place = |one, level: usize, margin: &str, is_last: bool| {
        let (fork, stem) = match (level, is_last) {
            (1, _) => ("", ""),
            (_, true) => ("└─ ", "   "),
            (_, false) => ("├─ ", "│  "),
        };
        (
            one,
            level,
            format!("{margin}{fork}"),
            format!("{margin}{stem}"),
        )
    };
    let mut next: Vec<_> = roots
        .into_iter()
        .rev()
        .map(|one| place(one, 1, "", true))
        .collect();
    let mut drawing = String::new();
    while let Some((one, level, fork, margin)) = next.pop() {
        let mut children = Vec::new();
        if level < LEVELS_MAX {
            children = below.remove(&Some(&*one.uuid)).unwrap_or_default();
        }
        let (name, consumers) = (text(&one.name), counted(one.holders, "consumer"));
        drawing += &format!("{fork}{name}  ({consumers})\n");
        let stem = if children.is_empty() { " " } else { "│" };
        for line in bars(&one.inventories) {
            drawing += &format!("{margin}{stem}    {line}\n");
        }
        let last_first = children.into_iter().rev().enumerate();
        next.extend(last_first.map(|(at, child)| place(child, level + 1, &margin, at == 0)));
    }
    let left: usize = below.values().map(Vec::len).sum();
    if left > 0 {
        let left = counted(left as u64, "provider");
        drawing +=
            &format!("{left} below level {LEVELS_MAX} or without a root: `-o json` has them\n");
    }
    drawing
}

/// A line for each class: a bar, and used/capacity.
fn bars(inventories: &BTreeMap<Cow<'_, str>, TreeInventory>) -> Vec<String> {
    let longest = inventories.keys().map(|class| class.len()).max();
    let width = longest.unwrap_or_default();
    let line = |(class, inventory): (&Cow<'_, str>, &TreeInventory)| {
        let bar = bar(inventory.used, inventory.capacity.clipped());
        let share = share(class, inventory.used, inventory.capacity);
        format!("{class:<width$} {bar} {share}")
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
        .wide("hold", |one| one.consumer.hold.as_ref().map(ends))
}

#[cfg(test)]
mod tests;
