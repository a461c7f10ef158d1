//! `placementctl compare`: checks that two services of the Placement API return the same data.

use std::collections::BTreeSet;
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use futures::future::try_join;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use http::StatusCode;
use placement_client::{Admin, ApiRequest, Client, MICROVERSION_DEFAULT, encode};
use placement_wire::upstream::{Allocations, Versions};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;
use uuid::Uuid;

use crate::address::endpoint_and_path;
use crate::backup::{PROGRESS_AFTER, PROGRESS_EVERY};
use crate::difference::{difference, has_time, normal};
use crate::render::{Misuse, is_printed};

/// Number of paths requested at a time.
const AT_ONCE: usize = 16;
/// Delay before paths with a difference are requested again: their data may have changed between
/// the two requests.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const LISTS: [&str; 3] = ["/resource_classes", "/traits", "/traits?associated=true"];
/// Paths below a provider. If one service lacks the provider, only the first two are requested.
const PARTS: [&str; 6] = [
    "",
    "/allocations",
    "/inventories",
    "/usages",
    "/traits",
    "/aggregates",
];

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// URL of the first service: `http://host:port/path` as in the Keystone catalog, or
    /// `unix:/path` for the Unix socket of a node. Through a socket, the command reads the
    /// partition `default`.
    #[arg(value_name = "URL-A")]
    a: String,
    /// URL of the second service, in the same form.
    #[arg(value_name = "URL-B")]
    b: String,
    /// Keystone token that is sent to both services. A Unix socket does not need a token.
    #[arg(
        long,
        env = "OS_TOKEN",
        hide_env_values = true,
        default_value = "admin"
    )]
    token: String,
}

/// Prints the differences. `client` provides the trusted authorities and the timeout.
pub(crate) async fn run(client: &Client, args: CompareArgs) -> anyhow::Result<ExitCode> {
    let service = |name, url: &str| {
        let client = service(client, url, &args.token)
            .map_err(|error| Misuse(format!("{url:?} is not a valid service URL: {error:#}")))?;
        let name = format!("{name} ({url})");
        anyhow::Ok(Service { name, client })
    };
    let mut comparison = Comparison::new([service("A", &args.a)?, service("B", &args.b)?]);
    let differences = comparison.differences(is_printed).await?;
    let answers = comparison.answers;
    is_printed(format!("{differences} differences in {answers} responses\n").as_bytes())?;
    Ok(match differences {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// A client of the service at a URL.
fn service(client: &Client, url: &str, token: &str) -> anyhow::Result<Client> {
    if url.starts_with("unix:") {
        return Ok(Admin::new(client.for_endpoint(url)?).placement("default"));
    }
    let (endpoint, path) = endpoint_and_path(url)?;
    let client = client.for_endpoint(&endpoint)?;
    Ok(client.with_prefix(&path).with_token(token))
}

struct Service {
    /// Name and URL, for messages.
    name: String,
    client: Client,
}

impl Service {
    async fn check_version(&self) -> anyhow::Result<()> {
        let name = &self.name;
        let asked = ApiRequest::get("/").microversion("1.0");
        let other = || format!("{name} does not respond like the Placement API");
        let answer: Versions = self.client.fetch(asked).await.with_context(other)?;
        let newest = answer.versions.first().with_context(other)?;
        let newest = &*newest.max_version;
        let minor = |version: &str| version.strip_prefix("1.")?.parse::<u32>().ok();
        ensure!(
            minor(newest) >= minor(MICROVERSION_DEFAULT),
            "{name} supports microversions up to {newest:?} only. The comparison uses {MICROVERSION_DEFAULT}, which \
             openstack-placement supports since 8.0.0 (Zed)"
        );
        Ok(())
    }

    /// The response at a path: an object, to which `last-modified` is added if that header is the
    /// time at which the content changed; null for 404, a text for another error.
    async fn answer(&self, path: &str) -> anyhow::Result<Value> {
        let name = &self.name;
        let answer = match self.client.call(ApiRequest::get(path)).await {
            Ok(answer) => answer,
            Err(error) => match error.status() {
                Some(StatusCode::NOT_FOUND) => return Ok(Value::Null),
                Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => bail!(
                    "{name} rejects this token for {path}: {error}. Set OS_TOKEN to the token of an administrator, as \
                     printed by `openstack token issue -f value -c id`"
                ),
                Some(_) => return Ok(format!("{name}: {error}").into()),
                None => return Err(error).with_context(|| name.clone()),
            },
        };
        let body = answer.json().with_context(|| name.clone())?;
        let mut body = match normal(body) {
            Value::Object(body) => body,
            _ => bail!("{name}: the response to GET {path} is not an object"),
        };
        if let Some(time) = answer.header("last-modified")
            && has_time(path, &body)
        {
            body.insert("last-modified".to_owned(), time.into());
        }
        Ok(body.into())
    }

    async fn providers(&self) -> anyhow::Result<BTreeSet<Uuid>> {
        let providers = self
            .client
            .providers(&[])
            .await
            .with_context(|| self.name.clone())?;
        Ok(providers.into_iter().map(|one| one.uuid).collect())
    }
}

struct Comparison {
    services: [Service; 2],
    /// Number of compared paths.
    answers: usize,
    /// Paths with a difference, which are requested again.
    doubtful: Vec<String>,
    say_at: Instant,
}

impl Comparison {
    fn new(services: [Service; 2]) -> Self {
        Self {
            services,
            answers: 0,
            doubtful: Vec::new(),
            say_at: Instant::now() + PROGRESS_AFTER,
        }
    }

    /// Passes a line for each difference to `print` until it returns false. Returns the number of
    /// differences.
    async fn differences(
        &mut self,
        mut print: impl FnMut(&[u8]) -> anyhow::Result<bool>,
    ) -> anyhow::Result<usize> {
        let [a, b] = &self.services;
        try_join(a.check_version(), b.check_version()).await?;
        self.read_all().await?;
        let doubtful = std::mem::take(&mut self.doubtful);
        if doubtful.is_empty() {
            return Ok(0);
        }
        sleep(AGAIN_AFTER).await;
        let mut differences = 0;
        let mut again = pin!(pairs_of(&self.services, doubtful));
        while let Some((path, [a, b])) = again.try_next().await? {
            if let Some(line) = difference(&path, [&a, &b]) {
                differences += 1;
                if !print(line.as_bytes())? {
                    break;
                }
            }
        }
        Ok(differences)
    }

    async fn read_all(&mut self) -> anyhow::Result<()> {
        self.read(LISTS.map(str::to_owned), |_| ()).await?;
        let [a, b] = &self.services;
        let (a, b) = try_join(a.providers(), b.providers()).await?;
        let providers = a.union(&b).flat_map(|uuid| {
            let is_in_both = a.contains(uuid) && b.contains(uuid);
            let parts = if is_in_both { &PARTS[..] } else { &PARTS[..2] };
            let path = move |part| format!("/resource_providers/{uuid}{part}");
            parts.iter().map(path)
        });
        let mut consumers = BTreeSet::new();
        let find = |answer: &Value| {
            let found = Allocations::deserialize(answer).unwrap_or_default();
            let uuids = found.allocations.keys();
            consumers.extend(uuids.map(|uuid| format!("/allocations/{}", encode(uuid))));
        };
        self.read(providers, find).await?;
        let mut owners = BTreeSet::new();
        let find = |answer: &Value| {
            let found = Allocations::deserialize(answer).unwrap_or_default();
            if let (Some(project), Some(user)) = (found.project_id, found.user_id) {
                let project = format!("/usages?project_id={}", encode(&project));
                owners.insert(format!("{project}&user_id={}", encode(&user)));
                owners.insert(project);
            }
        };
        self.read(consumers, find).await?;
        self.read(owners, |_| ()).await
    }

    /// Compares the responses at these paths, and passes each to `take`.
    async fn read(
        &mut self,
        paths: impl IntoIterator<Item = String>,
        mut take: impl FnMut(&Value),
    ) -> anyhow::Result<()> {
        let mut pairs = pin!(pairs_of(&self.services, paths));
        while let Some((path, answers)) = pairs.try_next().await? {
            answers.iter().for_each(&mut take);
            self.answers += 1;
            if difference(&path, answers.each_ref()).is_some() {
                self.doubtful.push(path);
            }
            if Instant::now() >= self.say_at {
                self.say_at = Instant::now() + PROGRESS_EVERY;
                let doubtful = self.doubtful.len();
                eprintln!("{} responses, {doubtful} to check again", self.answers);
            }
        }
        Ok(())
    }
}

/// The responses of both services at these paths, requested concurrently, in order.
fn pairs_of(
    services: &[Service; 2],
    paths: impl IntoIterator<Item = String>,
) -> impl Stream<Item = anyhow::Result<(String, [Value; 2])>> {
    let [a, b] = services;
    let ask = move |path: String| async move {
        let (a, b) = try_join(a.answer(&path), b.answer(&path)).await?;
        Ok((path, [a, b]))
    };
    stream::iter(paths).map(ask).buffered(AT_ONCE)
}

#[cfg(test)]
mod tests;
