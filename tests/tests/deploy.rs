//! The commands and configurations of docs/deploy work as printed.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use placement_client::{ApiRequest, ApiResponse, Client, NewProvider, Trust};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::keystone::{Keystone, TokenRequest};
use placement_tests::ports::Ports;
use placement_tests::program::Program;
use placement_tests::python::{self, run};
use placement_tests::skip::skipped;
use placement_tests::wait::{PATIENCE, until, until_ok, within};
use placement_tests::{binaries, osc};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use uuid::Uuid;

const PASSWORD: &str = "the-password-of-placement";
const OPERATOR: TokenRequest<'_> = TokenRequest {
    user: "operator",
    password: PASSWORD,
    project: Some("service"),
};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn installed_in() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn document(name: &str) -> String {
    fs::read_to_string(repository().join("docs/deploy").join(name)).unwrap()
}

/// The first block of a document in this language.
fn block(document: &str, language: &str) -> String {
    placement_docs::blocks(document, language)[0].to_owned()
}

/// An HAProxy process in front of a cluster.
struct Haproxy {
    _process: Program,
    url: String,
    authority: PathBuf,
    /// The socket of its administration.
    socket: PathBuf,
    _ports: Ports,
}

impl Haproxy {
    /// Starts HAProxy with the document's configuration, except for addresses, the certificate and
    /// the socket of its administration. `None` if haproxy is not installed.
    fn before(cluster: &Cluster) -> Option<Self> {
        let version = Command::new("haproxy").arg("-v").output();
        if !version.is_ok_and(|output| output.status.success()) {
            skipped("haproxy before three nodes", "there is no haproxy");
            return None;
        }
        let ports = Ports::claim(1);
        let address = format!("127.0.0.1:{}", ports.first());
        let [file, certificate, authority, socket] =
            ["haproxy.cfg", "cloud.pem", "ca.pem", "haproxy.sock"]
                .map(|name| cluster.directory().join(name));
        let mut text = block(&document("haproxy.md"), "haproxy")
            .replace("10.0.0.10:443", &address)
            .replace("/etc/haproxy/cloud.pem", certificate.to_str().unwrap());
        for id in cluster.ids() {
            text = text.replace(&format!("10.0.0.{id}:8778"), &cluster.place(id).api());
        }
        assert!(!text.contains("10.0.0."), "{text}");
        let global = format!(
            "global\n    stats socket {} level admin\n",
            socket.display()
        );
        fs::write(&file, global + &text).unwrap();
        let pem = concat!(
            include_str!("../src/s3/store.pem"),
            include_str!("../src/s3/store.key")
        );
        fs::write(certificate, pem).unwrap();
        fs::write(&authority, include_str!("../src/s3/ca.pem")).unwrap();
        run(Command::new("haproxy").arg("-c").arg("-f").arg(&file)).unwrap();
        let mut haproxy = Command::new("haproxy");
        haproxy.arg("-db").arg("-f").arg(&file);
        haproxy.stdin(Stdio::null()).stdout(Stdio::null());
        let child = haproxy.stderr(Stdio::null()).spawn();
        Some(Self {
            _process: Program(child.unwrap()),
            url: format!("https://{address}/placement"),
            authority,
            socket,
            _ports: ports,
        })
    }

    fn client(&self) -> Client {
        let trust = Trust {
            ca_file: Some(self.authority.clone()),
            ..Trust::default()
        };
        let (endpoint, path) = self.url.rsplit_once('/').unwrap();
        Client::trusting([endpoint], trust)
            .unwrap()
            .with_prefix(&format!("/{path}"))
    }

    /// Executes a command that prints nothing.
    fn administer(&self, command: &str) {
        let mut socket = UnixStream::connect(&self.socket).unwrap();
        writeln!(socket, "{command}").unwrap();
        let mut printed = String::new();
        socket.read_to_string(&mut printed).unwrap();
        assert_eq!(printed.trim(), "", "{command}");
    }
}

/// The `openstack` command-line client, with a Keystone.
struct Openstack {
    programs: PathBuf,
    auth_url: String,
    authority: PathBuf,
}

impl Openstack {
    /// Runs a command. Repeats it while the answer is 503, since a busy Keystone may answer the
    /// node too late, and a busy node may answer haproxy too late.
    async fn does(&self, who: TokenRequest<'_>, line: &str) -> String {
        let done = async || match self.does_once(who, line) {
            Err(error) if error.to_string().contains("HTTP 503") => Err(error),
            done => Ok(done.unwrap()),
        };
        until_ok(line, done).await
    }

    fn does_once(&self, who: TokenRequest<'_>, line: &str) -> anyhow::Result<String> {
        let mut words = line.split_whitespace();
        let mut command = Command::new(self.programs.join(words.next().unwrap()));
        command.env_clear().args(words);
        let environment = [
            ("OS_AUTH_URL", self.auth_url.as_str()),
            ("OS_USERNAME", who.user),
            ("OS_PASSWORD", who.password),
            ("OS_PROJECT_NAME", who.project.unwrap()),
            ("OS_USER_DOMAIN_NAME", "Default"),
            ("OS_PROJECT_DOMAIN_NAME", "Default"),
            ("OS_IDENTITY_API_VERSION", "3"),
            ("OS_REGION_NAME", "RegionOne"),
            ("OS_PLACEMENT_API_VERSION", "1.39"),
            ("OS_CACERT", self.authority.to_str().unwrap()),
        ];
        run(command.envs(environment))
    }
}

/// Keystone's catalog points to haproxy, which terminates TLS and forwards a path prefix to three
/// nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openstack_client_reaches_a_running_node_through_haproxy() {
    let keystone = Keystone::start(installed_in()).await.unwrap();
    let people = [(OPERATOR, "admin")];
    keystone.people("service", &people).await.unwrap();
    let config = format!(
        "{}[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"{}\"\n\
         username = \"placement\"\npassword = \"{PASSWORD}\"\n",
        block(&document("haproxy.md"), "toml"),
        keystone.url()
    );
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let Some(haproxy) = Haproxy::before(&cluster) else {
        return;
    };
    let openstack = Openstack {
        programs: osc::programs(installed_in()).unwrap(),
        auth_url: keystone.url(),
        authority: haproxy.authority.clone(),
    };
    // The commands of the document, without the password prompt.
    let readme = document("README.md");
    let is_command = |line: &&str| line.starts_with("    openstack ");
    let commands: Vec<_> = readme.lines().filter(is_command).collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in commands {
        let command = command
            .replace("--password-prompt", &format!("--password {PASSWORD}"))
            .replace("\"Placement\"", "Placement")
            .replace("https://cloud.example/placement", &haproxy.url);
        openstack.does(TokenRequest::ADMIN, &command).await;
    }

    // The client follows the Location of the created resource: over TLS, below the prefix.
    let create = "openstack resource provider create host";
    openstack.does(OPERATOR, create).await;
    let list = "openstack resource provider list -f value -c name";
    // haproxy temporarily sends no requests to a node that is too busy to answer its checks in
    // time.
    until_ok("a request of each node", async || {
        assert_eq!(openstack.does(OPERATOR, list).await, "host\n");
        let ids = cluster.ids().into_iter();
        let logs: Vec<_> = ids.map(|id| cluster.log(id, usize::MAX)).collect();
        let has_request = |log: &String| log.contains("/placement/resource_providers");
        logs.iter().all(has_request).then_some(()).ok_or(logs)
    })
    .await;
    cluster.kill_9(2);
    for _ in 0..2 {
        assert_eq!(openstack.does(OPERATOR, list).await, "host\n");
    }
    // A client cannot influence scheme, host or path of the URLs in its answers.
    let token = keystone.token(OPERATOR).await.unwrap();
    let client = haproxy.client().with_token(&token);
    let mut request = ApiRequest::post("/resource_providers")
        .microversion("1.39")
        .json(&json!({"name": "another"}));
    for (name, value) in [
        ("forwarded", "proto=http;host=evil.example"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-prefix", "/evil"),
    ] {
        request = request.header(name, value);
    }
    let made = client.request_once(request).await.unwrap();
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let location = made.headers["location"].to_str().unwrap();
    let own = format!("{}/resource_providers/", haproxy.url);
    assert!(location.starts_with(&own), "{location}");
}

/// The `[placement]` section of the document for this endpoint, without Keystone.
fn section(endpoint: &str) -> String {
    let who = format!("auth_type = admin_token\nendpoint = {endpoint}\ntoken = admin");
    block(&document("README.md"), "ini").replace("auth_type = password", &who)
}

/// Reads the section with keystoneauth and requests the list of providers.
fn asked(programs: &Path, section: &str, scratch: &Path) -> Value {
    let file = scratch.join("nova.conf");
    fs::write(&file, section).unwrap();
    let script = repository().join("tests/upstream/placement_section.py");
    let mut ask = Command::new(programs.join("python"));
    ask.arg("-B").args([&script, &file]);
    ask.arg("/resource_providers");
    serde_json::from_str(&run(&mut ask).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_retries_tolerate_a_time_without_a_leader() {
    let programs = python::keystoneauth(installed_in()).unwrap();
    let config = "[cluster]\nwait_ms = 200\n";
    let mut cluster = Cluster::start_with(3, config).await.unwrap();
    let section = section(&format!("http://{}", cluster.place(1).api()));
    let impatient = section.replace("status_code_retries = 7\n", "");
    assert_ne!(impatient, section);
    let scratch = cluster.directory().to_owned();
    cluster.kill_9(2);
    cluster.kill_9(3);
    let answer = asked(&programs, &impatient, &scratch);
    let shown = [&answer["status"], &answer["unknown"]];
    assert_eq!(shown, [&json!(503), &json!([])]);

    let refused = async |cluster: &Cluster| {
        let metrics = cluster.metrics(1).await;
        let is_503 = |line: &&str| {
            line.starts_with("placement_http_request_duration_seconds_count{")
                && line.contains("status=\"503\"")
        };
        let counts = metrics.lines().filter(is_503);
        counts
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
            .sum::<u64>()
    };
    let before = refused(&cluster).await;
    let asking = tokio::task::spawn_blocking(move || asked(&programs, &section, &scratch));
    until("a first refusal", async || refused(&cluster).await > before).await;
    cluster.start_node(2).unwrap();
    assert_eq!(asking.await.unwrap()["status"], 200);
}

/// Starts a balancer in front of a node that loses the answer to the first PUT: it closes the
/// connection when the answer arrives, and sets the returned flag.
async fn balancer_that_loses_an_answer(node: String) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let lost = Arc::new(AtomicBool::new(false));
    let is_lost = lost.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (node, is_lost) = (node.clone(), is_lost.clone());
            tokio::spawn(async move {
                let mut node = TcpStream::connect(node).await.unwrap();
                let mut start = [0; 4];
                // A client may close a connection that it does not use.
                let Ok(4) = client.peek(&mut start).await else {
                    return;
                };
                if start == *b"PUT " && !is_lost.swap(true, Ordering::Relaxed) {
                    let (mut from_client, _) = client.split();
                    let (mut from_node, mut to_node) = node.split();
                    let mut answer = [0; 64];
                    let answered = async { from_node.read(&mut answer).await.unwrap() };
                    tokio::select! {
                        _ = tokio::io::copy(&mut from_client, &mut to_node) => {}
                        length = answered => assert!(answer[..length].starts_with(b"HTTP/1.1 204")),
                    }
                    return;
                }
                // The client or the node closes the connection.
                let _ = copy_bidirectional(&mut client, &mut node).await;
            });
        }
    });
    (address, lost)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_is_done_once_if_its_answer_is_lost() {
    let programs = python::keystoneauth(installed_in()).unwrap();
    let cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let host = Uuid::new_v4();
    let provider = NewProvider::named("host").uuid(host);
    client.create_provider(&provider).await.unwrap();
    let path = format!("/resource_providers/{host}/inventories");
    let inventories = json!({"VCPU": {"total": 8}});
    let body = json!({"resource_provider_generation": 0, "inventories": inventories});
    client
        .call(ApiRequest::put(&path).json(&body))
        .await
        .unwrap();

    let (balancer, is_lost) = balancer_that_loses_an_answer(cluster.place(2).api()).await;
    let config = cluster.directory().join("nova.conf");
    fs::write(&config, section(&format!("http://{balancer}"))).unwrap();
    let path = format!("/allocations/{}", Uuid::new_v4());
    let mut body = json!({
        "allocations": {host.to_string(): {"resources": {"VCPU": 3}}}, "project_id": "p",
        "user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE",
    });
    let request_id = format!("req-{}", Uuid::new_v4());
    let claimed = async |body: &Value, request_id: &str| {
        let mut claim = Command::new(programs.join("python"));
        claim
            .arg("-B")
            .arg(repository().join("tests/upstream/claim.py"));
        claim
            .arg(&config)
            .args([&path, &body.to_string(), request_id]);
        let output = tokio::task::spawn_blocking(move || run(&mut claim).unwrap());
        serde_json::from_str::<Value>(&output.await.unwrap()).unwrap()
    };
    assert_eq!(claimed(&body, &request_id).await["status"], 204);
    let held: Value = client.fetch(ApiRequest::get(&path)).await.unwrap();
    assert_eq!(held["consumer_generation"], 1);
    assert_eq!(
        held["allocations"][host.to_string()]["resources"]["VCPU"],
        3
    );
    let usages = ApiRequest::get(&format!("/resource_providers/{host}/usages"));
    let usages: Value = client.fetch(usages).await.unwrap();
    assert_eq!(usages["usages"]["VCPU"], 3);
    assert!(is_lost.load(Ordering::Relaxed));
    let changes = ApiRequest::get("/placementd/v1/history");
    let history: Value = client.fetch(changes).await.unwrap();
    let entries = history["history"].as_array().unwrap().iter();
    let claims: Vec<_> = entries
        .filter(|one| one["verb"] == "ReplaceAllocations")
        .collect();
    assert_eq!(claims.len(), 1, "{history}");
    assert_eq!(claims[0]["request_id"], request_id);
    // Another request is not a repetition.
    let other = format!("req-{}", Uuid::new_v4());
    assert_eq!(claimed(&body, &other).await["status"], 409);
    body["allocations"][host.to_string()]["resources"]["VCPU"] = json!(2);
    assert_eq!(claimed(&body, &request_id).await["status"], 409);
}

/// Number of failures per test, from `PLACEMENT_BALANCER_ROUNDS`. With more than one round, each
/// loss of the quorum also lasts longer.
fn rounds() -> u64 {
    let rounds = std::env::var("PLACEMENT_BALANCER_ROUNDS");
    rounds.map_or(1, |rounds| rounds.parse().unwrap())
}

/// Clients that boot servers through haproxy with the retries of the document.
struct Boots {
    clients: Program,
    stop: PathBuf,
    report: PathBuf,
    _haproxy: Haproxy,
}

impl Boots {
    /// Creates hosts in the cluster and starts the clients. `None` if haproxy is not installed.
    async fn begin(cluster: &Cluster) -> Option<Self> {
        let haproxy = Haproxy::before(cluster)?;
        let client = cluster.client().with_prefix("/placement");
        for host in 0..10 {
            let uuid = Uuid::new_v4();
            let provider = NewProvider::named(&format!("host{host}")).uuid(uuid);
            client.create_provider(&provider).await.unwrap();
            let path = format!("/resource_providers/{uuid}/inventories");
            let inventories = json!({"VCPU": {"total": 1_000_000}});
            let body = json!({"resource_provider_generation": 0, "inventories": inventories});
            let request = ApiRequest::put(&path).json(&body);
            client.call(request).await.unwrap();
        }
        let [config, stop, report] =
            ["nova.conf", "stop", "boots.json"].map(|name| cluster.directory().join(name));
        let authority = haproxy.authority.display();
        let section = format!("{}cafile = {authority}\n", section(&haproxy.url));
        fs::write(&config, section).unwrap();
        let programs = python::keystoneauth(installed_in()).unwrap();
        let mut boots = Command::new(programs.join("python"));
        boots.arg("-B");
        boots.arg(repository().join("tests/upstream/boots.py"));
        boots.args([&config, &stop]).stdin(Stdio::null());
        boots.stdout(File::create(&report).unwrap());
        Some(Self {
            clients: Program(boots.spawn().unwrap()),
            stop,
            report,
            _haproxy: haproxy,
        })
    }

    /// Asserts that no request has failed and that the allocations are those of these clients.
    async fn end(mut self, cluster: &Cluster) {
        fs::write(&self.stop, "").unwrap();
        // Enough for all retries of a request, and a check of each server.
        let limit = Duration::from_secs(300);
        let ended = within(limit, async || self.clients.try_wait().unwrap().ok_or(()));
        assert!(ended.await.unwrap().success());
        let report = fs::read_to_string(&self.report).unwrap();
        let done: Value = serde_json::from_str(&report).unwrap();
        eprintln!("{done}");
        assert_eq!(done["failures"], json!([]), "{done}");
        assert!(done["booted"].as_u64().unwrap() > 20, "{done}");
        let client = cluster.client().with_prefix("/placement");
        let usages = ApiRequest::get("/usages?project_id=p").microversion("1.9");
        let usages: Value = client.fetch(usages).await.unwrap();
        assert_eq!(usages["usages"]["VCPU"], done["servers"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_boot_fails_behind_haproxy_while_a_leader_hangs_and_crashes() {
    let config = block(&document("haproxy.md"), "toml");
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let Some(boots) = Boots::begin(&cluster).await else {
        return;
    };
    for _ in 0..rounds() {
        sleep(Duration::from_secs(2)).await;
        let leader = cluster.leader().await.unwrap();
        cluster.process(leader).signal(Signal::STOP);
        sleep(Duration::from_secs(6)).await;
        cluster.kill_9(leader);
        sleep(Duration::from_secs(1)).await;
        cluster.start_node(leader).unwrap();
        cluster.wait_ready(leader).await.unwrap();
    }
    boots.end(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_boot_fails_behind_haproxy_without_a_quorum() {
    let config = block(&document("haproxy.md"), "toml");
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let Some(boots) = Boots::begin(&cluster).await else {
        return;
    };
    // Longer than a request waits, and longer than a node stays ready.
    let away_s = if rounds() > 1 { 25 } else { 8 };
    for _ in 0..rounds() {
        sleep(Duration::from_secs(2)).await;
        let leader = cluster.leader().await.unwrap();
        let follower = cluster.followers().await.unwrap()[0];
        for id in [leader, follower] {
            cluster.kill_9(id);
        }
        sleep(Duration::from_secs(away_s)).await;
        for id in [leader, follower] {
            cluster.start_node(id).unwrap();
        }
        for id in [leader, follower] {
            cluster.wait_ready(id).await.unwrap();
        }
    }
    boots.end(&cluster).await;
}

/// Sends each of three requests to another node, as haproxy distributes them. Returns when a hung
/// node holds one of them, and the other two are answered. Each has a connection of its own, since
/// haproxy closes a connection with earlier requests without an answer.
async fn one_per_node(
    haproxy: &Haproxy,
    requests: [ApiRequest; 3],
) -> [JoinHandle<ApiResponse>; 3] {
    let asked = requests.map(|request| {
        let client = haproxy.client();
        let client = client
            .with_attempt_timeout(PATIENCE)
            .with_patience(PATIENCE);
        tokio::spawn(async move { client.request_once(request).await.unwrap() })
    });
    until("two of three answers", async || {
        asked.iter().filter(|one| one.is_finished()).count() == 2
    })
    .await;
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_held_by_a_hung_node_are_answered_by_another_one_or_with_503() {
    let config = format!("{STEADY_LEADER}{}", block(&document("haproxy.md"), "toml"));
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let Some(haproxy) = Haproxy::before(&cluster) else {
        return;
    };
    let read = ApiRequest::get("/resource_providers");
    haproxy.client().call(read.clone()).await.unwrap();
    let hung = cluster.followers().await.unwrap()[0];
    // Until both requests are held, haproxy must not notice that the node hangs.
    for id in cluster.ids() {
        haproxy.administer(&format!("disable health placement/node-{id}"));
    }
    cluster.process(hung).signal(Signal::STOP);
    let reads = one_per_node(&haproxy, [0; 3].map(|_| read.clone())).await;
    let write = |nth| ApiRequest::put(&format!("/traits/CUSTOM_HELD_{nth}"));
    let writes = one_per_node(&haproxy, [1, 2, 3].map(write)).await;
    for id in cluster.ids() {
        haproxy.administer(&format!("enable health placement/node-{id}"));
    }
    for answer in join_all(reads).await {
        let answer = answer.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert_ne!(answer.position().node, Some(hung), "{answer:?}");
    }
    let writes = join_all(writes).await.into_iter().map(Result::unwrap);
    let mut statuses: Vec<_> = writes.map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 201, 503]);
}

fn kolla_playbook() -> String {
    let file = repository().join("scripts/packaging/kolla/placementd.yml");
    fs::read_to_string(file).unwrap()
}

/// How a configuration of haproxy, plain or in YAML, repeats requests. openstack-ansible itself
/// adds the word `option`.
fn repetition(text: &str) -> Vec<&str> {
    fn bare(line: &str) -> &str {
        let bare = line.trim().trim_start_matches("- ").trim_matches('"');
        bare.trim_start_matches("option ")
    }
    let names = [
        "retries ",
        "redispatch ",
        "retry-on ",
        "http-request disable-l7-retry ",
        "http-after-response ",
    ];
    let is_named = |line: &&str| names.iter().any(|name| line.starts_with(name));
    let mut found: Vec<_> = text.lines().map(bare).filter(is_named).collect();
    found.sort_unstable();
    found
}

#[test]
fn deployment_tools_configure_haproxy_as_documented() {
    let [manual, ansible] = [("haproxy.md", "haproxy"), ("openstack-ansible.md", "yaml")]
        .map(|(name, language)| block(&document(name), language));
    let kolla = kolla_playbook();
    assert_eq!(repetition(&manual).len(), 5, "{manual}");
    assert_eq!(repetition(&kolla), repetition(&manual));
    assert_eq!(repetition(&ansible), repetition(&manual));
    let checks = "check inter 2s fastinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions";
    assert!(manual.contains(checks) && kolla.contains(checks));
    for words in [
        "interval: 2000\n",
        "backend_fall: 2\n",
        "backend_rise: 1\n",
        "\"fastinter 500ms\"",
        "\"on-marked-down shutdown-sessions\"",
    ] {
        assert!(ansible.contains(words), "{words}");
    }
}

/// kolla's shared external frontend ignores the lines that a service adds to its own frontend.
#[test]
fn kolla_playbook_removes_headers_of_clients_behind_a_shared_frontend_too() {
    let playbook = kolla_playbook();
    let (_, backend) = playbook.split_once("backend_http_extra:\n").unwrap();
    let is_item = |line: &&str| line.starts_with("- ");
    let backend: Vec<_> = (backend.lines().map(str::trim).take_while(is_item)).collect();
    for change in [
        "del-header Forwarded",
        "del-header X-Forwarded-Prefix",
        "del-header X-Forwarded-For",
        "set-header X-Forwarded-Host %[req.hdr(Host)]",
    ] {
        let line = format!("- \"http-request {change}\"");
        assert!(
            backend.contains(&line.as_str()),
            "{line} is not in {backend:?}"
        );
    }
}

#[test]
fn kolla_playbook_grants_the_role_that_nova_compute_needs() {
    let playbook = kolla_playbook();
    let (_, granted) = playbook
        .split_once("service_ks_register_user_roles:\n")
        .unwrap();
    let granted: Vec<_> = granted.lines().map(str::trim).take(3).collect();
    let expected = [
        "- project: service",
        "user: \"{{ placement_keystone_user }}\"",
        "role: service",
    ];
    assert_eq!(granted, expected);
    assert!(playbook.contains("service_ks_register_roles: [service]\n"));
}

/// Rules of the API that allow requests with these roles, and rules that do not.
fn judged(roles: &str) -> (Vec<String>, Vec<String>) {
    let mut check = Command::new(binaries::placementd().unwrap());
    check.args([
        "policy",
        "check",
        "--user",
        "u",
        "--project",
        "p",
        "--roles",
        roles,
    ]);
    let output = run(&mut check).unwrap();
    let rules = |verdict: &str| {
        let prefix = format!("{verdict}: placement:");
        let found = output.lines().filter_map(|line| line.strip_prefix(&prefix));
        found.map(str::to_owned).collect()
    };
    (rules("passed"), rules("failed"))
}

#[test]
fn roles_that_deployment_tools_give_nova_are_sufficient() {
    let readme = document("README.md");
    let (_, table) = readme
        .split_once("| may reshape |\n|---|---|---|---|\n")
        .unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let mut verdicts = Vec::new();
    for row in table.lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (passed, failed) = judged(&cells[3].replace([' ', '`'], ""));
        if cells[4].starts_with("yes") {
            assert_eq!(failed, [""; 0], "{row}")
        } else {
            assert_eq!(failed, ["reshaper:reshape"], "{row}")
        }
        assert!(passed.contains(&"allocations:update".to_owned()), "{row}");
        verdicts.push(failed.is_empty());
    }
    assert_eq!(verdicts, [false, true, true, true]);
}

/// Stubs of the devstack functions that the plugin calls, followed by devstack's calls of the
/// plugin.
const DEVSTACK: &str = r#"
    set -euo pipefail
    pip_install_gr() { echo "pip $*"; }
    sudo() { "$@"; }
    is_service_enabled() { [ "$1" = tls-proxy ]; }
    create_placement_accounts() { echo accounts; }
    enable_apache_mod() { :; }
    apache_site_config_for() { echo "$DEST/apache-$1.conf"; }
    enable_apache_site() { echo "site $1"; }
    disable_apache_site() { echo "no site $1"; }
    restart_apache_server() { :; }
    run_process() { echo "run $1: $2"; }
    wait_for_service() { echo "wait $2"; }
    STACK_USER=$(id -un) SERVICE_TIMEOUT=60
    PLACEMENT_SERVICE_PROTOCOL=https PLACEMENT_SERVICE_HOST=203.0.113.7
    KEYSTONE_SERVICE_URI=https://203.0.113.7/identity SERVICE_PASSWORD=secret SERVICE_PROJECT_NAME=service
    SERVICE_DOMAIN_NAME=Default REGION_NAME=RegionOne SSL_BUNDLE_FILE=/opt/stack/data/ca-bundle.pem
    . "$PLUGIN/settings"
    . "$PLUGIN/plugin.sh"
    install_placement
    configure_placement
    init_placement
    start_placement_api
    stat -c %a "$PLACEMENTD_CONF_DIR/placementd.toml"
    cat "$DEST/apache-placement-api.conf"
    "$PLACEMENTD_PREFIX/bin/placementd" check-config --config "$PLACEMENTD_CONF_DIR/placementd.toml"
    cleanup_placement
    ls "$DEST"
"#;

#[test]
fn devstack_plugin_replaces_placement_api_by_a_node() {
    let dest = tempfile::tempdir().unwrap();
    let at = dest.path().display().to_string();
    // Scripts replace the binaries, since the test only checks how they are installed.
    let built = dest.path().join("built");
    fs::create_dir(&built).unwrap();
    for (name, binary) in [
        ("placementd", binaries::placementd().unwrap()),
        ("placementctl", binaries::placementctl().unwrap()),
    ] {
        let script = format!("#!/bin/sh\nexec {binary:?} \"$@\"\n");
        fs::write(built.join(name), script).unwrap();
        fs::set_permissions(built.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let plugin = repository().join("scripts/devstack");
    let mut devstack = Command::new("bash");
    devstack.args(["-c", DEVSTACK]).env("PLUGIN", plugin);
    devstack.env("PLACEMENTD_DIR", repository());
    devstack.env("PLACEMENTD_FROM", &built);
    for (name, path) in [
        ("DEST", ""),
        ("DATA_DIR", "/data"),
        ("PLACEMENTD_PREFIX", "/usr"),
        ("PLACEMENTD_CONF_DIR", "/etc"),
    ] {
        devstack.env(name, format!("{at}{path}"));
    }
    let output = run(&mut devstack).unwrap();
    for words in [
        "pip osc-placement\n".to_owned(),
        "accounts\n".to_owned(),
        "site placement-api\n".to_owned(),
        format!("run placement-api: {at}/usr/bin/placementd --config {at}/etc/placementd.toml\n"),
        "wait https://203.0.113.7/placement\n".to_owned(),
        "\n600\n".to_owned(),
        "ProxyPass \"/placement\" \"http://127.0.0.1:8778/placement\"".to_owned(),
        "public_url = \"https://203.0.113.7/placement\"".to_owned(),
        "auth_url = \"https://203.0.113.7/identity\"".to_owned(),
        "cafile = \"/opt/stack/data/ca-bundle.pem\"".to_owned(),
    ] {
        assert!(output.contains(&words), "no {words:?} in {output}");
    }
    let end = "no site placement-api\nbuilt\nusr\n";
    assert!(output.ends_with(end), "{output}");
}
