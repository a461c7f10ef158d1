//! How much one caller may ask: requests that are being answered at once, until their answers are
//! taken, and requests in a second, of each user and of each address (`[callers]`).
//!
//! Requests in a second are counted as GCRA does (ITU-T I.371): each moves the moment ahead at
//! which its caller counts as not having asked anything, and who would move it beyond a second from
//! now is refused. So a caller is a number and a moment, and is forgotten once the moment has
//! passed and nothing is being answered.

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

/// Callers of a kind that are known at once. The one of some that has asked least is forgotten for
/// a new one, which costs nothing but that it may ask for a second's requests again. Those whose
/// requests are being answered are kept, and are no more than there are connections.
const KNOWN_MAX: usize = 65_536;
/// So many are looked at when one comes that is not known, so that those who are not needed are
/// forgotten.
const LOOKED_AT: usize = 16;
/// What of a user's id tells users apart. Keystone's are shorter.
const ID_MAX_BYTES: usize = 64;
/// The time in which requests are counted.
const SECOND: Duration = Duration::from_secs(1);

/// A request that counts to its partition, its address and its user, until it is dropped.
#[derive(Default)]
pub(crate) struct Counted {
    _partition: Option<InFlight<()>>,
    _address: Option<InFlight<IpAddr>>,
    _user: Option<InFlight<Box<str>>>,
}

/// How much each caller may ask.
pub struct Callers {
    clock: Arc<dyn Clock>,
    users: Arc<Limited<Box<str>>>,
    addresses: Arc<Limited<IpAddr>>,
    /// All of a partition together.
    whole: Arc<Limited<()>>,
    /// Knows the proxies whose clients are behind one address, if they do not say from where they
    /// come.
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

    /// Lets a request in whose partition may have so many at once.
    ///
    /// # Errors
    /// 429.
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

    /// The address that a request counts to which came over a connection from `peer`, and from
    /// `client` in the words of a trusted proxy. `None`: it is the address of a proxy that does not
    /// say whose request it is.
    pub(crate) fn address(&self, peer: Option<Peer>, client: Option<&str>) -> Option<IpAddr> {
        let named = client.and_then(address_in);
        let address = named.or(peer.map(|Peer(address)| address.ip()))?;
        let address = address.to_canonical();
        let is_all = named.is_none() && self.auth.is_proxy(&address);
        (!is_all).then(|| network(address))
    }

    /// Lets a request in from this address.
    ///
    /// # Errors
    /// 429.
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

    /// The same by the user who asks.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn admit_user(&self, id: &str, counted: &mut Counted) -> Result<(), ApiError> {
        let id = &id[..id.floor_char_boundary(ID_MAX_BYTES)];
        let admitted = self.users.admit(id.into(), self.clock.monotonic());
        counted._user = admitted.map_err(|over| over.error("user", &self.users.limits))?;
        Ok(())
    }

    /// How many requests were refused, by the limit that they would have exceeded.
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

/// Which limit was met.
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
                 ({kind}_in_flight; [callers] {kind}_per_s = 0 lifts it)"
            ),
            Self::PerSecond => format!(
                "More than {per_s} requests a second come from this {kind} to this node \
                 ([callers] {kind}_per_s)"
            ),
        };
        ApiError::too_many_requests(&message)
    }
}

/// The callers of one kind.
struct Limited<K> {
    limits: CallerLimits,
    known: Mutex<Known<K>>,
    over_in_flight: AtomicU64,
    over_per_s: AtomicU64,
}

/// A request that counts to one of them, until it is dropped.
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

    /// `None`: nothing is counted.
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

/// One caller.
#[derive(Debug, Default)]
struct Caller {
    /// Requests that are being answered.
    in_flight: usize,
    /// When it counts as not having asked anything.
    until: Duration,
}

/// Callers in the order in which they came, more or less.
struct Known<K> {
    callers: IndexMap<K, Caller>,
    /// The next to be looked at.
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

    /// Forgets some of those who have asked nothing for a while; if there are too many others, one
    /// of them.
    fn make_room(&mut self, now: Duration) {
        let mut idlest: Option<(Duration, usize)> = None;
        for _ in 0..LOOKED_AT.min(self.callers.len()) {
            self.hand %= self.callers.len();
            let caller = &self.callers[self.hand];
            if caller.in_flight == 0 && caller.until <= now {
                // The last one takes its place, and is looked at next.
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
        // Who was refused has not asked: ten more after a second, whatever was tried in the
        // meantime.
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
        // Later they are forgotten, as others come.
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
