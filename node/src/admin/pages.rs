//! Pages for a browser, below `/web`: `placement-web` over the routes of this listener, which are asked in this process
//! for the operator, or the user, who asks for the page. Only by GET, so that no page changes anything.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use placement_web::{Answer, Ask, HEADERS, Page, respond};
use serde_json::json;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::tls::Shown;
use placement_api::access::Peer;
use placement_api::keystone::Token;

/// A question of a page may take so long: longer than a request waits for a leader by default.
const DEADLINE: Duration = Duration::from_secs(10);
/// A question that is passed on to another node: longer than a node takes to find out that it is not ready.
const RELAYED_DEADLINE: Duration = Duration::from_secs(3);
/// Longest answer of which a page is made: the list of some 100,000 providers.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The version of the REST API that pages know.
const MICROVERSION: &str = "placement 1.39";

/// Among the extensions of a request that pages make, and of the response to a login: the user who has logged in at
/// `[web] listen`.
#[derive(Clone)]
pub(crate) struct User {
    /// As given at the login.
    pub(crate) name: Arc<str>,
    pub(crate) token: Arc<Token>,
}

/// The routes, asked by one operator or user.
struct Routes {
    router: Router,
    shown: Option<Shown>,
    peer: Option<Peer>,
    user: Option<User>,
}

/// The pages, which ask these routes.
pub(super) fn router(routes: Router) -> Router {
    Router::new()
        .route("/web", get(page))
        .route("/web/", get(page))
        .route("/web/{*page}", get(page))
        .with_state(routes)
}

/// Answers with the page at this path.
pub(crate) async fn page(State(router): State<Router>, request: Request) -> Response {
    let extensions = request.extensions();
    let routes = Routes {
        router,
        shown: extensions.get().cloned(),
        peer: extensions.get().copied(),
        user: extensions.get().cloned(),
    };
    let target = request.uri().path_and_query();
    response(respond(target.map_or("/web", |target| target.as_str()), &routes).await)
}

/// The page with its headers.
pub(crate) fn response(page: Page) -> Response {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, page.body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(page.cache_control));
    guard(headers);
    response
}

/// Adds what browsers have to know of each answer.
pub(crate) fn guard(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        headers.insert(name, HeaderValue::from_static(value));
    }
}

impl Ask for Routes {
    fn user(&self) -> Option<&str> {
        Some(&self.user.as_ref()?.name)
    }

    fn get<'a>(&'a self, path: &'a str, is_local: bool) -> BoxFuture<'a, Answer> {
        let limit = match path.starts_with("/v1/nodes/") {
            true => RELAYED_DEADLINE,
            false => DEADLINE,
        };
        Box::pin(async move {
            let answer = timeout(limit, self.ask(path, is_local)).await;
            answer.unwrap_or_else(|_| {
                let detail = format!(
                    "There was no answer within {} s. Try again.",
                    limit.as_secs()
                );
                refused(StatusCode::GATEWAY_TIMEOUT, &detail)
            })
        })
    }
}

impl Routes {
    async fn ask(&self, path: &str, is_local: bool) -> Answer {
        let mut request = Request::get(path).header("openstack-api-version", MICROVERSION);
        if is_local {
            request = request.header("placement-consistency", "local");
        }
        let Ok(mut request) = request.body(Body::empty()) else {
            return refused(StatusCode::BAD_REQUEST, "This is no path of the API.");
        };
        // Nothing else of the request for the page goes along: what it asks is its own.
        if let Some(shown) = &self.shown {
            request.extensions_mut().insert(shown.clone());
        }
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        if let Some(user) = &self.user {
            request.extensions_mut().insert(user.clone());
        }
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        match to_bytes(response.into_body(), BODY_BYTES_MAX).await {
            Ok(body) => Answer {
                status: status.as_u16(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            },
            Err(_) => {
                let detail =
                    "The answer is too long for a page. Ask for less, or use placementctl.";
                refused(StatusCode::BAD_GATEWAY, detail)
            }
        }
    }
}

/// An answer in the form of the API's errors.
fn refused(status: StatusCode, detail: &str) -> Answer {
    Answer {
        status: status.as_u16(),
        body: json!({ "errors": [{ "status": status.as_u16(), "detail": detail }] }),
    }
}
