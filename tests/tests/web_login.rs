//! Logins at `[web] listen`: access, permissions, and the end of a session.

use std::path::Path;
use std::process::Command;

use http::StatusCode;
use placement_client::{Admin, ApiRequest, Client};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::keystone::stand_in::{Mood, StandIn};
use placement_tests::keystone::{Keystone, TokenRequest};
use placement_tests::wait::{until, until_ok};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::browser::{Browser, FORM};

const MARKUP: &str = "eve<script>alert(1)</script>\"'&";
/// Users and their roles. The credential of `ruled` has access rules.
const USERS: [(&str, &str); 5] = [
    ("alice", "admin"),
    ("rita", "placement_reader"),
    ("ruled", "admin"),
    ("bob", "member"),
    (MARKUP, "placement_reader"),
];

async fn keystone() -> StandIn {
    let keystone = StandIn::start(&USERS).await.unwrap();
    let rules = json!({"application_credential": {"access_rules": []}});
    let mut also = keystone.identities().also.lock();
    also.insert("ruled".to_owned(), rules);
    drop(also);
    keystone
}

/// Configuration of nodes that use it.
fn config_of(keystone: &StandIn, cache_s: u32, more: &str) -> String {
    let keystone = keystone.config();
    format!("{keystone}token_cache_time_s = {cache_s}\n[audit]\nto = \"stderr\"\n{more}")
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn form_of(user: &str, password: &str) -> String {
    format!(
        "user={}&user_domain=Default&password={}&project=service&project_domain=Default",
        encoded(user),
        encoded(password)
    )
}

fn form(user: &str) -> String {
    form_of(user, &format!("password of {user}"))
}

/// Path, listener and outcome of an audit record.
type Trail = (String, String, String);

fn owned((uri, listener, outcome): (&str, &str, &str)) -> Trail {
    (uri.to_owned(), listener.to_owned(), outcome.to_owned())
}

/// Audit records of a user, or of requests without a known user, on the first node.
fn records_of(cluster: &Cluster, user: &str) -> Vec<Trail> {
    let log = cluster.log(1, usize::MAX);
    let records = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = records.filter(|one| {
        one["outcome"].is_string() && one["user"].as_str().unwrap_or_default() == user
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    own.map(|one| {
        (
            text(&one["uri"]),
            text(&one["listener"]),
            text(&one["outcome"]),
        )
    })
    .collect()
}

/// Address for the pages, at an unused port of node 1.
fn web_of(cluster: &Cluster) -> String {
    format!("127.0.0.1:{}", cluster.place(1).base_port + 4)
}

/// A browser at the pages of the first node.
fn opened(cluster: &Cluster) -> Browser {
    Browser::at(&web_of(cluster))
}

/// Starts a cluster whose first node serves the pages.
async fn start(nodes: u64, config: &str, flags: &[&str]) -> Cluster {
    let mut cluster = Cluster::prepare(nodes, config).unwrap();
    let listen = ["--web-listen".to_owned(), web_of(&cluster)];
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    let flags: Vec<String> = flags.collect();
    cluster.options_mut().flags = listen.into_iter().chain(flags.clone()).collect();
    cluster.start_node(1).unwrap();
    cluster.options_mut().flags = flags;
    for id in 2..=nodes {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policy_determines_which_pages_users_see() {
    let keystone = keystone().await;
    let policy = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(policy.path(), "\"placementd:searches\": \"role:admin\"\n").unwrap();
    let flags = ["--policy-file", policy.path().to_str().unwrap()];
    let config = config_of(&keystone, 300, "[log]\nlevel = \"debug\"\n");
    let cluster = start(3, &config, &flags).await;

    let mut alice = opened(&cluster);
    let form_page = alice.get("/login");
    assert_eq!(form_page.status, 200);
    for text in [
        "name=\"password\" type=\"password\"",
        "name=\"secret\"",
        "method=\"post\" action=\"/login\"",
    ] {
        assert!(form_page.body.contains(text), "{text}");
    }
    assert!(!form_page.body.contains("Log out") && !alice.is_in());
    assert_eq!(alice.get("/").header("location"), "/web/");
    assert_eq!(
        alice.get("/web/style.css").header("content-type"),
        "text/css; charset=utf-8"
    );

    let entered = alice.log_in(&form("alice"));
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, "/web/"),
        "{entered:?}"
    );
    let (name, flags) = entered.header("set-cookie").split_once(';').unwrap();
    assert!(
        name.starts_with("__Host-placementd=") && name.len() > 64 + 18,
        "{name}"
    );
    assert_eq!(flags, " Path=/; Secure; HttpOnly; SameSite=Strict");
    let overview = alice.get("/web/");
    for text in ["Healthy: 3 of 3", "Log out alice", "action=\"/logout\""] {
        assert!(overview.body.contains(text), "{text}: {}", overview.body);
    }
    for answer in [&overview, &form_page, &entered, &alice.get("/nothing")] {
        assert!(
            answer
                .header("content-security-policy")
                .contains("frame-ancestors 'none'")
        );
        assert_eq!(
            answer.header("strict-transport-security"),
            "",
            "Strict-Transport-Security is up to the TLS proxy"
        );
        // With `no-referrer` the Origin of a browser's form would be `null`.
        assert_eq!(answer.header("referrer-policy"), "same-origin");
    }
    let of = |path: &str| format!("/web/placement/default/{path}");
    assert_eq!(alice.get(&of("providers")).status, 200);
    assert_eq!(alice.get(&of("searches")).status, 200, "asked of each node");

    let mut by_credential = opened(&cluster);
    by_credential.log_in("credential=credential+of+rita&secret=secret+of+rita");
    assert!(by_credential.is_in());
    let mut rita = opened(&cluster);
    rita.log_in(&form("rita"));
    for path in ["capacity", "providers", "consumers"] {
        assert_eq!(rita.get(&of(path)).status, 200, "{path}");
    }
    let refused = rita.get(&of("searches"));
    assert_eq!(refused.status, 403);
    let rule = "placementd:searches";
    assert!(refused.body.contains(rule), "{}", refused.body);
    let mut eve = opened(&cluster);
    eve.log_in(&form(MARKUP));
    for path in ["/web/", "/login"] {
        let page = eve.get(path).body;
        assert!(page.contains("Log out eve&lt;script&gt;"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }

    let mut other = opened(&cluster);
    for (form, reason) in [
        (form("bob"), "its rule placementd:web"),
        (
            "credential=credential+of+ruled&secret=secret+of+ruled".to_owned(),
            "access rules",
        ),
    ] {
        let refused = other.log_in(&form);
        assert_eq!(refused.status, 403, "{form}");
        assert!(refused.body.contains(reason), "{}", refused.body);
    }
    let wrong = [
        form_of("alice", "secret of alice"),
        form_of("unknown", "secret of alice"),
    ];
    let [password, user] = wrong.map(|form| other.log_in(&form));
    assert_eq!((password.status, &password.body), (403, &user.body));
    assert_eq!(other.cookie, "");
    for user in ["bob", "ruled"] {
        assert_eq!(
            keystone.tokens_of(user),
            [""; 0],
            "a refused login leaves a token"
        );
    }

    let login = ("/login", "web", "refused");
    until("a record", async || {
        records_of(&cluster, "bob") == [login].map(owned)
    })
    .await;
    // Each refused page has one record, although it queries several nodes.
    let refused = ["searches"].map(|page| (of(page), "web", "refused"));
    let refused = refused
        .each_ref()
        .map(|(uri, listener, outcome)| (&**uri, *listener, *outcome));
    let entered = [("/login", "web", "committed"); 2];
    let expected = [&entered[..], &refused].concat();
    let expected: Vec<_> = expected.into_iter().map(owned).collect();
    assert_eq!(records_of(&cluster, "rita"), expected);
    let tokens: Vec<String> = keystone
        .identities()
        .tokens
        .lock()
        .keys()
        .cloned()
        .collect();
    let secrets = ["alice", "rita", "bob"].map(|user| format!("password of {user}"));
    let cookies = [&alice, &rita, &eve].map(|browser| browser.cookie[18..].to_owned());
    for id in cluster.ids() {
        let log = cluster.log(id, usize::MAX);
        for secret in tokens.iter().chain(&secrets).chain(&cookies) {
            assert!(!log.contains(secret), "node {id} logs {secret}");
            assert!(!log.contains(&encoded(secret)), "node {id} logs {secret}");
        }
        assert!(!log.contains("secret+of"), "node {id} logs a form");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_ends_by_logout_new_login_or_token_revocation() {
    let keystone = keystone().await;
    let cluster = start(1, &config_of(&keystone, 1, ""), &[]).await;
    let tokens = || keystone.tokens_of("alice");

    let mut browser = opened(&cluster);
    // An existing session id is not reused.
    browser.cookie = format!("__Host-placementd={}", "a".repeat(96));
    let planted = browser.cookie.clone();
    browser.log_in(&form("alice"));
    assert_ne!(browser.cookie, planted);
    let first = browser.cookie.clone();
    browser.log_in(&form("alice"));
    assert!(browser.is_in());
    for ended in [
        &planted,
        &first,
        &browser.cookie.replace('=', "=0"),
        &browser.cookie[..80].to_owned(),
    ] {
        let mut with = opened(&cluster);
        with.cookie.clone_from(ended);
        assert!(!with.is_in(), "{ended}");
    }
    until(
        "that the token of the first session is revoked",
        async || tokens().len() == 1,
    )
    .await;

    let origin = ("Origin", "http://evil.example");
    let refused = browser.send(
        "POST",
        "/logout",
        &[("Cookie", &browser.cookie), origin],
        "",
    );
    assert_eq!(refused.status, 403);
    assert!(browser.is_in());
    let out = browser.post("/logout", "");
    assert_eq!((out.status, out.header("location")), (303, "/login"));
    assert!(
        out.header("set-cookie")
            .contains("__Host-placementd=; Path=/; Secure"),
        "{out:?}"
    );
    assert!(out.header("set-cookie").ends_with("; Max-Age=0"), "{out:?}");
    assert!(!browser.is_in());
    assert_eq!(tokens(), [""; 0]);
    assert_eq!(
        browser.post("/logout", "").status,
        303,
        "a second logout fails"
    );

    // A user may have sixteen sessions: a further one ends the oldest, but none of another user.
    let mut other = opened(&cluster);
    other.log_in(&form("rita"));
    let own = [(); 17].map(|()| {
        let mut own = opened(&cluster);
        own.log_in(&form("alice"));
        own
    });
    assert_eq!(
        own.map(|own| own.is_in())
            .iter()
            .filter(|is_in| **is_in)
            .count(),
        16
    );
    assert!(other.is_in());
    until("that the token of the oldest is revoked", async || {
        tokens().len() == 16
    })
    .await;

    browser.log_in(&form("alice"));
    assert!(browser.is_in());
    // Keystone revokes the tokens of a user who loses a role.
    keystone
        .identities()
        .tokens
        .lock()
        .retain(|_, user| user != "alice");
    until("the end of a session whose token was revoked", async || {
        !browser.is_in()
    })
    .await;
    assert!(!browser.is_in());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_from_other_sites_and_unknown_paths_are_refused() {
    let keystone = keystone().await;
    let cluster = start(1, &config_of(&keystone, 300, ""), &[]).await;
    let socket = cluster.data_dir(1).join("admin.sock");
    let admin = Admin::new(Client::new([format!("unix:{}", socket.display())]).unwrap());
    host::with_processors(&admin.placement("default")).await;
    let mut browser = opened(&cluster);
    browser.log_in(&form("alice"));
    assert!(browser.is_in());
    let before = admin.status().await.unwrap();

    let own = format!("http://{}", browser.host);
    let (cookie, own, kind) = (
        ("Cookie", &*browser.cookie),
        ("Origin", &*own),
        ("Content-Type", FORM),
    );
    let evil = ("Origin", "http://evil.example");
    let led = |site| ("Sec-Fetch-Site", site);
    let alice = form("alice");
    let long = format!("{alice}&more={}", "x".repeat(8192));
    let (alice, long) = (&*alice, &*long);
    for (method, path, headers, body, expected) in [
        ("GET", "/web/", &[cookie, led("none")][..], "", 200),
        ("HEAD", "/web/", &[cookie], "", 200),
        ("GET", "/web/", &[cookie, led("cross-site")], "", 303),
        ("GET", "/web/", &[cookie, led("same-site")], "", 303),
        ("POST", "/login", &[own, kind], alice, 303),
        (
            "POST",
            "/login",
            &[own, kind, led("same-origin")],
            alice,
            303,
        ),
        ("POST", "/login", &[kind], alice, 403),
        ("POST", "/login", &[evil, kind], alice, 403),
        ("POST", "/login", &[("Origin", "null"), kind], alice, 403),
        ("POST", "/login", &[own, own, kind], alice, 403),
        (
            "POST",
            "/login",
            &[own, kind, led("cross-site")],
            alice,
            403,
        ),
        ("POST", "/login", &[own, kind, led("same-site")], alice, 403),
        ("POST", "/logout", &[cookie], "", 403),
        ("POST", "/login", &[own, kind], long, 413),
        ("POST", "/login", &[own], alice, 415),
        (
            "POST",
            "/login",
            &[own, ("Content-Type", "application/json")],
            "{}",
            415,
        ),
        ("POST", "/login", &[own, kind], "", 400),
        ("POST", "/login", &[own, kind], "user=a&credential=b", 400),
        (
            "POST",
            "/login",
            &[own, kind],
            "user=%ff%00&password=%ff",
            403,
        ),
        ("GET", "/logout", &[cookie], "", 405),
        ("POST", "/web/", &[cookie, own], "", 405),
        (
            "DELETE",
            "/web/placement/default/providers",
            &[cookie],
            "",
            405,
        ),
        ("PUT", "/login", &[cookie, own, kind], alice, 405),
        ("GET", "/v1/status", &[cookie], "", 404),
        ("GET", "/v1/backup", &[cookie], "", 404),
        ("POST", "/v1/drain", &[cookie, own], "", 404),
        ("GET", "/web/../v1/backup", &[cookie], "", 404),
        ("GET", "/web/%2e%2e/v1/backup", &[cookie], "", 404),
        ("GET", "/web/nothing", &[cookie], "", 404),
        ("GET", "/resource_providers", &[cookie], "", 404),
        ("GET", "/metrics", &[cookie], "", 404),
        ("GET", "/openapi.json", &[cookie], "", 404),
    ] {
        let answer = browser.send(method, path, headers, body);
        assert_eq!(
            answer.status, expected,
            "{method} {path} {headers:?} {answer:?}"
        );
        assert!(!answer.body.contains("cluster_id"), "{method} {path}");
        let begins = answer.headers.contains_key("set-cookie");
        assert_eq!(
            begins,
            path == "/login" && expected == 303,
            "{method} {path}"
        );
    }
    assert!(browser.is_in(), "no other site has ended it");

    let paths = [
        "/",
        "/login",
        "/logout",
        "/web/",
        "/v1/leader",
        "/v1/placement/default/traits/CUSTOM_X",
        "//",
        "/web/%",
    ];
    for method in [
        "GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POST", "XYZ",
    ] {
        for path in paths
            .iter()
            .filter(|path| (method, **path) != ("POST", "/logout"))
        {
            for headers in [&[cookie, own, kind][..], &[evil, cookie], &[]] {
                let answer = browser.send(method, path, headers, "user=%00&password=x");
                assert!(answer.status < 500, "{method} {path} {answer:?}");
            }
        }
    }
    let after = admin.status().await.unwrap();
    assert_eq!(
        (before.last_log, before.digest),
        (after.last_log, after.digest)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_continue_and_logins_are_limited_without_keystone() {
    let keystone = keystone().await;
    let cluster = start(1, &config_of(&keystone, 300, ""), &[]).await;
    let mut browser = opened(&cluster);
    browser.log_in(&form("alice"));
    assert!(browser.is_in());

    keystone.set(Mood::Hangs);
    // On loopback, where a proxy may represent all users, the limit is sixteen in all.
    let attempts = [(); 18].map(|()| {
        let browser = opened(&cluster);
        std::thread::spawn(move || browser.post("/login", &form("alice")).status)
    });
    let mut statuses = attempts.map(|attempt| attempt.join().unwrap());
    statuses.sort_unstable();
    assert_eq!(statuses, [[429; 2].as_slice(), &[503; 16]].concat()[..]);
    assert!(browser.is_in(), "the token is not cached");

    keystone.stop();
    until("that the port of Keystone is closed", async || {
        TcpStream::connect(keystone.address()).await.is_err()
    })
    .await;
    let refused = opened(&cluster).post("/login", &form("alice"));
    assert_eq!((refused.status, refused.header("retry-after")), (503, "5"));
    assert!(browser.is_in());
    // The logout works here, although Keystone cannot revoke the token.
    assert_eq!(browser.post("/logout", "").status, 303);
    assert!(!browser.is_in());
    cluster
        .until_logged(&[1], "stays valid until it expires")
        .await;
}

/// The login goes through a proxy on the node's machine, which reports the addresses of its
/// clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_logins_are_recorded_and_limited_per_proxied_client() {
    let keystone = keystone().await;
    let config = config_of(&keystone, 300, "[api]\ntrust_proxy_headers = true\n");
    let cluster = start(1, &config, &[]).await;
    let browser = opened(&cluster);
    let own = format!("http://{}", browser.host);
    let attempt = move |client: &str, form: &str| {
        let headers = [
            ("Origin", &*own),
            ("Content-Type", FORM),
            ("X-Forwarded-For", client),
        ];
        browser.send("POST", "/login", &headers, form).status
    };
    let guessed = format!("root\u{1b}[31m\n{}", "x".repeat(500));
    let form_of_guess = form_of(&guessed, "a guess at the password");
    assert_eq!(attempt("203.0.113.7", &form_of_guess), 403);
    let record = until_ok("a record", async || {
        let log = cluster.log(1, usize::MAX);
        let lines = log.lines().filter(|line| line.contains("\"/login\""));
        let mut records = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records.find(|one| one["outcome"] == "refused").ok_or(())
    })
    .await;
    let of_whom = ["client", "peer", "listener"].map(|field| record[field].clone());
    assert_eq!(
        of_whom,
        ["203.0.113.7", "127.0.0.1", "web"].map(Value::from)
    );
    let detail = record["detail"].as_str().unwrap();
    let beginning = r#"user "root\u{1b}[31m\nx"#;
    assert!(
        detail.starts_with(beginning) && detail.len() < 200,
        "{detail}"
    );
    // The node writes its access line after the audit record.
    let log = until_ok("an access line with the client's address", async || {
        let log = cluster.log(1, usize::MAX);
        let mut access = log
            .lines()
            .filter(|line| line.contains("placement::access"));
        let is_named = |line: &str| line.contains("/login") && line.contains("203.0.113.7");
        if access.any(is_named) {
            Ok(log)
        } else {
            Err(log)
        }
    })
    .await;
    assert!(
        !log.contains("a guess at") && !log.contains('\u{1b}'),
        "{log}"
    );

    // One client may have four attempts at a time; another client is not affected.
    keystone.set(Mood::Hangs);
    let attempt = &attempt;
    std::thread::scope(|scope| {
        let ask = |client| move || attempt(client, &form("alice"));
        let crowd = [(); 6].map(|()| scope.spawn(ask("203.0.113.7")));
        let other = scope.spawn(ask("203.0.113.8:4711"));
        let mut statuses = crowd.map(|one| one.join().unwrap());
        statuses.sort_unstable();
        assert_eq!(statuses, [429, 429, 503, 503, 503, 503]);
        assert_eq!(other.join().unwrap(), 503, "Keystone does not answer it");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_login_leaves_no_session_and_no_token() {
    let keystone = keystone().await;
    let cluster = start(1, &config_of(&keystone, 300, ""), &[]).await;
    keystone.set(Mood::Hangs);
    let browser = opened(&cluster);
    let own = format!("http://{}", browser.host);
    let headers = [("Origin", &*own), ("Content-Type", FORM)];
    let leaving = tokio::spawn(browser.begin("POST", "/login", &headers, &form("alice")));
    until("that Keystone is asked", async || keystone.waiting() > 0).await;
    leaving.abort();
    // The record shows that the client did not wait for the outcome.
    let unknown = ("/login", "web", "unknown");
    until_ok("a record", async || {
        let records = records_of(&cluster, "");
        records
            .contains(&owned(unknown))
            .then_some(())
            .ok_or(records)
    })
    .await;
    assert_eq!(keystone.tokens_of("alice"), [""; 0]);
    keystone.set(Mood::Well);
    until("that its token is revoked", async || {
        keystone.identities().revoked.lock().len() == 1
    })
    .await;
    assert_eq!(keystone.tokens_of("alice"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_see_nothing_of_a_partition_that_denies_them_pages() {
    let keystone = keystone().await;
    let policy = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(policy.path(), "\"placementd:web\": \"role:admin\"\n").unwrap();
    let closed = format!(
        "[[partitions]]\nname = \"closed\"\nregion = \"south\"\npolicy_file = {:?}\n",
        policy.path()
    );
    let cluster = start(2, &config_of(&keystone, 300, &closed), &[]).await;
    let [mut alice, mut rita] = [(); 2].map(|()| opened(&cluster));
    alice.log_in(&form("alice"));
    rita.log_in(&form("rita"));
    assert!(alice.is_in() && rita.is_in());
    // So far only the configuration of the nodes names the partition, which is a warning for
    // operators.
    assert!(alice.get("/web/").body.contains("placement/closed/"));
    assert!(!rita.get("/web/").body.contains("closed"));
    assert!(!rita.get("/web/topology").body.contains("closed"));

    cluster
        .create_partition("closed", &[], &["/closed"])
        .await
        .unwrap();
    let socket = cluster.data_dir(1).join("admin.sock");
    let admin = Admin::new(Client::new([format!("unix:{}", socket.display())]).unwrap());
    let host = host::with_processors(&admin.placement("closed")).await;
    assert!(alice.get("/web/").body.contains("placement/closed/"));
    let overview = rita.get("/web/").body;
    assert!(
        overview.contains("placement/default/") && !overview.contains("closed"),
        "{overview}"
    );
    for page in [
        "",
        "capacity",
        "capacity?resources=VCPU:1",
        "providers",
        &format!("providers/{host}"),
        "consumers",
        &format!("consumers/{host}"),
        "candidates?resources=VCPU:1",
        "searches",
        "history",
    ] {
        let [shown, hidden, absent] = [(&alice, "closed"), (&rita, "closed"), (&rita, "absent")]
            .map(|(browser, name)| browser.get(&format!("/web/placement/{name}/{page}")));
        assert!(
            shown.status == 200 || page.starts_with("consumers/"),
            "{page}: {shown:?}"
        );
        assert_eq!(hidden.status, 404, "{page}: {}", hidden.body);
        assert_eq!(
            hidden.body.replace("closed", "absent"),
            absent.body,
            "{page}"
        );
    }
}

/// A real Keystone behaves like the stand-in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_log_in_and_out_with_a_real_keystone() {
    let who = |user| TokenRequest {
        user,
        password: "a long password",
        project: Some("service"),
    };
    let installed_in = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let keystone = Keystone::start(installed_in).await.unwrap();
    let people = [
        ("placement", "service"),
        ("alice", "admin"),
        ("bob", "member"),
    ];
    let people = people.map(|(user, role)| (who(user), role));
    keystone.people("service", &people).await.unwrap();
    let config = format!(
        "[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"{}\"\nusername = \"placement\"\n\
         password = \"a long password\"\ntoken_cache_time_s = 0\n",
        keystone.url()
    );
    let cluster = start(1, &config, &[]).await;
    let mut browser = opened(&cluster);
    let form = |user| form_of(user, "a long password");
    // Keystone is slow on a busy machine.
    until("a login", async || {
        browser.log_in(&form("alice")).status == 303
    })
    .await;
    until("a page", async || {
        browser.get("/web/topology").status == 200
    })
    .await;
    let of_alice = browser.cookie.clone();
    for (form, reason) in [
        (form("bob"), "its rule placementd:web"),
        (form_of("alice", "another"), "rejected the login"),
        (form("unknown"), "rejected the login"),
    ] {
        let is_refused = async || {
            let answer = browser.post("/login", &form);
            answer.status == 403 && answer.body.contains(reason)
        };
        until(reason, is_refused).await;
    }
    assert_eq!(browser.cookie, of_alice, "a failed login ends no session");
    assert_eq!(browser.post("/logout", "").status, 303);
    assert!(!browser.is_in());
    let log = cluster.log(1, usize::MAX);
    assert!(!log.contains("stays valid until it expires"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_beyond_loopback_need_tls() {
    let keystone = keystone().await;
    let check = |listen: &str, more: &[&str]| {
        let mut command = Command::new(binaries::placementd().unwrap());
        command.args(["check-config", "--node-id", "1", "--web-listen", listen]);
        let checked = command.args(more).output().unwrap();
        (
            checked.status.success(),
            String::from_utf8(checked.stderr).unwrap(),
        )
    };
    let (fits, reason) = check("0.0.0.0:8790", &[]);
    assert!(
        !fits && reason.contains("auth.strategy = \"keystone\""),
        "{reason}"
    );
    let mut cluster = Cluster::prepare(1, &config_of(&keystone, 300, "")).unwrap();
    let config = cluster.options().config.clone().unwrap();
    let config = ["--config", config.to_str().unwrap()];
    let (fits, reason) = check("0.0.0.0:8790", &config);
    assert!(
        !fits && reason.contains("in clear: set api.tls_cert_file"),
        "{reason}"
    );
    assert!(check("127.0.0.1:8790", &config).0);

    let authority = cluster.authority().unwrap();
    let port = web_of(&cluster).split_once(':').unwrap().1.to_owned();
    let file = |name: &str| authority.directory().join(name).display().to_string();
    let (certificate, key) = (file("node-1.pem"), file("node-1-key.pem"));
    let own = [
        "--api-tls-cert-file",
        &certificate,
        "--api-tls-key-file",
        &key,
    ];
    let listen = format!("0.0.0.0:{port}");
    let flags = ["--web-listen", &listen].into_iter().chain(own);
    cluster.options_mut().flags = flags.map(str::to_owned).collect();
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let client =
        Client::trusting([format!("https://localhost:{port}")], authority.trust(None)).unwrap();
    let shown = client
        .request_once(ApiRequest::get("/login"))
        .await
        .unwrap();
    assert_eq!(shown.status, StatusCode::OK);
    // A browser that has seen this header never uses plain HTTP again.
    let only_tls = shown.header("strict-transport-security");
    assert_eq!(only_tls, Some("max-age=31536000"));
    let browser = opened(&cluster);
    let plain = browser.get("/login");
    assert_eq!(plain.status, 400);
    assert!(plain.body.contains("HTTPS only"), "{plain:?}");
    // A form of a plain HTTP page counts as a form of another site.
    let own = ApiRequest::post("/login").header("origin", &format!("http://localhost:{port}"));
    assert_eq!(
        client.request_once(own).await.unwrap().status,
        StatusCode::FORBIDDEN
    );
}
