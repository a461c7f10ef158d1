//! Checks a state for corruption and for conditions that an operator should know.

use super::State;

/// Maximum number of examples per finding.
const EXAMPLES: usize = 20;

/// The result of checking a whole state. The check temporarily doubles the memory use of the state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Errors that no command can cause: corrupt memory or disk, or a bug.
    pub wrong: Vec<Finding>,
    /// Conditions that commands can cause, but that are usually unwanted.
    pub noticed: Vec<Finding>,
}

/// A finding with its number of occurrences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Description of the finding.
    pub what: &'static str,
    /// Number of occurrences in the state.
    pub count: u64,
    /// The first occurrences, as text.
    pub examples: Vec<String>,
}

impl Finding {
    fn from_cases(what: &'static str, cases: impl Iterator<Item = String>) -> Option<Self> {
        let mut found = Self {
            what,
            count: 0,
            examples: Vec::new(),
        };
        for case in cases {
            found.count += 1;
            if found.examples.len() < EXAMPLES {
                found.examples.push(case);
            }
        }
        (found.count > 0).then_some(found)
    }
}

impl Audit {
    /// Checks a whole state.
    pub fn run(state: &State) -> Self {
        let recount = state.recount().into_iter().map(str::to_owned);
        let wrong = [
            Finding::from_cases("derived data that does not match the rows", recount),
            Finding::from_cases(
                "an id at or above the next free id",
                ids_not_below_the_next(state),
            ),
            Finding::from_cases("an allocation of 0 units", nothing(state)),
        ];
        let noticed = [
            Finding::from_cases("more is allocated than the capacity", excess(state)),
            Finding::from_cases("a consumer without allocations", orphans(state)),
        ];
        Self {
            wrong: wrong.into_iter().flatten().collect(),
            noticed: noticed.into_iter().flatten().collect(),
        }
    }
}

/// Ids are assigned in order, so the next id is above all used ones.
fn ids_not_below_the_next(state: &State) -> impl Iterator<Item = String> {
    let next = state.counters();
    let providers = state
        .providers
        .places()
        .map(move |(id, _)| ("provider", id.0, next.provider));
    let classes = state
        .resource_classes
        .rows()
        .map(move |(id, _)| ("class", id, next.resource_class));
    let traits = state
        .traits
        .by_name()
        .map(move |(id, _)| ("trait", id, next.trait_));
    let ids = providers.chain(classes).chain(traits);
    ids.filter(|(_, id, next)| id >= next)
        .map(|(noun, id, next)| format!("{noun} {id}, but the next id is {next}"))
}

fn nothing(state: &State) -> impl Iterator<Item = String> {
    state.consumers.rows().flat_map(|(consumer, row)| {
        let amounts = row.allocations.iter().filter(|amount| amount.units == 0);
        amounts.map(move |_| format!("of consumer {consumer}"))
    })
}

/// An inventory may be reduced below its allocations, so this is not an error of the service.
fn excess(state: &State) -> impl Iterator<Item = String> {
    let nodes = state.trees().flat_map(|(_, tree)| &tree.nodes);
    nodes.flat_map(move |node| {
        let over = node.inventories.iter().filter(|stock| {
            // Compared in floating point, as for claims.
            stock.used as f64 > stock.inventory.capacity_exact()
        });
        over.map(move |stock| {
            format!(
                "provider {}: {} of {} used, capacity {}",
                node.uuid,
                stock.used,
                state.resource_class_name(stock.class),
                stock.inventory.capacity_exact()
            )
        })
    })
}

fn orphans(state: &State) -> impl Iterator<Item = String> {
    let rows = state.consumers.rows();
    rows.filter(|(_, row)| row.allocations.is_empty())
        .map(|(consumer, _)| format!("consumer {consumer}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic fails the test")]
mod tests {
    use uuid::Uuid;

    use super::super::change::{
        Amount, Change, ConsumerRow, Counters, InventoryRow, NameRow, ProviderId, ProviderRow,
        ResourceClassId,
    };
    use super::super::indexes::Indexes;
    use super::*;
    use crate::types::{ConsumerUuid, Generation, Inventory, ProviderUuid, Timestamp};

    const WHO: ProviderId = ProviderId(0);
    const WHAT: ResourceClassId = ResourceClassId(0);

    fn inventory(total: u32) -> Change {
        let inventory = Inventory {
            total,
            reserved: 0,
            min_unit: 1,
            max_unit: total,
            step_size: 1,
            allocation_ratio: 1.0,
        };
        let updated_at = Timestamp(0);
        let row = InventoryRow {
            inventory,
            updated_at,
        };
        Change::PutInventory(WHO, WHAT, row)
    }

    fn consumer(name: &str, amounts: &[u64]) -> Change {
        let amount = |units: &u64| Amount {
            provider: WHO,
            class: WHAT,
            units: *units,
        };
        let row = ConsumerRow {
            generation: Generation(1),
            project: "project".into(),
            user: "user".into(),
            consumer_type: None,
            allocations: amounts.iter().map(amount).collect(),
            updated_at: Timestamp(0),
            hold: None,
        };
        Change::PutConsumer(ConsumerUuid::from(name.to_owned()), row)
    }

    fn state() -> State {
        let mut state = State::default();
        let counters = Counters {
            provider: 1,
            resource_class: 1,
            ..Counters::default()
        };
        let class = NameRow {
            name: "VCPU".to_owned().try_into().unwrap(),
            updated_at: Timestamp(0),
        };
        let provider = ProviderRow {
            uuid: ProviderUuid(Uuid::from_u128(7)),
            name: "host".to_owned().try_into().unwrap(),
            generation: Generation(0),
            parent: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        };
        state.commit(&[
            Change::PutCounters(counters),
            Change::PutResourceClass(WHAT, class),
            Change::PutProvider(WHO, provider),
            inventory(8),
            consumer("holder", &[6]),
        ]);
        state
    }

    #[test]
    fn consistent_state_has_no_findings() {
        assert_eq!(Audit::run(&state()), Audit::default());
    }

    #[test]
    fn conditions_that_commands_can_cause_are_notices() {
        let mut state = state();
        state.commit(&[inventory(4), consumer("left behind", &[])]);
        let Audit { wrong, noticed } = Audit::run(&state);
        assert_eq!(wrong, []);
        let whats: Vec<_> = noticed.iter().map(|found| found.what).collect();
        assert_eq!(
            whats,
            [
                "more is allocated than the capacity",
                "a consumer without allocations"
            ]
        );
        assert!(noticed[0].examples[0].ends_with("6 of VCPU used, capacity 4"));
    }

    #[test]
    fn corruption_is_reported_as_wrong() {
        let wrong = |state: &State| {
            let found = Audit::run(state).wrong;
            let words = found.into_iter().flat_map(|found| found.examples);
            words.collect::<Vec<_>>()
        };
        let mut indexes = state();
        indexes.indexes = Indexes::default();
        assert_eq!(wrong(&indexes), ["the indexes of the candidate search"]);
        let mut digest = state();
        digest.digest = State::default().digest;
        assert_eq!(wrong(&digest), ["the digest"]);
        let mut sums = state();
        sums.consumers = State::default().consumers;
        let found = wrong(&sums);
        assert!(found[0].contains("provider trees"), "{found:?}");
        let mut counters = state();
        counters.commit(&[Change::PutCounters(Counters::default())]);
        assert_eq!(
            wrong(&counters),
            [
                "provider 0, but the next id is 0",
                "class 0, but the next id is 0"
            ]
        );
    }
}
