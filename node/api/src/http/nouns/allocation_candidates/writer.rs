//! Writes the answer of a search into bytes. Each name is looked up once, and each text is built
//! once.
//!
//! Names of classes and traits, and suffixes of groups, have no character that JSON escapes.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use placement_model::State;
use placement_model::query::candidates::{Amount, Candidate, Outline, Search, Summaries};
use placement_model::state::change::{ResourceClassId, TraitId};
use placement_model::state::tree::{Node, Stock, Tree};
use placement_model::types::ResourceClassName;
use uuid::Uuid;

use super::template::{ProviderSlot, Template, Templates};
use crate::http::wire::chunks::{Chunks, put_each, put_integer, put_uuid};
use crate::http::wire::microversion::Microversion;

/// Maximum number of cached summaries.
const LOOKS_MAX: usize = 64;
/// Names of traits with ids below this are cached.
const NAMES_MAX: usize = 4096;

/// An answer in progress.
pub(super) struct AnswerWriter<'a> {
    chunks: Chunks,
    candidates: usize,
    version: Microversion,
    outline: Arc<Outline<'a>>,
    /// The keys of [`Outline::classes`], with their colons.
    classes: Vec<Vec<u8>>,
    /// The keys of [`Outline::suffixes`], with their colons.
    suffixes: Vec<Vec<u8>>,
    templates: Templates,
    amounts: Vec<Amount>,
    pub(super) summaries: Summaries<'a>,
    state: &'a State,
}

/// Precomputed parts of a provider's summary. The trees of a cloud are similar, so the provider at
/// the same position in the previous tree is likely to have the same inventories.
#[derive(Default)]
struct CachedSummary {
    inventories: Vec<ResourceClassId>,
    /// Indices of the shown inventories, in the order of their names, each with the text before the
    /// capacity.
    resources: Vec<(usize, Vec<u8>)>,
}

/// Names of traits by id, each looked up once; empty if not looked up yet.
#[derive(Default)]
struct TraitNames<'a>(Vec<&'a str>);

impl<'a> TraitNames<'a> {
    fn get(&mut self, state: &'a State, id: TraitId) -> &'a str {
        let look_up = || state.trait_name(id).as_str();
        let at = id.0 as usize;
        if at >= NAMES_MAX {
            return look_up();
        }
        if at >= self.0.len() {
            self.0.resize(at + 1, "");
        }
        let name = &mut self.0[at];
        if name.is_empty() {
            *name = look_up();
        }
        name
    }
}

impl<'a> AnswerWriter<'a> {
    pub(super) fn new(
        state: &'a State,
        search: &Search<'a>,
        summaries: Summaries<'a>,
        version: Microversion,
    ) -> Self {
        let outline = search.outline();
        let mut chunks = Chunks::new();
        let opening = b"{\"allocation_requests\":[";
        chunks.item().extend_from_slice(opening);
        let classes = outline.classes().iter();
        Self {
            chunks,
            candidates: 0,
            version,
            classes: classes.map(key).collect(),
            suffixes: outline.suffixes().map(key).collect(),
            templates: Templates::new(outline.kinds()),
            amounts: Vec::new(),
            summaries,
            state,
            outline,
        }
    }

    /// Bytes written, and bytes of templates.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.bytes() + self.templates.bytes()
    }

    /// Number of candidates written.
    pub(super) fn candidates(&self) -> usize {
        self.candidates
    }

    /// Writes a candidate through the template of its shape.
    pub(super) fn write(&mut self, candidate: &Candidate<'a>) {
        self.summaries.note(&self.outline, candidate);
        if !self.templates.choose(candidate) {
            self.add_template(candidate);
        }
        let json = self.chunks.item();
        if self.candidates > 0 {
            json.push(b',');
        }
        self.templates.put(json, candidate);
        self.candidates += 1;
    }

    fn add_template(&mut self, candidate: &Candidate<'a>) {
        self.outline.amounts(candidate, &mut self.amounts);
        let id = |amount: &Amount| candidate.node(amount.part).id;
        let providers = self.amounts.chunk_by(|one, other| id(one) == id(other));
        // A list below 1.12, an object from then on.
        let (open, before, between, close): (&[u8], &[u8], &[u8], u8) = if self.version.from(12) {
            (b"{\"allocations\":{", b"", b":{\"resources\":", b'}')
        } else {
            (
                b"{\"allocations\":[",
                b"{\"resource_provider\":{\"uuid\":",
                b"},\"resources\":",
                b']',
            )
        };
        self.templates.add(|Template { json, uuids }, in_order| {
            let mut put_blank = |json: &mut Vec<u8>, whose| {
                uuids.push((json.len(), whose));
                put_uuid(json, &Uuid::nil());
            };
            json.extend_from_slice(open);
            put_each(json, providers, |json, amounts| {
                json.extend_from_slice(before);
                put_blank(json, in_order(amounts[0].part));
                json.extend_from_slice(between);
                put_amounts(json, &self.classes, amounts);
                json.push(b'}');
            });
            json.push(close);
            if self.version.from(34) {
                json.extend_from_slice(b",\"mappings\":{");
                let mappings = self.suffixes.iter().zip(self.outline.mappings(candidate));
                put_each(json, mappings, |json, (suffix, parts)| {
                    json.extend_from_slice(suffix);
                    json.push(b'[');
                    put_each(json, parts.map(ProviderSlot::Part), &mut put_blank);
                    json.push(b']');
                });
                json.push(b'}');
            }
            json.push(b'}');
        });
    }

    /// Writes the summaries. `check` receives the number of bytes after each.
    pub(super) fn finish<E>(
        mut self,
        mut check: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Vec<Bytes>, E> {
        let mut chunks = std::mem::take(&mut self.chunks);
        self.templates = Templates::default();
        let opening = b"],\"provider_summaries\":{";
        chunks.item().extend_from_slice(opening);
        // Cached summaries by the position of a provider in its tree.
        let mut looks: Vec<CachedSummary> = Vec::new();
        let mut trait_names = TraitNames::default();
        let mut at = 0;
        let mut before: Option<&Tree> = None;
        for (tree, node) in self.summaries.nodes() {
            let same = before.is_some_and(|before| std::ptr::eq(before, tree));
            at = if same { (at + 1) % LOOKS_MAX } else { 0 };
            if looks.len() <= at {
                looks.push(CachedSummary::default());
            }
            let json = chunks.item();
            if before.replace(tree).is_some() {
                json.push(b',');
            }
            self.put_resources(json, node, &mut looks[at]);
            if self.version.from(17) {
                self.put_traits(json, node, &mut trait_names);
            }
            if self.version.from(29) {
                put_place(json, tree, node);
            }
            json.push(b'}');
            check(chunks.bytes())?;
        }
        chunks.item().extend_from_slice(b"}}");
        Ok(chunks.finish())
    }

    /// Writes the resources of a summary: below 1.27 only the requested classes.
    fn put_resources(&self, json: &mut Vec<u8>, node: &Node, look: &mut CachedSummary) {
        let classes = node.inventories.iter().map(|stock| stock.class);
        if !classes.eq(look.inventories.iter().copied()) {
            let requested = (!self.version.from(27)).then(|| self.outline.classes());
            look.show_inventories(self.state, &node.inventories, requested);
        }
        put_uuid(json, &node.uuid.0);
        json.extend_from_slice(b":{\"resources\":{");
        put_each(json, &look.resources, |json, (index, key)| {
            let stock = &node.inventories[*index];
            json.extend_from_slice(key);
            let capacity = stock.inventory.capacity();
            match capacity.small() {
                Some(units) => put_integer(json, units),
                None => json.extend_from_slice(capacity.to_string().as_bytes()),
            }
            json.extend_from_slice(b",\"used\":");
            put_integer(json, stock.used);
            json.push(b'}');
        });
        json.push(b'}');
    }

    /// Writes the traits of a summary in the order of their creation, standard traits first, as
    /// tests of clients expect.
    fn put_traits(&self, json: &mut Vec<u8>, node: &Node, names: &mut TraitNames<'a>) {
        json.extend_from_slice(b",\"traits\":[");
        put_each(json, node.traits.iter(), |json, id| {
            json.push(b'"');
            json.extend_from_slice(names.get(self.state, *id).as_bytes());
            json.push(b'"');
        });
        json.push(b']');
    }
}

fn put_place(json: &mut Vec<u8>, tree: &Tree, node: &Node) {
    json.extend_from_slice(b",\"parent_provider_uuid\":");
    match node.parent {
        Some(parent) => put_uuid(json, &tree.nodes[parent as usize].uuid.0),
        None => json.extend_from_slice(b"null"),
    }
    json.extend_from_slice(b",\"root_provider_uuid\":");
    put_uuid(json, &tree.root().uuid.0);
}

impl CachedSummary {
    fn show_inventories(
        &mut self,
        state: &State,
        stocks: &[Stock],
        requested: Option<&[&ResourceClassName]>,
    ) {
        self.inventories.clear();
        let classes = stocks.iter().map(|stock| stock.class);
        self.inventories.extend(classes);
        let names = self
            .inventories
            .iter()
            .map(|class| state.resource_class_name(*class));
        let mut shown: Vec<(&ResourceClassName, usize)> = names
            .zip(0..)
            .filter(|(name, _)| requested.is_none_or(|all| all.binary_search(name).is_ok()))
            .collect();
        shown.sort_unstable();
        let key = |name| [key(name), b"{\"capacity\":".into()].concat();
        let shown = shown.into_iter().map(|(name, index)| (index, key(name)));
        self.resources = shown.collect();
    }
}

fn key(name: impl Display) -> Vec<u8> {
    format!("\"{name}\":").into_bytes()
}

fn put_amounts(json: &mut Vec<u8>, classes: &[Vec<u8>], amounts: &[Amount]) {
    json.push(b'{');
    put_each(json, amounts, |json, amount| {
        json.extend_from_slice(&classes[amount.class]);
        put_integer(json, amount.units);
    });
    json.push(b'}');
}

#[cfg(test)]
mod tests;
