//! `placementctl claim`: claims allocations for new consumers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use placement_client::ApiRequest;
use placement_wire::claims::{ClaimRequest, Claimant, Claimed, Order, Want};
use placement_wire::holds::NewHold;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::content::{Content, EXTENSIONS, query};
use crate::files::read;
use crate::holds::lease;
use crate::moment::timestamp;
use crate::render::{Rows, cell, text, word};

/// Number of providers whose names are read; further ones are shown as UUIDs.
const NAMES_MAX: usize = 50;

#[derive(Args)]
pub(crate) struct ClaimArgs {
    /// Amounts such as `VCPU:8 MEMORY_MB:4096`, or a query of `GET /allocation_candidates`. Each
    /// consumer gets one candidate.
    #[arg(required_unless_present = "data", conflicts_with = "data")]
    query: Vec<String>,
    /// Project that owns the consumers.
    #[arg(
        long,
        value_name = "ID",
        required_unless_present = "data",
        conflicts_with = "data"
    )]
    project: Option<String>,
    /// User that owns the consumers.
    #[arg(
        long,
        value_name = "ID",
        required_unless_present = "data",
        conflicts_with = "data"
    )]
    user: Option<String>,
    /// UUID of a new consumer. Repeatable. Default: one consumer with a random UUID, which the
    /// output contains.
    #[arg(long, value_name = "UUID", conflicts_with = "data")]
    consumer: Vec<Uuid>,
    /// Type of the consumers.
    #[arg(long, default_value = "INSTANCE", conflicts_with = "data")]
    r#type: String,
    /// Which candidates to prefer.
    #[arg(long, value_enum, default_value_t, conflicts_with = "data")]
    order: Preference,
    /// Make the allocations a hold, which keeps their room for this consumer: a write that gives it
    /// allocations ends the hold. Repeatable.
    #[arg(long, value_name = "UUID", conflicts_with = "data")]
    hold_for: Vec<Uuid>,
    /// Make the allocations a hold that ends after this time, such as 90s, 15m, 12h or 7d, unless
    /// it is renewed or confirmed. The maximum is 31d.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = lease,
        conflicts_with_all = ["data", "due"]
    )]
    lease: Option<u32>,
    /// Make the allocations a hold that is overdue from this time on, such as
    /// 2026-12-24T06:00:00Z. The hold does not end by itself.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = timestamp,
        conflicts_with = "data"
    )]
    due: Option<String>,
    /// File with the JSON body of `POST /placementd/v1/claims`, see docs/api.md; `-` reads standard
    /// input.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

/// Which candidates a claim prefers.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Preference {
    /// The candidates with the smallest share of free capacity after the claim.
    Pack,
    /// The candidates with the largest share of free capacity after the claim.
    Spread,
    /// The candidates in random order.
    #[default]
    Any,
}

impl From<Preference> for Order {
    fn from(preference: Preference) -> Self {
        match preference {
            Preference::Pack => Self::Pack,
            Preference::Spread => Self::Spread,
            Preference::Any => Self::Any,
        }
    }
}

pub(crate) async fn claim(content: &Content, args: ClaimArgs) -> anyhow::Result<String> {
    let output = &content.source.output;
    output.check_columns(&listed(&Claimed::default(), &BTreeMap::new()))?;
    let (body, asked) = match &args.data {
        Some(file) => {
            let body: Value = serde_json::from_slice(&read(file)?)
                .with_context(|| format!("{} is not JSON", file.display()))?;
            let asked = body["want"]["query"].as_str().unwrap_or_default();
            (body.clone(), asked.to_owned())
        }
        None => {
            let asked = query(&args.query)?;
            (cell(wanted(args, asked.clone())), asked)
        }
    };
    let request = ApiRequest::post(&format!("{EXTENSIONS}/claims")).json(&body);
    let answer = content.ask(request).await;
    let answer: Claimed = content.checked(answer, &asked).await?;
    let names = names(content, &answer).await;
    let rows = listed(&answer, &names);
    output.report(&cell(&answer), Some(rows), |table| {
        let begin = if answer.repeated {
            "claimed before; nothing was changed\n"
        } else {
            ""
        };
        format!("{begin}{table}")
    })
}

/// The claim of a query. Each flag of a hold makes the allocations a hold.
fn wanted(args: ClaimArgs, query: String) -> ClaimRequest {
    let hyphenated = |consumer: Uuid| consumer.as_hyphenated().to_string();
    let hold = NewHold {
        kept_for: args.hold_for.into_iter().map(hyphenated).collect(),
        lease_s: args.lease,
        due: args.due,
    };
    let mut consumers = args.consumer;
    if consumers.is_empty() {
        consumers.push(Uuid::new_v4());
    }
    let claimant = Claimant {
        project_id: args.project.unwrap_or_default(),
        user_id: args.user.unwrap_or_default(),
        consumer_type: Some(args.r#type),
        consumer_generation: None,
    };
    let consumers = consumers
        .into_iter()
        .map(|consumer| (hyphenated(consumer), claimant.clone()));
    ClaimRequest {
        consumers: consumers.collect(),
        want: Some(Want {
            query,
            order: args.order.into(),
        }),
        hold: (hold != NewHold::default()).then_some(hold),
        ..ClaimRequest::default()
    }
}

/// The names of the providers by UUID, as far as they can be read.
async fn names(content: &Content, answer: &Claimed) -> BTreeMap<String, String> {
    let providers = answer.allocations.values().flat_map(BTreeMap::keys);
    let providers: BTreeSet<_> = providers.collect();
    let mut names = BTreeMap::new();
    for uuid in providers.into_iter().take(NAMES_MAX) {
        let found = content.providers(json!({ "uuid": uuid })).await;
        let found = found.unwrap_or_default().into_iter();
        names.extend(found.map(|provider| (provider.uuid, provider.name)));
    }
    names
}

/// What a consumer takes from one provider.
#[derive(Serialize)]
struct Taken {
    consumer: String,
    provider: String,
    resources: Value,
    provider_uuid: String,
}

/// A row for each consumer and provider.
fn listed(answer: &Claimed, names: &BTreeMap<String, String>) -> Rows<Taken> {
    let mut rows = Vec::new();
    for (consumer, allocations) in &answer.allocations {
        for (provider, taken) in allocations {
            rows.push(Taken {
                consumer: consumer.clone(),
                provider: text(names.get(provider).unwrap_or(provider)),
                resources: cell(&taken.resources),
                provider_uuid: provider.clone(),
            });
        }
    }
    Rows::new(rows)
        .column("consumer", |row| row.consumer.clone())
        .column("provider", |row| row.provider.clone())
        .column("resources", |row| word(&row.resources))
        .wide("provider_uuid", |row| row.provider_uuid.clone())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::render::Format;

    #[test]
    fn each_provider_of_a_consumer_is_a_row() {
        let answer = json!({"allocations": {"c": {
            "1": {"resources": {"VCPU": 2}}, "2": {"resources": {"DISK_GB": 9, "MEMORY_MB": 8}}}}});
        let answer = Claimed::deserialize(answer).unwrap();
        let names = BTreeMap::from([("1".to_owned(), "cmp-1".to_owned())]);
        let printed = Format::Csv.printed(listed(&answer, &names));
        let expected = "consumer,provider,resources,provider_uuid\n\
                        c,cmp-1,VCPU=2,1\nc,2,DISK_GB=9 MEMORY_MB=8,2\n";
        assert_eq!(printed, expected);
    }

    fn args() -> ClaimArgs {
        ClaimArgs {
            query: Vec::new(),
            project: Some("p".to_owned()),
            user: Some("u".to_owned()),
            consumer: Vec::new(),
            r#type: "INSTANCE".to_owned(),
            order: Preference::Pack,
            hold_for: Vec::new(),
            lease: None,
            due: None,
            data: None,
        }
    }

    #[test]
    fn consumers_are_new_instances() {
        let claim = cell(wanted(args(), "resources=VCPU:1".to_owned()));
        let consumers = claim["consumers"].as_object().unwrap();
        let (uuid, about) = consumers.iter().next().unwrap();
        assert!(Uuid::parse_str(uuid).is_ok());
        let expected = json!({"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE",
                              "consumer_generation": null});
        assert_eq!(about, &expected);
        let expected = json!({"query": "resources=VCPU:1", "order": "pack"});
        assert_eq!(claim["want"], expected);
        assert_eq!(claim.get("choices"), None);
        assert_eq!(claim.get("hold"), None);
    }

    #[test]
    fn each_flag_of_a_hold_makes_a_hold() {
        let hold = |args| cell(wanted(args, "resources=VCPU:1".to_owned()))["hold"].clone();
        let kept_for = Uuid::from_u128(1);
        let of_others = ClaimArgs {
            hold_for: vec![kept_for],
            ..args()
        };
        assert_eq!(hold(of_others), json!({"for": [kept_for]}));
        let lease = ClaimArgs {
            lease: Some(3600),
            ..args()
        };
        assert_eq!(hold(lease), json!({"lease_s": 3600}));
        let time = "2026-12-24T06:00:00Z";
        let due = ClaimArgs {
            due: Some(time.to_owned()),
            ..args()
        };
        assert_eq!(hold(due), json!({"due": time}));
    }
}
