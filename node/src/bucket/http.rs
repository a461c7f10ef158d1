//! The store's HTTP, by this node's own.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};

use super::error::Refused;
use placement_api::outgoing::Outgoing;

/// What goes over at once. S3 takes no fewer than 5 MiB for a piece, and no more than 10,000 pieces.
pub(super) const PIECE_BYTES: usize = 8 << 20;
/// The longest answer that is read: a piece, or a page of a list.
pub(super) const ANSWER_BYTES_MAX: usize = 2 * PIECE_BYTES;

/// Makes requests.
#[derive(Debug, Clone)]
pub(super) struct Http(pub(super) Outgoing);

#[async_trait]
impl HttpService for Http {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |error| HttpError::new(HttpErrorKind::Unknown, error);
        let answer = self.0.request(request).await.map_err(failed)?;
        let (head, body) = answer.into_parts();
        match Refused::of(head.status, &body) {
            Some(refused) => Err(HttpError::new(HttpErrorKind::Unknown, refused)),
            None => Ok(HttpResponse::from_parts(head, body.into())),
        }
    }
}

impl HttpConnector for Http {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
