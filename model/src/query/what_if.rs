//! Counts how often a request fits, by claiming it repeatedly on a copy of the state.

use super::UnknownName;
use crate::apply::apply;
use crate::command::{
    Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ReplaceAllocations,
    Stamped,
};
use crate::outcome::Outcome;
use crate::query::candidates::{Amount, Candidate, CandidateRequest, Outline, Watch};
use crate::state::State;
use crate::state::change::Changes;
use crate::types::{ConsumerUuid, PartitionId, Timestamp};

/// Maximum number of claims per command.
const TOGETHER_MAX: u64 = 256;

/// The number of times that a request can be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// Number of successful claims.
    pub count: u64,
    /// Whether `count` is the maximum over all orders of claims: the count is complete, and every
    /// claim uses a single standalone provider. Otherwise `count` is a lower bound.
    pub exact: bool,
    /// Whether claiming ended because no candidate remained, not because of the limit or the watch.
    pub complete: bool,
}

impl State {
    /// Claims the first candidate of a request until none remains, at most `at_most` times. The
    /// watch is called before and during each search, and may end the count.
    ///
    /// # Errors
    /// The request contains an unknown resource class or trait.
    pub fn fit(
        &self,
        request: &CandidateRequest,
        at_most: u64,
        mut watch: Watch<'_>,
    ) -> Result<Fit, UnknownName> {
        let mut request = request.clone();
        request.limit = Some(1);
        let mut state = self.clone();
        let mut fit = Fit {
            count: 0,
            exact: true,
            complete: false,
        };
        while fit.count < at_most && watch(0).is_continue() {
            let mut search = state.candidates(&request, Some(Box::new(&mut watch)))?;
            let outline = search.outline();
            let Some(candidate) = search.next_candidate() else {
                fit.complete = !search.interrupted();
                break;
            };
            let mut amounts = Vec::new();
            outline.amounts(&candidate, &mut amounts);
            let is_alone = state.is_alone(&candidate);
            fit.exact &= is_alone;
            // A standalone provider remains the first candidate as long as it has room.
            let times = if is_alone {
                state.room(&outline, &candidate, &amounts)
            } else {
                1
            };
            let times = times.clamp(1, TOGETHER_MAX.min(at_most - fit.count));
            let consumers = (fit.count..fit.count + times)
                .map(|number| claim(&outline, &candidate, &amounts, number))
                .collect();
            let changes = state.changes_of(consumers);
            drop(search);
            // The count is unknown if the claim is refused.
            let Some(changes) = changes else {
                fit.exact = false;
                break;
            };
            state.commit(&changes);
            fit.count += times;
        }
        fit.exact &= fit.complete;
        Ok(fit)
    }

    /// The changes of these allocations in a copy of this state, regardless of the limits of
    /// projects; `None` if they are refused, for example because the ids are exhausted.
    pub(super) fn changes_of(&self, consumers: Vec<ConsumerAllocations>) -> Option<Changes> {
        let stamped = Stamped {
            at: Timestamp::default(),
            write_id: None,
            command: Command::ReplaceAllocations(ReplaceAllocations { consumers }),
            partition: PartitionId::DEFAULT,
            routes: 0,
            request_id: None,
        };
        let (outcome, changes) = apply(&self.without_limits(), &stamped);
        matches!(outcome, Outcome::Done(_)).then_some(changes)
    }

    /// How often the inventories of a candidate have room for its amounts.
    fn room(&self, outline: &Outline<'_>, candidate: &Candidate<'_>, amounts: &[Amount]) -> u64 {
        let rooms = amounts.iter().filter_map(|one| {
            let class = self.resource_class_id(outline.classes()[one.class])?;
            let stock = candidate.node(one.part).stock(class)?;
            stock.inventory.free(stock.used).checked_div(one.units)
        });
        rooms.min().unwrap_or(1)
    }

    /// Whether a candidate uses only a single provider that is alone in its tree and is not a
    /// sharing provider.
    fn is_alone(&self, candidate: &Candidate<'_>) -> bool {
        let first = candidate.node(0);
        let tree = self
            .place_by_id(first.id)
            .and_then(|place| self.tree(place.tree));
        let sharing = self.sharing_trait();
        tree.is_some_and(|tree| tree.nodes.len() == 1)
            && sharing.is_none_or(|id| !first.traits.contains(&id))
            && (1..candidate.parts()).all(|part| candidate.node(part).id == first.id)
    }
}

/// Claims a candidate for a new consumer.
fn claim(
    outline: &Outline<'_>,
    candidate: &Candidate<'_>,
    amounts: &[Amount],
    number: u64,
) -> ConsumerAllocations {
    ConsumerAllocations {
        consumer: ConsumerUuid::from(format!("f17f17f1-f17f-4f17-8f17-{number:012x}")),
        allocations: outline.provider_amounts(candidate, amounts),
        project: "what-if".into(),
        user: "what-if".into(),
        generation: ConsumerGeneration::New,
        consumer_type: ConsumerTypeUpdate::Keep,
    }
}
