//! What rules are asked about.

/// What an operation is done to, as far as rules speak of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Target<'a> {
    /// The project it concerns.
    pub(crate) project_id: Option<&'a str>,
    /// The user it concerns, if the operation names one.
    pub(crate) user_id: Option<&'a str>,
}
