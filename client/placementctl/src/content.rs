//! Requests for the content of a partition.

use std::cell::Cell;
use std::slice::from_ref;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use placement_client::{
    Admin, ApiRequest, ApiResponse, Client, Consistency, Error, Lines, Position,
};
use placement_wire::consumers::{Consumer, ConsumerPage};
use placement_wire::upstream::{Provider, Providers};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::moment::earlier;
use crate::named::Named;
use crate::render::{Output, first_names, pairs, text, warn};

/// Path prefix of the routes that other implementations of the API do not have.
pub(crate) const EXTENSIONS: &str = "/placementd/v1";
/// A local read of a state older than this causes a warning. Nodes ask the leader for its position
/// more often than this, so only the state of a node that cannot reach the leader is older.
const STALE: Duration = Duration::from_secs(5);
/// Characters that must be escaped in a query (RFC 3986 section 3.4).
const NOT_IN_QUERIES: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// Source and output options of commands that read content.
#[derive(Args)]
#[command(next_help_heading = "Source")]
pub(crate) struct Source {
    /// Partition to read, by name.
    #[arg(long, global = true, value_name = "NAME", default_value = "default")]
    pub(crate) partition: String,
    /// Read the local state of the node, even without a quorum; it may be out of date.
    #[arg(long, global = true)]
    pub(crate) local: bool,
    /// Node to ask, by number or name. Default: the first node that answers.
    #[arg(id = "source", long = "node", global = true, value_name = "NODE")]
    pub(crate) node: Option<Named>,
    /// Read the state at an earlier time: a `Placement-Index` of a response or a change, a time
    /// such as 2026-11-27T06:00:00Z, or an age such as 90s, 15m, 12h or 7d.
    #[arg(long, global = true, value_name = "MOMENT", value_parser = earlier)]
    pub(crate) as_of: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The content of one partition, read from one node or from the first node that answers.
pub(crate) struct Content {
    pub(crate) admin: Admin,
    pub(crate) source: Source,
    pub(crate) timeout: Duration,
    api: Client,
    has_warned: Cell<bool>,
}

impl Content {
    pub(crate) async fn open(
        admin: Admin,
        source: Source,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let asked = match &source.node {
            Some(node) => admin.for_member(&node.member(&admin).await?, timeout)?,
            None => admin.clone(),
        };
        let mut api = asked.placement(&source.partition);
        if source.local {
            api = api.with_consistency(Consistency::Local);
        }
        Ok(Self {
            admin,
            source,
            timeout,
            api,
            has_warned: Cell::new(false),
        })
    }

    /// Sends a request. Warns on standard error, once, if there is no quorum.
    pub(crate) async fn send(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        let answer = self.api.call(self.at_moment(request)).await?;
        if let Some(warning) = without_quorum(&answer.position())
            && !self.has_warned.replace(true)
        {
            warn(&warning);
        }
        Ok(answer)
    }

    /// The response to a request, line by line.
    pub(crate) async fn lines(&self, request: ApiRequest) -> Result<Lines, Error> {
        self.api.lines(self.at_moment(request)).await
    }

    fn at_moment(&self, request: ApiRequest) -> ApiRequest {
        match &self.source.as_of {
            Some(moment) => request.header("placement-as-of", moment),
            None => request,
        }
    }

    /// The response to a request.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, request: ApiRequest) -> Result<T, Error> {
        self.send(request).await?.json()
    }

    /// The response to GET as JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.ask(ApiRequest::get(path)).await
    }

    /// The providers that match the filters of `GET /resource_providers`.
    pub(crate) async fn providers(&self, filters: Value) -> Result<Vec<Provider>, Error> {
        let request = filtered("/resource_providers", &filters);
        let answer: Providers = self.ask(request).await?;
        Ok(answer.resource_providers)
    }

    /// The consumers that match the filters.
    pub(crate) async fn consumers(&self, filters: &Value) -> Result<Vec<Consumer<'static>>, Error> {
        let mut found = Vec::new();
        let take = |consumer| {
            found.push(consumer);
            true
        };
        self.each_consumer(filters, take).await?;
        Ok(found)
    }

    /// Passes the consumers that match the filters to `take`, page by page, until it returns false.
    pub(crate) async fn each_consumer(
        &self,
        filters: &Value,
        mut take: impl FnMut(Consumer<'static>) -> bool,
    ) -> Result<(), Error> {
        let request = filtered(&format!("{EXTENSIONS}/consumers?limit=1000"), filters);
        let mut marker = String::new();
        loop {
            let page = match marker.as_str() {
                "" => request.clone(),
                marker => request.clone().query("marker", marker),
            };
            let answer: ConsumerPage<'_> = self.ask(page).await?;
            let all_taken = answer.consumers.into_iter().all(&mut take);
            // A page may be empty. A marker that does not advance would loop forever.
            match answer.next {
                Some(next) if all_taken && *next > *marker => marker = next.into_owned(),
                _ => return Ok(()),
            }
        }
    }

    /// Finds a provider by UUID, name, or the beginning of its name. Returns its UUID.
    pub(crate) async fn provider(&self, given: &str) -> anyhow::Result<String> {
        let mut found = Vec::new();
        // A name may be a UUID, as with Ironic nodes.
        if given.parse::<Uuid>().is_ok() {
            found = self.providers(json!({ "uuid": given })).await?;
        }
        if found.is_empty() {
            found = self.providers(json!({ "name": given })).await?;
        }
        if found.is_empty() {
            found = named(self.providers(Value::Null).await?, given);
        }
        let names = found.iter().map(|one| &*one.name);
        let (count, names) = (found.len(), first_names(names));
        match &found[..] {
            [one] => Ok(text(&one.uuid)),
            [] if self.source.as_of.is_some() => {
                bail!(
                    "at that time no provider had {given:?} as UUID or as the beginning of its name"
                )
            }
            [] => bail!("no provider has {given:?} as UUID or as the beginning of its name"),
            _ => bail!("{given:?} is ambiguous; {count} names begin with it: {names}"),
        }
    }
}

/// A request with the members of an object as query parameters. A list becomes one parameter per
/// element; null, false and empty strings are omitted.
pub(crate) fn filtered(path: &str, filters: &Value) -> ApiRequest {
    let mut request = ApiRequest::get(path);
    for (key, value) in pairs(filters) {
        let all = value.as_array().map_or(from_ref(value), Vec::as_slice);
        for one in all
            .iter()
            .filter(|one| !["null", "false", "\"\""].contains(&&*one.to_string()))
        {
            let text = one.as_str().map_or(one.to_string(), str::to_owned);
            request = request.query(key, &text);
        }
    }
    request
}

/// The providers whose names begin with `prefix`.
pub(crate) fn named(mut providers: Vec<Provider>, prefix: &str) -> Vec<Provider> {
    providers.retain(|one| one.name.starts_with(prefix));
    providers
}

/// The escaped query. `given` is a query, or a URI with a query after its `?`.
pub(crate) fn query(given: &str) -> String {
    let query = given.split_once('?').map_or(given, |(_, query)| query);
    utf8_percent_encode(query.trim(), NOT_IN_QUERIES).to_string()
}

/// Warning about a response that no quorum has confirmed recently.
fn without_quorum(position: &Position) -> Option<String> {
    let (leader, age) = (position.known_leader, position.staleness);
    let is_local = position.effective_consistency.as_deref() == Some("local");
    if !is_local || leader.is_some() && age.is_some_and(|age| age < STALE) {
        return None;
    }
    let node = position.node?;
    let age = age.map_or("of unknown age".to_owned(), |age| {
        format!("at most {age:.1?} old")
    });
    Some(format!(
        "there is no quorum: node {node} answers from its local state, which is {age}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_without_a_quorum_are_recognised() {
        let position = |leader, age: Option<f64>, consistency: &str| Position {
            node: Some(2),
            known_leader: leader,
            staleness: age.map(Duration::from_secs_f64),
            effective_consistency: Some(consistency.to_owned()),
            ..Position::default()
        };
        let warning = without_quorum(&position(None, Some(9.25), "local")).unwrap();
        assert!(
            warning.contains("node 2 answers") && warning.contains("at most 9.2s old"),
            "{warning}"
        );
        assert!(without_quorum(&position(Some(2), Some(60.0), "local")).is_some());
        assert!(
            without_quorum(&position(Some(1), None, "local"))
                .unwrap()
                .contains("unknown age")
        );
        assert_eq!(without_quorum(&position(Some(1), Some(0.2), "local")), None);
        assert_eq!(without_quorum(&position(None, None, "linearizable")), None);
    }

    #[test]
    fn queries_are_taken_out_of_uris() {
        for given in [
            "required=A&in_tree=a b",
            "/north/allocation_candidates?required=A&in_tree=a b",
        ] {
            assert_eq!(query(given), "required=A&in_tree=a%20b");
        }
        assert_eq!(query("resources=VCPU%3A1"), "resources=VCPU%3A1");
    }

    #[test]
    fn many_names_are_bounded() {
        let providers = (0..30)
            .map(|at| Provider {
                name: format!("cmp-{at:02}"),
                ..Provider::default()
            })
            .collect();
        let found = named(providers, "cmp-1");
        assert_eq!(found.len(), 10);
        assert_eq!(
            first_names(found.iter().map(|one| &*one.name)),
            "cmp-10, cmp-11, cmp-12, cmp-13, cmp-14, cmp-15, cmp-16, cmp-17, cmp-18, cmp-19"
        );
        let words = ["A"; 30];
        assert!(first_names(words.into_iter()).ends_with("A, A and 20 more"));
    }
}
