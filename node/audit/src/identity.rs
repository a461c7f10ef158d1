//! Callers, as policy rules see them.

use crate::access::ID_MAX_BYTES;

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Id of the user.
    pub user_id: String,
    /// Keystone's name of the user, for people: names are unique only within a domain, and change.
    pub user_name: Option<String>,
    /// Id of the project that the token is scoped to.
    pub project_id: Option<String>,
    /// Keystone's name of the project.
    pub project_name: Option<String>,
    /// Id of the domain that the token is scoped to.
    pub domain_id: Option<String>,
    /// `all` if the token is scoped to the system.
    pub system_scope: Option<String>,
    /// Id of the user's domain.
    pub user_domain_id: Option<String>,
    /// Id of the project's domain.
    pub project_domain_id: Option<String>,
    /// Role names as sent by Keystone.
    pub roles: Vec<String>,
    /// Whether the project is the admin project. In a cloud without an admin project, every project
    /// counts as the admin project.
    pub is_admin_project: bool,
    /// The service that sent the caller's token (`X-Service-Token`); empty without one.
    pub service: CallingService,
}

impl Identity {
    /// An operator, with the name from the certificate or from another node; without a name, an
    /// operator on this machine.
    ///
    /// Access to the operators' listener implies authorization; no request to the API can obtain
    /// this identity.
    pub fn operator(name: Option<&str>) -> Self {
        let mut user_id = "operator".to_owned();
        if let Some(name) = name {
            user_id = format!("{user_id}:{name}");
        }
        // A longer id would be omitted from the access line and the audit record.
        user_id.truncate(user_id.floor_char_boundary(ID_MAX_BYTES));
        Self {
            user_id,
            roles: ["admin", "service", "placement_reader"]
                .map(str::to_owned)
                .into(),
            is_admin_project: true,
            ..Self::default()
        }
    }
}

/// A service that acts for a caller, as policy rules see it. All fields are empty without one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallingService {
    /// Id of the service user.
    pub user_id: Option<String>,
    /// Id of the user's domain.
    pub user_domain_id: Option<String>,
    /// Id of the project that the service token is scoped to.
    pub project_id: Option<String>,
    /// Id of the project's domain.
    pub project_domain_id: Option<String>,
    /// Role names as sent by Keystone.
    pub roles: Vec<String>,
}

impl From<&Identity> for CallingService {
    fn from(service: &Identity) -> Self {
        Self {
            user_id: Some(service.user_id.clone()),
            user_domain_id: service.user_domain_id.clone(),
            project_id: service.project_id.clone(),
            project_domain_id: service.project_domain_id.clone(),
            roles: service.roles.clone(),
        }
    }
}
