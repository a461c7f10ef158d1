//! Deterministic simulation of the product: the same [`placement_node::Node::start`], REST handlers
//! and RocksDB code, on turmoil's network and clock and on disks whose power can be cut. One seed
//! gives one history.
//!
//! * [`parameters`]: the parameters of a run, derived from its [`seed`]. [`regions`] and
//!   [`places`]: the sites of its machines.
//! * [`run`]: one run: cluster, clients, fault phase, recovery phase (`world`) and checks.
//!   [`campaign`] and [`swarm`]: many runs. [`fault_subset`]: the faults that a failure needs.
//! * [`report`] with [`timeline`]: results of a run; [`explain`] prints them.
//! * [`host`], [`net`], [`outside`]: the environment of a simulated node.
//! * [`faults`]: which faults happen, and when. [`mutant`]: injected bugs.
//! * [`client`], [`scan`], [`shared`] with [`http`]: clients on the simulated network. Their
//!   choices ([`workload`]), their HTTP requests and the recorded [`history`] come from
//!   [`placement_witness`]. [`library`]: our own client library as one of them. [`operator`]:
//!   membership changes during the run. [`watcher`]: followers of the change stream.
//! * [`witness`] with [`oracle`], [`wgl`], [`ledger`] and [`logs`] with [`invariants`]: the checks.

// Not for rustdoc, which does not get the compiler flags.
#[cfg(not(any(tokio_unstable, doc)))]
compile_error!(
    "simulations need `--cfg tokio_unstable` (set in .cargo/config.toml), as tokio's \
     random choices differ from run to run without it. A RUSTFLAGS environment variable overrides \
     that file; unset it."
);

pub mod campaign;
mod choice;
pub mod client;
pub mod explain;
pub mod fault_subset;
pub mod faults;
pub mod host;
pub mod http;
pub mod invariants;
pub mod ledger;
pub mod library;
pub mod logs;
mod mirror;
pub mod mutant;
mod neighbour;
pub mod net;
pub mod nodes;
pub mod operator;
pub mod outside;
pub mod parameters;
pub mod places;
pub mod regions;
pub mod replay;
pub mod report;
mod rot;
pub mod run;
pub mod scan;
pub mod shared;
pub mod swarm;
pub mod timeline;
pub mod trace;
pub mod watcher;
mod world;

pub use placement_witness::{
    beliefs, history, inquiry, operation, oracle, seed, wgl, witness, workload,
};
