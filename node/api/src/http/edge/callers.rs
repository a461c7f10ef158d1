//! Limits per caller (`[callers]`): requests in flight, until their answers are taken, and requests
//! per second, of each user and each address.
//!
//! Requests per second follow GCRA (ITU-T I.371): each request moves its caller's theoretical
//! arrival time ahead, and a request that would move it more than one second past now is refused.
//! So the state of a caller is a counter and a time; it is dropped once the time has passed and
//! nothing is in flight.

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;

use super::settings::{ApiSettings, AuthSection, CallerLimits};
use crate::access::{Peer, address_in, network};
use crate::http::errors::ApiError;
use crate::world::Clock;

/// Maximum number of known callers of a kind. At the limit a new caller replaces the least busy of
/// a few others, which then may send another second's worth of requests. Callers with requests in
/// flight are kept; the number of connections bounds them.
const KNOWN_MAX: usize = 65_536;
/// Entries examined for eviction when a new caller arrives.
const LOOKED_AT: usize = 16;
/// Bytes of a user's id that distinguish users. Keystone's ids are shorter.
const ID_MAX_BYTES: usize = 64;
/// The period over which requests are counted.
const SECOND: Duration = Duration::from_secs(1);

/// Counts a request for its partition, its address and its user, until dropped.
#[derive(Default)]
pub(crate) struct Counted {
    _partition: Option<InFlight<()>>,
    _address: Option<InFlight<IpAddr>>,
    _user: Option<InFlight<Box<str>>>,
}

/// The limits of all callers of one partition, and their current use.
pub struct Callers {
    clock: Arc<dyn Clock>,
    users: Arc<Limited<Box<str>>>,
    addresses: Arc<Limited<IpAddr>>,
    /// The limit of the partition as a whole.
    whole: Arc<Limited<()>>,
    /// Its proxies stand for many clients behind one address, if they do not forward the client's
    /// address.
    auth: AuthSection,
}

impl Callers {
    pub(crate) fn new(settings: &ApiSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            users: Arc::new(Limited::new(settings.users)),
            addresses: Arc::new(Limited::new(settings.addresses)),
            whole: Arc::new(Limited::new(settings.whole)),
            auth: settings.auth.clone(),
        }
    }

    /// Admits a request within the limit of the partition.
    ///
    /// # Errors
    /// 429 if too many requests are in flight.
    pub(crate) fn admit(&self, counted: &mut Counted) -> Result<(), ApiError> {
        let admitted = self.whole.admit((), self.clock.monotonic());
        counted._partition = admitted.map_err(|_| {
            let most = self.whole.limits.in_flight;
            let message = format!(
                "More than {most} requests to this partition are being answered by this node \
                 ([[partitions]] in_flight)"
            );
            ApiError::too_many_requests(&message)
        })?;
        Ok(())
    }

    /// The address for which a request is counted. It came over a connection from `peer`, and from
    /// `client` according to a trusted proxy. `None` if only the address of a proxy is known, which
    /// stands for many clients.
    pub(crate) fn address(&self, peer: Option<Peer>, client: Option<&str>) -> Option<IpAddr> {
        let named = client.and_then(address_in);
        let address = named.or(peer.map(|Peer(address)| address.ip()))?;
        let address = address.to_canonical();
        let is_all = named.is_none() && self.auth.is_proxy(&address);
        (!is_all).then(|| network(address))
    }

    /// Admits a request from this address.
    ///
    /// # Errors
    /// 429 if the address exceeds one of its limits.
    pub(crate) fn admit_address(
        &self,
        address: IpAddr,
        counted: &mut Counted,
    ) -> Result<(), ApiError> {
        let admitted = (self.addresses).admit(address, self.clock.monotonic());
        counted._address =
            admitted.map_err(|over| over.error("address", &self.addresses.limits))?;
        Ok(())
    }

    /// Admits a request of this user.
    ///
    /// # Errors
    /// 429 if the user exceeds one of its limits.
    pub(crate) fn admit_user(&self, id: &str, counted: &mut Counted) -> Result<(), ApiError> {
        let id = &id[..id.floor_char_boundary(ID_MAX_BYTES)];
        let admitted = self.users.admit(id.into(), self.clock.monotonic());
        counted._user = admitted.map_err(|over| over.error("user", &self.users.limits))?;
        Ok(())
    }

    /// Number of refused requests by exceeded limit.
    pub fn refused(&self) -> [(&'static str, u64); 5] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("address_in_flight", count(&self.addresses.over_in_flight)),
            ("address_per_s", count(&self.addresses.over_per_s)),
            ("in_flight", count(&self.whole.over_in_flight)),
            ("user_in_flight", count(&self.users.over_in_flight)),
            ("user_per_s", count(&self.users.over_per_s)),
        ]
    }
}

/// The limit that a request exceeds.
enum Over {
    InFlight,
    PerSecond,
}

impl Over {
    fn error(self, kind: &str, limits: &CallerLimits) -> ApiError {
        let CallerLimits { in_flight, per_s } = limits;
        let message = match self {
            Self::InFlight => format!(
                "More than {in_flight} requests of this {kind} are being answered by this node \
                 ({kind}_in_flight; [callers] {kind}_per_s = 0 removes the limit)"
            ),
            Self::PerSecond => format!(
                "More than {per_s} requests per second come from this {kind} to this node \
                 ([callers] {kind}_per_s)"
            ),
        };
        ApiError::too_many_requests(&message)
    }
}

/// The callers of one kind, with their limits.
struct Limited<K> {
    limits: CallerLimits,
    known: Mutex<Known<K>>,
    over_in_flight: AtomicU64,
    over_per_s: AtomicU64,
}

/// A request in flight, counted until dropped.
struct InFlight<K: Hash + Eq> {
    limited: Arc<Limited<K>>,
    key: K,
}

impl<K: Hash + Eq + Clone> Limited<K> {
    fn new(limits: CallerLimits) -> Self {
        Self {
            limits,
            known: Mutex::new(Known {
                callers: IndexMap::new(),
                hand: 0,
            }),
            over_in_flight: AtomicU64::default(),
            over_per_s: AtomicU64::default(),
        }
    }

    /// Admits a request; `None` if there are no limits and nothing is counted.
    fn admit(self: &Arc<Self>, key: K, now: Duration) -> Result<Option<InFlight<K>>, Over> {
        let CallerLimits { in_flight, per_s } = self.limits;
        if in_flight == 0 && per_s == 0 {
            return Ok(None);
        }
        let mut known = self.known.lock();
        let caller = known.caller(&key, now);
        if in_flight > 0 && caller.in_flight >= in_flight {
            self.over_in_flight.fetch_add(1, Ordering::Relaxed);
            return Err(Over::InFlight);
        }
        if let Some(nanos) = (SECOND.as_nanos() as u64).checked_div(per_s) {
            let until = caller.until.max(now) + Duration::from_nanos(nanos);
            if until > now + SECOND {
                self.over_per_s.fetch_add(1, Ordering::Relaxed);
                return Err(Over::PerSecond);
            }
            caller.until = until;
        }
        caller.in_flight += 1;
        drop(known);
        let limited = Arc::clone(self);
        Ok(Some(InFlight { limited, key }))
    }
}

impl<K: Hash + Eq> Drop for InFlight<K> {
    fn drop(&mut self) {
        let mut known = self.limited.known.lock();
        if let Some(caller) = known.callers.get_mut(&self.key) {
            caller.in_flight -= 1;
        }
    }
}

/// The state of one caller.
#[derive(Debug, Default)]
struct Caller {
    /// Number of requests in flight.
    in_flight: usize,
    /// The theoretical arrival time of GCRA: the next request is free of history from then on.
    until: Duration,
}

/// Callers, roughly in the order of their arrival.
struct Known<K> {
    callers: IndexMap<K, Caller>,
    /// Index of the next caller to examine.
    hand: usize,
}

impl<K: Hash + Eq + Clone> Known<K> {
    fn caller(&mut self, key: &K, now: Duration) -> &mut Caller {
        let index = match self.callers.get_index_of(key) {
            Some(index) => index,
            None => {
                self.make_room(now);
                self.callers.insert_full(key.clone(), Caller::default()).0
            }
        };
        &mut self.callers[index]
    }

    /// Drops some idle callers. If there are too many others, drops one without requests in flight.
    fn make_room(&mut self, now: Duration) {
        let mut idlest: Option<(Duration, usize)> = None;
        for _ in 0..LOOKED_AT.min(self.callers.len()) {
            self.hand %= self.callers.len();
            let caller = &self.callers[self.hand];
            if caller.in_flight == 0 && caller.until <= now {
                // `swap_remove_index` puts the last caller in its place, which is examined next.
                self.callers.swap_remove_index(self.hand);
                idlest = None;
                if self.callers.is_empty() {
                    break;
                }
                continue;
            }
            if caller.in_flight == 0 {
                let this = (caller.until, self.hand);
                idlest = Some(idlest.map_or(this, |known| known.min(this)));
            }
            self.hand += 1;
        }
        if self.callers.len() >= KNOWN_MAX
            && let Some((_, index)) = idlest
        {
            self.callers.swap_remove_index(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn limits(in_flight: usize, per_s: u64) -> CallerLimits {
        CallerLimits { in_flight, per_s }
    }

    fn limited<K: Hash + Eq + Clone>(in_flight: usize, per_s: u64) -> Arc<Limited<K>> {
        Arc::new(Limited::new(limits(in_flight, per_s)))
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn requests_in_flight_are_limited() {
        let users = limited(2, 0);
        let one = users.admit("u", SECOND).ok().unwrap();
        let _two = users.admit("u", SECOND).ok().unwrap();
        assert!(matches!(users.admit("u", SECOND), Err(Over::InFlight)));
        let _other = users.admit("v", SECOND).ok().unwrap();
        drop(one);
        assert!(users.admit("u", SECOND).is_ok());
        assert_eq!(users.over_in_flight.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn burst_of_one_second_is_allowed_and_later_requests_are_spaced() {
        let users = limited(0, 10);
        for _ in 0..10 {
            assert!(users.admit("u", SECOND).is_ok());
        }
        let refused = users.admit("u", SECOND);
        assert!(matches!(refused, Err(Over::PerSecond)));
        assert!(users.admit("v", SECOND).is_ok());
        assert!(users.admit("u", SECOND + 99 * MS).is_err());
        assert!(users.admit("u", SECOND + 100 * MS).is_ok());
        assert!(users.admit("u", SECOND + 100 * MS).is_err());
        // Refused requests are not counted: ten more are allowed after a second.
        for _ in 0..10 {
            assert!(users.admit("u", 3 * SECOND).is_ok());
        }
        assert_eq!(users.over_per_s.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn without_limits_nothing_is_counted() {
        let users = limited(0, 0);
        for _ in 0..10_000 {
            assert!(matches!(users.admit("u", SECOND), Ok(None)));
        }
        assert_eq!(users.known.lock().callers.len(), 0);
    }

    #[test]
    fn many_addresses_fill_no_memory_and_evict_no_caller_in_flight() {
        let addresses = limited(1, 5);
        let _answered = addresses.admit(u64::MAX, SECOND).ok().unwrap();
        for address in 0..3 * KNOWN_MAX as u64 {
            assert!(addresses.admit(address, SECOND).is_ok());
        }
        assert!(addresses.known.lock().callers.len() <= KNOWN_MAX);
        assert!(addresses.admit(u64::MAX, SECOND).is_err());
        // Idle entries are dropped as other callers arrive.
        for other in 0..20_000 {
            assert!(addresses.admit(1 << 40 | other, 900 * SECOND).is_ok());
        }
        assert!(addresses.known.lock().callers.len() <= 20_002);
        assert!(addresses.admit(u64::MAX, 900 * SECOND).is_err());
    }

    #[test]
    fn an_address_is_found_in_what_proxies_say() {
        for text in ["10.0.0.9", "10.0.0.9:4711"] {
            assert_eq!(address_in(text), "10.0.0.9".parse().ok());
        }
        for text in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:4711"] {
            assert_eq!(address_in(text), "2001:db8::1".parse().ok());
        }
        for text in [
            "",
            "unknown",
            "_hidden",
            "_hidden:1",
            "[",
            "[]",
            ":",
            "10.0.0:1",
        ] {
            assert_eq!(address_in(text), None, "{text}");
        }
        let one = |text: &str| network(text.parse().unwrap());
        assert_eq!(one("2001:db8::1"), one("2001:db8::f:0:0:2"));
        assert_ne!(one("2001:db8::1"), one("2001:db8:0:1::1"));
        assert_ne!(one("10.0.0.1"), one("10.0.0.2"));
    }
}
