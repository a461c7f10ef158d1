//! A caller.

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::http) struct Identity {
    pub(in crate::http) user_id: String,
    /// The project the caller acts in.
    pub(in crate::http) project_id: Option<String>,
    /// The domain the caller acts in.
    pub(in crate::http) domain_id: Option<String>,
    /// `all` if the caller acts on the whole system.
    pub(in crate::http) system_scope: Option<String>,
    /// The user's domain.
    pub(in crate::http) user_domain_id: Option<String>,
    /// The project's domain.
    pub(in crate::http) project_domain_id: Option<String>,
    /// Roles as they were given.
    pub(in crate::http) roles: Vec<String>,
    /// The service that came with the caller's token. No rule asks for it.
    pub(in crate::http) service_user_id: Option<String>,
}

/// The names in `X-Roles`.
pub(super) fn roles(given: &str) -> Vec<String> {
    let names = given.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
