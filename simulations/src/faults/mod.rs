//! The faults of a run: a plan drawn from the seed before the run begins.
//!
//! * [`fault`]: the kinds, and the nodes that they hit. [`plan()`]: which faults, when, for how
//!   long.
//! * [`links`]: the combined effect of faults on the links between two machines.
//! * [`sites`]: faults of whole sites.

pub mod fault;
pub mod links;
pub mod plan;
pub mod planned;
pub mod sites;

pub use crate::nodes::Nodes;
pub use fault::Fault;
pub use links::Links;
pub use plan::{FaultRecord, Kinds, drawn, plan};
pub use planned::Planned;
