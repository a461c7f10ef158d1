//! `GET /placementd/v1/refuge`: where consumers could go if some trees had to be emptied.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_model::State;
use placement_model::query::CONSUMERS_MAX;
use placement_model::query::refuge::{
    EachRefuge, ElsewhereRequest, Left, Move, Order, Refuge, RefugeError, RefugeRequest, StuckTree,
};
use placement_model::types::{Given, ProviderUuid, ResourceClassName, TraitName};
use placement_wire::explain::Position;
use placement_wire::refuge as wire;

use super::what_if::WAIT;
use super::{bad_value, consumers, unknown_name};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, to_json};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{Query, parse_member_of, parse_root_required};
use crate::http::wire::{explanation, own};

/// Nova gives this trait to the root of a host whose compute service is disabled.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";
/// Maximum number of providers in a request.
const PROVIDERS_MAX: usize = 100;
/// Time limit of the search.
const DEADLINE: Duration = Duration::from_secs(10);

/// `GET /placementd/v1/refuge`, with `provider` or `each`, `required`, `member_of`, `order` and
/// `moves`.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check(context.head.route, context.head.version)?;
    let mut elsewhere = parse_elsewhere(query)?;
    let providers = parse_providers(query)?;
    let with_moves = query.last("moves") == Some("true");
    let what_ifs = &context.services.server.admission.what_ifs;
    // The permit is acquired before the state is read: writes must copy the data of a state that a
    // request holds.
    let turn = what_ifs.turn(context.head.caller, WAIT).await?;
    let view = context.view().await?;
    elsewhere.forbidden.extend(disabled(&view.state));
    let patience = context.patience(Duration::ZERO, DEADLINE);
    let made = context.compute_idly(move || {
        let _turn = turn;
        let patience = patience.renewed(DEADLINE);
        let watch = Box::new(|_steps| patience.check());
        let position = own::position(&view.position);
        match providers {
            Some(providers) => {
                let request = RefugeRequest {
                    providers,
                    elsewhere,
                };
                let found = view.state.refuge(&request, watch);
                let found = found.map_err(|error| refused(&error))?;
                Ok(to_json(&shown(&found, with_moves, position)))
            }
            None => {
                let found = view.state.refuge_of_each(&elsewhere, watch);
                let found = found.map_err(|error| refused(&error))?;
                Ok(to_json(&each_shown(&found, position)))
            }
        }
    });
    Ok(Answer::chunks(vec![made.await?]))
}

/// The providers of the trees to empty; `None`: each tree by itself.
fn parse_providers(query: &Query) -> Result<Option<BTreeSet<ProviderUuid>>, ApiError> {
    let providers = query.all("provider").map(|text| {
        let right = "give the UUID of a resource provider, in lower case with hyphens";
        ProviderUuid::from_canonical(text).ok_or_else(|| bad_value("provider", text, right))
    });
    let providers = providers.collect::<Result<BTreeSet<_>, _>>()?;
    if providers.len() > PROVIDERS_MAX {
        return Err(ApiError::over_limit("providers", PROVIDERS_MAX));
    }
    match (query.last("each"), providers.is_empty()) {
        (None, false) => Ok(Some(providers)),
        (Some(_), true) => Ok(None),
        _ => Err(ApiError::bad_request(
            "Invalid query string parameters: give either provider, once for each tree to empty, \
             or each=root",
        )),
    }
}

fn parse_elsewhere(query: &Query) -> Result<ElsewhereRequest, ApiError> {
    let traits = query.last("required").map(parse_root_required);
    let traits = traits.transpose()?.unwrap_or_default();
    let values: Vec<_> = query.all("member_of").collect();
    let aggregates = parse_member_of(&values, "", Microversion::MAX)?;
    if !aggregates.forbidden.is_empty() {
        let right = "give aggregates without an exclamation mark";
        return Err(bad_value("member_of", &values.join("&"), right));
    }
    Ok(ElsewhereRequest {
        // Without `in:`, each set has one trait.
        required: traits.any_of.into_iter().flatten().collect(),
        forbidden: traits.forbidden,
        member_of: aggregates.any_of,
        order: match query.last("order") {
            Some("spread") => Order::Spread,
            Some("any") => Order::Any,
            _ => Order::Pack,
        },
    })
}

/// Any tree whose root does not have the trait of disabled hosts.
pub fn enabled_trees(state: &State) -> ElsewhereRequest {
    ElsewhereRequest {
        required: BTreeSet::new(),
        forbidden: disabled(state).into_iter().collect(),
        member_of: Vec::new(),
        order: Order::Pack,
    }
}

/// The trait of hosts that get no servers, if the partition has it.
fn disabled(state: &State) -> Option<Given<TraitName>> {
    let name: TraitName = DISABLED.parse().ok()?;
    state.trait_id(&name)?;
    Some(Given::Valid(name))
}

fn refused(error: &RefugeError) -> ApiError {
    match error {
        RefugeError::UnknownProvider(uuid) => {
            let text = uuid.to_string();
            bad_value(
                "provider",
                &text,
                "give the UUID of a resource provider that exists",
            )
        }
        RefugeError::TooManyConsumers => ApiError::over_limit("consumers to move", CONSUMERS_MAX),
        RefugeError::UnknownName(error) => unknown_name(error, ""),
    }
}

fn shown<'a>(found: &'a Refuge, with_moves: bool, position: Position<'a>) -> wire::Refuge<'a> {
    wire::Refuge {
        consumers: found.consumers as u64,
        moved: found.moves.len() as u64,
        migrations: found.migrations as u64,
        holds: found.holds as u64,
        complete: found.complete,
        exact: found.exact,
        left: found.left.iter().map(left).collect(),
        explanations: found.explanations.iter().map(explanation::shown).collect(),
        moves: with_moves.then(|| found.moves.iter().map(moved).collect()),
        position,
    }
}

fn each_shown<'a>(found: &'a EachRefuge, position: Position<'a>) -> wire::EachRefuge<'a> {
    wire::EachRefuge {
        trees: found.trees as u64,
        empties: (found.trees - found.stuck) as u64,
        stuck: found.list.iter().map(stuck).collect(),
        left_out: (found.stuck - found.list.len()) as u64,
        undecided: found.undecided as u64,
        complete: found.undecided == 0,
        position,
    }
}

fn stuck(tree: &StuckTree) -> wire::StuckTree<'_> {
    wire::StuckTree {
        provider: own::named(&tree.root),
        consumers: tree.consumers as u64,
        left: tree.left as u64,
        largest: units(&tree.largest),
        exact: tree.exact,
    }
}

fn units(resources: &BTreeMap<ResourceClassName, u64>) -> BTreeMap<Cow<'_, str>, u64> {
    let resources = resources.iter();
    resources
        .map(|(class, units)| (class.as_str().into(), *units))
        .collect()
}

fn left(one: &Left) -> wire::Left<'_> {
    wire::Left {
        consumer: one.consumer.to_string().into(),
        r#type: one.consumer_type.as_ref().map(|name| name.as_str().into()),
        project_id: one.project.as_str().into(),
        resources: units(&one.resources),
        why: one.why,
    }
}

fn moved(one: &Move) -> wire::Move<'_> {
    wire::Move {
        consumer: one.consumer.to_string().into(),
        project_id: one.project.as_str().into(),
        to: one.to.iter().map(consumers::allocation).collect(),
    }
}
