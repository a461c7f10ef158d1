//! `placementctl reservations`: reserved capacity as tokens, the room behind them, and their users.

use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

use clap::Args;
use placement_client::Error;
use placement_wire::capacity::{CapacityReport, ClassCapacity};
use placement_wire::consumers::Consumer;
use placement_wire::holds::Hold;
use placement_wire::upstream::Provider;
use serde::Serialize;
use serde_json::{Value, json};

use crate::content::{Content, EXTENSIONS, filtered};
use crate::held::{Amounts, add_held};
use crate::render::{Rows, first_names};

/// Beginning of the resource classes whose units are the tokens of a reservation.
const CLASSES: &str = "CUSTOM_RESERVATION_";
/// Type of the consumers that hold the room behind tokens.
const KEEPER: &str = "RESERVATION";

#[derive(Args)]
pub(crate) struct ReservationsArgs {
    /// Show only reservations whose tokens or room consumers of this project hold.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
}

pub(crate) async fn show(content: &Content, args: ReservationsArgs) -> anyhow::Result<String> {
    let mut found = Found::default();
    for sum in capacity(content, Value::Null).await? {
        if !sum.class.starts_with(CLASSES) {
            continue;
        }
        let class = json!({ "class": sum.class });
        found.users.extend(content.consumers(&class).await?);
        let by_provider = json!({ "by": "provider", "class": sum.class });
        found.tokens.extend(capacity(content, by_provider).await?);
    }
    if !found.tokens.is_empty() {
        found.keepers = keepers(content).await?;
        found.providers = content.providers(Value::Null).await?;
    }
    let none = match &args.project {
        Some(project) => format!(
            "no reservations found: no consumer of the project {project:?} holds tokens or room"
        ),
        None => format!("no reservations found: no class {CLASSES}* has an inventory"),
    };
    let rows = listed(&found, args.project.as_deref());
    content.source.output.rows(rows.if_none(none))
}

/// The sums of `GET /placementd/v1/capacity`.
async fn capacity(content: &Content, filters: Value) -> Result<Vec<ClassCapacity<'static>>, Error> {
    let request = filtered(&format!("{EXTENSIONS}/capacity"), &filters);
    let answer: CapacityReport<'_> = content.ask(request).await?;
    Ok(answer.capacity)
}

/// The consumers that may hold the room of reservations: those of the type `RESERVATION`, and holds
/// that are kept for no other consumer.
async fn keepers(content: &Content) -> Result<Vec<Consumer<'static>>, Error> {
    let mut found = content.consumers(&json!({ "type": KEEPER })).await?;
    let held = content.consumers(&json!({ "held": true })).await?;
    let others = held.into_iter().filter(|one| {
        let hold = one.hold.as_ref();
        let is_for_none = hold.is_some_and(|hold| hold.kept_for.is_empty());
        is_for_none && one.r#type.as_deref() != Some(KEEPER)
    });
    found.extend(others);
    Ok(found)
}

/// The answers of the cluster.
#[derive(Default)]
struct Found {
    /// Inventories of the classes of reservations, one for each class and provider.
    tokens: Vec<ClassCapacity<'static>>,
    /// Consumers that hold tokens; one with tokens of several classes is here several times.
    users: Vec<Consumer<'static>>,
    keepers: Vec<Consumer<'static>>,
    /// All providers.
    providers: Vec<Provider>,
}

/// The tokens of one class on one provider.
#[derive(Serialize)]
struct Reservation {
    class: String,
    /// Name of the root provider.
    host: String,
    host_uuid: String,
    /// Name of the provider that has the inventory.
    provider: String,
    provider_uuid: String,
    total: u64,
    used: u64,
    free: u64,
    /// Sum of what `kept_by` holds in the tree.
    room: Amounts,
    kept_by: Vec<Keeper>,
    /// Number of consumers that hold these tokens.
    consumers: usize,
    /// Projects of these consumers.
    projects: BTreeSet<String>,
}

/// A consumer that holds room in a tree.
#[derive(Clone, Serialize)]
struct Keeper {
    consumer: String,
    r#type: Option<String>,
    project_id: String,
    /// Its allocations in this tree.
    resources: Amounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<Hold>,
}

impl Reservation {
    /// Whether a consumer of the project holds tokens or room.
    fn concerns(&self, project: &str) -> bool {
        let mut keepers = self.kept_by.iter();
        self.projects.contains(project) || keepers.any(|one| one.project_id == project)
    }
}

/// A row for each class and provider; of all projects, or of one.
fn listed(found: &Found, project: Option<&str>) -> Rows<Reservation> {
    let users = users(&found.users);
    let rooms = rooms(&found.keepers);
    let all = found.providers.iter();
    let providers: BTreeMap<&str, &Provider> = all.map(|one| (&*one.uuid, one)).collect();
    let tokens = found.tokens.iter();
    let mut items: Vec<_> = tokens
        .filter_map(|tokens| reservation(tokens, &providers, &users, &rooms))
        .filter(|one| project.is_none_or(|project| one.concerns(project)))
        .collect();
    items.sort_by(|one, other| (&one.class, &one.host).cmp(&(&other.class, &other.host)));
    Rows::new(items)
        .column("class", |row| row.class.clone())
        .column("host", |row| row.host.clone())
        .readable(
            "tokens",
            |row| row.used,
            |row| Some(format!("{}/{}", row.used, row.total)),
        )
        .raw("used", |row| row.used)
        .raw("total", |row| row.total)
        .wide("free", |row| row.free)
        .column("room", |row| row.room.clone())
        .shown_as(|row, _| row.room.is_empty().then(|| "none".to_owned()))
        .column("consumers", |row| row.consumers)
        .column("projects", |row| row.projects.clone())
        .shown_as(|row, _| Some(first_names(row.projects.iter().map(String::as_str))))
        .wide("provider", |row| row.provider.clone())
        .wide("kept_by", |row| {
            let keepers = row.kept_by.iter();
            keepers.map(|one| one.consumer.clone()).collect::<Vec<_>>()
        })
}

/// The tokens of an inventory, with their room and their users.
fn reservation(
    tokens: &ClassCapacity<'_>,
    providers: &BTreeMap<&str, &Provider>,
    users: &Users<'_>,
    rooms: &Rooms<'_>,
) -> Option<Reservation> {
    let provider = tokens.provider.as_ref()?;
    let known = providers.get(&*provider.uuid);
    let root = known.and_then(|one| one.root_provider_uuid.as_deref());
    // A provider that is newer than the list of all providers stands for its root.
    let root = root.and_then(|root| providers.get(root));
    let (host, host_uuid) = match root {
        Some(root) => (&*root.name, &*root.uuid),
        None => (&*provider.name, &*provider.uuid),
    };
    let kept_by = rooms.get(host_uuid).cloned().unwrap_or_default();
    let mut room = Amounts::new();
    for (class, amount) in kept_by.iter().flat_map(|one| &one.resources) {
        let sum = room.entry(class.clone()).or_default();
        *sum = amount.saturating_add(*sum);
    }
    let users = users.get(&(&*tokens.class, &*provider.uuid));
    let owners = users.into_iter().flat_map(BTreeMap::values);
    Some(Reservation {
        class: tokens.class.to_string(),
        host: host.to_owned(),
        host_uuid: host_uuid.to_owned(),
        provider: provider.name.to_string(),
        provider_uuid: provider.uuid.to_string(),
        total: tokens.total,
        used: tokens.used,
        free: tokens.free,
        room,
        kept_by,
        consumers: users.map_or(0, BTreeMap::len),
        projects: owners.map(|project| (*project).to_owned()).collect(),
    })
}

/// The consumers that hold tokens with their projects, by class and UUID of the provider.
type Users<'a> = BTreeMap<(&'a str, &'a str), BTreeMap<&'a str, &'a str>>;

fn users<'a>(consumers: &'a [Consumer<'_>]) -> Users<'a> {
    let mut users = Users::new();
    for consumer in consumers {
        for held in &consumer.allocations {
            for class in held.resources.keys() {
                let users = users.entry((&**class, &*held.provider.uuid)).or_default();
                users.insert(&*consumer.uuid, &*consumer.project_id);
            }
        }
    }
    users
}

/// The consumers that hold room, by the UUID of the root of the tree.
type Rooms<'a> = BTreeMap<&'a str, Vec<Keeper>>;

fn rooms<'a>(consumers: &'a [Consumer<'_>]) -> Rooms<'a> {
    let mut rooms = Rooms::new();
    for consumer in consumers {
        let mut by_root: BTreeMap<&str, Amounts> = BTreeMap::new();
        for held in &consumer.allocations {
            add_held(by_root.entry(&held.root.uuid).or_default(), from_ref(held));
        }
        for (root, resources) in by_root {
            rooms.entry(root).or_default().push(Keeper {
                consumer: consumer.uuid.to_string(),
                r#type: consumer.r#type.as_ref().map(ToString::to_string),
                project_id: consumer.project_id.to_string(),
                resources,
                hold: consumer.hold.clone(),
            });
        }
    }
    rooms
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::render::Format;

    fn tokens(class: &str, host: u32, used: u64) -> Value {
        let provider =
            json!({"uuid": format!("child-{host}"), "name": format!("blazar_cmp-{host}")});
        json!({"class": class, "provider": provider, "total": 4, "used": used, "free": 4 - used})
    }

    fn consumer(uuid: &str, project: &str, host: u32, provider: &str, held: &Value) -> Value {
        json!({"uuid": uuid, "project_id": project, "allocations": [
            {"provider": {"uuid": provider}, "root": {"uuid": format!("root-{host}")}, "resources": held}]})
    }

    fn found() -> Found {
        let providers = [1, 2].map(|host| {
            let (root, child) = (format!("root-{host}"), format!("child-{host}"));
            json!([
                {"uuid": root, "name": format!("cmp-{host}"), "root_provider_uuid": root},
                {"uuid": child, "name": format!("blazar_cmp-{host}"), "root_provider_uuid": root},
            ])
        });
        let providers = providers.map(|both| Vec::<Provider>::deserialize(both).unwrap());
        let a = "CUSTOM_RESERVATION_A";
        let b = "CUSTOM_RESERVATION_B";
        let list = json!([tokens(b, 2, 0), tokens(a, 2, 0), tokens(a, 1, 2)]);
        let users = json!([
            consumer("s1", "red", 1, "child-1", &json!({ a: 1 })),
            consumer("s2", "blue", 1, "child-1", &json!({ a: 1 })),
        ]);
        let large = json!({"VCPU": 8, "MEMORY_MB": 16384});
        let mut kept = [
            consumer("r1", "ops", 1, "root-1", &large),
            consumer("r2", "ops", 1, "root-1", &json!({"VCPU": 4})),
        ];
        kept[1]["hold"] = json!({"for": [], "due": "2026-12-24T06:00:00Z"});
        Found {
            tokens: Vec::deserialize(list).unwrap(),
            users: Vec::deserialize(users).unwrap(),
            keepers: Vec::deserialize(json!(kept)).unwrap(),
            providers: providers.concat(),
        }
    }

    #[test]
    fn each_host_has_its_tokens_and_their_room() {
        let printed = Format::Table.printed(listed(&found(), None));
        let expected = "\
CLASS                 HOST   TOKENS  ROOM                     CONSUMERS  PROJECTS
CUSTOM_RESERVATION_A  cmp-1     2/4  MEMORY_MB=16384 VCPU=12          2  blue, red
CUSTOM_RESERVATION_A  cmp-2     0/4  none                             0  -
CUSTOM_RESERVATION_B  cmp-2     0/4  none                             0  -
";
        assert_eq!(printed, expected);
    }

    #[test]
    fn csv_names_the_provider_and_the_consumers_with_the_room() {
        let printed = Format::Csv.printed(listed(&found(), Some("red")));
        let expected = "\
class,host,used,total,free,room,consumers,projects,provider,kept_by
CUSTOM_RESERVATION_A,cmp-1,2,4,2,MEMORY_MB=16384 VCPU=12,2,\"blue, red\",blazar_cmp-1,\"r1, r2\"
";
        assert_eq!(printed, expected);
    }

    #[test]
    fn json_has_each_consumer_with_the_room() {
        let printed = Format::Jsonl.printed(listed(&found(), Some("ops")));
        let rows: Vec<Value> = (printed.lines())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(rows.len(), 1);
        let kept_by = json!([
            {"consumer": "r1", "type": null, "project_id": "ops",
             "resources": {"MEMORY_MB": 16384, "VCPU": 8}},
            {"consumer": "r2", "type": null, "project_id": "ops", "resources": {"VCPU": 4},
             "hold": {"for": [], "due": "2026-12-24T06:00:00Z"}},
        ]);
        assert_eq!(rows[0]["kept_by"], kept_by);
    }

    #[test]
    fn tokens_of_several_classes_do_not_count_twice() {
        let held = json!({"CUSTOM_RESERVATION_A": 1, "CUSTOM_RESERVATION_B": 1});
        let both = consumer("s", "red", 2, "child-2", &held);
        let found = Found {
            users: Vec::deserialize(json!([both, both])).unwrap(),
            ..found()
        };
        let printed = Format::Csv.printed(listed(&found, Some("red")));
        let rows = printed.lines().skip(1);
        let counted: Vec<_> = rows.map(|row| row.split(',').nth(6)).collect();
        assert_eq!(counted, [Some("1"), Some("1")]);
    }
}
