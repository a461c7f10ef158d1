//! `placementd replay`: serves the REST API and the web pages over a backup, for tools that query a
//! cluster.
//!
//! Anyone who reaches it may read everything, like operators at their listener. So it listens only
//! on loopback, and rejects requests of web pages.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use placement_model::cluster::ClusterChanges;
use placement_model::types::{PartitionId, PathPrefix, Routes};
use placement_model::{Cluster, Outcome, Stamped};
use placement_raft_store::{Applier, Backup, Rules, Until};
use prometheus_client::metrics::gauge::Gauge;
use tokio::runtime::Builder;
use tokio::signal::ctrl_c;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::moment::PastPartition;
use super::print;
use super::restore::{sizes, warn};
use crate::Env;
use crate::admin::{
    NetworkListener, backup_report, described_partition, enter, failed, with_pages,
};
use crate::partitions::prefix_for_operators;
use crate::serve::{Drain, HttpServer};
use placement_api::http::{Api, ApiSettings, Identity, Service, openapi};
use placement_audit::access::Peer;
use placement_audit::{Audit, Listener};
use placement_base::backend::{PlacementIndex, Position, View};
use placement_base::settings::is_loopback;
use placement_base::tasks::Tasks;
use placement_base::world;
use placement_peer::tls::Gate;
use placement_wire::Partition;

/// How often a long read reports its progress.
const PROGRESS: Duration = Duration::from_secs(2);
/// Maximum number of connections.
const CONNECTIONS: usize = 256;
/// Deadline for the head of a request.
const HEADER: Duration = Duration::from_secs(30);

/// Serves a moment of a backup until the process is asked to stop.
pub(crate) fn run(from: PathBuf, until: Until, listen: &str) -> anyhow::Result<()> {
    if !is_loopback(listen) {
        bail!(
            "other hosts can reach {listen}, and a replay requires no token: they could read \
            everything. Listen on loopback, e.g. 127.0.0.1:8778, and connect from other hosts \
            through `ssh -L`"
        );
    }
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads")?;
    let done = runtime.block_on(async {
        tokio::select! {
            biased;
            interrupted = ctrl_c() => interrupted.context("cannot handle SIGINT"),
            done = serve(from, until, listen) => done,
        }
    });
    // An unfinished read is abandoned.
    runtime.shutdown_background();
    done
}

async fn serve(from: PathBuf, until: Until, listen: &str) -> anyhow::Result<()> {
    let env = Env::production();
    // Before the long read: the address may be in use.
    let listener = env
        .net
        .bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    let url = format!("http://{}", listener.local_addr()?);
    let backup = read(&env, from, until).await?;
    print(&format!("{}\n", backup_report(&backup.info)))?;
    warn(&backup);
    let server = HttpServer {
        answers: router(&env, &backup, listen, &url)?,
        beyond: Router::new().fallback(|| async { StatusCode::SERVICE_UNAVAILABLE }),
        purpose: "the replay",
        gate: Gate::Plain,
        connections_max: CONNECTIONS,
        connections_per_address_max: CONNECTIONS,
        connections_left: Arc::new(Semaphore::new(CONNECTIONS)),
        header_timeout: HEADER,
        date: true,
        open: Gauge::default(),
        drain: Drain::default(),
    };
    server.serve(listener, Tasks::on_current_runtime()).await;
    Ok(())
}

/// Applies the log by the ordinary rules, and counts the progress.
#[derive(Default)]
struct Counting(AtomicU64);

impl Applier for Counting {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        self.0.store(index, Ordering::Relaxed);
        Rules.apply(index, cluster, stamped)
    }
}

async fn read(env: &Env, from: PathBuf, until: Until) -> anyhow::Result<Backup> {
    let shown = from.display().to_string();
    let counting = Arc::new(Counting::default());
    let applier = counting.clone();
    let read = move || Backup::read(&from, until, &*applier);
    let mut reading = pin!(world::compute(|work| env.offload.run(work), read));
    loop {
        match timeout(PROGRESS, reading.as_mut()).await {
            Ok(read) => return Ok(read.context("reading panicked; this is a bug")??),
            Err(_) => match counting.0.load(Ordering::Relaxed) {
                0 => eprintln!("placementd: reading {shown}"),
                index => eprintln!("placementd: reading {shown}: entry {index} of its log"),
            },
        }
    }
}

/// The answer to a request of an operator that needs a running cluster.
fn no_cluster() -> Response {
    let detail = "this is `placementd replay`, which serves the content of a backup: it has no \
        members, settings or logs, and a partition of the backup only if `placementctl partitions` \
        lists it. Use commands that read content, such as `placementctl capacity`";
    failed(StatusCode::NOT_FOUND, detail).into_response()
}

/// Serves the API of each partition at the path that operators use, because the hosts in its routes
/// do not lead to this machine; the default partition's API also at the root. The pages read the
/// same routes and the list of partitions.
fn router(env: &Env, backup: &Backup, listen: &str, url: &str) -> anyhow::Result<Router> {
    let info = &backup.info;
    let cluster = &backup.applied.cluster;
    let policy = Arc::new(placement_api::http::read_policy(
        &ApiSettings::default().policy,
    )?);
    let whole = View {
        state: cluster.clone().into(),
        position: Position {
            index: Some(PlacementIndex {
                epoch: info.epoch,
                index: info.index,
            }),
            node: 0,
            known_leader: None,
            staleness: None,
        },
    };
    let api = |id: PartitionId, prefix: &PathPrefix| {
        let moment = Arc::new(PastPartition {
            view: (whole.clone().in_partition(id)).expect("it is one of the cluster's"),
            at: info.last_stamp.unwrap_or_default(),
        });
        let mut settings = ApiSettings::default();
        settings.public.prefix = prefix.clone();
        Service::new(Api {
            write: moment.clone(),
            read: moment.clone(),
            ledger: moment.clone(),
            readiness: moment,
            clock: env.clock.clone(),
            ids: env.ids.clone(),
            offload: env.offload.clone(),
            background: Arc::new(Tasks::on_current_runtime()),
            keystone: None,
            policy: policy.clone(),
            audit: Audit::off(),
            settings,
        })
    };
    let (mut apis, mut partitions) = (Vec::new(), Vec::new());
    for (id, state) in cluster.states() {
        let name = cluster.name_of(id).context("a partition has no name")?;
        let prefix = prefix_for_operators(&name);
        let shown = if id.is_default() { "" } else { prefix.as_str() };
        let held = sizes(cluster, id, state)?;
        print(&format!("{held}, {url}{shown}\n"))?;
        let served = api(id, &prefix);
        partitions.push(Partition {
            id: Some(id.0),
            ..described_partition(name.as_str(), Some(state), &Routes::default(), None)
        });
        apis.push((prefix, served));
    }
    let apis: Arc<[(PathPrefix, Service)]> = apis.into();
    let root = api(PartitionId::DEFAULT, &PathPrefix::default());
    let answer = move |Extension(peer): Extension<Peer>, request: Request| async move {
        let path = request.uri().path();
        let found = apis
            .iter()
            .find(|(prefix, _)| prefix.rest_of(path).is_some());
        if found.is_none() && path.starts_with("/v1/") {
            return no_cluster();
        }
        let api = found.map_or(&root, |(_, api)| api);
        let operator = Identity::operator(None);
        api.respond_to_authorized(request, Some(peer), Listener::Admin, operator)
            .await
    };
    let list = move || async move { Json(partitions) };
    let routes = openapi("")
        .route("/v1/partitions", get(list))
        .fallback(answer);
    let admits = NetworkListener::new(false, &[listen]);
    Ok(with_pages(routes).layer(from_fn_with_state(admits, enter)))
}
