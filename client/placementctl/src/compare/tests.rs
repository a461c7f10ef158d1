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
        let answer = Response::builder()
            .status(status)
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
    let (mut comparison, mut lines) = (Comparison::new(services), Vec::new());
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
            "B: the response to GET /resource_providers cannot be parsed",
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
