//! Who waits for what the model says to a command of this node, wherever it was put into the log. Each is
//! told when this node applies the command.

use placement_model::Outcome;
use placement_model::command::RequestId;
use tokio::sync::oneshot;

use super::waiters::{Stopped, Waiter, Waiters};
use crate::types::LogId;

/// What became of a command: the entry that carried it out, and what the model said.
pub type Told = (LogId, Outcome);

/// A place among those who wait. Nothing is told if a snapshot takes the place of the log that has the command,
/// or this node stops.
pub type Expected = Waiter<WriteNumber, Told>;

/// Those who wait, by the number of the write: origin, start and sequence.
pub(super) type Outcomes = Waiters<WriteNumber, Told>;

type WriteNumber = (u64, u64, u64);

fn number(request: &RequestId) -> WriteNumber {
    (request.origin, request.boot, request.sequence)
}

impl Outcomes {
    /// Waits for a command from now on. Of several, who came last is told.
    pub(super) fn expect(&self, request: &RequestId) -> Result<Expected, Stopped> {
        let entered = self.enter(number(request), || false)?;
        Ok(entered.expect("there is always something to wait for"))
    }

    /// Who is to be told of this command, if anybody is.
    pub(super) fn waits_for(&self, request: &RequestId) -> Option<oneshot::Sender<Told>> {
        self.take(number(request))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::wire::WireLogId;

    fn request(sequence: u64) -> RequestId {
        RequestId {
            origin: 1,
            boot: 2,
            sequence,
            answered_below: 1,
        }
    }

    #[tokio::test]
    async fn each_is_told_of_its_own_command() {
        let outcomes = Outcomes::default();
        let mut first = outcomes.expect(&request(1)).unwrap();
        let mut second = outcomes.expect(&request(2)).unwrap();
        let sender = outcomes.waits_for(&request(2)).unwrap();
        let entry: LogId = WireLogId {
            term: 3,
            node: 1,
            index: 7,
        }
        .into();
        sender.send((entry, Outcome::AnsweredBefore)).unwrap();
        assert_eq!(second.told().await, Some((entry, Outcome::AnsweredBefore)));
        assert_eq!(first.told().now_or_never(), None);
        assert!(outcomes.waits_for(&request(2)).is_none());
        let again = outcomes.expect(&request(1)).unwrap();
        assert!(outcomes.waits_for(&request(1)).is_some());
        assert_eq!(first.told().await, None, "who came last is told");
        drop((first, again));
        let given_up = outcomes.expect(&request(1)).unwrap();
        drop(given_up);
        assert!(outcomes.waits_for(&request(1)).is_none());
    }

    #[tokio::test]
    async fn nobody_waits_for_what_nobody_will_tell() {
        let outcomes = Outcomes::default();
        let mut before = outcomes.expect(&request(1)).unwrap();
        outcomes.forget();
        assert!(!before.is_over());
        assert_eq!(before.told().await, None);
        assert!(before.is_over());
        assert_eq!(before.told().await, None);
        let mut again = outcomes.expect(&request(1)).unwrap();
        outcomes.close();
        assert_eq!(again.told().await, None);
        assert_eq!(outcomes.expect(&request(1)).err(), Some(Stopped));
    }
}
