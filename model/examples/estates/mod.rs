//! Clouds to measure searches in.
#![allow(dead_code)] // Each example uses its own part.

use placement_model::State;
use placement_model::state::change::{
    Amount, Change, ConsumerRow, InventoryRow, NameRow, ProviderId, ProviderRow, ResourceClassId,
    TraitId,
};
use placement_model::types::{
    ConsumerUuid, Generation, Inventory, ProviderName, ProviderUuid, Timestamp,
};
use uuid::Uuid;

pub(crate) const CLASSES: [&str; 4] = ["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_VF"];
pub(crate) const TRAITS: [&str; 3] = ["MISC_SHARES_VIA_AGGREGATE", "CUSTOM_RARE", "CUSTOM_COMMON"];
pub(crate) const RARE: u32 = 1;
pub(crate) const COMMON: u32 = 2;
const NOW: Timestamp = Timestamp(0);

/// Hosts half of whose processors are in use.
pub(crate) fn flat(hosts: u32) -> State {
    let mut changes = names();
    for host in 0..hosts {
        let stocks = [(0, 64), (1, 262_144), (2, 2_000)];
        let mut traits = vec![COMMON];
        if host % 1000 == 500 {
            traits.push(RARE);
        }
        add(&mut changes, host, None, &stocks, &traits);
        claim(&mut changes, host, 0, 32);
    }
    State::load(changes).expect("the rows are whole")
}

/// The same with so many traits for each host, as Nova reports them.
pub(crate) fn flat_with_traits(hosts: u32, traits: u32) -> State {
    let mut changes = names();
    let first = TRAITS.len() as u32;
    let ids: Vec<u32> = (first..first + traits).collect();
    changes.extend(ids.iter().map(|id| {
        let row = NameRow {
            name: format!("HW_CPU_X86_FEATURE_{id}").parse().expect("a trait"),
            updated_at: NOW,
        };
        Change::PutTrait(TraitId(*id), row)
    }));
    for host in 0..hosts {
        let stocks = [(0, 64), (1, 262_144), (2, 2_000)];
        add(&mut changes, host, None, &stocks, &ids);
    }
    State::load(changes).expect("the rows are whole")
}

/// A root with disk, two NUMA nodes with processors and memory, two devices below each.
pub(crate) fn nested(trees: u32) -> State {
    let mut changes = names();
    for tree in 0..trees {
        let root = tree * 7;
        add(&mut changes, root, None, &[(2, 2_000)], &[]);
        for numa in [root + 1, root + 4] {
            add(
                &mut changes,
                numa,
                Some(root),
                &[(0, 32), (1, 131_072)],
                &[],
            );
            add(&mut changes, numa + 1, Some(numa), &[(3, 8)], &[COMMON]);
            add(&mut changes, numa + 2, Some(numa), &[(3, 8)], &[]);
        }
    }
    State::load(changes).expect("the rows are whole")
}

/// A root with processors and so many children with one unit each.
pub(crate) fn pci(hosts: u32, devices: u32) -> State {
    let mut changes = names();
    for host in 0..hosts {
        let root = host * (devices + 1);
        add(&mut changes, root, None, &[(0, 64)], &[]);
        for device in 1..=devices {
            add(&mut changes, root + device, Some(root), &[(3, 1)], &[]);
        }
    }
    State::load(changes).expect("the rows are whole")
}

/// A root with so many children, half of them with processors, half with devices.
pub(crate) fn mixed(children: u32) -> State {
    let mut changes = names();
    add(&mut changes, 0, None, &[], &[]);
    for child in 1..=children {
        add(&mut changes, child, Some(0), &[(child % 2 * 3, 1)], &[]);
    }
    State::load(changes).expect("the rows are whole")
}

fn names() -> Vec<Change> {
    let classes = CLASSES.iter().zip(0..).map(|(name, id)| {
        let row = NameRow {
            name: name.parse().expect("a class"),
            updated_at: NOW,
        };
        Change::PutResourceClass(ResourceClassId(id), row)
    });
    let traits = TRAITS.iter().zip(0..).map(|(name, id)| {
        let row = NameRow {
            name: name.parse().expect("a trait"),
            updated_at: NOW,
        };
        Change::PutTrait(TraitId(id), row)
    });
    classes.chain(traits).collect()
}

fn add(
    changes: &mut Vec<Change>,
    id: u32,
    parent: Option<u32>,
    stocks: &[(u32, u32)],
    traits: &[u32],
) {
    let row = ProviderRow {
        uuid: ProviderUuid(Uuid::from_u128(u128::from(id) + 1)),
        name: ProviderName::try_from(format!("provider{id}")).expect("a name"),
        generation: Generation(0),
        parent: parent.map(ProviderId),
        created_at: NOW,
        updated_at: NOW,
    };
    changes.push(Change::PutProvider(ProviderId(id), row));
    for (class, total) in stocks {
        let inventory = Inventory {
            total: *total,
            reserved: 0,
            min_unit: 1,
            max_unit: *total,
            step_size: 1,
            allocation_ratio: 1.0,
        };
        let row = InventoryRow {
            inventory,
            updated_at: NOW,
        };
        changes.push(Change::PutInventory(
            ProviderId(id),
            ResourceClassId(*class),
            row,
        ));
    }
    let traits = traits.iter().map(|id| TraitId(*id)).collect();
    changes.push(Change::PutProviderTraits(ProviderId(id), traits));
}

fn claim(changes: &mut Vec<Change>, id: u32, class: u32, amount: u64) {
    let held = Amount {
        provider: ProviderId(id),
        class: ResourceClassId(class),
        units: amount,
    };
    let row = ConsumerRow {
        generation: Generation(1),
        project: "project".into(),
        user: "user".into(),
        consumer_type: None,
        allocations: [held].into_iter().collect(),
        updated_at: NOW,
    };
    changes.push(Change::PutConsumer(
        ConsumerUuid::from(format!("consumer{id}")),
        row,
    ));
}
