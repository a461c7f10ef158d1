//! Every error the API answers. `error` is what an error is, `not_found` says each 404, `refusals`
//! what the model's refusals become, `frame` what stands around a message, and `render` makes
//! JSON, HTML and text of it all.

pub(super) mod code;
mod error;
mod frame;
pub(super) mod not_found;
mod refusals;
mod render;
mod write_kind;

pub(super) use error::{ApiError, ErrorKind, Varies};
pub(super) use frame::Asked;
pub(super) use refusals::{provider_without_name, refused};
pub(super) use render::{Format, to_json};
pub(super) use write_kind::WriteKind;
