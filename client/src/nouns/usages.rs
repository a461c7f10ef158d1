//! Usages of a provider and of a project.

use std::collections::BTreeMap;

use serde::Deserialize;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

/// Amounts by resource class.
pub type Resources = BTreeMap<String, u64>;

/// What is used of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderUsages {
    /// The provider's generation that they belong to.
    pub resource_provider_generation: u64,
    /// By resource class; every class with inventory is named, also with 0.
    pub usages: Resources,
}

#[derive(Deserialize)]
struct ProjectUsages {
    usages: BTreeMap<String, Resources>,
}

impl Client {
    /// `GET /resource_providers/{uuid}/usages`.
    pub async fn provider_usages(&self, provider: Uuid) -> Result<ProviderUsages, Error> {
        self.read(&format!("/resource_providers/{provider}/usages"))
            .await
    }

    /// `GET /usages`: by consumer type, each with amounts and `consumer_count`.
    pub async fn project_usages(
        &self,
        project_id: &str,
        user_id: Option<&str>,
    ) -> Result<BTreeMap<String, Resources>, Error> {
        let mut request = ApiRequest::get("/usages").query("project_id", project_id);
        if let Some(user_id) = user_id {
            request = request.query("user_id", user_id);
        }
        let usages: ProjectUsages = self.fetch(request).await?;
        Ok(usages.usages)
    }
}
