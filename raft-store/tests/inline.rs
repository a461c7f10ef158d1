//! A few claims are applied on the calling thread. Longer work and disk writes run on other
//! threads.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use placement_base::platform::{Platform, install};
use placement_base::runtime::Limits;
use placement_model::Command;
use placement_model::command::{
    CapacityRule, Claim, Claimant, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreateProvider, DeleteAllocations, EnsureResourceClass, Group, GroupRule, ProviderAmounts,
    ReplaceAllocations, ReplaceInventories,
};
use placement_model::types::{
    ConsumerUuid, Generation, Given, Inventory, ProviderUuid, ResourceClassName,
};
use placement_raft_store::{Entry, Payload, Store, StoreOptions, open};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::common::{applied, apply, blank, entry, logged, new_dir, options, run};

/// More records than a command applied inline may touch.
const MANY: u32 = 150;
const FEW: u32 = 3;
/// The provider with many inventories.
const WIDE: u32 = 1_000_000;
/// About so many bytes of commands are applied in one batch.
const BATCH_BYTES: usize = 1 << 20;

/// Counts the work given to other threads.
struct Counting(Rc<Cell<usize>>);

impl Platform for Counting {
    #[expect(clippy::disallowed_methods, reason = "this is a platform")]
    fn blocking(&self, work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
        self.0.set(self.0.get() + 1);
        tokio::task::spawn_blocking(work)
    }
}

/// A node on this thread, which writes under its own id.
struct Node {
    store: Store,
    on_other_threads: Rc<Cell<usize>>,
    index: u64,
    boot: u64,
    answered_below: u64,
}

impl Node {
    fn entry(&mut self, command: Command) -> Entry {
        self.index += 1;
        let mut entry = entry(1, self.index, command);
        if let Payload::Normal(command) = &entry.payload {
            let mut stamped = command.stamped().clone();
            stamped.write_id = stamped.write_id.map(|mut id| {
                (id.boot, id.answered_below) = (self.boot, self.answered_below);
                id
            });
            entry.payload = Payload::Normal(logged(stamped));
        }
        entry
    }

    /// Applies entries. Returns how often work was handed to other threads.
    async fn apply(&mut self, entries: Vec<Entry>) -> usize {
        let before = self.on_other_threads.get();
        apply(&mut self.store.machine, entries).await;
        assert_eq!(applied(&self.store).index(), Some(self.index));
        self.on_other_threads.get() - before
    }

    /// Declares all earlier outcomes as answered.
    async fn forget(&mut self) {
        self.answered_below = self.index;
        self.commit([give_back(0)]).await;
    }

    async fn commit(&mut self, commands: impl IntoIterator<Item = Command>) -> usize {
        let entries: Vec<_> = (commands.into_iter())
            .map(|command| self.entry(command))
            .collect();
        self.apply(entries).await
    }
}

/// The product's limits for pending row changes and ledger bytes.
const PRODUCT: (usize, usize) = (16_384, 8 << 20);

/// Runs a scenario on a node whose provider 1 has inventories of [`FEW`] classes, and whose
/// provider [`WIDE`] has inventories of [`MANY`] classes.
fn story((rows_behind, ledger_behind): (usize, usize), tell: impl AsyncFnOnce(&mut Node)) {
    let on_other_threads = Rc::<Cell<usize>>::default();
    let _platform = install(Rc::new(Counting(on_other_threads.clone())));
    let dir = new_dir();
    run(async {
        let options = StoreOptions {
            rows_behind,
            ledger_behind,
            ..options(dir.path())
        };
        let mut node = Node {
            store: open(options).unwrap(),
            on_other_threads,
            index: 0,
            boot: 1,
            answered_below: 0,
        };
        node.commit([provider(1, None), provider(WIDE, None)]).await;
        node.commit((0..MANY).map(|number| {
            let name = class(number).to_string().parse().unwrap();
            Command::EnsureResourceClass(EnsureResourceClass { name })
        }))
        .await;
        let inventory = Inventory {
            total: 1_000,
            reserved: 0,
            min_unit: 1,
            max_unit: 1_000,
            step_size: 1,
            allocation_ratio: 1.0,
        };
        node.commit([(1, FEW), (WIDE, MANY)].map(|(provider, classes)| {
            let inventories = (0..classes).map(|number| (class(number), inventory));
            Command::ReplaceInventories(ReplaceInventories {
                provider: uuid(provider),
                generation: Generation(0),
                inventories: inventories.collect(),
                capacity_rule: CapacityRule::NotNegative,
            })
        }))
        .await;
        node.forget().await;
        tell(&mut node).await;
    });
}

fn uuid(number: u32) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(number.into()))
}

fn class(number: u32) -> Given<ResourceClassName> {
    Given::from(format!("CUSTOM_{number}"))
}

fn provider(number: u32, parent: Option<u32>) -> Command {
    Command::CreateProvider(CreateProvider {
        uuid: uuid(number),
        name: format!("cn{number}").try_into().unwrap(),
        parent: parent.map(|parent| Given::from(uuid(parent).to_string())),
    })
}

fn consumer(number: u32) -> ConsumerUuid {
    ConsumerUuid::from(Uuid::from_u128(1 << 64 | u128::from(number)).to_string())
}

/// A consumer claims one unit of each of `classes` classes, replacing its allocations.
fn claim(number: u32, classes: u32) -> Command {
    claim_from(if classes > FEW { WIDE } else { 1 }, number, classes)
}

fn claim_from(provider: u32, number: u32, classes: u32) -> Command {
    let resources = (0..classes).map(|number| (class(number), 1)).collect();
    let amounts = ProviderAmounts {
        provider: Given::from(uuid(provider).to_string()),
        resources,
    };
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: vec![ConsumerAllocations {
            consumer: consumer(number),
            allocations: (classes > 0).then_some(amounts).into_iter().collect(),
            project: "project".into(),
            user: "user".into(),
            generation: ConsumerGeneration::Unchecked,
            consumer_type: ConsumerTypeUpdate::Keep,
        }],
    })
}

/// A claim with `choices` choices of a class that provider 1 lacks, and then one that it has.
fn choose(number: u32, choices: u32) -> Command {
    let choice = |class_number| {
        vec![vec![ProviderAmounts {
            provider: Given::from(uuid(1).to_string()),
            resources: BTreeMap::from([(class(class_number), 1)]),
        }]]
    };
    Command::Claim(Claim {
        claimants: vec![Claimant {
            consumer: consumer(number),
            project: "project".into(),
            user: "user".into(),
            consumer_type: ConsumerTypeUpdate::Keep,
            generation: ConsumerGeneration::Unchecked,
        }],
        choices: (0..choices)
            .map(|_| choice(FEW))
            .chain([choice(0)])
            .collect(),
        ceilings: Vec::new(),
        groups: Vec::new(),
        hold: None,
    })
}

fn give_back(number: u32) -> Command {
    let consumer = consumer(number);
    Command::DeleteAllocations(DeleteAllocations { consumer })
}

#[test]
fn a_few_claims_are_applied_at_once() {
    story(PRODUCT, async |node| {
        assert_eq!(node.commit([claim(1, 3)]).await, 0);
        assert_eq!(node.commit([claim(1, 0)]).await, 0);
        assert_eq!(node.commit((1..=8).map(|number| claim(number, 2))).await, 0);
        assert_eq!(node.commit((1..=8).map(give_back)).await, 0);
        assert_eq!(node.commit([choose(1, 15)]).await, 0);
        assert_eq!(node.commit([choose(1, 0), choose(2, 3)]).await, 0);
        // Rejected: there are no allocations to delete.
        assert_eq!(node.commit([give_back(1)]).await, 0);
    });
}

#[test]
fn long_batches_and_other_commands_are_applied_on_another_thread() {
    story(PRODUCT, async |node| {
        assert_eq!(
            node.commit((1..=20).map(|number| claim(number, 1))).await,
            1
        );
        let of_a_wide_one = claim_from(WIDE, 1, 1);
        assert_eq!(node.commit([of_a_wide_one]).await, 1, "the list is copied");
        assert_eq!(node.commit([claim(1, MANY)]).await, 1, "it claims many");
        assert_eq!(node.commit([claim(1, 1)]).await, 1, "it releases many");
        assert_eq!(node.commit([claim(1, MANY)]).await, 1);
        assert_eq!(node.commit([claim(1, 0)]).await, 1);
        assert_eq!(node.commit([claim(1, MANY)]).await, 1);
        assert_eq!(node.commit([give_back(1)]).await, 1);
        assert_eq!(node.commit([claim(1, 1), provider(2, None)]).await, 1);
        node.index += 1;
        let first_of_a_leader = blank(1, node.index);
        assert_eq!(node.apply(vec![first_of_a_leader]).await, 1);

        assert_eq!(node.commit([choose(1, MANY)]).await, 1, "it checks many");
        let mut conditions = choose(1, 0);
        if let Command::Claim(claim) = &mut conditions {
            claim.groups.push(Group {
                members: (0..MANY).map(consumer).collect(),
                rule: GroupRule::Together,
            });
        }
        assert_eq!(node.commit([conditions]).await, 1, "it has many members");

        // Two such claims are too long together.
        let mut names = claim(1, 1);
        if let Command::ReplaceAllocations(replace) = &mut names {
            let text = "x".repeat(Limits::PRODUCT.apply_inline / 2 + 1);
            replace.consumers[0].project = text.into();
        }
        assert_eq!(node.commit([names.clone()]).await, 0);
        assert_eq!(node.commit([names.clone(), names]).await, 1);
    });
}

/// The changes of a batch stay in memory until they are written.
#[test]
fn long_commands_are_applied_in_several_batches() {
    story(PRODUCT, async |node| {
        let long = |number| {
            let mut claim = claim(number, 1);
            if let Command::ReplaceAllocations(replace) = &mut claim {
                replace.consumers[0].project = "x".repeat(BATCH_BYTES / 2).into();
            }
            claim
        };
        assert_eq!(node.commit((1..=4).map(long)).await, 2);
    });
}

#[test]
fn a_claim_that_changes_a_large_tree_is_applied_on_another_thread() {
    story(PRODUCT, async |node| {
        assert_eq!(node.commit([claim(1, 1)]).await, 0);
        node.commit((2..MANY).map(|number| provider(number, Some(1))))
            .await;
        node.forget().await;
        assert_eq!(node.commit([claim(2, 1)]).await, 1);
        assert_eq!(node.commit([give_back(1)]).await, 1);
        assert_eq!(node.commit([give_back(3)]).await, 0, "it holds nothing");
    });
}

#[test]
fn claim_that_deletes_many_outcomes_is_applied_on_another_thread() {
    story(PRODUCT, async |node| {
        for number in 0..MANY {
            node.commit([claim(number, 1)]).await;
        }
        assert_eq!(node.commit([claim(0, 1)]).await, 0);
        // The client's node has restarted.
        node.boot = 2;
        assert_eq!(node.commit([claim(0, 1)]).await, 1);
        assert_eq!(node.commit([claim(0, 1)]).await, 0);
        for number in 0..MANY {
            node.commit([claim(number, 1)]).await;
        }
        node.answered_below = node.index;
        assert_eq!(node.commit([claim(0, 1)]).await, 1);
        assert_eq!(node.commit([claim(0, 1)]).await, 0);
    });
}

/// The pending amount is bounded, however small the claims are. If it reaches the limit, another
/// thread writes it.
#[test]
fn claims_do_not_wait_for_the_disk_on_the_calling_thread() {
    let (rows, bytes) = PRODUCT;
    for behind in [(1, bytes), (rows, 1)] {
        story(behind, async |node| {
            assert_eq!(node.commit((1..=8).map(|number| claim(number, 1))).await, 1);
        });
    }
}
