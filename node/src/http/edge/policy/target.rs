//! What rules are asked about.

/// What an operation is done to, as far as rules speak of it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct Target<'a> {
    /// The project it concerns.
    pub(in crate::http) project_id: Option<&'a str>,
    /// The user it concerns, if the operation names one.
    pub(in crate::http) user_id: Option<&'a str>,
}
