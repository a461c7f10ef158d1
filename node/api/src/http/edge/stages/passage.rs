//! A request on its way through the stages, with the facts known so far.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderName};
use http::request::Parts;

use crate::http::edge::admission::Memory;
use crate::http::edge::answer::Answer;
use crate::http::edge::as_of::AsOf;
use crate::http::edge::headers;
use crate::http::edge::progress::Progress;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::route::{Operation, Route, Routes};
use crate::http::edge::state::Server;
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use placement_base::backend::Consistency;

/// A request on its way through the stages.
pub(in crate::http::edge) struct Passage<'p, 'a> {
    pub(super) server: &'p Arc<Server>,
    pub(super) routes: &'static Routes,
    pub(super) parts: &'a Parts,
    pub(super) progress: &'p mut Progress<'a>,
    /// The path of the request, percent-decoded.
    pub(super) whole_path: &'p str,
    /// The decoded path below the prefix; `None` outside of it.
    pub(super) path: Option<&'p str>,
    /// Whether the caller must authenticate and is subject to limits. False for `/`, and if another
    /// listener has authorized the caller.
    pub(super) is_limited: bool,
    /// The address whose limits apply.
    pub(super) address: Option<IpAddr>,
    /// The route of the path, with the values of its parameters.
    pub(super) found: Option<(&'static Route, Vec<String>)>,
    pub(super) version: Microversion,
    /// The consistency that the client requests.
    pub(super) asked: Option<Consistency>,
    pub(super) as_of: Option<AsOf>,
    /// The result of the stage `operation`.
    pub(super) matched: Option<Matched>,
    /// The body, until it is read.
    pub(super) body: Body,
    /// The memory reserved for the body, until the request is answered.
    pub(super) memory: Option<Memory>,
}

/// Reason why [`Passage::matched`] is set in later stages.
pub(super) const MATCHED: &str = "the stage `operation` refuses a request without an operation";

/// The operation of a request, and its context for the handler.
pub(super) struct Matched {
    pub(super) operation: &'static Operation,
    pub(super) context: RequestContext,
}

impl<'p, 'a> Passage<'p, 'a> {
    /// A request before the first stage. `whole_path` is its decoded path.
    pub(in crate::http::edge) fn new(
        server: &'p Arc<Server>,
        routes: &'static Routes,
        whole_path: &'p str,
        body: Body,
        progress: &'p mut Progress<'a>,
    ) -> Self {
        let parts = progress.parts;
        let path = server.api.settings.public.prefix.rest_of(whole_path);
        // Load balancers request `/`, regardless of the prefix.
        let path = path.or_else(|| (whole_path == "/").then_some("/"));
        // The stage `route` reports a missing route. The route is looked up earlier, as metrics
        // need it for every request.
        let found = path.and_then(|path| routes.find(path));
        if let Some((route, params)) = &found {
            progress.route = Some(route.path);
            progress.operation = route.rule(parts.method.as_str());
            if server.api.audit.is_on() {
                progress.params = params.clone();
            }
        }
        let is_authorized = progress.identity.is_some();
        let address = if is_authorized {
            None
        } else {
            (server.callers).address(progress.peer, progress.client.as_deref())
        };
        Self {
            server,
            routes,
            parts,
            progress,
            whole_path,
            path,
            // `/` reports this node's readiness to load balancers, however busy it is.
            is_limited: path != Some("/") && !is_authorized,
            address,
            found,
            version: Microversion::MAX,
            asked: None,
            as_of: None,
            matched: None,
            body,
            memory: None,
        }
    }

    pub(super) fn text(&self, name: HeaderName) -> Option<Cow<'a, str>> {
        headers::text(&self.parts.headers, name)
    }

    /// The media type of the body. An empty header counts as missing.
    pub(super) fn content_type(&self) -> Option<Cow<'a, str>> {
        self.text(CONTENT_TYPE).filter(|value| !value.is_empty())
    }

    /// Answers a request that has passed all stages.
    ///
    /// # Errors
    /// The errors of the handler.
    pub(in crate::http::edge) async fn answer(&mut self) -> Result<Answer, ApiError> {
        let Matched { operation, context } = self.matched.as_ref().expect(MATCHED);
        (operation.run)(context).await
    }
}
