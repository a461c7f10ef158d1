//! Query strings: what each parameter's text means. Facts (does the trait exist?) are not checked.

mod candidates;
mod member_of;
mod resources;
mod string;
mod traits;

pub(super) use candidates::parse_candidates;
pub(super) use member_of::parse_member_of;
pub(super) use resources::parse_resources;
pub(super) use string::{BadQuery, Query};
pub(super) use traits::parse_required;
