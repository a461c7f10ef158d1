//! Waiters for the outcomes of this node's commands, whichever leader proposed them. Each is woken
//! when this node applies its command.

use placement_model::Outcome;
use placement_model::command::WriteId;
use tokio::sync::oneshot;
use tracing::Span;

use super::waiters::{Stopped, Waiter, Waiters};
use crate::types::LogId;

/// A command that was committed and that this node has applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// Id of its log entry.
    pub at: LogId,
    /// The model's answer to the command.
    pub outcome: Outcome,
}

/// A registered waiter. It gets no answer if a snapshot replaces the part of the log that contains
/// the command, or if this node stops.
pub type Expected = Waiter<Key, Committed>;

/// Waiters by write id: origin, boot and sequence.
pub(super) type Outcomes = Waiters<Key, Committed>;

type Key = (u64, u64, u64);

fn key(id: &WriteId) -> Key {
    (id.origin, id.boot, id.sequence)
}

impl Outcomes {
    /// Registers a waiter for a command. Only the last of several waiters for a command is woken.
    pub(super) fn expect(&self, id: &WriteId) -> Result<Expected, Stopped> {
        let entered = self.enter(key(id), || false)?;
        Ok(entered.expect("the waiter is always registered"))
    }

    /// Removes and returns the waiter for a command.
    pub(super) fn waits_for(&self, id: &WriteId) -> Option<oneshot::Sender<Committed>> {
        self.take(key(id))
    }

    /// The span in which this node waits for a command.
    pub(super) fn span_for(&self, id: &WriteId) -> Option<Span> {
        self.span_of(key(id))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::wire::WireLogId;

    fn id(sequence: u64) -> WriteId {
        WriteId {
            origin: 1,
            boot: 2,
            sequence,
            answered_below: 1,
        }
    }

    #[tokio::test]
    async fn each_waiter_is_woken_by_its_own_command() {
        let outcomes = Outcomes::default();
        let mut first = outcomes.expect(&id(1)).unwrap();
        let mut second = outcomes.expect(&id(2)).unwrap();
        let sender = outcomes.waits_for(&id(2)).unwrap();
        let entry: LogId = WireLogId {
            term: 3,
            node: 1,
            index: 7,
        }
        .into();
        let committed = Committed {
            at: entry,
            outcome: Outcome::AnsweredBefore,
        };
        sender.send(committed.clone()).unwrap();
        assert_eq!(second.answer().await, Some(committed));
        assert_eq!(first.answer().now_or_never(), None);
        assert!(outcomes.waits_for(&id(2)).is_none());
        let again = outcomes.expect(&id(1)).unwrap();
        assert!(outcomes.waits_for(&id(1)).is_some());
        assert_eq!(first.answer().await, None, "the last one is woken");
        drop((first, again));
        let given_up = outcomes.expect(&id(1)).unwrap();
        drop(given_up);
        assert!(outcomes.waits_for(&id(1)).is_none());
    }

    #[tokio::test]
    async fn waiters_end_when_nothing_more_is_applied() {
        let outcomes = Outcomes::default();
        let mut before = outcomes.expect(&id(1)).unwrap();
        outcomes.forget();
        assert!(!before.is_over());
        assert_eq!(before.answer().await, None);
        assert!(before.is_over());
        assert_eq!(before.answer().await, None);
        let mut again = outcomes.expect(&id(1)).unwrap();
        outcomes.close();
        assert_eq!(again.answer().await, None);
        assert_eq!(outcomes.expect(&id(1)).err(), Some(Stopped));
    }
}
