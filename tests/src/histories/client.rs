//! The clients of one round. [`placement_witness::client`] chooses their requests.

use std::rc::Rc;
use std::time::Duration;

use placement_witness::client;

use super::board::{Phase, RoundContext};

/// Longest pause between two requests.
const PAUSE_MAX: Duration = Duration::from_millis(90);
const WRITES_PERCENT: u32 = 60;
/// Units of each provider at the beginning.
const TOTAL: u32 = 8;

/// A client with its own random choices.
pub(super) struct Client {
    board: Rc<RoundContext>,
    client: client::Client<Rc<RoundContext>>,
}

impl Client {
    pub(super) fn new(number: usize, board: Rc<RoundContext>) -> Self {
        let client = client::Client::new(number, board.clone(), &board.choices, PAUSE_MAX);
        Self { board, client }
    }

    /// Creates the first providers.
    pub(super) async fn set_up(&mut self) {
        self.client.set_up(TOTAL).await;
    }

    /// Works through the fault phase and the recovery phase.
    pub(super) async fn work(mut self) {
        while self.board.phase.get() == Phase::Faults {
            self.client.step(WRITES_PERCENT).await;
        }
        let has_recovered = || self.board.phase.get() == Phase::Recovery;
        self.client.be_content(has_recovered).await;
        self.board.content.set(self.board.content.get() + 1);
    }
}
