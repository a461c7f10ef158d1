//! Deterministic simulation of the product: the same `Node::start`, REST
//! handlers and RocksDB code, over turmoil's network and clock, with disks whose power can be cut.
//! One seed is one history.

#[cfg(not(tokio_unstable))]
compile_error!(
    "simulations need `--cfg tokio_unstable`, which .cargo/config.toml sets: without it tokio's \
     own random choices differ from run to run. A RUSTFLAGS variable in the environment hides \
     that file: unset it."
);

pub mod faults;
pub mod history;
pub mod invariants;
pub mod ledger;
pub mod mutant;
pub mod operation;
pub mod oracle;
pub mod parameters;
pub mod seed;
pub mod trace;
pub mod wgl;
pub mod witness;
