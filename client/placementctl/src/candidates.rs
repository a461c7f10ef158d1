//! `placementctl candidates`: lists allocation candidates.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use placement_wire::upstream::{Candidate, Candidates, Provider};
use serde::Serialize;
use serde_json::Value;

use crate::content::{Content, query};
use crate::render::{Rows, cell, text, warn, word};

#[derive(Args)]
pub(crate) struct CandidatesArgs {
    /// Amounts such as `VCPU:8 MEMORY_MB:4096`, a query of `GET /allocation_candidates` such as
    /// `resources=VCPU:8&required=HW_CPU_X86_AVX2`, or a complete URI from an access log.
    #[arg(required = true)]
    query: Vec<String>,
}

pub(crate) async fn show(content: &Content, args: CandidatesArgs) -> anyhow::Result<String> {
    let (output, mut asked) = (&content.source.output, query(&args.query)?);
    let own = asked.split('&').find_map(|one| one.strip_prefix("limit="));
    let limit = own.map_or(output.limit, |limit| limit.parse().ok());
    if let (Some(limit), None) = (output.limit, own) {
        asked += &format!("&limit={limit}");
    }
    let path = format!("/allocation_candidates?{asked}");
    let answer = content.get(&path).await;
    let answer: Candidates = content.checked(answer, &asked).await?;
    let found = answer.allocation_requests.len();
    if limit.is_some_and(|limit| found >= limit) {
        warn(&format!(
            "only the first {found} candidates are shown because of the limit; there may be more"
        ));
    }
    let rows = listed(&answer, &content.providers(Value::Null).await?);
    output.report(&cell(&answer), Some(rows), |table| match found {
        0 => "no candidates; `placementctl explain` shows why\n".to_owned(),
        _ => table,
    })
}

/// A candidate: its root providers, and the resources that it takes from each provider.
#[derive(Serialize)]
struct Listed {
    root: BTreeSet<String>,
    takes: String,
    candidate: Candidate,
}

/// A row for each candidate.
fn listed(answer: &Candidates, providers: &[Provider]) -> Rows<Listed> {
    let named = providers.iter().map(|one| (&*one.uuid, &*one.name));
    let names: BTreeMap<&str, &str> = named.collect();
    let name = |uuid: &str| match names.get(uuid) {
        Some(name) => text(name),
        None => uuid.to_owned(),
    };
    let row = |candidate: &Candidate| {
        let (mut roots, mut taken) = (BTreeSet::new(), Vec::new());
        for (provider, held) in &candidate.allocations {
            let summary = answer.provider_summaries.get(provider);
            let root = summary.and_then(|summary| summary.root_provider_uuid.as_ref());
            roots.insert(name(root.unwrap_or(provider)));
            taken.push(format!("{}: {}", name(provider), word(&held.resources)));
        }
        Listed {
            root: roots,
            takes: taken.join("; "),
            candidate: candidate.clone(),
        }
    };
    let items = answer.allocation_requests.iter().map(row);
    Rows::new(items.collect())
        .column("root", |row| row.root.clone())
        .column("takes", |row| row.takes.clone())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::render::Format;

    #[test]
    fn a_candidate_is_a_row_with_names() {
        let answer = json!({
            "allocation_requests": [{"allocations": {
                "1": {"resources": {"VCPU": 2}}, "2": {"resources": {"DISK_GB": 9, "MEMORY_MB": 8}}}}],
            "provider_summaries": {"1": {"root_provider_uuid": "0"}, "2": {"root_provider_uuid": "2"}},
        });
        let answer = Candidates::deserialize(answer).unwrap();
        let providers = [("0", "cmp"), ("1", "numa")].map(|(uuid, name)| Provider {
            uuid: uuid.to_owned(),
            name: name.to_owned(),
            ..Provider::default()
        });
        let printed = Format::Csv.printed(listed(&answer, &providers));
        let expected = "root,takes\n\"2, cmp\",numa: VCPU=2; 2: DISK_GB=9 MEMORY_MB=8\n";
        assert_eq!(printed, expected);
    }
}
