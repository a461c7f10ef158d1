//! Conditions under which a node refuses to start, with the reason.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::layout::NodePlace;
use placement_tests::node_process::{NodeProcess, StartOptions, log_tail};
use placement_tests::private;
use placement_tests::skip::skipped;
use placement_tests::wait::PATIENCE;

/// Starts a node that must exit by itself; returns the end of its log.
fn refusal(place: &NodePlace, options: &StartOptions) -> String {
    let mut process = NodeProcess::start(place, options).unwrap();
    let status = process
        .wait(PATIENCE)
        .unwrap_or_else(|error| panic!("{error}:\n{}", log_tail(&place.log, 20)));
    assert!(!status.success(), "it ended with {status}");
    log_tail(&place.log, 5)
}

/// A place with the same data directory but other ports and another log.
fn double(cluster: &Cluster, id: u64) -> NodePlace {
    NodePlace {
        base_port: cluster.spare_place().base_port,
        log: cluster.directory().join("refused.log"),
        ..cluster.place(id).clone()
    }
}

#[tokio::test]
async fn a_second_process_on_a_data_directory_is_refused() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let place = double(&cluster, 1);
    let reason = refusal(&place, cluster.options());
    assert!(reason.contains("in use by another placementd"), "{reason}");
    assert!(cluster.runs(1));
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let mut cluster = Cluster::start(1).await.unwrap();
    cluster.stop_node(1).await.unwrap();
    // The first byte of a record is the version of its encoding.
    let identity = cluster.data_dir(1).join("identity");
    let mut bytes = fs::read(&identity).unwrap();
    bytes[0] = 200;
    fs::write(&identity, bytes).unwrap();
    let place = double(&cluster, 1);
    let reason = refusal(&place, cluster.options());
    assert!(
        reason.contains("format 200") && reason.contains("knows formats up to"),
        "{reason}"
    );
}

#[tokio::test]
async fn another_node_s_data_are_refused() {
    let mut cluster = Cluster::start(3).await.unwrap();
    cluster.stop_node(2).await.unwrap();
    let mut place = double(&cluster, 2);
    place.id = 3;
    let reason = refusal(&place, cluster.options());
    assert!(
        reason.contains("belongs to node 2, not to node 3"),
        "{reason}"
    );
}

#[tokio::test]
async fn another_cluster_s_data_are_refused() {
    let mut ours = Cluster::start(3).await.unwrap();
    let mut theirs = Cluster::start(3).await.unwrap();
    theirs.stop_node(2).await.unwrap();
    ours.stop_node(2).await.unwrap();
    let wrong = ours.directory().join("wrong");
    private::copy(&theirs.data_dir(2), &wrong).unwrap();
    let place = NodePlace {
        data_dir: wrong,
        log: ours.directory().join("refused.log"),
        ..ours.place(2).clone()
    };
    let reason = refusal(&place, ours.options());
    assert!(reason.contains("belongs to cluster"), "{reason}");
    // With its own data it is accepted.
    ours.start_node(2).unwrap();
    ours.wait_ready(2).await.unwrap();
}

#[tokio::test]
async fn port_in_use_is_reported() {
    let cluster = Cluster::start(1).await.unwrap();
    let mut place = double(&cluster, 1);
    place.base_port = cluster.place(1).base_port;
    place.data_dir = cluster.directory().join("elsewhere");
    let reason = refusal(&place, cluster.options());
    assert!(
        reason.contains(&cluster.place(1).base_port.to_string()),
        "{reason}"
    );
}

/// All volumes are missing after a power loss: only the configuration names the cluster.
#[tokio::test]
async fn nodes_bound_to_a_cluster_form_no_new_one_in_empty_directories() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let bound = cluster
        .admin_of(1)
        .status()
        .await
        .unwrap()
        .cluster_id
        .unwrap();
    fs::write(
        cluster.directory().join("placementd.toml"),
        format!("cluster_id = \"{bound}\"\n"),
    )
    .unwrap();
    for id in cluster.ids() {
        cluster.stop_node(id).await.unwrap();
        let mounted = cluster.data_dir(id);
        fs::rename(&mounted, mounted.with_extension("not-mounted")).unwrap();
        cluster.start_node(id).unwrap();
    }
    let first = cluster.ids()[0];
    cluster.until_logged(&[first], "is bound to cluster").await;
    let asked = cluster.placementctl(&["init"]).unwrap();
    let reason = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(
        !asked.status.success() && reason.contains(&bound),
        "{reason}"
    );
    for id in cluster.ids() {
        let status = cluster.admin_of(id).status().await.unwrap();
        assert_eq!(status.cluster_id, None, "{status:?}");
    }

    // With their volumes mounted, the nodes form the same cluster as before.
    for id in cluster.ids() {
        cluster.stop_node(id).await.unwrap();
        let mounted = cluster.data_dir(id);
        let _ = fs::remove_dir_all(&mounted);
        fs::rename(mounted.with_extension("not-mounted"), &mounted).unwrap();
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let again = cluster.admin_of(1).status().await.unwrap();
    assert_eq!(again.cluster_id, Some(bound));

    // A node that is bound to another cluster refuses the data.
    let other = "0d3f1f5e-8a0e-4a57-9a0e-6d1b7a6f2f11";
    let file = cluster.directory().join("placementd.toml");
    fs::write(file, format!("cluster_id = \"{other}\"\n")).unwrap();
    cluster.stop_node(2).await.unwrap();
    let reason = refusal(&cluster.place(2).clone(), cluster.options());
    assert!(reason.contains(&format!("not to {other}")), "{reason}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn data_directory_readable_by_others_is_refused() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let dir = cluster.data_dir(1);
    for entry in [dir.clone(), dir.join("identity"), dir.join("log")] {
        let mode = fs::metadata(&entry).unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{entry:?}: {mode:o}");
    }
    cluster.stop_node(1).await.unwrap();
    for mode in [0o755, 0o770, 0o701] {
        set_mode(&dir, mode);
        let reason = refusal(&double(&cluster, 1), cluster.options());
        let words = [
            format!("mode 0{mode:o}"),
            format!("chmod 0700 {}", dir.display()),
        ];
        assert!(words.iter().all(|words| reason.contains(words)), "{reason}");
    }
    // Group read access is allowed, so that copying the directory does not need root.
    set_mode(&dir, 0o750);
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    cluster.stop_node(1).await.unwrap();

    if chown(&dir, Some(65_534), None).is_err() {
        skipped(
            "a data directory of another user",
            "only root can change the owner of a file",
        );
        return;
    }
    let reason = refusal(&double(&cluster, 1), cluster.options());
    assert!(reason.contains("belongs to user 65534"), "{reason}");
    assert!(reason.contains("runs as user 0 (root)"), "{reason}");
    assert!(reason.contains("runuser -u "), "{reason}");
}

#[test]
fn password_file_readable_by_others_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let secret = "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"https://k\"\n\
                  username = \"placement\"\npassword = \"hidden\"\n";
    let bucket = "node_id = 1\n[backup]\ndirectory = \"/b\"\n[backup_s3]\nbucket = \"b\"\n\
                  credentials_file = \"CREDENTIALS\"\n";
    let file = directory.path().join("placementd.toml");
    let credentials = directory.path().join("credentials");
    let bucket = bucket.replace("CREDENTIALS", credentials.to_str().unwrap());
    let fits = |text: &str, guarded: &Path, mode: u32| {
        fs::write(&file, text).unwrap();
        fs::write(&credentials, "").unwrap();
        set_mode(guarded, mode);
        let mut check = Command::new(binaries::placementd().unwrap());
        let output = check
            .args(["check-config", "--config"])
            .arg(&file)
            .output()
            .unwrap();
        let reason = String::from_utf8(output.stderr).unwrap();
        assert!(!reason.contains("hidden"), "{reason}");
        let refused = reason.contains(&format!("{} is accessible to", guarded.display()));
        assert_eq!(output.status.success(), !refused, "{reason}");
        !refused
    };
    for (text, guarded) in [(secret, &file), (&bucket, &credentials)] {
        assert!(fits(text, guarded, 0o600) && fits(text, guarded, 0o400));
        for mode in [0o644, 0o660, 0o601] {
            assert!(!fits(text, guarded, mode), "{mode:o}");
        }
        // A group that root has granted access to is trusted.
        let is_root = fs::metadata(guarded).unwrap().uid() == 0;
        assert_eq!(fits(text, guarded, 0o640), is_root);
        set_mode(guarded, 0o600);
    }
    // A file without a secret may be readable and writable by others.
    assert!(fits("node_id = 1\n", &file, 0o666));
}
