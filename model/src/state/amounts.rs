//! The allocations of a consumer, in one flat list to save memory: there may be millions of
//! consumers. They are serialized as a map by provider of maps by class. This takes no more bytes
//! than a list, because each provider occurs only once.

use std::collections::BTreeMap;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::ids::{ProviderId, ResourceClassId};

/// The allocation of one class on one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Amount {
    /// The provider of the allocation.
    pub provider: ProviderId,
    /// The class of the allocation.
    pub class: ResourceClassId,
    /// Units of the class, at least 1.
    pub units: u64,
}

impl Amount {
    fn key(&self) -> (ProviderId, ResourceClassId) {
        (self.provider, self.class)
    }
}

/// All allocations of a consumer, sorted by provider and class.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(from = "Maps")]
pub struct Amounts(Box<[Amount]>);

/// The serialized representation.
type Maps = BTreeMap<ProviderId, BTreeMap<ResourceClassId, u64>>;

impl Amounts {
    /// Whether the consumer has no allocations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All amounts, sorted by provider and class.
    pub fn iter(&self) -> std::slice::Iter<'_, Amount> {
        self.0.iter()
    }

    /// The providers with allocations, each with its amounts sorted by class.
    pub fn by_provider(&self) -> impl Iterator<Item = (ProviderId, &[Amount])> {
        let same = |one: &Amount, other: &Amount| one.provider == other.provider;
        let together = self.0.chunk_by(same);
        together.map(|amounts| (amounts[0].provider, amounts))
    }

    /// The amounts on one provider, sorted by class.
    pub fn on_provider(&self, provider: ProviderId) -> &[Amount] {
        let from = self.0.partition_point(|amount| amount.provider < provider);
        let to = self.0.partition_point(|amount| amount.provider <= provider);
        &self.0[from..to]
    }
}

impl<'a> IntoIterator for &'a Amounts {
    type Item = &'a Amount;
    type IntoIter = std::slice::Iter<'a, Amount>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// If a class occurs several times for a provider, the last amount wins.
impl FromIterator<Amount> for Amounts {
    fn from_iter<I: IntoIterator<Item = Amount>>(amounts: I) -> Self {
        let mut amounts: Vec<_> = amounts.into_iter().collect();
        amounts.sort_by_key(Amount::key);
        amounts.dedup_by(|later, earlier| {
            let same = later.key() == earlier.key();
            if same {
                *earlier = *later;
            }
            same
        });
        Self(amounts.into())
    }
}

impl Serialize for Amounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.by_provider().count()))?;
        for (provider, amounts) in self.by_provider() {
            map.serialize_entry(&provider, &Classes(amounts))?;
        }
        map.end()
    }
}

/// Serializes the amounts of one provider as a map by class.
struct Classes<'a>(&'a [Amount]);

impl Serialize for Classes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|amount| (amount.class, amount.units)))
    }
}

impl From<Maps> for Amounts {
    fn from(maps: Maps) -> Self {
        let amounts = maps.into_iter().flat_map(|(provider, classes)| {
            classes.into_iter().map(move |(class, units)| Amount {
                provider,
                class,
                units,
            })
        });
        amounts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(provider: u32, class: u32, units: u64) -> Amount {
        Amount {
            provider: ProviderId(provider),
            class: ResourceClassId(class),
            units,
        }
    }

    fn given() -> Amounts {
        let given = [(7, 2, 5), (3, 1, 9), (7, 0, 1), (3, 1, 4)];
        given.map(|(p, c, u)| amount(p, c, u)).into_iter().collect()
    }

    #[test]
    fn amounts_are_sorted_and_the_last_duplicate_wins() {
        let sorted = [amount(3, 1, 4), amount(7, 0, 1), amount(7, 2, 5)];
        assert_eq!(given().iter().copied().collect::<Vec<_>>(), sorted);
        let by_provider: Vec<_> = given()
            .by_provider()
            .map(|(provider, amounts)| (provider.0, amounts.len()))
            .collect();
        assert_eq!(by_provider, [(3, 1), (7, 2)]);
        assert_eq!(given().on_provider(ProviderId(7)), &sorted[1..]);
        assert_eq!(given().on_provider(ProviderId(4)), &[]);
    }

    #[test]
    fn amounts_serialize_as_a_map_of_maps() {
        let maps: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::from([
            (3, BTreeMap::from([(1, 4)])),
            (7, BTreeMap::from([(0, 1), (2, 5)])),
        ]);
        let written = rmp_serde::to_vec(&maps).unwrap();
        assert_eq!(rmp_serde::to_vec(&given()).unwrap(), written);
        let read: Amounts = rmp_serde::from_slice(&written).unwrap();
        assert_eq!(read, given());
    }
}
