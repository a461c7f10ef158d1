//! What a watcher has of a partition: what it was sent first, and what has changed since, held
//! against the log.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::invariants::{no_event_is_repeated, no_event_is_skipped, progress_is_the_truth};

/// Values by kind and key.
pub(crate) type Values = BTreeMap<String, Value>;

/// Which entry between two, the second included, has changed something first.
pub(crate) type Truth<'a> = &'a dyn Fn(u64, u64) -> Option<u64>;

/// What a watcher has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mirror {
    /// All that is there at the place to which it has come.
    pub(crate) values: Values,
    /// That place.
    pub(crate) sent: u64,
    /// Events that were sent since: they count once the stream says that it is as far.
    ahead: Vec<(u64, Value)>,
}

/// The name of what a line is about.
pub(crate) fn name(item: &Value) -> String {
    format!(
        "{} {}",
        item["kind"].as_str().unwrap_or_default(),
        item["key"]
    )
}

impl Mirror {
    /// That of a snapshot.
    pub(crate) fn new(values: Values, sent: u64) -> Self {
        Self {
            values,
            sent,
            ahead: Vec::new(),
        }
    }

    /// The stream has ended: what it did not vouch for will come again.
    pub(crate) fn cut(&mut self) {
        self.ahead.clear();
    }

    fn last(&self) -> u64 {
        self.ahead.last().map_or(self.sent, |(index, _)| *index)
    }

    /// Takes in an event.
    ///
    /// # Errors
    /// It is not the next one.
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
                let wrong = "an event was sent, and the entry has changed nothing";
                return Err(progress_is_the_truth::complaint(index, wrong));
            }
        }
        Ok(())
    }

    /// All up to there is sent.
    ///
    /// # Errors
    /// It is not, or is not what follows from what was there before.
    pub(crate) fn progress(&mut self, to: u64, changed: Truth<'_>) -> Result<(), String> {
        let wrong = |wrong: &str| Err(progress_is_the_truth::complaint(to, wrong));
        let last = self.last();
        if to < last {
            return wrong(&format!("{last} was sent before"));
        }
        if let Some(missing) = changed(last, to) {
            return wrong(&format!(
                "entry {missing} has changed something, and was not sent"
            ));
        }
        for (index, line) in std::mem::take(&mut self.ahead) {
            for change in line["changes"].as_array().into_iter().flatten() {
                self.rename(change);
                let name = name(change);
                let before = self.values.get(&name).unwrap_or(&Value::Null);
                if *before != change["before"] {
                    let was = &change["before"];
                    return wrong(&format!(
                        "{index} says that {name} was {was}, and it was {before}"
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

    /// A class with another name has that in all that there is of it.
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
