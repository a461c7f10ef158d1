//! The codes that programs use to distinguish errors.

/// The codes of 503.
pub const UNAVAILABLE: [&str; 7] = [
    NOTHING_COMMITTED,
    OUTCOME_UNKNOWN,
    NOT_READY,
    NO_PARTITION,
    MISDIRECTED,
    BUSY,
    CANNOT_AUTHENTICATE,
];
/// The codes of 409.
pub const CONFLICTS: [&str; 11] = [
    UNDEFINED,
    CONCURRENT_UPDATE,
    DUPLICATE_NAME,
    INVENTORY_IN_USE,
    PROVIDER_IN_USE,
    PROVIDER_HAS_CHILDREN,
    CLAIM_NO_ROOM,
    CLAIM_OVER_CEILING,
    CLAIM_GROUP,
    CLAIM_NO_CANDIDATES,
    PROJECT_OVER_LIMIT,
];

macro_rules! codes {
    ($(#[$about:meta])* $all:ident, $page:ident: $($(#[doc = $doc:literal])* $seen:vis $name:ident = $code:literal;)*) => {
        $(
            $(#[doc = $doc])*
            $seen const $name: &str = $code;
        )*

        $(#[$about])*
        pub(crate) const $all: &[&str] = &[$($name),*];

        /// Each code with its doc, which consists of statuses, a colon and the meaning.
        #[cfg(test)]
        const $page: &[(&str, &str)] = &[$(($code, concat!($($doc, "\n"),*))),*];
    };
}

codes! {
    /// The reference's codes, given from microversion 1.23 on.
    REFERENCE, REFERENCE_PAGE:
    /// any: an error without a code of its own.
    pub(crate) UNDEFINED = "placement.undefined_code";
    /// 409: an inventory to be removed is in use.
    pub(crate) INVENTORY_IN_USE = "placement.inventory.inuse";
    /// 409: another client has changed the object: read its current state, then retry.
    pub(crate) CONCURRENT_UPDATE = "placement.concurrent_update";
    /// 409: a provider with this name or UUID exists.
    pub(crate) DUPLICATE_NAME = "placement.duplicate_name";
    /// 409: the provider has allocations.
    pub(crate) PROVIDER_IN_USE = "placement.resource_provider.inuse";
    /// 409: the provider has children.
    pub(crate) PROVIDER_HAS_CHILDREN = "placement.resource_provider.cannot_delete_parent";
    /// 400: a reshape names a provider that does not exist.
    pub(crate) PROVIDER_NOT_FOUND = "placement.resource_provider.not_found";
    /// 400: a query parameter that may occur once occurs several times.
    pub(crate) DUPLICATE_KEY = "placement.query.duplicate_key";
    /// 400: a query parameter has an invalid value.
    pub(crate) BAD_VALUE = "placement.query.bad_value";
    /// 400: a query parameter is missing.
    pub(crate) MISSING_VALUE = "placement.query.missing_value";
}

codes! {
    /// This service's own codes, given at every microversion, as they cannot confuse older clients.
    OWN, OWN_PAGE:
    /// 400: an invalid consistency header.
    pub(crate) BAD_CONSISTENCY = "placement.consistency.bad_value";
    /// 400: the answer exceeds 128 MiB, or the search 10 s: request less.
    pub(crate) SEARCH_ENDED = "placement.candidates.search_ended";
    /// 400, 413, 414: the request exceeds a limit, which the message names; 413 also if its log
    /// entry would exceed 4 MiB.
    pub(crate) LIMIT_EXCEEDED = "placement.limit_exceeded";
    /// 403: a write to a [backup](operate/backups.md#look-at-a-backup), which is read-only.
    pub(crate) READ_ONLY = "placement.read_only";
    /// 408: the body took more than 60 s, paused for 10 s, or was slower than 64 KiB/s.
    pub(crate) BODY_TOO_SLOW = "placement.body_too_slow";
    /// 409: no choice of a [claim](api.md#claims) has room; `reasons` has the reason of each of the
    /// first four.
    pub(crate) CLAIM_NO_ROOM = "placement.claim.no_room";
    /// 409: each choice of a claim would exceed a ceiling or break a group, and at least one would
    /// exceed the `ceiling`: `used`, `requested` and `limit` have its numbers.
    pub(crate) CLAIM_OVER_CEILING = "placement.claim.over_ceiling";
    /// 409: each choice of a claim would break the rule of a group: `group`, `provider` (the root
    /// of the tree) and `members` are those of the first choice.
    pub(crate) CLAIM_GROUP = "placement.claim.group";
    /// 409: the query of a claim has too few candidates; `placementctl explain` with the request id
    /// shows why.
    pub(crate) CLAIM_NO_CANDIDATES = "placement.claim.no_candidates";
    /// 404: the consumer has no [hold](api.md#holds), for example because its lease has ended.
    pub(crate) NO_HOLD = "placement.hold.not_found";
    /// 409: a hold with a due time can only get another due time: others may rely on it.
    pub(crate) HOLD_IS_DUE = "placement.hold.is_due";
    /// 409: more than 100 holds would be kept for a consumer.
    pub(crate) TOO_MANY_HOLDS = "placement.hold.too_many";
    /// 409: the write would exceed a [limit](api.md#limits) of a project or of its parent; the
    /// message has the numbers.
    pub(crate) PROJECT_OVER_LIMIT = "placement.project.over_limit";
    /// 410: this node no longer retains the changes since that point; `oldest` and `oldest_at` tell
    /// from which point on it retains them.
    pub(crate) EVENTS_GONE = "placement.events.gone";
    /// 410: the state at that moment is no longer available; `oldest` and `oldest_at` as above.
    pub(crate) AS_OF_GONE = "placement.as_of.gone";
    /// 412: a token of another cluster's history.
    pub(crate) FOREIGN_INDEX = "placement.consistency.foreign_index";
    /// 413: the body is longer than 16 MiB, or than 1 MiB for `what-if`.
    pub(crate) BODY_TOO_LARGE = "placement.body_too_large";
    /// 421, 503: the host (421) or path (503) belongs to [no partition](regions.md#routes), or the
    /// routes changed during the request. Nothing was committed.
    pub(crate) MISDIRECTED = "placement.partition.misdirected";
    /// 429: this user or address exceeds the named limit of `[callers]`; no effect; retry with
    /// exponential backoff.
    pub(crate) TOO_MANY_REQUESTS = "placement.too_many_requests";
    /// 503: the [partition](regions.md#many-clouds) does not exist; no effect.
    pub(crate) NO_PARTITION = "placement.partition.not_found";
    /// 503: this node or the leader is overloaded, or this user, address or partition has used up
    /// its [share of this node](operate/callers.md#shares); no effect; retry with exponential
    /// backoff.
    pub(crate) BUSY = "placement.unavailable.busy";
    /// 503: Keystone does not answer (cached tokens still work); no effect; retry with exponential
    /// backoff.
    pub(crate) CANNOT_AUTHENTICATE = "placement.unavailable.identity";
    /// 503: no effect; retry with exponential backoff.
    pub NOTHING_COMMITTED = "placement.unavailable.nothing_committed";
    /// 503: `GET /` on a node that is not ready: use another node.
    pub(crate) NOT_READY = "placement.unavailable.not_ready";
    /// 503: the write may be committed: read before retrying, or send a claim [again with the same
    /// request id](api.md#repeated-claims), as keystoneauth does for Nova.
    pub(crate) OUTCOME_UNKNOWN = "placement.unavailable.outcome_unknown";
    /// 507: the disks of a majority of the nodes are nearly full (`[disk] min_free_bytes`); no
    /// effect; deletions still work.
    pub(crate) NO_SPACE = "placement.unavailable.no_space";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(codes: &[(&str, &str)]) -> String {
        let mut table = "\n| status | code | meaning |\n|---|---|---|\n".to_owned();
        for (code, doc) in codes {
            let doc: Vec<&str> = doc.lines().map(str::trim).collect();
            let doc = doc.join(" ");
            let (status, meaning) = doc.split_once(": ").expect("a doc begins with statuses");
            table += &format!(
                "| {status} | `{code}` | {} |\n",
                meaning.trim_end_matches('.')
            );
        }
        table
    }

    fn page() -> String {
        format!(
            "# Error codes\n\n\
             The REST API returns the code of an error in `errors[0].code`; see [the form of errors](api.md#errors).\n\n\
             ## Codes of this service\n\nThis service returns these codes at every microversion.\n{}\n\
             One status has no code: 431 has no body and no request id. It means that the head of the request is longer than \
             80 KiB (HTTP/2) or some 400 KiB (HTTP/1.1), or has more than 100 headers (HTTP/1.1).\n\n\
             ## Codes of the reference\n\nErrors have these codes from microversion 1.23 on, as in upstream.\n{}",
            table(OWN_PAGE),
            table(REFERENCE_PAGE)
        )
    }

    #[test]
    fn page_is_up_to_date() {
        placement_docs::assert_kept("errors.md", &page());
    }
}
