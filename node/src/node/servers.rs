//! Serves the listeners of a node.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;

use super::listeners::Listeners;
use crate::admin::{Admin, Inner, NetworkListener, Recording, enter, recorded};
use crate::api_port::ApiPort;
use crate::config::Config;
use crate::descriptors;
use crate::serve::{Drain, HttpServer};
use crate::web;
use placement_api::http::PublicAddress;
use placement_api::keystone::Keystone;
use placement_audit as audit;
use placement_audit::access;
use placement_base::net::Listener;
use placement_base::tasks::Tasks;
use placement_cluster::peer_service::PeerService;
use placement_peer::tls::{Gate, Gates};
use placement_peer::transport::reception;

/// Deadline for the head of a request, counted from the end of the previous answer. It also closes
/// idle connections, including those of HTTP/2.
const HEADER: Duration = Duration::from_secs(30);
/// Deadline for the head of an operator's request.
const ADMIN_HEADER: Duration = Duration::from_secs(10);
/// Maximum number of connections of operators and monitoring.
const ADMIN_CONNECTIONS: usize = 256;
/// Maximum number of connections of browsers; at most a quarter of them from one address, unless a
/// proxy on this machine hides the addresses.
const WEB_CONNECTIONS: usize = 128;

/// Serves clients, other nodes, operators and monitoring.
pub(super) struct Servers {
    pub(super) config: Arc<Config>,
    /// The tasks of the node, on the runtime that serves HTTP.
    pub(super) requests: Tasks,
    pub(super) drain: Drain,
    pub(super) keystone: Option<Arc<Keystone>>,
    pub(super) port: ApiPort,
    pub(super) admin: Admin,
    pub(super) recording: Recording,
}

impl Servers {
    pub(super) fn start(self, listeners: Listeners, gates: Gates) {
        self.serve_peers(listeners.peer, gates.peer);
        let permits = descriptors::for_clients(
            1 + listeners.partitions.len(),
            self.config.api.max_connections,
        );
        for (name, listener) in listeners.partitions {
            self.serve_api(
                self.port.for_partition(name),
                listener,
                gates.api.clone(),
                &permits,
            );
        }
        self.serve_api(self.port.clone(), listeners.api, gates.api, &permits);

        let health = (self.admin.clone().numbers()).merge(self.admin.checks.clone().router());
        let orders = self.admin.clone().router();
        if let Some(listener) = listeners.socket {
            let router = orders.clone().merge(health.clone());
            self.serve_operators(listener, Gate::Plain, router, &health);
        }
        if let Some(listener) = listeners.admin {
            let addresses = [&*self.config.admin.listen, &*listeners.addresses.admin];
            let authorizes =
                NetworkListener::new(matches!(gates.admin, Gate::Tls { .. }), &addresses);
            let router = orders
                .layer(from_fn_with_state(authorizes, enter))
                .merge(health.clone());
            self.serve_operators(listener, gates.admin, router, &health);
        }
        if let Some(listener) = listeners.metrics {
            self.serve_operators(listener, Gate::Plain, health.clone(), &health);
        }
        if let (Some(listener), Some(keystone)) = (listeners.web, self.keystone.clone()) {
            self.serve_pages(listener, gates.web, keystone);
        }
    }

    fn serve_peers(&self, listener: Box<dyn Listener>, gate: Gate) {
        let inner = Inner::new(self.admin.clone(), self.recording.clone());
        let bootstrap = &self.admin.bootstrap;
        let calls = Arc::new(PeerService::new(bootstrap.clone(), inner));
        let tasks = &bootstrap.tasks;
        tasks.spawn(calls.clean());
        let damage = bootstrap.peers.damage.clone();
        let serve = reception::serve(listener, gate, calls, damage, tasks.clone());
        tasks.spawn_vital("listening to other nodes", serve);
    }

    fn serve_api(
        &self,
        port: ApiPort,
        listener: Box<dyn Listener>,
        gate: Gate,
        permits: &Arc<Semaphore>,
    ) {
        let settings = &self.config.api;
        let server = HttpServer {
            beyond: port.full(),
            answers: port,
            purpose: "the REST API",
            gate,
            connections_max: settings.max_connections,
            connections_per_address_max: settings.max_connections_per_address(),
            connections_left: permits.clone(),
            header_timeout: HEADER,
            date: self.admin.bootstrap.env.http_date,
            open: self.admin.metrics.http.connections.clone(),
            drain: self.drain.clone(),
        };
        let (tasks, drain) = (self.requests.clone(), self.drain.clone());
        self.requests
            .spawn_vital("serving the REST API", async move {
                server.serve(listener, tasks).await;
                drain.wait_if_begun().await;
            });
    }

    fn serve_operators(
        &self,
        listener: Box<dyn Listener>,
        gate: Gate,
        router: Router,
        health: &Router,
    ) {
        let server = self.server(gate, router, health.clone(), self.recording.clone());
        let serve = server.serve(listener, self.requests.clone());
        self.requests.spawn_vital("serving operators", serve);
    }

    fn serve_pages(&self, listener: Box<dyn Listener>, gate: Gate, keystone: Arc<Keystone>) {
        let recording = Recording {
            listener: audit::Listener::Web,
            ..self.recording.clone()
        };
        let is_tls = matches!(gate, Gate::Tls { .. });
        let public = PublicAddress {
            // With TLS, browsers connect without a proxy.
            trust_proxy_headers: self.config.api.trust_proxy_headers && !is_tls,
            ..PublicAddress::default()
        };
        let router = web::router(self.admin.clone(), keystone, public.clone(), is_tls);
        let mut server = HttpServer {
            purpose: "pages",
            connections_max: WEB_CONNECTIONS,
            connections_per_address_max: WEB_CONNECTIONS / if is_tls { 4 } else { 1 },
            ..self.server(gate, router, Router::new(), recording)
        };
        let name_client = from_fn_with_state(public, web::name_client);
        server.answers = server.answers.layer(name_client);
        let serve = server.serve(listener, self.requests.clone());
        self.requests.spawn_vital("serving pages", serve);
    }

    /// A server for operators and monitoring.
    fn server(
        &self,
        gate: Gate,
        router: Router,
        beyond: Router,
        recording: Recording,
    ) -> HttpServer<Router> {
        HttpServer {
            answers: router
                .layer(from_fn_with_state(recording, recorded))
                .layer(from_fn(access::logged)),
            beyond: beyond
                .fallback(|| async { StatusCode::SERVICE_UNAVAILABLE })
                .layer(from_fn(access::logged)),
            purpose: "operators",
            gate,
            connections_max: ADMIN_CONNECTIONS,
            connections_per_address_max: usize::MAX,
            connections_left: Arc::new(Semaphore::new(ADMIN_CONNECTIONS)),
            header_timeout: ADMIN_HEADER,
            date: self.admin.bootstrap.env.http_date,
            open: Gauge::default(),
            // Operators and monitoring can observe a node until it has stopped.
            drain: Drain::default(),
        }
    }
}
