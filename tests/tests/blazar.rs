//! The life of an instance reservation as Blazar keeps it in Placement: a nested provider below the
//! compute node, a resource class per reservation, and an inventory of this class while the lease
//! runs. Each step uses a different node than the previous step.
//!
//! Blazar's requests have microversion 1.29, as in Blazar; Nova's have the newest.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use placement_client::{
    AllocationCandidates, ApiRequest, ApiResponse, CandidateQuery, Claim, Client, Error, Inventory,
    NewProvider,
};
use placement_tests::cluster::Cluster;
use serde_json::json;
use uuid::Uuid;

const CONCURRENT_UPDATE: &str = "placement.concurrent_update";
const INVENTORY_IN_USE: &str = "placement.inventory.inuse";
const PROVIDER_IN_USE: &str = "placement.resource_provider.inuse";
const HAS_CHILDREN: &str = "placement.resource_provider.cannot_delete_parent";
const DUPLICATE_NAME: &str = "placement.duplicate_name";
const UNDEFINED: &str = "placement.undefined_code";

const VCPUS: u64 = 2;
const MEMORY_MB: u64 = 2048;

/// A cluster whose nodes are used in turn.
struct Cloud {
    cluster: Cluster,
    asked: AtomicU64,
}

impl Cloud {
    async fn new() -> Self {
        Self {
            cluster: Cluster::start(3).await.unwrap(),
            asked: AtomicU64::new(0),
        }
    }

    fn next_node(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed) % 3 + 1
    }

    /// A client like Nova, at the next node.
    fn nova(&self) -> Client {
        self.cluster.client_of(self.next_node())
    }

    /// A client like Blazar, at the next node.
    fn blazar(&self) -> Client {
        self.nova().with_microversion("1.29")
    }

    /// Registers a compute node, as `nova-compute` does at its start.
    async fn compute_node(&self, name: &str) {
        let uuid = Uuid::new_v4();
        let host = NewProvider::named(name).uuid(uuid);
        self.nova().create_provider(&host).await.unwrap();
        let offer = [
            ("VCPU", Inventory::with_total(64)),
            ("MEMORY_MB", Inventory::with_total(262_144)),
        ];
        self.nova()
            .replace_inventories(uuid, 0, offer)
            .await
            .unwrap();
    }

    async fn provider_named(&self, name: &str) -> Uuid {
        let found = self.blazar().providers(&[("name", name)]).await.unwrap();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0].uuid
    }

    /// Adds a host as Blazar does: looks it up by name and creates a nested provider below it.
    async fn add_host(&self, name: &str) -> Host {
        let compute = self.provider_named(name).await;
        let nested = NewProvider::named(&format!("blazar_{name}")).child_of(compute);
        let made = self.blazar().create_provider(&nested).await.unwrap();
        assert_eq!(made.parent_provider_uuid, Some(compute));
        assert_eq!(made.root_provider_uuid, Some(compute));
        Host {
            compute,
            reservations: made.uuid,
        }
    }

    async fn create_class(&self, reservation: Uuid) -> String {
        let class = class_of(reservation);
        let request = ApiRequest::post("/resource_classes").json(&json!({ "name": class }));
        let made = self.blazar().call(request).await.unwrap();
        assert_eq!(made.status, StatusCode::CREATED);
        let location = made.header("location").unwrap_or_default();
        assert!(location.ends_with(&format!("/resource_classes/{class}")));
        class
    }

    /// Starts a lease on a host as Blazar does: adds the reservation to the existing inventory,
    /// with the generation that it has just read.
    async fn start_lease(&self, host: &Host, class: &str, instances: u64) {
        let now = self.blazar().inventories(host.reservations).await.unwrap();
        let mut offer = now.inventories;
        offer.insert(class.to_owned(), reserved(instances));
        let offer = offer
            .iter()
            .map(|(class, one)| (class.as_str(), one.clone()));
        let generation = now.resource_provider_generation;
        let blazar = self.blazar();
        let put = blazar
            .replace_inventories(host.reservations, generation, offer)
            .await
            .unwrap();
        assert_eq!(put.resource_provider_generation, generation + 1);
    }

    async fn candidates(&self, class: &str) -> AllocationCandidates {
        let query =
            CandidateQuery::resources(&[("VCPU", VCPUS), ("MEMORY_MB", MEMORY_MB), (class, 1)]);
        self.nova().allocation_candidates(&query).await.unwrap()
    }

    /// Boots an instance of the reservation's flavor as Nova does: claims a candidate. Returns
    /// `false` if there is no candidate.
    async fn boot(&self, class: &str, instance: Uuid) -> bool {
        let found = self.candidates(class).await;
        let Some(first) = found.allocation_requests.first() else {
            return false;
        };
        let claim = first.claim("project", "user");
        self.nova().put_allocations(instance, &claim).await.unwrap();
        true
    }

    async fn deletes(&self, path: &str) -> Result<ApiResponse, Error> {
        self.blazar().call(ApiRequest::delete(path)).await
    }

    async fn assert_deleted(&self, path: &str) {
        let deleted = self.deletes(path).await.unwrap();
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{path}");
    }
}

/// A compute node that Blazar manages.
#[derive(Clone)]
struct Host {
    compute: Uuid,
    /// Provider of the host's reservations.
    reservations: Uuid,
}

impl Host {
    fn inventories(&self) -> String {
        format!("/resource_providers/{}/inventories", self.reservations)
    }
}

fn class_of(reservation: Uuid) -> String {
    let suffix = reservation.to_string().replace('-', "_").to_uppercase();
    format!("CUSTOM_RESERVATION_{suffix}")
}

fn reserved(instances: u64) -> Inventory {
    Inventory {
        max_unit: 1,
        ..Inventory::with_total(instances)
    }
}

/// A claim of the reservation's flavor on this host, without a search for candidates.
fn forced(host: &Host, class: &str) -> Claim {
    Claim::by("project", "user")
        .and(host.compute, &[("VCPU", VCPUS), ("MEMORY_MB", MEMORY_MB)])
        .and(host.reservations, &[(class, 1)])
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, status: u16, code: &str) {
    match result {
        Err(Error::Refused(error)) => {
            assert_eq!(error.status.as_u16(), status, "{error}");
            assert_eq!(error.code.as_deref(), Some(code), "{error}");
        }
        other => panic!("expected {status} {code}: {other:?}"),
    }
}

#[tokio::test]
async fn reservation_lifecycle_works_from_creation_to_deletion() {
    let cloud = Cloud::new().await;
    for name in ["compute-1", "compute-2"] {
        cloud.compute_node(name).await;
    }

    // The host is added to Blazar.
    let host = cloud.add_host("compute-1").await;
    let again = NewProvider::named("blazar_compute-1").child_of(host.compute);
    let again = cloud.blazar().create_provider(&again).await;
    assert_refused(again, 409, DUPLICATE_NAME);

    // The lease is created.
    let reservation = Uuid::new_v4();
    let class = cloud.create_class(reservation).await;
    let post = ApiRequest::post("/resource_classes");
    let again = post.clone().json(&json!({ "name": class }));
    assert_refused(cloud.blazar().call(again).await, 409, UNDEFINED);
    let lower_case = post.json(&json!({ "name": class.to_lowercase() }));
    assert_refused(cloud.blazar().call(lower_case).await, 400, UNDEFINED);
    assert!(
        cloud
            .candidates(&class)
            .await
            .allocation_requests
            .is_empty()
    );

    // The lease starts.
    cloud.start_lease(&host, &class, 3).await;
    let late = [(class.as_str(), reserved(4))];
    let late = cloud
        .blazar()
        .replace_inventories(host.reservations, 0, late)
        .await;
    assert_refused(late, 409, CONCURRENT_UPDATE);
    let seen = cloud.nova().inventories(host.reservations).await.unwrap();
    assert_eq!(seen.inventories[&class], reserved(3));

    // Instances of the flavor are placed on the reserved host only.
    let found = cloud.candidates(&class).await;
    assert_eq!(found.allocation_requests.len(), 1, "{found:?}");
    let request = found.allocation_requests[0].claim("project", "user");
    assert_eq!(request.allocations, forced(&host, &class).allocations);
    let mut instances = Vec::new();
    for _ in 0..3 {
        let instance = Uuid::new_v4();
        assert!(cloud.boot(&class, instance).await);
        instances.push(instance);
    }
    let seen = cloud.nova().allocations(instances[0]).await.unwrap();
    assert_eq!(seen.consumer_type.as_deref(), Some("INSTANCE"));
    assert_eq!(seen.allocations, request.allocations);

    // One instance more than was reserved.
    assert!(!cloud.boot(&class, Uuid::new_v4()).await);
    let one_more = forced(&host, &class);
    let one_more = cloud
        .nova()
        .put_allocations(Uuid::new_v4(), &one_more)
        .await;
    assert_refused(one_more, 409, UNDEFINED);
    let of_project = cloud.nova().project_usages("project", None).await.unwrap();
    let usage = &of_project["INSTANCE"];
    assert_eq!((usage[&class], usage["consumer_count"]), (3, 3));
    assert_eq!(usage["VCPU"], 3 * VCPUS);

    assert_nothing_goes_while_in_use(&cloud, &host, &class).await;

    // The lease ends: instances, inventory and class are deleted.
    for instance in instances {
        cloud.nova().delete_allocations(instance).await.unwrap();
    }
    let class_path = format!("/resource_classes/{class}");
    assert_refused(cloud.deletes(&class_path).await, 409, UNDEFINED);
    let inventory_path = format!("{}/{class}", host.inventories());
    cloud.assert_deleted(&inventory_path).await;
    let gone = cloud.deletes(&inventory_path).await.unwrap_err();
    assert_eq!(gone.status(), Some(StatusCode::NOT_FOUND));
    cloud.assert_deleted(&class_path).await;
    let classes = cloud.nova().resource_classes().await.unwrap();
    assert!(classes.iter().all(|known| known.name != class));

    // The host is removed from Blazar, then deleted.
    let compute_path = format!("/resource_providers/{}", host.compute);
    assert_refused(cloud.deletes(&compute_path).await, 409, HAS_CHILDREN);
    let nested_path = format!("/resource_providers/{}", host.reservations);
    cloud.assert_deleted(&nested_path).await;
    cloud.assert_deleted(&compute_path).await;
    for _ in cloud.cluster.ids() {
        let left = cloud.nova().providers(&[]).await.unwrap();
        let left: Vec<_> = left.iter().map(|left| left.name.as_str()).collect();
        assert_eq!(left, ["compute-2"]);
    }
}

async fn assert_nothing_goes_while_in_use(cloud: &Cloud, host: &Host, class: &str) {
    let one = format!("{}/{class}", host.inventories());
    assert_refused(cloud.deletes(&one).await, 409, CONCURRENT_UPDATE);
    let all = cloud.deletes(&host.inventories()).await;
    assert_refused(all, 409, INVENTORY_IN_USE);
    let now = cloud.blazar().inventories(host.reservations).await.unwrap();
    let none = cloud
        .blazar()
        .replace_inventories(host.reservations, now.resource_provider_generation, [])
        .await;
    assert_refused(none, 409, INVENTORY_IN_USE);
    let class = cloud.deletes(&format!("/resource_classes/{class}")).await;
    assert_refused(class, 409, UNDEFINED);
    for (provider, code) in [
        (host.reservations, PROVIDER_IN_USE),
        (host.compute, HAS_CHILDREN),
    ] {
        let path = format!("/resource_providers/{provider}");
        assert_refused(cloud.deletes(&path).await, 409, code);
    }
}
