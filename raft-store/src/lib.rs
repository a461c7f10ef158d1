//! raft-store

mod applier;

pub use applier::{Applier, Rules};
