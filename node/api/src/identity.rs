//! A caller, as policy rules see it.

use crate::access::ID_MAX_BYTES;

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user_id: String,
    /// What Keystone calls the user, for people: names are unique in a domain only, and change.
    pub user_name: Option<String>,
    /// The project the caller acts in.
    pub project_id: Option<String>,
    /// What Keystone calls the project.
    pub project_name: Option<String>,
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
    /// Whether the project is the admin project. In a cloud that names none, every project counts
    /// as it.
    pub is_admin_project: bool,
    /// The service that came with the caller's token (`X-Service-Token`), if one did.
    pub service: CallingService,
}

impl Identity {
    /// An operator, by the name in the certificate or in the words of another node; without one, of
    /// this machine.
    ///
    /// Who reaches the operators' listener is authorized: nothing that a client of the API sends
    /// leads to this.
    pub fn operator(name: Option<&str>) -> Self {
        let mut user_id = "operator".to_owned();
        if let Some(name) = name {
            user_id = format!("{user_id}:{name}");
        }
        // A longer one is left out of the access line and the audit record.
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
