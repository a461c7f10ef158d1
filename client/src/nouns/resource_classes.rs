//! `/resource_classes`.

use serde::Deserialize;

use crate::client::Client;
use crate::error::Error;
use crate::request::{ApiRequest, encode};

/// A resource class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResourceClass {
    /// Its name.
    pub name: String,
}

impl Client {
    /// `GET /resource_classes`: every class there is, standard and custom.
    pub async fn resource_classes(&self) -> Result<Vec<ResourceClass>, Error> {
        let request = ApiRequest::get("/resource_classes");
        self.fetch_member(request, "resource_classes").await
    }

    /// `PUT /resource_classes/{name}`: makes a custom class; one that exists is fine.
    pub async fn ensure_resource_class(&self, name: &str) -> Result<(), Error> {
        let request = ApiRequest::put(&format!("/resource_classes/{}", encode(name)));
        self.execute(request).await
    }
}
