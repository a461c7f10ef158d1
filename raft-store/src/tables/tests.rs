//! Rows come back as they were written, and no bytes whatever make the reader panic.

use std::collections::BTreeSet;

use placement_model::state::change::{
    Amount, Amounts, ConsumerRow, Counters, InventoryRow, JoinRow, NameRow, PartitionRow,
    ProviderId, ProviderRow, Replaced, ResourceClassId, Routing, SessionRow, TraitId,
};
use placement_model::types::{
    AggregateUuid, ConsumerUuid, Generation, Inventory, PartitionId, PartitionName, Route,
    Timestamp,
};
use placement_model::{Change, Level, Outcome, Refusal};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use uuid::Uuid;

use super::{Table, row};
use crate::wire::{RecordVersion, encode};

const VERSIONS: [RecordVersion; 2] = [RecordVersion::FIRST, RecordVersion::NEWEST];

fn upper_name<N: std::str::FromStr<Err: std::fmt::Debug> + std::fmt::Debug>()
-> impl Strategy<Value = N> {
    "[A-Z0-9_]{1,40}".prop_map(|text| text.parse().expect("the pattern is the rule"))
}

fn at() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp)
}

fn provider_row() -> impl Strategy<Value = ProviderRow> {
    (
        any::<u128>(),
        ".{0,60}",
        any::<i64>(),
        any::<Option<u32>>(),
        at(),
        at(),
    )
        .prop_map(
            |(uuid, name, generation, parent, created_at, updated_at)| ProviderRow {
                uuid: placement_model::types::ProviderUuid(Uuid::from_u128(uuid)),
                name: name.try_into().expect("60 characters are no more than 200"),
                generation: Generation(generation),
                parent: parent.map(ProviderId),
                created_at,
                updated_at,
            },
        )
}

fn inventory_row() -> impl Strategy<Value = InventoryRow> {
    (any::<[u32; 5]>(), 0.0..1e9_f64, at()).prop_map(|(numbers, allocation_ratio, updated_at)| {
        let [total, reserved, min_unit, max_unit, step_size] = numbers;
        let inventory = Inventory {
            total,
            reserved,
            min_unit,
            max_unit,
            step_size,
            allocation_ratio,
        };
        InventoryRow {
            inventory,
            updated_at,
        }
    })
}

fn consumer_row() -> impl Strategy<Value = ConsumerRow> {
    let provider = prop_oneof![0..3_u32, any::<u32>()];
    let amount =
        (provider, any::<u32>(), any::<u64>()).prop_map(|(provider, class, units)| Amount {
            provider: ProviderId(provider),
            class: ResourceClassId(class),
            units,
        });
    let allocations = vec(amount, 0..9).prop_map(Amounts::from_iter);
    (
        any::<i64>(),
        ".{1,40}",
        ".{1,40}",
        proptest::option::of(upper_name()),
        allocations,
        at(),
    )
        .prop_map(
            |(generation, project, user, consumer_type, allocations, updated_at)| ConsumerRow {
                generation: Generation(generation),
                project: project.into(),
                user: user.into(),
                consumer_type,
                allocations,
                updated_at,
            },
        )
}

fn join_row() -> impl Strategy<Value = JoinRow> {
    let flags = any::<[bool; 3]>();
    let replaced = (any::<u64>(), "[a-z]{0,40}", flags).prop_map(|(node, name, flags)| {
        let [votes, stays, though_heard] = flags;
        Replaced {
            node,
            name,
            votes,
            stays,
            though_heard,
        }
    });
    let nonce = proptest::option::of("[0-9a-f]{64}");
    (
        "[0-9a-f]{0,64}",
        at(),
        nonce,
        proptest::option::of(replaced),
        at(),
    )
        .prop_map(|(token, until, nonce, replaces, expires_at)| JoinRow {
            token,
            until,
            nonce,
            replaces,
            expires_at,
        })
}

/// Any change that puts a row.
fn put() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<u32>(), provider_row())
            .prop_map(|(id, row)| Change::PutProvider(ProviderId(id), row)),
        (any::<u32>(), any::<u32>(), inventory_row()).prop_map(|(provider, class, row)| {
            Change::PutInventory(ProviderId(provider), ResourceClassId(class), row)
        }),
        (any::<u32>(), btree_set(any::<u32>(), 1..9)).prop_map(|(provider, traits)| {
            let traits: BTreeSet<_> = traits.into_iter().map(TraitId).collect();
            Change::PutProviderTraits(ProviderId(provider), traits)
        }),
        (any::<u32>(), btree_set(".{1,36}", 1..5)).prop_map(|(provider, aggregates)| {
            let aggregates = aggregates.into_iter().map(AggregateUuid::from).collect();
            Change::PutProviderAggregates(ProviderId(provider), aggregates)
        }),
        (any::<u32>(), upper_name(), at()).prop_map(|(id, name, updated_at)| {
            Change::PutResourceClass(ResourceClassId(id), NameRow { name, updated_at })
        }),
        (any::<u32>(), upper_name(), at()).prop_map(|(id, name, updated_at)| {
            Change::PutTrait(TraitId(id), NameRow { name, updated_at })
        }),
        (".{1,36}", consumer_row())
            .prop_map(|(uuid, row)| Change::PutConsumer(ConsumerUuid::from(uuid), row)),
        any::<[u64; 3]>().prop_map(|[origin, boot, answered_below]| {
            Change::PutSession(
                origin,
                SessionRow {
                    boot,
                    answered_below,
                },
            )
        }),
        any::<[u32; 3]>().prop_map(|[provider, resource_class, trait_]| {
            Change::PutCounters(Counters {
                provider,
                resource_class,
                trait_,
            })
        }),
        any::<u32>().prop_map(|level| Change::PutLevel(Level(level))),
        (any::<u64>(), join_row()).prop_map(|(node, row)| Change::PutJoin(node, row)),
        (
            any::<u16>(),
            "[a-z]{1,64}",
            at(),
            proptest::option::of(at()),
            any::<u32>(),
        )
            .prop_map(|(id, name, created_at, deleted_at, changes)| {
                let name: PartitionName = name.parse().expect("the pattern is within the rule");
                let row = PartitionRow {
                    name,
                    created_at,
                    deleted_at,
                    routing: Routing {
                        routes: vec![Route::Host("south.example".parse().expect("a host"))]
                            .try_into()
                            .expect("one is not too many"),
                        changes,
                    },
                };
                Change::PutPartition(PartitionId(id), row)
            }),
        (any::<u64>(), any::<u64>(), ".{1,36}").prop_map(|(origin, sequence, consumer)| {
            let refusal = Refusal::ConsumerHasNoAllocations(ConsumerUuid::from(consumer));
            Change::PutOutcome(origin, sequence, Outcome::Refused(refusal))
        }),
    ]
}

proptest! {
    #[test]
    fn a_row_comes_back_as_it_was_written(change in put(), partition in any::<u16>()) {
        let of_the_cluster = matches!(
            change,
            Change::PutSession(..) | Change::PutOutcome(..) | Change::PutJoin(..) | Change::PutPartition(..)
        );
        for version in VERSIONS {
            let row = row(version, PartitionId(partition), &change);
            let value = row.value.expect("a put has a value");
            if of_the_cluster && partition > 0 {
                prop_assert!(super::read(row.table, &row.key, &value).is_err());
            }
        }
        let partition = PartitionId(if of_the_cluster { 0 } else { partition });
        for version in VERSIONS {
            let row = row(version, partition, &change);
            let value = row.value.expect("a put has a value");
            prop_assert_eq!(super::read(row.table, &row.key, &value), Ok((partition, change.clone())));
            prop_assert_eq!(Table::of_tag(row.table.tag()), Some(row.table));
        }
    }

    #[test]
    fn damaged_rows_are_errors(change in put(), at in any::<prop::sample::Index>(), bit in 0..8) {
        for version in VERSIONS {
            let row = row(version, PartitionId::DEFAULT, &change);
            let mut value = row.value.expect("a put has a value");
            let at = at.index(value.len());
            value[at] ^= 1_u8 << bit;
            // Another value or an error, but no panic.
            let _ = super::read(row.table, &row.key, &value);
            value.truncate(at);
            prop_assert!(super::read(row.table, &row.key, &value).is_err());
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        table in 0..Table::ALL.len(),
        key in vec(any::<u8>(), 0..40),
        value in vec(any::<u8>(), 0..200),
    ) {
        let _ = super::read(Table::ALL[table], &key, &value);
        for version in VERSIONS {
            let byte = encode(version, &())[0];
            let value = [&[byte], value.as_slice()].concat();
            let _ = super::read(Table::ALL[table], &[&[0, 0], key.as_slice()].concat(), &value);
        }
    }
}

#[test]
fn an_empty_set_is_no_row() {
    assert_eq!(
        row(
            RecordVersion::NEWEST,
            PartitionId::DEFAULT,
            &Change::PutProviderTraits(ProviderId(1), BTreeSet::new())
        )
        .value,
        None
    );
    assert_eq!(
        row(
            RecordVersion::NEWEST,
            PartitionId::DEFAULT,
            &Change::PutProviderAggregates(ProviderId(1), BTreeSet::new())
        )
        .value,
        None
    );
}
