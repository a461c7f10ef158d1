//! What each operation is for, what it reads and what it answers when all goes well.

use crate::http::wire::microversion::Microversion;
use crate::http::wire::schema::{self, Schema};

/// What is said of an operation that the route does not say itself.
pub(super) struct About {
    /// The HTTP method.
    pub(super) method: &'static str,
    /// The path of its route.
    pub(super) path: &'static str,
    /// A name that programs can use.
    pub(super) id: &'static str,
    /// In a few words.
    pub(super) summary: &'static str,
    /// What else a client should know.
    pub(super) description: &'static str,
    /// What its query string is checked against.
    pub(super) query: Option<fn(Microversion) -> &'static Schema>,
    /// What its body is checked against.
    pub(super) body: Option<fn(Microversion) -> &'static Schema>,
    /// Answers 2xx.
    pub(super) success: &'static [Success],
    /// Whether the state can be against it: 409.
    pub(super) conflicts: bool,
}

/// An answer 2xx.
#[derive(Clone, Copy)]
pub(super) struct Success {
    /// The status.
    pub(super) status: u16,
    /// What it means.
    pub(super) means: &'static str,
    /// The schema of its body, by name; `None`: no body.
    pub(super) body: Option<&'static str>,
    /// Whether `location` says where.
    pub(super) located: bool,
    /// Whether caches are told something, from 1.15.
    pub(super) dated: bool,
}

impl Success {
    const fn dated(self) -> Self {
        Self {
            dated: true,
            ..self
        }
    }

    const fn located(self) -> Self {
        Self {
            located: true,
            ..self
        }
    }
}

const fn success(status: u16, means: &'static str, body: Option<&'static str>) -> Success {
    Success {
        status,
        means,
        body,
        located: false,
        dated: false,
    }
}

/// 200 of a read.
const fn found(body: &'static str) -> Success {
    success(200, "What was asked for.", Some(body)).dated()
}

/// 200 of a write that shows what is there now.
const fn written(body: &'static str) -> Success {
    success(200, "Done; this is what is there now.", Some(body)).dated()
}

const DONE: Success = success(204, "Done.", None);
const CREATED: Success = success(201, "It exists now.", None).located();
const EXISTED: Success = success(204, "It existed before.", None).located();

const fn about(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    success: &'static [Success],
) -> About {
    About {
        method,
        path,
        id,
        summary,
        description: "",
        query: None,
        body: None,
        success,
        conflicts: false,
    }
}

impl About {
    const fn but(self, description: &'static str) -> Self {
        Self {
            description,
            ..self
        }
    }

    const fn query(self, query: fn(Microversion) -> &'static Schema) -> Self {
        Self {
            query: Some(query),
            ..self
        }
    }

    const fn body(self, body: fn(Microversion) -> &'static Schema) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    const fn conflicts(self) -> Self {
        Self {
            conflicts: true,
            ..self
        }
    }

    /// The noun it belongs to: the last one of its path.
    pub(super) fn tag(&self) -> &'static str {
        self.path
            .rsplit('/')
            .find(|part| !part.is_empty() && !part.starts_with('{'))
            .unwrap_or("versions")
    }
}

/// What is said of an operation.
pub(super) fn find(method: &str, path: &str) -> Option<&'static About> {
    OPERATIONS
        .iter()
        .find(|about| about.method == method && about.path == path)
}

const PROVIDER: &str = "/resource_providers/{uuid}";
const INVENTORIES: &str = "/resource_providers/{uuid}/inventories";
const INVENTORY: &str = "/resource_providers/{uuid}/inventories/{resource_class}";
const PROVIDER_AGGREGATES: &str = "/resource_providers/{uuid}/aggregates";
const PROVIDER_TRAITS: &str = "/resource_providers/{uuid}/traits";
const CONSUMER: &str = "/allocations/{consumer_uuid}";
const GENERATION: &str =
    "Refused with 409 if the provider's generation is not the one that the body names.";

/// Everything the routes have, in their order.
pub(super) static OPERATIONS: [About; 36] = [
    about("GET", "/", "listVersions", "Version discovery", &[found("Versions")]).but(
        "Needs no token.",
    ),
    about(
        "GET",
        "/resource_classes",
        "listResourceClasses",
        "All resource classes",
        &[found("ResourceClasses")],
    ),
    about(
        "POST",
        "/resource_classes",
        "createResourceClass",
        "Create a custom resource class",
        &[CREATED],
    )
    .body(|_| schema::resource_class())
    .conflicts(),
    about(
        "GET",
        "/resource_classes/{name}",
        "showResourceClass",
        "One resource class",
        &[found("ResourceClass")],
    ),
    about(
        "PUT",
        "/resource_classes/{name}",
        "updateResourceClass",
        "Make sure that a custom resource class exists",
        &[
            success(200, "Renamed (1.2 to 1.6).", Some("ResourceClass")),
            CREATED,
            EXISTED,
        ],
    )
    .but("From 1.2 to 1.6 it gives the class the name that the body says; from 1.7 it has no body.")
    .body(|_| schema::resource_class())
    .conflicts(),
    about(
        "DELETE",
        "/resource_classes/{name}",
        "deleteResourceClass",
        "Delete a custom resource class",
        &[DONE],
    )
    .but("Refused with 409 while an inventory has the class.")
    .conflicts(),
    about(
        "GET",
        "/resource_providers",
        "listResourceProviders",
        "Resource providers that fit all filters",
        &[found("ResourceProviders")],
    )
    .query(schema::providers_query),
    about(
        "POST",
        "/resource_providers",
        "createResourceProvider",
        "Create a resource provider",
        &[
            success(
                200,
                "It exists now, and looks like this (from 1.20).",
                Some("ResourceProvider"),
            )
            .located()
            .dated(),
            success(201, "It exists now (before 1.20).", None).located(),
        ],
    )
    .but("Refused with 409 if its name or its UUID is taken.")
    .body(schema::post_provider)
    .conflicts(),
    about(
        "GET",
        PROVIDER,
        "showResourceProvider",
        "One resource provider",
        &[found("ResourceProvider")],
    ),
    about(
        "PUT",
        PROVIDER,
        "updateResourceProvider",
        "Change a resource provider's name or parent",
        &[written("ResourceProvider")],
    )
    .but("Another parent, or none, can be given from 1.37; a first parent from 1.14.")
    .body(schema::put_provider)
    .conflicts(),
    about(
        "DELETE",
        PROVIDER,
        "deleteResourceProvider",
        "Delete a resource provider with its inventories, traits and aggregates",
        &[DONE],
    )
    .but("Refused with 409 while it has children or allocations.")
    .conflicts(),
    about(
        "GET",
        INVENTORIES,
        "listInventories",
        "A provider's inventories",
        &[found("Inventories")],
    ),
    about(
        "POST",
        INVENTORIES,
        "createInventory",
        "Add an inventory to a provider",
        &[success(201, "It exists now, and looks like this.", Some("Inventory"))
            .located()
            .dated()],
    )
    .but("Refused with 409 if the provider has an inventory of this class.")
    .body(|_| schema::post_inventory())
    .conflicts(),
    about(
        "PUT",
        INVENTORIES,
        "replaceInventories",
        "Replace all of a provider's inventories",
        &[written("Inventories")],
    )
    .but(GENERATION)
    .body(|_| schema::put_inventories())
    .conflicts(),
    about(
        "DELETE",
        INVENTORIES,
        "deleteInventories",
        "Delete all of a provider's inventories",
        &[DONE],
    )
    .but("Refused with 409 while one of them is in use.")
    .conflicts(),
    about(
        "GET",
        INVENTORY,
        "showInventory",
        "A provider's inventory of one class",
        &[found("Inventory")],
    ),
    about(
        "PUT",
        INVENTORY,
        "updateInventory",
        "Change a provider's inventory of one class",
        &[written("Inventory")],
    )
    .but(GENERATION)
    .body(|_| schema::put_inventory())
    .conflicts(),
    about(
        "DELETE",
        INVENTORY,
        "deleteInventory",
        "Delete a provider's inventory of one class",
        &[DONE],
    )
    .but("Refused with 409 while it is in use.")
    .conflicts(),
    about(
        "GET",
        "/resource_providers/{uuid}/usages",
        "showProviderUsages",
        "What is taken of a provider",
        &[found("ProviderUsages")],
    ),
    about(
        "GET",
        PROVIDER_AGGREGATES,
        "listProviderAggregates",
        "A provider's aggregates",
        &[found("Aggregates")],
    ),
    about(
        "PUT",
        PROVIDER_AGGREGATES,
        "replaceProviderAggregates",
        "Replace a provider's aggregates",
        &[written("Aggregates")],
    )
    .but("From 1.19 refused with 409 if the provider's generation is not the one that the body names.")
    .body(schema::aggregates)
    .conflicts(),
    about(
        "GET",
        "/resource_providers/{uuid}/allocations",
        "listProviderAllocations",
        "Who takes what of a provider",
        &[found("ProviderAllocations")],
    ),
    about(
        "GET",
        PROVIDER_TRAITS,
        "listProviderTraits",
        "A provider's traits",
        &[found("ProviderTraits")],
    ),
    about(
        "PUT",
        PROVIDER_TRAITS,
        "replaceProviderTraits",
        "Replace a provider's traits",
        &[written("ProviderTraits")],
    )
    .but(GENERATION)
    .body(|_| schema::provider_traits())
    .conflicts(),
    about(
        "DELETE",
        PROVIDER_TRAITS,
        "clearProviderTraits",
        "Take all traits from a provider",
        &[DONE],
    ),
    about(
        "POST",
        "/allocations",
        "setManyAllocations",
        "Replace the allocations of several consumers, all or none",
        &[DONE],
    )
    .but("Refused with 409 if something does not fit, or a generation is not the one expected.")
    .body(schema::post_allocations)
    .conflicts(),
    about(
        "GET",
        CONSUMER,
        "showAllocations",
        "A consumer's allocations",
        &[found("ConsumerAllocations")],
    )
    .but("A consumer that does not exist has none."),
    about(
        "PUT",
        CONSUMER,
        "setAllocations",
        "Replace a consumer's allocations",
        &[DONE],
    )
    .but("Refused with 409 if something does not fit, or a generation is not the one expected.")
    .body(schema::put_allocations)
    .conflicts(),
    about(
        "DELETE",
        CONSUMER,
        "deleteAllocations",
        "Delete a consumer's allocations",
        &[DONE],
    ),
    about(
        "GET",
        "/allocation_candidates",
        "listAllocationCandidates",
        "Ways in which a request for resources can be met",
        &[found("AllocationCandidates")],
    )
    .query(schema::candidates_query),
    about("GET", "/traits", "listTraits", "Traits", &[found("Traits")])
        .query(|_| schema::traits_query()),
    about(
        "GET",
        "/traits/{name}",
        "showTrait",
        "Whether a trait exists",
        &[success(204, "It exists.", None).dated()],
    ),
    about(
        "PUT",
        "/traits/{name}",
        "ensureTrait",
        "Make sure that a custom trait exists",
        &[CREATED.dated(), EXISTED.dated()],
    ),
    about(
        "DELETE",
        "/traits/{name}",
        "deleteTrait",
        "Delete a custom trait",
        &[DONE],
    )
    .but("Refused with 409 while a provider has it.")
    .conflicts(),
    about(
        "GET",
        "/usages",
        "showUsages",
        "What a project, or a user of it, takes",
        &[found("Usages")],
    )
    .query(schema::usages_query),
    about(
        "POST",
        "/reshaper",
        "reshape",
        "Move inventories and allocations between providers in one step",
        &[DONE],
    )
    .but("Refused with 409 if something does not fit, or a generation is not the one expected.")
    .body(schema::reshaper)
    .conflicts(),
];
