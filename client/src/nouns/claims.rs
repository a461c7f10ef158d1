//! Typed method of `/placementd/v1/claims`.

use placement_wire::claims::{ClaimRequest, Claimed};

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

impl Client {
    /// `POST /placementd/v1/claims`: takes the first choice that fits and keeps all limits. A claim
    /// of new consumers can be sent again: it is carried out once. If it is refused,
    /// [`ApiError::claim`](crate::ApiError::claim) has the numbers.
    pub async fn claim(&self, claim: &ClaimRequest) -> Result<Claimed, Error> {
        let request = ApiRequest::post("/placementd/v1/claims").json(claim);
        self.fetch(request).await
    }
}
