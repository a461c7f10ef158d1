//! Limits of connections, in total and per address.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use placement_audit::access;

/// The connections of one listener.
#[derive(Clone)]
pub(crate) struct Connections {
    max: usize,
    /// Remaining connections of all listeners together.
    shared: Arc<Semaphore>,
    per_address_max: usize,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The permit of a served connection, until it is dropped.
pub(crate) struct Permit {
    connections: Connections,
    address: IpAddr,
    _shared: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(max: usize, per_address_max: usize, shared: Arc<Semaphore>) -> Self {
        Self {
            max,
            shared,
            per_address_max,
            open: Arc::default(),
        }
    }

    /// A permit for a connection from `peer`, unless there are too many.
    pub(crate) fn permit(&self, peer: SocketAddr) -> Option<Permit> {
        self.permit_for(peer.ip())
    }

    /// A permit for a client at this address, which may be behind a proxy.
    pub(crate) fn permit_for(&self, address: IpAddr) -> Option<Permit> {
        let address = access::network(address);
        let mut open = self.open.lock();
        let here = open.by_address.get(&address).copied().unwrap_or(0);
        if open.all >= self.max || here >= self.per_address_max {
            return None;
        }
        let shared = self.shared.clone().try_acquire_owned().ok()?;
        open.all += 1;
        open.by_address.insert(address, here + 1);
        Some(Permit {
            connections: self.clone(),
            address,
            _shared: shared,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.all -= 1;
        if let Some(here) = open.by_address.get_mut(&self.address) {
            *here -= 1;
            if *here == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 4711)
    }

    #[test]
    fn permits_are_counted_in_all_and_by_address() {
        let connections = Connections::new(3, 2, Arc::new(Semaphore::new(9)));
        let one = connections.permit(peer("10.0.0.1"));
        let _two = connections.permit(peer("::ffff:10.0.0.1"));
        assert!(connections.permit(peer("10.0.0.1")).is_none());
        let _three = connections.permit(peer("10.0.0.2"));
        assert!(connections.permit(peer("10.0.0.3")).is_none());
        drop(one);
        assert!(connections.permit(peer("10.0.0.1")).is_some());
        assert!(connections.permit(peer("10.0.0.3")).is_some());
    }

    #[test]
    fn listeners_share_the_limit_of_the_process() {
        let shared = Arc::new(Semaphore::new(2));
        let [one, other] = [(); 2].map(|()| Connections::new(2, 2, shared.clone()));
        let _first = one.permit(peer("10.0.0.1"));
        let second = other.permit(peer("10.0.0.1"));
        assert!(one.permit(peer("10.0.0.2")).is_none());
        assert!(other.permit(peer("10.0.0.2")).is_none());
        drop(second);
        assert!(one.permit(peer("10.0.0.2")).is_some());
    }

    #[test]
    fn ipv6_network_counts_as_one_address() {
        let connections = Connections::new(9, 1, Arc::new(Semaphore::new(9)));
        let _one = connections.permit(peer("fd00::1"));
        assert!(connections.permit(peer("fd00::2:0:0:1")).is_none());
        assert!(connections.permit(peer("fd00:0:0:1::1")).is_some());
    }
}
