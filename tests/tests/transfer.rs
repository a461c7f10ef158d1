//! Moves from openstack-placement to a cluster and back: the reference is filled through its API,
//! its dump becomes a cluster, and the cluster's backup becomes a database of the reference. All of
//! them answer all reads alike according to `placementctl compare`, which detects each kind of
//! change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use http::Method;
use placement_client::{ApiRequest, Client};
use placement_tests::backups::{back_up, printed, refusal, restored};
use placement_tests::binaries;
use placement_tests::reference::Reference;
use serde_json::{Value, json};

pub(crate) fn placementd(arguments: &[&str]) -> Output {
    let mut command = Command::new(binaries::placementd().unwrap());
    command.args(arguments).output().unwrap()
}

pub(crate) fn stdout(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The digest in a report or at the end of an export.
pub(crate) fn digest(text: &str) -> &str {
    let (_, digest) = text.rsplit_once("content digest: ").unwrap();
    digest.trim_end()
}

fn provider(nth: u32) -> String {
    format!("a0000000-0000-4000-8000-{nth:012}")
}

fn consumer(nth: u32) -> String {
    format!("c0000000-0000-4000-8000-{nth:012}")
}

const AGGREGATE: &str = "a6600000-0000-4000-8000-000000000001";
pub(crate) const CANDIDATES: [&str; 4] = [
    "/allocation_candidates?resources=VCPU:1",
    "/allocation_candidates?resources=VCPU:1,DISK_GB:5",
    "/allocation_candidates?resources1=VCPU:1&resources2=CUSTOM_GOLD:1&group_policy=none",
    "/allocation_candidates?resources=MEMORY_MB:64&required=CUSTOM_FAST&root_required=!CUSTOM_NONE",
];

/// A cloud that is created through the API.
struct Cloud(Client);

impl Cloud {
    async fn done(&self, method: Method, path: &str, version: &str, body: Value) {
        let request = ApiRequest::new(method, path).microversion(version);
        let request = match body {
            Value::Null => request,
            body => request.json(&body),
        };
        self.0.call(request).await.unwrap();
    }

    async fn put(&self, path: &str, body: Value) {
        self.done(Method::PUT, path, "1.39", body).await;
    }

    async fn delete(&self, path: &str) {
        self.done(Method::DELETE, path, "1.39", Value::Null).await;
    }

    async fn host(&self, nth: u32, name: &str, parent: Option<u32>) {
        let mut body = json!({"name": name, "uuid": provider(nth)});
        if let Some(parent) = parent {
            body["parent_provider_uuid"] = json!(provider(parent));
        }
        self.done(Method::POST, "/resource_providers", "1.39", body)
            .await;
    }

    async fn generation(&self, nth: u32) -> Value {
        let path = format!("/resource_providers/{}", provider(nth));
        let found: Value = self.0.fetch(ApiRequest::get(&path)).await.unwrap();
        found["generation"].clone()
    }

    /// Replaces a subresource of a provider.
    async fn has(&self, nth: u32, what: &str, value: Value) {
        let path = format!("/resource_providers/{}/{what}", provider(nth));
        let generation = self.generation(nth).await;
        self.put(
            &path,
            json!({what: value, "resource_provider_generation": generation}),
        )
        .await;
    }

    async fn claim(&self, nth: u32, project: &str, kind: &str, of: &[(u32, Value)]) {
        let allocations: BTreeMap<String, Value> = of
            .iter()
            .map(|(host, resources)| (provider(*host), json!({"resources": resources})))
            .collect();
        let body = json!({"allocations": allocations, "project_id": project, "user_id": format!("user of {project}"),
            "consumer_generation": null, "consumer_type": kind});
        self.put(&format!("/allocations/{}", consumer(nth)), body)
            .await;
    }

    async fn make(&self) {
        for class in ["CUSTOM_GONE", "CUSTOM_GOLD"] {
            self.put(&format!("/resource_classes/{class}"), Value::Null)
                .await;
        }
        for name in ["CUSTOM_FAST", "CUSTOM_NONE", "CUSTOM_RACK_7"] {
            self.put(&format!("/traits/{name}"), Value::Null).await;
        }
        self.delete("/resource_classes/CUSTOM_GONE").await;
        self.hosts().await;
        self.claims().await;
    }

    async fn hosts(&self) {
        for (nth, name, parent) in [
            (1, "cmp-1", None),
            (2, "gone", None),
            (3, "cmp-1-numa-0", Some(1)),
            (4, "cmp-1-numa-1", Some(1)),
            (5, "moved", None),
            (6, "O'Brien \\ \"über\";\n-- 😀;\n", None),
            (7, "Storage", None),
            (8, "younger parent", None),
        ] {
            self.host(nth, name, parent).await;
        }
        self.delete(&format!("/resource_providers/{}", provider(2)))
            .await;
        // A provider may be older than its parent.
        let moved = json!({"name": "moved", "parent_provider_uuid": provider(8)});
        self.put(&format!("/resource_providers/{}", provider(5)), moved)
            .await;
        let numa = json!({"VCPU": {"total": 16, "allocation_ratio": 16.0}, "MEMORY_MB": {"total": 65536, "reserved": 512, "allocation_ratio": 1.5}});
        for nth in [3, 4] {
            self.has(nth, "inventories", numa.clone()).await;
            self.has(nth, "traits", json!(["HW_NUMA_ROOT", "CUSTOM_FAST"]))
                .await;
        }
        self.has(
            5,
            "inventories",
            json!({"CUSTOM_GOLD": {"total": 4, "max_unit": 2, "step_size": 2, "min_unit": 2}}),
        )
        .await;
        self.has(
            6,
            "inventories",
            json!({"VCPU": {"total": 10, "allocation_ratio": 0.9}, "DISK_GB": {"total": 500}}),
        )
        .await;
        self.has(
            7,
            "inventories",
            json!({"DISK_GB": {"total": 10000, "reserved": 100}}),
        )
        .await;
        self.has(
            7,
            "traits",
            json!(["MISC_SHARES_VIA_AGGREGATE", "CUSTOM_RACK_7"]),
        )
        .await;
        self.has(
            1,
            "aggregates",
            json!([AGGREGATE, "B6600000-0000-4000-8000-000000000002"]),
        )
        .await;
        self.has(7, "aggregates", json!([AGGREGATE])).await;
    }

    async fn claims(&self) {
        self.claim(
            1,
            "project-1",
            "INSTANCE",
            &[
                (3, json!({"VCPU": 4, "MEMORY_MB": 2048})),
                (7, json!({"DISK_GB": 40})),
            ],
        )
        .await;
        self.claim(2, "project-1", "MIGRATION", &[(4, json!({"VCPU": 2}))])
            .await;
        self.claim(
            3,
            "project-2",
            "INSTANCE",
            &[(6, json!({"VCPU": 9, "DISK_GB": 100}))],
        )
        .await;
        self.claim(4, "unused", "UNUSED", &[(6, json!({"DISK_GB": 1}))])
            .await;
        self.delete(&format!("/allocations/{}", consumer(4))).await;
        // A consumer without a type, and then without allocations.
        let untyped = json!({"allocations": {provider(5): {"resources": {"CUSTOM_GOLD": 2}}}, "project_id": "project-2",
            "user_id": "Üser", "consumer_generation": null});
        self.done(
            Method::PUT,
            &format!("/allocations/{}", consumer(5)),
            "1.28",
            untyped,
        )
        .await;
        self.claim(6, "project-3", "INSTANCE", &[]).await;
        // Usage exceeds the capacity.
        let shrunk =
            json!({"VCPU": {"total": 5, "allocation_ratio": 0.9}, "DISK_GB": {"total": 50}});
        self.has(6, "inventories", shrunk).await;
    }
}

pub(crate) fn url(service: &Client) -> String {
    service.endpoints()[0].to_string()
}

/// Compares two services; returns exit code and output.
pub(crate) fn compared(one: &str, other: &Client) -> (Option<i32>, String) {
    let mut command = Command::new(binaries::placementctl().unwrap());
    command.args(["compare", one, &url(other)]);
    let output = command.output().unwrap();
    // Shows progress on a slow machine.
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), stdout)
}

/// Answers to queries that `placementctl compare` does not make: the body, and the `last-modified`
/// time if it is the time of the content.
async fn answers(client: &Client) -> BTreeMap<String, (Value, Option<String>)> {
    let filters = [
        "".to_owned(),
        "?resources=VCPU:1".to_owned(),
        format!("?in_tree={}", provider(5)),
        format!("?member_of={AGGREGATE}"),
    ];
    let lists = filters.map(|filter| format!("/resource_providers{filter}"));
    let mut answers = BTreeMap::new();
    for path in lists.into_iter().chain(CANDIDATES.map(str::to_owned)) {
        let asked = ApiRequest::get(&path).microversion("1.39");
        let answer = client
            .call(asked)
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        let time = answer
            .header("last-modified")
            .filter(|_| !CANDIDATES.contains(&&*path))
            .map(str::to_owned);
        let body = sorted(answer.json().unwrap());
        answers.insert(path, (body, time));
    }
    answers
}

/// Sorts all lists: the reference returns sets in most places, also for candidates.
pub(crate) fn sorted(body: Value) -> Value {
    match body {
        Value::Array(list) => {
            let mut list: Vec<Value> = list.into_iter().map(sorted).collect();
            list.sort_by_key(Value::to_string);
            Value::Array(list)
        }
        Value::Object(all) => (all.into_iter())
            .map(|(key, value)| (key, sorted(value)))
            .collect(),
        plain => plain,
    }
}

/// Asserts that both services answer each read alike.
async fn assert_same(one: &Client, other: &Client) {
    assert_eq!(
        compared(&url(one), other),
        (Some(0), "0 differences in 54 responses\n".to_owned())
    );
    let (one, other) = (answers(one).await, answers(other).await);
    for (path, answer) in one {
        assert_eq!(answer, other[&path], "{path}");
    }
}

/// Asserts that each kind of change on one side is detected.
async fn assert_found(one: &str, changed: &Client) {
    let cloud = Cloud(changed.clone());
    cloud.host(9, "new", Some(5)).await;
    for path in ["/resource_classes/CUSTOM_NEW", "/traits/CUSTOM_NEW"] {
        cloud.put(path, Value::Null).await;
    }
    cloud
        .has(9, "inventories", json!({"CUSTOM_NEW": {"total": 1}}))
        .await;
    cloud
        .claim(9, "project-9", "INSTANCE", &[(9, json!({"CUSTOM_NEW": 1}))])
        .await;
    cloud.has(7, "traits", json!(["CUSTOM_NEW"])).await;
    let (code, found) = compared(one, changed);
    let mut lines: Vec<_> = found.lines().collect();
    assert_eq!(lines.pop(), Some("15 differences in 59 responses"));
    let paths: Vec<_> = (lines.iter().filter_map(|line| line.split_once("  ")))
        .map(|(path, _)| path.to_owned())
        .collect();
    let [old, new] = [7, 9].map(|nth| format!("/resource_providers/{}", provider(nth)));
    let parts = [
        "",
        "/allocations",
        "/inventories",
        "/usages",
        "/traits",
        "/aggregates",
    ];
    let of = |host: &String, parts: &[&str]| -> Vec<String> {
        parts.iter().map(|part| format!("{host}{part}")).collect()
    };
    let lists = ["/resource_classes", "/traits", "/traits?associated=true"];
    let mut expected = lists.map(str::to_owned).to_vec();
    expected.extend(of(&old, &parts));
    expected.extend(of(&new, &parts[..2]));
    // The first consumer has allocations from the changed host and shows its generation.
    expected.extend([1, 9].map(|nth| format!("/allocations/{}", consumer(nth))));
    let usages = "/usages?project_id=project-9";
    expected.push(usages.to_owned());
    expected.push(format!("{usages}&user_id=user%20of%20project-9"));
    assert_eq!((code, paths), (Some(1), expected), "{found}");
}

pub(crate) fn installed_in() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openstack_placement_moves_in_and_out_with_equal_reads() {
    let before = Reference::start(installed_in(), "").await;
    Cloud(before.client()).make().await;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (dump, backup) = (path("dump.sql"), path("backup"));
    fs::write(&dump, before.dump()).unwrap();

    let report = stdout(placementd(&["import", &dump, "--out", &backup]));
    for (class, providers, units) in [("VCPU", 3, 15), ("DISK_GB", 2, 140), ("CUSTOM_GOLD", 1, 2)] {
        assert!(
            report.contains(&format!("{class:<30} {providers:>10} {units:>20}\n")),
            "{report}"
        );
    }
    let left_out = format!("{:<30} {:>10} {:>10}\n", "projects", 4, 3);
    for found in [
        "2: more is allocated than the capacity",
        "1: a consumer without allocations",
        &left_out,
    ] {
        assert!(report.contains(found), "{report}");
    }
    let (cluster, _) = restored(Path::new(&backup), &[]).await;
    assert_same(&before.client(), &cluster.client()).await;

    let taken = path("taken");
    let of_backup = printed(&back_up(&cluster, Path::new(&taken)));
    drop(before);
    let export = |from: &str, to: &str| {
        stdout(placementd(&[
            "export",
            "--from",
            from,
            "--dialect",
            "sqlite",
            "--out",
            to,
        ]));
        let exported = fs::read_to_string(to).unwrap();
        assert_eq!(digest(&report), digest(&exported));
        exported
    };
    let of_file = export(&taken, &path("of-file.sql"));
    let position = format!("{}.{}", of_backup["epoch"], of_backup["index"]);
    let answer = cluster.client().call(ApiRequest::get("/traits")).await;
    let token = answer.unwrap().position().index.unwrap();
    let (epoch, _) = token.as_str().split_once('.').unwrap();
    assert_eq!(epoch, of_backup["epoch"]);
    let position = format!("INSERT INTO placementd_position VALUES ('{position}');\n");
    assert!(of_file.contains(&position), "{position}");
    let endpoint = format!("http://{}", cluster.place(2).admin());
    let exported = export(&endpoint, &path("exported.sql"));
    let after = Reference::start(installed_in(), &exported).await;
    assert_same(&cluster.client(), &after.client()).await;
    // The restored cluster accepts further changes.
    let data_dir = cluster.place(3).data_dir.display();
    assert_found(&format!("unix:{data_dir}/admin.sock"), &after.client()).await;
}

#[test]
fn unreachable_cluster_is_not_exported() {
    let directory = tempfile::tempdir().unwrap();
    let [socket, out] = ["admin.sock", "out.sql"].map(|name| directory.path().join(name));
    let endpoint = format!("unix:{}", socket.display());
    let out = out.to_str().unwrap();
    let export = ["export", "--from", &endpoint, "--dialect", "mysql", "--out"];
    let refused = refusal(&placementd(&[&export[..], &[out]].concat()), 1);
    for reason in ["no node sent a backup", "no backup was taken of unix:/"] {
        assert!(refused.contains(reason), "{refused}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn refused_dump_leaves_no_files() {
    let whole = include_str!("../../node/transfer/tests/dumps/sqlite.sql");
    let revision = whole.replace("VALUES('a082b8bb98d0')", "VALUES('b5c396305c25')");
    let table = whole.replace("CREATE TABLE projects (", "CREATE TABLE instances (");
    let latin1 = whole.chars().map(|char| u8::try_from(char).unwrap_or(b'?'));
    let directory = tempfile::tempdir().unwrap();
    let [dump, backup] =
        ["dump.sql", "backup"].map(|name| directory.path().join(name).to_str().unwrap().to_owned());
    let import = ["import", &dump, "--out", &backup];
    for (refused, reason) in [
        (
            whole.as_bytes()[..whole.len() / 2].to_vec(),
            "it is cut off",
        ),
        (latin1.collect(), "is not UTF-8. Dump with"),
        (
            whole.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "it does not begin like a dump of",
        ),
        (revision.into_bytes(), "Run `placement-manage db sync`"),
        (table.into_bytes(), "table projects is missing"),
    ] {
        fs::write(&dump, refused).unwrap();
        let refused = refusal(&placementd(&import), 1);
        assert!(refused.contains(reason), "{refused}");
        let left: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["dump.sql"]);
    }
    fs::write(&backup, "of last week").unwrap();
    let refused = refusal(&placementd(&import), 1);
    assert!(refused.contains("already exists"), "{refused}");
    assert_eq!(fs::read_to_string(&backup).unwrap(), "of last week");
}

/// The draft's name is a symbolic link, in a folder that others may write to.
#[test]
fn symbolic_link_at_the_draft_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let dump = include_str!("../../node/transfer/tests/dumps/sqlite.sql");
    fs::write(file("dump.sql"), dump).unwrap();
    fs::write(file("precious"), "of someone else").unwrap();
    for out in ["backup", "export.sql"] {
        symlink(file("precious"), file(&format!("{out}.part"))).unwrap();
    }
    let (backup, export) = (file("backup"), file("export.sql"));
    stdout(placementd(&["import", &file("dump.sql"), "--out", &backup]));
    let dialect = ["--dialect", "mysql", "--out", &export];
    stdout(placementd(
        &[&["export", "--from", &backup][..], &dialect].concat(),
    ));
    assert_eq!(
        fs::read_to_string(file("precious")).unwrap(),
        "of someone else"
    );
    for made in [backup, export] {
        assert!(fs::symlink_metadata(&made).unwrap().is_file(), "{made}");
    }
}
