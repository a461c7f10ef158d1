//! The errors of refused claims: the message, and the numbers for programs.

use placement_model::Refusal;
use placement_model::outcome::RefusedChoice;
use placement_wire::claims::{ClaimRefusal, Reason};

use super::code;
use super::error::{ApiError, joined};

/// 409: no choice has room.
pub(super) fn no_room(choices: &[RefusedChoice]) -> ApiError {
    let texts: Vec<_> = choices.iter().map(text).collect();
    let message = format!("No choice of the claim has room: {}.", texts.join("; "));
    let reasons = choices.iter().map(reason).collect();
    refused(
        code::CLAIM_NO_ROOM,
        message,
        ClaimRefusal::NoRoom { reasons },
    )
}

/// 409: a ceiling would be exceeded.
pub(super) fn over_ceiling(ceiling: u32, used: u64, requested: u64, limit: u64) -> ApiError {
    let message = format!(
        "The claim would exceed ceiling {ceiling}: {used} are used and {requested} requested, but the \
         limit is {limit}."
    );
    let details = ClaimRefusal::OverCeiling {
        ceiling,
        used,
        requested,
        limit,
    };
    refused(code::CLAIM_OVER_CEILING, message, details)
}

/// 409: the rule of a group would be broken.
pub(super) fn group(group: u32, root: impl ToString, members: u32) -> ApiError {
    let provider = root.to_string();
    let message = format!(
        "The claim would break the rule of group {group}: {members} members would be in the tree of \
         resource provider {provider}."
    );
    let details = ClaimRefusal::Group {
        group,
        provider,
        members,
    };
    refused(code::CLAIM_GROUP, message, details)
}

/// 409: the query has candidates for only `served` of the consumers.
pub(crate) fn no_candidates(served: usize, consumers: usize) -> ApiError {
    let message = match served {
        0 => "The query of the claim has no candidates".to_owned(),
        _ => {
            format!(
                "The query of the claim has candidates for only {served} of {consumers} consumers"
            )
        }
    };
    ApiError::conflict(format!("{message}. Nothing was claimed."))
        .with_code(code::CLAIM_NO_CANDIDATES)
}

fn refused(code: &'static str, message: String, details: ClaimRefusal) -> ApiError {
    ApiError {
        claim: Some(Box::new(details)),
        ..ApiError::conflict(message).with_code(code)
    }
}

/// The reason of one choice for people.
fn text(refused: &RefusedChoice) -> String {
    let why = match (&refused.refusal, refused.shortage) {
        (Refusal::AllocationCapacity(provider, class), Some(shortage)) => format!(
            "resource provider {provider} has {} {class} free, but {} are requested",
            shortage.free, shortage.requested
        ),
        (Refusal::AllocationWithoutInventory(classes, providers), _) => format!(
            "no inventory of {} on resource provider {}",
            joined(classes),
            joined(providers)
        ),
        (refusal, _) => refusal.to_string(),
    };
    format!("choice {}: {why}", refused.choice)
}

/// The reason of one choice for programs.
fn reason(refused: &RefusedChoice) -> Reason {
    let mut reason = Reason {
        choice: refused.choice,
        requested: refused.shortage.map(|shortage| shortage.requested),
        free: refused.shortage.map(|shortage| shortage.free),
        ..Reason::default()
    };
    let (code, provider, class) = match &refused.refusal {
        Refusal::AllocationCapacity(provider, class) => (
            "capacity",
            Some(provider.to_string()),
            Some(class.to_string()),
        ),
        Refusal::AllocationConstraints(provider, class) => (
            "constraints",
            Some(provider.to_string()),
            Some(class.to_string()),
        ),
        Refusal::AllocationWithoutInventory(classes, providers) => (
            "inventory",
            providers.first().map(ToString::to_string),
            classes.first().map(ToString::to_string),
        ),
        Refusal::AllocationProviderNotFound(provider) => {
            ("provider", Some(provider.to_string()), None)
        }
        Refusal::ResourceClassNotFound(class) => ("resource_class", None, Some(class.to_string())),
        Refusal::OverCeiling {
            used,
            requested,
            limit,
            ..
        } => {
            reason.requested = Some(*requested);
            reason.free = Some(limit.saturating_sub(*used));
            ("over_ceiling", None, None)
        }
        Refusal::GroupBroken { root, .. } => ("group", Some(root.to_string()), None),
        _ => ("other", None, None),
    };
    reason.code = code.to_owned();
    reason.provider = provider;
    reason.resource_class = class;
    reason
}
