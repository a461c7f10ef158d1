//! Errors as clients see them: the sentence of the status, an empty line, the message on one line.
//! The sentences are those of OpenStack Placement 16.0.0.

use placement_api::http::ApiSettings;
use serde_json::{Value, json};

use crate::cloud::{Answer, Ask, Cloud, uuid};

const BAD_REQUEST: &str = "The server could not comply with the request since it is either \
                           malformed or otherwise incorrect.";
const CONFLICT: &str = "There was a conflict when trying to complete your request.";
const NOT_FOUND: &str = "The resource could not be found.";
const FORBIDDEN: &str = "Access was denied to this resource.";

/// A message after the sentence of its status.
fn framed(sentence: &str, message: &str) -> String {
    format!("{sentence}\n\n {message}  ")
}

impl Answer {
    fn detail(&self) -> String {
        let detail = &self.json()["errors"][0]["detail"];
        detail.as_str().unwrap_or_default().to_owned()
    }

    /// The text that osc-placement shows.
    fn shown_by_osc(&self) -> String {
        let detail = self.detail();
        detail.rsplit('\n').next().unwrap().trim().to_owned()
    }
}

/// One request per error status.
fn refused_requests(cloud: &Cloud) -> Vec<(u16, Ask, String)> {
    let provider = format!("/resource_providers/{}", uuid(9));
    vec![
        (
            400,
            cloud.post("/resource_classes", json!({"name": "fake_class"})),
            framed(
                BAD_REQUEST,
                "JSON does not validate: 'fake_class' does not match '^CUSTOM_[A-Z0-9_]+$', at \
                 /name. Failed validating 'pattern' in schema['properties']['name']",
            ),
        ),
        (
            403,
            cloud.get("/traits").token(Some("joe")),
            framed(
                FORBIDDEN,
                "Policy does not allow placement:traits:list to be performed.",
            ),
        ),
        (404, cloud.get("/cows"), framed(NOT_FOUND, "")),
        (
            404,
            cloud.get(&provider),
            framed(
                NOT_FOUND,
                &format!("No resource provider with uuid {} found", uuid(9)),
            ),
        ),
        (
            405,
            cloud.post("/traits", json!({})),
            "The method POST is not allowed for this resource. \n\n The method specified is not \
             allowed for this resource."
                .to_owned(),
        ),
        (
            409,
            cloud.post("/resource_providers", json!({"name": "taken"})),
            framed(
                CONFLICT,
                "Conflicting resource provider name: taken already exists.",
            ),
        ),
        (
            415,
            cloud
                .ask("POST", "/resource_providers")
                .raw(b"x")
                .header("content-type", "text/plain; charset=utf-8"),
            "The request media type text/plain; charset=utf-8 is not supported by this server. \
             \n\n The media type text/plain is not supported, use application/json"
                .to_owned(),
        ),
        (
            415,
            cloud.ask("POST", "/resource_providers"),
            "The request media type None is not supported by this server. \n\n The media type \
             None is not supported, use application/json"
                .to_owned(),
        ),
    ]
}

async fn cloud() -> Cloud {
    let cloud = Cloud::new();
    let taken = json!({"name": "taken", "uuid": uuid(1)});
    cloud.post("/resource_providers", taken).expect(200).await;
    cloud
}

#[tokio::test]
async fn every_status_has_its_sentence_and_one_line() {
    let cloud = cloud().await;
    for version in ["1.2", "1.22", "1.23", "1.39"] {
        for (status, ask, detail) in refused_requests(&cloud) {
            // Before 1.6 there are no traits to forbid.
            if version == "1.2" && status == 403 {
                continue;
            }
            let answer = ask.version(version).expect(status).await;
            assert_eq!(answer.detail(), detail, "{status} at {version}");
            let body = answer.json();
            let error = body["errors"][0].as_object().unwrap();
            assert_eq!(error["status"], status);
            assert_eq!(error.contains_key("code"), version >= "1.23", "{body}");
            assert!(error["request_id"].as_str().unwrap().starts_with("req-"));
        }
    }
}

#[tokio::test]
async fn text_has_the_same_frame_as_json() {
    let cloud = cloud().await;
    for (status, ask, detail) in refused_requests(&cloud) {
        let answer = ask.header("accept", "text/plain").send().await;
        // Reads check `Accept` before they look up anything.
        if answer.status == 406 && matches!(status, 403 | 404) {
            continue;
        }
        let text = answer.expect(status).text();
        let (line, rest) = text.split_once("\n\n").unwrap();
        assert!(line.starts_with(&status.to_string()), "{line}");
        assert_eq!(rest, detail);
    }
}

#[tokio::test]
async fn html_is_a_page() {
    let cloud = cloud().await;
    let taken = json!({"name": "taken"});
    let answer = cloud
        .post("/resource_providers", taken)
        .header("accept", "text/html")
        .expect(409)
        .await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=UTF-8")
    );
    assert_eq!(
        answer.text(),
        "<html>\n <head>\n  <title>409 Conflict</title>\n </head>\n <body>\n  <h1>409 \
         Conflict</h1>\n  There was a conflict when trying to complete your request.<br /><br \
         />\nConflicting resource provider name: taken already exists.\n\n\n </body>\n</html>"
    );
    let answer = cloud
        .post("/traits", json!({}))
        .header("accept", "text/html")
        .expect(405)
        .await;
    assert_eq!(
        answer.text(),
        "<html>\n <head>\n  <title>405 Method Not Allowed</title>\n </head>\n <body>\n  <h1>405 \
         Method Not Allowed</h1>\n  The method POST is not allowed for this resource. <br /><br \
         />\nThe method specified is not allowed for this resource.\n </body>\n</html>"
    );
}

#[tokio::test]
async fn errors_401_have_a_shape_of_their_own() {
    const SENTENCE: &str = "This server could not verify that you are authorized to access the \
                            document you requested. Either you supplied the wrong credentials \
                            (e.g., bad password), or your browser does not understand how to \
                            supply the credentials required.";
    let cloud = Cloud::new();
    let unauthenticated = || cloud.get("/traits").token(None);
    let answer = unauthenticated().expect(401).await;
    let hint = "The request has no X-Auth-Token header. Send one.";
    assert_eq!(
        answer.json(),
        json!({
            "message": format!("{SENTENCE}<br /><br />\n{hint}\n\n"),
            "code": "401 Unauthorized",
            "title": "Unauthorized",
        })
    );
    let answer = unauthenticated()
        .header("accept", "text/plain")
        .send()
        .await;
    assert_eq!(
        answer.text(),
        format!("401 Unauthorized\n\n{}", framed(SENTENCE, hint))
    );
}

#[tokio::test]
async fn errors_of_versions_name_the_acceptable_ones() {
    let cloud = Cloud::new();
    let ask = |version| cloud.get("/traits").version(version);
    let answer = ask("1.99").expect(406).await;
    let expected = "The resource could not be generated that was acceptable to your browser (content \
                of type application/json. \n\n Invalid microversion: Unacceptable version header: \
                1.99";
    assert!(answer.detail().starts_with(expected), "{}", answer.detail());
    assert_eq!(answer.json()["errors"][0]["max_version"], "1.39");
    let answer = ask("1.2.3").expect(400).await;
    let expected =
        format!("{BAD_REQUEST}\n\n Invalid microversion: invalid version string: 1.2.3;");
    assert!(
        answer.detail().starts_with(&expected),
        "{}",
        answer.detail()
    );

    let answer = ask("1.39").header("accept", "image/png").send().await;
    assert_eq!(
        answer.expect(406).text(),
        "406 Not Acceptable\n\nThe resource could not be generated that was acceptable to your \
         browser (content of type image/png. \n\n Only application/json is provided"
    );
}

#[tokio::test]
async fn errors_beyond_the_reference_have_the_frame_too() {
    let mut settings = ApiSettings::default();
    settings.limits.body_bytes = 100;
    let cloud = Cloud::with(settings);
    let long = json!({"name": "x".repeat(200)});
    let answer = cloud.post("/resource_providers", long).send().await;
    let detail = answer.expect(413).code("placement.body_too_large").detail();
    let sentence = "The body of your request was too large for this server.\n\n The body is longer \
                    than the 100 bytes";
    assert!(detail.starts_with(sentence), "{detail}");
    assert!(detail.ends_with("Split the request.  "), "{detail}");
}

#[tokio::test]
async fn nova_finds_the_sentence_it_looks_for() {
    let cloud = cloud().await;
    cloud.stock(1, "VCPU", 8).await;
    cloud.claim(100, 1, "VCPU", 1).await.expect(204);
    let inventories = format!("/resource_providers/{}/inventories", uuid(1));
    let none = json!({
        "resource_provider_generation": cloud.generation(1).await,
        "inventories": {},
    });
    let answer = cloud.put(&inventories, none).expect(409).await;
    assert_eq!(
        answer.detail(),
        framed(
            CONFLICT,
            &format!(
                "update conflict: Inventory for 'VCPU' on resource provider '{}' in use.",
                uuid(1)
            )
        )
    );
}

#[tokio::test]
async fn names_are_sanitized_in_text_and_html() {
    let cloud = Cloud::new();
    let name = "<b>bold</b>\nand<br>é <script>";
    let provider = || cloud.post("/resource_providers", json!({ "name": name }));
    provider().expect(200).await;
    let answer = provider().expect(409).await;
    assert_eq!(
        answer.shown_by_osc(),
        "Conflicting resource provider name: bold and é  already exists."
    );
    let page = provider()
        .header("accept", "text/html")
        .send()
        .await
        .expect(409)
        .text();
    assert!(
        page.contains("name: &lt;b&gt;bold&lt;/b&gt;\nand&lt;br&gt;&#233; &lt;script&gt; already"),
        "{page}"
    );
}

#[tokio::test]
async fn validation_error_names_place_and_valid_form() {
    let cloud = Cloud::new();
    let provider = |body: Value| cloud.post("/resource_providers", body);
    let allocations = format!("/allocations/{}", uuid(100));
    let put = |body: Value| cloud.put(&allocations, body);
    let get = |path: &str| cloud.get(path);
    let consumer = json!({
        "allocations": {uuid(1): {"resources": {"VCPU": 1}}},
        "consumer_generation": 1, "project_id": "p", "user_id": "u", "consumer_type": "X",
    });
    let mut nothing_of_a_class = consumer.clone();
    nothing_of_a_class["allocations"][uuid(1)]["resources"]["VCPU"] = json!(0);
    let mut no_generation = consumer.clone();
    no_generation["consumer_generation"] = json!("x");
    let mut empty_mapping = consumer.clone();
    empty_mapping["mappings"] = json!({"1": [uuid(1), "zz"]});
    let place = format!("/allocations/{}/resources/VCPU", uuid(1));
    for (ask, message) in [
        (
            provider(json!([])),
            "[] is not of type 'object'. Failed validating 'type' in schema",
        ),
        (
            provider(json!({"name": "x", "foo": 1})),
            "Additional properties are not allowed ('foo' was unexpected); known are 'name', \
             'parent_provider_uuid', 'uuid'. Failed validating 'additionalProperties' in schema",
        ),
        (
            provider(json!({"uuid": 5})),
            "'name' is a required property. Failed validating 'required' in schema",
        ),
        (
            provider(json!({"name": null})),
            "null is not of type 'string', at /name. Failed validating 'type' in \
             schema['properties']['name']",
        ),
        (
            provider(json!({"name": "x", "parent_provider_uuid": "zz"})),
            "'zz' is not a 'uuid', and not null, at /parent_provider_uuid. Failed validating \
             'format' in schema['properties']['parent_provider_uuid']",
        ),
        (
            put(nothing_of_a_class),
            &format!(
                "0 is less than the minimum of 1, at {place}. Failed validating 'minimum' in \
                 schema['properties']['allocations']['patternProperties']['^[0-9a-fA-F-]{{36}}$']\
                 ['properties']['resources']['patternProperties']['^[A-Z0-9_]+$']"
            ),
        ),
        (
            put(no_generation),
            "'x' is not of type 'integer', and not null, at /consumer_generation. Failed \
             validating 'type' in schema['properties']['consumer_generation']",
        ),
        (
            put(empty_mapping),
            "'zz' is not a 'uuid', at /mappings/1/1. Failed validating 'format' in \
             schema['properties']['mappings']['patternProperties']['[a-zA-Z0-9_-]{1,64}']['items']",
        ),
        (
            get("/allocation_candidates?limit=0&resources=VCPU:1"),
            "'0' does not match '^[1-9][0-9]*$', at /limit. Failed validating 'pattern' in \
             schema['properties']['limit']",
        ),
    ] {
        let detail = ask.expect(400).await.detail();
        let kinds = ["JSON does not validate", "Invalid query string parameters"];
        let framed = kinds.map(|kind| framed(BAD_REQUEST, &format!("{kind}: {message}")));
        assert!(framed.contains(&detail), "{detail}");
    }
}

#[tokio::test]
async fn long_value_is_truncated() {
    let cloud = Cloud::new();
    let long = || "é".repeat(10_000);
    for body in [
        json!({"name": long()}),
        json!({"name": [long()]}),
        json!({"name": "x", long(): 1}),
    ] {
        let ask = cloud.post("/resource_providers", body);
        let detail = ask.expect(400).await.detail();
        assert!(detail.len() < 600 && detail.contains("..."), "{detail}");
    }
}
