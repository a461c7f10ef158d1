//! `placementctl web`: the pages that a browser sees, refused requests, and proof that no request
//! changes anything.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use placement_client::{Admin, ApiRequest, Client};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::program::Program;
use serde_json::json;

use crate::browser::Browser;

const MARKUP: &str = "cmp-<script>alert(1)</script>\"'&";
/// Maximum number of pages to visit.
const PAGES_MAX: usize = 400;

/// A running `placementctl web`, and a browser with the cookie that its key was exchanged for.
struct Web {
    _process: Program,
    browser: Browser,
    key: String,
}

impl Web {
    fn start(cluster: &Cluster) -> Self {
        let socket = cluster.data_dir(1).join("admin.sock");
        let mut process = Command::new(binaries::placementctl().unwrap())
            .args(["--endpoint", &format!("unix:{}", socket.display()), "web"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap();
        let (host, key) = address.split_once("/?key=").unwrap();
        let mut browser = Browser::at(host);
        let entered = browser.get(&format!("/?key={key}"));
        assert_eq!(entered.status, 303, "{}", entered.body);
        assert_eq!(entered.header("location"), "/web/");
        let cookie = entered.header("set-cookie");
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        browser.keep_cookie(&entered);
        Self {
            _process: Program(process),
            browser,
            key: key.to_owned(),
        }
    }

    /// Body of a page that must exist.
    fn page(&self, path: &str) -> String {
        let answer = self.browser.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        for (header, value) in [
            (
                "content-security-policy",
                "default-src 'none'; style-src 'self';",
            ),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "same-origin"),
        ] {
            assert!(
                answer.header(header).starts_with(value),
                "{path}: {answer:?}"
            );
        }
        assert!(answer.body.len() <= 150_000, "{path}");
        answer.body
    }
}

/// Creates a cloud with a host whose name is markup, a consumer, and a search without candidates.
async fn cloud(cluster: &Cluster) -> (Client, String, String) {
    let client = cluster.client_of(1);
    host::create(&client, MARKUP).await;
    let host = host::with_processors(&client).await;
    let consumer = host::claim(&client, host).await.unwrap();
    let search = ApiRequest::get("/allocation_candidates?resources=VCPU:1&required=HW_CPU_X86_VMX");
    client.call(search).await.unwrap();
    (client, host.to_string(), consumer.to_string())
}

fn at_socket(cluster: &Cluster) -> Client {
    let socket = cluster.data_dir(1).join("admin.sock");
    Client::new([format!("unix:{}", socket.display())]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_sees_the_cloud_and_changes_nothing() {
    let cluster = Cluster::start(1).await.unwrap();
    let (_client, host, consumer) = cloud(&cluster).await;
    let web = Web::start(&cluster);
    let before = Admin::new(at_socket(&cluster)).status().await.unwrap();

    let of = |path: &str| format!("/web/placement/default/{path}");
    for (path, texts) in [
        (
            "/web/".to_owned(),
            &["Healthy: 1 of 1", "default", "Requests of the last hour"][..],
        ),
        (
            "/web/topology".to_owned(),
            &["The loss of any voter stops writes."],
        ),
        (of("capacity"), &["VCPU", "<meter", "<svg"]),
        (of("capacity?resources=VCPU:1"), &["claims can be made now"]),
        (
            of("capacity?local=true"),
            &["VCPU", "This is the local state of the node"],
        ),
        (
            of("providers"),
            &[
                host.as_str(),
                "cmp-&lt;script&gt;alert(1)&lt;/script&gt;&quot;",
            ],
        ),
        (of("providers?name=cmp-"), &["Rows 1 to 1 of 1."]),
        (
            of(&format!("providers/{host}")),
            &[
                "VCPU",
                consumer.as_str(),
                "<dt>generation</dt>",
                "Can this host go?</a> No: no room elsewhere for 1 of 1 consumer.",
            ],
        ),
        (
            of(&format!("refuge?provider={host}")),
            &[
                "No: no room elsewhere for 1 of 1 consumer.",
                consumer.as_str(),
                "Why it has no room",
            ],
        ),
        (
            of("refuge?each=root"),
            &["No: 1 of 2 trees cannot be emptied.", "refuge?provider="],
        ),
        (of("consumers"), &[consumer.as_str(), host.as_str()]),
        (
            of(&format!("consumers/{consumer}")),
            &[host.as_str(), "VCPU="],
        ),
        (
            of("candidates?resources=VCPU:1"),
            &["1 candidate.", host.as_str()],
        ),
        (
            of("candidates?resources=VCPU:1&required=HW_CPU_X86_VMX"),
            &["No candidates: no provider has the trait HW_CPU_X86_VMX."],
        ),
        (
            of("searches"),
            &["required=HW_CPU_X86_VMX", "candidates?query="],
        ),
        (of("history"), &["allocation", consumer.as_str()]),
    ] {
        let page = web.page(&path);
        for text in texts {
            assert!(page.contains(text), "{path}: {text}\n{page}");
        }
        assert!(!page.contains("<script"), "{path}");
    }
    let style = web.browser.get("/web/style.css");
    assert_eq!(style.status, 200);
    assert!(
        style.header("content-type").starts_with("text/css"),
        "{style:?}"
    );

    let seen = crawl(&web.browser);
    for kind in [
        "topology",
        "capacity",
        "providers/",
        "consumers/",
        "history?",
        "candidates?query=",
    ] {
        assert!(
            seen.iter().any(|path| path.contains(kind)),
            "{kind}: {seen:?}"
        );
    }
    let after = Admin::new(at_socket(&cluster)).status().await.unwrap();
    assert_eq!(
        (before.last_log, before.digest),
        (after.last_log, after.digest)
    );
}

/// Follows each link and sends each form with hostile values; returns the pages visited.
fn crawl(browser: &Browser) -> BTreeSet<String> {
    let hostile = [
        "",
        "%27%3B+DROP+TABLE",
        "..%2F..%2Fbackup",
        "VCPU:1",
        "-1",
        "%00%FF",
        "%3Cscript%3E",
        "999999999999999999999",
    ];
    let mut left = VecDeque::from(["/web/".to_owned()]);
    let mut seen = BTreeSet::new();
    while let Some(path) = left.pop_front() {
        if seen.len() >= PAGES_MAX || !seen.insert(path.clone()) {
            continue;
        }
        let answer = browser.get(&path);
        // Invalid requests are refused without a server error.
        assert!(
            answer.status < 500,
            "{path}: {} {}",
            answer.status,
            answer.body
        );
        assert!(!answer.body.contains("<script"), "{path}");
        let links = answer
            .body
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        left.extend(
            links
                .filter(|href| href.starts_with('/'))
                .map(|href| href.replace("&amp;", "&")),
        );
        for form in answer.body.split("<form ").skip(1) {
            let form = form.split("</form>").next().unwrap();
            assert!(form.starts_with("method=\"get\""), "{form}");
            let action = form
                .split("action=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            let fields = form
                .split(" name=\"")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap());
            // All pages have the same forms, so those of the first are enough.
            if path.contains('?') {
                continue;
            }
            for field in fields {
                left.extend(hostile.map(|value| format!("{action}?{field}={value}")));
            }
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_cookie_or_from_other_sites_are_refused() {
    let cluster = Cluster::start(1).await.unwrap();
    let web = Web::start(&cluster);
    let own = ("Cookie", &*web.browser.cookie);
    let forged = web.browser.cookie.replace('=', "=0");
    let again = format!("/?key={}", web.key);
    let other = Web::start(&cluster);
    for (method, path, headers, expected) in [
        ("GET", "/web/", &[own][..], 200),
        ("HEAD", "/web/", &[own], 200),
        ("GET", &*again, &[], 403),
        ("GET", "/?key=", &[], 403),
        ("GET", "/web/", &[], 403),
        ("GET", "/web/style.css", &[], 403),
        ("GET", "/web/", &[("Cookie", &*forged)], 403),
        ("GET", "/web/", &[("Cookie", &*other.browser.cookie)], 403),
        (
            "GET",
            "/web/",
            &[own, ("Sec-Fetch-Site", "cross-site")],
            403,
        ),
        (
            "GET",
            "/web/",
            &[own, ("Origin", "http://evil.example")],
            403,
        ),
        ("GET", "/web/", &[own, ("Host", "evil.example")], 421),
        ("POST", "/web/", &[own], 405),
        ("DELETE", "/v1/members/1", &[own], 405),
        ("GET", "/v1/status", &[own], 404),
        ("GET", "/v1/backup", &[own], 404),
        ("GET", "/web/../v1/backup", &[own], 404),
        ("GET", "/web/nothing", &[own], 404),
    ] {
        let answer = web.browser.send(method, path, headers, "");
        assert_eq!(answer.status, expected, "{method} {path} {headers:?}");
        // A page may mention the setting in a warning.
        let is_page = expected == 200;
        assert!(
            is_page || !answer.body.contains("cluster_id"),
            "{method} {path}"
        );
    }
    // A node accepts no other method either.
    let posted = at_socket(&cluster)
        .request_once(ApiRequest::post("/web/").json(&json!({})))
        .await
        .unwrap();
    assert_eq!(posted.status.as_u16(), 405);

    // `placementctl web` listens on loopback only.
    let arguments = ["web", "--listen", "0.0.0.0:0"];
    let refused = cluster.placementctl(&arguments).unwrap();
    let reason = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && reason.contains("Listen on loopback"),
        "{reason}"
    );
}
