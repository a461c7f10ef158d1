//! The systemd unit, the Debian package, the image, Compose and the chart work where they are
//! installed. `scripts/nightly` runs the ignored tests too: they need root, or packaging tools that
//! take minutes to compile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use placement_client::NewProvider;
use placement_tests::authority::Authority;
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::ports::Ports;
use placement_tests::private;
use placement_tests::program::Program;
use placement_tests::python::{self, environment};
use placement_tests::skip::skipped;
use placement_tests::tutorial;
use rustix::process::{Signal, geteuid};
use serde_json::Value;
use tempfile::TempDir;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn packaging() -> PathBuf {
    repository().join("scripts/packaging")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Output of a command that must succeed.
fn printed(command: &mut Command) -> String {
    python::run(command).unwrap()
}

/// Folder with the package of the binaries under test, built once.
fn package() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        binaries::placementd().unwrap();
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        let _ = fs::remove_dir_all(&dir);
        let mut script = Command::new(repository().join("scripts/package"));
        printed(script.args(["--built", "--to"]).arg(&dir));
        dir
    };
    MADE.get_or_init(make).clone()
}

/// The file with this ending in the folder of packages.
fn made(ending: &str) -> PathBuf {
    let found = fs::read_dir(package()).unwrap();
    let names = found.map(|entry| entry.unwrap().path());
    let mut fitting = names.filter(|path| path.to_str().unwrap().ends_with(ending));
    fitting.next().unwrap()
}

/// A bare Debian in an archive, built once. `None` where it cannot be built.
fn debian() -> Option<PathBuf> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        if !geteuid().is_root() || !works(Command::new("mmdebstrap").arg("--version")) {
            let why = "this is not root, or there is no mmdebstrap";
            skipped("a bare Debian", why);
            return None;
        }
        let tar = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bookworm-with-curl.tar");
        if !tar.exists() {
            let draft = tar.with_extension("new.tar");
            let mut bootstrap = Command::new("mmdebstrap");
            let needed = "--include=adduser,curl,libstdc++6";
            bootstrap.args(["--variant=apt", needed, "bookworm"]);
            printed(bootstrap.arg(&draft));
            fs::rename(draft, &tar).unwrap();
        }
        Some(tar)
    };
    MADE.get_or_init(make).clone()
}

/// Settings of a node that forms a cluster alone.
fn alone(ports: &Ports) -> [(&'static str, String); 4] {
    let address = |nth: u16| format!("127.0.0.1:{}", ports.first() + nth);
    [
        ("PLACEMENTD_NODE_ID", "1".to_owned()),
        ("PLACEMENTD_INITIAL_MEMBERS", format!("1={}", address(1))),
        ("PLACEMENTD_API_LISTEN", address(0)),
        ("PLACEMENTD_PEER_LISTEN", address(1)),
    ]
}

/// Starts a node with the rest of the command line, waits until it is healthy, prints its status,
/// and stops it.
const LIFE: &str = r#"
    "$@" & node=$!
    for try in $(seq 300); do placementctl status >/dev/null 2>&1 && break; sleep 0.1; done
    placementctl status
    kill $node
    wait $node"#;

/// Values of a key in the unit.
fn unit<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let fitting = lines.filter(|(name, _)| *name == key);
    fitting.map(|(_, value)| value).collect()
}

#[test]
fn unit_lets_journald_drop_no_line() {
    let text = read(&packaging().join("debian/placementd.service"));
    assert_eq!(unit(&text, "LogRateLimitIntervalSec"), ["0"]);
}

#[test]
fn unit_is_valid_and_sandboxed() {
    if !works(Command::new("systemd-analyze").arg("--version")) {
        skipped("the systemd unit", "there is no systemd-analyze");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("placementd.service");
    let text = read(&packaging().join("debian/placementd.service"));
    let placementd = binaries::placementd().unwrap();
    let text = text.replace("/usr/bin/placementd", placementd.to_str().unwrap());
    fs::write(&file, text).unwrap();
    printed(Command::new("systemd-analyze").arg("verify").arg(&file));
    // An exposure level of 2.0 of 10; systemd rates levels below 5.0 as OK.
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--threshold=20"]);
    printed(security.arg(&file));
    fs::write(&file, "[Service]\nExecStart=/bin/true\n").unwrap();
    assert!(!works(&mut security), "the check accepts any unit");
}

/// Runs placementd with the view of `/proc` that the unit grants.
#[tokio::test]
#[ignore = "scripts/nightly runs it"]
async fn unit_lets_the_node_read_machine_metrics() {
    let may_mount =
        works(Command::new("unshare").args(["--mount", "mount", "-t", "proc", "proc", "/proc"]));
    if !may_mount {
        skipped(
            "the machine as the unit shows it",
            "/proc cannot be mounted",
        );
        return;
    }
    let text = read(&packaging().join("debian/placementd.service"));
    let [protect, subset] = ["ProtectProc", "ProcSubset"].map(|key| unit(&text, key).pop());
    let options = match subset {
        Some(subset) => format!("hidepid={},subset={subset}", protect.unwrap()),
        None => format!("hidepid={}", protect.unwrap()),
    };
    let mut cluster = Cluster::prepare(1, "").unwrap();
    let confined = cluster.directory().join("confined");
    let placementd = binaries::placementd().unwrap();
    let script = format!(
        "#!/bin/sh\nexec unshare --mount sh -c 'mount -t proc -o {options} proc /proc && exec \"$0\" \"$@\"' \
         {placementd:?} \"$@\"\n"
    );
    fs::write(&confined, script).unwrap();
    fs::set_permissions(&confined, fs::Permissions::from_mode(0o755)).unwrap();
    cluster.options_mut().binary = Some(confined);
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    let (host, _) = cluster.admin_of(1).look("host", 1 << 20).await.unwrap();
    let host = String::from_utf8_lossy(&host.body).into_owned();
    for words in [
        "Linux version",
        "MemTotal:",
        "== /proc/loadavg\n",
        "Max open files",
    ] {
        assert!(host.contains(words), "{words:?}: {host}");
    }
    let load = host.split_once("== /proc/loadavg\n").unwrap().1;
    assert!(
        load.starts_with(|first: char| first.is_ascii_digit()),
        "{host}"
    );
}

#[test]
#[ignore = "scripts/nightly runs it"]
fn logs_are_rotated_as_their_owner_and_reopened() {
    let rotate = Command::new("logrotate").arg("--version").output();
    if rotate.is_err() || !geteuid().is_root() {
        skipped(
            "the rotation of logs",
            "this is not root, or there is no logrotate",
        );
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    let as_daemon = |line: &str| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=daemon",
            "--regid=daemon",
            "--clear-groups",
            "sh",
            "-ec",
        ]);
        command.arg(line).current_dir(at);
        command
    };
    printed(
        Command::new("install")
            .args(["-d", "-o", "daemon", "-g", "daemon", "-m", "0700"])
            .arg(at.join("log")),
    );
    printed(&mut as_daemon("echo line > log/audit.log"));
    // Replaces the service, and systemd's report of its main process.
    let mut service = as_daemon(
        "trap 'touch log/reopened; exit' HUP; touch log/runs; for try in $(seq 600); do sleep 0.1; done",
    );
    let mut service = Program(service.spawn().unwrap());
    fs::write(
        at.join("systemctl"),
        format!("#!/bin/sh\necho {}\n", service.id()),
    )
    .unwrap();
    fs::set_permissions(at.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    while !at.join("log/runs").exists() {
        assert!(service.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    let rules = read(&packaging().join("debian/placementd.logrotate"))
        .replace("/var/log/placementd", at.join("log").to_str().unwrap())
        .replace("su placement placement", "su daemon daemon");
    fs::write(at.join("rules"), rules).unwrap();
    let path = format!("{}:{}", at.display(), std::env::var("PATH").unwrap());
    let mut rotate = Command::new("logrotate");
    rotate
        .args(["--verbose", "--force", "--state"])
        .arg(at.join("state"));
    let output = rotate
        .arg(at.join("rules"))
        .env("PATH", path)
        .output()
        .unwrap();
    let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("switching euid from 0 to "), "{shown}");
    assert!(service.wait().unwrap().success());
    assert!(at.join("log/reopened").exists() && at.join("log/audit.log.1").exists());
}

/// Parses systemd's list of system call sets. Members are indented, and may be sets.
fn sets(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut sets = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        let word = line.trim().to_owned();
        if line.starts_with('@') {
            sets.insert(word.clone(), Vec::new());
            name = word;
        } else if let Some(members) = sets.get_mut(&name)
            && !word.starts_with('#')
        {
            members.push(word);
        }
    }
    sets
}

/// The system calls of a set.
fn calls(sets: &BTreeMap<String, Vec<String>>, name: &str) -> BTreeSet<String> {
    let members = sets[name].iter();
    let calls = members.flat_map(|member| {
        if member.starts_with('@') {
            calls(sets, member)
        } else {
            [member.clone()].into()
        }
    });
    calls.collect()
}

#[tokio::test]
async fn unit_allows_every_system_call_of_a_node() {
    let tools = ["systemd-analyze", "strace"];
    if !(tools.iter()).all(|tool| works(Command::new(tool).arg("--version"))) {
        let why = "there is no systemd-analyze or no strace";
        skipped("the unit's system calls", why);
        return;
    }
    let mut cluster = Cluster::prepare(1, "").unwrap();
    let trace = cluster.directory().join("trace");
    let traced = cluster.directory().join("traced");
    let placementd = binaries::placementd().unwrap();
    // strace runs as the child, so that the node keeps its process id.
    let script = format!("#!/bin/sh\nexec strace -D -f -qq -o {trace:?} {placementd:?} \"$@\"\n");
    fs::write(&traced, script).unwrap();
    printed(Command::new("chmod").arg("+x").arg(&traced));
    cluster.options_mut().binary = Some(traced);
    let backups = cluster.directory().join("backups");
    let flags = [
        "--backup-directory".to_owned(),
        backups.display().to_string(),
    ];
    cluster.options_mut().flags.extend(flags);
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    let provider = NewProvider::named("host");
    cluster.client().create_provider(&provider).await.unwrap();
    assert!(cluster.placementctl(&["compact"]).unwrap().status.success());
    assert!(cluster.placementctl(&["check"]).unwrap().status.success());
    cluster.process(1).signal(Signal::HUP);
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.stop_node(1).await.unwrap();

    let mut filter = Command::new("systemd-analyze");
    let sets = sets(&printed(filter.arg("syscall-filter")));
    let text = read(&packaging().join("debian/placementd.service"));
    assert_eq!(
        unit(&text, "SystemCallFilter"),
        ["@system-service", "~@privileged"]
    );
    let allowed = &calls(&sets, "@system-service") - &calls(&sets, "@privileged");
    let trace = read(&trace);
    let made: BTreeSet<_> = trace
        .lines()
        .filter_map(|line| {
            let call = line.split_whitespace().nth(1)?.split_once('(')?.0;
            Some(call.to_owned())
        })
        .collect();
    assert!(
        made.contains("fdatasync") && made.contains("accept4"),
        "{made:?}"
    );
    assert_eq!(&made - &allowed, BTreeSet::new());
}

#[test]
#[ignore = "scripts/nightly runs it"]
fn package_is_reproducible_and_lists_its_components() {
    let twice = tempfile::tempdir().unwrap();
    let mut script = Command::new(repository().join("scripts/package"));
    let first = package();
    printed(script.args(["--built", "--to"]).arg(twice.path()));
    let mut names = Vec::new();
    for entry in fs::read_dir(&first).unwrap() {
        let name = entry.unwrap().file_name();
        let [one, other] = [&first, twice.path()].map(|dir| fs::read(dir.join(&name)).unwrap());
        assert!(one == other, "{name:?} differs");
        names.push(name.into_string().unwrap());
    }
    assert_eq!(names.len(), 5, "{names:?}");
    let bom = read(&made("placementd.cdx.json"));
    assert!(bom.contains("pkg:cargo/openraft@") && bom.contains("CycloneDX"));
    assert!(!bom.contains(repository().to_str().unwrap()));
}

/// Installs the wheel of a Python package with pip into a folder of its own.
fn installed_wheel(programs: &Path, name: &str) -> TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let mut install = Command::new(programs.join("pip"));
    install.args(["install", "--quiet", "--no-deps", "--target"]);
    let version = env!("CARGO_PKG_VERSION");
    let wheel = made(&format!("{name}-{version}-py3-none-any.whl"));
    printed(install.arg(scratch.path()).arg(wheel));
    scratch
}

#[test]
#[ignore = "scripts/nightly runs it"]
fn wheel_of_the_python_client_is_complete() {
    let installed_in = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let programs = python::keystoneauth(installed_in).unwrap();
    let scratch = installed_wheel(&programs, "placementd_client");
    python::test_client(
        installed_in,
        &repository().join("python/tests"),
        scratch.path(),
    );
    assert!(scratch.path().join("placementd_client/py.typed").exists());
}

#[test]
#[ignore = "scripts/nightly runs it"]
fn wheel_for_nova_is_complete() {
    let installed_in = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scratch = installed_wheel(&python::nova(installed_in).unwrap(), "placementd_nova");
    python::test_nova(
        installed_in,
        &repository().join("python/placementd_nova/tests"),
        scratch.path(),
    );
    assert!(scratch.path().join("placementd_nova/py.typed").exists());
    assert!(
        scratch
            .path()
            .join("bin/nova-scheduler-placementd")
            .exists()
    );
}

/// The file system of a bare Debian, for chroot.
struct Root(TempDir);

impl Root {
    fn unpack(tar: &Path) -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        let mut unpack = Command::new("tar");
        unpack.arg("-xf").arg(tar).arg("-C").arg(root.0.path());
        printed(&mut unpack);
        root
    }

    fn file(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn command(&self, user: &str, words: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(format!("--userspec={user}")).arg(self.0.path());
        command.env("LC_ALL", "C").args(words);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn owner_and_mode(&self, path: &str) -> String {
        let stat = ["stat", "--format=%U:%G %a", path];
        printed(&mut self.command("root", &stat)).trim().to_owned()
    }
}

#[test]
#[ignore = "scripts/nightly runs it"]
fn package_installs_in_a_bare_debian() {
    let Some(tar) = debian() else { return };
    let root = Root::unpack(&tar);
    fs::copy(made(".deb"), root.file("placementd.deb")).unwrap();
    let install = ["dpkg", "--install", "/placementd.deb"];
    printed(&mut root.command("root", &install));
    let config = "/etc/placementd/placementd.toml";
    assert_eq!(root.owner_and_mode(config), "root:placement 640");
    let check = ["placement-status", "upgrade", "check"];
    printed(&mut root.command("placement", &check));
    let rotation = "/etc/logrotate.d/placementd";
    assert_eq!(root.owner_and_mode(rotation), "root:root 644");
    for file in [
        "alerts.yaml",
        "dashboards/fleet.json",
        "dashboards/api.json",
        "dashboards/raft-and-disks.json",
        "dashboards/capacity.json",
    ] {
        let file = format!("/usr/share/placementd/{file}");
        assert_eq!(root.owner_and_mode(&file), "root:root 644");
    }
    let data = "/var/lib/placementd";
    assert_eq!(root.owner_and_mode(data), "placement:placement 700");
    let wanted = root.file("etc/systemd/system/multi-user.target.wants/placementd.service");
    assert!(!wanted.exists(), "it is started before it is configured");

    // Starts the node as the unit does, before and after its configuration.
    let text = read(&root.file("usr/lib/systemd/system/placementd.service"));
    let user = unit(&text, "User")[0];
    let (variable, value) = unit(&text, "Environment")[0].split_once('=').unwrap();
    let start = unit(&text, "ExecStart")[0];
    let unconfigured = root.command(user, &[start]).env(variable, value).output();
    let output = String::from_utf8(unconfigured.unwrap().stderr).unwrap();
    assert!(
        output.contains("`node_id`: a node needs a number"),
        "{output}"
    );

    let ports = Ports::claim(1);
    let address = |nth: u16| format!("127.0.0.1:{}", ports.first() + nth);
    let (api, peer) = (address(0), address(1));
    let members = format!("initial_members = [\"1={peer}\"]\n[api]\nlisten = {api:?}");
    let lines = read(&root.file(config))
        .replace("#node_id = 1", "node_id = 1")
        .replace("[api]", &members)
        .replace("[peer]", &format!("[peer]\nlisten = {peer:?}"));
    fs::write(root.file(config), &lines).unwrap();
    let mut life = root.command(user, &["sh", "-ec", LIFE, "sh", start]);
    let output = printed(life.env(variable, value));
    assert!(output.contains("healthy: 1 of 1"), "{output}");

    // An upgrade keeps the configuration, and a purge keeps the data.
    printed(&mut root.command("root", &install));
    assert_eq!(read(&root.file(config)), lines);
    printed(&mut root.command("root", &["dpkg", "--purge", "placementd"]));
    assert!(!root.file(config).exists() && !root.file("usr/bin/placementd").exists());
    assert!(root.file(data).join("identity").exists());
}

#[test]
#[ignore = "scripts/nightly runs it"]
fn tutorial_works_with_only_the_package_installed() {
    let Some(tar) = debian() else { return };
    let root = Root::unpack(&tar);
    fs::copy(made(".deb"), root.file("placementd.deb")).unwrap();
    printed(&mut root.command("root", &["dpkg", "--install", "/placementd.deb"]));
    let home = ["env", "--chdir=/root", "bash"];
    let first = tutorial::run(root.command("root", &home)).unwrap();
    eprintln!("the first candidate after {first:?}");
    for page in ["index.html", "docs/tutorial.html", "docs/runbook.html"] {
        let page = format!("/usr/share/doc/placementd/html/{page}");
        assert_eq!(root.owner_and_mode(&page), "root:root 644");
    }
}

#[test]
#[ignore = "scripts/nightly runs it"]
fn image_is_built_and_its_node_serves() {
    let Some(tar) = debian() else { return };
    if !works(Command::new("buildah").arg("--version")) {
        skipped("the image", "there is no buildah");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let buildah = |words: &[&str]| {
        let mut command = Command::new("buildah");
        for (flag, name) in [("--root", "store"), ("--runroot", "run")] {
            command.arg(flag).arg(scratch.path().join(name));
        }
        command.env("STORAGE_DRIVER", "vfs").args(words);
        command.env("BUILDAH_ISOLATION", "chroot");
        command
    };
    let base = printed(&mut buildah(&["from", "scratch"]));
    printed(buildah(&["add", "--quiet", base.trim()]).arg(&tar).arg("/"));
    let commit = ["commit", "--quiet", base.trim(), "localhost/debian"];
    printed(&mut buildah(&commit));
    let mut build = buildah(&["bud", "--pull-never", "--build-arg=BASE=localhost/debian"]);
    build.args(["--tag=placementd", "--file"]);
    build.arg(packaging().join("Containerfile"));
    printed(build.arg(package()));

    let from = ["from", "--pull-never", "localhost/placementd"];
    let made = printed(&mut buildah(&from));
    let inspected = printed(&mut buildah(&["inspect", made.trim()]));
    let config: Value = serde_json::from_str(&inspected).unwrap();
    let config = &config["OCIv1"]["config"];
    assert_eq!(config["User"], "64778:64778");
    let entry = config["Entrypoint"][0].as_str().unwrap();
    let ports = Ports::claim(1);
    let mut run = buildah(&["run"]);
    for (name, value) in alone(&ports) {
        run.arg(format!("--env={name}={value}"));
    }
    let output = printed(run.args([made.trim(), "--", "sh", "-ec", LIFE, "sh", entry]));
    assert!(output.contains("healthy: 1 of 1"), "{output}");
}

/// Output of `placementd check-config` for a file and an environment.
fn checked(config: &str, environment: &BTreeMap<String, String>) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("placementd.toml");
    private::write(&file, config).unwrap();
    let mut check = Command::new(binaries::placementd().unwrap());
    check.arg("check-config").arg("--config").arg(&file);
    printed(check.envs(environment))
}

/// Configurations that Compose and Helm produce from the project's files.
fn rendered() -> Value {
    let packages = [
        "check-jsonschema==0.39.0",
        "helm-python-sdk==0.2.2",
        "kubernetes-validate==1.37.0",
    ];
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let python = environment(directory, "packaging", &packages).unwrap();
    let mut render = Command::new(python.join("python"));
    let json = printed(render.arg(packaging().join("render.py")));
    serde_json::from_str(&json).unwrap()
}

fn member(settings: &str) -> (u64, bool, String) {
    let settings: toml::Table = settings.parse().unwrap();
    let id = settings["node_id"].as_integer().unwrap();
    let own = format!("{id}={}", settings["peer"]["advertise"].as_str().unwrap());
    let members: Vec<_> = settings
        .get("initial_members")
        .and_then(|list| list.as_array())
        .into_iter()
        .flatten()
        .collect();
    let is_founder = members.iter().any(|one| one.as_str() == Some(&own));
    let place = format!("{} {}", members.len(), settings["data_dir"]);
    (id.unsigned_abs(), is_founder, place)
}

#[test]
fn compose_and_chart_configure_a_cluster_of_three_nodes() {
    let rendered = rendered();
    let services = rendered["compose"]["services"].as_object().unwrap();
    let mut found = Vec::new();
    for service in services.values() {
        let mut environment: BTreeMap<String, String> =
            serde_json::from_value(service["environment"].clone()).unwrap();
        environment.insert("PLACEMENTD_DATA_DIR".to_owned(), "/data".to_owned());
        found.push(member(&checked("", &environment)));
    }
    let three = |dir: &str| [1, 2, 3].map(|id| (id, true, format!("3 \"{dir}\"")));
    assert_eq!(found, three("/data"));

    assert_eq!(pods(&rendered["chart"]), three("/var/lib/placementd/data"));
    // A pod that has lost its volume joins as another node and forms no cluster. Each node has its
    // own certificate.
    let replaced = pods(&rendered["replaced"]).map(|(id, is_founder, _)| (id, is_founder));
    assert_eq!(replaced, [(1, false), (4, false), (3, false)]);

    let monitoring = |of: &str| {
        let all = rendered[of].as_array().unwrap().iter();
        let rules = all.clone().filter(|one| one["kind"] == "PrometheusRule");
        let rules = rules.map(|one| one["spec"]["groups"][0]["rules"].as_array().unwrap().len());
        let is_labelled = |one: &&Value| one["metadata"]["labels"]["grafana_dashboard"] == "1";
        let boards = all
            .filter(is_labelled)
            .flat_map(|one| one["data"].as_object().unwrap().keys());
        (rules.sum::<usize>(), boards.cloned().collect::<Vec<_>>())
    };
    assert_eq!(monitoring("chart"), (0, vec![]));
    let alerts = read(&repository().join("observability/alerts.yaml"))
        .matches("- alert: ")
        .count();
    let boards = ["api", "capacity", "fleet", "raft-and-disks"].map(|name| format!("{name}.json"));
    assert_eq!(monitoring("replaced"), (alerts, boards.to_vec()));

    let ports = |of: &str| {
        let mut all = rendered[of].as_array().unwrap().iter();
        let policy = all.find(|one| one["kind"] == "NetworkPolicy").unwrap();
        let rules = policy["spec"]["ingress"].as_array().unwrap().iter();
        let open = |rule: &Value| (rule["ports"].to_string(), rule["from"].is_null());
        rules.map(open).collect::<Vec<_>>()
    };
    let api = (r#"[{"port":"api"}]"#.to_owned(), true);
    let nodes = (r#"[{"port":"peer"}]"#.to_owned(), false);
    let monitors = (r#"[{"port":"metrics"}]"#.to_owned(), false);
    assert_eq!(ports("chart"), [api.clone(), nodes.clone()]);
    assert_eq!(ports("replaced"), [api, nodes, monitors]);
}

/// Nodes of a chart's pods, according to the pods' command lines and environment.
fn pods(manifests: &Value) -> [(u64, bool, String); 3] {
    let of_kind = |kind: &str| {
        let mut all = manifests.as_array().unwrap().iter();
        all.find(|one| one["kind"] == kind).unwrap()
    };
    let config = &of_kind("ConfigMap")["data"]["placementd.toml"];
    let config = config.as_str().unwrap();
    let spec = &of_kind("StatefulSet")["spec"];
    assert_eq!(spec["replicas"], 3);
    let spec = &spec["template"]["spec"];
    let container = &spec["containers"][0];
    let is_https = container["env"].to_string().contains("PLACEMENTD_API_TLS");
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let scheme = if is_https { "HTTPS" } else { "HTTP" };
        assert_eq!(container[probe]["httpGet"]["scheme"], scheme, "{probe}");
    }
    [0, 1, 2].map(|nth| {
        let pod = format!("cloud-placementd-{nth}");
        let scratch = tempfile::tempdir().unwrap();
        let is_secured = spec["initContainers"].is_array();
        if is_secured {
            take_certificate(&spec["initContainers"][0], &pod, scratch.path());
            mount_secrets(spec, scratch.path());
        }
        let password = "PLACEMENTD_KEYSTONE_PASSWORD".to_owned();
        let mut environment = BTreeMap::from([
            ("POD".to_owned(), pod.clone()),
            (password, "secret".to_owned()),
        ]);
        for variable in container["env"].as_array().unwrap() {
            if let Some(value) = variable["value"].as_str() {
                let name = variable["name"].as_str().unwrap().to_owned();
                let value = value.replace("$(POD)", &pod);
                let at = |name: &str| scratch.path().join(name).display().to_string();
                let value = value
                    .replace("/run/certificate", &at("own"))
                    .replace("/run/api-certificate", &at("api-certificate"));
                environment.insert(name, value.replace("/run/authorities", &at("authorities")));
            }
        }
        let line = container["args"][0].as_str().unwrap();
        let (prepares, starts) = line.split_once("exec /usr/bin/placementd ").unwrap();
        assert!(starts.starts_with("--config"), "{line}");
        let mut shell = Command::new("sh");
        shell.args(["-ec", &format!("{prepares} echo $PLACEMENTD_NODE_ID")]);
        let id = printed(shell.envs(&environment)).trim().to_owned();
        environment.insert("PLACEMENTD_NODE_ID".to_owned(), id);
        let settings = checked(config, &environment);
        let secured = settings.matches("tls = \"require\"").count();
        assert_eq!(secured, usize::from(is_secured) + usize::from(is_https));
        let trusts_an_authority = settings.contains("authorities/ca.crt\"");
        assert_eq!(trusts_an_authority, is_https, "{settings}");
        member(&settings)
    })
}

/// Runs a pod's init container, which copies the certificate to where the node looks for it.
fn take_certificate(container: &Value, pod: &str, scratch: &Path) {
    let [all, own] = ["all", "own"].map(|name| scratch.join(name));
    fs::create_dir(&own).unwrap();
    let authority = Authority::new(&all).unwrap();
    for id in [1, 3, 4] {
        authority.node(id, 1).unwrap();
    }
    let line = container["args"][0]
        .as_str()
        .unwrap()
        .replace("/run/all-certificates", &all.display().to_string())
        .replace("/run/certificate", &own.display().to_string());
    printed(Command::new("sh").args(["-ec", &line]).env("POD", pod));
    let key = fs::metadata(own.join("node-key.pem")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&own).unwrap().count(), 3);
}

/// Writes the Secrets of a pod as the kubelet mounts them, with their permissions.
fn mount_secrets(spec: &Value, scratch: &Path) {
    for (volume, from, file) in [
        ("api-certificate", "node.pem", "tls.crt"),
        ("api-certificate", "node-key.pem", "tls.key"),
        ("authorities", "ca.pem", "ca.crt"),
    ] {
        let mut volumes = spec["volumes"].as_array().unwrap().iter();
        let source = volumes.find(|one| one["name"] == volume).unwrap();
        let mut mounts = (spec["containers"][0]["volumeMounts"].as_array().unwrap()).iter();
        assert!(mounts.any(|mount| mount["mountPath"] == format!("/run/{volume}")));
        let to = scratch.join(volume);
        fs::create_dir_all(&to).unwrap();
        fs::copy(scratch.join("own").join(from), to.join(file)).unwrap();
        // In a pod the files belong to root.
        if geteuid().is_root() {
            let mode = source["secret"]["defaultMode"].as_u64().unwrap_or(0o644);
            let mode = fs::Permissions::from_mode(u32::try_from(mode).unwrap());
            fs::set_permissions(to.join(file), mode).unwrap();
        }
    }
}
