//! What rules are asked about.

/// What an operation is done to, as far as rules speak of it.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Target {
    /// The project it concerns.
    pub(in crate::http) project_id: Option<String>,
    /// The user it concerns, if the operation names one.
    pub(in crate::http) user_id: Option<String>,
}
