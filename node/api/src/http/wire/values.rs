//! JSON values that several nouns write.

use placement_model::types::Capacity;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Pairs written as a JSON object, in their order.
#[derive(Clone)]
pub(crate) struct Members<T>(pub(crate) T);

impl<T, K, V> Serialize for Members<T>
where
    T: Clone + IntoIterator<Item = (K, V)>,
    K: Serialize,
    V: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}

/// A capacity with all its digits, also beyond 64 bits.
pub(crate) struct Whole(pub(crate) Capacity);

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.small() {
            Some(units) => serializer.serialize_i64(units),
            None => RawValue::from_string(self.0.to_string())
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}
