//! Which requests the client repeats, shown with a fake transport.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use placement_client::{
    ApiRequest, ApiResponse, Body, BoxFuture, Client, Error, Obstacle, Transport, TransportError,
    whole,
};

type Answer = Result<Response<Bytes>, TransportError>;

/// Returns its responses in order and records the requests.
#[derive(Clone)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Request<Full<Bytes>>>>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            asked: Arc::default(),
        }
    }

    fn client(&self) -> Client {
        Client::over(
            ["http://one:1", "http://two:2", "http://three:3"],
            self.clone(),
        )
        .unwrap()
        .with_patience(Duration::from_secs(5))
    }

    fn hosts(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let host = |request: &Request<_>| request.uri().host().unwrap().to_owned();
        asked.iter().map(host).collect()
    }

    fn header(&self, nth: usize, name: &str) -> Option<String> {
        let asked = self.asked.lock().unwrap();
        let value = asked[nth].headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }
}

impl Transport for Script {
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Body>, TransportError>> {
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        let answer = answer.expect("the client asks no more often than expected");
        Box::pin(async move { answer.map(|answer| answer.map(whole)) })
    }
}

/// Nodes that refuse connections, and one that accepts requests and never answers.
#[derive(Clone, Default)]
struct OneHangs(Arc<AtomicUsize>);

impl Transport for OneHangs {
    fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<Result<Response<Body>, TransportError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let hangs = request.uri().host() == Some("three");
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Err(TransportError::NotSent("connection refused".into()))
        })
    }
}

fn refused() -> Answer {
    Err(TransportError::NotSent("connection refused".into()))
}

fn lost() -> Answer {
    Err(TransportError::Lost("connection reset".into()))
}

fn answered(index: &str) -> Answer {
    let response = Response::builder()
        .header("placement-index", index)
        .body(Bytes::from_static(b"{}"));
    Ok(response.unwrap())
}

fn unavailable(code: &str) -> Answer {
    let body = format!(
        r#"{{"errors": [{{"status": 503, "detail": "no leader", "code": "placement.unavailable.{code}"}}]}}"#
    );
    let response = Response::builder()
        .status(StatusCode::SERVICE_UNAVAILABLE)
        .header("retry-after", "1")
        .body(Bytes::from(body));
    Ok(response.unwrap())
}

fn unauthorized() -> Answer {
    let response = Response::builder().status(StatusCode::UNAUTHORIZED);
    Ok(response.body(Bytes::new()).unwrap())
}

/// The client with the tokens `1`, `2` and so on, of which at most `count` can be had.
fn with_numbers(client: Client, count: usize) -> Client {
    let calls = AtomicUsize::new(0);
    client.with_tokens(move || {
        let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            if number > count {
                return Err("Keystone does not answer");
            }
            Ok(number.to_string())
        }
    })
}

async fn write(client: &Client) -> Result<ApiResponse, Error> {
    client.request(ApiRequest::post("/allocations")).await
}

async fn read(client: &Client) -> Result<ApiResponse, Error> {
    client.request(ApiRequest::get("/traits")).await
}

#[tokio::test]
async fn the_next_node_is_kept_after_a_refused_connection() {
    let script = Script::new([refused(), answered("1.1"), answered("1.2")]);
    let client = script.client();
    write(&client).await.unwrap();
    write(&client).await.unwrap();
    assert_eq!(script.hosts(), ["one", "two", "two"]);
}

#[tokio::test]
async fn a_header_of_the_request_replaces_that_of_the_client() {
    let script = Script::new([answered("1.1")]);
    let request = ApiRequest::get("/traits").microversion("1.6");
    script.client().request(request).await.unwrap();
    let asked = script.asked.lock().unwrap();
    let versions = asked[0].headers().get_all("openstack-api-version");
    assert_eq!(versions.iter().collect::<Vec<_>>(), ["placement 1.6"]);
}

#[tokio::test]
async fn a_write_with_an_unknown_outcome_is_not_repeated() {
    for doubt in [lost(), unavailable("outcome_unknown")] {
        let script = Script::new([doubt]);
        let result = write(&script.client()).await;
        assert!(
            matches!(result, Err(Error::OutcomeUnknown { .. })),
            "{result:?}"
        );
        assert_eq!(script.hosts().len(), 1);
    }
}

#[tokio::test]
async fn a_node_that_does_not_answer_a_write_is_not_asked_first_again() {
    let script = Script::new([lost(), answered("1.1"), answered("1.2")]);
    let client = script.client();
    write(&client).await.unwrap_err();
    write(&client).await.unwrap();
    write(&client).await.unwrap();
    assert_eq!(script.hosts(), ["one", "two", "two"]);
}

#[tokio::test]
async fn a_429_of_a_node_is_repeated_and_one_of_a_proxy_is_returned() {
    let too_many = |code: &str| {
        let body = format!(r#"{{"errors": [{{"status": 429, "code": "{code}"}}]}}"#);
        let response = Response::builder().status(StatusCode::TOO_MANY_REQUESTS);
        Ok(response.body(Bytes::from(body)).unwrap())
    };
    let ours = too_many("placement.too_many_requests");
    let script = Script::new([ours, answered("1.1")]);
    write(&script.client()).await.unwrap();
    assert_eq!(script.hosts(), ["one", "two"]);

    let script = Script::new([too_many("of.a.proxy")]);
    let answer = write(&script.client()).await.unwrap();
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_write_with_an_unknown_outcome_is_repeated_if_allowed() {
    let script = Script::new([lost(), unavailable("outcome_unknown"), answered("1.1")]);
    write(&script.client().repeating_unknown()).await.unwrap();
    assert_eq!(script.hosts(), ["one", "two", "three"]);
}

#[tokio::test]
async fn attempts_of_a_write_that_may_be_repeated_share_a_request_id() {
    const ID: &str = "x-openstack-request-id";
    let script = Script::new([lost(), answered("1.1"), answered("1.2"), answered("1.3")]);
    let client = script.client().repeating_unknown();
    write(&client).await.unwrap();
    write(&client).await.unwrap();
    let given = ApiRequest::post("/allocations").header(ID, "req-of-the-caller");
    client.request(given).await.unwrap();
    let ids: Vec<_> = (0..4).map(|nth| script.header(nth, ID).unwrap()).collect();
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2]);
    assert!(ids[0].starts_with("req-") && ids[0].len() == 40, "{ids:?}");
    assert_eq!(ids[3], "req-of-the-caller");
}

#[tokio::test]
async fn a_write_that_is_not_repeated_has_no_request_id() {
    let script = Script::new([answered("1.1")]);
    write(&script.client()).await.unwrap();
    assert_eq!(script.header(0, "x-openstack-request-id"), None);
}

#[tokio::test]
async fn later_harmless_attempts_do_not_resolve_an_unknown_outcome() {
    let script = Script::new([lost(), refused(), refused()]);
    let client = script
        .client()
        .repeating_unknown()
        .with_patience(Duration::ZERO);
    let result = write(&client).await;
    assert!(
        matches!(result, Err(Error::OutcomeUnknown { .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_read_is_always_repeated() {
    let script = Script::new([lost(), unavailable("outcome_unknown"), answered("1.1")]);
    read(&script.client()).await.unwrap();
    assert_eq!(script.hosts(), ["one", "two", "three"]);
}

#[tokio::test]
async fn an_uncommitted_write_goes_to_the_next_node_and_waits_when_all_ask_for_time() {
    let nothing = || unavailable("nothing_committed");
    let script = Script::new([nothing(), nothing(), nothing(), answered("1.1")]);
    let started = Instant::now();
    write(&script.client()).await.unwrap();
    assert_eq!(script.hosts(), ["one", "two", "three", "one"]);
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_write_without_effect_goes_to_the_next_node() {
    for code in ["busy", "identity"] {
        let script = Script::new([unavailable(code), answered("1.1")]);
        write(&script.client()).await.unwrap();
        assert_eq!(script.hosts(), ["one", "two"]);
    }
}

#[tokio::test]
async fn a_request_ends_although_a_node_hangs_for_longer_than_others_pause() {
    let asked = OneHangs::default();
    let client = Client::over(
        ["http://one:1", "http://two:2", "http://three:3"],
        asked.clone(),
    );
    let client = (client.unwrap())
        .with_patience(Duration::ZERO)
        .with_attempt_timeout(Duration::from_millis(200));
    let ended = tokio::time::timeout(Duration::from_secs(10), read(&client)).await;
    let error = ended.expect("the request ends").unwrap_err().to_string();
    assert!(error.contains("three:3: no answer within 200ms"), "{error}");
    assert_eq!(asked.0.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn without_patience_each_node_is_asked_once() {
    let nothing = || unavailable("nothing_committed");
    let script = Script::new([nothing(), nothing(), nothing()]);
    let result = write(&script.client().with_patience(Duration::ZERO)).await;
    assert!(
        matches!(result, Err(Error::NothingCommitted { .. })),
        "{result:?}"
    );
    assert_eq!(script.hosts(), ["one", "two", "three"]);
}

#[tokio::test]
async fn an_answer_is_reported_rather_than_a_failed_connection() {
    let without_patience = |script: &Script| script.client().with_patience(Duration::ZERO);
    let some = || Script::new([unavailable("nothing_committed"), refused(), refused()]);
    let error = read(&without_patience(&some())).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "http://one:1: 503 Service Unavailable: no leader; http://two:2: connection refused; \
         http://three:3: connection refused"
    );
    let error = write(&without_patience(&some())).await.unwrap_err();
    assert!(matches!(error, Error::NothingCommitted { .. }), "{error:?}");

    let none = || Script::new([refused(), refused(), refused()]);
    for error in [
        read(&without_patience(&none())).await.unwrap_err(),
        write(&without_patience(&none())).await.unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(error.starts_with("no node answered: "), "{error}");
    }
}

fn unusable(reason: &str) -> Answer {
    Err(TransportError::Unusable(
        Obstacle::NoSocket,
        reason.to_owned(),
    ))
}

#[tokio::test]
async fn an_obstacle_at_each_endpoint_ends_a_request_at_once() {
    let script = Script::new(["a", "b", "c"].map(unusable));
    let started = Instant::now();
    let error = read(&script.client()).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(
        error.to_string(),
        "no node answered: http://one:1: a; http://two:2: b; http://three:3: c"
    );
    let Error::Unreachable { obstacles, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(obstacles, [Obstacle::NoSocket; 3]);
}

#[tokio::test]
async fn an_endpoint_with_an_obstacle_is_not_asked_again() {
    let others = [refused(), refused(), refused(), refused()];
    let answers = [unusable("no socket")].into_iter().chain(others);
    let script = Script::new(answers.chain([answered("1.1")]));
    write(&script.client()).await.unwrap();
    let [first, others @ ..] = &script.hosts()[..] else {
        panic!("no node was asked");
    };
    assert_eq!(first, "one");
    assert!(!others.contains(first), "{others:?}");
}

#[tokio::test]
async fn a_notice_names_the_failures_after_two_seconds() {
    let busy = (0..9).map(|_| unavailable("busy"));
    let script = Script::new(busy.chain([answered("1.1")]));
    let notices = Arc::new(Mutex::new(Vec::new()));
    let noted = notices.clone();
    let client = script
        .client()
        .with_notice(move |notice| noted.lock().unwrap().push(notice.to_owned()));
    read(&client).await.unwrap();
    let notices = notices.lock().unwrap();
    let [notice] = &notices[..] else {
        panic!("{notices:?}");
    };
    let start =
        "no result yet; trying for 3 s more: http://one:1: 503 Service Unavailable: no leader; ";
    assert!(notice.starts_with(start), "{notice}");
}

#[tokio::test]
async fn durations_beyond_the_clock_are_accepted() {
    let mut busy = unavailable("busy").unwrap();
    let seconds = u64::MAX.to_string().parse().unwrap();
    busy.headers_mut().insert("retry-after", seconds);
    let script = Script::new([Ok(busy), answered("1.1")]);
    let client = script.client().with_patience(Duration::MAX);
    write(&client).await.unwrap();
    assert_eq!(script.hosts(), ["one", "two"]);
}

#[tokio::test]
async fn a_token_that_cannot_be_sent_is_not_in_the_error() {
    let script = Script::new([]);
    let client = script.client().with_token("secret\n");
    let error = read(&client).await.unwrap_err();
    assert!(matches!(error, Error::BadRequest(_)), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn a_session_carries_the_greatest_index_it_has_seen() {
    let answers = [
        answered("7.9"),
        answered("7.12"),
        answered("7.10"),
        answered("7.12"),
    ];
    let script = Script::new(answers);
    let client = script.client().with_session();
    write(&client).await.unwrap();
    for _ in 0..3 {
        read(&client).await.unwrap();
    }
    assert_eq!(script.header(0, "placement-min-index"), None);
    assert_eq!(
        script.header(1, "placement-min-index").as_deref(),
        Some("7.9")
    );
    assert_eq!(
        script.header(2, "placement-min-index").as_deref(),
        Some("7.12")
    );
    assert_eq!(
        script.header(3, "placement-min-index").as_deref(),
        Some("7.12")
    );
    assert_eq!(
        script.header(3, "placement-consistency").as_deref(),
        Some("session")
    );
}

#[tokio::test]
async fn a_session_takes_tokens_from_successes_only() {
    let refusal = Response::builder()
        .status(StatusCode::PRECONDITION_FAILED)
        .header("placement-index", "8.1")
        .body(Bytes::new());
    let answers = [answered("7.9"), Ok(refusal.unwrap()), answered("7.9")];
    let script = Script::new(answers);
    let client = script.client().with_session();
    for _ in 0..3 {
        read(&client).await.unwrap();
    }
    assert_eq!(
        script.header(2, "placement-min-index").as_deref(),
        Some("7.9")
    );
}

#[tokio::test]
async fn a_token_is_requested_at_first_use_and_again_after_a_401() {
    let refused_later = [
        answered("1.1"),
        unauthorized(),
        answered("1.2"),
        answered("1.3"),
    ];
    let script = Script::new(refused_later);
    let client = with_numbers(script.client(), 2);
    for _ in 0..3 {
        write(&client.clone()).await.unwrap();
    }
    let sent = [0, 1, 2, 3].map(|nth| script.header(nth, "x-auth-token").unwrap());
    assert_eq!(sent, ["1", "1", "2", "2"]);
}

#[tokio::test]
async fn a_second_401_is_returned() {
    let script = Script::new([unauthorized(), unauthorized()]);
    let answer = read(&with_numbers(script.client(), 9)).await.unwrap();
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);

    let script = Script::new([unauthorized()]);
    let answer = read(&script.client().with_token("fixed")).await.unwrap();
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_request_without_a_token_is_not_sent() {
    let script = Script::new([]);
    let error = write(&with_numbers(script.client(), 0)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no token: Keystone does not answer"
    );
}

#[tokio::test]
async fn a_missing_token_does_not_resolve_an_unknown_outcome() {
    let script = Script::new([lost(), unauthorized()]);
    let client = with_numbers(script.client().repeating_unknown(), 1);
    let result = write(&client).await;
    assert!(
        matches!(result, Err(Error::OutcomeUnknown { .. })),
        "{result:?}"
    );
}
