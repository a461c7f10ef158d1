//! The digest of a state: a sum over its rows, so that a changed row costs the same however many
//! there are, and equal states have equal digests whatever way they were reached.
//!
//! Every row is written down field by field in one fixed way (little endian, lengths marked) and
//! hashed by XXH3. `std::hash::Hash` would not do: what it feeds to a hasher may differ between
//! compilers, and nodes of one cluster compare digests while they run different builds.

use std::fmt;

use serde::ser::{self, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// A digest of all rows: equal states have equal digests, whatever way they were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest(pub u128);

/// Tables as the digest tells them apart. Append only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Table {
    Provider = 1,
    Inventory = 2,
    ProviderTraits = 3,
    ProviderAggregates = 4,
    ResourceClass = 5,
    Trait = 6,
    Consumer = 7,
    Session = 8,
    Counters = 9,
    Outcome = 10,
}

impl Digest {
    /// Counts a row in.
    pub(crate) fn add(&mut self, table: Table, key: impl Serialize, row: impl Serialize) {
        self.0 = self.0.wrapping_add(row_hash(table, &key, &row));
    }

    /// Takes a row out that was counted in.
    pub(crate) fn remove(&mut self, table: Table, key: impl Serialize, row: impl Serialize) {
        self.0 = self.0.wrapping_sub(row_hash(table, &key, &row));
    }
}

fn row_hash(table: Table, key: &impl Serialize, row: &impl Serialize) -> u128 {
    let mut writer = Writer {
        bytes: Vec::with_capacity(256),
    };
    writer.bytes.push(table as u8);
    (key, row)
        .serialize(&mut writer)
        .expect("every row type of the model can be written down");
    xxh3_128(&writer.bytes)
}

/// Writes a value down as bytes that are equal only for equal values of one type.
struct Writer {
    bytes: Vec<u8>,
}

/// Begins another element of a sequence or map.
const MORE: u8 = 1;
/// Ends a sequence or map.
const END: u8 = 0;

/// A type that no row has (Serde's serializer must be able to fail).
#[derive(Debug)]
struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

macro_rules! numbers {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<(), Unsupported> {
            self.bytes.extend_from_slice(&value.to_le_bytes());
            Ok(())
        })*
    };
}

impl ser::Serializer for &mut Writer {
    type Ok = ();
    type Error = Unsupported;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_i128: i128, serialize_u128: u128,
    }

    fn serialize_f32(self, value: f32) -> Result<(), Unsupported> {
        self.serialize_u32(value.to_bits())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Unsupported> {
        self.serialize_u64(value.to_bits())
    }

    fn serialize_bool(self, value: bool) -> Result<(), Unsupported> {
        self.serialize_u8(u8::from(value))
    }

    fn serialize_char(self, value: char) -> Result<(), Unsupported> {
        self.serialize_u32(u32::from(value))
    }

    fn serialize_str(self, value: &str) -> Result<(), Unsupported> {
        self.serialize_bytes(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Unsupported> {
        self.bytes
            .extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Unsupported> {
        self.serialize_u8(0)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Unsupported> {
        self.bytes.push(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unsupported> {
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Unsupported> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
    ) -> Result<(), Unsupported> {
        self.serialize_u32(index)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Unsupported> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Unsupported> {
        self.bytes.extend_from_slice(&index.to_le_bytes());
        value.serialize(self)
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self, Unsupported> {
        self.bytes.extend_from_slice(&index.to_le_bytes());
        Ok(self)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self, Unsupported> {
        self.bytes.extend_from_slice(&index.to_le_bytes());
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

impl ser::SerializeSeq for &mut Writer {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Unsupported> {
        self.bytes.push(MORE);
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Unsupported> {
        self.bytes.push(END);
        Ok(())
    }
}

impl ser::SerializeMap for &mut Writer {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Unsupported> {
        self.bytes.push(MORE);
        key.serialize(&mut **self)
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Unsupported> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Unsupported> {
        self.bytes.push(END);
        Ok(())
    }
}

/// Fields in their order, without names or lengths: the type says how many there are.
macro_rules! fields {
    ($trait:ident, $method:ident $(, $key:ident)?) => {
        impl ser::$trait for &mut Writer {
            type Ok = ();
            type Error = Unsupported;

            fn $method<T: ?Sized + Serialize>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), Unsupported> {
                $(let _ = $key;)?
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Unsupported> {
                Ok(())
            }
        }
    };
}

fields!(SerializeTuple, serialize_element);
fields!(SerializeTupleStruct, serialize_field);
fields!(SerializeTupleVariant, serialize_field);
fields!(SerializeStruct, serialize_field, name);
fields!(SerializeStructVariant, serialize_field, name);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_rows_are_written_down_is_pinned() {
        let mut digest = Digest::default();
        digest.add(Table::Consumer, "c", (7_u32, Some("x"), vec![1_u8, 2]));
        assert_eq!(
            digest.0, PINNED,
            "nodes of two builds would disagree about equal states"
        );
    }

    const PINNED: u128 = 110_208_873_279_846_296_647_897_556_915_589_989_068;

    #[test]
    fn the_order_of_rows_does_not_matter_and_removal_undoes() {
        let mut one = Digest::default();
        one.add(Table::Trait, 1_u32, "A");
        one.add(Table::Trait, 2_u32, "B");
        let mut other = Digest::default();
        other.add(Table::Trait, 2_u32, "B");
        other.add(Table::Trait, 3_u32, "C");
        other.add(Table::Trait, 1_u32, "A");
        other.remove(Table::Trait, 3_u32, "C");
        assert_eq!(one, other);
    }

    #[test]
    fn rows_that_differ_only_in_where_a_text_ends_have_other_digests() {
        let mut one = Digest::default();
        one.add(Table::Trait, "A", "BC");
        let mut other = Digest::default();
        other.add(Table::Trait, "AB", "C");
        assert_ne!(one, other);
    }
}
