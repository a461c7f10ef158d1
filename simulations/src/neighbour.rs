//! Another cloud in the same cluster: in some runs additional clients write to another partition,
//! with the same names and UUIDs. The neighbour uses the second partition, or the default one while
//! the clients of the run use the second. The neighbour's clients have a separate listener
//! ([`NeighbourVenue`]), and a separate witness checks them against a model of that partition only.
//!
//! Each node also creates a third partition now and then, writes to it, copies the default one into
//! it, and deletes it. If the clients of the run use the default partition, the node also changes
//! the routes of that partition; the new routes still lead the clients there. A request in flight
//! may then be refused, but is not executed twice or in another partition. The third partition is
//! checked only by the digest of its rows.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use placement_base::backend::{AppliedWrite, Consistency, ReadBackend, Unavailable, WriteBackend};
use placement_model::command::{CreatePartition, DeletePartition, RoutePartition};
use placement_model::types::{PartitionName, Route, Routes};
use placement_model::{Command, Outcome, Refusal};
use placement_node::Node;
use placement_node::config::PartitionSection;
use placement_witness::client::Venue;
use placement_witness::http::HOST;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use tokio::time::sleep;

use crate::beliefs::Beliefs;
use crate::history::Answer;
use crate::http::{NEIGHBOUR_PORT, call_at};
use crate::operation::{Operation, Token};
use crate::parameters::{Clouds, Parameters};
use crate::seed::Seed;
use crate::shared::{Shared, now};
use crate::workload::{Choices, Names, Workload};

const SECOND: &str = "second";
const THIRD: &str = "third";

fn name(name: &str) -> PartitionName {
    name.parse().expect("a name")
}

/// The second partition's section: a listener, which exists before the partition does.
pub(crate) fn second(listen: String) -> PartitionSection {
    PartitionSection {
        name: SECOND.to_owned(),
        listen,
        ..PartitionSection::default()
    }
}

/// Sends the requests of the neighbour's clients.
pub(crate) struct NeighbourVenue(pub(crate) Rc<Shared>);

impl Venue for NeighbourVenue {
    fn names(&self) -> &Names {
        self.0.names()
    }

    fn nodes(&self) -> Vec<u64> {
        self.0.nodes()
    }

    fn furthest(&self) -> Option<Token> {
        self.0.neighbours.borrow().furthest
    }

    async fn perform(&self, client: usize, node: u64, operation: Operation) -> Option<Answer> {
        let (shared, request) = (&self.0, operation.request());
        let event = (shared.neighbours.borrow_mut()).begin(client, node, operation, now());
        let patience = shared.parameters.patience;
        let end = call_at(NEIGHBOUR_PORT, node, &request, patience).await;
        let answer = end.answer().cloned();
        shared.neighbours.borrow_mut().end(event, now(), end);
        answer
    }
}

/// Changes partitions at one node.
pub(crate) struct Neighbour {
    /// Backend of the default partition, for commands to the whole cluster.
    default: Arc<dyn WriteBackend>,
    third: Arc<dyn WriteBackend>,
    /// Reads of the default partition.
    read: Arc<dyn ReadBackend>,
    random: SmallRng,
    workload: Workload,
    names: Names,
    clouds: Clouds,
    /// When the changes end, as time since the start of the simulation.
    until: Duration,
}

impl Neighbour {
    pub(crate) fn new(parameters: &Parameters, node: &Node, mut random: SmallRng) -> Self {
        let choices = Choices {
            seed: Seed(random.random()),
            ..parameters.choices()
        };
        Self {
            workload: Workload::new(0, &choices),
            default: node.write_backend(),
            third: node.write_backend_of(name(THIRD)),
            read: node.read_backend(),
            random,
            names: Names::new(&parameters.choices()),
            clouds: parameters.clouds,
            // Before the recovery phase, in which all nodes must reach the same index.
            until: parameters.fault_phase,
        }
    }

    /// Changes partitions until the end of the fault phase.
    pub(crate) async fn live(mut self) {
        // The clients of the run or of the neighbour use the second partition.
        while !self.makes(SECOND).await {
            sleep(Duration::from_millis(50)).await;
        }
        while turmoil::sim_elapsed().is_some_and(|now| now < self.until) {
            sleep(Duration::from_millis(self.random.random_range(10..200))).await;
            let written = match self.random.random_range(0..40) {
                0 => self.delete_third().await,
                1 if self.clouds == Clouds::First && self.random.random_ratio(1, 5) => {
                    let command = self.route_default();
                    self.default.submit(command, "neighbour".to_owned()).await
                }
                2 => self.refill().await,
                _ => {
                    let Some(command) = self.command() else {
                        continue;
                    };
                    self.third.submit(command, "neighbour".to_owned()).await
                }
            };
            if let Err(Unavailable::NoPartition(_)) = written {
                // The next write retries the creation.
                self.makes(THIRD).await;
            }
        }
    }

    /// Routes that still lead the clients of the run to the default partition.
    fn route_default(&mut self) -> Command {
        let hosts = [HOST, "default.example"];
        let hosts = &hosts[..self.random.random_range(0..=hosts.len())];
        let routes = hosts
            .iter()
            .map(|host| Route::Host(host.parse().expect("a host")));
        Command::RoutePartition(RoutePartition {
            name: PartitionName::default(),
            routes: (routes.collect::<Vec<_>>().try_into()).expect("they are few"),
        })
    }

    async fn delete_third(&self) -> Result<AppliedWrite, Unavailable> {
        let delete = DeletePartition {
            name: name(THIRD),
            force: true,
        };
        let command = Command::DeletePartition(delete);
        self.default.submit(command, "neighbour".to_owned()).await
    }

    /// Recreates the third partition and copies the default one into it. Other nodes may do the
    /// same concurrently, and faults may interrupt it at any command.
    async fn refill(&mut self) -> Result<AppliedWrite, Unavailable> {
        let from = self.read.view(Consistency::Local).await?;
        let bytes = self.random.random_range(500..20_000);
        let mut last = self.delete_third().await?;
        self.makes(THIRD).await;
        for piece in from.state.pieces(bytes, usize::MAX).collect::<Vec<_>>() {
            let command = Command::FillPartition(piece.expect("no row is too long"));
            last = self.third.submit(command, "neighbour".to_owned()).await?;
            if let Outcome::Refused(_) = last.outcome {
                break;
            }
        }
        Ok(last)
    }

    /// Creates a partition. Returns whether it exists now.
    async fn makes(&self, partition: &str) -> bool {
        let create = Command::CreatePartition(CreatePartition {
            name: name(partition),
            routes: Routes::default(),
        });
        let made = self.default.submit(create, "neighbour".to_owned()).await;
        let outcome = made.map(|written| written.outcome);
        matches!(
            outcome,
            Ok(Outcome::Done(_) | Outcome::Refused(Refusal::PartitionExists(_)))
        )
    }

    fn command(&mut self) -> Option<Command> {
        if self.random.random_bool(0.3) {
            let first = self.workload.set_up(&self.names, 100);
            return first
                .choose(&mut self.random)
                .map(|write| write.command.clone());
        }
        let (kind, providers) = self.workload.kind(&self.names);
        let known = Beliefs::default();
        let write = (self.workload).write(kind, &providers, &self.names, &known);
        write.map(|write| write.command)
    }
}
