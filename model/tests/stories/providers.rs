//! Providers and their trees.

use placement_model::command::{
    Command, DeleteProvider, ParentUpdate, ReplaceProviderAggregates, ReplaceProviderTraits,
};
use placement_model::outcome::Refusal;
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::types::Generation;
use placement_model::{Change, State};

use crate::cloud::{Cloud, asked, given, move_below, provider, wanted};

#[test]
fn providers_with_a_new_root_are_modified() {
    let mut cloud = Cloud::new();
    cloud.host("rack", &[]);
    cloud.host("cn1", &[]);
    cloud.child("cn1", "numa0", &[]);
    cloud.child("numa0", "nic", &[]);
    cloud.child("cn1", "numa1", &[]);
    let names = ["rack", "cn1", "numa0", "nic", "numa1"];
    let modified = |cloud: &Cloud| names.map(|name| cloud.provider(name).modified);
    for (parent, expected) in [
        (ParentUpdate::Set(given("rack")), &["numa0", "nic"][..]),
        // The root stays the same.
        (ParentUpdate::Set(given("cn1")), &["numa0", "nic"]),
        (ParentUpdate::Set(given("numa1")), &["numa0"]),
        (ParentUpdate::Clear, &["numa0", "nic"]),
        (ParentUpdate::Clear, &[]),
    ] {
        let before = modified(&cloud);
        cloud.done(move_below("numa0", parent.clone(), true));
        let after = modified(&cloud);
        let changed: Vec<&str> = (0..names.len())
            .filter(|&of| before[of] != after[of])
            .map(|of| names[of])
            .collect();
        assert_eq!(changed, expected, "{parent:?}");
    }
}

#[test]
fn parent_cannot_change_before_1_37() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[]);
    cloud.host("cn2", &[]);
    cloud.child("cn1", "numa0", &[]);
    let forbidden = Refusal::ReparentForbidden(provider("numa0"));
    let to_cn2 = || ParentUpdate::Set(given("cn2"));
    assert_eq!(
        cloud.refused(move_below("numa0", to_cn2(), false)),
        forbidden
    );
    assert_eq!(
        cloud.refused(move_below("numa0", ParentUpdate::Clear, false)),
        forbidden
    );
    cloud.done(move_below("numa0", ParentUpdate::Set(given("cn1")), false));
    cloud.done(move_below("numa0", to_cn2(), true));
    assert_eq!(cloud.provider("numa0").root, provider("cn2"));
    cloud.done(move_below("numa0", ParentUpdate::Clear, true));
    assert_eq!(cloud.provider("numa0").root, provider("numa0"));
    cloud.done(move_below("numa0", ParentUpdate::Clear, false));
}

#[test]
fn deletion_checks_children_before_allocations() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 4)]);
    cloud.child("cn1", "numa0", &[]);
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 1)])]).put());
    let delete = |name: &str| {
        Command::DeleteProvider(DeleteProvider {
            uuid: provider(name),
        })
    };
    assert_eq!(
        cloud.refused(delete("cn1")),
        Refusal::ProviderHasChildren(provider("cn1"))
    );
    cloud.done(delete("numa0"));
    assert_eq!(
        cloud.refused(delete("cn1")),
        Refusal::ProviderInUse(provider("cn1"))
    );
    cloud.done(wanted("vm", &[]).at(1).put());
    cloud.done(delete("cn1"));
    assert_eq!(cloud.state.provider(&provider("cn1")), None);
    assert_eq!(
        cloud.refused(delete("cn1")),
        Refusal::ProviderNotFound(provider("cn1"))
    );
}

#[test]
fn list_examines_only_trees_that_may_match() {
    let mut cloud = Cloud::new();
    for number in 0..100 {
        cloud.host(&format!("cn{number}"), &[("VCPU", 1 + number / 98)]);
    }
    cloud.done(Command::ReplaceProviderAggregates(
        ReplaceProviderAggregates {
            provider: provider("cn50"),
            generation: None,
            aggregates: ["a".into()].into(),
        },
    ));
    cloud.done(Command::ReplaceProviderTraits(ReplaceProviderTraits {
        provider: provider("cn60"),
        generation: cloud.provider("cn60").generation,
        traits: ["HW_NUMA_ROOT".parse().unwrap()].into(),
    }));
    let none = ProviderFilter::default;
    let of_member = ProviderFilter {
        member_of: vec![["a".into()].into()],
        ..none()
    };
    let of_trait = ProviderFilter {
        required: vec![["HW_NUMA_ROOT".parse().unwrap()].into()],
        ..none()
    };
    let with_room = ProviderFilter {
        resources: [(asked("VCPU"), 2)].into(),
        ..none()
    };
    let by_name = ProviderFilter {
        name: Some(cloud.provider("cn70").name.as_str().to_owned()),
        ..none()
    };
    for (filter, looks, found) in [
        (of_member, 2, vec!["cn50"]),
        (of_trait, 2, vec!["cn60"]),
        (with_room, 2, vec!["cn98", "cn99"]),
        (by_name, 1, vec!["cn70"]),
    ] {
        let all = cloud.state.providers(&filter, looks).unwrap();
        let uuids: Vec<_> = all.unwrap().iter().map(|one| one.uuid).collect();
        let found: Vec<_> = found.into_iter().map(provider).collect();
        assert_eq!(uuids, found, "{filter:?}");
        assert_eq!(cloud.state.providers(&filter, looks - 1), Ok(None));
    }
    assert_eq!(cloud.state.providers(&none(), 99), Ok(None));
    assert_eq!(
        cloud.state.providers(&none(), 100).unwrap().unwrap().len(),
        100
    );
}

#[test]
fn missing_row_is_reported_as_dangling() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 4)]);
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 1)])]).put());
    let whole: Vec<_> = cloud.state.rows().collect();
    assert_eq!(
        State::load(whole.clone()).unwrap().digest(),
        cloud.state.digest()
    );
    let without_provider = whole
        .into_iter()
        .filter(|row| !matches!(row, Change::PutProvider(..)));
    let dangling = State::load(without_provider).unwrap_err();
    assert_eq!(dangling.rows, 2, "its inventory and its consumer");
}

#[test]
fn last_row_of_a_key_wins() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 4)]);
    cloud.done(Command::ReplaceProviderTraits(ReplaceProviderTraits {
        provider: provider("cn1"),
        generation: Generation(cloud.generation("cn1")),
        traits: ["HW_CPU_X86_AVX2".parse().unwrap()].into(),
    }));
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 1)])]).put());
    let rows: Vec<_> = cloud.state.rows().collect();
    let other = |row: &Change| {
        let mut row = row.clone();
        match &mut row {
            Change::PutProvider(_, row) => row.name = "other".to_owned().try_into().unwrap(),
            Change::PutInventory(_, _, row) => row.inventory.total += 1,
            Change::PutProviderTraits(_, traits) => drop(traits.pop_first()),
            Change::PutConsumer(_, row) => row.project = "other".into(),
            _ => {}
        }
        row
    };
    let again = State::load(rows.iter().map(other).chain(rows.clone())).unwrap();
    assert_eq!(again.digest(), cloud.state.digest());
    assert!(again.agrees_with_recount());
    assert!(again.rows().eq(rows));
}
