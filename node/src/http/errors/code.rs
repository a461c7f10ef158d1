//! The codes that programs tell errors apart by.

/// An error without a code of its own.
pub(in crate::http) const UNDEFINED: &str = "placement.undefined_code";
/// An inventory that was to be removed is in use.
pub(in crate::http) const INVENTORY_IN_USE: &str = "placement.inventory.inuse";
/// Another client was faster: read again, then try again.
pub(in crate::http) const CONCURRENT_UPDATE: &str = "placement.concurrent_update";
/// The name or UUID is taken.
pub(in crate::http) const DUPLICATE_NAME: &str = "placement.duplicate_name";
/// The provider has allocations.
pub(in crate::http) const PROVIDER_IN_USE: &str = "placement.resource_provider.inuse";
/// The provider has children.
pub(in crate::http) const PROVIDER_HAS_CHILDREN: &str =
    "placement.resource_provider.cannot_delete_parent";
/// No such provider.
pub(in crate::http) const PROVIDER_NOT_FOUND: &str = "placement.resource_provider.not_found";
/// A query parameter that may come once came twice.
pub(in crate::http) const DUPLICATE_KEY: &str = "placement.query.duplicate_key";
/// A query parameter has a wrong value.
pub(in crate::http) const BAD_VALUE: &str = "placement.query.bad_value";
/// A query parameter is missing.
pub(in crate::http) const MISSING_VALUE: &str = "placement.query.missing_value";
/// 503: nothing was committed, so trying again is safe. Given at every microversion.
pub(crate) const NOTHING_COMMITTED: &str = "placement.unavailable.nothing_committed";
/// 503: the write may or may not be committed. Given at every microversion.
pub(in crate::http) const OUTCOME_UNKNOWN: &str = "placement.unavailable.outcome_unknown";
/// 503: the node asked cannot serve. Given at every microversion.
pub(in crate::http) const NOT_READY: &str = "placement.unavailable.not_ready";
/// 503: the cluster does not have the partition that the request is for. Given at every microversion.
pub(in crate::http) const NO_PARTITION: &str = "placement.partition.not_found";
/// 421, 503: the request is no partition's, or may have become another's. Given at every microversion.
pub(in crate::http) const MISDIRECTED: &str = "placement.partition.misdirected";
/// 507: the disks are nearly full; what takes away is still carried out. Given at every microversion.
pub(in crate::http) const NO_SPACE: &str = "placement.unavailable.no_space";
/// 412: the index token is of another history. Given at every microversion.
pub(in crate::http) const FOREIGN_INDEX: &str = "placement.consistency.foreign_index";
/// 400: a consistency header cannot be understood. Given at every microversion.
pub(in crate::http) const BAD_CONSISTENCY: &str = "placement.consistency.bad_value";
/// 413: the body is too long. Given at every microversion.
pub(in crate::http) const BODY_TOO_LARGE: &str = "placement.body_too_large";
/// 400, 414: the request carries more than the operator allows. Given at every microversion.
pub(in crate::http) const LIMIT_EXCEEDED: &str = "placement.limit_exceeded";
/// 408: the body came too slowly. Given at every microversion.
pub(in crate::http) const BODY_TOO_SLOW: &str = "placement.body_too_slow";
/// 503: this node has too much to do. Given at every microversion.
pub(in crate::http) const BUSY: &str = "placement.unavailable.busy";
/// 429: this caller asks too much. Given at every microversion.
pub(in crate::http) const TOO_MANY_REQUESTS: &str = "placement.too_many_requests";
/// 503: whose the token is cannot be found out now. Given at every microversion.
pub(in crate::http) const CANNOT_AUTHENTICATE: &str = "placement.unavailable.identity";
/// 400: a candidate search took too long or too much. Given at every microversion.
pub(in crate::http) const SEARCH_ENDED: &str = "placement.candidates.search_ended";

/// All of them.
pub(in crate::http) const ALL: [&str; 25] = [
    UNDEFINED,
    INVENTORY_IN_USE,
    CONCURRENT_UPDATE,
    DUPLICATE_NAME,
    PROVIDER_IN_USE,
    PROVIDER_HAS_CHILDREN,
    PROVIDER_NOT_FOUND,
    DUPLICATE_KEY,
    BAD_VALUE,
    MISSING_VALUE,
    NOTHING_COMMITTED,
    OUTCOME_UNKNOWN,
    NOT_READY,
    NO_PARTITION,
    MISDIRECTED,
    NO_SPACE,
    FOREIGN_INDEX,
    BAD_CONSISTENCY,
    BODY_TOO_LARGE,
    BODY_TOO_SLOW,
    BUSY,
    TOO_MANY_REQUESTS,
    CANNOT_AUTHENTICATE,
    LIMIT_EXCEEDED,
    SEARCH_ENDED,
];
