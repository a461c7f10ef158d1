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
use http::uri::Authority;
use placement_client::{Admin, ApiRequest, Client, MICROVERSION_DEFAULT, encode};
use serde_json::Value;
use tokio::time::sleep;
use uuid::Uuid;

use crate::backup::{PROGRESS_AFTER, PROGRESS_EVERY};
use crate::difference::{difference, has_time, normal};
use crate::render::{is_printed, pairs};

/// Number of paths requested at a time.
const AT_ONCE: usize = 16;
/// Delay before differing paths are requested again: they may just have changed.
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
pub(crate) struct Which {
    /// First service: `http://host:port/path` as in the Keystone catalog, or `unix:/path` of a
    /// node's admin listener, for the partition `default`.
    #[arg(value_name = "URL-A")]
    a: String,
    /// Second service, like the first.
    #[arg(value_name = "URL-B")]
    b: String,
    /// Keystone token for both services; admin listeners do not need one.
    #[arg(
        long,
        env = "OS_TOKEN",
        hide_env_values = true,
        default_value = "admin"
    )]
    token: String,
}

/// Prints the differences. `client` provides the trusted authorities and the timeout.
pub(crate) async fn run(client: &Client, which: Which) -> anyhow::Result<ExitCode> {
    let service = |name, url: &str| {
        let client = service(client, url, &which.token);
        let client = client.with_context(|| format!("{url:?} is not a valid service URL"))?;
        let name = format!("{name} ({url})");
        anyhow::Ok(Service { name, client })
    };
    let mut comparison = Comparison::of([service("A", &which.a)?, service("B", &which.b)?]);
    let differences = comparison.differences(is_printed).await?;
    let answers = comparison.answers;
    is_printed(format!("{differences} differences in {answers} answers\n").as_bytes())?;
    Ok(match differences {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// A client of the service at a URL.
fn service(client: &Client, url: &str, token: &str) -> anyhow::Result<Client> {
    if url.starts_with("unix:") {
        return Ok(Admin::new(client.at(url)?).placement("default"));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let port = match (host.parse::<Authority>()?.port(), scheme) {
        (Some(_), _) => "",
        (None, "https") => ":443",
        (None, _) => ":80",
    };
    let client = client.at(&format!("{scheme}://{host}{port}"))?;
    Ok(client.below(&format!("/{path}")).with_token(token))
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
        let versions: Value = self.client.fetch(asked).await.with_context(other)?;
        let newest = &versions["versions"][0]["max_version"];
        let newest = newest.as_str().with_context(other)?;
        let minor = |version: &str| version.strip_prefix("1.")?.parse::<u32>().ok();
        ensure!(
            minor(newest) >= minor(MICROVERSION_DEFAULT),
            "{name} supports microversions up to {newest:?} only. The comparison uses {MICROVERSION_DEFAULT}, which \
             openstack-placement supports since 8.0.0 (Zed)"
        );
        Ok(())
    }

    /// The response at a path: an object, with its `Last-Modified` if that is the time of the
    /// content; null for 404, a text for another error.
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
        let providers = self.client.providers(&[]).await;
        let providers = providers.with_context(|| self.name.clone())?;
        Ok(providers.into_iter().map(|one| one.uuid).collect())
    }
}

struct Comparison {
    services: [Service; 2],
    /// Number of compared paths.
    answers: usize,
    /// Paths with a difference.
    doubtful: Vec<String>,
    say_at: Instant,
}

impl Comparison {
    fn of(services: [Service; 2]) -> Self {
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
            let found = pairs(&answer["allocations"]);
            consumers.extend(found.map(|(uuid, _)| format!("/allocations/{}", encode(uuid))));
        };
        self.read(providers, find).await?;
        let mut owners = BTreeSet::new();
        let find = |answer: &Value| {
            if let (Some(project), Some(user)) =
                (answer["project_id"].as_str(), answer["user_id"].as_str())
            {
                let project = format!("/usages?project_id={}", encode(project));
                owners.insert(format!("{project}&user_id={}", encode(user)));
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
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use placement_client::{Body, BoxFuture, Transport, TransportError, whole};
    use serde_json::json;

    use super::*;

    const HOST: &str = "/resource_providers/a0000000-0000-4000-8000-000000000001";
    const CONSUMER: &str = "/allocations/c0000000-0000-4000-8000-000000000001";
    const THEN: &str = "Fri, 27 Nov 2026 06:00:00 GMT";

    /// Status, body and `Last-Modified`.
    type Answer = (u16, String, &'static str);
    type Answers = BTreeMap<String, Answer>;

    /// Two services; the second is served below a path prefix.
    #[derive(Clone)]
    struct Fake {
        answers: [Answers; 2],
        /// Responses of the second service to the first request of a path.
        once: Arc<Mutex<Answers>>,
    }

    impl Transport for Fake {
        fn send(
            &self,
            request: Request<Full<Bytes>>,
        ) -> BoxFuture<Result<Response<Body>, TransportError>> {
            let path = request.uri().path_and_query().unwrap().as_str();
            let answer = match path.strip_prefix("/placement") {
                None => self.answers[0].get(path).cloned(),
                Some(path) => {
                    assert_eq!(request.headers()["x-auth-token"], "secret");
                    let once = self.once.lock().unwrap().remove(path);
                    once.or(self.answers[1].get(path).cloned())
                }
            };
            let (status, body, time) = answer.unwrap_or((404, "{}".to_owned(), THEN));
            let answer = Response::builder().status(status);
            let answer = answer
                .header("last-modified", time)
                .body(whole(body.into()));
            Box::pin(async { Ok(answer.unwrap()) })
        }
    }

    fn cloud(prefix: &str) -> Answers {
        let (_, uuid) = HOST.rsplit_once('/').unwrap();
        let (_, consumer) = CONSUMER.rsplit_once('/').unwrap();
        let provider = json!({"uuid": uuid, "name": "cmp-1", "generation": 4, "parent_provider_uuid": null,
            "root_provider_uuid": uuid, "links": [{"rel": "self", "href": format!("{prefix}{HOST}")}]});
        let of_project = json!({"usages": {"INSTANCE": {"VCPU": 2, "consumer_count": 1}}});
        let all = [
            ("/", json!({"versions": [{"max_version": "1.39"}]})),
            (
                "/resource_classes",
                json!({"resource_classes": [{"name": "VCPU"}, {"name": "DISK_GB"}]}),
            ),
            ("/traits", json!({"traits": ["A", "B"]})),
            ("/traits?associated=true", json!({"traits": ["A"]})),
            (
                "/resource_providers",
                json!({ "resource_providers": [provider] }),
            ),
            (HOST, provider.clone()),
            (
                &format!("{HOST}/inventories"),
                json!({"inventories": {"VCPU": {"total": 8, "allocation_ratio": 16.0}}}),
            ),
            (&format!("{HOST}/usages"), json!({"usages": {"VCPU": 2}})),
            (&format!("{HOST}/traits"), json!({"traits": ["A"]})),
            (&format!("{HOST}/aggregates"), json!({"aggregates": []})),
            (
                &format!("{HOST}/allocations"),
                json!({"allocations": {consumer: {"resources": {"VCPU": 2}}}}),
            ),
            (
                CONSUMER,
                json!({"project_id": "p q", "user_id": "u", "consumer_generation": 1,
                "consumer_type": "INSTANCE", "allocations": {uuid: {"resources": {"VCPU": 2}}}}),
            ),
            ("/usages?project_id=p%20q", of_project.clone()),
            ("/usages?project_id=p%20q&user_id=u", of_project.clone()),
        ];
        all.map(|(path, body)| (path.to_owned(), (200, body.to_string(), THEN)))
            .into()
    }

    async fn compare(a: Answers, b: Answers, once: Answers) -> anyhow::Result<Vec<String>> {
        let (answers, once) = ([a, b], Arc::new(Mutex::new(once)));
        let client = Client::over(["http://unused:1"], Fake { answers, once }).unwrap();
        let at = |name: &str, url| Service {
            name: name.to_owned(),
            client: service(&client, url, "secret").unwrap(),
        };
        let services = [at("A", "http://a"), at("B", "https://b/placement/")];
        let (mut comparison, mut lines) = (Comparison::of(services), Vec::new());
        let print = |line: &[u8]| {
            lines.push(String::from_utf8(line.to_vec())?);
            Ok(true)
        };
        let differences = comparison.differences(print).await?;
        assert_eq!(differences, lines.len());
        Ok(lines)
    }

    #[tokio::test(start_paused = true)]
    async fn services_that_answer_alike_do_not_differ() {
        let mut other = cloud("/placement");
        let traits = other.get_mut("/traits").unwrap();
        traits.1 = json!({"traits": ["B", "A"]}).to_string();
        // These responses have no modification time of their own.
        for path in [format!("{HOST}/usages"), format!("{HOST}/aggregates")] {
            other.get_mut(&path).unwrap().2 = "Fri, 27 Nov 2026 06:00:01 GMT";
        }
        let lines = compare(cloud(""), other, Answers::new()).await.unwrap();
        assert_eq!(lines, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_that_differs_is_found() {
        for changed in cloud("")
            .into_keys()
            .filter(|path| path != "/" && path != "/resource_providers")
        {
            let mut other = cloud("");
            let answer = other.get_mut(&changed).unwrap();
            let mut body: Value = serde_json::from_str(&answer.1).unwrap();
            body["more"] = json!("\u{202e}x");
            answer.1 = body.to_string();
            let lines = compare(cloud(""), other, Answers::new()).await.unwrap();
            assert_eq!(
                lines,
                [format!(
                    "{changed}  A: -  B: {{\"more\":\"\\u{{202e}}x\"}}\n"
                )]
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn different_times_and_common_errors_are_differences() {
        let (inventories, traits) = (format!("{HOST}/inventories"), format!("{HOST}/traits"));
        let mut clouds = [cloud(""), cloud("")];
        for cloud in &mut clouds {
            cloud.get_mut(&traits).unwrap().0 = 500;
        }
        let [one, mut other] = clouds;
        other.get_mut(&inventories).unwrap().2 = "Fri, 27 Nov 2026 06:00:01 GMT";
        let lines = compare(one, other, Answers::new()).await.unwrap();
        let text = lines.concat();
        let times = "A: {\"last-modified\":\"Fri, 27 Nov 2026 06:00:00 GMT\"}  \
                     B: {\"last-modified\":\"Fri, 27 Nov 2026 06:00:01 GMT\"}";
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0], format!("{inventories}  {times}\n"));
        assert!(lines[1].contains("500 Internal Server Error"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn missing_providers_are_found_in_both_directions() {
        let mut empty = cloud("");
        empty.retain(|path, _| !path.starts_with(HOST));
        let none = json!({ "resource_providers": [] }).to_string();
        empty.insert("/resource_providers".to_owned(), (200, none, THEN));
        let lines = compare(cloud(""), empty.clone(), Answers::new())
            .await
            .unwrap();
        let back = compare(empty, cloud(""), Answers::new()).await.unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with(&format!("{HOST}  A: {{\"generation\":4,")),
            "{lines:?}"
        );
        assert!(lines[0].ends_with("B: 404 Not Found\n"), "{lines:?}");
        assert!(
            back[0].starts_with(&format!("{HOST}  A: 404 Not Found  B: {{")),
            "{back:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn data_that_changes_during_the_comparison_is_requested_again() {
        let before = (200, json!({"aggregates": ["older"]}).to_string(), THEN);
        let once = Answers::from([(format!("{HOST}/aggregates"), before)]);
        let lines = compare(cloud(""), cloud(""), once).await.unwrap();
        assert_eq!(lines, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn services_that_cannot_be_compared_are_named_with_the_reason() {
        let old = json!({"versions": [{"max_version": "1.36"}]}).to_string();
        for (path, status, body, reason) in [
            (
                "/",
                200,
                "<html>",
                "B does not respond like the Placement API",
            ),
            ("/", 200, "{}", "B does not respond like the Placement API"),
            (
                "/",
                200,
                &old,
                "B supports microversions up to \"1.36\" only",
            ),
            ("/traits", 401, "", "Set OS_TOKEN"),
            (
                "/traits",
                200,
                "[]",
                "B: the response to GET /traits is not an object",
            ),
            (
                "/resource_providers",
                200,
                "{}",
                "B: the answer to GET /resource_providers cannot be understood",
            ),
        ] {
            let mut other = cloud("");
            other.insert(path.to_owned(), (status, body.to_owned(), THEN));
            let error = compare(cloud(""), other, Answers::new()).await.unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(reason), "{error}");
        }
        let client = Client::new(["http://unused:1"]).unwrap();
        for url in ["", "ftp://a", "unix:here", "http://a b/"] {
            assert!(service(&client, url, "secret").is_err(), "{url:?}");
        }
    }
}
