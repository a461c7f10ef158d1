//! `/placementd/v1/trees/{uuid}`: trees of providers with their content.

use placement_model::query::trees::{ShownInventory, ShownProvider, ShownTree};
use placement_model::types::Inventory;
use placement_wire::trees as wire;

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies, to_json};
use crate::http::wire::own;

/// `GET /placementd/v1/trees/{uuid}`: the whole tree that contains this provider.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    context
        .query()?
        .check_once(context.head.route, context.head.version)?;
    let uuid = context.provider_or_404()?;
    let view = context.view().await?;
    let made = context
        .listed(move || {
            let tree = view.state.tree_with(&uuid);
            Ok(tree.as_ref().map(|tree| to_json(&shown(tree))))
        })
        .await?;
    let body = context.find_provider(Varies::No, |_| made)?;
    Ok(context.modified_now(Answer::chunks(vec![body])))
}

fn shown(tree: &ShownTree) -> wire::Tree<'_> {
    wire::Tree {
        root: tree.root.to_string().into(),
        providers: tree.providers.iter().map(provider).collect(),
    }
}

fn provider(provider: &ShownProvider) -> wire::TreeProvider<'_> {
    let inventories = provider.inventories.iter();
    let traits = provider.traits.iter();
    let aggregates = provider.aggregates.iter();
    wire::TreeProvider {
        uuid: provider.uuid.to_string().into(),
        name: provider.name.as_str().into(),
        parent: provider.parent.map(|parent| parent.to_string().into()),
        generation: provider.generation.0,
        inventories: inventories
            .map(|(class, shown)| (class.as_str().into(), inventory(shown)))
            .collect(),
        traits: traits.map(|name| name.as_str().into()).collect(),
        aggregates: aggregates.map(|uuid| uuid.as_str().into()).collect(),
        holders: provider.holders as u64,
    }
}

fn inventory(shown: &ShownInventory) -> wire::TreeInventory {
    let Inventory {
        total,
        reserved,
        min_unit,
        max_unit,
        step_size,
        allocation_ratio,
    } = shown.inventory;
    wire::TreeInventory {
        total,
        reserved,
        min_unit,
        max_unit,
        step_size,
        allocation_ratio,
        capacity: own::capacity(shown.capacity),
        used: shown.used,
    }
}
