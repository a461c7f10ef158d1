use placement_wire::holds::Hold;

use super::*;
use crate::audit::tests::{by, consumer, migrations, moved, servers};
use crate::release::Release;

fn of_type(id: u128, kind: Option<&str>) -> Consumer<'static> {
    consumer(id, kind, "2026-11-25T19:00:00Z", &["a"])
}

fn untyped(ids: &[u128]) -> Vec<Consumer<'static>> {
    ids.iter().map(|id| of_type(*id, None)).collect()
}

/// Consumers and their new types.
fn planned(found: &Labels) -> Vec<(u128, &str)> {
    let planned = found.planned.iter();
    planned
        .map(|one| (one.of.consumer.as_u128(), &*one.becomes))
        .collect()
}

#[test]
fn consumers_get_the_type_of_the_list_that_contains_them() {
    let all = || {
        let mut all = untyped(&[1, 2, 3]);
        all.push(of_type(4, Some(MIGRATION)));
        all.push(of_type(5, Some("BLAZAR")));
        all.push(consumer(6, None, "2026-11-25T19:00:00Z", &[]));
        all
    };
    let moving = migrations(&[moved(2, 1, "resize", "finished", ["a", "bb"])]);
    let found = Labels::judge(all(), &by(servers(&[1, 4, 5, 6], "a", &[]), moving));
    assert_eq!(planned(&found), [(1, INSTANCE), (2, MIGRATION)]);
    let types: Vec<_> = (found.consumers.iter())
        .map(|one| one.r#type.as_deref())
        .collect();
    assert_eq!(types, [Some(INSTANCE), Some(MIGRATION)]);
    assert_eq!(
        found.notes,
        ["skipped 1 consumers without a type that Nova's lists do not contain"]
    );
    assert!(!found.is_incomplete);

    let found = Labels::judge(all(), &by(servers(&[1, 6], "a", &[]), None));
    assert_eq!(planned(&found), [(1, INSTANCE)]);
    let [note] = &found.notes[..] else {
        panic!("{:?}", found.notes);
    };
    assert!(note.starts_with("skipped 2 ") && note.contains("--migrations-command"));
}

#[test]
fn consumers_that_a_write_would_take_a_hold_from_are_skipped() {
    let mut all = untyped(&[1, 2, 3]);
    all[0].hold = Some(Hold::default());
    let kept_for = vec![Uuid::from_u128(2).to_string()];
    all.push(Consumer {
        hold: Some(Hold {
            kept_for,
            ..Hold::default()
        }),
        ..of_type(9, Some(INSTANCE))
    });
    let found = Labels::judge(all, &by(servers(&[1, 2, 3], "a", &[]), migrations(&[])));
    assert_eq!(planned(&found), [(3, INSTANCE)]);
    let [note] = &found.notes[..] else {
        panic!("{:?}", found.notes);
    };
    assert!(note.starts_with("skipped 2 consumers"), "{note}");
}

#[test]
fn incomplete_lists_leave_consumers_without_a_type() {
    let page: Vec<u128> = [1, 3, 4].into_iter().chain(1001..1998).collect();
    for (known, down, reason) in [
        (&page[..], &[][..], "truncated"),
        (&[1][..], &[][..], "limited to one project"),
        (&[1, 3, 4][..], &[7][..], "a cell is down"),
    ] {
        let mut all = untyped(&[1, 2, 5]);
        all.extend([3, 4].map(|id| of_type(id, Some(INSTANCE))));
        let found = Labels::judge(all, &by(servers(known, "a", down), migrations(&[])));
        assert_eq!(planned(&found), [(1, INSTANCE)], "{reason}");
        assert!(
            found.is_incomplete && found.notes[1].contains(reason),
            "{:?}",
            found.notes
        );
    }
    let all = Labels::judge(untyped(&[1]), &by(servers(&[1], "a", &[7]), None));
    assert!(!all.is_incomplete && all.notes.is_empty());
}

#[test]
fn plans_of_labels_and_of_releases_are_not_mixed_up() {
    let consumer = of_type(1, None);
    let release = json!(Release::of_listed(&consumer, "orphan", |_| false));
    let of = Planned::from_listed(&consumer).unwrap();
    let becomes = INSTANCE.to_owned();
    let label = json!(Label { of, becomes });
    let read = |json: &Value| serde_json::from_value::<Label>(json.clone());
    assert_eq!(json!(read(&label).unwrap()), label);
    read(&release).unwrap_err();
    serde_json::from_value::<Release>(label.clone()).unwrap_err();

    assert_eq!(read(&label).unwrap().flaw(), None);
    for (member, value) in [("becomes", "unknown"), ("type", MIGRATION)] {
        let mut label = label.clone();
        label[member] = json!(value);
        assert!(read(&label).unwrap().flaw().is_some(), "{member}");
    }
}
