//! The machine below a simulated node: its disk, its power, its threads and its randomness.
//!
//! * [`simulate`] turns the calling thread into such a machine: one seed gives one history.
//! * [`SimulatedDisk`] is the disk of one node. It outlives the node.
//! * [`Gate`] stops all tasks of a process, as SIGSTOP does.
//! * [`coverage`] counts executions of rare paths.
//! * [`new_store`] is a store for unit tests.

pub mod coverage;
mod disk;
mod files;
mod gate;
mod simulation;
mod store;

pub use disk::SimulatedDisk;
pub use files::{POINTS, START_POINTS};
pub use gate::Gate;
pub use simulation::{SchedulingDelay, simulate, simulate_within};
pub use store::new_store;
