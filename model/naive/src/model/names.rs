//! Creation of names: the code that traits and resource classes share.

use placement_model::command::SyncStandards;
use placement_model::outcome::Reply;
use placement_model::types::Timestamp;

use super::{ApplyResult, Naive};

impl Naive {
    pub(super) fn sync_standards(&mut self, at: Timestamp, sync: &SyncStandards) -> ApplyResult {
        for name in &sync.resource_classes {
            if !self.classes.contains_key(name) {
                self.make_class(at, name);
            }
        }
        for name in &sync.traits {
            if !self.traits.contains_key(name) {
                self.make_trait(at, name);
            }
        }
        Ok(Reply::Done)
    }
}

pub(super) fn named_reply(created: bool, modified: Timestamp) -> ApplyResult {
    Ok(Reply::Named { created, modified })
}
