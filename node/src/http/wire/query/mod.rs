//! Query strings: what each parameter's text means. Facts (does the trait exist?) are not checked.

mod candidates;
mod member_of;
mod resources;
mod string;
mod traits;

pub(in crate::http) use candidates::parse_candidates;
pub(in crate::http) use member_of::parse_member_of;
pub(in crate::http) use resources::parse_resources;
pub(in crate::http) use string::{BadQuery, Query};
pub(in crate::http) use traits::parse_required;
