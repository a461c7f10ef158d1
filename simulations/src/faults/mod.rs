//! What goes wrong, and when: a plan made from the seed before the run begins.
//!
//! * [`fault`]: the kinds, and whom they meet. [`plan()`]: which, when, for how long.
//! * [`links`]: what several faults together do to the ways between two machines.

pub mod fault;
pub mod links;
pub mod nodes;
pub mod plan;

pub use fault::Fault;
pub use links::Links;
pub use nodes::Nodes;
pub use plan::{Happened, Kinds, Planned, drawn, plan};
