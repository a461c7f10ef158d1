//! Names of the providers in changes, which have only UUIDs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use placement_client::{ApiRequest, Consistency, Error};
use placement_wire::upstream::Providers;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::content::{AnyChange, AnyEntry, Content, filtered};
use crate::render::{pairs, word};

/// With more names, the names of earlier entries are dropped before further ones are read.
const NAMES_MAX: usize = 10_000;
/// Number of providers that are read one by one. For more, one list of all providers costs less.
const SINGLE_MAX: usize = 200;
/// Number of requests at a time.
const REQUESTS_MAX: usize = 8;
/// UUIDs are shown if the names take longer.
const LIMIT: Duration = Duration::from_secs(2);

/// Names by UUID; `None` if no provider has this UUID.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, Option<String>>);

impl Names {
    /// Adds the names of the providers of these entries, which are in the order of their indexes.
    /// Reads those that the entries themselves do not contain.
    pub(crate) async fn add(
        &mut self,
        content: &Content,
        entries: impl Iterator<Item = &AnyEntry> + Clone,
    ) {
        if self.0.len() > NAMES_MAX {
            self.0.clear();
        }
        let changes = || entries.clone().flat_map(|entry| &entry.changes);
        changes().for_each(|change| self.learn(change));
        let unknown: BTreeSet<&str> = changes()
            .flat_map(providers)
            .filter(|uuid| !self.0.contains_key(*uuid))
            .collect();
        // Without a name, the UUID is shown.
        if let Ok(Ok(names)) = timeout(LIMIT, read(content, &unknown)).await {
            let absent = unknown.iter().map(|uuid| ((*uuid).to_owned(), None));
            self.0.extend(absent);
            self.0.extend(names);
        }
    }

    /// Takes the name out of a change of a provider, also of a provider that is deleted.
    fn learn(&mut self, change: &AnyChange) {
        let name = |value: &Option<Value>| Some(value.as_ref()?.get("name")?.as_str()?.to_owned());
        let name = name(&change.after).or_else(|| name(&change.before));
        if let (Some(name), Some(uuid)) = (name, change.key.get("uuid").and_then(Value::as_str)) {
            self.0.insert(uuid.to_owned(), Some(name));
        }
    }

    /// A key with names in place of the UUIDs of providers.
    pub(crate) fn shown(&self, key: &Value) -> String {
        let name_of = |uuid: &str| self.0.get(uuid)?.as_ref();
        let member = |(label, value): (&String, &Value)| match name_of(value.as_str()?) {
            Some(name) if label == "uuid" => Some(format!("name={name}")),
            Some(name) => Some(format!("{label}={name}")),
            None => Some(format!("{label}={}", word(value))),
        };
        let members: Option<Vec<_>> = pairs(key).map(member).collect();
        members.map_or_else(|| word(key), |members| members.join(" "))
    }
}

/// The UUIDs of providers in the key of a change.
fn providers(change: &AnyChange) -> impl Iterator<Item = &str> {
    let labels = ["uuid", "resource_provider"];
    labels
        .into_iter()
        .filter_map(|label| change.key.get(label)?.as_str())
}

/// The names of the providers with these UUIDs, from the local state of the node.
async fn read(
    content: &Content,
    uuids: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Option<String>>, Error> {
    let requests: Vec<ApiRequest> = if uuids.len() > SINGLE_MAX {
        vec![ApiRequest::get("/resource_providers")]
    } else {
        let one = |uuid: &&str| filtered("/resource_providers", &json!({ "uuid": uuid }));
        uuids.iter().map(one).collect()
    };
    let answers = requests
        .into_iter()
        .map(|request| content.ask::<Providers>(request.consistency(Consistency::Local)));
    let mut answers = stream::iter(answers).buffer_unordered(REQUESTS_MAX);
    let mut names = BTreeMap::new();
    while let Some(answer) = answers.next().await {
        let found = answer?.resource_providers.into_iter();
        let needed = found.filter(|one| uuids.contains(&*one.uuid));
        names.extend(needed.map(|one| (one.uuid, Some(one.name))));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn change(value: Value) -> AnyChange {
        AnyChange::deserialize(value).unwrap()
    }

    #[test]
    fn names_are_learned_from_changes_of_providers() {
        let mut names = Names::default();
        let key = json!({"uuid": "u"});
        for (before, after) in [
            (Value::Null, json!({"name": "cmp-1"})),
            (json!({"name": "cmp-1"}), json!({"name": "cmp-2"})),
            (json!({"name": "cmp-2"}), Value::Null),
        ] {
            names.learn(&change(
                json!({"kind": "provider", "key": key, "before": before, "after": after}),
            ));
        }
        assert_eq!(names.shown(&key), "name=cmp-2");
        let allocation = json!({"consumer": "c", "resource_provider": "u"});
        assert_eq!(
            names.shown(&allocation),
            "consumer=c resource_provider=cmp-2"
        );
        let other = json!({"resource_provider": "v"});
        assert_eq!(names.shown(&other), "resource_provider=v");
    }

    #[test]
    fn only_uuids_of_providers_are_looked_up() {
        for (kind, key, expected) in [
            ("provider", json!({"uuid": "u"}), &["u"][..]),
            (
                "inventory",
                json!({"resource_provider": "u", "resource_class": "VCPU"}),
                &["u"],
            ),
            (
                "allocation",
                json!({"consumer": "c", "resource_provider": "u"}),
                &["u"],
            ),
            ("consumer", json!({"consumer": "c"}), &[]),
            ("trait", json!({"trait": "A"}), &[]),
        ] {
            let change = change(json!({"kind": kind, "key": key, "before": null, "after": null}));
            assert_eq!(providers(&change).collect::<Vec<_>>(), expected);
        }
    }
}
