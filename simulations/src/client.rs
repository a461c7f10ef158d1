//! The clients of one run: what they ask is in [`placement_witness::client`], and one of them may
//! be our own.

use std::cell::RefCell;
use std::rc::Rc;

use placement_witness::client::{Client, Venue};
use rand::rngs::SmallRng;

use crate::history::Answer;
use crate::library::Library;
use crate::mutant::Mutant;
use crate::neighbour::NeighbourVenue;
use crate::operation::{Operation, Token};
use crate::parameters::OurClient;
use crate::shared::{Phase, Shared};
use crate::workload::Names;

/// Which client is our own, if it is among them.
const OURS: usize = 1;

/// Where one of the clients asks.
struct Seat {
    shared: Rc<Shared>,
    /// Our own client, if this is its seat.
    library: Option<Library>,
    /// Where it stands, and how it chooses among the nodes, in a run in regions.
    site: Option<(usize, RefCell<SmallRng>)>,
}

impl Venue for Seat {
    fn names(&self) -> &Names {
        self.shared.names()
    }

    fn nodes(&self) -> Vec<u64> {
        let nodes = self.shared.nodes();
        match (&self.shared.parameters.regions, &self.site) {
            (Some(regions), Some((site, random))) => {
                regions.choice(&mut random.borrow_mut(), *site, nodes)
            }
            _ => nodes,
        }
    }

    fn furthest(&self) -> Option<Token> {
        self.shared.furthest()
    }

    async fn perform(&self, client: usize, node: u64, operation: Operation) -> Option<Answer> {
        match &self.library {
            Some(library) => library.perform(operation).await,
            None => self.shared.perform(client, node, operation).await,
        }
    }
}

/// A client of the neighbour.
///
/// # Errors
/// None; the signature is turmoil's.
pub async fn work_in_the_neighbour(number: usize, shared: Rc<Shared>) -> turmoil::Result {
    let parameters = &shared.parameters;
    // What it chooses is not what a client of the run with this number does.
    let stream = parameters.clients + 1 + number;
    let (seat, pause) = (NeighbourVenue(shared.clone()), parameters.pause_max);
    let mut client = Client::new(stream, seat, &parameters.choices(), pause);
    if number == 0 {
        client.set_up(parameters.total).await;
    }
    live(client, &shared).await;
    Ok(())
}

/// The client with this number, from 0: the first makes the first providers, then all work through
/// the fault phase and the recovery phase.
///
/// # Errors
/// None; the signature is turmoil's.
pub async fn work(number: usize, shared: Rc<Shared>, mutant: Option<Mutant>) -> turmoil::Result {
    let parameters = &shared.parameters;
    let is_ours = number == OURS && parameters.our_client != OurClient::Absent;
    let lies = mutant == Some(Mutant::LostAsNotSent);
    let site = parameters.regions.as_ref().map(|regions| {
        let random = parameters.seed.stream(&format!("site of client {number}"));
        (regions.site_of_client(number), RefCell::new(random))
    });
    let seat = Seat {
        shared: shared.clone(),
        site,
        library: is_ours.then(|| Library::new(number, &shared, lies)),
    };
    let mut client = Client::new(number, seat, &parameters.choices(), parameters.pause_max);
    if number == 0 {
        client.set_up(parameters.total).await;
        shared.phase.set(Phase::Faults);
    }
    live(client, &shared).await;
    Ok(())
}

/// Through the fault phase, the recovery phase, and what follows.
async fn live(mut client: Client<impl Venue>, shared: &Shared) {
    let parameters = &shared.parameters;
    shared.until(Phase::Faults).await;
    while shared.phase.get() == Phase::Faults {
        client.step(parameters.writes_percent).await;
    }
    client
        .be_content(|| shared.phase.get() == Phase::Recovery)
        .await;
    shared.content.set(shared.content.get() + 1);
    shared.until(Phase::Further).await;
    while shared.phase.get() == Phase::Further {
        client.step(parameters.writes_percent).await;
    }
    shared.content.set(shared.content.get() + 1);
}
