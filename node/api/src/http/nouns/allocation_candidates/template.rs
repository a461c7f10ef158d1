//! JSON templates of candidates: one per shape, with all bytes except the UUIDs.

use std::collections::BTreeMap;

use placement_model::query::candidates::Candidate;

use crate::http::wire::chunks::{QUOTED_UUID_BYTES, quote_uuid};

/// Maximum number of cached templates.
pub(super) const SHAPES_MAX: usize = 64;

/// The parts of a candidate ordered by provider: the kind of each, and whether it has the same
/// provider as the previous part.
type Shape = Vec<(usize, bool)>;

/// Templates by shape, one of which is chosen.
#[derive(Default)]
pub(super) struct Templates {
    /// Kind of each part.
    kinds: Vec<usize>,
    /// The parts of the current candidate, in the order of their providers.
    order: Vec<usize>,
    /// Shape of the current candidate.
    shape: Shape,
    at: usize,
    list: Vec<Template>,
    known: BTreeMap<Shape, usize>,
    bytes: usize,
}

/// The bytes that all candidates of a shape have in common.
#[derive(Default)]
pub(super) struct Template {
    pub(super) json: Vec<u8>,
    /// Offset of each UUID in `json`, and the provider whose UUID it is.
    pub(super) uuids: Vec<(usize, ProviderSlot)>,
}

/// A reference to the provider of a part: by the number of the part, or by its position in the
/// order.
#[derive(Clone, Copy)]
pub(super) enum ProviderSlot {
    Part(usize),
    InOrder(usize),
}

impl Templates {
    pub(super) fn new(kinds: Vec<usize>) -> Self {
        Self {
            order: (0..kinds.len()).collect(),
            kinds,
            ..Self::default()
        }
    }

    /// Approximate memory use of all templates.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Chooses the template of a candidate. Returns false if it must be added first.
    pub(super) fn choose(&mut self, candidate: &Candidate<'_>) -> bool {
        let id = |part: usize| candidate.node(part).id;
        let pairs = self.order.windows(2).zip(self.shape.iter().skip(1));
        let mut holds = pairs.map(|(pair, (_, same))| {
            if *same {
                id(pair[0]) == id(pair[1])
            } else {
                id(pair[0]) < id(pair[1])
            }
        });
        if !self.list.is_empty() && holds.all(|holds| holds) {
            return true;
        }
        let kinds = &self.kinds;
        (self.order).sort_unstable_by_key(|part| (id(*part), kinds[*part], *part));
        self.shape.clear();
        let mut before = None;
        self.shape.extend(self.order.iter().map(|part| {
            let same = before.replace(id(*part)) == Some(id(*part));
            (kinds[*part], same)
        }));
        if let Some(at) = self.known.get(&self.shape) {
            self.at = *at;
            return true;
        }
        if self.list.len() == SHAPES_MAX {
            self.list.clear();
            self.known.clear();
            self.bytes = 0;
        }
        false
    }

    /// Adds the template of the current candidate and chooses it. `write` receives a function that
    /// maps a part to its position in the order.
    pub(super) fn add(
        &mut self,
        write: impl FnOnce(&mut Template, &dyn Fn(usize) -> ProviderSlot),
    ) {
        let mut template = Template::default();
        let mut places = vec![0; self.order.len()];
        for (place, part) in self.order.iter().enumerate() {
            places[*part] = place;
        }
        write(&mut template, &|part| ProviderSlot::InOrder(places[part]));
        template.json.shrink_to_fit();
        self.bytes += template.json.capacity()
            + template.uuids.capacity() * size_of::<(usize, ProviderSlot)>()
            + self.shape.len() * size_of::<(usize, bool)>();
        self.at = self.list.len();
        self.list.push(template);
        self.known.insert(self.shape.clone(), self.at);
    }

    /// Writes the current candidate with the chosen template.
    pub(super) fn put(&self, json: &mut Vec<u8>, candidate: &Candidate<'_>) {
        let start = json.len();
        let template = &self.list[self.at];
        json.extend_from_slice(&template.json);
        for (at, whose) in &template.uuids {
            let part = match *whose {
                ProviderSlot::Part(part) => part,
                ProviderSlot::InOrder(place) => self.order[place],
            };
            let text = &mut json[start + at..][..QUOTED_UUID_BYTES];
            quote_uuid(text, &candidate.node(part).uuid.0);
        }
    }
}
