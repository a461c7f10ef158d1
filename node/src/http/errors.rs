//! Every error the API answers, and the one table that makes errors of the model's refusals.
//!
//! The body follows the OpenStack API guideline on errors: `errors[0]` with `status`, `title`,
//! `detail`, `request_id` and, from 1.23, `code`. Phrases that clients are known to look for are
//! kept as they know them.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use placement_model::Refusal;
use placement_model::types::{ProviderUuid, ResourceClassName};
use serde::Serialize;

use super::accept::Format;
use super::microversion::{BadVersion, Microversion};
use super::unnameable::Unnameable;
use crate::cluster::doors::Unavailable;

/// The codes that programs tell errors apart by.
pub(super) mod code {
    /// No code of its own.
    pub(crate) const UNDEFINED: &str = "placement.undefined_code";
    /// Something that would go is in use.
    pub(crate) const INVENTORY_IN_USE: &str = "placement.inventory.inuse";
    /// Somebody else was faster: read again, then try again.
    pub(crate) const CONCURRENT_UPDATE: &str = "placement.concurrent_update";
    /// The name or UUID is taken.
    pub(crate) const DUPLICATE_NAME: &str = "placement.duplicate_name";
    /// The provider has allocations.
    pub(crate) const PROVIDER_IN_USE: &str = "placement.resource_provider.inuse";
    /// The provider has children.
    pub(crate) const PROVIDER_HAS_CHILDREN: &str =
        "placement.resource_provider.cannot_delete_parent";
    /// No such provider.
    pub(crate) const PROVIDER_NOT_FOUND: &str = "placement.resource_provider.not_found";
    /// A query parameter that may come once came twice.
    pub(crate) const DUPLICATE_KEY: &str = "placement.query.duplicate_key";
    /// A query parameter has a wrong value.
    pub(crate) const BAD_VALUE: &str = "placement.query.bad_value";
    /// A query parameter is missing.
    pub(crate) const MISSING_VALUE: &str = "placement.query.missing_value";
    /// 503: nothing was committed, so trying again is safe. Given at every microversion.
    pub(crate) const NOTHING_COMMITTED: &str = "placement.unavailable.nothing_committed";
    /// 503: the write may or may not be committed. Given at every microversion.
    pub(crate) const OUTCOME_UNKNOWN: &str = "placement.unavailable.outcome_unknown";
    /// 412: the index token is of another history. Given at every microversion.
    pub(crate) const FOREIGN_INDEX: &str = "placement.consistency.foreign_index";
    /// 400: a consistency header cannot be understood. Given at every microversion.
    pub(crate) const BAD_CONSISTENCY: &str = "placement.consistency.bad_value";
    /// 413: the body is too long. Given at every microversion.
    pub(crate) const BODY_TOO_LARGE: &str = "placement.body_too_large";
    /// 503: a candidate search took too long or too much. Given at every microversion.
    pub(crate) const SEARCH_ENDED: &str = "placement.candidates.search_ended";
}

/// An answer that is not what the client wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    /// 4xx or 5xx.
    pub(super) status: StatusCode,
    /// What happened, what it means, what to do.
    pub(super) detail: String,
    code: &'static str,
    /// Codes that no older client can trip over are given at every microversion.
    code_always: bool,
    /// Whether the response says that it varies with the microversion.
    pub(super) vary: bool,
    /// `allow`, of 405.
    pub(super) allow: Option<String>,
    /// `retry-after` in seconds, of 503.
    pub(super) retry_after_s: Option<u64>,
    /// Names the versions there are, of 406 by the microversion parser.
    versions: bool,
    /// 401 looks different from all others.
    unauthenticated: bool,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            code,
            code_always: false,
            vary: true,
            allow: None,
            retry_after_s: None,
            versions: false,
            unauthenticated: false,
        }
    }

    /// 400.
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::UNDEFINED, detail)
    }

    /// 404 in the handler's own words.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code::UNDEFINED, detail)
    }

    /// 409.
    pub(super) fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// 404 of something that a path names and nobody has; does not say that it varies.
    pub(super) fn nothing_here(detail: impl Into<String>) -> Self {
        Self {
            vary: false,
            ..Self::not_found(detail)
        }
    }

    /// 404 of a path that is none, or not yet one at this version (which says that it varies).
    pub(super) fn no_such_path(too_old: bool) -> Self {
        Self {
            vary: too_old,
            ..Self::not_found("The resource could not be found.")
        }
    }

    /// 404 of a provider named in the path of a read.
    pub(super) fn provider_not_found(uuid: &str) -> Self {
        Self::not_found(format!("No resource provider with uuid {uuid} found"))
    }

    /// 401.
    pub(super) fn unauthenticated() -> Self {
        let detail = "This server could not verify that you may have what you asked for: the \
                      request has no X-Auth-Token header. Send one.";
        Self {
            unauthenticated: true,
            vary: false,
            ..Self::new(StatusCode::UNAUTHORIZED, code::UNDEFINED, detail)
        }
    }

    /// 403.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self {
            vary: false,
            ..Self::new(StatusCode::FORBIDDEN, code::UNDEFINED, detail)
        }
    }

    /// 405. `allow` is what is possible instead.
    pub(super) fn method_not_allowed(method: &str, allow: Option<String>) -> Self {
        let detail = format!("The method {method} is not allowed for this resource.");
        Self {
            allow,
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, code::UNDEFINED, detail)
        }
    }

    /// 406 because of `Accept`.
    pub(super) fn not_acceptable() -> Self {
        let detail = "Only application/json is provided";
        Self::new(StatusCode::NOT_ACCEPTABLE, code::UNDEFINED, detail)
    }

    /// 415.
    pub(super) fn unsupported_media_type(given: &str) -> Self {
        let detail = format!("The media type {given} is not supported, use application/json");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::UNDEFINED, detail)
    }

    /// 400 of a body without a type.
    pub(super) fn content_type_required() -> Self {
        let detail = "content-type header required when content-length > 0";
        Self {
            vary: false,
            ..Self::bad_request(detail)
        }
    }

    /// 400 of a length that is no number.
    pub(super) fn content_length_not_integer() -> Self {
        Self {
            vary: false,
            ..Self::bad_request("content-length header must be an integer")
        }
    }

    /// 413.
    pub(super) fn body_too_large(limit_bytes: usize) -> Self {
        let detail = format!(
            "The body is longer than the {limit_bytes} bytes that this service reads. Split the \
             request, or have [api] max_body_bytes raised."
        );
        Self {
            code_always: true,
            ..Self::new(StatusCode::PAYLOAD_TOO_LARGE, code::BODY_TOO_LARGE, detail)
        }
    }

    /// 400 of a body that broke off.
    pub(super) fn body_unreadable() -> Self {
        Self::bad_request("The body could not be read to its end. Send it again.")
    }

    /// 400 of a microversion that is none, 406 of one that is not ours.
    pub(super) fn version(error: &BadVersion) -> Self {
        let (status, versions) = match error {
            BadVersion::Malformed(_) => (StatusCode::BAD_REQUEST, false),
            BadVersion::Unacceptable(_) => (StatusCode::NOT_ACCEPTABLE, true),
        };
        Self {
            versions,
            vary: false,
            ..Self::new(status, code::UNDEFINED, error.to_string())
        }
    }

    /// 400 of a consistency header.
    pub(super) fn bad_consistency(detail: impl Into<String>) -> Self {
        Self {
            code_always: true,
            ..Self::new(StatusCode::BAD_REQUEST, code::BAD_CONSISTENCY, detail)
        }
    }

    /// 503 of a candidate search that was ended.
    pub(super) fn search_ended(detail: impl Into<String>) -> Self {
        Self {
            code_always: true,
            retry_after_s: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code::SEARCH_ENDED, detail)
        }
    }

    /// 500 of a bug.
    pub(super) fn internal() -> Self {
        let detail = "An unexpected error prevented the server from answering. It is in the \
                      server's log under this request id.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code::UNDEFINED, detail)
    }

    /// The same error with this code.
    pub(super) fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Whether the microversion could not be told.
    pub(super) fn is_before_version(&self) -> bool {
        self.unauthenticated || self.versions
    }

    /// The body, and its content type.
    pub(super) fn render(
        &self,
        format: Format,
        request_id: &str,
        version: Option<Microversion>,
    ) -> (Bytes, &'static str) {
        match format {
            Format::Json if self.unauthenticated => {
                (self.json_unauthenticated(), "application/json")
            }
            Format::Json => (self.json(request_id, version), "application/json"),
            Format::Html => (self.html().into(), "text/html; charset=UTF-8"),
            Format::Plain => (self.plain().into(), "text/plain; charset=UTF-8"),
        }
    }

    fn title(&self) -> &'static str {
        match self.status {
            StatusCode::PAYLOAD_TOO_LARGE => "Request Entity Too Large",
            status => status.canonical_reason().unwrap_or("Error"),
        }
    }

    fn json(&self, request_id: &str, version: Option<Microversion>) -> Bytes {
        #[derive(Serialize)]
        struct Body<'a> {
            errors: [One<'a>; 1],
        }
        #[derive(Serialize)]
        struct One<'a> {
            status: u16,
            title: &'a str,
            detail: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'a str>,
            request_id: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_version: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            min_version: Option<String>,
        }
        let coded = self.code_always || version.is_some_and(|version| version.from(23));
        to_json(&Body {
            errors: [One {
                status: self.status.as_u16(),
                title: self.title(),
                detail: &self.detail,
                code: coded.then_some(self.code),
                request_id,
                max_version: self.versions.then(|| Microversion::MAX.to_string()),
                min_version: self.versions.then(|| Microversion::MIN.to_string()),
            }],
        })
    }

    fn json_unauthenticated(&self) -> Bytes {
        #[derive(Serialize)]
        struct Body<'a> {
            message: &'a str,
            code: &'a str,
            title: &'a str,
        }
        to_json(&Body {
            message: &self.detail,
            code: "401 Unauthorized",
            title: self.title(),
        })
    }

    fn html(&self) -> String {
        let line = format!("{} {}", self.status.as_u16(), self.title());
        let detail = escape_html(&self.detail);
        format!(
            "<html>\n <head><title>{line}</title></head>\n <body>\n  <h1>{line}</h1>\n  \
             <p>{detail}</p>\n </body>\n</html>\n"
        )
    }

    fn plain(&self) -> String {
        format!(
            "{} {}\n\n{}\n",
            self.status.as_u16(),
            self.title(),
            self.detail
        )
    }
}

fn escape_html(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Writes a value of ours as JSON.
pub(super) fn to_json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value)
        .expect("our own types have string keys and finite numbers")
        .into()
}

impl From<Unavailable> for ApiError {
    fn from(unavailable: Unavailable) -> Self {
        let detail = unavailable.to_string();
        let busy = |code, detail, retry_after: std::time::Duration| Self {
            code_always: true,
            // Whole seconds, rounded up: a client that comes too early waits twice.
            retry_after_s: Some(retry_after.as_millis().div_ceil(1000).max(1) as u64),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
        };
        match unavailable {
            Unavailable::NothingCommitted { retry_after, .. } => {
                let detail = format!("{detail}. It is safe to send the request again.");
                busy(code::NOTHING_COMMITTED, detail, retry_after)
            }
            Unavailable::OutcomeUnknown { retry_after, .. } => {
                let detail = format!(
                    "{detail}. Read what you wanted to change before you send the request again."
                );
                busy(code::OUTCOME_UNKNOWN, detail, retry_after)
            }
            Unavailable::ForeignIndex { .. } => Self {
                code_always: true,
                ..Self::new(
                    StatusCode::PRECONDITION_FAILED,
                    code::FOREIGN_INDEX,
                    format!("{detail}. Forget the token and read without it."),
                )
            },
        }
    }
}

/// What a write was about to do, as far as its errors speak of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Doing<'a> {
    /// `POST /resource_providers`.
    CreateProvider {
        /// Its name.
        name: &'a str,
        /// Its UUID.
        uuid: ProviderUuid,
    },
    /// `PUT /resource_providers/{uuid}`.
    UpdateProvider {
        /// The provider.
        uuid: ProviderUuid,
        /// Whether the parent was to be taken away, rather than another one given.
        clears_parent: bool,
    },
    /// `DELETE /resource_providers/{uuid}`.
    DeleteProvider,
    /// `PUT …/inventories`.
    ReplaceInventories,
    /// `POST …/inventories`.
    CreateInventory,
    /// `PUT …/inventories/{class}`.
    UpdateInventory,
    /// `DELETE …/inventories/{class}`.
    DeleteInventory,
    /// `DELETE …/inventories`.
    DeleteInventories,
    /// Writes of a provider's traits or aggregates.
    ChangeProvider,
    /// Writes of traits.
    ChangeTrait,
    /// Writes of resource classes.
    ChangeResourceClass,
    /// `PUT /allocations/{consumer}` and `POST /allocations`.
    Allocate,
    /// `DELETE /allocations/{consumer}`.
    Deallocate,
    /// `POST /reshaper`.
    Reshape,
}

/// What a client hears when the model refuses: the whole table.
pub(super) fn refused(doing: Doing<'_>, refusal: Refusal, names: &Unnameable) -> ApiError {
    match refusal {
        Refusal::ProviderNotFound(uuid) => provider_not_found(doing, uuid),
        Refusal::AllocationProviderNotFound(provider) => ApiError::bad_request(format!(
            "Allocation for resource provider '{provider}' that does not exist."
        )),
        Refusal::ReshapeProviderNotFound(provider) => ApiError::bad_request(format!(
            "Resource provider {provider} in inventories not found: No resource provider with \
             uuid {provider} found"
        ))
        .with_code(code::PROVIDER_NOT_FOUND),
        Refusal::DuplicateProviderUuid(uuid) => ApiError::conflict(
            code::DUPLICATE_NAME,
            format!("Conflicting resource provider uuid: {uuid} already exists."),
        ),
        Refusal::DuplicateProviderName(name) => ApiError::conflict(
            code::DUPLICATE_NAME,
            format!("Conflicting resource provider name: {name} already exists."),
        ),
        Refusal::ParentNotFound(_) => bad_tree(doing, "parent provider UUID does not exist."),
        Refusal::ParentLoop(_) => match doing {
            Doing::CreateProvider { .. } => bad_tree(
                doing,
                "parent provider UUID cannot be same as UUID. Leave the parent out, or make it \
                 null, if there is none.",
            ),
            _ => bad_tree(doing, "creating loop in the provider tree is not allowed."),
        },
        Refusal::ReparentForbidden(_) => match doing {
            Doing::UpdateProvider {
                clears_parent: true,
                ..
            } => bad_tree(
                doing,
                "un-parenting a provider is not currently allowed. Microversion 1.37 allows it.",
            ),
            _ => bad_tree(
                doing,
                "re-parenting a provider is not currently allowed. Microversion 1.37 allows it.",
            ),
        },
        Refusal::ProviderHasChildren(uuid) => ApiError::conflict(
            code::PROVIDER_HAS_CHILDREN,
            format!(
                "Unable to delete parent resource provider {uuid}: It has child resource \
                 providers. Delete those first."
            ),
        ),
        Refusal::ProviderInUse(uuid) => ApiError::conflict(
            code::PROVIDER_IN_USE,
            format!(
                "Unable to delete resource provider {uuid}: Resource provider has allocations."
            ),
        ),
        Refusal::ProviderGenerationConflict {
            provider,
            given,
            actual,
        } => {
            let detail = match doing {
                Doing::ChangeProvider => format!(
                    "Resource provider's generation already changed. Please update the \
                     generation and try again. (actual: {actual}, given: {given})"
                ),
                _ => format!(
                    "resource provider generation conflict for provider {provider}: actual: \
                     {actual}, given: {given}. Read the provider again, then try again."
                ),
            };
            ApiError::conflict(code::CONCURRENT_UPDATE, detail)
        }
        Refusal::ResourceClassNotFound(name) => {
            class_not_found(doing, names.spelled(name.as_str()))
        }
        Refusal::ResourceClassExists(name) => ApiError::conflict(
            code::UNDEFINED,
            format!(
                "Conflicting resource class already exists: {name}. Resource class already exists: {name}"
            ),
        ),
        Refusal::ResourceClassInUse(name) => ApiError::conflict(
            code::UNDEFINED,
            format!(
                "Error in delete resource class: Cannot delete resource class {name}. Class is \
                 in use in inventory."
            ),
        ),
        Refusal::ResourceClassStandardDelete(name) => ApiError::bad_request(format!(
            "Error in delete resource class: Cannot delete standard resource class {name}."
        )),
        Refusal::ResourceClassStandardUpdate(name) => {
            ApiError::bad_request(format!("Cannot update standard resource class {name}"))
        }
        Refusal::TraitsNotFound(traits) => {
            let traits = traits.iter().map(|name| names.spelled(name.as_str()));
            traits_not_found(doing, &traits.collect::<Vec<_>>())
        }
        Refusal::TraitInUse(name) => ApiError::conflict(
            code::UNDEFINED,
            format!("The trait {name} is in use by a resource provider."),
        ),
        Refusal::TraitStandard(name) => {
            ApiError::bad_request(format!("Cannot delete standard trait {name}."))
        }
        Refusal::InventoryExists {
            provider,
            resource_class,
        } => ApiError::conflict(
            code::CONCURRENT_UPDATE,
            format!(
                "Update conflict: resource provider {provider} has an inventory of \
                 {resource_class} already. Use PUT to change it."
            ),
        ),
        Refusal::InventoryNotFound {
            provider,
            resource_class,
        } => match doing {
            Doing::DeleteInventory => ApiError::not_found(format!(
                "No inventory of class {resource_class} found for delete: resource provider \
                 {provider} has none"
            )),
            _ => ApiError::bad_request(format!(
                "No inventory record with resource class for resource provider {provider}: No \
                 inventory of class {resource_class} found. Use POST to create it."
            )),
        },
        Refusal::InventoryInUse {
            provider,
            resource_classes,
        } => inventory_in_use(doing, provider, &resource_classes),
        Refusal::InventoryCapacity {
            provider,
            resource_class,
            may_reserve_all,
        } => inventory_capacity(doing, provider, &resource_class, may_reserve_all),
        Refusal::ConsumerGenerationConflict {
            consumer,
            given,
            actual,
        } => {
            let shown = |generation: Option<_>, none: &str| {
                generation.map_or(
                    none.to_owned(),
                    |generation: placement_model::types::Generation| generation.to_string(),
                )
            };
            ApiError::conflict(
                code::CONCURRENT_UPDATE,
                format!(
                    "consumer generation conflict - expected {} but got {} (consumer {consumer}). \
                     Read the consumer's allocations again, then try again.",
                    shown(actual, "null"),
                    shown(given, "None"),
                ),
            )
        }
        Refusal::ConsumerHasNoAllocations(consumer) => {
            ApiError::not_found(format!("No allocations for consumer '{consumer}'"))
        }
        Refusal::AllocationWithoutInventory {
            resource_classes,
            providers,
        } => {
            let providers: Vec<String> = providers.iter().map(ToString::to_string).collect();
            unable_to_allocate(format!(
                "Inventory for '{}' on resource provider '{}' invalid: there is none.",
                join(&resource_classes),
                providers.join(", "),
            ))
        }
        Refusal::AllocationConstraints {
            provider,
            resource_class,
        } => unable_to_allocate(format!(
            "Unable to create allocation for '{resource_class}' on resource provider \
                 '{provider}'. The requested amount would violate inventory constraints."
        )),
        Refusal::AllocationCapacity {
            provider,
            resource_class,
        } => unable_to_allocate(format!(
            "Unable to create allocation for '{resource_class}' on resource provider \
             '{provider}'. The requested amount would exceed the capacity."
        )),
        Refusal::IdsExhausted => ApiError {
            retry_after_s: Some(3600),
            ..ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                code::UNDEFINED,
                refusal.to_string(),
            )
        },
    }
}

fn provider_not_found(doing: Doing<'_>, uuid: ProviderUuid) -> ApiError {
    match doing {
        Doing::DeleteProvider => no_provider_to_delete(&uuid.to_string()),
        _ => ApiError::nothing_here(format!("No resource provider with uuid {uuid} found")),
    }
}

/// 404 of a provider that was to be deleted.
pub(super) fn no_provider_to_delete(uuid: &str) -> ApiError {
    ApiError::not_found(format!(
        "No resource provider with uuid {uuid} found for delete"
    ))
}

fn bad_tree(doing: Doing<'_>, reason: &str) -> ApiError {
    ApiError::bad_request(match doing {
        Doing::CreateProvider { name, uuid } => {
            format!("Unable to create resource provider \"{name}\", {uuid}: {reason}")
        }
        Doing::UpdateProvider { uuid, .. } => {
            format!("Unable to save resource provider {uuid}: {reason}")
        }
        _ => reason.to_owned(),
    })
}

/// What is said of a resource class that does not exist, depending on where it was named.
pub(super) fn class_not_found(doing: Doing<'_>, name: &str) -> ApiError {
    let missing = format!("No such resource class {name}.");
    match doing {
        Doing::ReplaceInventories => {
            ApiError::bad_request(format!("Unknown resource class in inventory: {missing}"))
        }
        Doing::CreateInventory => ApiError::bad_request(format!(
            "Unable to create inventory for resource provider: {missing}"
        )),
        Doing::DeleteInventory => ApiError::not_found(format!(
            "No inventory of class {name} found for delete: {missing}"
        )),
        Doing::Allocate => ApiError::bad_request(format!(
            "Unable to allocate inventory for consumer: {missing}"
        )),
        Doing::Reshape => ApiError::bad_request(format!("malformed reshaper data: {missing}")),
        _ => ApiError::nothing_here(missing),
    }
}

/// What is said of traits that do not exist.
pub(super) fn traits_not_found(doing: Doing<'_>, names: &[&str]) -> ApiError {
    let names = names.join(", ");
    match doing {
        Doing::ChangeProvider => ApiError::bad_request(format!("No such trait {names}")),
        _ => ApiError::not_found(format!("No such trait(s): {names}.")),
    }
}

fn join(names: &[ResourceClassName]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    names.join(", ")
}

fn inventory_in_use(
    doing: Doing<'_>,
    provider: ProviderUuid,
    classes: &[ResourceClassName],
) -> ApiError {
    let classes = join(classes);
    let fact = format!("Inventory for '{classes}' on resource provider '{provider}' in use.");
    match doing {
        Doing::DeleteInventory => ApiError::conflict(
            code::CONCURRENT_UPDATE,
            format!("Unable to delete inventory of class {classes}: {fact}"),
        ),
        Doing::DeleteInventories => ApiError::conflict(code::INVENTORY_IN_USE, fact),
        _ => ApiError::conflict(code::INVENTORY_IN_USE, format!("update conflict: {fact}")),
    }
}

fn inventory_capacity(
    doing: Doing<'_>,
    provider: ProviderUuid,
    class: &ResourceClassName,
    may_reserve_all: bool,
) -> ApiError {
    let verb = match doing {
        Doing::CreateInventory => "create",
        _ => "update",
    };
    let limit = if may_reserve_all {
        "greater than"
    } else {
        "greater than or equal to"
    };
    ApiError::bad_request(format!(
        "Unable to {verb} inventory for resource provider {provider}: Invalid inventory for \
         '{class}' on resource provider '{provider}'. The reserved value is {limit} total."
    ))
}

fn unable_to_allocate(fact: String) -> ApiError {
    ApiError::conflict(
        code::UNDEFINED,
        format!("Unable to allocate inventory: {fact}"),
    )
}
