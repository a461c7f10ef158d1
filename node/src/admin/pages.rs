//! Pages for a browser, below `/web`. `placement-web` renders them from the responses of this
//! listener's routes, which it calls within this process on behalf of the operator or user, only by
//! GET: pages change nothing.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Extensions, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use placement_web::{Ask, HEADERS, Need, Page, Read, Refusal, STYLE_PATH, respond};
use placement_wire::microversion;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::ServiceExt;

use placement_api::http::WEB;
use placement_api::keystone::Token;
use placement_audit::access::Peer;
use placement_base::runtime;
use placement_peer::tls::PeerCertificate;
use placement_policy::{Policy, Target};

/// Deadline of a request by a page: longer than a request waits for a leader by default, and than a
/// search takes that need not wait for others.
const DEADLINE: Duration = Duration::from_secs(12);
/// Deadline of a request whose answer the page can do without.
const GLANCE: Duration = Duration::from_secs(1);
/// Deadline of a request that is relayed to another node: longer than a node takes to find that it
/// is not ready.
const RELAYED_DEADLINE: Duration = Duration::from_secs(3);
/// Longest response that a page may use: the list of some 100,000 providers.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum number of concurrent pages of a listener, because one page may use responses of many
/// megabytes.
const PAGES_MAX: usize = 4;
/// Maximum number of concurrent pages of one logged-in user, over all sessions.
const PAGES_PER_USER_MAX: usize = 2;
/// How long a page waits for a permit.
const PAGE_WAIT: Duration = Duration::from_secs(10);

/// The user who has logged in at `[web] listen`: an extension of a page's requests, and of the
/// response to a login.
#[derive(Clone)]
pub(crate) struct User {
    /// The name given at the login.
    pub(crate) name: Arc<str>,
    pub(crate) token: Arc<Token>,
}

impl User {
    /// Whether the policy of a partition lets the user see its pages.
    pub(crate) fn may_see(&self, policy: &Policy) -> bool {
        let identity = &self.token.identity;
        let target = Target::for_caller(identity);
        policy.authorize(WEB, identity, target).is_ok()
    }
}

#[derive(Clone)]
struct Pages {
    routes: Router,
    places: Arc<Semaphore>,
    /// The permits of each user with pages in progress.
    of_users: Arc<Mutex<HashMap<String, Weak<Semaphore>>>>,
}

impl Pages {
    fn new(routes: Router) -> Self {
        Self {
            routes,
            places: Arc::new(Semaphore::new(PAGES_MAX)),
            of_users: Arc::default(),
        }
    }

    /// Waits for a permit of the user, if there is one, and then for a permit for any page. Pages
    /// of a user who has no free permit therefore do not delay the pages of other users.
    async fn place(&self, user_id: Option<&str>) -> Option<PagePermits> {
        let own = user_id.map(|user_id| self.places_of(user_id));
        let place = async {
            let own = match own {
                Some(own) => Some(own.acquire_owned().await.ok()?),
                None => None,
            };
            let all = self.places.clone().acquire_owned().await.ok()?;
            Some(Arc::new((own, all)))
        };
        timeout(PAGE_WAIT, place).await.ok().flatten()
    }

    fn places_of(&self, user_id: &str) -> Arc<Semaphore> {
        let mut all = self.of_users.lock();
        if let Some(own) = all.get(user_id).and_then(Weak::upgrade) {
            return own;
        }
        all.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(PAGES_PER_USER_MAX));
        all.insert(user_id.to_owned(), Arc::downgrade(&own));
        own
    }
}

/// The permits of a page, of its user and of all: held until its last request is answered.
type PagePermits = Arc<(Option<OwnedSemaphorePermit>, OwnedSemaphorePermit)>;

/// The routes, called for one page of an operator or a user.
struct Routes {
    router: Router,
    place: Option<PagePermits>,
    /// The caller. The rest of the original request is not passed on.
    caller: Extensions,
}

/// These routes, and the pages over them.
pub(crate) fn with_pages(routes: Router) -> Router {
    let pages = pages(routes.clone()).route(STYLE_PATH, get(style));
    routes.merge(pages)
}

/// The pages, over these routes.
pub(crate) fn pages(routes: Router) -> Router {
    Router::new()
        .route("/web", get(page))
        .route("/web/", get(page))
        .route("/web/{*page}", get(page))
        .with_state(Pages::new(routes))
}

/// Responds with the page at this path.
async fn page(State(pages): State<Pages>, request: Request) -> Response {
    let (mut caller, given) = (Extensions::new(), request.extensions());
    copy::<PeerCertificate>(given, &mut caller);
    copy::<Peer>(given, &mut caller);
    copy::<User>(given, &mut caller);
    let user: Option<&User> = given.get();
    let user_id = user.map(|user| user.token.identity.user_id.as_str());
    let routes = Routes {
        place: pages.place(user_id).await,
        router: pages.routes,
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

/// A page with its headers.
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

    fn get<'a>(
        &'a self,
        path: &'a str,
        is_local: bool,
        need: Need,
        read: Read,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        let limit = match need {
            Need::Optional => GLANCE,
            Need::Required if path.starts_with("/v1/nodes/") => RELAYED_DEADLINE,
            Need::Required => DEADLINE,
        };
        Box::pin(async move {
            let answer = timeout(limit, self.ask(path, is_local, read)).await;
            answer.unwrap_or_else(|_| {
                let detail = format!("No answer within {limit:?}. Retry.");
                Err(refused(StatusCode::GATEWAY_TIMEOUT, &detail))
            })
        })
    }
}

impl Routes {
    async fn ask(&self, path: &str, is_local: bool, read: Read) -> Result<(), Refusal> {
        let Some(place) = self.place.clone() else {
            let detail = "This node serves the maximum number of pages. Retry.";
            return Err(refused(StatusCode::TOO_MANY_REQUESTS, detail));
        };
        let mut request =
            Request::get(path).header("openstack-api-version", microversion::NEWEST_HEADER);
        if is_local {
            request = request.header("placement-consistency", "local");
        }
        let Ok(mut request) = request.body(Body::empty()) else {
            let detail = "This is not a path of the API.";
            return Err(refused(StatusCode::BAD_REQUEST, detail));
        };
        request.extensions_mut().clone_from(&self.caller);
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status().as_u16();
        let Ok(body) = to_bytes(response.into_body(), BODY_BYTES_MAX).await else {
            let detail = "The answer is too long for a page. Ask for less, or use placementctl.";
            return Err(refused(StatusCode::BAD_GATEWAY, detail));
        };
        // Parsing may take a second, and completes even if the browser disconnects.
        let work = move || {
            let _place = place;
            read(status, &body);
        };
        runtime::blocking(work).await;
        Ok(())
    }
}

fn refused(status: StatusCode, detail: &str) -> Refusal {
    Refusal {
        status: status.as_u16(),
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use placement_wire::{RoundTrip, Survived, Topology};
    use tokio::join;
    use tokio::task::yield_now;
    use tokio::time::{Instant, sleep};

    use super::*;

    fn asked(path: &'static str) -> Request {
        Request::get(path).body(Body::empty()).unwrap()
    }

    /// All of this runs on the single thread of this test.
    #[tokio::test]
    async fn requests_go_on_while_a_long_answer_is_read() {
        let trip = RoundTrip {
            from: 1,
            to: 2,
            ms: 0.5,
        };
        let topology = Topology {
            leader: None,
            survive: String::new(),
            survives: Survived {
                node: true,
                zone: true,
                region: true,
            },
            members: Vec::new(),
            round_trips: vec![trip; 300_000],
            sites: Vec::new(),
            partitions: Vec::new(),
            losses: Vec::new(),
        };
        let long = serde_json::to_string(&topology).unwrap();
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
    async fn pages_of_one_user_leave_room_for_others() {
        let pages = Pages::new(Router::new());
        let places = [(); PAGES_PER_USER_MAX].map(|()| pages.place(Some("greedy")));
        let held = join_all(places).await;
        assert!(held.iter().all(Option::is_some));
        let (one_more, other) = join!(pages.place(Some("greedy")), async {
            // It does not wait behind the pages of the first user.
            sleep(PAGE_WAIT / 2).await;
            pages.place(Some("other")).await
        });
        assert!(one_more.is_none() && other.is_some());
        drop(held);
        assert!(pages.place(Some("greedy")).await.is_some());
        assert_eq!(pages.of_users.lock().len(), 2);
        drop(other);
        drop(pages.place(Some("third")).await);
        assert_eq!(pages.of_users.lock().len(), 1, "the others are forgotten");
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

        let begun = Instant::now();
        let pages = Pages {
            places: Arc::new(Semaphore::new(0)),
            ..Pages::new(Router::new())
        };
        let refused = page(State(pages), asked("/web/topology")).await;
        assert_eq!(
            (refused.status().as_u16(), begun.elapsed()),
            (429, PAGE_WAIT)
        );
    }
}
