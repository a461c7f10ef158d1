//! A digest of the content that is the same for equal content, wherever it is: in upstream's database, in a backup, in
//! the database that an export fills.
//!
//! Each row is a line of texts, with the names of what it refers to in place of numbers, and the moment of its last change
//! in whole seconds. The digest is the sum of the hashes of all lines, so their order does not count.

use std::collections::BTreeMap;
use std::fmt::Write;

use placement_model::types::Timestamp;
use xxhash_rust::xxh3::xxh3_128;

use crate::schema::{Numbered, Row, Rows};

/// The form of the lines. To be raised with every change of it.
const FORM: u32 = 1;

/// The digest of rows that were checked: all that they refer to is there.
pub(crate) fn digest(rows: &Rows) -> String {
    let mut lines = Lines::default();
    for class in &rows.resource_classes {
        lines.add("class", &[class.name()], class.modified());
    }
    for it in &rows.traits {
        lines.add("trait", &[it.name()], it.modified());
    }
    let (providers, classes) = (
        names(&rows.resource_providers),
        names(&rows.resource_classes),
    );
    for it in &rows.resource_providers {
        let parent = it.parent_provider_id.map(|id| providers[&id]);
        let created = whole_second(it.created_at.unwrap_or_default()).to_string();
        let generation = it.generation.unwrap_or_default().to_string();
        let shown = it.name.as_ref().map_or("", |name| name.as_str());
        let texts = [
            it.name(),
            shown,
            &generation,
            parent.unwrap_or_default(),
            &created,
        ];
        lines.add("provider", &texts, it.modified());
    }
    for it in &rows.inventories {
        let numbers = [
            it.total.0,
            it.reserved.0,
            it.min_unit.0,
            it.max_unit.0,
            it.step_size.0,
        ];
        let numbers = format!("{numbers:?} {:?}", it.allocation_ratio);
        let texts = [
            providers[&it.resource_provider_id],
            classes[&it.resource_class_id],
            &numbers,
        ];
        lines.add("inventory", &texts, it.modified());
    }
    add_memberships(rows, &providers, &mut lines);
    add_consumers(rows, &mut lines);
    for it in &rows.allocations {
        let (provider, class) = (
            providers[&it.resource_provider_id],
            classes[&it.resource_class_id],
        );
        let used = it.used.0.to_string();
        lines.add(
            "allocation",
            &[it.consumer_id.as_str(), provider, class, &used],
            Timestamp(0),
        );
    }
    format!("{FORM}.{:032x}", lines.sum)
}

fn add_memberships(rows: &Rows, providers: &Names<'_>, lines: &mut Lines) {
    let (traits, aggregates) = (names(&rows.traits), names(&rows.placement_aggregates));
    for it in &rows.resource_provider_traits {
        let texts = [providers[&it.resource_provider_id], traits[&it.trait_id]];
        lines.add("provider trait", &texts, Timestamp(0));
    }
    for it in &rows.resource_provider_aggregates {
        let texts = [
            providers[&it.resource_provider_id],
            aggregates[&it.aggregate_id],
        ];
        lines.add("provider aggregate", &texts, Timestamp(0));
    }
}

/// A consumer was last changed when the last of its allocations was.
fn add_consumers(rows: &Rows, lines: &mut Lines) {
    let (projects, users, types) = (
        names(&rows.projects),
        names(&rows.users),
        names(&rows.consumer_types),
    );
    let changed = rows
        .allocations
        .iter()
        .map(|it| (it.consumer_id.as_str(), it.modified()));
    let mut changed: Vec<(&str, Timestamp)> = changed.collect();
    changed.sort_unstable();
    for it in &rows.consumers {
        let to = changed.partition_point(|(consumer, _)| *consumer <= it.name());
        let last = to.checked_sub(1).map(|last| changed[last]);
        let last = last.filter(|(consumer, _)| *consumer == it.name());
        let kind = it.consumer_type_id.map(|id| types[&id]);
        let (project, user) = (projects[&it.project_id], users[&it.user_id]);
        let texts = [
            it.name(),
            project,
            user,
            kind.unwrap_or_default(),
            &it.generation.to_string(),
        ];
        lines.add("consumer", &texts, last.map_or(it.modified(), |(_, at)| at));
    }
}

/// What rows are called, by their numbers.
type Names<'a> = BTreeMap<u32, &'a str>;

fn names<T: Numbered>(rows: &[T]) -> Names<'_> {
    rows.iter().map(|row| (row.id(), row.name())).collect()
}

fn whole_second(at: Timestamp) -> i64 {
    at.0.div_euclid(1_000_000)
}

/// The sum of the lines so far.
#[derive(Default)]
struct Lines {
    sum: u128,
    line: String,
}

impl Lines {
    /// Adds a line: each text behind its length, so that no two lines look alike.
    fn add(&mut self, table: &str, texts: &[&str], modified: Timestamp) {
        self.line.clear();
        for text in [table].iter().chain(texts) {
            write!(self.line, "{}:{text} ", text.len()).expect("a text takes what is written");
        }
        write!(self.line, "{}", whole_second(modified)).expect("a text takes what is written");
        self.sum = self.sum.wrapping_add(xxh3_128(self.line.as_bytes()));
    }
}
