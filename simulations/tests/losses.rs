//! Checks the predictions of `placementctl topology` for the loss of each node, zone and region:
//! powers the machines off, sends requests to the others, and powers the machines on again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use placement_client::{Loss, Reads, Topology};
use placement_simulations::host::Host;
use placement_simulations::http::{API_PORT, node_name};
use placement_simulations::invariants::members_change_as_ordered::OrderedChanges;
use placement_simulations::ledger::SharedLedger;
use placement_simulations::operator::{ADMIN_PORT, Order, OrderQueue};
use placement_simulations::outside;
use placement_simulations::parameters::{NodeTuning, OurClient, Parameters};
use placement_simulations::places::in_regions;
use placement_simulations::regions::Regions;
use placement_simulations::seed::Seed;
use tokio::time::sleep;
use turmoil::Sim;

const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Time limit for each expected state of the cluster.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any election and than any node's wait for a leader.
const SETTLED: Duration = Duration::from_secs(5);

/// A request to one listener of a node.
struct Question {
    number: u64,
    node: u64,
    port: u16,
    request: Request<Full<Bytes>>,
}

/// Status and body; `None`: no answer.
type Answer = Option<(u16, Bytes)>;

#[derive(Default)]
struct Asked {
    questions: VecDeque<Question>,
    answers: BTreeMap<u64, Answer>,
}

/// Sends all queued requests, concurrently.
async fn ask(asked: Rc<RefCell<Asked>>) -> turmoil::Result {
    loop {
        let next = asked.borrow_mut().questions.pop_front();
        let Some(question) = next else {
            sleep(ms(5)).await;
            continue;
        };
        let asked = asked.clone();
        tokio::task::spawn_local(async move {
            let address = (node_name(question.node), question.port);
            let connect = turmoil::net::TcpStream::connect(address);
            let sent = placement_witness::http::send(connect, question.request, SETTLED * 2).await;
            let answer = sent
                .ok()
                .map(|one| (one.status().as_u16(), one.into_body()));
            asked.borrow_mut().answers.insert(question.number, answer);
        });
    }
}

fn request(node: u64, method: Method, path: &str, consistency: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", node_name(node))
        .header("x-auth-token", "admin")
        .header("openstack-api-version", "placement 1.39")
        .header("placement-consistency", consistency)
        .body(Full::default())
        .expect("a request")
}

struct Cluster {
    sim: Sim<'static>,
    hosts: BTreeMap<u64, Rc<Host>>,
    asked: Rc<RefCell<Asked>>,
    desk: Rc<OrderQueue>,
    number: u64,
}

impl Cluster {
    /// Forms a cluster with these voters per region, and learners at sites of their own, all
    /// members.
    fn form(voters: &[u64], learners: u64) -> Self {
        let regions = Regions::new(voters, learners, ms(30));
        let parameters = Parameters {
            tick: ms(2),
            latency_max: ms(2),
            sync_max: ms(2),
            heartbeat: ms(100),
            wait: ms(800),
            our_client: OurClient::Absent,
            spares: 0,
            knobs: NodeTuning::default(),
            ..Parameters::from_seed(Seed(1))
        };
        let parameters = in_regions(parameters, regions.clone());
        let mut sim = turmoil::Builder::new()
            .rng_seed(1)
            .epoch(outside::epoch())
            .tick_duration(parameters.tick)
            .min_message_latency(parameters.latency_min)
            .max_message_latency(parameters.latency_max)
            .simulation_duration(Duration::from_secs(36_000))
            .tcp_capacity(4096)
            .build();
        let ledger = SharedLedger::new();
        let machines = parameters.nodes + learners;
        let host = |node| Host::new(node, &parameters, None, ledger.clone()).expect("a machine");
        let hosts: BTreeMap<u64, Rc<Host>> =
            (1..=machines).map(|node| (node, host(node))).collect();
        for host in hosts.values() {
            let software = host.clone();
            sim.host(host.name.clone(), move || software.clone().run());
        }
        let asked = Rc::<RefCell<Asked>>::default();
        let [desk, _] = OrderQueue::two(parameters.nodes, &OrderedChanges::default());
        sim.client("operator", desk.clone().work());
        sim.client("asker", ask(asked.clone()));
        for (a, one) in &hosts {
            for (b, other) in hosts.range(a + 1..) {
                let way = regions.way(regions.site(*a), regions.site(*b));
                sim.set_link_latency(one.name.as_str(), other.name.as_str(), way.max(ms(1)));
            }
        }
        let mut cluster = Self {
            sim,
            hosts,
            asked,
            desk,
            number: 0,
        };
        cluster.until("the cluster forms", |cluster| {
            cluster.is_well(1..=parameters.nodes)
        });
        cluster
            .desk
            .order((parameters.nodes + 1..=machines).map(Order::Add));
        cluster.until("the learners are added", |cluster| cluster.desk.is_empty());
        cluster.until("all nodes answer", |cluster| cluster.is_well(1..=machines));
        cluster
    }

    fn steps(&mut self, lasts: Duration) {
        let ends = self.sim.elapsed() + lasts;
        while self.sim.elapsed() < ends {
            self.sim.step().expect("no node fails");
        }
        for (node, token) in self.desk.take_tokens() {
            let host = &self.hosts[&node];
            self.sim.crash(host.name.as_str());
            host.forget();
            host.set_join_token(&token).expect("a file");
            self.sim.bounce(host.name.as_str());
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let ends = self.sim.elapsed() + PATIENCE;
        while !is_so(self) {
            assert!(self.sim.elapsed() < ends, "not within {PATIENCE:?}: {what}");
            self.steps(ms(200));
        }
    }

    /// Sends these requests concurrently, and returns the answers in order.
    fn ask(
        &mut self,
        questions: impl IntoIterator<Item = (u64, u16, Request<Full<Bytes>>)>,
    ) -> Vec<Answer> {
        let first = self.number + 1;
        for (node, port, request) in questions {
            self.number += 1;
            self.asked.borrow_mut().questions.push_back(Question {
                number: self.number,
                node,
                port,
                request,
            });
        }
        let count = usize::try_from(self.number + 1 - first).expect("few questions");
        self.until("the questions are answered", |cluster| {
            cluster.asked.borrow().answers.len() == count
        });
        std::mem::take(&mut self.asked.borrow_mut().answers)
            .into_values()
            .collect()
    }

    /// Status of each node's answer; `None`: no answer.
    fn statuses(
        &mut self,
        nodes: &[u64],
        method: &Method,
        path: &str,
        level: &str,
    ) -> Vec<Option<u16>> {
        let questions: Vec<_> = (nodes.iter())
            .map(|node| (*node, API_PORT, request(*node, method.clone(), path, level)))
            .collect();
        let answers = self.ask(questions);
        answers
            .into_iter()
            .map(|answer| answer.map(|(status, _)| status))
            .collect()
    }

    /// Whether all these nodes answer a read that needs a quorum.
    fn is_well(&mut self, nodes: impl IntoIterator<Item = u64>) -> bool {
        let nodes: Vec<u64> = nodes.into_iter().collect();
        let read = self.statuses(
            &nodes,
            &Method::GET,
            "/traits?associated=true",
            "linearizable",
        );
        read.iter().all(|status| *status == Some(200))
    }

    fn topology(&mut self) -> Topology {
        let nodes = self.hosts.len();
        let mut known = None;
        self.until("all members have a region and latencies", |cluster| {
            let asked = request(1, Method::GET, "/v1/topology", "local");
            let answers = cluster.ask([(1, ADMIN_PORT, asked)]);
            let Some(Some((200, body))) = answers.first() else {
                return false;
            };
            let topology: Topology = serde_json::from_slice(body).expect("a topology");
            let named = topology
                .members
                .iter()
                .all(|one| !one.region.is_empty() && one.reachable);
            let is_whole = named
                && topology.members.len() == nodes
                && (topology.sites.iter()).all(|site| site.write_ms.is_some());
            known = Some(topology);
            is_whole
        });
        known.expect("a topology")
    }

    /// Powers these machines off, checks the others, and powers them on again.
    fn execute(&mut self, loss: &Loss, topology: &Topology) {
        for node in &loss.nodes {
            let host = self.hosts[node].clone();
            self.sim.crash(host.name.as_str());
            host.lose_power(false).expect("a disk");
        }
        let left: Vec<u64> = (self.hosts.keys().copied())
            .filter(|node| !loss.nodes.contains(node))
            .collect();
        self.steps(SETTLED);
        let place = &loss.place;
        if loss.writes {
            self.until("the remaining nodes have a quorum", |cluster| {
                cluster.is_well(left.clone())
            });
        }
        let path = format!("/traits/CUSTOM_T{}", self.number);
        let written = self.statuses(&left, &Method::PUT, &path, "linearizable");
        for (node, status) in left.iter().zip(&written) {
            let is_written = matches!(status, Some(201 | 204));
            assert_eq!(is_written, loss.writes, "{place}: node {node}: {status:?}");
        }
        let linearizable = self.statuses(&left, &Method::GET, "/traits", "linearizable");
        let local = self.statuses(&left, &Method::GET, "/traits", "local");
        for (site, costs) in loss.sites.iter().zip(&topology.sites) {
            assert_eq!((&site.region, &site.zone), (&costs.region, &costs.zone));
            let here: Vec<usize> = (0..left.len())
                .filter(|at| costs.nodes.contains(&left[*at]))
                .collect();
            let expected = match site.reads {
                Reads::All => (true, true),
                Reads::Local => (false, true),
                Reads::None => {
                    assert!(here.is_empty(), "{place}: {site:?}: {left:?}");
                    continue;
                }
            };
            assert!(!here.is_empty(), "{place}: {site:?}: {left:?}");
            for at in here {
                let answered = (linearizable[at] == Some(200), local[at] == Some(200));
                assert_eq!(answered, expected, "{place}: {site:?}: node {}", left[at]);
            }
        }
        for node in &loss.nodes {
            self.sim.bounce(node_name(*node).as_str());
        }
        let all: Vec<u64> = self.hosts.keys().copied().collect();
        self.until("all are back", |cluster| cluster.is_well(all.clone()));
    }
}

/// Checks the prediction of each single loss. Zones and regions with the same nodes count once.
fn predictions_are_right(voters: &'static [u64], learners: u64, region_survived: bool) {
    let run = move || {
        let _simulation = placement_machine::simulate(1);
        let mut cluster = Cluster::form(voters, learners);
        let topology = cluster.topology();
        assert_eq!(topology.survives.region, region_survived, "{topology:#?}");
        let mut executed = BTreeSet::new();
        for loss in &topology.losses {
            if executed.insert((loss.nodes.clone(), loss.writes)) {
                cluster.execute(loss, &topology);
            }
        }
        let fatal = topology.losses.iter().filter(|loss| !loss.writes);
        assert_eq!(
            fatal.count() == 0,
            topology.survives.region && topology.survives.zone
        );
        executed.len()
    };
    let executed = std::thread::spawn(run)
        .join()
        .expect("every prediction is right");
    // At least one loss per node.
    let nodes = voters.iter().sum::<u64>() + learners;
    assert!(executed as u64 >= nodes, "{executed}");
}

#[test]
fn three_voters_in_two_regions_do_not_survive_the_larger_region() {
    predictions_are_right(&[2, 1], 0, false);
}

#[test]
fn three_voters_in_three_regions_survive_any_region() {
    predictions_are_right(&[1, 1, 1], 0, true);
}

#[test]
fn three_voters_and_two_edge_sites_survive_any_region() {
    predictions_are_right(&[1, 1, 1], 2, true);
}

#[test]
fn five_voters_in_two_regions_do_not_survive_the_larger_region() {
    predictions_are_right(&[3, 2], 0, false);
}

#[test]
fn five_voters_in_three_regions_survive_any_region() {
    predictions_are_right(&[2, 2, 1], 0, true);
}

#[test]
fn five_voters_in_five_regions_survive_any_region() {
    predictions_are_right(&[1, 1, 1, 1, 1], 0, true);
}
