//! Reports and exit codes of `placementctl`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Client, Inventory, NewProvider, NodeRole};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::node_process::{NodeProcess, StartOptions};
use placement_tests::program::Program;
use placement_tests::wait::{until, until_ok};
use placement_tests::{binaries, host};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use uuid::Uuid;

/// Exit code, standard output and standard error of a command.
fn ctl(cluster: &Cluster, arguments: &[&str]) -> (i32, String, String) {
    let output = cluster.placementctl(arguments).unwrap();
    texts(&output)
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let code = output.status.code().expect("it is not killed");
    (code, text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn status_exit_code_reports_how_many_nodes_may_be_lost() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let columns = ["VERSION", env!("CARGO_PKG_VERSION"), "READY", "DISK FREE"];
    let healthy = [&["healthy: 3 of 3 voters ready, 1 may fail"], &columns[..]].concat();
    cluster.until_shown(&["status"], 0, &healthy).await;
    until_ok("a complete report", async || {
        let report = cluster.admin_of(1).status().await.unwrap();
        let is_complete = report.ready
            && report.not_ready.is_none()
            && report.disk_used_bytes > Some(0)
            && report.disk_free_bytes > Some(0);
        if is_complete { Ok(()) } else { Err(report) }
    })
    .await;

    let leader = cluster.leader().await.unwrap();
    cluster.kill_9(leader);
    let silent = format!("node {leader} does not answer");
    let degraded = ["degraded: 2 of 3 voters ready, 0 may fail", &silent];
    cluster.until_shown(&["status"], 1, &degraded).await;
    let unchecked = format!("node {leader} could not be checked: it does not answer: ");
    let refused = [&*unchecked, "Connection refused"];
    cluster.until_shown(&["check"], 2, &refused).await;
    let next = cluster.leader_other_than(Some(leader)).await.unwrap();
    cluster.kill_9(next);
    // The remaining voter was ready a moment ago.
    let (code, text, _) = ctl(&cluster, &["status"]);
    assert_eq!(code, 2, "{text}");
    let no_quorum = ["leader none", "no quorum: 0 of 3 voters ready, 2 needed"];
    cluster.until_shown(&["status"], 2, &no_quorum).await;
    let stopped = ["no quorum: writes have stopped"];
    let topology = cluster.until_shown(&["topology"], 2, &stopped).await;
    assert!(!topology.contains("(leads)"), "{topology}");
    let json = ["status", "--output", "json"];
    let no_quorum = ["\"condition\": \"no_quorum\""];
    cluster.until_shown(&json, 2, &no_quorum).await;
    let yaml = ["status", "--output", "yaml"];
    let no_quorum = ["  condition: no_quorum"];
    cluster.until_shown(&yaml, 2, &no_quorum).await;
    (cluster.until_shown(&["top", "--once"], 2, &["no quorum: 0 of 3"])).await;
    // A node waits for a leader for longer than a second.
    for limit in ["30s", "1s"] {
        let replace = ["replace", &leader.to_string(), "--timeout", limit];
        let (code, _, reason) = ctl(&cluster, &replace);
        assert_eq!(code, 2, "{reason}");
        assert!(reason.contains("no quorum: "), "{reason}");
        assert!(reason.contains("nothing was committed"), "{reason}");
    }
    let list = ["members", "list"];
    cluster.until_shown(&list, 0, &["ROLE", "no answer"]).await;
    assert_eq!(cluster.ctl(&["members", "list", "-o", "name"]), "1\n2\n3\n");

    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    let (code, _, reason) = ctl(&cluster, &["status", "--timeout", "1"]);
    assert_eq!(code, 2, "{reason}");
    assert!(reason.contains("no node answered"), "{reason}");
}

#[tokio::test]
async fn slow_follower_is_named_while_clients_write() {
    let mut cluster = Cluster::start_with(3, STEADY_LEADER).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let client = cluster.client_of(leader);
    let provider = host::with_processors(&client).await;
    let slow = cluster.followers().await.unwrap()[0];
    let writes = tokio::spawn(async move {
        loop {
            host::claim(&client, provider).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    // The process runs for a fifth of the time.
    let pid = i32::try_from(cluster.process(slow).pid()).unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    let slowed = tokio::spawn(async move {
        loop {
            for (signal, ms) in [(Signal::STOP, 800), (Signal::CONT, 200)] {
                kill_process(pid, signal).unwrap();
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        }
    });
    let warning = format!("warning: node {slow} is slow: it acknowledges log entries after ");
    until_ok("a warning", async || {
        let (_, text, _) = ctl(&cluster, &["status"]);
        text.contains(&warning).then_some(()).ok_or(text)
    })
    .await;
    let series = format!("placement_raft_follower_slow{{node=\"{slow}\"}} 1");
    let metrics = cluster.metrics(leader).await;
    assert!(metrics.contains(&series), "{metrics}");
    slowed.abort();
    cluster.process(slow).signal(Signal::CONT);
    // The median of the last minute falls while clients write.
    until("no warning", async || {
        let (_, text, _) = ctl(&cluster, &["status"]);
        !text.contains(" is slow: ")
    })
    .await;
    writes.abort();
}

#[tokio::test]
async fn commands_end_although_the_node_of_the_first_endpoint_hangs() {
    let mut cluster = Cluster::start(3).await.unwrap();
    (cluster.until_shown(&["status"], 0, &["healthy"])).await;
    let hung = cluster.followers().await.unwrap()[0];
    cluster.process(hung).signal(Signal::STOP);
    let mut order = cluster.ids();
    order.sort_by_key(|id| *id != hung);
    let socket = |id| format!("unix:{}", cluster.data_dir(id).join("admin.sock").display());
    let endpoints: Vec<_> = order.into_iter().map(socket).collect();
    let silent = format!("node {hung} does not answer: ");
    let unchecked = format!("node {hung} could not be checked");
    for (line, code, words) in [
        ("status", 1, silent.as_str()),
        ("members list", 0, "no answer"),
        ("top --once --interval 1s", 0, silent.as_str()),
        ("check", 2, unchecked.as_str()),
        ("capacity", 0, ""),
    ] {
        let mut command = Command::new("timeout");
        command
            .arg("90")
            .arg(binaries::placementctl().unwrap())
            .args(line.split(' '))
            .env("PLACEMENTCTL_ENDPOINT", endpoints.join(","));
        let (ended, text, errors) = texts(&command.output().unwrap());
        let text = text + &errors;
        assert_eq!(ended, code, "{line}: {text}");
        assert!(text.contains(words), "{line}: {text}");
    }
    cluster.process(hung).signal(Signal::CONT);
}

#[tokio::test]
async fn leadership_is_transferred_only_to_a_reachable_node() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let dead = cluster.followers().await.unwrap()[0];
    cluster.kill_9(dead);
    // A node counts as reachable for twice the longest election timeout; until then the leader
    // would try to transfer to it.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let leader = until_ok("a refusal by the leader", async || {
        let leader = cluster.leader().await.unwrap();
        let (code, _, reason) = ctl(&cluster, &["transfer-leader", "--to", &dead.to_string()]);
        let silent = format!("node {dead} has not answered lately");
        let goes_on = format!("node {leader} remains the leader");
        let is_refused = code == 1 && reason.contains(&silent) && reason.contains(&goes_on);
        is_refused.then_some(leader).ok_or((leader, code, reason))
    })
    .await;

    let (code, _, reason) = ctl(&cluster, &["transfer-leader", "9"]);
    assert_eq!(code, 1, "{reason}");
    let voters = "node 9 is not a voter; the voters are 1, 2 and 3";
    assert!(reason.contains(voters), "{reason}");

    let alive = (1..=3).find(|id| ![leader, dead].contains(id)).unwrap();
    let to_alive = ["transfer-leader", "--to", &alive.to_string()];
    let done = cluster.ctl_in_time(&to_alive).await;
    assert_eq!(done, format!("node {alive} leads\n"));
}

#[tokio::test]
async fn removal_without_a_spare_voter_needs_confirmation() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let gone = cluster.followers().await.unwrap()[0];
    let remove = ["members", "remove", &gone.to_string()];
    let advice = ["tolerates no further failure", "--yes"];
    cluster.until_shown(&remove, 1, &advice).await;
    (cluster.until_shown(&["status"], 0, &["healthy: 3 of 3"])).await;

    let confirmed = [&remove[..], &["--yes"]].concat();
    let done = cluster.ctl_in_time(&confirmed).await;
    assert!(done.contains("tolerates no further failure"), "{done}");

    for restarted in [false, true] {
        if restarted {
            cluster.stop_node(gone).await.unwrap();
            cluster.start_node(gone).unwrap();
        }
        let admin = cluster.admin_of(gone);
        until("the removal", async || {
            admin.status().await.unwrap().role == NodeRole::Removed
        })
        .await;
        let removed = "was removed from its cluster";
        let readyz = cluster.client_of(gone);
        let readyz = readyz
            .request_once(ApiRequest::get("/readyz"))
            .await
            .unwrap();
        assert_eq!(readyz.status.as_u16(), 503);
        let reason = String::from_utf8_lossy(&readyz.body).into_owned();
        assert!(reason.contains(removed), "{reason}");
        cluster.until_logged(&[gone], removed).await;
    }

    // A removed node that is asked first reports the current cluster.
    let through_removed = ["--endpoint", &cluster.place(gone).admin(), "status"];
    let removed = format!("node {gone} was removed");
    let degraded = ["degraded: 2 of 2 voters ready, 0 may fail", &removed];
    cluster.until_shown(&through_removed, 1, &degraded).await;
}

#[tokio::test]
async fn nodes_without_initial_members_wait_for_init() {
    let cluster = Cluster::prepare(3, "").unwrap();
    let options = StartOptions {
        initial_members: String::new(),
        ..cluster.options().clone()
    };
    let mut processes = Vec::new();
    let mut init = vec!["init".to_owned()];
    for id in cluster.ids() {
        let place = cluster.place(id);
        processes.push(NodeProcess::start(place, &options).unwrap());
        init.push("--member".to_owned());
        init.push(format!("{id}={}", place.peer()));
    }
    for id in cluster.ids() {
        let report = cluster.admin_of(id).status().await.unwrap();
        assert_eq!(report.role, NodeRole::Waiting);
    }
    let none = ["there is no cluster yet"];
    cluster.until_shown(&["status"], 2, &none).await;
    let waits = cluster.client_of(1);
    let get = async |path| waits.request_once(ApiRequest::get(path)).await.unwrap();
    until("an answer", async || {
        waits.request_once(ApiRequest::get("/livez")).await.is_ok()
    })
    .await;
    assert_eq!(get("/readyz").await.status.as_u16(), 503);
    assert_eq!(get("/livez").await.status.as_u16(), 200);
    let write = ApiRequest::post("/resource_providers").json(&json!({ "name": "early" }));
    let refused = waits.request_once(write).await.unwrap();
    let reason = String::from_utf8_lossy(&refused.body);
    assert!(reason.contains("does not belong to a cluster"), "{reason}");
    // A node without a cluster has no position in a log.
    let answer = get("/").await;
    assert_eq!(answer.header("placement-node"), Some("1"));
    assert_eq!(answer.header("placement-index"), None);

    let operator = Client::new([cluster.place(1).admin()]).unwrap();
    for (path, status) in [
        ("/v1/nodes/1/status", 200),
        ("/v1/nodes/1/log", 200),
        ("/v1/nodes/1/check", 409),
        ("/v1/nodes/2/status", 409),
    ] {
        let answer = operator.request_once(ApiRequest::get(path)).await.unwrap();
        assert_eq!(answer.status, status, "{path}: {:?}", answer.body);
    }

    let init: Vec<&str> = init.iter().map(String::as_str).collect();
    let (code, done, reason) = ctl(&cluster, &init);
    assert_eq!(code, 0, "{reason}");
    assert!(done.contains("with members 1, 2, 3"), "{done}");
    let healthy = ["healthy: 3 of 3 voters ready, 1 may fail"];
    cluster.until_shown(&["status"], 0, &healthy).await;
    let (code, _, reason) = ctl(&cluster, &init);
    assert_eq!(code, 1);
    assert!(
        reason.contains("already belongs to a formed cluster"),
        "{reason}"
    );
}

#[tokio::test]
async fn without_a_quorum_lists_show_the_local_state() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let made = cluster.create_partition("north", &[], &["/north"]);
    made.await.unwrap();
    let token = cluster.ctl(&["join-token", "create"]);
    let (number, _) = token.trim().split_once('-').unwrap();
    cluster.assert_equal_states().await;
    for id in [2, 3] {
        cluster.kill_9(id);
    }
    let operator = Client::new([cluster.place(1).admin()]).unwrap();
    let id = format!("\"id\":{number},");
    let mut took = Duration::MAX;
    // The first requests find out that there is no leader.
    for _ in 0..3 {
        let begun = Instant::now();
        for (path, words) in [("/v1/partitions", "\"north\""), ("/v1/join-tokens", &id)] {
            let answer = operator.request_once(ApiRequest::get(path)).await.unwrap();
            let text = String::from_utf8_lossy(&answer.body);
            assert!(answer.status == 200 && text.contains(words), "{text}");
        }
        took = took.min(begun.elapsed());
    }
    assert!(took < Duration::from_secs(1), "{took:?}");

    let capacity = ["capacity", "--timeout", "4"];
    let reasons = [
        "; trying for 2 s more",
        "no quorum: node 1 answers, nodes 2 and 3 do not; `--local` shows the state of node 1",
        "Connection refused",
    ];
    cluster.until_shown(&capacity, 2, &reasons).await;

    // Long before the time limit, the tool says what the reason is and what helps.
    let mut waiting = Command::new(binaries::placementctl().unwrap());
    waiting.args(["--endpoint", &cluster.place(1).admin(), "--timeout", "60"]);
    waiting.args(["providers", "list"]).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut waiting = Program(waiting.spawn().unwrap());
    let mut messages = BufReader::new(waiting.0.stderr.take().unwrap()).lines();
    let advice = messages.find(|line| line.as_ref().unwrap().contains("`--local` shows"));
    let took = begun.elapsed();
    let advice = advice.expect("the tool advises before it ends").unwrap();
    assert!(
        advice.starts_with("placementctl: no quorum: node 1 answers"),
        "{advice}"
    );
    assert!(took < Duration::from_secs(10), "{took:?}: {advice}");
    assert!(waiting.0.try_wait().unwrap().is_none(), "it does not wait");

    let begun = Instant::now();
    let at_api = [
        "--endpoint",
        &cluster.place(1).api(),
        "--timeout",
        "60",
        "status",
    ];
    let (code, _, error) = ctl(&cluster, &at_api);
    assert_eq!(code, 1, "{error}");
    assert!(
        error.contains("is the REST listener of placementd"),
        "{error}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn wrong_endpoints_end_at_once_with_a_reason() {
    let cluster = Cluster::start(1).await.unwrap();
    let place = cluster.place(1);
    let tls = format!("https://{}", place.admin());
    let peer_with_tls = format!("https://{}", place.peer());
    for (endpoint, code, reason) in [
        (
            "unix:/nope,unix:/none",
            2,
            "unix:/nope: there is no such socket; unix:/none: there is",
        ),
        ("unix:/nope", 2, "Is placementd running on this machine"),
        (
            &*place.api(),
            1,
            "is the REST listener of placementd; give --endpoint the admin listener of a node",
        ),
        (&*place.peer(), 1, "This is the port for other nodes"),
        (
            &*peer_with_tls,
            2,
            "this is the port for other nodes. placementctl needs admin.sock or",
        ),
        (&*tls, 2, "this port does not speak TLS: use http://"),
        (
            "placement",
            64,
            "'--endpoint <ENDPOINT>': expected host:port, the port is missing",
        ),
    ] {
        let begun = Instant::now();
        let (found, _, error) = ctl(&cluster, &["--endpoint", endpoint, "status"]);
        assert_eq!(found, code, "{endpoint}: {error}");
        assert!(error.contains(reason), "{endpoint}: {error}");
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{endpoint}: {error}"
        );
        for word in ["client error", "os error", "InvalidContentType"] {
            assert!(!error.contains(word), "{endpoint}: {error}");
        }
    }
    // No node answers at the second endpoint.
    for endpoint in [&*tls, "https://127.0.0.1:1"] {
        let missing = ["--endpoint", endpoint, "--cacert", "/nope", "status"];
        let begun = Instant::now();
        let (code, _, error) = ctl(&cluster, &missing);
        assert_eq!(code, 2, "{error}");
        assert!(
            error.ends_with("/nope: No such file or directory\n"),
            "{error}"
        );
        assert!(begun.elapsed() < Duration::from_secs(5), "{error}");
    }
}

#[test]
fn usage_errors_have_their_own_exit_code() {
    for (line, code) in [
        ("no-such-command", 64),
        ("status -o xml", 64),
        ("status --timeout soon", 64),
        ("capacity --as-of tomorrow", 64),
        ("join-token create --ttl 1w", 64),
        ("api GET traits", 64),
        ("", 64),
        ("--help", 0),
        ("help flags", 0),
        ("flags", 0),
        ("--version", 0),
    ] {
        let mut placementctl = Command::new(binaries::placementctl().unwrap());
        placementctl.args(["--endpoint", "127.0.0.1:1", "--timeout", "0.1"]);
        let output = placementctl.args(line.split_whitespace()).output().unwrap();
        let (found, _, error) = texts(&output);
        assert_eq!(found, code, "{line}: {error}");
    }
    for (line, code) in [
        ("no-such-command", 64),
        ("--api-lsten 127.0.0.1:1", 64),
        ("restore --from backup --until tomorrow", 64),
        ("policy", 64),
        ("--help", 0),
        ("--version", 0),
    ] {
        let mut placementd = Command::new(binaries::placementd().unwrap());
        let output = placementd.args(line.split_whitespace()).output().unwrap();
        let (found, _, error) = texts(&output);
        assert_eq!(found, code, "placementd {line}: {error}");
    }
}

#[test]
fn ordinary_errors_are_one_line_despite_rust_backtrace() {
    let mut placementctl = Command::new(binaries::placementctl().unwrap());
    placementctl.args(["--endpoint", "127.0.0.1:1", "--timeout", "0.1"]);
    placementctl.args(["transfer-leader"]);
    let mut placementd = Command::new(binaries::placementd().unwrap());
    placementd.args(["--config", "/nowhere/placementd.toml"]);
    for (mut command, expected) in [(placementctl, 2), (placementd, 1)] {
        let output = command.env("RUST_BACKTRACE", "full").output().unwrap();
        let (code, _, error) = texts(&output);
        assert_eq!(code, expected, "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.starts_with("placementctl: ") || error.starts_with("placementd: "));
    }
}

/// A host whose processors belong to a NUMA node, and one server.
async fn numa_host(client: &Client) {
    let host = host::create(client, "cmp-1.example.net").await;
    let numa = Uuid::new_v4();
    let node = NewProvider::named("cmp-1.example.net_numa0");
    let node = node.uuid(numa).child_of(host);
    client.create_provider(&node).await.unwrap();
    for (provider, class, total) in [(host, "MEMORY_MB", 65_536), (numa, "VCPU", 16)] {
        let offer = [(class, Inventory::with_total(total))];
        client
            .replace_inventories(provider, 0, offer)
            .await
            .unwrap();
    }
    host::claim(client, numa).await.unwrap();
}

#[tokio::test]
async fn lists_show_usage_and_short_names_find_their_host() {
    let cluster = Cluster::start(1).await.unwrap();
    numa_host(&cluster.client()).await;
    let host = "cmp-1.example.net";
    assert_eq!(
        cluster.ctl(&["providers", "list", "--roots"]),
        format!("{:<17}  VCPU  MEMORY_MB\n{host}  1/16   0/64 GiB\n", "NAME")
    );
    let columns = "name,vcpu_used,vcpu_capacity";
    let csv = ["-o", "csv", "--columns", columns, "--sort=-vcpu_used"];
    let listed = |more: &[&str]| cluster.ctl(&[&["providers", "list"], more, &csv].concat());
    let (head, of_numa) = (
        "name,VCPU_used,VCPU_capacity\n",
        format!("{host}_numa0,1,16\n"),
    );
    assert_eq!(listed(&["--name", "numa0"]), format!("{head}{of_numa}"));
    assert_eq!(listed(&[]), format!("{head}{of_numa}{host},,\n"));
    let roots = listed(&["--roots", "--class", "VCPU:8"]);
    assert_eq!(roots, format!("{head}{host},1,16\n"));

    let shown = cluster.ctl(&["providers", "show", "cmp-1"]);
    assert!(shown.starts_with(&format!("{host}\n")), "{shown}");
    let tree = cluster.ctl(&["providers", "tree", "cmp-1.example.net_"]);
    assert!(
        tree.starts_with(&format!("{host}  (0 consumers)\n")),
        "{tree}"
    );
    let takes = cluster.ctl(&["candidates", "VCPU:1", "MEMORY_MB:512"]);
    assert!(takes.contains("_numa0: VCPU=1"), "{takes}");
}

#[tokio::test]
async fn messages_name_what_is_absent() {
    let cluster = Cluster::start(1).await.unwrap();
    numa_host(&cluster.client()).await;
    let no_class = "there is no resource class VPCU";
    let no_project = "no consumers found: none has the project \"nope\"";
    for (arguments, code, message) in [
        ("providers list --name other", 0, "no providers found"),
        (
            "providers list --name cpm-1.example.net",
            0,
            "no name contains \"cpm-1.example.net\"; similar: cmp-1.example.net",
        ),
        ("providers list --class VPCU", 1, no_class),
        ("providers show other", 1, "no provider has \"other\""),
        (
            "providers tree cmp-l.example.net",
            1,
            "no provider has \"cmp-l.example.net\" as UUID or as the beginning of its name; similar: cmp-1.example.net",
        ),
        (
            "consumers list --provider example.net",
            1,
            "similar: cmp-1.example.net",
        ),
        ("bulk --class VPCU", 0, no_class),
        ("consumers list --project nope", 0, no_project),
        ("consumers list --class VPCU", 1, no_class),
        (
            "consumers list --user user --type MIGRATION",
            0,
            "none has the type \"MIGRATION\"",
        ),
        ("usages --project nope", 0, no_project),
        ("capacity --class VPCU", 1, no_class),
        (
            "history --class VPCU",
            0,
            "no changes found: there is no resource class VPCU",
        ),
        (
            "history --project nope",
            0,
            "no consumer has the project \"nope\"",
        ),
        ("candidates VPCU:1", 1, no_class),
        (
            "candidates resource=VCPU:1",
            64,
            "\"resource\" is not a parameter of a query",
        ),
        (
            "explain VCPU",
            64,
            "\"VCPU\" is not a query: use resources=VCPU:1",
        ),
    ] {
        let words: Vec<_> = arguments.split(' ').collect();
        let (found, _, error) = ctl(&cluster, &words);
        assert_eq!(found, code, "{arguments}: {error}");
        assert!(error.contains(message), "{arguments}: {error}");
        // A loaded machine may need more than two seconds.
        let lines = error.lines();
        let lines = lines.filter(|line| !line.contains("no answer yet"));
        assert_eq!(lines.count(), 1, "{arguments}: {error}");
    }
}

#[tokio::test]
async fn truncated_output_says_that_there_is_more() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    let host = host::with_processors(&client).await;
    for name in ["second", "third"] {
        host::create(&client, name).await;
    }
    for _ in 0..3 {
        host::claim(&client, host).await.unwrap();
    }
    for (list, few, all, words) in [
        (
            "providers list",
            "2",
            "3",
            "only the first 2 rows are shown",
        ),
        (
            "consumers list",
            "2",
            "3",
            "only the first 2 rows are shown",
        ),
        (
            "history",
            "2",
            "1000",
            "only the newest 2 entries are shown",
        ),
        (
            "candidates resources=VCPU:1",
            "1",
            "2",
            "only the first 1 candidates are shown because of the limit",
        ),
    ] {
        let warning = |limit| {
            let arguments: Vec<_> = list.split(' ').chain(["--limit", limit]).collect();
            let (code, _, warning) = ctl(&cluster, &arguments);
            assert_eq!(code, 0, "{list}: {warning}");
            warning
        };
        let shown = warning(few);
        assert!(shown.contains(words), "{list}: {shown}");
        assert_eq!(warning(all), "", "{list}");
    }
    let unknown = ["providers", "list", "--columns", "nme"];
    let (code, _, error) = ctl(&cluster, &unknown);
    assert!(code == 64 && error.contains("no column \"nme\""), "{error}");
    let top = cluster.ctl(&["top", "--once", "--interval", "0.5s"]);
    for words in ["healthy: 1 of 1", "REQUESTS/S", "node-1", "VCPU", " %  "] {
        assert!(top.contains(words), "{words}: {top}");
    }
    let (code, _, error) = ctl(&cluster, &["top"]);
    assert!(code == 64 && error.contains("--once"), "{error}");
}

/// The commands of a part of a page, as one script.
fn commands(page: &str, from: &str, to: &str) -> String {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    let text = std::fs::read_to_string(page).unwrap();
    let part = text.split_once(from).unwrap().1.split_once(to).unwrap().0;
    let lines = part.lines().filter_map(|line| line.strip_prefix("    "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first steps after the installation of the package work as written.
#[tokio::test]
async fn first_candidates_are_found_by_the_commands_of_the_page() {
    let cluster = Cluster::start(1).await.unwrap();
    let script = commands("operate/form.md", "**The first candidates.**", "Next: ");
    let placementctl = binaries::placementctl().unwrap();
    let path = placementctl.parent().unwrap().display().to_string();
    let output = Command::new("bash")
        .args(["-euxc", &script])
        .env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()))
        .env("PLACEMENTCTL_ENDPOINT", cluster.place(1).admin())
        .output()
        .unwrap();
    let (code, shown, error) = texts(&output);
    assert_eq!(code, 0, "{error}");
    for words in [
        "NAME  VCPU\ntry    0/8\n",
        "try   try: VCPU=1\n",
        "there are candidates with VCPU:8 in place of 100000",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(cluster.ctl(&["providers", "list", "-o", "name"]), "");
}
