//! `placementctl consumers audit` with lists printed by OpenStack's client, run with the commands
//! of `docs/placementctl.md` against a Nova that pages its answers.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use placement_client::{Claim, Inventory};
use placement_tests::cluster::Cluster;
use placement_tests::http_server::HttpServer;
use placement_tests::{host, osc};
use serde_json::{Value, json};
use uuid::Uuid;

/// Instances and the migration of the cloud.
const DOUBLED: Uuid = Uuid::from_u128(1);
const RESIZED: Uuid = Uuid::from_u128(2);
const RESIZE: Uuid = Uuid::from_u128(3);
const ORPHAN: Uuid = Uuid::from_u128(4);

/// The parts of Keystone and Nova that the client uses.
async fn nova() -> HttpServer {
    HttpServer::start(answer).await.unwrap()
}

async fn answer(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let url = format!("http://{}", request.headers()["host"].to_str().unwrap());
    let query = request.uri().query().unwrap_or_default();
    let body = match request.uri().path() {
        "/v3/auth/tokens" => token(&url),
        "/v3" | "/v3/" => version(&url, "v3", json!({"id": "v3.14", "status": "stable"})),
        "/v2.1/servers/detail" if query.contains("deleted=True") => json!({"servers": []}),
        "/v2.1/servers/detail" if query.contains("marker=") => servers(&[(DOUBLED, "nova-2")]),
        "/v2.1/servers/detail" => {
            let mut page = servers(&[(RESIZED, "nova-4")]);
            let next = format!("{url}{}&marker={RESIZED}", request.uri());
            page["servers_links"] = json!([{"rel": "next", "href": next}]);
            page
        }
        "/v2.1/os-services" => json!({"services": []}),
        "/v2.1/os-migrations" => json!({"migrations": [{
            "id": 1, "uuid": RESIZE, "instance_uuid": RESIZED, "migration_type": "resize", "status": "finished",
            "source_compute": "nova-3", "dest_compute": "nova-4"}]}),
        _ => {
            let versions = json!({"id": "v2.1", "status": "CURRENT", "version": "2.100", "min_version": "2.1"});
            version(&url, "v2.1", versions)
        }
    };
    Response::builder()
        .header("content-type", "application/json")
        .header("x-subject-token", "token")
        .body(Full::from(body.to_string()))
        .unwrap()
}

/// Version document of a service.
fn version(url: &str, path: &str, mut version: Value) -> Value {
    version["links"] = json!([{"rel": "self", "href": format!("{url}/{path}/")}]);
    json!({ "version": version })
}

fn token(url: &str) -> Value {
    let service = |kind: &str, path: &str| {
        let endpoint =
            json!({"interface": "public", "region": "R", "url": format!("{url}/{path}")});
        json!({"type": kind, "name": kind, "endpoints": [endpoint]})
    };
    let domain = json!({"id": "default", "name": "Default"});
    json!({"token": {
        "user": {"id": "u", "name": "u", "domain": domain}, "project": {"id": "p", "name": "p", "domain": domain},
        "methods": ["password"], "roles": [{"name": "admin"}], "expires_at": "2099-01-01T00:00:00Z",
        "catalog": [service("identity", "v3"), service("compute", "v2.1")],
    }})
}

/// Servers with their hosts, as Nova lists them.
fn servers(all: &[(Uuid, &str)]) -> Value {
    let server = |(id, host): &(Uuid, &str)| {
        json!({
            "id": id, "name": "server", "status": "ACTIVE", "image": "", "flavor": {"original_name": "small"},
            "addresses": {}, "metadata": {}, "OS-EXT-SRV-ATTR:host": "compute",
            "OS-EXT-SRV-ATTR:hypervisor_hostname": host,
        })
    };
    json!({ "servers": all.iter().map(server).collect::<Vec<_>>() })
}

/// Scripts of the page that list servers and migrations.
fn scripts() -> [String; 2] {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/placementctl.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: [&str; 2] = placement_docs::blocks(&page, "sh").try_into().unwrap();
    blocks.map(str::to_owned)
}

/// Creates hosts with shared storage. One instance has allocations on two hosts, as the answer to
/// its first claim was lost; another is being resized by a migration; a third one is an orphan.
async fn cloud(cluster: &Cluster) -> [Uuid; 5] {
    let client = cluster.client();
    let mut all = [Uuid::nil(); 5];
    for (provider, name) in all
        .iter_mut()
        .zip(["nfs", "nova-1", "nova-2", "nova-3", "nova-4"])
    {
        *provider = host::create(&client, name).await;
        let class = if name == "nfs" { "DISK_GB" } else { "VCPU" };
        let offer = [(class, Inventory::with_total(1000))];
        client
            .replace_inventories(*provider, 0, offer)
            .await
            .unwrap();
    }
    let [nfs, one, two, three, four] = all;
    let shares = ["MISC_SHARES_VIA_AGGREGATE"];
    client
        .replace_provider_traits(nfs, 1, shares)
        .await
        .unwrap();
    for (consumer, hosts) in [
        (DOUBLED, &[one, two][..]),
        (RESIZED, &[four]),
        (RESIZE, &[three]),
        (ORPHAN, &[two]),
    ] {
        let claim = Claim::by("project", "user").and(nfs, &[("DISK_GB", 10)]);
        let mut claim = hosts
            .iter()
            .fold(claim, |claim, host| claim.and(*host, &[("VCPU", 1)]));
        if consumer == RESIZE {
            claim.consumer_type = "MIGRATION".to_owned();
        }
        client.put_allocations(consumer, &claim).await.unwrap();
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_claimed_on_two_hosts_releases_the_wrong_one() {
    let openstack = osc::programs(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let nova = nova().await;
    let cluster = Cluster::start(1).await.unwrap();
    let [nfs, one, two, ..] = cloud(&cluster).await;
    let file = |name: &str| cluster.directory().join(name).display().to_string();
    let environment = format!(
        "export PATH={}:$PATH OS_AUTH_URL=http://{}/v3 OS_USERNAME=u OS_PASSWORD=p OS_PROJECT_NAME=p \
         OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default OS_IDENTITY_API_VERSION=3\n",
        openstack.display(),
        nova.address()
    );
    let [servers, migrations] = scripts();
    fs::write(file("servers.sh"), environment.clone() + &servers).unwrap();
    fs::write(file("migrations.sh"), environment + &migrations).unwrap();
    let ctl = |code: i32, arguments: &[&str]| {
        let output = cluster.placementctl(arguments).unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}{output:?}");
        text
    };
    let (plan, undo) = (file("plan"), file("undo"));
    let text = ctl(
        3,
        &[
            "consumers",
            "audit",
            "--older-than",
            "0s",
            "--servers-command",
            &format!("sh {}", file("servers.sh")),
            "--migrations-command",
            &format!("sh {}", file("migrations.sh")),
            "--plan",
            &plan,
            "-o",
            "csv",
            "--columns",
            "finding,consumer",
        ],
    );
    let expected = format!("finding,consumer\ndoubled,{DOUBLED}\norphan,{ORPHAN}\n");
    assert_eq!(text, expected);
    assert_eq!(fs::read_to_string(&plan).unwrap().lines().count(), 2);

    let held = async || {
        let held = cluster.client().allocations(DOUBLED).await.unwrap();
        held.allocations.into_keys().collect::<Vec<_>>()
    };
    let sorted = |mut all: Vec<Uuid>| {
        all.sort();
        all
    };
    let text = ctl(
        0,
        &["consumers", "release", "--apply", &plan, "--undo", &undo],
    );
    assert_eq!(text, "released 2 of 2\n");
    assert_eq!(held().await, sorted(vec![nfs, two]));
    let restore = ["consumers", "release", "--undo-from", &undo];
    assert_eq!(ctl(0, &restore), "restored 2 of 2\n");
    assert_eq!(held().await, sorted(vec![nfs, one, two]));
    // A consumer that has changed since is not released.
    let text = ctl(
        3,
        &[
            "consumers",
            "release",
            "--apply",
            &plan,
            "--undo",
            &file("next"),
        ],
    );
    assert!(
        text.contains(&format!(
            "refused {DOUBLED}: the consumer has changed since"
        )),
        "{text}"
    );
}
