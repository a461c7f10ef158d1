//! `POST /resource_providers`

use super::{Decide, Decision};
use crate::command::CreateProvider;
use crate::outcome::{Provider, Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Counters, ProviderId, ProviderRow};
use crate::types::{Generation, Timestamp};

/// Makes a provider of generation 0. The parent is looked at before duplicates are.
impl Decide for CreateProvider {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let uuid = self.uuid;
        let parent = match &self.parent {
            Some(given) if given.valid() == Some(&uuid) => {
                return Err(Refusal::ParentLoop(uuid).into());
            }
            Some(given) => {
                let place = state.place_given(given);
                Some(place.ok_or_else(|| Refusal::ParentNotFound(given.clone()))?)
            }
            None => None,
        };
        if state.place(&uuid).is_some() {
            return Err(Refusal::DuplicateProviderUuid(uuid).into());
        }
        if state.id_of_name(&self.name).is_some() {
            return Err(Refusal::DuplicateProviderName(self.name.clone()).into());
        }
        let counters = state.counters();
        let next = counters
            .provider
            .checked_add(1)
            .ok_or(Refusal::IdsExhausted)?;
        let row = ProviderRow {
            uuid,
            name: self.name.clone(),
            generation: Generation(0),
            parent: parent.map(|place| state.node(place).id),
            created_at: at,
            updated_at: at,
        };
        let reply = Reply::Provider(Provider {
            uuid,
            name: self.name.clone(),
            generation: row.generation,
            parent: parent.map(|place| state.node(place).uuid),
            root: parent.map_or(uuid, |place| state.provider_at(place).root),
            modified: at,
        });
        let changes = vec![
            Change::PutProvider(ProviderId(counters.provider), row),
            Change::PutCounters(Counters {
                provider: next,
                ..counters
            }),
        ];
        Ok((reply, changes))
    }
}
