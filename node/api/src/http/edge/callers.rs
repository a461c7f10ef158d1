//! Limits per caller (`[callers]`): the number of requests in flight of each user and each address.
//! A request is in flight until the client has received its answer. A load balancer can limit the
//! rate of requests; this node does not.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::settings::{ApiSettings, AuthSection};
use crate::http::errors::ApiError;
use placement_audit::access::{Peer, address_in, network};

/// Number of leading bytes of a user's id that distinguish users. Keystone's ids are shorter.
const ID_MAX_BYTES: usize = 64;

/// Counts a request for its partition, its address and its user, until dropped.
#[derive(Default)]
pub(crate) struct Counted {
    _partition: Option<InFlight<()>>,
    _address: Option<InFlight<IpAddr>>,
    _user: Option<InFlight<Box<str>>>,
}

/// The limits of all callers of one partition, and their current use.
pub struct Callers {
    users: Arc<Limited<Box<str>>>,
    addresses: Arc<Limited<IpAddr>>,
    /// The limit of the partition as a whole.
    whole: Arc<Limited<()>>,
    /// Tells which addresses belong to authenticating proxies. Such an address has no limit, as
    /// many clients connect through it.
    auth: AuthSection,
}

impl Callers {
    pub(crate) fn new(settings: &ApiSettings) -> Self {
        Self {
            users: Arc::new(Limited::new(settings.callers.user_in_flight)),
            addresses: Arc::new(Limited::new(settings.callers.address_in_flight)),
            whole: Arc::new(Limited::new(settings.in_flight)),
            auth: settings.auth.clone(),
        }
    }

    /// Admits a request within the limit of the partition.
    ///
    /// # Errors
    /// 429 if too many requests are in flight.
    pub(crate) fn admit(&self, counted: &mut Counted) -> Result<(), ApiError> {
        let admitted = self.whole.admit(());
        counted._partition = admitted.map_err(|Exceeded(most)| {
            let message = format!(
                "More than {most} requests to this partition are being answered by this node \
                 ([[partitions]] in_flight)"
            );
            ApiError::too_many_requests(&message)
        })?;
        Ok(())
    }

    /// The address whose limit applies to a request: `client`, as a trusted proxy reports it, or
    /// else the address of `peer`. `None` if this is the address of an authenticating proxy,
    /// through which many clients connect.
    pub(crate) fn address(&self, peer: Option<Peer>, client: Option<&str>) -> Option<IpAddr> {
        let named = client.and_then(address_in);
        let address = named
            .or(peer.map(|Peer(address)| address.ip()))?
            .to_canonical();
        let is_all = named.is_none() && self.auth.is_proxy(&address);
        (!is_all).then(|| network(address))
    }

    /// Admits a request from this address.
    ///
    /// # Errors
    /// 429 if too many requests of the address are in flight.
    pub(crate) fn admit_address(
        &self,
        address: IpAddr,
        counted: &mut Counted,
    ) -> Result<(), ApiError> {
        let admitted = self.addresses.admit(address);
        counted._address = admitted.map_err(|exceeded| exceeded.error("address"))?;
        Ok(())
    }

    /// Admits a request of this user.
    ///
    /// # Errors
    /// 429 if too many requests of the user are in flight.
    pub(crate) fn admit_user(&self, id: &str, counted: &mut Counted) -> Result<(), ApiError> {
        let id = &id[..id.floor_char_boundary(ID_MAX_BYTES)];
        let admitted = self.users.admit(id.into());
        counted._user = admitted.map_err(|exceeded| exceeded.error("user"))?;
        Ok(())
    }

    /// Number of refused requests per limit.
    pub fn refused(&self) -> [(&'static str, u64); 3] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("address_in_flight", count(&self.addresses.refused)),
            ("in_flight", count(&self.whole.refused)),
            ("user_in_flight", count(&self.users.refused)),
        ]
    }
}

/// The exceeded limit, in requests in flight.
#[derive(Debug)]
struct Exceeded(usize);

impl Exceeded {
    fn error(self, kind: &str) -> ApiError {
        let Self(most) = self;
        let message = format!(
            "More than {most} requests of this {kind} are being answered by this node \
             ([callers] {kind}_in_flight)"
        );
        ApiError::too_many_requests(&message)
    }
}

/// The callers of one kind. A caller has an entry only while its requests are in flight, so the
/// limit on connections also bounds the number of entries.
struct Limited<K> {
    /// 0: no limit.
    in_flight_max: usize,
    in_flight: Mutex<HashMap<K, usize>>,
    refused: AtomicU64,
}

/// A request in flight, counted until dropped.
struct InFlight<K: Hash + Eq> {
    limited: Arc<Limited<K>>,
    key: K,
}

impl<K: Hash + Eq + Clone> Limited<K> {
    fn new(in_flight_max: usize) -> Self {
        Self {
            in_flight_max,
            in_flight: Mutex::default(),
            refused: AtomicU64::default(),
        }
    }

    /// Admits a request; `None` if there is no limit and nothing is counted.
    fn admit(self: &Arc<Self>, key: K) -> Result<Option<InFlight<K>>, Exceeded> {
        if self.in_flight_max == 0 {
            return Ok(None);
        }
        let mut in_flight = self.in_flight.lock();
        let count = in_flight.entry(key.clone()).or_default();
        if *count >= self.in_flight_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Exceeded(self.in_flight_max));
        }
        *count += 1;
        drop(in_flight);
        let limited = Arc::clone(self);
        Ok(Some(InFlight { limited, key }))
    }
}

impl<K: Hash + Eq> Drop for InFlight<K> {
    fn drop(&mut self) {
        let mut in_flight = self.limited.in_flight.lock();
        if let Some(count) = in_flight.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_are_limited() {
        let users = Arc::new(Limited::new(2));
        let one = users.admit("u").unwrap();
        let two = users.admit("u").unwrap();
        assert!(users.admit("u").is_err());
        let other = users.admit("v").unwrap();
        drop(one);
        let three = users.admit("u").unwrap();
        assert!(users.admit("u").is_err());
        assert_eq!(users.refused.load(Ordering::Relaxed), 2);
        drop((two, three, other));
        assert!(users.in_flight.lock().is_empty(), "idle callers are kept");
    }

    #[test]
    fn without_limit_nothing_is_counted() {
        let users = Arc::new(Limited::new(0));
        let admitted = (0..10_000).map(|_| users.admit("u").unwrap());
        assert!(admitted.collect::<Vec<_>>().iter().all(Option::is_none));
        assert!(users.in_flight.lock().is_empty());
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
