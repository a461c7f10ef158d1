//! Faults of the processes of a round, and of the links between them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use http::StatusCode;
use placement_client::{Admin, Client, Error, NewJoinToken};
use placement_witness::seed::Seed;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::board::RoundContext;
use crate::cluster::Cluster;
use crate::link::Direction;
use crate::power::Power;
use crate::wait::within;

/// A fault that is injected into a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The leader is killed with SIGKILL.
    KillLeader,
    /// Any node is killed with SIGKILL.
    KillOne,
    /// Any node is killed, for so long that it needs a snapshot when it returns.
    MissMuch,
    /// A majority is killed with SIGKILL.
    KillMajority,
    /// All nodes are killed with SIGKILL.
    KillAll,
    /// One machine loses power and everything that it had not synced.
    LosePower,
    /// All machines lose power at once.
    LoseAllPower,
    /// The leader's process is stopped for longer than its lease, and continues.
    PauseLeader,
    /// Any process is stopped and continues.
    PauseOne,
    /// The processes of a majority are stopped and continue.
    PauseMajority,
    /// The leader is partitioned from all other nodes.
    CutOffLeader,
    /// One direction between two nodes is cut.
    CutOneWay,
    /// The cluster is partitioned into two halves.
    CutInHalves,
    /// All nodes are connected to one node only.
    Bridge,
    /// A node is shut down cleanly and restarted.
    Restart,
    /// An operator transfers leadership.
    Transfer,
    /// A node loses its disk for good and is replaced by a new node.
    Replace,
}

impl Fault {
    /// All faults, with weight and name in the counts.
    const ALL: [(Fault, u32, &'static str); 17] = [
        (Fault::KillLeader, 8, "leader killed"),
        (Fault::KillOne, 6, "node killed"),
        (Fault::MissMuch, 4, "node away for long"),
        (Fault::KillMajority, 3, "majority killed"),
        (Fault::KillAll, 3, "all killed"),
        (Fault::LosePower, 6, "power lost"),
        (Fault::LoseAllPower, 3, "all power lost"),
        (Fault::PauseLeader, 8, "leader paused"),
        (Fault::PauseOne, 4, "node paused"),
        (Fault::PauseMajority, 2, "majority paused"),
        (Fault::CutOffLeader, 7, "leader partitioned"),
        (Fault::CutOneWay, 5, "one direction cut"),
        (Fault::CutInHalves, 5, "partitioned in halves"),
        (Fault::Bridge, 4, "bridge partition"),
        (Fault::Restart, 5, "restart"),
        (Fault::Transfer, 6, "leadership transferred"),
        (Fault::Replace, 3, "node replaced"),
    ];

    fn draw(random: &mut SmallRng) -> Self {
        let chosen = Self::ALL.choose_weighted(random, |(_, weight, _)| *weight);
        chosen.expect("the weights are fixed").0
    }

    /// Whether the fault only cuts links, and so may continue while another fault is injected.
    fn is_cut(self) -> bool {
        matches!(
            self,
            Fault::CutOffLeader | Fault::CutOneWay | Fault::CutInHalves | Fault::Bridge
        )
    }

    fn name(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find(|(fault, ..)| *fault == self)
            .expect("all are there")
            .2
    }
}

/// Longest duration of a membership change while nothing else fails.
const CHANGE_LIMIT: Duration = Duration::from_secs(60);
/// Limit of new nodes per round, as there are no ports for more.
pub(super) const INVITED_MAX: u64 = 3;

/// Injects faults into a cluster.
pub(super) struct Injector<'a> {
    pub(super) cluster: &'a mut Cluster,
    board: &'a RoundContext,
    power: Option<Power>,
    random: SmallRng,
    members: Vec<u64>,
    invited: u64,
    met: BTreeMap<&'static str, usize>,
    /// Fault events with their times.
    story: Vec<String>,
}

impl<'a> Injector<'a> {
    pub(super) fn new(
        cluster: &'a mut Cluster,
        board: &'a RoundContext,
        power: Option<Power>,
        seed: Seed,
    ) -> Self {
        Self {
            members: cluster.ids(),
            cluster,
            board,
            power,
            random: seed.stream("faults"),
            invited: 0,
            met: BTreeMap::new(),
            story: Vec::new(),
        }
    }

    /// Ids of the members of the cluster.
    pub(super) fn members(&self) -> &[u64] {
        &self.members
    }

    /// Number of faults of each kind.
    pub(super) fn met(&self) -> &BTreeMap<&'static str, usize> {
        &self.met
    }

    /// Fault events with their times, one line each.
    pub(super) fn story(&self) -> &[String] {
        &self.story
    }

    pub(super) fn start(&mut self, node: u64) -> anyhow::Result<()> {
        if let Some(power) = &self.power {
            self.cluster.options_mut().environment = power.environment(node, None)?;
        }
        self.cluster.start_node(node)
    }

    /// Injects random faults for this time.
    pub(super) async fn run_for(&mut self, long: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < long {
            let fault = Fault::draw(&mut self.random);
            let lasts = Duration::from_millis(self.random.random_range(300..4_000));
            let beneath = Fault::draw(&mut self.random);
            // The time limit of a membership change holds only while nothing else fails.
            let together = beneath.is_cut() && !fault.is_cut() && fault != Fault::Replace;
            if together && self.random.random_bool(0.6) {
                self.cut(beneath);
            }
            self.inject(fault, lasts).await?;
            let pause = Duration::from_millis(self.random.random_range(100..1_500));
            sleep(pause).await;
        }
        Ok(())
    }

    /// Injects one fault, from its beginning to its end.
    pub(super) async fn inject(&mut self, fault: Fault, lasts: Duration) -> anyhow::Result<()> {
        let leader = self.leader();
        let any = self.any();
        let majority = self.members.len() / 2 + 1;
        let most = self.some(majority);
        let all = self.members.clone();
        match fault {
            Fault::KillLeader => self.kill(fault, vec![leader], lasts).await?,
            Fault::KillOne | Fault::LosePower => self.kill(fault, vec![any], lasts).await?,
            Fault::MissMuch => self.kill(fault, vec![any], lasts.max(MISS_MUCH)).await?,
            Fault::KillMajority => self.kill(fault, most, lasts).await?,
            Fault::KillAll | Fault::LoseAllPower => self.kill(fault, all, lasts).await?,
            Fault::PauseLeader => self.pause(fault, vec![leader], lasts.max(PAUSE_MIN)).await,
            Fault::PauseOne => self.pause(fault, vec![any], lasts).await,
            Fault::PauseMajority => self.pause(fault, most, lasts).await,
            Fault::CutOffLeader | Fault::CutOneWay | Fault::CutInHalves | Fault::Bridge => {
                self.cut(fault);
                sleep(lasts).await;
            }
            Fault::Restart => {
                self.note(fault, &[any]);
                self.cluster.stop_node(any).await?;
            }
            Fault::Transfer => {
                self.note(fault, &[any]);
                // The outcome does not matter, and the request may be refused.
                let _ = self.admin().transfer_leader(Some(any)).await;
            }
            // One of the new nodes may fail to join.
            Fault::Replace if self.invited + 1 < INVITED_MAX => self.replace(any).await?,
            Fault::Replace => {}
        }
        self.cluster.heal();
        for node in self.members.clone() {
            if let Some(status) = self.cluster.ended_by_itself(node) {
                let log = self.cluster.log(node, 20);
                bail!("node {node} ended by itself with {status}:\n{log}");
            }
            if !self.cluster.runs(node) {
                self.start(node)?;
            }
        }
        Ok(())
    }

    async fn kill(&mut self, fault: Fault, nodes: Vec<u64>, lasts: Duration) -> anyhow::Result<()> {
        self.note(fault, &nodes);
        for node in &nodes {
            self.cluster.kill_9(*node);
        }
        let loses_power = matches!(fault, Fault::LosePower | Fault::LoseAllPower);
        if let Some(power) = self.power.as_ref().filter(|_| loses_power) {
            for node in &nodes {
                let lost = power.cut(*node, &self.cluster.data_dir(*node))?;
                self.story.push(format!("    node {node}: {lost:?}"));
            }
        }
        sleep(lasts).await;
        Ok(())
    }

    async fn pause(&mut self, fault: Fault, nodes: Vec<u64>, lasts: Duration) {
        self.note(fault, &nodes);
        self.signal(&nodes, Signal::STOP);
        sleep(lasts).await;
        self.signal(&nodes, Signal::CONT);
    }

    fn signal(&mut self, nodes: &[u64], signal: Signal) {
        for node in nodes {
            if self.cluster.runs(*node) {
                self.cluster.process(*node).signal(signal);
            }
        }
    }

    fn cut(&mut self, fault: Fault) {
        let leader = self.leader();
        let all = self.members.clone();
        let (one, other) = match self.some(2)[..] {
            [one, other] => (one, other),
            _ => return,
        };
        let half = self.some(all.len() / 2);
        let between = |are_cut: &dyn Fn(u64, u64) -> bool| -> Vec<Direction> {
            let to_all = |from| all.iter().map(move |to| (from, *to));
            let ways = all.iter().copied().flat_map(to_all);
            ways.filter(|(from, to)| are_cut(*from, *to)).collect()
        };
        let (about, ways) = match fault {
            Fault::CutOffLeader => {
                let ways = between(&|from, to| (from == leader) != (to == leader));
                (vec![leader], ways)
            }
            Fault::CutOneWay => (vec![one, other], vec![(one, other)]),
            Fault::Bridge => {
                let ways = between(&|from, to| from != to && from != one && to != one);
                (vec![one], ways)
            }
            _ => {
                let ways = between(&|from, to| half.contains(&from) != half.contains(&to));
                (half, ways)
            }
        };
        self.note(fault, &about);
        self.cluster.cut(ways);
    }

    /// Removes a node for good and adds a new one with a new id.
    async fn replace(&mut self, old: u64) -> anyhow::Result<()> {
        self.cluster.kill_9(old);
        std::fs::remove_dir_all(self.cluster.data_dir(old))?;
        self.members.retain(|member| *member != old);
        self.board.nodes.borrow_mut().remove(&old);
        self.note(Fault::Replace, &[old]);
        let admin = self.admin();
        until_done("for its removal", async || {
            match admin.remove_member(old, false).await {
                Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(()),
                removed => removed,
            }
        })
        .await?;
        let new = self.invite(&admin).await?;
        if self.random.random_bool(0.4) {
            // This may interrupt a snapshot transfer.
            sleep(Duration::from_millis(self.random.random_range(0..300))).await;
            self.note(Fault::KillOne, &[new]);
            self.cluster.kill_9(new);
            self.start(new)?;
        }
        if self.random.random_bool(0.4) {
            let while_it_changes = Duration::from_millis(self.random.random_range(1..100));
            let _ = timeout(while_it_changes, admin.promote_member(new, false)).await;
            let leader = self.leader();
            self.note(Fault::KillLeader, &[leader]);
            self.cluster.kill_9(leader);
            self.start(leader)?;
        }
        until_done("for its promotion", async || {
            admin.promote_member(new, false).await
        })
        .await?;
        self.members.push(new);
        let address = self.cluster.place(new).api();
        self.board.nodes.borrow_mut().insert(new, address);
        Ok(())
    }

    /// Has a new node join with a token. A node that received a membership that was never committed
    /// waits forever; another new node then joins in its place.
    async fn invite(&mut self, admin: &Admin) -> anyhow::Result<u64> {
        loop {
            self.invited += 1;
            if self.invited > INVITED_MAX {
                bail!("{INVITED_MAX} new nodes failed to join");
            }
            let made = until_done("for a token", async || {
                admin.create_join_token(&NewJoinToken::default()).await
            })
            .await?;
            // The tokens in between were created, but their answers were lost.
            while (self.cluster.ids().len() as u64) < made.id {
                self.cluster.add_place();
            }
            let token = made.token.context("a token is shown once")?;
            self.cluster.give_token(made.id, &token)?;
            self.start(made.id)?;
            let is_member = within(CHANGE_LIMIT, async || {
                let members = admin.status().await.map_err(drop)?.members;
                let is_there = members.iter().any(|one| one.id == made.id);
                is_there.then_some(()).ok_or(())
            });
            if is_member.await.is_ok() {
                return Ok(made.id);
            }
            self.cluster.kill_9(made.id);
        }
    }

    fn note(&mut self, fault: Fault, about: &[u64]) {
        *self.met.entry(fault.name()).or_default() += 1;
        let at = self.board.elapsed().as_secs_f64();
        self.story
            .push(format!("{at:>8.3} s {}: {about:?}", fault.name()));
    }

    /// The supposed leader, or a random node.
    fn leader(&mut self) -> u64 {
        let leader = self.board.leader();
        let is_there = leader.filter(|leader| self.members.contains(leader));
        is_there.unwrap_or_else(|| self.any())
    }

    fn any(&mut self) -> u64 {
        let chosen = self.members.choose(&mut self.random);
        *chosen.expect("a cluster has members")
    }

    fn some(&mut self, count: usize) -> Vec<u64> {
        let some = self.members.choose_multiple(&mut self.random, count);
        some.copied().collect()
    }

    /// A client of the admin listeners of all members.
    fn admin(&self) -> Admin {
        let members = self.members.iter();
        let listeners = members.map(|id| self.cluster.place(*id).admin());
        let client = Client::new(listeners).expect("places are endpoints");
        Admin::new(client.with_patience(Duration::from_secs(5)))
    }
}

/// Long enough for the other nodes to write more entries than they retain in their logs.
const MISS_MUCH: Duration = Duration::from_secs(10);
/// Exceeds the time for which a deposed leader can still believe that it leads.
const PAUSE_MIN: Duration = Duration::from_secs(2);

async fn until_done<T>(
    what: &str,
    attempt: impl AsyncFnMut() -> Result<T, Error>,
) -> anyhow::Result<T> {
    let done = within(CHANGE_LIMIT, attempt).await;
    done.with_context(|| format!("a node waits {what}"))
}
