//! All that a cluster holds: its partitions, each a placement model of its own.
//!
//! A query and a search are given the [`State`] of one partition, so they cannot look across.
//! Names, UUIDs and dense ids may repeat between partitions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;

use crate::level::Level;
use crate::state::change::{Change, Changes, PartitionRow, Routing, RowKey, SessionRow};
use crate::state::{Dangling, Digest, Loading, State};
use crate::types::{HostName, PartitionId, PartitionName, Route, RoutePrefix};

/// The changes of one command, by the partition whose rows they are, in order.
pub type ClusterChanges = Vec<(PartitionId, Changes)>;

/// All partitions of a cluster after some prefix of the log. Cheap to clone, as [`State`] is.
#[derive(Clone, Default)]
pub struct Cluster {
    default: State,
    /// Those that its rows say are there.
    others: OrdMap<PartitionId, State>,
    /// The routes of all of them.
    routes: Arc<RouteTable>,
}

/// All routes of a cluster, for look-up.
#[derive(Debug, Default)]
struct RouteTable {
    prefixes: Vec<(RoutePrefix, PartitionId)>,
    hosts: BTreeMap<HostName, PartitionId>,
}

/// Why a request is a partition's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RoutedBy {
    /// Its path is below this prefix.
    Prefix(RoutePrefix),
    /// It asks for this host.
    Host(HostName),
    /// No partition has hosts, so it is the default partition's, whichever host it asks for.
    AnyHost,
}

impl Cluster {
    /// The partition that is always there. It has the rows of the whole cluster, too.
    pub fn default_partition(&self) -> &State {
        &self.default
    }

    /// A partition; `None` if it is not there, or not any more.
    pub fn partition(&self, id: PartitionId) -> Option<&State> {
        match id {
            PartitionId::DEFAULT => Some(&self.default),
            id => self.others.get(&id),
        }
    }

    /// The partition of this name.
    pub fn partition_named(&self, name: &str) -> Option<(PartitionId, &State)> {
        if name == PartitionName::DEFAULT {
            return Some((PartitionId::DEFAULT, &self.default));
        }
        let mut others = self.partitions();
        let (id, _, state) = others.find(|(_, row, _)| row.name.as_str() == name)?;
        Some((id, state))
    }

    /// The partitions besides the default one, in the order in which they were made.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionId, &PartitionRow, &State)> {
        self.others.iter().map(|(id, state)| {
            let row = self.default.partitions.get(id);
            (*id, row.expect("each partition has a row"), state)
        })
    }

    /// The states of all partitions, that of the default one first.
    pub fn states(&self) -> impl Iterator<Item = (PartitionId, &State)> {
        let others = self.others.iter().map(|(id, state)| (*id, state));
        std::iter::once((PartitionId::DEFAULT, &self.default)).chain(others)
    }

    /// Whose a request for this path and host (in lower case) is, and why; `None` if no partition
    /// has that host. A path counts before a host.
    pub fn route(
        &self,
        path: &str,
        host: impl FnOnce() -> Option<String>,
    ) -> Option<(PartitionId, RoutedBy)> {
        let RouteTable { prefixes, hosts } = &*self.routes;
        let mut below = prefixes.iter();
        if let Some((prefix, id)) = below.find(|(prefix, _)| prefix.path().below(path).is_some()) {
            return Some((*id, RoutedBy::Prefix(prefix.clone())));
        }
        if hosts.is_empty() {
            return Some((PartitionId::DEFAULT, RoutedBy::AnyHost));
        }
        let (name, id) = hosts.get_key_value(host()?.as_str())?;
        Some((*id, RoutedBy::Host(name.clone())))
    }

    /// Whether what was routed so to a partition still is its own.
    pub fn is_routed(&self, by: &RoutedBy, to: PartitionId) -> bool {
        let RouteTable { prefixes, hosts } = &*self.routes;
        match by {
            RoutedBy::Prefix(prefix) => prefixes.iter().any(|one| one == &(prefix.clone(), to)),
            RoutedBy::Host(host) => hosts.get(host) == Some(&to),
            RoutedBy::AnyHost => hosts.is_empty() && to.is_default(),
        }
    }

    /// What a partition is called; `None` if it is not there.
    pub fn name_of(&self, id: PartitionId) -> Option<PartitionName> {
        match id {
            PartitionId::DEFAULT => Some(PartitionName::default()),
            id => {
                let row = self.default.partitions.get(&id)?;
                (row.deleted_at.is_none()).then(|| row.name.clone())
            }
        }
    }

    /// The routes of a partition. The default one has none until it is given some.
    pub fn routing(&self, id: PartitionId) -> Routing {
        let row = self.default.partitions.get(&id);
        row.map_or_else(Routing::default, |row| row.routing.clone())
    }

    /// The feature level of the cluster.
    pub fn level(&self) -> Level {
        self.default.level()
    }

    /// How far the writes of a node have come; `None` if it has never written.
    pub fn session(&self, origin: u64) -> Option<&SessionRow> {
        self.default.session(origin)
    }

    /// Whether a node was removed for good, so that nothing it sends is carried out any more.
    pub fn is_retired(&self, origin: u64) -> bool {
        self.default.is_retired(origin)
    }

    /// The digest of all rows. While there is but the default partition it is that of its rows.
    pub fn digest(&self) -> Digest {
        digest_of(self.states().map(|(id, state)| (id, state.digest())))
    }

    /// Carries out what [`Cluster::apply`] decided on.
    ///
    /// # Panics
    /// As [`State::commit`].
    pub fn commit(&mut self, changes: &ClusterChanges) {
        for (id, changes) in changes {
            let state = match *id {
                PartitionId::DEFAULT => &mut self.default,
                id => (self.others.get_mut(&id)).expect("rows change in partitions that are there"),
            };
            state.commit(changes);
            if id.is_default() {
                self.follow(changes);
            }
        }
    }

    /// A partition comes and goes with its row.
    fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            if let Change::PutPartition(id, row) = change {
                match row.deleted_at {
                    // It is always there, and has a row for its routes alone.
                    _ if id.is_default() => {}
                    None => drop(self.others.entry(*id).or_default()),
                    Some(_) => drop(self.others.remove(id)),
                }
                self.routes = routes_of(&self.default);
            }
        }
    }

    /// Every row of every partition, those of the default one first.
    pub fn rows(&self) -> impl Iterator<Item = (PartitionId, Change)> + Send + '_ {
        let states = self.states();
        states.flat_map(|(id, state)| state.rows().map(move |row| (id, row)))
    }

    /// The present value of a row that was changed, as [`State::row`] gives it; `None` if its
    /// partition is gone.
    pub fn row(&self, partition: PartitionId, key: &RowKey) -> Option<Change> {
        Some(self.partition(partition)?.row(key))
    }

    /// Whether all that follows from the rows is what a recount from the rows gives.
    pub fn agrees_with_recount(&self) -> bool {
        self.states().all(|(_, state)| state.agrees_with_recount())
    }

    /// A cluster from its rows in whatever order, as tables on disk or a snapshot give them.
    ///
    /// # Errors
    /// [`Dangling`] if a row refers to another that is not there, or is in a partition that is not
    /// there.
    pub fn load(rows: impl IntoIterator<Item = (PartitionId, Change)>) -> Result<Self, Dangling> {
        let with_digest = |(id, row)| (Digest::of(&row), id, row);
        Self::load_with_digests(rows.into_iter().map(with_digest))
    }

    /// As [`Cluster::load`], from rows of which the digests were computed elsewhere.
    ///
    /// # Errors
    /// [`Dangling`], as there.
    pub fn load_with_digests(
        rows: impl IntoIterator<Item = (Digest, PartitionId, Change)>,
    ) -> Result<Self, Dangling> {
        let mut all: BTreeMap<_, (usize, Loading)> = BTreeMap::new();
        for (digest, id, row) in rows {
            let (rows, loading) = all.entry(id).or_default();
            *rows += 1;
            loading.take(row, digest);
        }
        let mut finish = |id| {
            let (_, loading) = all.remove(id).unwrap_or_default();
            loading.finish()
        };
        let default = finish(&PartitionId::DEFAULT)?;
        let mut others = OrdMap::new();
        for (id, row) in &default.partitions {
            if row.deleted_at.is_none() && !id.is_default() {
                others.insert(*id, finish(id)?);
            }
        }
        match all.values().map(|(rows, _)| rows).sum() {
            0 => Ok(Self {
                routes: routes_of(&default),
                default,
                others,
            }),
            rows => Err(Dangling { rows }),
        }
    }
}

/// The table of all routes in the rows of the default partition.
fn routes_of(default: &State) -> Arc<RouteTable> {
    let mut table = RouteTable::default();
    for (id, row) in &default.partitions {
        for route in row.routing.routes.iter() {
            match route.clone() {
                Route::Prefix(prefix) => table.prefixes.push((prefix, *id)),
                Route::Host(host) => drop(table.hosts.insert(host, *id)),
            }
        }
    }
    Arc::new(table)
}

/// The digest of a cluster, of those of its partitions' rows.
pub fn digest_of(partitions: impl IntoIterator<Item = (PartitionId, Digest)>) -> Digest {
    let mut whole = Digest::default();
    for (id, digest) in partitions {
        whole.count_in(digest.within(id));
    }
    whole
}

/// A cluster of one partition.
impl From<State> for Cluster {
    fn from(default: State) -> Self {
        Self {
            routes: routes_of(&default),
            default,
            others: OrdMap::new(),
        }
    }
}

impl PartialEq for Cluster {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Cluster {}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.states()).finish()
    }
}
