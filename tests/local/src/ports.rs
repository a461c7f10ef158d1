//! Free ports of loopback.

use std::net::TcpListener;

use rand::Rng;

/// Range of claimed ports, below the range of outgoing connections (from 32768).
const RANGE: std::ops::Range<u16> = 10_000..32_000;
/// Ports are claimed in blocks that begin at multiples of this.
pub const BLOCK: u16 = 10;

/// Consecutive ports that belong to this process until dropped, whether it listens on them or not.
/// Other claims of this kind, in whatever process, get other ports.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    /// Listeners on the last port of each block. The kernel lets no other process listen there, and
    /// releases the port if this process dies.
    _claims: Vec<TcpListener>,
}

impl Ports {
    /// Claims consecutive blocks. All ports of a block but its last are free to use.
    ///
    /// # Panics
    /// If no free blocks are found.
    pub fn claim(blocks: u16) -> Self {
        let places = (RANGE.end - RANGE.start) / BLOCK - blocks;
        (0..1000)
            .find_map(|_| Self::try_at(rand::rng().random_range(0..places), blocks))
            .unwrap_or_else(|| panic!("no {blocks} free blocks of ports in {RANGE:?}"))
    }

    fn try_at(place: u16, blocks: u16) -> Option<Self> {
        let first = RANGE.start + place * BLOCK;
        let lasts = (0..blocks).map(|block| first + (block + 1) * BLOCK - 1);
        let claims = lasts.map(listen).collect::<Option<_>>()?;
        (first..first + blocks * BLOCK)
            .filter(|port| port % BLOCK != BLOCK - 1)
            .all(is_free)
            .then_some(Self {
                first,
                _claims: claims,
            })
    }

    /// The first claimed port.
    pub fn first(&self) -> u16 {
        self.first
    }
}

/// Whether this port of loopback is free right now.
pub fn is_free(port: u16) -> bool {
    listen(port).is_some()
}

fn listen(port: u16) -> Option<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_ports_are_not_claimed_again() {
        let mine = Ports::claim(2);
        let place = (mine.first() - RANGE.start) / BLOCK;
        for overlap in [place, place + 1] {
            assert!(Ports::try_at(overlap, 2).is_none(), "no one listens yet");
        }
        let listener = listen(mine.first()).expect("mine to use");
        drop(mine);
        assert!(Ports::try_at(place, 2).is_none(), "a listener is there");
        drop(listener);
    }
}
