//! Ports of loopback that nobody uses.

use std::net::TcpListener;

use rand::Rng;

/// Below the ports that the system gives to outgoing connections (from 32768).
const RANGE: std::ops::Range<u16> = 10_000..32_000;

/// Whether a listener could be bound to this port of loopback right now.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// The first of `count` consecutive free ports.
pub fn free_range(count: u16) -> u16 {
    for _ in 0..1000 {
        let base = rand::rng().random_range(RANGE.start..RANGE.end - count);
        if (base..base + count).all(is_free) {
            return base;
        }
    }
    panic!(
        "no {count} consecutive free ports between {} and {}",
        RANGE.start, RANGE.end
    );
}
