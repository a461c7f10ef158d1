//! HTTP encoding of questions.

use std::collections::BTreeSet;

use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::types::{AggregateUuid, Given, TraitName};
use uuid::Uuid;

/// A question and its microversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question without its microversion.
    pub asked: QuestionKind,
    /// Minor part of the microversion `1.minor`, which must support the question.
    pub minor: u8,
}

/// The questions of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionKind {
    /// A `GET` of `/resource_providers`.
    Providers(ProviderFilter),
    /// A `GET` of `/resource_providers/{uuid}`.
    Provider(Uuid),
    /// A `GET` of `…/inventories`.
    Inventories(Uuid),
    /// A `GET` of `…/inventories/{class}`.
    Inventory(Uuid, String),
    /// A `GET` of `…/usages`.
    ProviderUsages(Uuid),
    /// A `GET` of `…/allocations`.
    ProviderAllocations(Uuid),
    /// A `GET` of `…/traits`, from 1.6.
    ProviderTraits(Uuid),
    /// A `GET` of `…/aggregates`, from 1.1.
    ProviderAggregates(Uuid),
    /// A `GET` of `/allocations/{consumer}`.
    Allocations(Uuid),
    /// A `GET` of `/usages`, from 1.9.
    Usages {
        /// Only allocations of this project.
        project: String,
        /// Only allocations of this user.
        user: Option<String>,
        /// Only allocations of this consumer type, or `all` types as one sum; from 1.38.
        consumer_type: Option<String>,
    },
    /// A `GET` of `/traits`, from 1.6.
    Traits {
        /// Only traits that are, or are not, associated with a provider.
        associated: Option<bool>,
        /// Only traits with this prefix.
        prefix: Option<String>,
    },
    /// A `GET` of `/traits/{name}`, from 1.6.
    Trait(String),
    /// A `GET` of `/resource_classes`, from 1.2.
    ResourceClasses,
    /// A `GET` of `/resource_classes/{name}`, from 1.2.
    ResourceClass(String),
    /// A `GET` of `/allocation_candidates`, from 1.10.
    Candidates(CandidateRequest),
}

impl QuestionKind {
    /// Names of all kinds.
    pub const KINDS: [&'static str; 15] = [
        "providers",
        "provider",
        "inventories",
        "inventory",
        "provider usages",
        "provider allocations",
        "provider traits",
        "provider aggregates",
        "allocations",
        "usages",
        "traits",
        "trait",
        "resource classes",
        "resource class",
        "candidates",
    ];

    /// Name of the kind, for counts.
    pub fn kind(&self) -> &'static str {
        let number = match self {
            QuestionKind::Providers(_) => 0,
            QuestionKind::Provider(_) => 1,
            QuestionKind::Inventories(_) => 2,
            QuestionKind::Inventory(..) => 3,
            QuestionKind::ProviderUsages(_) => 4,
            QuestionKind::ProviderAllocations(_) => 5,
            QuestionKind::ProviderTraits(_) => 6,
            QuestionKind::ProviderAggregates(_) => 7,
            QuestionKind::Allocations(_) => 8,
            QuestionKind::Usages { .. } => 9,
            QuestionKind::Traits { .. } => 10,
            QuestionKind::Trait(_) => 11,
            QuestionKind::ResourceClasses => 12,
            QuestionKind::ResourceClass(_) => 13,
            QuestionKind::Candidates(_) => 14,
        };
        Self::KINDS[number]
    }

    /// Asks in the newest microversion.
    pub fn newest(self) -> Question {
        Question {
            asked: self,
            minor: 39,
        }
    }
}

impl Question {
    /// Path and query of the request.
    pub(super) fn path(&self) -> String {
        let provider_path = |uuid: &Uuid, what: &str| format!("/resource_providers/{uuid}{what}");
        match &self.asked {
            QuestionKind::Providers(filter) => {
                with_query("/resource_providers", &providers(filter))
            }
            QuestionKind::Provider(uuid) => provider_path(uuid, ""),
            QuestionKind::Inventories(uuid) => provider_path(uuid, "/inventories"),
            QuestionKind::Inventory(uuid, class) => {
                provider_path(uuid, &format!("/inventories/{class}"))
            }
            QuestionKind::ProviderUsages(uuid) => provider_path(uuid, "/usages"),
            QuestionKind::ProviderAllocations(uuid) => provider_path(uuid, "/allocations"),
            QuestionKind::ProviderTraits(uuid) => provider_path(uuid, "/traits"),
            QuestionKind::ProviderAggregates(uuid) => provider_path(uuid, "/aggregates"),
            QuestionKind::Allocations(consumer) => format!("/allocations/{consumer}"),
            QuestionKind::Usages {
                project,
                user,
                consumer_type,
            } => {
                let mut query = vec![format!("project_id={project}")];
                query.extend(user.iter().map(|user| format!("user_id={user}")));
                let types = consumer_type.iter();
                query.extend(types.map(|name| format!("consumer_type={name}")));
                with_query("/usages", &query)
            }
            QuestionKind::Traits { associated, prefix } => {
                let mut query = Vec::new();
                query.extend(associated.iter().map(|yes| format!("associated={yes}")));
                let prefix = prefix.iter();
                query.extend(prefix.map(|prefix| format!("name=startswith:{prefix}")));
                with_query("/traits", &query)
            }
            QuestionKind::Trait(name) => format!("/traits/{name}"),
            QuestionKind::ResourceClasses => "/resource_classes".to_owned(),
            QuestionKind::ResourceClass(name) => format!("/resource_classes/{name}"),
            QuestionKind::Candidates(request) => {
                with_query("/allocation_candidates", &candidates(request))
            }
        }
    }
}

fn with_query(path: &str, query: &[String]) -> String {
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", query.join("&"))
    }
}

fn providers(filter: &ProviderFilter) -> Vec<String> {
    let mut query = Vec::new();
    query.extend(filter.name.iter().map(|name| format!("name={name}")));
    query.extend(filter.uuid.iter().map(|uuid| format!("uuid={uuid}")));
    query.extend(filter.in_tree.iter().map(|uuid| format!("in_tree={uuid}")));
    query.extend(resources("", &filter.resources));
    query.extend(member_of("", &filter.member_of, &filter.not_member_of));
    query.extend(required("", &filter.required, &filter.forbidden));
    query
}

fn candidates(request: &CandidateRequest) -> Vec<String> {
    let mut query: Vec<String> = request.groups.iter().flat_map(group).collect();
    query.extend(request.limit.iter().map(|limit| format!("limit={limit}")));
    query.extend(request.group_policy.iter().map(|policy| {
        let policy = match policy {
            GroupPolicy::None => "none",
            GroupPolicy::Isolate => "isolate",
        };
        format!("group_policy={policy}")
    }));
    let root = request.root_required.iter().map(ToString::to_string);
    let not = request.root_forbidden.iter().map(|name| format!("!{name}"));
    let root: Vec<String> = root.chain(not).collect();
    if !root.is_empty() {
        query.push(format!("root_required={}", root.join(",")));
    }
    query.extend(request.same_subtree.iter().map(|suffixes| {
        let suffixes: Vec<&str> = suffixes.iter().map(String::as_str).collect();
        format!("same_subtree={}", suffixes.join(","))
    }));
    query
}

fn group(group: &RequestGroup) -> Vec<String> {
    let suffix = &group.suffix;
    let mut query: Vec<String> = resources(suffix, &group.resources).into_iter().collect();
    query.extend(required(suffix, &group.required, &group.forbidden));
    query.extend(member_of(suffix, &group.member_of, &group.not_member_of));
    let tree = group.in_tree.iter();
    query.extend(tree.map(|uuid| format!("in_tree{suffix}={uuid}")));
    query
}

fn resources<'a, K: std::fmt::Display + 'a>(
    suffix: &str,
    amounts: impl IntoIterator<Item = (&'a K, &'a u64)>,
) -> Option<String> {
    let amounts: Vec<String> = amounts
        .into_iter()
        .map(|(class, amount)| format!("{class}:{amount}"))
        .collect();
    (!amounts.is_empty()).then(|| format!("resources{suffix}={}", amounts.join(",")))
}

/// Single traits and forbidden traits share one parameter; each set of several traits has its own.
/// Before 1.39 only one parameter is evaluated, and sets are not supported.
fn required(
    suffix: &str,
    required: &[BTreeSet<Given<TraitName>>],
    forbidden: &BTreeSet<Given<TraitName>>,
) -> Vec<String> {
    let (single, several): (Vec<_>, Vec<_>) = required.iter().partition(|any| any.len() == 1);
    let single = single.into_iter().flatten().map(ToString::to_string);
    let not = forbidden.iter().map(|name| format!("!{name}"));
    let all: Vec<String> = single.chain(not).collect();
    let all = (!all.is_empty()).then(|| all.join(","));
    let several = several.into_iter().map(|any| {
        let names: Vec<String> = any.iter().map(ToString::to_string).collect();
        format!("in:{}", names.join(","))
    });
    all.into_iter()
        .chain(several)
        .map(|value| format!("required{suffix}={value}"))
        .collect()
}

fn member_of(
    suffix: &str,
    any_of: &[BTreeSet<AggregateUuid>],
    forbidden: &BTreeSet<AggregateUuid>,
) -> Vec<String> {
    let any_of = any_of.iter().map(|any| {
        let names: Vec<&str> = any.iter().map(AggregateUuid::as_str).collect();
        format!("member_of{suffix}=in:{}", names.join(","))
    });
    let not = forbidden
        .iter()
        .map(|one| format!("member_of{suffix}=!{one}"));
    any_of.chain(not).collect()
}
