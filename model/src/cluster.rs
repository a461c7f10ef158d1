//! The content of a cluster: its partitions, each an independent placement model.
//!
//! Queries and searches receive the [`State`] of one partition, so they cannot see others. Names,
//! UUIDs and dense ids may repeat between partitions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;

use crate::level::Level;
use crate::state::change::{Change, Changes, PartitionRow, Routing, RowKey, SessionRow};
use crate::state::{DanglingReference, Digest, Loading, State};
use crate::types::{HostName, PartitionId, PartitionName, Route, RoutePrefix};

/// The changes of one command in order, by partition.
pub type ClusterChanges = Vec<(PartitionId, Changes)>;

/// All partitions of a cluster after some prefix of the log. Cheap to clone, as [`State`] is.
#[derive(Clone, Default)]
pub struct Cluster {
    default: State,
    /// The other partitions. Rows of the default partition determine which ones exist.
    others: OrdMap<PartitionId, State>,
    /// The routes of all partitions.
    routes: Arc<RouteTable>,
}

/// Lookup table of all routes of a cluster.
#[derive(Debug, Default)]
struct RouteTable {
    prefixes: Vec<(RoutePrefix, PartitionId)>,
    hosts: BTreeMap<HostName, PartitionId>,
}

/// The route by which a request belongs to a partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RoutedBy {
    /// The path of the request is below this prefix.
    Prefix(RoutePrefix),
    /// The request is addressed to this host.
    Host(HostName),
    /// No partition has hosts, so all hosts belong to the default partition.
    AnyHost,
}

impl Cluster {
    /// The default partition, which always exists. It also contains the rows of the whole cluster.
    pub fn default_partition(&self) -> &State {
        &self.default
    }

    /// The partition with this id; `None` if it does not exist or was deleted.
    pub fn partition(&self, id: PartitionId) -> Option<&State> {
        match id {
            PartitionId::DEFAULT => Some(&self.default),
            id => self.others.get(&id),
        }
    }

    /// The partition with this name.
    pub fn partition_named(&self, name: &str) -> Option<(PartitionId, &State)> {
        if name == PartitionName::DEFAULT {
            return Some((PartitionId::DEFAULT, &self.default));
        }
        let mut others = self.partitions();
        let (id, _, state) = others.find(|(_, row, _)| row.name.as_str() == name)?;
        Some((id, state))
    }

    /// The partitions except the default one, in the order of their creation.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionId, &PartitionRow, &State)> {
        self.others.iter().map(|(id, state)| {
            let row = self.default.partitions.get(id);
            (*id, row.expect("each partition has a row"), state)
        })
    }

    /// The states of all partitions, starting with the default one.
    pub fn states(&self) -> impl Iterator<Item = (PartitionId, &State)> {
        let others = self.others.iter().map(|(id, state)| (*id, state));
        std::iter::once((PartitionId::DEFAULT, &self.default)).chain(others)
    }

    /// Returns the partition that serves this path and host (in lower case), and the matching
    /// route; `None` if no partition has the host. A matching path takes precedence over a host.
    pub fn route(
        &self,
        path: &str,
        host: impl FnOnce() -> Option<String>,
    ) -> Option<(PartitionId, RoutedBy)> {
        let RouteTable { prefixes, hosts } = &*self.routes;
        let mut below = prefixes.iter();
        if let Some((prefix, id)) = below.find(|(prefix, _)| prefix.path().rest_of(path).is_some())
        {
            return Some((*id, RoutedBy::Prefix(prefix.clone())));
        }
        if hosts.is_empty() {
            return Some((PartitionId::DEFAULT, RoutedBy::AnyHost));
        }
        let (name, id) = hosts.get_key_value(host()?.as_str())?;
        Some((*id, RoutedBy::Host(name.clone())))
    }

    /// Whether this route still leads to the partition.
    pub fn is_routed(&self, by: &RoutedBy, to: PartitionId) -> bool {
        let RouteTable { prefixes, hosts } = &*self.routes;
        match by {
            RoutedBy::Prefix(prefix) => prefixes.iter().any(|one| one == &(prefix.clone(), to)),
            RoutedBy::Host(host) => hosts.get(host) == Some(&to),
            RoutedBy::AnyHost => hosts.is_empty() && to.is_default(),
        }
    }

    /// The name of a partition; `None` if it does not exist or was deleted.
    pub fn name_of(&self, id: PartitionId) -> Option<PartitionName> {
        match id {
            PartitionId::DEFAULT => Some(PartitionName::default()),
            id => {
                let row = self.default.partitions.get(&id)?;
                (row.deleted_at.is_none()).then(|| row.name.clone())
            }
        }
    }

    /// The routes of a partition. The default partition initially has none.
    pub fn routing(&self, id: PartitionId) -> Routing {
        let row = self.default.partitions.get(&id);
        row.map_or_else(Routing::default, |row| row.routing.clone())
    }

    /// The feature level of the cluster.
    pub fn level(&self) -> Level {
        self.default.level()
    }

    /// The write progress of a node; `None` if the node has never written.
    pub fn session(&self, origin: u64) -> Option<&SessionRow> {
        self.default.session(origin)
    }

    /// Whether a node was permanently removed, so that its commands are no longer applied.
    pub fn is_retired(&self, origin: u64) -> bool {
        self.default.is_retired(origin)
    }

    /// The digest of all rows. If only the default partition exists, it equals that partition's
    /// digest.
    pub fn digest(&self) -> Digest {
        digest_of(self.states().map(|(id, state)| (id, state.digest())))
    }

    /// Commits the changes that [`Cluster::apply`] returned.
    ///
    /// # Panics
    /// Panics like [`State::commit`].
    pub fn commit(&mut self, changes: &ClusterChanges) {
        for (id, changes) in changes {
            let state = match *id {
                PartitionId::DEFAULT => &mut self.default,
                id => {
                    (self.others.get_mut(&id)).expect("changed rows belong to existing partitions")
                }
            };
            state.commit(changes);
            if id.is_default() {
                self.follow(changes);
            }
        }
    }

    /// Creates and removes partitions as their rows change.
    fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            if let Change::PutPartition(id, row) = change {
                match row.deleted_at {
                    // The default partition always exists; its row only holds its routes.
                    _ if id.is_default() => {}
                    None => drop(self.others.entry(*id).or_default()),
                    Some(_) => drop(self.others.remove(id)),
                }
                self.routes = routes_of(&self.default);
            }
        }
    }

    /// Every row of every partition, starting with the default one.
    pub fn rows(&self) -> impl Iterator<Item = (PartitionId, Change)> + Send + '_ {
        let states = self.states();
        states.flat_map(|(id, state)| state.rows().map(move |row| (id, row)))
    }

    /// The current value of a row, as returned by [`State::row`]; `None` if the partition does not
    /// exist.
    pub fn row(&self, partition: PartitionId, key: &RowKey) -> Option<Change> {
        Some(self.partition(partition)?.row(key))
    }

    /// Whether all derived data equals the same data computed again from the rows.
    pub fn agrees_with_recount(&self) -> bool {
        self.states().all(|(_, state)| state.agrees_with_recount())
    }

    /// Loads a cluster from its rows, in any order, as read from tables on disk or a snapshot.
    ///
    /// # Errors
    /// [`DanglingReference`] if a row refers to a missing row, or belongs to a missing partition.
    pub fn load(
        rows: impl IntoIterator<Item = (PartitionId, Change)>,
    ) -> Result<Self, DanglingReference> {
        let with_digest = |(id, row)| (Digest::from_change(&row), id, row);
        Self::load_with_digests(rows.into_iter().map(with_digest))
    }

    /// Like [`Cluster::load`], with precomputed digests of the rows.
    ///
    /// # Errors
    /// [`DanglingReference`], as in [`Cluster::load`].
    pub fn load_with_digests(
        rows: impl IntoIterator<Item = (Digest, PartitionId, Change)>,
    ) -> Result<Self, DanglingReference> {
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
            rows => Err(DanglingReference { rows }),
        }
    }
}

/// Builds the route table from the rows of the default partition.
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

/// The digest of a cluster, combined from the digests of its partitions.
pub fn digest_of(partitions: impl IntoIterator<Item = (PartitionId, Digest)>) -> Digest {
    let mut whole = Digest::default();
    for (id, digest) in partitions {
        whole.count_in(digest.in_partition(id));
    }
    whole
}

/// A cluster with only the default partition.
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
