//! Policy files, valid and invalid.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use placement_client::{ApiRequest, Client};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::wait;

/// Runs `placementd`; also returns standard output and standard error as text.
fn placementd(arguments: &[&str]) -> (Output, String, String) {
    let output = Command::new(binaries::placementd().unwrap())
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output, stdout, stderr)
}

struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    fn write(&self, text: &str) -> String {
        let path = self.directory.path().join("policy.yaml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

#[test]
fn invalid_policy_is_refused_before_use() {
    let files = Files::new();
    let checked = |text: &str| {
        let file = files.write(text);
        let arguments = ["check-config", "--node-id", "1", "--policy-file", &file];
        let (output, _, stderr) = placementd(&arguments);
        (output.status.success(), stderr)
    };
    let of_project = "role:reader and project_id:%(project_id)s\n";
    for right in [
        "mine: role:x\nplacement:usages: rule:mine or rule:admin_api\n",
        &format!("placement:usages: {of_project}placement:traits:list: {of_project}"),
        &format!("project_reader_api: {of_project}placementd:searches: {of_project}"),
    ] {
        let (fits, stderr) = checked(right);
        assert!(fits, "{right:?}: {stderr}");
    }
    for (text, words) in [
        ("", "has no rule"),
        ("# all in comments\n", "has no rule"),
        ("placement:usages: role:admin", "truncated"),
        ("- a\n", "is not a YAML mapping"),
        ("placement:usages: !\n", "quote text"),
        (
            "placement:usage: '!'\n",
            "did you mean \"placement:usages\"?",
        ),
        (
            "placement:usages: rule:nowhere\n",
            "line 1: rule \"placement:usages\": there is no rule \"nowhere\"",
        ),
        ("placement:usages: role:admin or\n", "is not a rule"),
        (
            "placementd:explain: role:reader and project_id:%(project_id)s\n",
            "line 1: rule \"placementd:explain\": \"%(project_id)s\" depends on the project",
        ),
        (
            "mine: project_id:%(project_id)s\nplacementd:web: rule:mine\n",
            "line 2: rule \"placementd:web\": \"rule:mine\" depends on the project",
        ),
        (
            "placementd:trees: rule:admin_or_project_reader_or_service_api\n",
            "use roles or fixed ids",
        ),
        (
            "all_reads_api: user_id:%(user_id)s\n",
            "requests for \"all_reads_api\" name none",
        ),
    ] {
        let (fits, stderr) = checked(text);
        assert!(!fits && stderr.contains(words), "{text:?}: {stderr}");
    }
}

#[test]
fn oslo_policy_tools_have_counterparts() {
    let files = Files::new();
    let file = files.write(
        "\"placement:usages\": \"rule:admin_or_project_reader_or_service_api or role:placement_reader\"\n\
         \"placement:traits:list\": \"@\"\n",
    );
    let reader = ["--roles", "reader,member", "--user", "u", "--project", "p"];
    let check = |more: &[&str]| {
        let begin = ["policy", "check", "--policy-file", &file];
        placementd(&[&begin, &reader[..], more].concat())
    };
    let (output, stdout, _) = check(&[]);
    assert!(output.status.success());
    for line in [
        "passed: placement:usages\n",
        "passed: placement:traits:list\n",
        "failed: placement:traits:show\n",
        "failed: admin_api\n",
    ] {
        assert!(stdout.contains(line), "{line} is not in {stdout}");
    }
    let usages = "placement:usages";
    assert!(check(&[usages]).0.status.success());
    let (output, stdout, _) = check(&["--target-project", "q", usages]);
    assert!(!output.status.success());
    assert_eq!(stdout, "failed: placement:usages\n");
    let (_, stdout, _) = check(&["--system-scope", "all", usages]);
    assert_eq!(stdout, "failed: placement:usages\n");
    let (output, _, stderr) = check(&["placement:usage"]);
    assert!(
        !output.status.success() && stderr.contains("unknown rule"),
        "{stderr}"
    );

    // For most operations a node does not evaluate the query in a rule, so `check` refuses to
    // answer.
    let (output, _, stderr) = check(&["--target-project", "q", "placement:traits:list"]);
    assert!(!output.status.success());
    assert!(stderr.contains("the caller's own project"), "{stderr}");
    for own in ["consumers", "history", "events"] {
        let text = format!("\"placementd:{own}\": \"role:reader and project_id:%(project_id)s\"\n");
        let file = files.write(&text);
        let rule = format!("placementd:{own}");
        for (target, passes) in [("p", true), ("q", false)] {
            let begin = ["policy", "check", "--policy-file", &file];
            let asked = ["--target-project", target, &rule];
            let (output, _, _) = placementd(&[&begin, &reader[..], &asked].concat());
            assert_eq!(output.status.success(), passes, "{rule} for {target}");
        }
    }

    // The sample, uncommented, equals the defaults.
    let (_, sample, _) = placementd(&["policy", "sample"]);
    assert!(
        sample.contains("# POST  /reshaper\n#\"placement:reshaper:reshape\": "),
        "{sample}"
    );
    let rules = sample.replace("#\"", "\"");
    let file = files.write(&rules);
    assert_eq!(sample.matches("#\"").count(), 54);
    for roles in ["admin", "reader,member", "placement_reader", "service"] {
        let caller = ["policy", "check", "--project", "p", "--roles", roles];
        let (_, expected, _) = placementd(&caller);
        let (_, stated, stderr) = placementd(&[&caller[..], &["--policy-file", &file]].concat());
        assert_eq!((stated, &*stderr), (expected, ""), "{roles}");
    }
}

/// A node with a policy, and a user without a role.
struct Story {
    cluster: Cluster,
    policy: PathBuf,
    reader: Client,
}

impl Story {
    async fn begin(file: &str, override_by: &str) -> Self {
        let mut cluster = Cluster::start(1).await.unwrap();
        cluster.stop_node(1).await.unwrap();
        let policy = cluster.directory().join("policy.yaml");
        let more = cluster.directory().join("policy.d");
        fs::write(&policy, file).unwrap();
        fs::create_dir(&more).unwrap();
        fs::write(more.join("override.yaml"), override_by).unwrap();
        let config = format!("[policy]\nfile = {policy:?}\npolicy_dirs = [{more:?}]\n");
        fs::write(cluster.directory().join("placementd.toml"), config).unwrap();
        cluster.start_node(1).unwrap();
        cluster.wait_ready(1).await.unwrap();
        let reader = cluster.client_of(1).with_token("somebody");
        Self {
            cluster,
            policy,
            reader,
        }
    }

    async fn asks(&self, path: &str) -> u16 {
        let request = ApiRequest::get(path);
        self.reader.request(request).await.unwrap().status.as_u16()
    }

    /// Whether `/metrics` reports that a changed policy was refused.
    async fn is_refused(&self) -> bool {
        let metrics = self.cluster.metrics(1).await;
        metrics.contains("placement_policy_refused 1\n")
    }

    async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        wait::until(what, async || holds(self).await).await;
    }
}

#[tokio::test]
async fn policy_files_are_reread_and_errors_never_widen_access() {
    let open = "placement:traits:list: '@'\nplacement:resource_classes:list: '!'\n";
    let mut story = Story::begin(open, "placement:traits:list: '!'\n").await;
    assert_eq!(story.asks("/traits").await, 403, "later files override");

    let classes_too = "placement:traits:list: '@'\nplacement:resource_classes:list: '@'\n";
    fs::write(&story.policy, classes_too).unwrap();
    story
        .until("the policy to be read", async |story| {
            story.asks("/resource_classes").await == 200
        })
        .await;

    // Without the override any user could list traits.
    let more = story.policy.with_file_name("policy.d");
    let override_file = more.join("override.yaml");
    let away: &[&dyn Fn(&Path)] = &[
        &|path| fs::remove_file(path).unwrap(),
        &|path| fs::write(path, "").unwrap(),
        &|path| fs::write(path, "placement:traits:show: '!'\n").unwrap(),
    ];
    for harm in away {
        harm(&override_file);
        story
            .until("the missing file to be noticed", async |story| {
                story.is_refused().await
            })
            .await;
        assert_eq!(story.asks("/traits").await, 403);
        fs::write(&override_file, "placement:traits:list: '!'\n").unwrap();
        story
            .until("the restored file to be read", async |story| {
                !story.is_refused().await
            })
            .await;
    }
    assert_eq!(story.asks("/traits").await, 403);
    story.cluster.stop_node(1).await.unwrap();

    // At the start there are no earlier rules to keep.
    fs::remove_file(&story.policy).unwrap();
    story.cluster.start_node(1).unwrap();
    story
        .until("it refuses to start", async |story| {
            story
                .cluster
                .log(1, 5)
                .contains("policy.yaml: No such file")
        })
        .await;
}
