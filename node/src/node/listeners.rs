//! Opens the listeners of a node.

use placement_model::types::PartitionName;

use crate::config::Config;
use crate::serve::local;
use placement_base::log_messages::log;
use placement_base::net::Listener;
use placement_base::tasks::Tasks;
use placement_cluster::env::Env;
use placement_cluster::{Addresses, StartError};

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
}

impl Listeners {
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
        let (metrics, _) = listen_if_set(env, requests, "metrics", &config.metrics.listen).await?;
        let (web, web_address) = listen_if_set(env, requests, "pages", &config.web.listen).await?;
        if web.is_some() {
            log!(LISTENING, pages = web_address, "listening");
        }
        let mut partitions = Vec::new();
        for section in &config.partitions {
            let bound = listen_if_set(env, requests, "a partition", &section.listen).await?;
            if let (Some(listener), address) = bound {
                log!(
                    LISTENING,
                    partition = section.name,
                    api = address,
                    "listening"
                );
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
                api: advertised(&config.api.advertise, api_address),
                peer: advertised(&config.peer.advertise, peer_address),
                admin: advertised(&config.admin.advertise, admin_address),
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

fn advertised(configured: &str, bound: String) -> String {
    if configured.is_empty() {
        bound
    } else {
        configured.to_owned()
    }
}
