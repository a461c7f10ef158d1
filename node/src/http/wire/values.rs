//! JSON values that several nouns write.

use placement_model::types::Capacity;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::python;

/// Pairs written as a JSON object, in their order.
pub(in crate::http) struct Members<T>(pub(in crate::http) T);

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

/// A value written as the text it displays.
pub(in crate::http) struct Shown<T>(pub(in crate::http) T);

impl<T: std::fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A number with exactly these digits.
pub(in crate::http) struct Digits<'a>(pub(in crate::http) &'a str);

impl Serialize for Digits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = RawValue::from_string(self.0.to_owned()).map_err(serde::ser::Error::custom)?;
        digits.serialize(serializer)
    }
}

/// A float as the reference writes it. Other texts are the same number, but not to a client that
/// compares texts.
pub(in crate::http) struct Float(pub(in crate::http) f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if python::is_plain(self.0) {
            return serializer.serialize_f64(self.0);
        }
        Digits(&python::float(self.0)).serialize(serializer)
    }
}

/// A capacity with all its digits, also beyond 64 bits.
pub(in crate::http) struct Whole(pub(in crate::http) Capacity);

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.small() {
            Some(units) => serializer.serialize_i64(units),
            None => Digits(&self.0.to_string()).serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: f64) -> String {
        serde_json::to_string(&Float(value)).unwrap()
    }

    #[test]
    fn floats_at_the_bounds_are_written_as_the_reference_writes_them() {
        for value in [0.0, 1.0, 1e-4, 9.999e-5, 9_999_999_999_999_998.0, 1e16] {
            for value in [value, -value] {
                assert_eq!(written(value), python::float(value));
            }
        }
    }

    proptest! {
        #[test]
        fn floats_are_written_as_the_reference_writes_them(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(written(value), python::float(value));
        }

        #[test]
        fn so_are_those_without_exponent(value in -1e16..1e16) {
            prop_assert_eq!(written(value), python::float(value));
        }
    }
}
