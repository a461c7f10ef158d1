//! What goes wrong, and when: a plan made from the seed before the run begins.
//!
//! * [`fault`]: the kinds, and whom they meet. [`plan()`]: which, when, for how long.
//! * [`links`]: what several faults together do to the ways between two machines.
//! * [`sites`]: what happens to all that stands at one place.

pub mod fault;
pub mod links;
pub mod plan;
pub mod planned;
pub mod sites;

pub use crate::nodes::Nodes;
pub use fault::Fault;
pub use links::Links;
pub use plan::{Happened, Kinds, drawn, plan};
pub use planned::Planned;
