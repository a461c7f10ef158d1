//! The schema of a version, among several.

use super::types::Schema;
use crate::http::wire::microversion::Microversion;

/// The newest schema that is not newer than the version. Each is given with the minor version that
/// brought it, the newest first.
pub(super) fn newest(schemas: &[(u8, Schema)], version: Microversion) -> &Schema {
    let fitting = schemas.iter().find(|(minor, _)| version.from(*minor));
    &fitting.or(schemas.last()).expect("there are schemas").1
}
