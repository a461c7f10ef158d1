//! Typed methods of `/resource_classes`.

use serde::Deserialize;

use crate::client::Client;
use crate::error::Error;
use crate::request::{ApiRequest, encode};

/// A standard or custom resource class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResourceClass {
    /// Name, unique in the partition.
    pub name: String,
}

impl Client {
    /// `GET /resource_classes`: all standard and custom classes.
    pub async fn resource_classes(&self) -> Result<Vec<ResourceClass>, Error> {
        let request = ApiRequest::get("/resource_classes");
        self.fetch_member(request, "resource_classes").await
    }

    /// `PUT /resource_classes/{name}`: creates a custom class unless it exists.
    pub async fn ensure_resource_class(&self, name: &str) -> Result<(), Error> {
        let request = ApiRequest::put(&format!("/resource_classes/{}", encode(name)));
        self.execute(request).await
    }
}
