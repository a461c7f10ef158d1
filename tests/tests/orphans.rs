//! `placementctl consumers`: finds forgotten consumers, releases them by a plan, and restores them;
//! gives consumers without a type a type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use placement_client::{ApiRequest, Claim, Inventory};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::power::Power;
use placement_tests::skip::skipped;
use serde_json::{Value, json};
use uuid::Uuid;

/// Audits consumers of any age.
const AUDIT: [&str; 8] = [
    "consumers",
    "audit",
    "--older-than",
    "0s",
    "--migrations-older-than",
    "0s",
    "-o",
    "jsonl",
];

/// A cluster of three hosts, with consumers of different kinds.
struct Cloud {
    cluster: Cluster,
    hosts: [Uuid; 3],
    /// Consumers that Nova knows: many ordinary ones, one evacuated, and one on a host that has
    /// shrunk.
    known: Vec<Uuid>,
    orphans: BTreeSet<Uuid>,
    migration: Uuid,
}

impl Cloud {
    async fn start() -> Self {
        Self::in_microversion("1.39").await
    }

    /// Writes allocations like Nova, in this microversion; from 1.38 on consumers have types.
    async fn in_microversion(version: &str) -> Self {
        let cluster = Cluster::start(1).await.unwrap();
        let client = cluster.client();
        let mut hosts = [Uuid::nil(); 3];
        for (host, name) in hosts.iter_mut().zip(["cmp-1", "cmp-2", "cmp-3"]) {
            *host = host::create(&client, name).await;
            let offer = [("VCPU", Inventory::with_total(100))];
            client.replace_inventories(*host, 0, offer).await.unwrap();
        }
        let [one, two, three] = hosts;
        let of = |host| Claim::by("project", "user").and(host, &[("VCPU", 1)]);
        let mut migration = Claim::by("other", "user").and(two, &[("VCPU", 1)]);
        migration.consumer_type = "MIGRATION".to_owned();
        let evacuated = of(one).and(two, &[("VCPU", 1)]);
        let large = Claim::by("project", "user").and(three, &[("VCPU", 8)]);
        let mut claims: Vec<Claim> = (0..22).map(|_| of(one)).collect();
        claims.extend([evacuated, large]);
        claims.extend((0..20).map(|_| of(two)));
        claims.push(migration);
        let mut ids: Vec<_> = claims.iter().map(|_| Uuid::new_v4()).collect();
        let claims: BTreeMap<_, _> = ids.iter().copied().zip(claims).collect();
        let mut claims = json!(claims);
        if version < "1.38" {
            let bodies = claims.as_object_mut().unwrap().values_mut();
            bodies.for_each(|body| drop(body.as_object_mut().unwrap().remove("consumer_type")));
        }
        let request = ApiRequest::post("/allocations").json(&claims);
        client.call(request.microversion(version)).await.unwrap();
        let generation = client.provider(three).await.unwrap().generation;
        let less = [("VCPU", Inventory::with_total(4))];
        let shrunk = client.replace_inventories(three, generation, less).await;
        let generation = shrunk.unwrap().resource_provider_generation;
        let disabled = ["COMPUTE_STATUS_DISABLED"];
        let disabled = client.replace_provider_traits(three, generation, disabled);
        disabled.await.unwrap();
        Self {
            cluster,
            hosts,
            migration: ids.pop().unwrap(),
            orphans: ids.split_off(24).into_iter().collect(),
            known: ids,
        }
    }

    /// Path of a file in the cluster's directory.
    fn file(&self, name: &str) -> String {
        self.cluster.directory().join(name).display().to_string()
    }

    /// Writes a list of Nova's servers: servers on the first host, as `openstack` prints them, and
    /// one more. Returns the command that prints the list.
    fn servers(&self, name: &str, known: &[Uuid], more: Option<Value>) -> String {
        let server = |id| json!({"ID": id, "Status": "ACTIVE", "Host": "cmp-1"});
        let servers: Vec<_> = known.iter().map(server).chain(more).collect();
        fs::write(self.file(name), json!(servers).to_string()).unwrap();
        format!("cat {}", self.file(name))
    }

    /// Writes a list of migrations of one server. Returns the command that prints it.
    fn migrations(&self, ids: &[Uuid]) -> String {
        let migration =
            |id| json!({"UUID": id, "Server UUID": self.known[0], "Status": "finished"});
        let migrations: Vec<_> = ids.iter().map(migration).collect();
        fs::write(self.file("migrations"), json!(migrations).to_string()).unwrap();
        format!("cat {}", self.file("migrations"))
    }

    /// Runs `placementctl`, which must exit with this code. Returns standard output and standard
    /// error.
    fn ctl(&self, code: i32, arguments: &[&str]) -> (String, String) {
        let output = self.cluster.placementctl(arguments).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, error) = (text(output.stdout), text(output.stderr));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {out}{error}"
        );
        (out, error)
    }

    /// Consumers or hosts of each kind of finding.
    fn audit(&self, code: i32, more: &[&str]) -> (BTreeMap<String, BTreeSet<String>>, String) {
        let (lines, notes) = self.ctl(code, &[&AUDIT, more].concat());
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in lines.lines() {
            let one: Value = serde_json::from_str(line).unwrap();
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let name = text(&one["uuid"]).or(text(&one["roots"][0])).unwrap();
            found
                .entry(text(&one["finding"]).unwrap())
                .or_default()
                .insert(name);
        }
        (found, notes)
    }

    /// Number of orphans with allocations from the second host.
    async fn held(&self) -> usize {
        let client = self.cluster.client();
        let held = client.provider_allocations(self.hosts[1]).await.unwrap();
        let is_orphan = |id: &&Uuid| self.orphans.contains(id);
        held.allocations.keys().filter(is_orphan).count()
    }
}

fn lines(file: &str) -> usize {
    fs::read_to_string(file).unwrap().lines().count()
}

#[tokio::test]
async fn releases_are_planned_only_by_a_complete_and_newer_list() {
    let cloud = Cloud::start().await;
    // A migration counts as old after a second.
    let old = cloud
        .cluster
        .until_shown(&AUDIT, 3, &["old_migration"])
        .await;
    assert!(!old.contains("orphan"), "{old}");
    let set = |ids: &[Uuid]| ids.iter().map(Uuid::to_string).collect::<BTreeSet<_>>();
    let all = cloud.servers("all", &cloud.known, None);
    let plan = cloud.file("plan");
    let (found, notes) = cloud.audit(3, &["--servers-command", &all, "--plan", &plan]);
    let orphans: Vec<_> = cloud.orphans.iter().copied().collect();
    let expected = [
        ("evacuated", set(&[cloud.known[22]])),
        ("disabled_host", set(&[cloud.known[23]])),
        ("old_migration", set(&[cloud.migration])),
        ("orphan", set(&orphans)),
        ("over_capacity", BTreeSet::from(["cmp-3".to_owned()])),
    ]
    .map(|(kind, names)| (kind.to_owned(), names));
    assert_eq!(found, BTreeMap::from(expected), "{notes}");
    assert_eq!(lines(&plan), 20);
    let migrations = cloud.migrations(&[Uuid::new_v4()]);
    let more = [
        "--servers-command",
        &all,
        "--migrations-command",
        &migrations,
    ];
    let (found, _) = cloud.audit(3, &more);
    assert!(found["orphan"].contains(&cloud.migration.to_string()));

    let before = ["consumers", "audit", "--servers", &cloud.file("all")];
    let (_, error) = cloud.ctl(1, &before);
    assert!(error.contains("--servers-command"), "{error}");
    let down = json!({"ID": Uuid::new_v4(), "Status": "UNKNOWN", "Host": null});
    for (name, known, more, reason) in [
        ("page", &cloud.known[..2], None, "no INSTANCE is planned"),
        ("down", &cloud.known[..], Some(down), "a cell is down"),
    ] {
        let (servers, plan) = (
            cloud.servers(name, known, more),
            cloud.file(&format!("plan-{name}")),
        );
        let (_, notes) = cloud.audit(2, &["--servers-command", &servers, "--plan", &plan]);
        assert!(notes.contains(reason), "{notes}");
        assert_eq!(lines(&plan), 0, "{name}");
    }
}

#[tokio::test]
async fn plan_releases_unchanged_consumers_and_can_be_undone() {
    let cloud = Cloud::start().await;
    let [plan, undo, next] = ["plan", "undo", "next"].map(|name| cloud.file(name));
    let all = cloud.servers("all", &cloud.known, None);
    cloud.audit(3, &["--servers-command", &all, "--plan", &plan]);
    let changed: Vec<Uuid> = cloud.orphans.iter().copied().take(3).collect();
    for id in &changed {
        let claim = Claim::by("project", "user")
            .and(cloud.hosts[0], &[("VCPU", 2)])
            .generation(1);
        (cloud.cluster.client().put_allocations(*id, &claim).await).unwrap();
    }
    let release = ["consumers", "release", "--apply", &plan, "--undo"];
    let (text, _) = cloud.ctl(3, &[&release, &[&*undo][..]].concat());
    for id in &changed {
        assert!(
            text.contains(&format!("refused {id}: the consumer has changed since")),
            "{text}"
        );
    }
    assert!(text.ends_with("released 17 of 20\n"), "{text}");
    assert_eq!((cloud.held().await, lines(&undo)), (0, 17));

    let restore = ["consumers", "release", "--undo-from", &undo];
    assert_eq!(cloud.ctl(0, &restore).0, "restored 17 of 17\n");
    assert_eq!(cloud.held().await, 17);
    let (text, _) = cloud.ctl(3, &restore);
    assert_eq!(text.matches("not restored ").count(), 17, "{text}");

    let few = [&release, &[&*next, "--max", "5"][..]].concat();
    let (text, _) = cloud.ctl(3, &few);
    assert!(text.ends_with("released 5 of 20\n"), "{text}");
    assert_eq!(cloud.held().await, 12);
    // An existing undo file is not overwritten.
    let (_, error) = cloud.ctl(1, &few);
    assert!(error.contains("nothing was changed"), "{error}");
}

/// Consumers as Nova 34 creates them.
#[tokio::test]
async fn consumers_without_a_type_are_released_and_restored_without_one() {
    let cloud = Cloud::in_microversion("1.36").await;
    let [plan, undo, none] = ["plan", "undo", "none"].map(|name| cloud.file(name));
    let all = cloud.servers("all", &cloud.known, None);
    let by_servers = ["--servers-command", &all];
    let (found, notes) = cloud.audit(3, &[&by_servers[..], &["--plan", &none]].concat());
    assert!(notes.contains("21 consumers without a type"), "{notes}");
    assert!(!found.contains_key("orphan") && lines(&none) == 0);

    let migrations = cloud.migrations(&[cloud.migration]);
    let by_both = [&by_servers[..], &["--migrations-command", &migrations]].concat();
    let (found, _) = cloud.audit(3, &[&by_both[..], &["--plan", &plan]].concat());
    let orphans = cloud.orphans.iter().map(Uuid::to_string);
    assert_eq!(found["orphan"], orphans.collect());
    // According to both lists the server was not evacuated.
    assert_eq!(
        found["doubled"],
        BTreeSet::from([cloud.known[22].to_string()])
    );
    assert_eq!(lines(&plan), 21);

    let release = ["consumers", "release", "--apply", &plan, "--undo", &undo];
    assert_eq!(cloud.ctl(0, &release).0, "released 21 of 21\n");
    assert_eq!(cloud.held().await, 0);
    let restore = ["consumers", "release", "--undo-from", &undo];
    assert_eq!(cloud.ctl(0, &restore).0, "restored 21 of 21\n");
    assert_eq!(cloud.held().await, 20);
    let listed = cloud.ctl(0, &["consumers", "list", "-o", "jsonl"]).0;
    let consumers = listed.lines().map(serde_json::from_str::<Value>);
    let types: Vec<_> = consumers.map(|one| one.unwrap()["type"].clone()).collect();
    assert_eq!(types, vec![Value::Null; 45]);
}

/// Consumers as Nova 34 creates them.
#[tokio::test]
async fn consumers_without_a_type_get_that_of_nova_s_list() {
    let cloud = Cloud::in_microversion("1.36").await;
    let [plan, rest, undo] = ["plan", "rest", "undo"].map(|name| cloud.file(name));
    let servers = cloud.servers("all", &cloud.known, None);
    let migrations = cloud.migrations(&[cloud.migration]);
    let label = ["consumers", "label"];
    let lists = [
        "--servers-command",
        &servers,
        "--migrations-command",
        &migrations,
        "--plan",
    ];
    let (found, notes) = cloud.ctl(3, &[&label[..], &lists, &[&*plan, "-o", "name"]].concat());
    assert_eq!((found.lines().count(), lines(&plan)), (25, 25), "{found}");
    assert!(notes.contains("20 consumers without a type"), "{notes}");
    let release = ["consumers", "release", "--apply", &plan, "--undo", &undo];
    let (_, error) = cloud.ctl(1, &release);
    assert!(error.contains("line 1 of"), "{error}");

    let client = cloud.cluster.client();
    let changed = cloud.known[0];
    let allocations = json!({ (cloud.hosts[0].to_string()): {"resources": {"VCPU": 2}} });
    let body = json!({"allocations": allocations, "consumer_generation": 1, "project_id": "project", "user_id": "user"});
    let request = ApiRequest::put(&format!("/allocations/{changed}")).json(&body);
    client.call(request.microversion("1.36")).await.unwrap();
    // What is done stays done if the plan is applied a second time.
    for _ in 0..2 {
        let (text, _) = cloud.ctl(3, &[&label[..], &["--apply", &plan]].concat());
        let skipped = format!("skipped {changed}: the consumer has changed since\n");
        assert!(text.contains(&skipped), "{text}");
        // One consumer has more than its inventory permits by now.
        assert!(
            text.contains("would violate inventory constraints"),
            "{text}"
        );
        assert!(text.ends_with("labelled 23 of 25\n"), "{text}");
    }
    let usages = async |project: &str| {
        let path = format!("/usages?project_id={project}");
        let answer = client.call(ApiRequest::get(&path).microversion("1.38"));
        answer.await.unwrap().json::<Value>().unwrap()
    };
    let sum = |consumers: u64, units: u64| json!({"consumer_count": consumers, "VCPU": units});
    assert_eq!(
        usages("project").await,
        json!({"usages": {"INSTANCE": sum(22, 23), "unknown": sum(22, 30)}})
    );
    assert_eq!(
        usages("other").await,
        json!({"usages": {"MIGRATION": sum(1, 1)}})
    );

    cloud.ctl(3, &[&label[..], &lists, &[&*rest]].concat());
    let (text, _) = cloud.ctl(3, &[&label[..], &["--apply", &rest]].concat());
    assert!(text.ends_with("labelled 1 of 2\n"), "{text}");
    assert_eq!(
        usages("project").await,
        json!({"usages": {"INSTANCE": sum(23, 25), "unknown": sum(21, 28)}})
    );
    cloud.ctl(3, &[&label[..], &lists[..4]].concat());
}

#[tokio::test]
async fn release_can_be_undone_after_a_power_loss() {
    let cloud = Cloud::start().await;
    let Some(power) = Power::new(cloud.cluster.directory()) else {
        skipped("an undo file and a loss of power", "there is no C compiler");
        return;
    };
    let all = cloud.servers("all", &cloud.known, None);
    let endpoint = cloud.cluster.place(1).admin();
    // Number of records in the undo file and of released consumers; `None` without a file.
    let released = |number: u64, unsynced: Option<&str>| {
        let dir = cloud.cluster.directory().join(format!("release-{number}"));
        fs::create_dir(&dir).unwrap();
        let (plan, undo) = (cloud.file(&format!("plan-{number}")), dir.join("undo"));
        cloud.audit(3, &["--servers-command", &all, "--plan", &plan]);
        let output = Command::new(binaries::placementctl().unwrap())
            .envs(power.environment(number, unsynced).unwrap())
            .args(["--endpoint", &endpoint, "consumers", "release"])
            .args(["--max", "2", "--apply", &plan, "--undo"])
            .arg(&undo)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        power.cut(number, &dir).unwrap();
        fs::read_to_string(&undo).map(|text| (text.lines().count(), undo))
    };
    let (records, undo) = released(8, None).unwrap();
    assert_eq!((records, cloud.held().await), (2, 18));
    let restore = [
        "consumers",
        "release",
        "--undo-from",
        undo.to_str().unwrap(),
    ];
    assert_eq!(cloud.ctl(0, &restore).0, "restored 2 of 2\n");
    // Without either of the syncs the undo file is lost, so the test detects it.
    assert_eq!(released(9, Some("/undo$")).unwrap().0, 0);
    released(10, Some("/release-10/$")).unwrap_err();
}
