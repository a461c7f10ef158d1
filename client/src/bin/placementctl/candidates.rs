//! `placementctl candidates`: lists allocation candidates.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde_json::{Value, json};

use crate::content::{Content, query};
use crate::render::{Rows, list, pairs, warn, word};

#[derive(Args)]
pub(crate) struct Which {
    /// Query of `GET /allocation_candidates`, such as `resources=VCPU:8&required=HW_CPU_X86_AVX2`,
    /// or a complete URI from an access log.
    query: String,
}

pub(crate) async fn show(content: &Content, which: Which) -> anyhow::Result<String> {
    let (output, mut asked) = (&content.source.output, query(&which.query));
    let own = asked.split('&').find_map(|one| one.strip_prefix("limit="));
    let limit = own.map_or(output.limit, |limit| limit.parse().ok());
    if let (Some(limit), None) = (output.limit, own) {
        asked += &format!("&limit={limit}");
    }
    let answer = content
        .get(&format!("/allocation_candidates?{asked}"))
        .await?;
    let found = list(&answer["allocation_requests"]).len();
    if limit.is_some_and(|limit| found >= limit) {
        warn(&format!(
            "only the first {found} candidates are shown; there may be more (limit)"
        ));
    }
    let rows = listed(&answer, &content.providers(Value::Null).await?);
    output.report(&answer, Some(rows), |table| {
        match list(&answer["allocation_requests"]) {
            [] => "no candidates; `placementctl explain` shows why\n".to_owned(),
            _ => table,
        }
    })
}

/// A row for each candidate: its root providers, and the resources that it takes from each
/// provider.
fn listed(answer: &Value, providers: &[Value]) -> Rows {
    let named = providers
        .iter()
        .filter_map(|one| Some((one["uuid"].as_str()?, &one["name"])));
    let names: BTreeMap<&str, &Value> = named.collect();
    let name = |uuid: &str| {
        names
            .get(uuid)
            .map_or_else(|| uuid.to_owned(), |name| word(name))
    };
    let row = |candidate: &Value| {
        let (mut roots, mut taken) = (BTreeSet::new(), Vec::new());
        for (provider, held) in pairs(&candidate["allocations"]) {
            let root = &answer["provider_summaries"][provider]["root_provider_uuid"];
            roots.insert(name(root.as_str().unwrap_or(provider)));
            taken.push(format!("{}: {}", name(provider), word(&held["resources"])));
        }
        json!({"root": roots, "takes": taken.join("; "), "candidate": candidate})
    };
    let items = list(&answer["allocation_requests"])
        .iter()
        .map(row)
        .collect();
    Rows::new("root takes", items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Format;

    #[test]
    fn a_candidate_is_a_row_with_names() {
        let answer = json!({
            "allocation_requests": [{"allocations": {
                "1": {"resources": {"VCPU": 2}}, "2": {"resources": {"DISK_GB": 9, "MEMORY_MB": 8}}}}],
            "provider_summaries": {"1": {"root_provider_uuid": "0"}, "2": {"root_provider_uuid": "2"}},
        });
        let providers = [
            json!({"uuid": "0", "name": "cmp"}),
            json!({"uuid": "1", "name": "numa"}),
        ];
        let printed = Format::Csv.printed(listed(&answer, &providers));
        let expected = "root,takes\n\"2, cmp\",numa: VCPU=2; 2: DISK_GB=9 MEMORY_MB=8\n";
        assert_eq!(printed, expected);
    }
}
