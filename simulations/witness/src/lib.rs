//! Clients that use the whole API, and the judge of their answers. It knows neither the simulated
//! world nor real processes: simulations and the tests of real processes bring their own network,
//! faults and log.
//!
//! * [`client`] with [`workload`], [`inquiry`] and [`beliefs`]: who asks what next, drawn from a
//!   [`seed`].
//! * [`operation`], [`http`], [`history`]: how it is asked in HTTP, and what came of it.
//! * [`witness`] with [`oracle`], [`staleness`] and [`wgl`]: what must hold. [`promise`]: its
//!   names.

pub mod beliefs;
pub mod client;
pub mod history;
pub mod http;
pub mod inquiry;
pub mod operation;
pub mod oracle;
pub mod promise;
pub mod seed;
pub mod staleness;
pub mod wgl;
pub mod witness;
pub mod workload;
