//! Another cloud in the same cluster: in some runs further clients write to another partition, over
//! the same names and UUIDs. It is the second partition; or it is the default one, and the clients
//! of the run are in the second. The neighbour's clients have a listener of their own
//! ([`NeighbourVenue`]), and a witness of their own judges what they see by a model that holds
//! nothing else.
//!
//! Each node now and then also makes a third partition, writes to it, fills it with what the
//! default one has, and deletes it; and where the clients of the run are in the default partition
//! it changes its routes, which lead them there all the same: a request that was under way then may
//! be refused, and nothing is done twice or elsewhere. What becomes of the third is judged by the
//! digest of its rows only.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use placement_api::backend::{Consistency, ReadBackend, Unavailable, WriteBackend, Written};
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

/// How clients reach the second partition: by a listener, which is there before the partition is.
pub(crate) fn second(listen: String) -> PartitionSection {
    PartitionSection {
        name: SECOND.to_owned(),
        listen,
        ..PartitionSection::default()
    }
}

/// Where the clients of the neighbour ask.
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

/// What changes the partitions at one node.
pub(crate) struct Neighbour {
    /// For what concerns the whole cluster.
    default: Arc<dyn WriteBackend>,
    third: Arc<dyn WriteBackend>,
    /// Of the default one.
    read: Arc<dyn ReadBackend>,
    random: SmallRng,
    workload: Workload,
    names: Names,
    clouds: Clouds,
    /// When they have had enough, since the start of the simulation.
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
            // Before all is mended, as all nodes must come to one place then.
            until: parameters.fault_phase,
        }
    }

    /// Writes until it has had enough.
    pub(crate) async fn live(mut self) {
        // The clients of the run are in it, or the neighbour's are.
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
                // It is tried again with the next write.
                self.makes(THIRD).await;
            }
        }
    }

    /// Routes by which the clients of the run still come to the default partition.
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

    async fn delete_third(&self) -> Result<Written, Unavailable> {
        let delete = DeletePartition {
            name: name(THIRD),
            force: true,
        };
        let command = Command::DeletePartition(delete);
        self.default.submit(command, "neighbour".to_owned()).await
    }

    /// Makes the third partition once more, and fills it with what the default one has. Other nodes
    /// may do so at the same time, and a fault may come between any two commands.
    async fn refill(&mut self) -> Result<Written, Unavailable> {
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

    /// Makes a partition. True if it is there.
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
