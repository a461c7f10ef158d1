//! The list of partitions with their routes.

use placement_model::outcome::{Refusal, Reply};
use placement_model::types::{PartitionId, PartitionName, Routes};

use super::{ApplyResult, Naive, NaivePartition, refuse_if};

impl Naive {
    /// Number of changes of a partition's routes.
    pub fn route_changes(&self, partition: PartitionId) -> u32 {
        let found = self.partitions.get(usize::from(partition.0));
        found.map_or(0, |partition| partition.changes)
    }

    /// Whether routes lead to a partition, so that clients can use it.
    pub(crate) fn is_routed_to(&self, partition: PartitionId) -> bool {
        let found = self.partitions.get(usize::from(partition.0));
        partition.is_default() || found.is_some_and(|found| found.routes.iter().next().is_some())
    }

    /// The id of the live partition with this name.
    pub fn partition_id(&self, name: &PartitionName) -> Option<PartitionId> {
        let is_it = |one: &NaivePartition| one.is_there && one.name == *name;
        let id = self.partitions.iter().position(is_it)?;
        u16::try_from(id).ok().map(PartitionId)
    }

    pub(super) fn partition(&mut self, name: &PartitionName) -> Option<&mut NaivePartition> {
        let mut all = self.partitions.iter_mut();
        all.find(|partition| partition.is_there && partition.name == *name)
    }

    /// Adds the default partition, which always exists.
    pub(super) fn begin_partitions(&mut self) {
        if self.partitions.is_empty() {
            self.add_partition(PartitionName::default(), Routes::default());
        }
    }

    pub(super) fn add_partition(&mut self, name: PartitionName, routes: Routes) {
        self.partitions.push(NaivePartition {
            name,
            is_there: true,
            routes,
            changes: 0,
        });
    }

    pub(super) fn create_partition(
        &mut self,
        name: &PartitionName,
        routes: &Routes,
    ) -> ApplyResult {
        self.begin_partitions();
        let is_taken = self.partition(name).is_some();
        refuse_if(is_taken, || Refusal::PartitionExists(name.clone()))?;
        self.check_routes(name, routes)?;
        let id = u16::try_from(self.partitions.len()).expect("tests create few partitions");
        self.add_partition(name.clone(), routes.clone());
        Ok(Reply::Partition(PartitionId(id)))
    }

    /// Marks the partition's entry as deleted. Its content is a separate model, which the caller
    /// deletes.
    pub(super) fn delete_partition(&mut self, name: &PartitionName) -> ApplyResult {
        refuse_if(name.is_default(), || Refusal::PartitionDefault)?;
        let partition = self
            .partition(name)
            .ok_or_else(|| Refusal::PartitionNotFound(name.clone()))?;
        partition.is_there = false;
        partition.routes = Routes::default();
        partition.changes = 0;
        Ok(Reply::Done)
    }

    pub(super) fn route_partition(&mut self, name: &PartitionName, routes: &Routes) -> ApplyResult {
        self.begin_partitions();
        let Some(partition) = self.partition(name) else {
            return Err(Refusal::PartitionNotFound(name.clone()));
        };
        if partition.routes != *routes {
            self.check_routes(name, routes)?;
            let partition = self.partition(name).expect("the partition exists");
            partition.routes = routes.clone();
            partition.changes += 1;
        }
        Ok(Reply::Done)
    }

    /// Checks that a partition may have these routes, given the routes of the others.
    fn check_routes(&self, name: &PartitionName, routes: &Routes) -> Result<(), Refusal> {
        let has_host = |routes: &Routes| routes.hosts().count() > 0;
        if name.is_default() && routes.iter().count() > routes.hosts().count() {
            return Err(Refusal::DefaultPrefix);
        }
        let mut after: Vec<_> = (self.partitions.iter())
            .filter(|partition| partition.name != *name)
            .map(|partition| (&partition.name, &partition.routes))
            .collect();
        after.push((name, routes));
        let (default, others): (Vec<_>, Vec<_>) =
            after.into_iter().partition(|(name, _)| name.is_default());
        if others.iter().any(|(_, routes)| has_host(routes))
            && !default.iter().any(|(_, routes)| has_host(routes))
        {
            return Err(Refusal::DefaultWithoutHost);
        }
        for route in routes.iter() {
            for other in self.partitions.iter().filter(|other| other.name != *name) {
                if other.routes.iter().any(|one| one.meets(route)) {
                    return Err(Refusal::RouteTaken(route.clone(), other.name.clone()));
                }
            }
        }
        Ok(())
    }
}
