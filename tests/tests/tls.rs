//! Certificates authenticate peers, operators and nodes on each listener.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, Request, StatusCode};
use placement_client::{Admin, ApiRequest, Client, Error, NewProvider, Trust};
use placement_tests::authority::Authority;
use placement_tests::binaries;
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host::create;
use placement_tests::http_2;
use placement_tests::power::Power;
use placement_tests::python;
use placement_tests::skip::skipped;
use placement_tests::wait::{PATIENCE, until, until_expired, until_ok};

fn placementctl(endpoint: &str, trust: &Trust, arguments: &[&str]) -> Output {
    let mut command = Command::new(binaries::placementctl().unwrap());
    command.args(["--endpoint", endpoint]);
    if let Some(file) = &trust.ca_file {
        command.arg("--cacert").arg(file);
    }
    if let Some((certificate, key)) = &trust.certificate {
        command.arg("--cert").arg(certificate).arg("--key").arg(key);
    }
    command.args(arguments).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer_with_a_wrong_certificate_is_refused_with_a_reason() {
    let (mut cluster, authority) = Cluster::start_with_peer_tls(3).await.unwrap();
    cluster.kill_9(3);

    let others = Authority::new(&cluster.directory().join("others")).unwrap();
    others.node(3, 1).unwrap();
    cluster.options_mut().authority = Some(others);
    cluster.start_node(3).unwrap();
    cluster.until_logged(&[1, 2], "unknown authority").await;
    cluster.kill_9(3);

    // Signed by the right authority, but expired.
    fs::remove_file(authority.directory().join("node-3.pem")).unwrap();
    fs::remove_file(authority.directory().join("node-3-key.pem")).unwrap();
    authority.node(3, 0).unwrap();
    until_expired().await;
    cluster.options_mut().authority = Some(authority.clone());
    cluster.start_node(3).unwrap();
    cluster.until_logged(&[1, 2], "has expired").await;
    let reason = [
        "node 3 is not ready",
        "its certificate has expired",
        "expired 20",
    ];
    cluster.until_shown(&["status"], 1, &reason).await;
    // The node itself reaches no other node, and so does `placementctl` through its socket.
    let socket = format!("unix:{}", cluster.data_dir(3).join("admin.sock").display());
    let through = |command: &'static str| ["--endpoint", &*socket, command].map(str::to_owned);
    for (command, reason) in [
        (
            "status",
            "unknown: node 3 is cut off: its certificate expired 20",
        ),
        ("status", "placementctl tls renew node 3 --dir DIR"),
        ("capacity", "node 3 is cut off: its certificate expired 20"),
    ] {
        let arguments = through(command);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        cluster.until_shown(&arguments, 2, &[reason]).await;
    }
    cluster.kill_9(3);

    // A node rejects another node's certificate itself.
    for end in [".pem", "-key.pem"] {
        let [from, to] = [2, 3].map(|id| authority.directory().join(format!("node-{id}{end}")));
        fs::copy(from, to).unwrap();
    }
    cluster.start_node(3).unwrap();
    cluster
        .until_logged(&[3], "is not a certificate for node-3.placement.internal")
        .await;
    cluster.kill_9(3);

    cluster.options_mut().flags = vec!["--peer-tls".to_owned(), "off".to_owned()];
    cluster.start_node(3).unwrap();
    cluster
        .until_logged(&[1, 2], "it is not encrypted, and TLS is required")
        .await;
    cluster
        .until_logged(&[3], "this cluster accepts TLS only")
        .await;
    cluster.kill_9(3);

    cluster.options_mut().flags = Vec::new();
    fs::remove_file(authority.directory().join("node-3.pem")).unwrap();
    fs::remove_file(authority.directory().join("node-3-key.pem")).unwrap();
    authority.node(3, 1).unwrap();
    cluster.start_node(3).unwrap();
    cluster.wait_healthy().await.unwrap();
    cluster
        .until_logged(&[3], "the certificate expires in 0 days")
        .await;
}

#[tokio::test]
async fn one_log_line_shows_each_listener_and_its_tls() {
    let (mut cluster, _authority) = Cluster::start_with_peer_tls(1).await.unwrap();
    cluster.kill_9(1);
    fs::remove_file(&cluster.place(1).log).unwrap();
    let flags = ["--api-tls", "allow", "--api-advertise", "127.0.0.2:8778"];
    cluster.options_mut().flags = flags.map(str::to_owned).to_vec();
    cluster.start_node(1).unwrap();
    cluster.until_logged(&[1], "event=\"listening\"").await;
    let log = cluster.log(1, 1000);
    let is_start = |line: &&str| line.contains("event=\"listening\"");
    let lines: Vec<_> = log.lines().filter(is_start).collect();
    assert_eq!(lines.len(), 1, "{log}");
    let place = cluster.place(1);
    for shown in [
        format!(
            "api=\"{} (TLS or no TLS, advertised as 127.0.0.2:8778)\"",
            place.api()
        ),
        format!("peer=\"{} (TLS)\"", place.peer()),
        format!("admin=\"{} (no TLS)\"", place.admin()),
        format!("socket=\"{}\"", place.data_dir.join("admin.sock").display()),
    ] {
        assert!(lines[0].contains(&shown), "{shown}: {}", lines[0]);
    }
    // The node has no such listeners.
    assert!(
        !lines[0].contains("metrics=") && !lines[0].contains("web="),
        "{}",
        lines[0]
    );
}

#[test]
fn renewed_certificate_survives_power_loss() {
    let directory = tempfile::Builder::new()
        .prefix("renewed-")
        .tempdir()
        .unwrap();
    let Some(power) = Power::new(directory.path()) else {
        return skipped("a renewal and a loss of power", "there is no C compiler");
    };
    let is_shown = |number: u64, unsynced: Option<&str>| {
        let pki = directory.path().join(format!("pki-{number}"));
        fs::create_dir(&pki).unwrap();
        let tls = |arguments: &[&str]| {
            let mut command = Command::new(binaries::placementctl().unwrap());
            command.envs(power.environment(number, unsynced).unwrap());
            let run = command.arg("tls").args(arguments).arg("--dir").arg(&pki);
            assert!(run.status().unwrap().success(), "{arguments:?}");
        };
        tls(&["init"]);
        tls(&["issue", "node", "1", "--host", "127.0.0.1"]);
        tls(&["renew", "node", "1"]);
        power.cut(number, &pki).unwrap();
        let mut show = Command::new(binaries::placementctl().unwrap());
        let show = show.args(["tls", "show"]).arg(pki.join("node-1.pem"));
        let key = fs::read(pki.join("node-1-key.pem")).unwrap_or_default();
        show.output().unwrap().status.success() && !key.is_empty()
    };
    assert!(is_shown(1, None));
    // Without either of the syncs the certificate is lost, so the test detects it.
    assert!(!is_shown(2, Some("/.tmp")));
    assert!(!is_shown(3, Some("/pki-3/$")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_certificate_does_not_replace_a_good_one() {
    let (cluster, authority) = Cluster::start_with_peer_tls(3).await.unwrap();

    // The operator renews it elsewhere, for too short a time.
    let elsewhere = cluster.directory().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for file in ["ca.pem", "ca-key.pem", "node-3.pem"] {
        fs::copy(authority.directory().join(file), elsewhere.join(file)).unwrap();
    }
    let dir = elsewhere.display().to_string();
    cluster.ctl(&["tls", "renew", "node", "3", "--days", "0", "--dir", &dir]);
    let shown = cluster.ctl(&["tls", "show", &format!("{dir}/node-3.pem")]);
    for words in [
        "name: node-3.placement.internal",
        "name: 127.0.0.1",
        "name: localhost",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    until_expired().await;
    for end in [".pem", "-key.pem"] {
        let file = format!("node-3{end}");
        fs::copy(elsewhere.join(&file), authority.directory().join(&file)).unwrap();
    }
    cluster.until_logged(&[3], "node-3.pem: expired 20").await;
    let words = [
        "healthy: 3 of 3",
        "node 3: ",
        "the previous certificate stays in use",
    ];
    cluster.until_shown(&["status"], 0, &words).await;
    let data_dir = cluster.directory().join("none").display().to_string();
    let flags = [
        "--node-id",
        "3",
        "--data-dir",
        &data_dir,
        "--peer-tls",
        "require",
    ];
    let checked = Command::new(binaries::placementd().unwrap())
        .arg("check-config")
        .args(flags)
        .args(authority.flags(3))
        .output()
        .unwrap();
    let words = String::from_utf8(checked.stderr).unwrap();
    assert!(
        checked.status.code() == Some(1) && words.contains("node-3.pem: expired 20"),
        "{words}"
    );

    // A valid certificate is loaded.
    authority.renew_node(3, 90).unwrap();
    cluster
        .until_logged(&[3], "changed certificates are in use")
        .await;
    until("no warning", async || {
        !cluster.ctl(&["status"]).contains("stays in use")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_cluster_moves_to_tls_node_by_node() {
    let mut cluster = Cluster::start(3).await.unwrap();
    cluster.options_mut().authority = Some(cluster.authority().unwrap());
    for mode in ["allow", "prefer", "require"] {
        cluster.options_mut().flags = vec!["--peer-tls".to_owned(), mode.to_owned()];
        for id in cluster.ids() {
            cluster.stop_node(id).await.unwrap();
            // Two of three nodes continue, some of them one mode ahead.
            let name = format!("{mode}-{id}");
            let client = cluster.client().with_patience(PATIENCE);
            create(&client, &name).await;
            cluster.start_node(id).unwrap();
            cluster.wait_healthy().await.unwrap();
        }
    }
    assert!(cluster.has_provider("allow-1").await);
    cluster.assert_equal_states().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_changes_under_load_fail_no_request() {
    let cluster = Cluster::start_secured(3, STEADY_LEADER).await.unwrap();
    let authority = Authority::new(&cluster.directory().join("newer")).unwrap();
    let tls = cluster.directory().join("tls");
    let both = cluster.directory().join("both.pem");
    join(
        &[&tls.join("ca.pem"), &authority.directory().join("ca.pem")],
        &both,
    );
    let trust = Trust {
        ca_file: Some(both.clone()),
        certificate: None,
    };

    let stop = Arc::new(AtomicBool::new(false));
    let endpoints: Vec<_> = (cluster.ids().iter())
        .map(|&id| format!("https://{}", cluster.place(id).api()))
        .collect();
    let mut writers = Vec::new();
    for (writer, endpoint) in endpoints.iter().cloned().enumerate() {
        let (stop, trust) = (stop.clone(), trust.clone());
        let written = Arc::new(AtomicUsize::new(0));
        let count = written.clone();
        let task = tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                // Each request has its own connection, and none is retried.
                let client = Client::trusting([&endpoint], trust.clone())
                    .unwrap()
                    .with_patience(Duration::ZERO)
                    .with_attempt_timeout(PATIENCE);
                let name = format!("host-{writer}-{}", count.load(Ordering::Relaxed));
                match client.create_provider(&NewProvider::named(&name)).await {
                    Ok(_) => drop(count.fetch_add(1, Ordering::Relaxed)),
                    // The machine was too busy for a handshake in time; nothing was refused.
                    Err(Error::Unreachable { reason, .. }) if reason.contains(" within ") => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        writers.push((task, written));
    }

    // All nodes first trust the new authority, then get its certificates.
    fs::copy(&both, tls.join("ca.pem.new")).unwrap();
    fs::rename(tls.join("ca.pem.new"), tls.join("ca.pem")).unwrap();
    for id in cluster.ids() {
        cluster
            .until_logged(&[id], "changed certificates are in use")
            .await;
        authority.node(id, 1).unwrap();
    }
    for id in cluster.ids() {
        // The key is replaced a moment after the certificate, as happens with files.
        for end in [".pem", "-key.pem"] {
            let name = format!("node-{id}{end}");
            fs::copy(authority.directory().join(&name), tls.join(&name)).unwrap();
        }
    }
    let newer = Client::trusting(&endpoints[..1], authority.trust(None))
        .unwrap()
        .with_patience(Duration::ZERO);
    until_ok("the newer certificate", async || newer.providers(&[]).await).await;
    let counts = || {
        writers
            .iter()
            .map(|(_, written)| written.load(Ordering::Relaxed))
    };
    let before: Vec<_> = counts().collect();
    until("writes under the newer certificates", async || {
        counts().zip(&before).all(|(now, before)| now > before + 1)
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    for (writer, _) in writers {
        writer.await.unwrap();
    }
    cluster.assert_equal_states().await;
}

fn join(files: &[&Path], into: &Path) {
    let all = files.iter().map(|file| fs::read_to_string(file).unwrap());
    fs::write(into, all.collect::<String>()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_are_identified_by_their_certificates() {
    let cluster = Cluster::start_secured(1, "[audit]\nto = \"stderr\"\n")
        .await
        .unwrap();
    let authority = cluster.options().authority.clone().unwrap();
    let endpoint = format!("https://{}", cluster.place(1).admin());
    let status = |trust: &Trust| placementctl(&endpoint, trust, &["status"]);
    let operator = status(&authority.trust(Some("admin-test")));
    assert!(operator.status.success(), "{operator:?}");

    let compacted = placementctl(
        &endpoint,
        &authority.trust(Some("admin-test")),
        &["compact"],
    );
    assert!(compacted.status.success(), "{compacted:?}");
    cluster.until_logged(&[1], "\"user\":\"admin-test\"").await;
    // Operations through the REST API are recorded under the same name.
    let api = cluster.admin_of(1).placement("default");
    let host = NewProvider::named("operator's host");
    api.create_provider(&host).await.unwrap();
    let user = "\"user\":\"operator:admin-test\"";
    cluster.until_logged(&[1], user).await;
    let node = Client::trusting([&endpoint], authority.trust(Some("node-1"))).unwrap();
    let path = ApiRequest::get("/v1/placement/default/resource_providers");
    let refused = node.request_once(path).await.unwrap();
    assert_eq!(refused.status.as_u16(), 403);

    // The admin listener refuses a client without a certificate, with a node's, and with one of
    // another authority.
    let node = status(&authority.trust(Some("node-1")));
    let reason = String::from_utf8_lossy(&node.stderr).into_owned();
    assert!(
        !node.status.success() && reason.contains("does not belong to an operator"),
        "{reason}"
    );
    let fails = |trust: &Trust| {
        let output = placementctl(&endpoint, trust, &["status", "--timeout", "3"]);
        !output.status.success()
    };
    assert!(fails(&authority.trust(None)));
    let others = Authority::new(&cluster.directory().join("others")).unwrap();
    others.operator("eve").unwrap();
    let eve = Trust {
        ca_file: authority.trust(None).ca_file,
        ..others.trust(Some("admin-eve"))
    };
    assert!(fails(&eve));

    // The API listener refuses plain HTTP too, and never returns a plain HTTP location.
    let provider = ApiRequest::post("/resource_providers").json(&NewProvider::named("host"));
    let made = cluster.client().request_once(provider).await.unwrap();
    let location = made.headers["location"].to_str().unwrap();
    assert!(location.starts_with("https://127.0.0.1:"), "{location}");
    let plain = Client::new([cluster.place(1).api_url()])
        .unwrap()
        .with_patience(Duration::ZERO)
        .providers(&[])
        .await
        .unwrap_err();
    assert!(plain.to_string().contains("HTTPS only"), "{plain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socket_is_accessible_to_its_owner_only() {
    let cluster = Cluster::start(1).await.unwrap();
    let socket = cluster.data_dir(1).join("admin.sock");
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let endpoint = format!("unix:{}", socket.display());
    let status = placementctl(&endpoint, &Trust::default(), &["status"]);
    assert!(status.status.success(), "{status:?}");
    let backup = cluster.directory().join("backup").display().to_string();
    let taken = placementctl(&endpoint, &Trust::default(), &["backup", &backup]);
    assert!(taken.status.success(), "{taken:?}");
}

/// Default configuration without an admin port: nodes stop asking for addresses that no member has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_without_an_admin_port_do_not_grow_the_log() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    cluster.options_mut().socket_only = true;
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    let client = cluster.client().with_patience(PATIENCE);
    let host = NewProvider::named("host");
    client.create_provider(&host).await.unwrap();

    let socket = cluster.data_dir(1).join("admin.sock");
    let endpoint = format!("unix:{}", socket.display());
    let operator = Admin::new(Client::new([&endpoint]).unwrap());
    until_ok("a log that does not grow", async || {
        let before = operator.status().await.unwrap().last_log;
        // Longer than members keep asking for unknown addresses.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let after = operator.status().await.unwrap().last_log;
        (after == before).then_some(()).ok_or((before, after))
    })
    .await;
    shows(&endpoint, "healthy: 3 of 3").await;
}

/// Waits until the status through a socket has these words.
async fn shows(socket: &str, words: &str) {
    until_ok(words, async || {
        let status = placementctl(socket, &Trust::default(), &["status"]);
        let table = String::from_utf8_lossy(&status.stdout).into_owned();
        table.contains(words).then_some(()).ok_or(table)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn action_through_another_node_is_recorded_by_both() {
    let config = format!("[audit]\nto = \"stderr\"\n{STEADY_LEADER}");
    let cluster = Cluster::start_secured(3, &config).await.unwrap();
    let authority = cluster.options().authority.clone().unwrap();
    let socket = format!("unix:{}", cluster.data_dir(1).join("admin.sock").display());
    let drained = placementctl(&socket, &Trust::default(), &["drain", "2"]);
    assert!(drained.status.success(), "{drained:?}");
    shows(&socket, "drained").await;
    cluster.until_logged(&[2], "\"user\":\"node 1\"").await;
    cluster.until_logged(&[1], "/v1/nodes/2/drain").await;

    // An operator's action over the network is recorded too.
    let endpoint = format!("https://{}", cluster.place(3).admin());
    let trust = authority.trust(Some("admin-test"));
    let operator = Client::trusting([endpoint], trust).unwrap();
    let undrain = ApiRequest::new(Method::DELETE, "/v1/nodes/2/drain");
    let undrained = operator.request_once(undrain).await.unwrap();
    assert_eq!(undrained.status, StatusCode::NO_CONTENT, "{undrained:?}");
    cluster
        .until_logged(&[2], "\"user\":\"node 3 for admin-test\"")
        .await;

    // Through another node only some operations are possible.
    for (method, what) in [
        (Method::POST, "nodes/2/init"),
        (Method::GET, "nodes/2/backup"),
        (Method::GET, "nodes/2/nodes/3/status"),
        (Method::GET, "nodes/9/status"),
    ] {
        let refused = ApiRequest::new(method, &format!("/v1/{what}"));
        let refused = operator.request_once(refused).await.unwrap();
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{what} {refused:?}");
    }
}

/// Tries each TLS version with each application protocol, and prints the negotiated ones.
const TRY_ALL: &str = r#"
import socket, ssl, sys
ca, certificate, key, api, admin = sys.argv[1:]
for listener, address in ("api", api), ("admin", admin):
    host, port = address.rsplit(":", 1)
    for name in "TLSv1", "TLSv1_1", "TLSv1_2", "TLSv1_3":
        for offered in ["h2", "http/1.1"], ["http/1.1"]:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            tls.set_ciphers("ALL:@SECLEVEL=0")
            version = ssl.TLSVersion[name]
            tls.minimum_version = tls.maximum_version = version
            tls.load_verify_locations(ca)
            tls.load_cert_chain(certificate, key)
            tls.set_alpn_protocols(offered)
            try:
                with socket.create_connection((host, port)) as plain:
                    with tls.wrap_socket(plain, server_hostname="localhost") as secured:
                        print(listener, name, len(offered), secured.selected_alpn_protocol())
            except ssl.SSLError as refused:
                print(listener, name, len(offered), "refused" if "ALERT" in str(refused) else refused)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_1_3_or_1_2_and_clients_may_speak_http_2() {
    let cluster = Cluster::start_secured(1, "").await.unwrap();
    let trust = (cluster.options().authority.clone().unwrap()).trust(Some("admin-test"));
    let (certificate, key) = trust.certificate.unwrap();
    let mut tried = python::interpreter();
    tried.args(["-W", "ignore", "-c", TRY_ALL]);
    tried.args([trust.ca_file.unwrap(), certificate, key]);
    tried.args([cluster.place(1).api(), cluster.place(1).admin()]);
    let found = python::run(&mut tried).unwrap();
    let expected = ["api", "admin"].iter().flat_map(|listener| {
        ["TLSv1", "TLSv1_1", "TLSv1_2", "TLSv1_3"]
            .iter()
            .flat_map(move |version| {
                [2, 1].map(|offered| {
                    let agreed = match (*listener, *version, offered) {
                        (_, "TLSv1" | "TLSv1_1", _) => "refused",
                        ("api", _, 2) => "h2",
                        _ => "http/1.1",
                    };
                    format!("{listener} {version} {offered} {agreed}")
                })
            })
    });
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn long_heads_are_accepted_over_http_2_and_http_1() {
    let cluster = Cluster::start_secured(1, "").await.unwrap();
    // The longest allowed URL and token.
    let name = format!("CUSTOM_{}", "A".repeat(240));
    let path = format!("/traits?name=in:{}", vec![name.as_str(); 125].join(","));
    let token = format!("admin:{}", "p".repeat(15_000));
    let client = cluster.client().with_token(token.as_str());
    client.call(ApiRequest::get(&path)).await.unwrap();
    let mut connection = http_2::connected(&cluster, 1 << 16).await.unwrap();
    let mut status = async |padding: usize| {
        let asked = Request::get(format!("https://localhost{path}"))
            .header("x-auth-token", &token)
            .header("openstack-api-version", "placement 1.39")
            .header("x-padding", "p".repeat(padding));
        let answer = connection.send_request(asked.body(String::new()).unwrap());
        answer.await.unwrap().status()
    };
    assert_eq!(status(10).await, StatusCode::OK);
    assert_eq!(
        status(60_000).await,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
}
