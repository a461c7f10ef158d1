//! `[web] listen`: the pages for a browser, after a login by Keystone. A page asks the operators' routes as the user who
//! has logged in, so that the policy holds for all that it shows.
//!
//! | request | does |
//! |---|---|
//! | `GET /login` | the form |
//! | `POST /login` | begins a session, of which the browser gets a cookie |
//! | `POST /logout` | ends it, and revokes its token |
//! | `GET /web/…` | the pages, see `placement-web` |

mod form;
mod refusal;
mod sessions;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use self::refusal::Refusal;
use self::sessions::{Session, Sessions, forgotten};
pub(crate) use self::settings::WebSection;
use crate::admin::{self, Admin, User};
use crate::serve::connections::Connections;
use placement_api::access::{Peer, Recorded};
use placement_api::contain::{Panicked, contain};
use placement_api::http::{Policy, Target, WEB};
use placement_api::keystone::Keystone;
use placement_api::settings::Secret;
use placement_raft_store::runtime;

/// Attempts to log in at once, and those from one address.
const ATTEMPTS_MAX: usize = 16;
const ATTEMPTS_PER_ADDRESS_MAX: usize = 4;
/// How long a refused attempt counts, so that guessing is slow.
const REFUSED_LASTS: Duration = Duration::from_secs(1);
/// Pages that are made at once: one may be made of answers of many megabytes.
const PAGES_MAX: usize = 4;
/// How long a page waits for others.
const PAGE_WAIT: Duration = Duration::from_secs(10);
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What the routes need.
struct Site {
    routes: Router,
    keystone: Arc<Keystone>,
    policy: Arc<Policy>,
    sessions: Sessions,
    attempts: Connections,
    pages: Semaphore,
    is_tls: bool,
}

/// All routes.
pub(crate) fn router(admin: Admin, keystone: Arc<Keystone>, is_tls: bool) -> Router {
    let env = &admin.bootstrap.env;
    let site = Site {
        sessions: Sessions::new(env.clock.clone(), env.ids.clone()),
        // That of the default partition.
        policy: admin.policies[0].1.clone(),
        attempts: Connections::new(
            ATTEMPTS_MAX,
            ATTEMPTS_PER_ADDRESS_MAX,
            Arc::new(Semaphore::new(ATTEMPTS_MAX)),
        ),
        pages: Semaphore::new(PAGES_MAX),
        keystone,
        is_tls,
        routes: admin.routes(),
    };
    Router::new()
        .route("/", get(|| async { to("/web/") }))
        .route("/login", get(form).post(log_in))
        .route("/logout", post(log_out))
        .route("/web", get(page))
        .route("/web/", get(page))
        .route("/web/{*page}", get(page))
        .fallback(|| async { (StatusCode::NOT_FOUND, "The pages begin at /web/.\n") })
        .layer(map_response(|mut response: Response| async move {
            admin::guard(response.headers_mut());
            response
        }))
        .with_state(Arc::new(site))
}

async fn form(State(site): State<Arc<Site>>, request: Request) -> Response {
    let session = site.session(request.headers());
    let name = session.as_ref().map(|session| &*session.name);
    admin::response(placement_web::login(200, "", name))
}

async fn log_in(State(site): State<Arc<Site>>, request: Request) -> Response {
    // It goes on when its client leaves: leaving early must give no more attempts.
    let attempt = runtime::spawn(contain(async move { site.log_in(request).await })).await;
    let answer = attempt.unwrap_or(Err(Panicked));
    match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(refusal)) => refusal.page(None),
        Err(Panicked) => {
            let wrong = "The login has ended with a bug, and the log of this node says where.";
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, wrong).page(None)
        }
    }
}

async fn log_out(State(site): State<Arc<Site>>, request: Request) -> Response {
    let headers = request.headers();
    if let Err(refusal) = site.check_origin(headers) {
        return refusal.page(None);
    }
    let mut response = to("/login");
    set_cookie(&mut response, &forgotten());
    if let Some(session) = site.sessions.end(headers) {
        // For the audit record, if it is still known.
        if let Ok(user) = site.user(&session).await {
            response.extensions_mut().insert(user);
        }
        site.revoke(&session.token).await;
    } else {
        // No one has logged out.
        response.extensions_mut().insert(Recorded);
    }
    response
}

async fn page(State(site): State<Arc<Site>>, mut request: Request) -> Response {
    let target = request.uri().path();
    if let Some(asset) = placement_web::asset(target) {
        return admin::response(asset);
    }
    let Some(session) = site.session(request.headers()) else {
        return to("/login");
    };
    match site.user(&session).await {
        Ok(user) => {
            let Ok(_place) = timeout(PAGE_WAIT, site.pages.acquire()).await else {
                let wrong = "This node makes as many pages as it may. Try again.";
                let busy = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, wrong);
                return busy.page(Some(&session.name));
            };
            request.extensions_mut().insert(user.clone());
            let mut page = admin::page(State(site.routes.clone()), request).await;
            page.extensions_mut().insert(user);
            page
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            site.sessions.end(request.headers());
            to("/login")
        }
        Err(refusal) => refusal.page(Some(&session.name)),
    }
}

impl Site {
    /// Begins a session with a new id, whatever the browser had before.
    async fn log_in(&self, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        self.check_origin(&parts.headers)?;
        let (name, credentials) = form::read(&parts.headers, body).await?;
        let peer = parts.extensions.get::<Peer>();
        let attempt = peer.and_then(|Peer(peer)| self.attempts.permit(*peer));
        let _attempt = attempt.ok_or_else(|| {
            let wrong = "Too many users are logging in, here or from your address. Try again.";
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, wrong)
        })?;
        let Some(token) = self.keystone.log_in(&credentials).await? else {
            sleep(REFUSED_LASTS).await;
            let wrong = "Keystone does not accept this. Check all fields.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, wrong));
        };
        let session = Session {
            name: name.into(),
            token,
        };
        let user = match self.user(&session).await {
            Ok(user) => user,
            Err(refusal) => {
                self.revoke(&session.token).await;
                return Err(refusal);
            }
        };
        if let Some(before) = self.sessions.end(&parts.headers) {
            self.revoke(&before.token).await;
        }
        let mut response = to("/web/");
        set_cookie(&mut response, &self.sessions.begin(session));
        response.extensions_mut().insert(user);
        Ok(response)
    }

    /// The session of a browser. One that another site has led here has none, as that site would learn from it.
    fn session(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let site = headers.get(FETCH_SITE).map(|site| site.as_bytes());
        let is_led = site.is_some_and(|site| ![&b"none"[..], b"same-origin"].contains(&site));
        self.sessions.find(headers).filter(|_| !is_led)
    }

    /// The user of a session, if the token and the policy still allow pages; asks Keystone as often as for the API.
    async fn user(&self, session: &Session) -> Result<User, Refusal> {
        let token = self.keystone.holder(&session.token).await?;
        let token = token.ok_or_else(|| {
            Refusal::new(StatusCode::UNAUTHORIZED, "The session has ended. Log in.")
        })?;
        let identity = &token.identity;
        let target = Target {
            project_id: identity.project_id.as_deref(),
            user_id: Some(&identity.user_id),
        };
        let is_allowed = self.policy.authorize(WEB, identity, target).is_ok();
        let wrong = match is_allowed {
            true if !token.is_restricted() => None,
            true => Some(
                "Pages read what access rules cannot list: use a credential without them."
                    .to_owned(),
            ),
            false => Some(format!(
                "The policy does not allow you to see pages: its rule {WEB} is for other roles of the project."
            )),
        };
        let user = User {
            name: session.name.clone(),
            token,
        };
        match wrong {
            None => Ok(user),
            Some(wrong) => Err(Refusal {
                user: Some(user),
                ..Refusal::new(StatusCode::FORBIDDEN, wrong)
            }),
        }
    }

    /// Whether a form was sent by a page of this site.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let origin = only(headers, &ORIGIN).unwrap_or_default();
        let own = origin.strip_prefix("https://");
        // A browser on this machine, without a proxy that ends TLS.
        let plain = origin.strip_prefix("http://").filter(|_| !self.is_tls);
        let is_own = (own.or(plain).zip(only(headers, &HOST)))
            .is_some_and(|(own, host)| own.eq_ignore_ascii_case(host));
        let site = headers.get(FETCH_SITE);
        if is_own && site.is_none_or(|site| site == "same-origin") {
            return Ok(());
        }
        let wrong = "This form was not sent by a page of this server, by its Origin and Host. Use the form below; a proxy \
                     in front has to pass both on.";
        Err(Refusal::new(StatusCode::FORBIDDEN, wrong))
    }

    async fn revoke(&self, token: &Secret) {
        if let Err(away) = self.keystone.revoke(token).await {
            tracing::warn!(reason = %away, "the token of a user who has logged out lives on until its end");
        }
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// Sends a browser on, by GET.
fn to(path: &'static str) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static(path));
    response
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
}
