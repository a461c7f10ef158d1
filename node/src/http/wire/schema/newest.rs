//! Which of several schemas a version has.

use super::types::Schema;
use crate::http::wire::microversion::Microversion;

/// The newest schema that is not newer than the version. Each schema stands beside the minor version
/// that brought it, the newest first.
pub(super) fn newest(schemas: &[(u8, Schema)], version: Microversion) -> &Schema {
    let fitting = schemas.iter().find(|(minor, _)| version.from(*minor));
    &fitting.or(schemas.last()).expect("there are schemas").1
}
