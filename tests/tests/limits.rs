//! Limits of projects: `placementctl limits`, with a real Keystone.

use std::path::Path;

use placement_client::Inventory;
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::keystone::{Keystone, TokenRequest};
use serde_json::{Value, json};

/// Claims processors for a new consumer of a project. Returns the error, if there is one.
fn claim(cluster: &Cluster, project: &str, amount: &str) -> Option<String> {
    let claim = ["claim", amount, "--project", project, "--user=u"];
    let claimed = cluster.placementctl(&claim).unwrap();
    let error = String::from_utf8(claimed.stderr).unwrap();
    (!claimed.status.success()).then_some(error)
}

#[tokio::test]
async fn limits_of_keystone_are_copied_and_enforced() {
    let installed_in = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let keystone = Keystone::start(installed_in).await.unwrap();
    let project = keystone.people("small", &[]).await.unwrap();
    let limits = [("servers", 5, 2), ("class:VCPU", 4, -1)];
    keystone.limits(&project, &limits).await.unwrap();
    let cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let host = create(&client, "host-1").await;
    let offer = [("VCPU", Inventory::with_total(100))];
    client.replace_inventories(host, 0, offer).await.unwrap();

    let directory = tempfile::tempdir().unwrap();
    let plan = directory.path().join("limits.jsonl");
    let plan = plan.to_str().unwrap();
    let token = keystone.system_token(TokenRequest::ADMIN).await.unwrap();
    let url = keystone.url();
    let plan_it = [
        "limits",
        "sync",
        "--plan",
        plan,
        "--keystone",
        &url,
        "--token",
        &token,
    ];
    let planned = cluster.ctl(&plan_it);
    assert!(planned.contains(&project), "{planned}");
    let apply = ["limits", "sync", "--apply", plan];
    cluster.ctl(&apply);
    let document = || -> Value {
        serde_json::from_str(&cluster.ctl(&["limits", "show", "-o", "json"])).unwrap()
    };
    let copied = document();
    let own = json!({"parent": null, "limits": {"VCPU": null, "consumers": 2}});
    assert_eq!(copied["defaults"], json!({"VCPU": 4, "consumers": 5}));
    assert_eq!(copied["projects"], json!({&project: own}));
    assert_eq!(copied["mode"], "report");
    // The plan is applied already, which changes nothing.
    cluster.ctl(&apply);
    assert_eq!(document(), copied);

    // Exceeded limits are reported, then enforced.
    for _ in 0..3 {
        assert_eq!(claim(&cluster, &project, "VCPU:20"), None);
    }
    let over = cluster.ctl(&["limits", "list", "--over"]);
    assert!(over.contains("3/2") && over.contains(&project), "{over}");
    cluster.ctl(&["limits", "mode", "enforce"]);
    let refused = claim(&cluster, &project, "VCPU:1").unwrap();
    let says = format!("Project {project} is at its limit of consumers: 3 used, 4 after");
    assert!(refused.contains(&says), "{refused}");
    let refused = claim(&cluster, "another", "VCPU:5").unwrap();
    assert!(
        refused.contains("its limit of VCPU: 0 used, 5 after"),
        "{refused}"
    );
    assert_eq!(claim(&cluster, "another", "VCPU:4"), None);
    // The mode is not part of the plan.
    let again = cluster.ctl(&apply);
    assert!(again.contains("nothing was changed"), "{again}");
    assert_eq!(document()["mode"], "enforce");
}
