//! The clients of one run. [`placement_witness::client`] chooses their requests. One of them may
//! use our own client library.

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

/// Number of the client that uses our client library, if the run has one.
const OURS: usize = 1;

/// How one client of the run sends its requests.
struct Seat {
    shared: Rc<Shared>,
    /// Our client library, if this client uses it.
    library: Option<Library>,
    /// In a run with regions: the client's site and the random choice of its node.
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

/// A client of the neighbour partition.
///
/// # Errors
/// None; turmoil requires the signature.
pub async fn work_in_second_partition(number: usize, shared: Rc<Shared>) -> turmoil::Result {
    let parameters = &shared.parameters;
    // A random stream that no client of the run uses, so that the choices differ.
    let stream = parameters.clients + 1 + number;
    let (seat, pause) = (NeighbourVenue(shared.clone()), parameters.pause_max);
    let mut client = Client::new(stream, seat, &parameters.choices(), pause);
    if number == 0 {
        client.set_up(parameters.total).await;
    }
    live(client, &shared).await;
    Ok(())
}

/// Client `number` of the run, from 0. Client 0 creates the first providers, then all clients work
/// through the fault phase and the recovery phase.
///
/// # Errors
/// None; turmoil requires the signature.
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

/// Works through the fault phase, the recovery phase and the rest of the run.
async fn live(mut client: Client<impl Venue>, shared: &Shared) {
    let parameters = &shared.parameters;
    shared.wait_for_phase(Phase::Faults).await;
    while shared.phase.get() == Phase::Faults {
        client.step(parameters.writes_percent).await;
    }
    client
        .be_content(|| shared.phase.get() == Phase::Recovery)
        .await;
    shared.content.set(shared.content.get() + 1);
    shared.wait_for_phase(Phase::Further).await;
    while shared.phase.get() == Phase::Further {
        client.step(parameters.writes_percent).await;
    }
    shared.content.set(shared.content.get() + 1);
}
