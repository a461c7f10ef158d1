//! Clients that use the whole API, and a checker of the answers. It is independent of the network:
//! simulations and tests of real processes provide network, faults and log.
//!
//! * [`client`] with [`workload`], [`inquiry`] and [`beliefs`]: the next request of each client,
//!   drawn from a [`seed`].
//! * [`operation`], [`http`], [`history`]: requests in HTTP, and their outcomes.
//! * [`witness`] with [`oracle`], `repeats`, [`staleness`] and [`wgl`]: the checks.
//!   [`promise`]: their names.

pub mod beliefs;
pub mod client;
pub mod history;
pub mod http;
pub mod inquiry;
pub mod operation;
pub mod oracle;
pub mod promise;
mod repeats;
pub mod seed;
pub mod staleness;
pub mod wgl;
pub mod witness;
pub mod workload;
