//! The codes that programs tell errors apart by.

/// Those that 503 is answered with.
pub const UNAVAILABLE: [&str; 7] = [
    NOTHING_COMMITTED,
    OUTCOME_UNKNOWN,
    NOT_READY,
    NO_PARTITION,
    MISDIRECTED,
    BUSY,
    CANNOT_AUTHENTICATE,
];
/// Those that 409 is answered with.
pub const CONFLICTS: [&str; 6] = [
    UNDEFINED,
    CONCURRENT_UPDATE,
    DUPLICATE_NAME,
    INVENTORY_IN_USE,
    PROVIDER_IN_USE,
    PROVIDER_HAS_CHILDREN,
];

macro_rules! codes {
    ($(#[$about:meta])* $all:ident: $($(#[$doc:meta])* $seen:vis $name:ident = $code:literal;)*) => {
        $(
            $(#[$doc])*
            $seen const $name: &str = $code;
        )*

        $(#[$about])*
        pub(crate) const $all: &[&str] = &[$($name),*];
    };
}

codes! {
    /// Those of the reference, given from microversion 1.23 on.
    REFERENCE:
    /// An error without a code of its own.
    pub(crate) UNDEFINED = "placement.undefined_code";
    /// An inventory that was to be removed is in use.
    pub(crate) INVENTORY_IN_USE = "placement.inventory.inuse";
    /// Another client was faster: read again, then try again.
    pub(crate) CONCURRENT_UPDATE = "placement.concurrent_update";
    /// The name or UUID is taken.
    pub(crate) DUPLICATE_NAME = "placement.duplicate_name";
    /// The provider has allocations.
    pub(crate) PROVIDER_IN_USE = "placement.resource_provider.inuse";
    /// The provider has children.
    pub(crate) PROVIDER_HAS_CHILDREN = "placement.resource_provider.cannot_delete_parent";
    /// No such provider.
    pub(crate) PROVIDER_NOT_FOUND = "placement.resource_provider.not_found";
    /// A query parameter that may come once came twice.
    pub(crate) DUPLICATE_KEY = "placement.query.duplicate_key";
    /// A query parameter has a wrong value.
    pub(crate) BAD_VALUE = "placement.query.bad_value";
    /// A query parameter is missing.
    pub(crate) MISSING_VALUE = "placement.query.missing_value";
}

codes! {
    /// Those that only this service has, given at every microversion: no older client can trip over them.
    OWN:
    /// 503: nothing was committed, so trying again is safe.
    pub NOTHING_COMMITTED = "placement.unavailable.nothing_committed";
    /// 503: the write may or may not be committed.
    pub(crate) OUTCOME_UNKNOWN = "placement.unavailable.outcome_unknown";
    /// 503: the node asked cannot serve.
    pub(crate) NOT_READY = "placement.unavailable.not_ready";
    /// 503: the cluster does not have the partition that the request is for.
    pub(crate) NO_PARTITION = "placement.partition.not_found";
    /// 421, 503: the request is no partition's, or may have become another's.
    pub(crate) MISDIRECTED = "placement.partition.misdirected";
    /// 507: the disks are nearly full; what takes away is still carried out.
    pub(crate) NO_SPACE = "placement.unavailable.no_space";
    /// 412: the index token is of another history.
    pub(crate) FOREIGN_INDEX = "placement.consistency.foreign_index";
    /// 410: the changes after that token are not kept any more.
    pub(crate) EVENTS_GONE = "placement.events.gone";
    /// 410: the state of that moment cannot be made any more.
    pub(crate) AS_OF_GONE = "placement.as_of.gone";
    /// 400: a consistency header cannot be understood.
    pub(crate) BAD_CONSISTENCY = "placement.consistency.bad_value";
    /// 403: the state is that of a backup.
    pub(crate) READ_ONLY = "placement.read_only";
    /// 413: the body is too long.
    pub(crate) BODY_TOO_LARGE = "placement.body_too_large";
    /// 408: the body came too slowly.
    pub(crate) BODY_TOO_SLOW = "placement.body_too_slow";
    /// 503: this node has too much to do.
    pub(crate) BUSY = "placement.unavailable.busy";
    /// 429: this caller asks too much.
    pub(crate) TOO_MANY_REQUESTS = "placement.too_many_requests";
    /// 503: whose the token is cannot be found out now.
    pub(crate) CANNOT_AUTHENTICATE = "placement.unavailable.identity";
    /// 400, 414: the request carries more than the operator allows.
    pub(crate) LIMIT_EXCEEDED = "placement.limit_exceeded";
    /// 400: a candidate search took too long or too much.
    pub(crate) SEARCH_ENDED = "placement.candidates.search_ended";
}
