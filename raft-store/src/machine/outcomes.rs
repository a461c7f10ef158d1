//! Who waits for what the model says to a command of this node, wherever it was put into the log. Each is
//! told once, when this node applies the command.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::Outcome;
use placement_model::command::RequestId;
use tokio::sync::oneshot;

use super::waiters::Stopped;

/// What became of a command: the entry that carried it out, and what the model said.
pub type Told = (u64, Outcome);

/// Those who wait. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcomes(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// By the number of the write, with the place of who waits.
    senders: BTreeMap<WriteNumber, (u64, oneshot::Sender<Told>)>,
    came: u64,
    /// No further entry is applied.
    is_closed: bool,
}

/// Origin, start and sequence.
type WriteNumber = (u64, u64, u64);

fn number(request: &RequestId) -> WriteNumber {
    (request.origin, request.boot, request.sequence)
}

/// A place among those who wait, until it is dropped.
#[derive(Debug)]
pub struct Expected {
    number: WriteNumber,
    place: u64,
    told: oneshot::Receiver<Told>,
    is_over: bool,
    among: Outcomes,
}

impl Expected {
    /// Waits until this node applies the command. `None`: it may have been applied, and nobody has seen what
    /// came of it, as a snapshot took the place of the log that has it; or this node stops.
    pub async fn told(&mut self) -> Option<Told> {
        if self.is_over {
            return None;
        }
        let told = (&mut self.told).await.ok();
        self.is_over = true;
        told
    }

    /// Whether nothing more will be told.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let senders = &mut self.among.0.lock().senders;
        // Another may wait for the same command by now.
        if (senders.get(&self.number)).is_some_and(|(place, _)| *place == self.place) {
            senders.remove(&self.number);
        }
    }
}

impl Outcomes {
    /// Waits for a command from now on. Whoever waited for it before waits no more.
    pub(super) fn expect(&self, request: &RequestId) -> Result<Expected, Stopped> {
        let number = number(request);
        let (sender, told) = oneshot::channel();
        let mut waiting = self.0.lock();
        if waiting.is_closed {
            return Err(Stopped);
        }
        waiting.came += 1;
        let place = waiting.came;
        waiting.senders.insert(number, (place, sender));
        Ok(Expected {
            number,
            place,
            told,
            is_over: false,
            among: self.clone(),
        })
    }

    /// Who waits for this command, if anybody does.
    pub(super) fn take(&self, request: &RequestId) -> Option<oneshot::Sender<Told>> {
        let (_, sender) = self.0.lock().senders.remove(&number(request))?;
        Some(sender)
    }

    /// What was applied meanwhile is not known.
    pub(super) fn forget(&self) {
        self.0.lock().senders.clear();
    }

    /// Nothing is applied any more.
    pub(super) fn close(&self) {
        let mut waiting = self.0.lock();
        waiting.is_closed = true;
        waiting.senders.clear();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

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
        let sender = outcomes.take(&request(2)).unwrap();
        sender.send((7, Outcome::AnsweredBefore)).unwrap();
        assert_eq!(second.told().await, Some((7, Outcome::AnsweredBefore)));
        assert_eq!(first.told().now_or_never(), None);
        assert!(outcomes.take(&request(2)).is_none());
        let again = outcomes.expect(&request(1)).unwrap();
        drop(first);
        assert!(outcomes.take(&request(1)).is_some());
        drop(again);
        let given_up = outcomes.expect(&request(1)).unwrap();
        drop(given_up);
        assert!(outcomes.take(&request(1)).is_none());
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
