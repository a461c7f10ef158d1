//! Names that cannot be anybody's name, such as `vcpu` for a class.
//!
//! The model speaks of well-formed names only, yet when a wrong name is reported depends on facts
//! that only the model knows. So a wrong name is replaced by a well-formed one that nobody can
//! have (names made by clients begin with `CUSTOM_`), and put back into the error.

use indexmap::IndexSet;
use placement_model::types::{ResourceClassName, TraitName};

const PREFIX: &str = "UNNAMEABLE_";

/// The wrong names of one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Unnameable(IndexSet<String>);

fn is_stand_in(name: &str) -> bool {
    name.starts_with(PREFIX)
}

impl Unnameable {
    fn stand_in(&mut self, text: &str) -> String {
        let (index, _) = self.0.insert_full(text.to_owned());
        format!("{PREFIX}{index}")
    }

    /// The class of this name, or the stand-in for a wrong name.
    pub(super) fn class(&mut self, text: &str) -> ResourceClassName {
        let parsed = text
            .parse()
            .ok()
            .filter(|name: &ResourceClassName| !is_stand_in(name.as_str()));
        parsed.unwrap_or_else(|| {
            self.stand_in(text)
                .parse()
                .expect("a stand-in is a well-formed name")
        })
    }

    /// The trait of this name, or the stand-in for a wrong name.
    pub(super) fn trait_(&mut self, text: &str) -> TraitName {
        let parsed = text
            .parse()
            .ok()
            .filter(|name: &TraitName| !is_stand_in(name.as_str()));
        parsed.unwrap_or_else(|| {
            self.stand_in(text)
                .parse()
                .expect("a stand-in is a well-formed name")
        })
    }

    /// The name as the client spelled it.
    pub(super) fn spelled<'a>(&'a self, name: &'a str) -> &'a str {
        name.strip_prefix(PREFIX)
            .and_then(|index| index.parse::<usize>().ok())
            .and_then(|index| self.0.get_index(index))
            .map_or(name, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_comes_back_as_it_was_spelled() {
        let mut unnameable = Unnameable::default();
        assert_eq!(unnameable.class("VCPU").as_str(), "VCPU");
        for wrong in ["vcpu", "", " VCPU", "UNNAMEABLE_0"] {
            let stand_in = unnameable.class(wrong);
            assert_eq!(unnameable.spelled(stand_in.as_str()), wrong);
        }
        assert_eq!(unnameable.spelled("VCPU"), "VCPU");
    }
}
