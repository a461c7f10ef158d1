//! The body of a claim, which matches its schema.

use placement_model::command::{
    Ceiling, Claim, Claimant, ConsumerGeneration, ConsumerTypeUpdate, Counted, Group, GroupRule,
    ProviderAmounts,
};
use placement_model::query::assignments::Order;
use placement_model::types::{ConsumerUuid, Generation, Given, ProjectId, UserId};

use super::want::Want;
use crate::http::edge::claims::CHOICES_MAX;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::ApiError;
use crate::http::nouns::{allocations, at_most, consumer_type, explain, holds, invalid_json};
use crate::http::wire::json::Json;

/// Maximum number of ceilings.
const CEILINGS_MAX: usize = 64;
/// Maximum number of projects of a ceiling.
const PROJECTS_MAX: usize = 100;
/// Maximum number of consumer types of a ceiling.
const TYPES_MAX: usize = 100;
/// Maximum number of groups, of both kinds together.
const GROUPS_MAX: usize = 8;
/// Maximum number of members of a group.
const MEMBERS_MAX: usize = 1_000;

/// Parses a claim. If it wants candidates, it has no choices yet.
///
/// # Errors
/// 400 if it exceeds a limit or contradicts itself.
pub(super) fn claim(
    context: &RequestContext,
    body: &Json,
) -> Result<(Claim, Option<Want>), ApiError> {
    let consumers = body.member("consumers");
    let claimants: Vec<_> = consumers
        .members()
        .map(|(consumer, about)| claimant(consumer, about))
        .collect::<Result<_, _>>()?;
    context.admit("consumers", claimants.len(), |limits| limits.consumers)?;
    let (choices, want) = match (body.get("choices"), body.get("want")) {
        (Some(choices), None) => (parse_choices(context, choices, consumers)?, None),
        (None, Some(asked)) => (Vec::new(), Some(want(context, asked)?)),
        _ => return Err(invalid_json("give either 'choices' or 'want'")),
    };
    let ceilings = body.member("ceilings").items();
    at_most("ceilings", ceilings.len(), CEILINGS_MAX)?;
    let is_claimant = |name: &str| consumers.get(name).is_some();
    let claim = Claim {
        claimants,
        choices,
        ceilings: ceilings.iter().map(ceiling).collect::<Result<_, _>>()?,
        groups: groups(body)?,
        hold: body
            .get("hold")
            .map(|asked| holds::new(asked, is_claimant))
            .transpose()?,
    };
    Ok((claim, want))
}

fn claimant(consumer: &str, about: &Json) -> Result<Claimant, ApiError> {
    let text = |key: &str| about.member(key).text();
    let generation = about.member("consumer_generation").integer();
    Ok(Claimant {
        consumer: ConsumerUuid::from(consumer),
        project: ProjectId::from(text("project_id").unwrap_or_default()),
        user: UserId::from(text("user_id").unwrap_or_default()),
        consumer_type: match text("consumer_type") {
            None => ConsumerTypeUpdate::Keep,
            Some(name) => ConsumerTypeUpdate::Set(name.parse().map_err(invalid_json)?),
        },
        generation: generation.map_or(ConsumerGeneration::New, |generation| {
            ConsumerGeneration::Expect(Generation(generation))
        }),
    })
}

fn parse_choices(
    context: &RequestContext,
    choices: &Json,
    consumers: &Json,
) -> Result<Vec<Vec<Vec<ProviderAmounts>>>, ApiError> {
    let choices = choices.items();
    at_most("choices", choices.len(), CHOICES_MAX)?;
    let mut allocations = 0;
    let mut parsed = Vec::new();
    for (index, choice) in choices.iter().enumerate() {
        let names = consumers.members().map(|(consumer, _)| consumer);
        let of_each = names.map(|consumer| choice.get(consumer));
        let of_each: Option<Vec<_>> = of_each.collect();
        let of_each = of_each.filter(|of_each| of_each.len() == choice.members().count());
        let of_each = of_each.ok_or_else(|| {
            invalid_json(format!(
                "a choice must name exactly the consumers of the claim, at /choices/{index}"
            ))
        })?;
        let of_each: Vec<_> = of_each.into_iter().map(assignment).collect();
        let amounts = of_each.iter().flatten();
        allocations += amounts.map(|one| one.resources.len()).sum::<usize>();
        parsed.push(of_each);
    }
    context.admit("allocations", allocations, |limits| limits.allocations)?;
    Ok(parsed)
}

fn assignment(of_one: &Json) -> Vec<ProviderAmounts> {
    let allocations = of_one.member("allocations").members();
    let amounts = allocations.map(|(provider, item)| ProviderAmounts {
        provider: Given::from(provider),
        resources: allocations::parse_amounts(item.member("resources")),
    });
    amounts.collect()
}

fn want(context: &RequestContext, asked: &Json) -> Result<Want, ApiError> {
    let query = asked.member("query").text().unwrap_or_default().to_owned();
    let version = explain::version(context);
    let request = explain::parse_within_body(context, &query, version)?;
    let mut groups = request.groups.iter();
    if groups.all(|group| group.resources.is_empty()) {
        return Err(invalid_json(
            "the query must request resources, at /want/query",
        ));
    }
    Ok(Want {
        query,
        request,
        version,
        order: match asked.member("order").text() {
            Some("pack") => Order::Pack,
            Some("spread") => Order::Spread,
            _ => Order::Any,
        },
    })
}

fn ceiling(asked: &Json) -> Result<Ceiling, ApiError> {
    let projects = asked.member("projects").items();
    at_most("projects in a ceiling", projects.len(), PROJECTS_MAX)?;
    let types = asked.get("types").map(Json::items);
    at_most("types in a ceiling", types.map_or(0, <[_]>::len), TYPES_MAX)?;
    let types = types.map(|types| types.iter().map(consumer_type).collect());
    let of = match (
        asked.member("class").text(),
        asked.member("count").is_true(),
    ) {
        (Some(class), false) => Counted::Units(Given::from(class)),
        (None, true) => Counted::Consumers,
        _ => {
            return Err(invalid_json(
                "a ceiling has either a 'class' or 'count': true, at /ceilings",
            ));
        }
    };
    let limit = asked.member("limit").integer().unwrap_or_default();
    Ok(Ceiling {
        projects: projects
            .iter()
            .filter_map(Json::text)
            .map(ProjectId::from)
            .collect(),
        types: types.transpose()?,
        of,
        limit: limit.unsigned_abs(),
    })
}

/// The groups, those of `apart` first.
fn groups(body: &Json) -> Result<Vec<Group>, ApiError> {
    let apart = body.member("apart").items().iter().map(|asked| {
        let most = asked.member("most").integer();
        let most = most.and_then(|most| u32::try_from(most).ok()).unwrap_or(1);
        (asked, GroupRule::Apart { most })
    });
    let together = body.member("together").items().iter();
    let together = together.map(|asked| (asked, GroupRule::Together));
    let groups: Vec<_> = apart.chain(together).collect();
    at_most("groups", groups.len(), GROUPS_MAX)?;
    let group = |(asked, rule): (&Json, GroupRule)| {
        let members = asked.member("members").items();
        at_most("members in a group", members.len(), MEMBERS_MAX)?;
        let members = members.iter().filter_map(Json::text);
        Ok(Group {
            members: members.map(ConsumerUuid::from).collect(),
            rule,
        })
    };
    groups.into_iter().map(group).collect()
}
