//! `DELETE /resource_providers/{uuid}/traits`

use std::collections::BTreeSet;

use super::{Decide, Decision, provider};
use crate::command::DeleteProviderTraits;
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::Timestamp;

/// Takes all traits off a provider. No generation is asked for; it rises if there were any.
impl Decide for DeleteProviderTraits {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        if found.node.traits.is_empty() {
            return Ok((found.kept(at), Changes::new()));
        }
        let changes = vec![
            Change::PutProviderTraits(found.node.id, BTreeSet::new()),
            found.bump(at),
        ];
        Ok((found.written(at), changes))
    }
}
