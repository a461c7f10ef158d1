//! Rules for writes of inventories.

use placement_model::command::{
    CapacityRule, Command, CreateInventory, DeleteInventories, DeleteInventory,
};
use placement_model::outcome::Refusal;
use placement_model::types::Inventory;

use crate::cloud::{
    Cloud, asked, class, provider, replace_inventories, stock, stocks, update_inventory, wanted,
};

#[test]
fn every_write_increments_the_generation_even_without_a_change() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[]);
    cloud.done(Command::DeleteInventories(DeleteInventories {
        provider: provider("cn1"),
    }));
    assert_eq!(cloud.generation("cn1"), 1);
    cloud.done(replace_inventories("cn1", 1, stocks(&[("VCPU", 4)])));
    cloud.done(replace_inventories("cn1", 2, stocks(&[("VCPU", 4)])));
    assert_eq!(cloud.generation("cn1"), 3);
    let delete = Command::DeleteInventory(DeleteInventory {
        provider: provider("cn1"),
        resource_class: asked("VCPU"),
    });
    cloud.done(delete.clone());
    assert_eq!(cloud.generation("cn1"), 4);
    let refusal = cloud.refused(delete);
    assert!(matches!(refusal, Refusal::InventoryNotFound { .. }));
    assert_eq!(cloud.generation("cn1"), 4);
}

#[test]
fn from_1_26_capacity_may_be_truncated_to_zero() {
    let create = |inventory, capacity_rule| {
        Command::CreateInventory(CreateInventory {
            provider: provider("cn1"),
            resource_class: asked("VCPU"),
            inventory,
            capacity_rule,
        })
    };
    let half = Inventory {
        reserved: 3,
        allocation_ratio: 0.5,
        ..stock(4)
    };
    let nothing = Inventory {
        allocation_ratio: 0.0,
        ..stock(4)
    };
    let less = Inventory {
        reserved: 5,
        ..stock(4)
    };
    for (inventory, before, since) in [
        (stock(4), true, true),
        (half, false, true),
        (nothing, false, true),
        (less, false, false),
    ] {
        for (rule, fine) in [
            (CapacityRule::Positive, before),
            (CapacityRule::NotNegative, since),
        ] {
            let mut cloud = Cloud::new();
            cloud.host("cn1", &[]);
            if fine {
                cloud.done(create(inventory, rule));
            } else {
                let refusal = cloud.refused(create(inventory, rule));
                assert_eq!(
                    refusal,
                    Refusal::InventoryCapacity {
                        provider: provider("cn1"),
                        resource_class: asked("VCPU"),
                        may_reserve_all: rule == CapacityRule::NotNegative,
                    }
                );
            }
        }
    }
}

#[test]
fn inventory_in_use_may_shrink_but_not_be_deleted() {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 4), ("DISK_GB", 10)]);
    cloud.done(wanted("vm", &[("cn1", &[("VCPU", 4)])]).put());
    cloud.done(update_inventory("cn1", 3, "VCPU", stock(1)));
    assert_eq!(cloud.used("cn1", "VCPU"), 4);
    let in_use = Refusal::InventoryInUse(provider("cn1"), vec![class("VCPU")]);
    assert_eq!(
        cloud.refused(replace_inventories("cn1", 4, stocks(&[("DISK_GB", 1)]))),
        in_use
    );
    let provider = provider("cn1");
    assert_eq!(
        cloud.refused(Command::DeleteInventories(DeleteInventories { provider })),
        in_use
    );
    let resource_class = asked("VCPU");
    assert_eq!(
        cloud.refused(Command::DeleteInventory(DeleteInventory {
            provider,
            resource_class
        })),
        in_use
    );
    assert_eq!(cloud.generation("cn1"), 4);
}
