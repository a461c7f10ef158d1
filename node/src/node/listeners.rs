//! Opens the listeners of a node.

use std::path::PathBuf;

use placement_model::types::PartitionName;

use crate::config::Config;
use crate::serve::local;
use placement_base::log_messages::log;
use placement_base::net::Listener;
use placement_base::tasks::Tasks;
use placement_cluster::env::Env;
use placement_cluster::{Addresses, StartError};
use placement_peer::tls::{Gate, Gates};

/// Unix socket for operators on this machine, in the data directory.
const SOCKET: &str = "admin.sock";

/// All listeners of a node, bound.
pub(super) struct Listeners {
    pub(super) api: Box<dyn Listener>,
    pub(super) partitions: Vec<(PartitionName, Box<dyn Listener>)>,
    pub(super) peer: Box<dyn Listener>,
    pub(super) socket: Option<Box<dyn Listener>>,
    pub(super) admin: Option<Box<dyn Listener>>,
    pub(super) metrics: Option<Box<dyn Listener>>,
    pub(super) web: Option<Box<dyn Listener>>,
    pub(super) addresses: Addresses,
    bound: Bound,
}

/// The addresses of the listeners, with real port numbers; empty without a listener.
struct Bound {
    api: String,
    peer: String,
    admin: String,
    metrics: String,
    web: String,
    socket: Option<PathBuf>,
    /// Names of partitions and the addresses of their listeners.
    partitions: Vec<(String, String)>,
}

/// The open listeners as the log shows them: address, TLS, and the address for others if it
/// differs.
pub(super) struct OpenListeners {
    api: String,
    peer: String,
    admin: Option<String>,
    socket: Option<String>,
    metrics: Option<String>,
    web: Option<String>,
    partitions: Option<String>,
}

impl OpenListeners {
    pub(super) fn log(&self, node: u64) {
        log!(
            LISTENING,
            node,
            api = self.api,
            peer = self.peer,
            admin = self.admin,
            socket = self.socket,
            metrics = self.metrics,
            web = self.web,
            partitions = self.partitions,
            "listening"
        );
    }
}

impl Listeners {
    /// Describes the listeners for the log.
    pub(super) fn described(&self, gates: &Gates) -> OpenListeners {
        let (bound, advertised) = (&self.bound, &self.addresses);
        let plain = &Gate::Plain;
        let api = |(name, address): &(String, String)| {
            let shown = described(address, address, &gates.api).unwrap_or_default();
            format!("{name} {shown}")
        };
        let partitions: Vec<_> = bound.partitions.iter().map(api).collect();
        let described_api = described(&bound.api, &advertised.api, &gates.api);
        let described_peer = described(&bound.peer, &advertised.peer, &gates.peer);
        OpenListeners {
            api: described_api.unwrap_or_default(),
            peer: described_peer.unwrap_or_default(),
            admin: described(&bound.admin, &advertised.admin, &gates.admin),
            socket: (bound.socket.as_ref()).map(|path| path.display().to_string()),
            metrics: described(&bound.metrics, &bound.metrics, plain),
            web: described(&bound.web, &bound.web, &gates.web),
            partitions: (!partitions.is_empty()).then(|| partitions.join(", ")),
        }
    }

    /// Binds the listeners: the peer listener on the runtime of `tasks`, the others on that of
    /// `requests`.
    pub(super) async fn bind(
        env: &Env,
        config: &Config,
        tasks: &Tasks,
        requests: &Tasks,
    ) -> Result<Self, StartError> {
        let (api, api_address) = listen(env, requests, "the REST API", &config.api.listen).await?;
        let (peer, peer_address) = listen(env, tasks, "other nodes", &config.peer.listen).await?;
        let socket = socket(config, requests).await?;
        let (admin, admin_address) =
            listen_if_set(env, requests, "operators", &config.admin.listen).await?;
        let (metrics, metrics_address) =
            listen_if_set(env, requests, "metrics", &config.metrics.listen).await?;
        let (web, web_address) = listen_if_set(env, requests, "pages", &config.web.listen).await?;
        let (mut partitions, mut partition_addresses) = (Vec::new(), Vec::new());
        for section in &config.partitions {
            let bound = listen_if_set(env, requests, "a partition", &section.listen).await?;
            if let (Some(listener), address) = bound {
                partition_addresses.push((section.name.clone(), address));
                partitions.push((section.name()?, listener));
            }
        }
        Ok(Self {
            api,
            partitions,
            peer,
            socket,
            admin,
            metrics,
            web,
            addresses: Addresses {
                api: advertised(&config.api.advertise, &api_address),
                peer: advertised(&config.peer.advertise, &peer_address),
                admin: advertised(&config.admin.advertise, &admin_address),
            },
            bound: Bound {
                api: api_address,
                peer: peer_address,
                admin: admin_address,
                metrics: metrics_address,
                web: web_address,
                socket: config
                    .admin
                    .has_socket
                    .then(|| config.data_dir.join(SOCKET)),
                partitions: partition_addresses,
            },
        })
    }
}

async fn socket(config: &Config, tasks: &Tasks) -> Result<Option<Box<dyn Listener>>, StartError> {
    if !config.admin.has_socket {
        return Ok(None);
    }
    let path = config.data_dir.join(SOCKET);
    let (wanted, data_dir) = (path.clone(), config.data_dir.clone());
    let bound = tasks.run(async move {
        placement_raft_store::make_durably(&data_dir)?;
        local::bind(&wanted).await
    });
    bound.await.map(Some).map_err(|error| StartError::Listen {
        purpose: "operators",
        address: path.display().to_string(),
        error,
    })
}

async fn listen(
    env: &Env,
    tasks: &Tasks,
    purpose: &'static str,
    address: &str,
) -> Result<(Box<dyn Listener>, String), StartError> {
    let failed = |error| StartError::Listen {
        purpose,
        address: address.to_owned(),
        error,
    };
    let (net, wanted) = (env.net.clone(), address.to_owned());
    let bound = tasks.run(async move { net.bind(&wanted).await });
    let listener = bound.await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    Ok((listener, format!("{host}:{port}")))
}

async fn listen_if_set(
    env: &Env,
    tasks: &Tasks,
    purpose: &'static str,
    address: &str,
) -> Result<(Option<Box<dyn Listener>>, String), StartError> {
    if address.is_empty() {
        return Ok((None, String::new()));
    }
    let (listener, address) = listen(env, tasks, purpose, address).await?;
    Ok((Some(listener), address))
}

fn advertised(configured: &str, bound: &str) -> String {
    if configured.is_empty() {
        bound.to_owned()
    } else {
        configured.to_owned()
    }
}

/// `10.0.0.1:8778 (TLS)`; `None` without a listener.
fn described(bound: &str, advertised: &str, gate: &Gate) -> Option<String> {
    if bound.is_empty() {
        return None;
    }
    let tls = match gate {
        Gate::Plain => "no TLS",
        Gate::Tls {
            plain_too: false, ..
        } => "TLS",
        Gate::Tls {
            plain_too: true, ..
        } => "TLS or no TLS",
    };
    let others = if advertised == bound {
        String::new()
    } else {
        format!(", advertised as {advertised}")
    };
    Some(format!("{bound} ({tls}{others})"))
}
