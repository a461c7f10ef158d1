use serde::Deserialize;

use super::*;
use crate::render::Format;

fn tree() -> Tree<'static> {
    let inventory = |used: u64, capacity: u64| {
        json!({"total": capacity, "reserved": 0, "allocation_ratio": 1.0, "capacity": capacity, "used": used,
               "min_unit": 1, "max_unit": capacity, "step_size": 1})
    };
    let provider = |name: &str, parent: Value, inventories: Value, traits: Value| {
        json!({"uuid": name, "name": name, "parent": parent, "generation": 3, "inventories": inventories,
               "traits": traits, "aggregates": [], "holders": 2})
    };
    let tree = json!({"root": "cmp", "providers": [
        provider("cmp", Value::Null, json!({"MEMORY_MB": inventory(9, 8), "VCPU": inventory(1, 64)}), json!(["A"])),
        provider("numa0", json!("cmp"), json!({}), json!(["A", "B"])),
        provider("計算", json!("numa0"), json!({"VGPU": inventory(2, 4)}), json!([])),
        provider("numa1", json!("cmp"), json!({"VGPU": inventory(0, 0)}), json!([])),
    ]});
    Tree::deserialize(tree).unwrap()
}

#[test]
fn used_part_of_each_class_is_a_column() {
    let provider = |name: &str| Provider {
        uuid: name.to_owned(),
        name: name.to_owned(),
        generation: 3,
        ..Provider::default()
    };
    let amount = |used, capacity: i64| SummaryResource {
        capacity: capacity.into(),
        used,
    };
    let list = |of_host: &[(&str, SummaryResource)]| {
        let own = of_host.iter().map(|(name, one)| ((*name).to_owned(), *one));
        let all = BTreeMap::from([("cn1".to_owned(), own.collect())]);
        listed(vec![provider("cn1"), provider("cn2")], all)
    };
    let host = [
        ("MEMORY_MB", amount(71_680, 253_952)),
        ("VCPU", amount(35, 256)),
    ];
    assert_eq!(
        Format::Table.printed(list(&host)),
        "NAME    VCPU   MEMORY_MB\n\
         cn1   35/256  70/248 GiB\n\
         cn2        -           -\n"
    );
    assert_eq!(
        Format::Csv.printed(list(&host)),
        "name,VCPU_used,VCPU_capacity,MEMORY_MB_used,MEMORY_MB_capacity,uuid,generation,parent,root\n\
         cn1,35,256,71680,253952,cn1,3,,\n\
         cn2,,,,,cn2,3,,\n"
    );
    let many = ["A", "B", "C", "D", "E", "F", "G", "VCPU"].map(|name| (name, amount(0, 1)));
    let table = Format::Table.printed(list(&many));
    let (head, rest) = table.split_once('\n').unwrap();
    assert!(
        head.contains("VCPU    A") && head.ends_with("E  OTHERS"),
        "{head}"
    );
    assert!(rest.contains("0/1  F 0/1, G 0/1\n"), "{rest}");
}

#[test]
fn a_tree_is_drawn_with_bars() {
    let expected = "\
cmp  (2 consumers)
│    MEMORY_MB [####################! 9/8 MiB
│    VCPU      [#...................] 1/64
├─ numa0  (2 consumers)
│  └─ 計算  (2 consumers)
│          VGPU [##########..........] 2/4
└─ numa1  (2 consumers)
        VGPU [....................] 0/0
";
    assert_eq!(drawn(&tree().providers), expected);
}

fn provider(uuid: &str, parent: Option<&str>) -> TreeProvider<'static> {
    let provider = json!({"uuid": uuid, "name": uuid, "parent": parent, "generation": 1, "inventories": {},
                          "traits": [], "aggregates": [], "holders": 0});
    TreeProvider::deserialize(provider).unwrap()
}

#[test]
fn a_very_deep_tree_is_drawn_to_its_last_level() {
    let uuid = |at: usize| format!("p{at}");
    let chain: Vec<_> = (0..100_000)
        .map(|at| provider(&uuid(at), (at > 0).then(|| uuid(at - 1)).as_deref()))
        .collect();
    let drawing = drawn(&chain);
    assert_eq!(drawing.lines().count(), LEVELS_MAX + 1);
    let end = "99936 providers below level 64 or without a root: `-o json` has them\n";
    assert!(drawing.ends_with(end), "{drawing}");
}

#[test]
fn providers_in_a_cycle_are_counted_and_not_drawn() {
    let faulty = [
        provider("root", None),
        provider("root", Some("root")),
        provider("a", Some("b")),
        provider("b", Some("a")),
    ];
    assert_eq!(
        drawn(&faulty),
        "root  (0 consumers)\n└─ root  (0 consumers)\n\
         2 providers below level 64 or without a root: `-o json` has them\n"
    );
}

#[test]
fn a_bar_is_full_only_at_full_usage() {
    assert_eq!(bar(0, 5), "[....................]");
    assert_eq!(bar(u64::MAX, u64::MAX), "[####################]");
    assert_eq!(bar(1, 0), "[....................!");
    assert_eq!(bar(94, 100), "[###################.]");
}

#[test]
fn inventories_are_rows() {
    let csv = Format::Csv.printed(inventories(&tree().providers));
    assert!(
        csv.ends_with("\nnuma1,numa1,VGPU,0,0,1.0,0,0,1,0,1\n"),
        "{csv}"
    );
}

#[test]
fn the_largest_holder_comes_first() {
    let consumer = |uuid: &str, memory: u64, vcpus: u64| {
        let consumer = json!({"uuid": uuid, "type": null, "project_id": "p", "user_id": "u", "updated_at": "now", "allocations": [
            {"provider": {"uuid": "other"}, "resources": {"VCPU": 1000}},
            {"provider": {"uuid": "cmp"}, "resources": {"MEMORY_MB": memory, "VCPU": vcpus}}]});
        Consumer::deserialize(consumer).unwrap()
    };
    let tree = tree();
    let order = |class| {
        let consumers = vec![
            consumer("a", 1, 32),
            consumer("b", 2, 48),
            consumer("c", 8, 1),
        ];
        let rows = holders(&tree.providers[0], consumers, class);
        Format::Name.printed(rows)
    };
    assert_eq!(order(None), "c\nb\na\n");
    assert_eq!(order(Some("VCPU")), "b\na\nc\n");
}

#[test]
fn filters_become_query_parameters() {
    let of = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let filters = Filters {
        class: of(&["VCPU", "DISK_GB:8"]),
        r#trait: of(&["!A"]),
        aggregate: of(&["u1", "u2"]),
        name: None,
        roots: false,
    };
    let request = crate::content::filtered("/resource_providers", &filters.json());
    let path = "/resource_providers?member_of=u1&member_of=u2&required=%21A&resources=VCPU%3A1%2CDISK_GB%3A8";
    assert!(format!("{request:?}").contains(path), "{request:?}");
}
