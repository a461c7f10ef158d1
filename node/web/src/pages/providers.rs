//! Providers, with the used part of their capacity.

use std::collections::BTreeMap;

use maud::html;
use placement_wire::capacity::CapacityReport;
use placement_wire::upstream::{Provider, Providers};
use placement_words::{class_order, share};
use serde::de::IgnoredAny;

use super::Content;
use super::listing::{Listing, Order};
use super::lists::provider;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Table, cell};
use crate::words::cut;

const PROVIDERS: Listing<Vec<WithUse>, WithUse> = Listing {
    title: "Providers",
    page: "providers",
    command: "placementctl providers list",
    api: "/resource_providers",
    filters: &[
        ("name", "Name contains", "cmp-1", "--name"),
        ("resources", "With room for", "VCPU:8", "--class"),
        ("required", "With traits", "HW_CPU_X86_AVX2", "--trait"),
    ],
    rows: Vec::as_slice,
    table: |of| {
        Table::new()
            .column("Name", |one: &WithUse| {
                provider(of, &one.provider.uuid, &one.provider.name)
            })
            .column("Used", |one| cell(&one.used))
            .column("Parent", |one| {
                let parent = one.provider.parent_provider_uuid.as_deref();
                html! {
                    @if let Some(uuid) = parent { (provider(of, uuid, uuid)) } @else { "–" }
                }
            })
            .column("UUID", |one| cell(&one.provider.uuid))
            .column("Generation", |one| cell(one.provider.generation))
    },
    order: Order::ByName(|one| &one.provider.name),
};

/// A provider without its links, which are the largest part of the response: it may have 100,000
/// providers.
type Unlinked = Provider<IgnoredAny>;

/// A provider, and the used part of each of its inventories, such as `VCPU 35/256`.
struct WithUse {
    provider: Unlinked,
    used: Vec<String>,
}

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let answer = questions.get(PROVIDERS.address(of)).await;
    let answer: Providers<IgnoredAny> = match answer {
        Ok(answer) => answer,
        Err(refusal) => return PROVIDERS.refused(questions, of, refusal).await,
    };
    let usage = if answer.resource_providers.is_empty() {
        Ok(CapacityReport::default())
    } else {
        let by = [("by", "provider")];
        let path = of.partition.api("/placementd/v1/capacity", &by);
        questions.get(path).await
    };
    // The API refuses a report with too many rows.
    let (usage, problem) = match usage {
        Ok(usage) => (usage, None),
        Err(failure) => (CapacityReport::default(), Some(failure.message)),
    };
    let rows = with_use(answer.resource_providers, usage);
    let mut view = PROVIDERS.view(of, &rows);
    if let Some(problem) = problem {
        view.body = html! { (view.body) p { "The used amounts are missing: " (cut(&problem)) } };
    }
    Ok(view)
}

fn with_use(providers: Vec<Unlinked>, usage: CapacityReport<'_>) -> Vec<WithUse> {
    let mut used: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for one in usage.capacity {
        if let Some(provider) = one.provider {
            let share = share(&one.class, one.used, one.capacity);
            let share = format!("{} {share}", one.class);
            let of_provider = used.entry(provider.uuid.into_owned()).or_default();
            of_provider.push((class_order(&one.class), share));
        }
    }
    let row = |provider: Unlinked| {
        let mut used = used.remove(&provider.uuid).unwrap_or_default();
        used.sort();
        let used = used.into_iter().map(|(_, share)| share).collect();
        WithUse { provider, used }
    };
    providers.into_iter().map(row).collect()
}
