//! A watcher's copy of a partition: a snapshot plus the changes sent since, checked against the
//! log.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::invariants::{no_event_is_repeated, no_event_is_skipped, progress_is_the_truth};

/// Values by kind and key.
pub(crate) type Values = BTreeMap<String, Value>;

/// Given two indexes, returns the first entry after the first index and up to the second that
/// changed the partition.
pub(crate) type Truth<'a> = &'a dyn Fn(u64, u64) -> Option<u64>;

/// A watcher's copy of one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mirror {
    /// All values at index `sent`.
    pub(crate) values: Values,
    /// The index of the copy.
    pub(crate) sent: u64,
    /// Events sent since. They apply once the stream reports progress up to them.
    ahead: Vec<(u64, Value)>,
}

/// The name of the object that a line describes.
pub(crate) fn name(item: &Value) -> String {
    format!(
        "{} {}",
        item["kind"].as_str().unwrap_or_default(),
        item["key"]
    )
}

impl Mirror {
    /// A copy of a snapshot.
    pub(crate) fn new(values: Values, sent: u64) -> Self {
        Self {
            values,
            sent,
            ahead: Vec::new(),
        }
    }

    /// After a stream has ended, discards the events that no progress line covered: the next stream
    /// sends them again.
    pub(crate) fn cut(&mut self) {
        self.ahead.clear();
    }

    fn last(&self) -> u64 {
        self.ahead.last().map_or(self.sent, |(index, _)| *index)
    }

    /// Adds an event.
    ///
    /// # Errors
    /// The event is not the next one.
    pub(crate) fn event(
        &mut self,
        index: u64,
        line: Value,
        changed: Truth<'_>,
    ) -> Result<(), String> {
        let last = self.last();
        if index <= last {
            return Err(no_event_is_repeated::complaint(index, last));
        }
        match changed(last, index) {
            Some(next) if next == index => self.ahead.push((index, line)),
            Some(missing) => return Err(no_event_is_skipped::complaint(missing, index)),
            None => {
                let wrong = "an event was sent, but the entry changed nothing";
                return Err(progress_is_the_truth::complaint(index, wrong));
            }
        }
        Ok(())
    }

    /// Applies the events up to the reported index.
    ///
    /// # Errors
    /// Events are missing, or a change does not fit the previous value.
    pub(crate) fn progress(&mut self, to: u64, changed: Truth<'_>) -> Result<(), String> {
        let wrong = |wrong: &str| Err(progress_is_the_truth::complaint(to, wrong));
        let last = self.last();
        if to < last {
            return wrong(&format!("{last} was sent before"));
        }
        if let Some(missing) = changed(last, to) {
            return wrong(&format!("entry {missing} made a change, but was not sent"));
        }
        for (index, line) in std::mem::take(&mut self.ahead) {
            for change in line["changes"].as_array().into_iter().flatten() {
                self.rename(change);
                let name = name(change);
                let before = self.values.get(&name).unwrap_or(&Value::Null);
                if *before != change["before"] {
                    let was = &change["before"];
                    return wrong(&format!(
                        "entry {index} reports that {name} was {was}, but it was {before}"
                    ));
                }
                match &change["after"] {
                    Value::Null => self.values.remove(&name),
                    after => self.values.insert(name, after.clone()),
                };
            }
        }
        self.sent = to;
        Ok(())
    }

    /// Applies a renamed resource class to all values that contain it.
    fn rename(&mut self, change: &Value) {
        let (Some(old), Some(new)) = (
            change["before"]["name"].as_str(),
            change["key"]["resource_class"].as_str(),
        ) else {
            return;
        };
        if old == new {
            return;
        }
        let [old_key, new_key] = [old, new].map(|class| format!("\"resource_class\":\"{class}\""));
        let values = std::mem::take(&mut self.values).into_iter();
        let renamed = values.map(|(name, mut value)| {
            let resources = value.get_mut("resources").and_then(Value::as_object_mut);
            if let Some(resources) = resources
                && let Some(amount) = resources.remove(old)
            {
                resources.insert(new.to_owned(), amount);
            }
            (name.replace(&old_key, &new_key), value)
        });
        self.values = renamed.collect();
    }
}
