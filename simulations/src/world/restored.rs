//! All nodes lose their disks for good, and a new cluster begins with a backup.

use std::time::Duration;

use placement_raft_store::NewCluster;

use super::World;
use crate::host::scratch;
use crate::invariants::{Leadership, restored_is_another};
use crate::operator::Order;
use crate::report::seen_at;

/// How long clients go on behind the backup: what they write is lost.
const BEHIND: Duration = Duration::from_millis(700);

impl World {
    /// One node makes a backup, some more is written, and all nodes are wiped and restored. What
    /// was seen until then is judged by itself.
    pub(super) fn lose_all(&mut self, within: Duration) -> turmoil::Result {
        self.begins("all but a backup is lost");
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
        // A node that was to join the cluster that is lost comes late.
        if let Some(token) = self.desk.token(spare) {
            let host = self.hosts[&spare].clone();
            self.kill(spare);
            host.may_be_refused();
            host.joins_by(&token)?;
            self.start(spare);
        }
        Ok(())
    }

    /// Whether no node has come into a restored cluster with a token of the one that was lost.
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
