//! `[web] listen`: the pages for a browser, after a login with Keystone. A page calls the admin
//! routes as the logged-in user, so that the policy applies to everything that it shows.
//!
//! | request | effect or response |
//! |---|---|
//! | `GET /login` | the form |
//! | `POST /login` | begins a session and sets its cookie |
//! | `POST /logout` | ends the session, and revokes its token |
//! | `GET /web/…` | the pages, see `placement-web` |

mod form;
mod refusal;
mod sessions;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::STRICT_TRANSPORT_SECURITY;
use axum::http::header::{HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;

use self::form::Form;
use self::refusal::Refusal;
use self::sessions::{Session, Sessions, deletion_cookie};
pub(crate) use self::settings::WebSection;
use crate::admin::{self, Admin, Detail, User};
use crate::serve::connections::Connections;
use placement_api::http::{PublicAddress, WEB};
use placement_api::keystone::Keystone;
use placement_audit::access::{NamedClient, Peer, Recorded};
use placement_base::contain::contain;
use placement_base::log_messages::log;
use placement_base::runtime;
use placement_base::settings::Secret;
use placement_policy::Policy;
use placement_web::{HEADERS, STYLE_PATH};

/// Maximum number of concurrent login attempts; a quarter of them from one address.
const ATTEMPTS_MAX: usize = 16;
/// How long a rejected attempt occupies its permit, so that guessing is slow.
const REFUSED_LASTS: Duration = Duration::from_secs(1);
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// For a year a browser uses only TLS with this host, so that no one can serve it the form without
/// TLS.
const ONLY_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// State of the routes.
struct Site {
    keystone: Arc<Keystone>,
    policy: Arc<Policy>,
    sessions: Sessions,
    attempts: Connections,
    is_tls: bool,
}

/// All routes. Without TLS the listener is for a proxy on this machine, which may report the
/// addresses of its clients.
pub(crate) fn router(
    admin: Admin,
    keystone: Arc<Keystone>,
    public: PublicAddress,
    is_tls: bool,
) -> Router {
    let env = &admin.bootstrap.env;
    // Without TLS or proxy headers, all users have the address of the proxy.
    let knows_addresses = is_tls || public.trust_proxy_headers;
    let per_address_max = ATTEMPTS_MAX / if knows_addresses { 4 } else { 1 };
    let left = Arc::new(Semaphore::new(ATTEMPTS_MAX));
    let site = Arc::new(Site {
        sessions: Sessions::new(env.clock.clone(), env.ids.clone()),
        // The policy of the default partition.
        policy: admin.policies[0].1.clone(),
        attempts: Connections::new(ATTEMPTS_MAX, per_address_max, left),
        keystone,
        is_tls,
    });
    let pages = admin::pages(admin.routes());
    let only_tls = is_tls.then_some([(STRICT_TRANSPORT_SECURITY, ONLY_TLS)]);
    // Every response needs the security headers.
    let secured = map_response(move |response: Response| {
        let only_tls = only_tls.clone();
        async move { (HEADERS, only_tls, response) }
    });
    Router::new()
        .route("/", get(|| async { redirect("/web/") }))
        .route("/login", get(form).post(log_in))
        .route("/logout", post(log_out))
        .with_state(site.clone())
        .merge(pages.layer(from_fn_with_state(site, require_session)))
        .route(STYLE_PATH, get(admin::style))
        .fallback(|| async { (StatusCode::NOT_FOUND, "The pages begin at /web/.\n") })
        .layer(secured)
}

/// Adds to a request the client that the proxy on this machine reports.
pub(crate) async fn name_client(
    State(public): State<PublicAddress>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(client) = public.client(request.headers()) {
        request.extensions_mut().insert(NamedClient(client));
    }
    next.run(request).await
}

async fn form(State(site): State<Arc<Site>>, request: Request) -> Response {
    let session = site.session(request.headers());
    let name = session.as_ref().map(|session| &*session.name);
    admin::response(placement_web::login(200, "", name))
}

async fn log_in(State(site): State<Arc<Site>>, request: Request) -> Response {
    let (browser, answer) = oneshot::channel();
    // The login continues even if the client disconnects, so that disconnecting early does not
    // allow more attempts.
    drop(runtime::spawn(contain(async move {
        let entered = site.log_in(request, &browser).await;
        let (answer, ended) = entered.unwrap_or_else(|refusal| (refusal.page(None), Vec::new()));
        drop(browser.send(answer));
        for session in ended {
            site.revoke(&session.token).await;
        }
    })));
    answer.await.unwrap_or_else(|_panicked| {
        let wrong = "The login failed because of a bug; see the log of this node for details.";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, wrong).page(None)
    })
}

async fn log_out(State(site): State<Arc<Site>>, request: Request) -> Response {
    let headers = request.headers();
    if let Err(refusal) = site.check_origin(headers) {
        return refusal.page(None);
    }
    let mut response = ([(SET_COOKIE, deletion_cookie())], redirect("/login")).into_response();
    if let Some(session) = site.sessions.end(headers) {
        // For the audit record, if Keystone still accepts the token.
        if let Ok(user) = site.user(&session).await {
            response.extensions_mut().insert(user);
        }
        site.revoke(&session.token).await;
    } else {
        // No one was logged out, so no audit record is written: `Recorded` prevents it.
        response.extensions_mut().insert(Recorded);
    }
    response
}

/// Middleware that shows pages to browsers with a session.
async fn require_session(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(session) = site.session(request.headers()) else {
        return redirect("/login");
    };
    match site.user(&session).await {
        Ok(user) => {
            request.extensions_mut().insert(user.clone());
            let mut page = next.run(request).await;
            // For the audit record.
            page.extensions_mut().insert(user);
            page
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            site.sessions.end(request.headers());
            redirect("/login")
        }
        Err(refusal) => refusal.page(Some(&session.name)),
    }
}

impl Site {
    /// Begins a session with a new id, regardless of any earlier session of the browser; also
    /// returns the sessions that this ends.
    async fn log_in(
        &self,
        request: Request,
        browser: &oneshot::Sender<Response>,
    ) -> Result<(Response, Vec<Arc<Session>>), Refusal> {
        let (parts, body) = request.into_parts();
        self.check_origin(&parts.headers)?;
        let form = form::read(&parts.headers, body).await?;
        let detail = Detail(form.who());
        match self.try_to_log_in(&parts, form, browser).await {
            Ok((mut response, ended)) => {
                response.extensions_mut().insert(detail);
                Ok((response, ended))
            }
            Err(refusal) => Err(refusal.detailed(detail)),
        }
    }

    async fn try_to_log_in(
        &self,
        parts: &Parts,
        Form { name, credentials }: Form,
        browser: &oneshot::Sender<Response>,
    ) -> Result<(Response, Vec<Arc<Session>>), Refusal> {
        let peer = parts.extensions.get::<Peer>();
        let named = parts
            .extensions
            .get::<NamedClient>()
            .and_then(NamedClient::address);
        let address = named.or(peer.map(|Peer(peer)| peer.ip()));
        let attempt = address.and_then(|address| self.attempts.permit_for(address));
        let _attempt = attempt.ok_or_else(|| {
            let wrong = "Too many logins are in progress, in total or from your address. Retry.";
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, wrong)
        })?;
        let Some(token) = self.keystone.log_in(&credentials).await? else {
            sleep(REFUSED_LASTS).await;
            let wrong = "Keystone rejected the login. Check all fields.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, wrong));
        };
        let session = Session {
            name: name.into(),
            token,
        };
        let user = match self.user(&session).await {
            Ok(user) if !browser.is_closed() => user,
            refused_or_left => {
                self.revoke(&session.token).await;
                // No one receives this answer.
                let wrong = "The browser closed the connection.";
                let left = || Refusal::new(StatusCode::REQUEST_TIMEOUT, wrong);
                return Err(refused_or_left.err().unwrap_or_else(left));
            }
        };
        let user_id = &user.token.identity.user_id;
        let (cookie, ended) = self.sessions.begin(&parts.headers, user_id, session);
        let mut response = ([(SET_COOKIE, cookie)], redirect("/web/")).into_response();
        response.extensions_mut().insert(user);
        Ok((response, ended))
    }

    /// The session of a browser. A request that another site initiated has no session, so that the
    /// site learns nothing from the response.
    fn session(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let site = headers.get(FETCH_SITE).map(|site| site.as_bytes());
        let is_led = site.is_some_and(|site| ![&b"none"[..], b"same-origin"].contains(&site));
        self.sessions.find(headers).filter(|_| !is_led)
    }

    /// The user of a session, if the token and the policy still allow pages; asks Keystone as often
    /// as for the API.
    async fn user(&self, session: &Session) -> Result<User, Refusal> {
        let token = self.keystone.holder(&session.token).await?.ok_or_else(|| {
            Refusal::new(StatusCode::UNAUTHORIZED, "The session has ended. Log in.")
        })?;
        let is_restricted = token.is_restricted();
        let name = session.name.clone();
        let user = User { name, token };
        let may_see = user.may_see(&self.policy);
        if may_see && !is_restricted {
            return Ok(user);
        }
        let wrong = if may_see {
            "Access rules cannot list what pages read: use a credential without access rules."
                .to_owned()
        } else {
            format!(
                "The policy does not allow you to see pages: its rule {WEB} is for other roles \
                of the project."
            )
        };
        let user = Some(user);
        let refusal = Refusal::new(StatusCode::FORBIDDEN, wrong);
        Err(Refusal { user, ..refusal })
    }

    /// Checks that a page of this site sent the form.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let origin = single_header(headers, &ORIGIN).unwrap_or_default();
        let own = origin.strip_prefix("https://");
        // A browser on this machine, without a proxy that terminates TLS.
        let plain = origin.strip_prefix("http://").filter(|_| !self.is_tls);
        let is_own = (own.or(plain).zip(single_header(headers, &HOST)))
            .is_some_and(|(own, host)| own.eq_ignore_ascii_case(host));
        let site = headers.get(FETCH_SITE);
        if is_own && site.is_none_or(|site| site == "same-origin") {
            return Ok(());
        }
        let wrong = "This form was not sent by a page of this server, according to its Origin and \
            Host. Use the form below; a proxy in front has to forward both.";
        Err(Refusal::new(StatusCode::FORBIDDEN, wrong))
    }

    async fn revoke(&self, token: &Secret) {
        if let Err(away) = self.keystone.revoke(token).await {
            log!(
                LOGOUT_INCOMPLETE,
                reason = %away,
                "could not revoke the token of a logged-out user; it stays valid until it expires"
            );
        }
    }
}

/// The value of a header that occurs once.
fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// Redirects a browser, by GET.
fn redirect(path: &'static str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response()
}
