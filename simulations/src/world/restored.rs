//! The loss of all nodes for good, and a new cluster restored from a backup.

use std::time::Duration;

use placement_raft_store::NewCluster;

use super::World;
use crate::host::scratch;
use crate::invariants::{Leadership, restored_is_another};
use crate::operator::Order;
use crate::report::seen_at;

/// How long clients continue after the backup; their writes are lost.
const BEHIND: Duration = Duration::from_millis(700);

impl World {
    /// Takes a backup on one node, lets clients continue, then wipes and restores all nodes. The
    /// history until then is checked on its own.
    pub(super) fn lose_all(&mut self, within: Duration) -> turmoil::Result {
        self.begins("all nodes are lost, a backup is restored");
        let parameters = self.shared.parameters.clone();
        let (nodes, spare) = (parameters.nodes, parameters.nodes + 1);
        self.desk.order([Order::Token(spare)]);
        let ordered = |world: &Self| world.desk.is_empty();
        self.steps(2 * within, "no token was made", ordered)?;
        let paper = scratch()?;
        let (file, source) = (paper.path().join("backup"), &self.hosts[&1].clone());
        let by = 1 + parameters.seed.number("backup") % nodes;
        let source = self.hosts.get(&by).unwrap_or(source).clone();
        let until = self.sim.elapsed() + within;
        let behind = loop {
            match source.back_up(&file)? {
                Some(behind) => break behind,
                None if self.sim.elapsed() > until => return Err("no backup was made".into()),
                None => self.step()?,
            }
        };
        let until = self.sim.elapsed() + BEHIND;
        while self.sim.elapsed() < until {
            self.step()?;
        }
        for node in 1..=nodes {
            self.kill(node);
            self.hosts[&node].wipe()?;
        }
        let history = self.shared.begin_again(behind);
        let log = self
            .ledger
            .lock()
            .begin_again(behind, (1..=nodes).collect());
        self.course.lost = Some((history, log));
        self.course.leaders = Leadership::default();
        let mut cluster = NewCluster::Drawn(parameters.seed.number("new cluster"));
        for node in 1..=nodes {
            cluster = NewCluster::Named(self.hosts[&node].restore(&file, cluster)?);
            self.start(node);
        }
        // A node with a token of the lost cluster tries to join late.
        if let Some(token) = self.desk.token(spare) {
            let host = self.hosts[&spare].clone();
            self.kill(spare);
            host.may_be_refused();
            host.set_join_token(&token)?;
            self.start(spare);
        }
        Ok(())
    }

    /// Checks that no node has joined the restored cluster with a token of the lost one.
    pub(super) fn is_closed(&mut self) {
        let parameters = &self.shared.parameters;
        let spare = parameters.nodes + 1;
        if parameters.is_lost && !self.outside.contains(&spare) {
            let wrong = restored_is_another::complaint(spare);
            self.course
                .violations
                .push(seen_at(&wrong, self.sim.elapsed()));
        }
    }
}
