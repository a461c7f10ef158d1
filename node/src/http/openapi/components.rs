//! What several operations share: parameters, headers, errors and the shapes of answers.

use serde_json::{Value, json};

use super::versions::{self, GROUPS};
use crate::http::errors::code;
use crate::http::wire::microversion::Microversion;

/// What the document says at its top.
pub(super) const DESCRIPTION: &str = "\
Each request speaks one microversion, 1.0 unless it asks for another. Where microversions differ, \
this document shows every shape with the versions it belongs to, and parameters with the version \
that added them. A version that does not know an operation answers 404, or 405 if it knows the \
path but not the method.\n\n\
Every response tells where it stands in the cluster's history: Placement-Index is a token that a \
later read can send back as Placement-Min-Index, through any node, to see at least what this \
response saw.\n\n\
503 says in its code whether a write may have been committed: \
placement.unavailable.nothing_committed, so that it is safe to send it again, or \
placement.unavailable.outcome_unknown.\n\n\
A method that a path does not have is answered 405 with Allow. OPTIONS is answered 200 if \
cross-origin requests are allowed.";

/// The nouns of the API.
pub(super) fn tags() -> Value {
    let names = [
        ("versions", "Version discovery"),
        ("resource_providers", "What has resources, in trees"),
        ("inventories", "What a provider has to give"),
        ("usages", "What is taken"),
        ("aggregates", "Groups of providers"),
        ("traits", "Qualities of providers"),
        ("resource_classes", "Kinds of resources"),
        ("allocations", "Who takes what of whom"),
        (
            "allocation_candidates",
            "Ways in which a request can be met",
        ),
        ("reshaper", "Moves between providers"),
        ("node", "This node itself"),
    ];
    let tags: Vec<Value> = names
        .iter()
        .map(|(name, description)| json!({"name": name, "description": description}))
        .collect();
    tags.into()
}

/// Everything that is referred to.
pub(super) fn components() -> Value {
    json!({
        "securitySchemes": {"token": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Auth-Token",
            "description": "With the strategy noauth2: `user` or `user:project`. The user admin has \
                            the role admin; X-Roles, a list with commas, replaces the roles.",
        }},
        "parameters": parameters(),
        "headers": headers(),
        "responses": responses(),
        "schemas": schemas(),
    })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// A parameter that several operations have.
pub(super) fn parameter(name: &str) -> Value {
    reference("parameters", name)
}

/// An answer that several operations have: an error.
pub(super) fn response(status: u16) -> Value {
    reference("responses", &status.to_string())
}

/// The names in the braces of a path.
pub(super) fn names_in(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// What stands in a path.
pub(super) fn path_parameter(name: &str) -> Value {
    let (description, schema) = match name {
        "uuid" => ("The provider.", uuid()),
        "consumer_uuid" => ("The consumer.", uuid()),
        "resource_class" => ("The resource class.", upper()),
        _ => ("The name.", upper()),
    };
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": description,
        "schema": schema,
    })
}

/// What a parameter of a query string is for.
pub(super) fn about_query(name: &str) -> &'static str {
    match name {
        "name" => {
            "Of traits: `in:A,B` or `startswith:PREFIX`, where `%` and `_` are SQL's wildcards. Of providers: the name."
        }
        "uuid" => "The provider's UUID.",
        "associated" => "`true`: traits that some provider has; `false`: traits that none has.",
        "in_tree" => "Providers of the tree to which this provider belongs.",
        "resources" => "`CLASS:AMOUNT`, several with commas.",
        "required" => {
            "Traits, several with commas; `!T` must be absent (1.22). `in:A,B`: one of them (1.39; \
             then it may be given more than once)."
        }
        "member_of" => {
            "An aggregate, or `in:A,B` for one of several. `!A` and `!in:A,B`: none of them (1.32). \
             May be given more than once from 1.24."
        }
        "project_id" => "Whose usages.",
        "user_id" => "Only what this user takes.",
        "consumer_type" => {
            "Only consumers of this type; `all`: all in one sum; `unknown`: those without."
        }
        "limit" => "At most so many candidates.",
        "group_policy" => {
            "Whether several suffixed groups may be met by one provider. Needed from two on."
        }
        "root_required" => "Traits that the root of the tree has; `!T`: does not have.",
        "same_subtree" => {
            "Suffixes, with commas, of groups to be met below one of their providers."
        }
        GROUPS => {
            "Not a parameter of this name, but any number of parameters `resourcesS`, `requiredS`, \
             `member_ofS` and `in_treeS`, where S, the suffix, names a group that one provider meets: \
             a number from 1 on; from 1.33 any 64 letters, digits, `_` and `-`."
        }
        _ => "",
    }
}

/// Whether a parameter of a query string may be given more than once.
pub(super) fn may_repeat(name: &str) -> bool {
    matches!(name, "required" | "member_of")
}

fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

fn upper() -> Value {
    json!({"type": "string", "pattern": "^[A-Z0-9_]+$", "maxLength": 255})
}

fn parameters() -> Value {
    let versions: Vec<String> = versions::all()
        .map(|version| format!("placement {version}"))
        .chain(["placement latest".to_owned()])
        .collect();
    json!({
        "Microversion": {
            "name": "OpenStack-API-Version",
            "in": "header",
            "required": false,
            "description": "The microversion that this request speaks. Versions of other services \
                            may stand beside it, separated by commas.",
            "schema": {"type": "string", "enum": versions, "default": "placement 1.0"},
        },
        "Consistency": {
            "name": "Placement-Consistency",
            "in": "header",
            "required": false,
            "description": "What this read promises: `linearizable`, at or after every acknowledged \
                            write; `session`, at or after Placement-Min-Index; `bounded;max=SECONDS`, \
                            at most so old; `local`, what this node has, quorum or not.",
            "schema": {
                "type": "string",
                "pattern": "^(linearizable|session|local|bounded;max=[0-9]+(\\.[0-9]+)?)$",
                "default": "linearizable",
            },
        },
        "MinIndex": {
            "name": "Placement-Min-Index",
            "in": "header",
            "required": false,
            "description": "A Placement-Index of an earlier response. Alone it asks for `session`.",
            "schema": index(),
        },
        "CallerRequestId": {
            "name": "X-Openstack-Request-Id",
            "in": "header",
            "required": false,
            "description": "The caller's own request, for this node's log.",
            "schema": request_id(),
        },
    })
}

fn index() -> Value {
    json!({"type": "string", "pattern": "^[0-9]+\\.[0-9]+$", "examples": ["7.1234"]})
}

fn request_id() -> Value {
    let hex = "[0-9a-f]";
    json!({
        "type": "string",
        "pattern": format!("^req-{hex}{{8}}-{hex}{{4}}-{hex}{{4}}-{hex}{{4}}-{hex}{{12}}$"),
    })
}

/// The headers that every response of the API has.
pub(super) fn common_headers() -> Value {
    json!({
        "X-Openstack-Request-Id": reference("headers", "RequestId"),
        "Placement-Index": reference("headers", "Index"),
        "Placement-Node": reference("headers", "Node"),
        "Placement-Known-Leader": reference("headers", "KnownLeader"),
        "Placement-Staleness": reference("headers", "Staleness"),
        "Placement-Effective-Consistency": reference("headers", "EffectiveConsistency"),
    })
}

fn header(required: bool, description: &str, schema: Value) -> Value {
    json!({"required": required, "description": description, "schema": schema})
}

fn headers() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "RequestId": header(true, "The id of this request, also in every error and log line.", request_id()),
        "Index": header(
            true,
            "Where the answer stands: a token for Placement-Min-Index. Opaque.",
            index(),
        ),
        "Node": header(true, "The node that answered.", json!({"type": "string", "pattern": "^[0-9]+$"})),
        "KnownLeader": header(
            true,
            "The leader as this node knows it.",
            json!({"type": "string", "pattern": "^([0-9]+|none)$"}),
        ),
        "Staleness": header(
            true,
            "How old the state may be, in seconds.",
            json!({"type": "string", "pattern": "^([0-9]+\\.[0-9]{3}|unknown)$"}),
        ),
        "EffectiveConsistency": header(
            true,
            "What was promised; `none` where no state was asked.",
            json!({"type": "string", "pattern": "^(none|linearizable|session|local|bounded;max=[0-9.e]+)$"}),
        ),
        "ServedMicroversion": header(
            true,
            "The microversion that was spoken.",
            json!({"type": "string", "pattern": "^placement 1\\.[0-9]+$"}),
        ),
        "Vary": header(true, "Names OpenStack-API-Version, and Origin if cross-origin requests are allowed.", text()),
        "Location": header(true, "Where it is, as an absolute URL.", text()),
        "CacheControl": header(false, "From 1.15.", json!({"type": "string", "const": "no-cache"})),
        "LastModified": header(false, "From 1.15. Absent where nobody can say.", text()),
        "Allow": header(false, "What is possible instead.", text()),
        "RetryAfter": header(true, "Seconds to wait.", json!({"type": "string", "pattern": "^[0-9]+$"})),
    })
}

fn responses() -> Value {
    let all = [
        (
            400,
            "The request cannot be understood, or names what does not exist.",
        ),
        (401, "There is no token."),
        (403, "The policy does not allow it to this caller."),
        (404, "It does not exist, or not at this microversion."),
        (405, "This microversion does not know the method."),
        (
            406,
            "The microversion is none of this service's, or JSON is not accepted as an answer.",
        ),
        (
            409,
            "The state is against it: a generation has changed, something is in use, does not fit or exists already.",
        ),
        (
            412,
            "The token in Placement-Min-Index is of another history. Forget it and read without it.",
        ),
        (413, "The body is longer than this service reads."),
        (414, "The URL is longer than this service reads."),
        (415, "The body is not application/json."),
        (431, "The headers are longer than this service reads."),
        (500, "A bug."),
        (
            503,
            "No leader answered in time, or a search took too long. The code says whether a write may have been committed.",
        ),
    ];
    let found = all.map(|(status, means)| (status.to_string(), error(status, means)));
    Value::Object(found.into_iter().collect())
}

fn error(status: u16, means: &str) -> Value {
    // These are answered before the request is one.
    if matches!(status, 414 | 431) {
        return json!({"description": means});
    }
    let mut headers = common_headers();
    if status == 405 {
        headers["Allow"] = reference("headers", "Allow");
    }
    if status == 503 {
        headers["Retry-After"] = reference("headers", "RetryAfter");
    }
    let schema = reference(
        "schemas",
        if status == 401 {
            "Unauthorized"
        } else {
            "Errors"
        },
    );
    json!({
        "description": means,
        "headers": headers,
        "content": {
            "application/json": {"schema": schema},
            "text/html": {"schema": {"type": "string"}},
            "text/plain": {"schema": {"type": "string"}},
        },
    })
}

/// A path that a node answers about itself.
pub(super) fn beside(path: &str) -> Value {
    let text = |means: &str| {
        let content = json!({"text/plain": {"schema": {"type": "string"}}});
        json!({"description": means, "content": content})
    };
    let (id, summary, mut answers) = match path {
        "/livez" => (
            "isAlive",
            "Whether the process runs",
            json!({"200": text("It does.")}),
        ),
        "/readyz" => (
            "isReady",
            "Whether this node can serve what it promises",
            json!({"200": text("It can."), "503": text("It cannot; the body says why.")}),
        ),
        _ => (
            "showDescription",
            "This document",
            json!({"200": {
                "description": "An OpenAPI document.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            }}),
        ),
    };
    answers["414"] = response(414);
    answers["431"] = response(431);
    json!({"get": {
        "operationId": id,
        "tags": ["node"],
        "summary": summary,
        "description": "Needs no token.",
        "security": [],
        "responses": answers,
    }})
}

/// An object with these members and no others.
fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn map_of(member: Value) -> Value {
    json!({"type": "object", "additionalProperties": member})
}

fn list_of(item: Value) -> Value {
    json!({"type": "array", "items": item})
}

fn whole() -> Value {
    json!({"type": "integer"})
}

fn amounts() -> Value {
    map_of(json!({"type": "integer", "minimum": 0}))
}

fn schemas() -> Value {
    let schema = |name| reference("schemas", name);
    let text = || json!({"type": "string"});
    let nullable_uuid = || json!({"type": ["string", "null"], "format": "uuid"});
    let mut found = json!({
        "Errors": object(&["errors"], json!({"errors": list_of(schema("Error"))})),
        "Error": error_schema(),
        "Unauthorized": object(
            &["message", "code", "title"],
            json!({"message": text(), "code": text(), "title": text()}),
        ),
        "Versions": versions_schema(),
        "Link": object(&["rel", "href"], json!({"rel": text(), "href": text()})),
        "ResourceClass": object(
            &["name", "links"],
            json!({"name": upper(), "links": list_of(schema("Link"))}),
        ),
        "ResourceClasses": object(
            &["resource_classes"],
            json!({"resource_classes": list_of(schema("ResourceClass"))}),
        ),
        "ResourceProvider": object(&["uuid", "name", "generation", "links"], json!({
            "uuid": uuid(),
            "name": {"type": "string", "maxLength": 200},
            "generation": whole(),
            "links": list_of(schema("Link")),
            "parent_provider_uuid": said(nullable_uuid(), "From 1.14."),
            "root_provider_uuid": said(uuid(), "From 1.14."),
        })),
        "ResourceProviders": object(
            &["resource_providers"],
            json!({"resource_providers": list_of(schema("ResourceProvider"))}),
        ),
        "Inventory": inventory_schema(),
        "Inventories": object(&["resource_provider_generation", "inventories"], json!({
            "resource_provider_generation": whole(),
            "inventories": map_of(schema("Inventory")),
        })),
        "ProviderUsages": object(&["resource_provider_generation", "usages"], json!({
            "resource_provider_generation": whole(),
            "usages": amounts(),
        })),
        "Aggregates": object(&["aggregates"], json!({
            "aggregates": list_of(text()),
            "resource_provider_generation": said(whole(), "From 1.19."),
        })),
    });
    let more = [
        (
            "ProviderTraits",
            object(
                &["traits", "resource_provider_generation"],
                json!({
                    "traits": list_of(upper()),
                    "resource_provider_generation": whole(),
                }),
            ),
        ),
        (
            "Traits",
            object(&["traits"], json!({"traits": list_of(upper())})),
        ),
        (
            "ProviderAllocations",
            object(
                &["allocations", "resource_provider_generation"],
                json!({
                    "allocations": map_of(object(&["resources"], json!({
                        "resources": amounts(),
                        "consumer_generation": said(whole(), "From 1.28."),
                    }))),
                    "resource_provider_generation": whole(),
                }),
            ),
        ),
        (
            "ConsumerAllocations",
            object(
                &["allocations"],
                json!({
                    "allocations": map_of(object(&["resources", "generation"], json!({
                        "resources": amounts(),
                        "generation": said(whole(), "The provider's."),
                    }))),
                    "project_id": said(text(), "From 1.12."),
                    "user_id": said(text(), "From 1.12."),
                    "consumer_generation": said(whole(), "From 1.28."),
                    "consumer_type": said(text(), "From 1.38."),
                }),
            ),
        ),
        (
            "Usages",
            object(
                &["usages"],
                json!({"usages": {"anyOf": [
                    said(amounts(), "Until 1.37: a sum per resource class."),
                    said(map_of(amounts()), "From 1.38: the same by consumer type, with consumer_count."),
                ]}}),
            ),
        ),
        ("AllocationCandidates", candidates_schema()),
    ];
    for (name, schema) in more {
        found[name] = schema;
    }
    found
}

fn said(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

const DETAIL: &str = "The status's standard sentence, an empty line, and on the last line what happened, what it means, what to do.";

fn error_schema() -> Value {
    let codes = [
        code::UNDEFINED,
        code::INVENTORY_IN_USE,
        code::CONCURRENT_UPDATE,
        code::DUPLICATE_NAME,
        code::PROVIDER_IN_USE,
        code::PROVIDER_HAS_CHILDREN,
        code::PROVIDER_NOT_FOUND,
        code::DUPLICATE_KEY,
        code::BAD_VALUE,
        code::MISSING_VALUE,
        code::NOTHING_COMMITTED,
        code::OUTCOME_UNKNOWN,
        code::NOT_READY,
        code::FOREIGN_INDEX,
        code::BAD_CONSISTENCY,
        code::BODY_TOO_LARGE,
        code::SEARCH_ENDED,
    ];
    let version = |which: &str| said(json!({"type": "string"}), which);
    object(
        &["status", "title", "detail", "request_id"],
        json!({
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "title": {"type": "string"},
            "detail": {"type": "string", "description": DETAIL},
            "code": {
                "type": "string",
                "enum": codes,
                "description": "From 1.23; codes that only this service has, at every microversion.",
            },
            "request_id": request_id(),
            "max_version": version("Of 406: the newest microversion there is."),
            "min_version": version("Of 406: the oldest microversion there is."),
        }),
    )
}

fn versions_schema() -> Value {
    let version = |which: Microversion| json!({"type": "string", "const": which.to_string()});
    let one = object(
        &["id", "max_version", "min_version", "status", "links"],
        json!({
            "id": {"type": "string"},
            "max_version": version(Microversion::MAX),
            "min_version": version(Microversion::MIN),
            "status": {"type": "string", "const": "CURRENT"},
            "links": list_of(reference("schemas", "Link")),
        }),
    );
    object(&["versions"], json!({"versions": list_of(one)}))
}

fn inventory_schema() -> Value {
    object(
        &[
            "total",
            "reserved",
            "min_unit",
            "max_unit",
            "step_size",
            "allocation_ratio",
        ],
        json!({
            "total": whole(),
            "reserved": whole(),
            "min_unit": whole(),
            "max_unit": whole(),
            "step_size": whole(),
            "allocation_ratio": {"type": "number"},
            "resource_provider_generation": said(whole(), "Of an inventory shown alone, unless it is 0."),
        }),
    )
}

fn candidates_schema() -> Value {
    let listed = object(
        &["resource_provider", "resources"],
        json!({
            "resource_provider": object(&["uuid"], json!({"uuid": uuid()})),
            "resources": amounts(),
        }),
    );
    let placed = object(&["resources"], json!({"resources": amounts()}));
    let request = object(
        &["allocations"],
        json!({
            "allocations": {"anyOf": [
                said(list_of(listed), "Until 1.11."),
                said(map_of(placed), "From 1.12, by provider."),
            ]},
            "mappings": said(
                map_of(list_of(uuid())),
                "From 1.34: which providers meet which group, by suffix.",
            ),
        }),
    );
    let resource = object(
        &["capacity", "used"],
        json!({"capacity": whole(), "used": whole()}),
    );
    let summary = object(
        &["resources"],
        json!({
            "resources": said(map_of(resource), "Until 1.26 only the classes asked for."),
            "traits": said(list_of(upper()), "From 1.17."),
            "parent_provider_uuid": {"type": ["string", "null"], "format": "uuid", "description": "From 1.29."},
            "root_provider_uuid": said(uuid(), "From 1.29."),
        }),
    );
    object(
        &["allocation_requests", "provider_summaries"],
        json!({
            "allocation_requests": list_of(request),
            "provider_summaries": map_of(summary),
        }),
    )
}
