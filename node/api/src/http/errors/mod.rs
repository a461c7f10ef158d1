//! The errors of the API. `error` has the type, `not_found` every 404, `refusals` maps the model's
//! refusals to errors, `frame` has the text around a message, and `render` writes JSON, HTML and
//! text.

mod claims;
pub(crate) mod code;
mod error;
mod frame;
mod misdirected;
pub(super) mod not_found;
mod refusals;
mod render;
mod write_kind;

pub(super) use claims::no_candidates;
pub(super) use error::{ApiError, Varies, joined};
pub(super) use frame::RequestParts;
pub use misdirected::Misdirected;
pub(super) use refusals::{provider_without_name, refused};
pub(super) use render::{Format, to_json};
pub(super) use write_kind::WriteKind;
