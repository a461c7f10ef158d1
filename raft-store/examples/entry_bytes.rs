//! What a write costs in the log, beside the JSON that asked for it:
//! `cargo run -p placement-raft-store --example entry_bytes`.

use placement_model::command::{
    CapacityRule, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReplaceAllocations, ReplaceInventories, ReplaceProviderTraits, RequestId,
};
use placement_model::types::{Generation, Given, Inventory, PartitionId, ProviderUuid, Timestamp};
use placement_model::{Command, Stamped, standard};
use placement_raft_store::wire::{
    self, Blob, RecordVersion, WireCommand, WireEntry, WireLogId, WirePayload,
};
use uuid::Uuid;

const HOST: &str = "4e8e5957-649f-477b-9e5b-f1f75b21c03c";
const CONSUMER: &str = "30328d13-e299-4a93-a102-61e4ccabe474";
const PROJECT: &str = "131d4efb9bc84b7aa2e4ec2bb2a1a1ab";
const USER: &str = "2a9ed4e1c5e94ac8bcb8a5c6b3a1c7b5";
const STOCK: [(&str, u32, f64); 3] = [
    ("DISK_GB", 2_048, 1.0),
    ("MEMORY_MB", 524_288, 1.5),
    ("VCPU", 128, 4.0),
];

fn main() {
    println!("| request | JSON | record 1 | record 2 |");
    println!("|---|---:|---:|---:|");
    for (what, json, command) in [allocations(), inventories(), traits()] {
        let (one, two) = entries(command);
        println!("| {what} | {} | {one} | {two} |", json.len());
    }
}

/// One consumer takes three classes of one provider, with the fields of 1.39.
fn allocations() -> (&'static str, String, Command) {
    let amounts = [("DISK_GB", 40), ("MEMORY_MB", 8_192), ("VCPU", 4)];
    let json = format!(
        r#"{{"{CONSUMER}":{{"allocations":{{"{HOST}":{{"resources":{{{}}}}}}},"project_id":"{PROJECT}","user_id":"{USER}","consumer_generation":null,"consumer_type":"INSTANCE"}}}}"#,
        list(amounts.map(|(class, amount)| format!(r#""{class}":{amount}"#)))
    );
    let command = Command::ReplaceAllocations(ReplaceAllocations {
        consumers: vec![ConsumerAllocations {
            consumer: CONSUMER.into(),
            allocations: vec![ProviderAmounts {
                provider: Given::from(HOST),
                resources: amounts
                    .map(|(class, amount)| (Given::from(class), amount))
                    .into(),
            }],
            project: PROJECT.into(),
            user: USER.into(),
            generation: ConsumerGeneration::New,
            consumer_type: ConsumerTypeUpdate::Set("INSTANCE".parse().expect("a type")),
        }],
    });
    ("POST /allocations, 3 classes of 1 provider", json, command)
}

/// All inventories of a host.
fn inventories() -> (&'static str, String, Command) {
    let inventories = STOCK.map(|(class, total, ratio)| {
        format!(
            r#""{class}":{{"total":{total},"reserved":0,"min_unit":1,"max_unit":{total},"step_size":1,"allocation_ratio":{ratio:?}}}"#
        )
    });
    let json = format!(
        r#"{{"resource_provider_generation":3,"inventories":{{{}}}}}"#,
        list(inventories)
    );
    let inventory = |(class, total, allocation_ratio)| {
        let inventory = Inventory {
            total,
            reserved: 0,
            min_unit: 1,
            max_unit: total,
            step_size: 1,
            allocation_ratio,
        };
        (Given::from(class), inventory)
    };
    let command = Command::ReplaceInventories(ReplaceInventories {
        provider: host(),
        generation: Generation(3),
        inventories: STOCK.map(inventory).into(),
        capacity_rule: CapacityRule::NotNegative,
    });
    ("PUT inventories, 3 classes", json, command)
}

/// All traits of a host.
fn traits() -> (&'static str, String, Command) {
    let names = &standard::TRAITS[..30];
    let json = format!(
        r#"{{"resource_provider_generation":3,"traits":[{}]}}"#,
        list(names.iter().map(|name| format!(r#""{name}""#)))
    );
    let command = Command::ReplaceProviderTraits(ReplaceProviderTraits {
        provider: host(),
        generation: Generation(3),
        traits: names.iter().map(|name| Given::from(*name)).collect(),
    });
    ("PUT traits, 30 of them", json, command)
}

fn host() -> ProviderUuid {
    ProviderUuid(HOST.parse::<Uuid>().expect("a UUID"))
}

fn list(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join(",")
}

/// Bytes of the entry in both versions of the record.
fn entries(command: Command) -> (usize, usize) {
    let id = WireLogId {
        term: 7,
        node: 2,
        index: 1_000_000,
    };
    let at = Timestamp(1_800_000_000_123_456);
    let request = Some(RequestId {
        origin: 3,
        boot: 5,
        sequence: 100_000,
        answered_below: 99_998,
    });
    let record = wire::encode(RecordVersion::COMPACT, &command);
    let encoded = WirePayload::Encoded(WireCommand {
        destination: placement_model::types::Destination::DEFAULT,
        at,
        request,
        command: Blob(record.into()),
    });
    let named = WirePayload::Command(Stamped {
        partition: PartitionId::DEFAULT,
        routes: 0,
        at,
        request,
        command,
    });
    let bytes = |version, payload| wire::encode(version, &WireEntry { id, payload }).len();
    (
        bytes(RecordVersion::NAMED, named),
        bytes(RecordVersion::COMPACT, encoded),
    )
}
