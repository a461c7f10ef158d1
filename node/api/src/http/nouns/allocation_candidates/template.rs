//! The bytes of candidates but for their UUIDs, once for each shape.

use std::collections::BTreeMap;

use placement_model::query::candidates::Candidate;

use crate::http::wire::chunks::{QUOTED_UUID_BYTES, quote_uuid};

/// So many shapes are remembered.
const SHAPES_MAX: usize = 64;

/// Which parts of a request one provider serves, and the order of the providers: the parts in that
/// order, each with whether its provider is that of the part before.
type Shape = Vec<(usize, bool)>;

/// Templates by the shape of their candidates, one of them chosen.
#[derive(Default)]
pub(super) struct Templates {
    /// That of the chosen one.
    shape: Shape,
    at: usize,
    list: Vec<Template>,
    known: BTreeMap<Shape, usize>,
}

/// What all candidates of a shape have in common.
#[derive(Default)]
pub(super) struct Template {
    pub(super) json: Vec<u8>,
    /// Where a UUID goes, and the part whose provider has it.
    pub(super) uuids: Vec<(usize, usize)>,
}

impl Templates {
    /// Chooses the one of a candidate; false if it is empty yet.
    pub(super) fn choose(&mut self, candidate: &Candidate<'_>) -> bool {
        let id = |part: usize| candidate.node(part).id;
        let holds = |pair: &[(usize, bool)]| match pair[1].1 {
            true => id(pair[0].0) == id(pair[1].0),
            false => id(pair[0].0) < id(pair[1].0),
        };
        if !self.list.is_empty() && self.shape.windows(2).all(holds) {
            return true;
        }
        self.shape.clear();
        let parts = 0..candidate.parts();
        self.shape.extend(parts.map(|part| (part, false)));
        self.shape.sort_by_key(|(part, _)| id(*part));
        for at in 1..self.shape.len() {
            self.shape[at].1 = id(self.shape[at - 1].0) == id(self.shape[at].0);
        }
        if let Some(at) = self.known.get(&self.shape) {
            self.at = *at;
            return true;
        }
        if self.list.len() == SHAPES_MAX {
            self.list.clear();
            self.known.clear();
        }
        self.at = self.list.len();
        self.list.push(Template::default());
        self.known.insert(self.shape.clone(), self.at);
        false
    }

    pub(super) fn chosen(&mut self) -> &mut Template {
        &mut self.list[self.at]
    }
}

impl Template {
    /// Writes a candidate of this shape.
    pub(super) fn put(&self, json: &mut Vec<u8>, candidate: &Candidate<'_>) {
        let start = json.len();
        json.extend_from_slice(&self.json);
        for (at, part) in &self.uuids {
            let text = &mut json[start + at..][..QUOTED_UUID_BYTES];
            quote_uuid(text, &candidate.node(*part).uuid.0);
        }
    }
}
