//! Pages for a browser, below `/web`: `placement-web` over the routes of this listener, which are asked in this process
//! for the operator, or the user, who asks for the page. Only by GET, so that no page changes anything.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Extensions, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use placement_web::{Answer, Ask, HEADERS, Page, respond};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::tls::Shown;
use placement_api::access::Peer;
use placement_api::http::{Policy, Target, WEB};
use placement_api::keystone::Token;
use placement_raft_store::runtime;

/// A question of a page may take so long: longer than a request waits for a leader by default.
const DEADLINE: Duration = Duration::from_secs(10);
/// A question that is passed on to another node: longer than a node takes to find out that it is not ready.
const RELAYED_DEADLINE: Duration = Duration::from_secs(3);
/// Longest answer of which a page is made: the list of some 100,000 providers.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Pages that a listener makes at once: one may be made of answers of many megabytes.
const PAGES_MAX: usize = 4;
/// How long a page waits for others.
const PAGE_WAIT: Duration = Duration::from_secs(10);
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

impl User {
    /// Whether the user may see pages of a partition, by its policy.
    pub(crate) fn may_see(&self, policy: &Policy) -> bool {
        let identity = &self.token.identity;
        let target = Target::of_caller(identity);
        policy.authorize(WEB, identity, target).is_ok()
    }
}

#[derive(Clone)]
struct Pages {
    routes: Router,
    places: Arc<Semaphore>,
}

/// The routes, asked for one page of an operator or a user.
struct Routes {
    router: Router,
    place: Option<Arc<OwnedSemaphorePermit>>,
    /// Who asks. Nothing else of the request for the page goes along: what it asks is its own.
    caller: Extensions,
}

/// The pages, which ask these routes.
pub(crate) fn pages(routes: Router) -> Router {
    let places = Arc::new(Semaphore::new(PAGES_MAX));
    Router::new()
        .route("/web", get(page))
        .route("/web/", get(page))
        .route("/web/{*page}", get(page))
        .with_state(Pages { routes, places })
}

/// Answers with the page at this path.
async fn page(State(pages): State<Pages>, request: Request) -> Response {
    let (mut caller, given) = (Extensions::new(), request.extensions());
    copy::<Shown>(given, &mut caller);
    copy::<Peer>(given, &mut caller);
    copy::<User>(given, &mut caller);
    let place = timeout(PAGE_WAIT, pages.places.acquire_owned()).await;
    let routes = Routes {
        router: pages.routes,
        place: place.ok().and_then(Result::ok).map(Arc::new),
        caller,
    };
    let target = request.uri().path_and_query();
    let page = respond(target.map_or("/web", |target| target.as_str()), &routes).await;
    let mut page = response(page);
    if routes.place.is_none() {
        let wait = HeaderValue::from_static("5");
        page.headers_mut().insert(RETRY_AFTER, wait);
    }
    page
}

fn copy<T: Clone + Send + Sync + 'static>(from: &Extensions, to: &mut Extensions) {
    if let Some(one) = from.get::<T>() {
        to.insert(one.clone());
    }
}

/// The style sheet of all pages.
pub(crate) async fn style() -> Response {
    response(placement_web::style())
}

/// The page with its headers.
pub(crate) fn response(page: Page) -> Response {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let own = [
        (CONTENT_TYPE, page.content_type),
        (CACHE_CONTROL, page.cache_control),
    ];
    (status, HEADERS, own, page.body).into_response()
}

impl Ask for Routes {
    fn user(&self) -> Option<&str> {
        Some(&self.caller.get::<User>()?.name)
    }

    fn get<'a>(&'a self, path: &'a str, is_local: bool) -> BoxFuture<'a, Answer> {
        let limit = match path.starts_with("/v1/nodes/") {
            true => RELAYED_DEADLINE,
            false => DEADLINE,
        };
        Box::pin(async move {
            let answer = timeout(limit, self.ask(path, is_local)).await;
            answer.unwrap_or_else(|_| {
                let detail = format!("There was no answer within {limit:?}. Try again.");
                refused(StatusCode::GATEWAY_TIMEOUT, &detail)
            })
        })
    }
}

impl Routes {
    async fn ask(&self, path: &str, is_local: bool) -> Answer {
        let Some(place) = self.place.clone() else {
            let detail = "This node makes as many pages as it may. Try again.";
            return refused(StatusCode::TOO_MANY_REQUESTS, detail);
        };
        let mut request = Request::get(path).header("openstack-api-version", MICROVERSION);
        if is_local {
            request = request.header("placement-consistency", "local");
        }
        let Ok(mut request) = request.body(Body::empty()) else {
            return refused(StatusCode::BAD_REQUEST, "This is no path of the API.");
        };
        request.extensions_mut().clone_from(&self.caller);
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status().as_u16();
        let Ok(body) = to_bytes(response.into_body(), BODY_BYTES_MAX).await else {
            let detail = "The answer is too long for a page. Ask for less, or use placementctl.";
            return refused(StatusCode::BAD_GATEWAY, detail);
        };
        // It may take a second, and is done although the browser leaves.
        let read = move || (Answer::read(status, &body), place);
        runtime::blocking(read).await.0
    }
}

/// An answer in the form of the API's errors.
fn refused(status: StatusCode, detail: &str) -> Answer {
    let status = status.as_u16();
    Answer {
        status,
        body: json!({ "errors": [{ "status": status, "detail": detail }] }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::yield_now;
    use tokio::time::{Instant, sleep};

    use super::*;

    fn asked(path: &'static str) -> Request {
        Request::get(path).body(Body::empty()).unwrap()
    }

    /// On the one thread of this test.
    #[tokio::test]
    async fn requests_go_on_while_a_long_answer_is_read() {
        let long = format!("[{}0]", "[1],".repeat(1_000_000));
        let routes = Router::new().fallback(get(move || async { long }));
        let pages = pages(routes);
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        drop(runtime::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        }));
        let page = pages.oneshot(asked("/web/topology")).await.unwrap();
        assert_eq!(page.status(), StatusCode::OK);
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns > 100, "{turns}");
    }

    #[tokio::test(start_paused = true)]
    async fn pages_beyond_the_bound_wait_and_are_refused() {
        let under_way = Arc::new(AtomicUsize::new(0));
        let counted = under_way.clone();
        let routes = Router::new().fallback(get(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<()>()
        }));
        let pages = pages(routes);
        let all: Vec<_> = (0..2 * PAGES_MAX)
            .map(|_| runtime::spawn(pages.clone().oneshot(asked("/web/topology"))))
            .collect();
        sleep(DEADLINE / 2).await;
        assert_eq!(under_way.load(Ordering::Relaxed), PAGES_MAX);
        drop(all);

        let (begun, places) = (Instant::now(), Arc::new(Semaphore::new(0)));
        let routes = Router::new();
        let pages = State(Pages { routes, places });
        let refused = page(pages, asked("/web/topology")).await;
        assert_eq!(
            (refused.status().as_u16(), begun.elapsed()),
            (429, PAGE_WAIT)
        );
    }
}
