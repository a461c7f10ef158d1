//! A caller.

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) user_id: String,
    /// The project the caller acts in.
    pub(crate) project_id: Option<String>,
    /// The domain the caller acts in.
    pub(crate) domain_id: Option<String>,
    /// `all` if the caller acts on the whole system.
    pub(crate) system_scope: Option<String>,
    /// The user's domain.
    pub(crate) user_domain_id: Option<String>,
    /// The project's domain.
    pub(crate) project_domain_id: Option<String>,
    /// Roles as they were given.
    pub(crate) roles: Vec<String>,
    /// The service that came with the caller's token. No rule asks for it.
    pub(crate) service_user_id: Option<String>,
}

/// The names in `X-Roles`.
pub(super) fn roles(given: &str) -> Vec<String> {
    let names = given.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
