//! Parsers of query strings. They do not check whether names exist.

mod candidates;
mod member_of;
mod resources;
mod spell;
mod string;
mod traits;

pub(crate) use candidates::parse_candidates;
pub(crate) use member_of::parse_member_of;
pub(crate) use resources::parse_resources;
pub(crate) use spell::spell_candidates;
pub(crate) use string::Query;
pub(crate) use traits::{parse_required, parse_root_required};
