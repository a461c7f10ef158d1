//! Deterministic simulation of the product: the same [`placement_node::Node::start`], REST handlers
//! and RocksDB code, over turmoil's network and clock, with disks whose power can be cut. One seed
//! is one history.
//!
//! * [`parameters`]: what one run is made of, derived from its [`seed`]. [`regions`] and
//!   [`places`]: where it stands.
//! * [`run`]: one run: cluster, clients, fault phase, recovery phase (`world`), and the judgement.
//!   [`campaign`] and [`swarm`]: many. [`less`]: what of one is needed to fail.
//! * [`report`] with [`story`]: what came of a run; [`explain`] prints it.
//! * [`host`], [`net`], [`outside`]: what a simulated node is given in place of the real world.
//! * [`faults`]: what goes wrong, and when. [`mutant`]: bugs put in on purpose.
//! * [`client`], [`scan`], [`shared`] with [`http`]: who asks, over the simulated network. What
//!   they ask next ([`workload`]), how it is asked in HTTP, and what came of it ([`history`]) is in
//!   [`placement_witness`].
//!   [`library`]: our own client among them. [`operator`]: who changes the cluster during the run.
//!   [`watcher`]: who follows what is changed.
//! * [`witness`] with [`oracle`], [`wgl`], [`ledger`] and [`logs`] with [`invariants`]: what must
//!   hold.

// rustdoc is not given the flags that compilers are given.
#[cfg(not(any(tokio_unstable, doc)))]
compile_error!(
    "simulations need `--cfg tokio_unstable`, which .cargo/config.toml sets: without it tokio's \
     own random choices differ from run to run. A RUSTFLAGS variable in the environment hides \
     that file: unset it."
);

pub mod campaign;
mod choice;
pub mod client;
pub mod explain;
pub mod faults;
pub mod host;
pub mod http;
pub mod invariants;
pub mod ledger;
pub mod less;
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
pub mod story;
pub mod swarm;
pub mod trace;
pub mod watcher;
mod world;

pub use placement_witness::{
    beliefs, history, inquiry, operation, oracle, seed, wgl, witness, workload,
};
