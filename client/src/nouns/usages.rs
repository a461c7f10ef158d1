//! `/usages`: usage of a project.

use std::collections::BTreeMap;

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

/// Amounts by resource class.
pub type Resources = BTreeMap<String, u64>;

impl Client {
    /// `GET /usages`: amounts and `consumer_count` by consumer type.
    pub async fn project_usages(
        &self,
        project_id: &str,
        user_id: Option<&str>,
    ) -> Result<BTreeMap<String, Resources>, Error> {
        let mut request = ApiRequest::get("/usages").query("project_id", project_id);
        if let Some(user_id) = user_id {
            request = request.query("user_id", user_id);
        }
        self.fetch_member(request, "usages").await
    }
}
