//! A caller, as policy rules see it.

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user_id: String,
    /// The project the caller acts in.
    pub project_id: Option<String>,
    /// The domain the caller acts in.
    pub domain_id: Option<String>,
    /// `all` if the caller acts on the whole system.
    pub system_scope: Option<String>,
    /// The user's domain.
    pub user_domain_id: Option<String>,
    /// The project's domain.
    pub project_domain_id: Option<String>,
    /// Roles as they were given.
    pub roles: Vec<String>,
    /// Whether the project is the admin project. In a cloud that names none, every project counts as it.
    pub is_admin_project: bool,
    /// The service that came with the caller's token (`X-Service-Token`), if one did.
    pub service: CallingService,
}

/// A service that acts for a caller, as policy rules see it; without one, all of it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallingService {
    /// The user.
    pub user_id: Option<String>,
    /// The user's domain.
    pub user_domain_id: Option<String>,
    /// The project the service acts in.
    pub project_id: Option<String>,
    /// The project's domain.
    pub project_domain_id: Option<String>,
    /// Roles as they were given.
    pub roles: Vec<String>,
}
