//! What a partition of the cluster holds: how verbs ask for it.

use std::cell::Cell;
use std::slice::from_ref;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use placement_client::{
    Admin, ApiRequest, ApiResponse, Client, Consistency, Error, Lines, Position,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::moment::earlier;
use crate::named::Named;
use crate::render::{Output, list, pairs, some, warn, word};

/// Where the routes are that other implementations of the API do not have.
pub(crate) const EXTENSIONS: &str = "/placementd/v1";
/// Nodes ask the leader more often how far they are behind.
const STALE: Duration = Duration::from_secs(5);
/// RFC 3986 section 3.4: what a query cannot have.
const NOT_IN_QUERIES: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// What is asked, and how the answer is printed.
#[derive(Args)]
#[command(next_help_heading = "Source")]
pub(crate) struct Source {
    /// The partition to ask.
    #[arg(long, global = true, value_name = "NAME", default_value = "default")]
    pub(crate) partition: String,
    /// Takes what the node has, with or without a quorum.
    #[arg(long, global = true)]
    pub(crate) local: bool,
    /// The node to ask, by its number or its name, in place of the first that answers.
    #[arg(id = "source", long = "node", global = true, value_name = "NODE")]
    pub(crate) node: Option<Named>,
    /// Reads what was there at an earlier moment: the token of an answer or a change, a time such
    /// as 2026-11-27T06:00:00Z, or how long ago, such as 90s, 15m, 12h or 7d.
    #[arg(long, global = true, value_name = "MOMENT", value_parser = earlier)]
    pub(crate) as_of: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The content of one partition, at one node or at the first that answers.
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
            Some(node) => admin.of(&node.member(&admin).await?, timeout)?,
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

    /// Sends a request. A line on standard error says if there is no quorum.
    pub(crate) async fn send(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        let answer = self.api.call(self.at_moment(request)).await?;
        if let Some(warning) = without_quorum(&answer.position())
            && !self.has_warned.replace(true)
        {
            warn(&warning);
        }
        Ok(answer)
    }

    /// The answer to a request, line by line.
    pub(crate) async fn lines(&self, request: ApiRequest) -> Result<Lines, Error> {
        self.api.lines(self.at_moment(request)).await
    }

    fn at_moment(&self, request: ApiRequest) -> ApiRequest {
        match &self.source.as_of {
            Some(moment) => request.header("placement-as-of", moment),
            None => request,
        }
    }

    /// The answer to a request, in JSON.
    pub(crate) async fn ask(&self, request: ApiRequest) -> Result<Value, Error> {
        self.send(request).await?.json()
    }

    /// The answer at a path.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Error> {
        self.ask(ApiRequest::get(path)).await
    }

    /// The providers that fit the filters of `GET /resource_providers`.
    pub(crate) async fn providers(&self, filters: Value) -> Result<Vec<Value>, Error> {
        let answer = self.ask(filtered("/resource_providers", &filters)).await?;
        Ok(list(&answer["resource_providers"]).to_vec())
    }

    /// The consumers that fit the filters.
    pub(crate) async fn consumers(&self, filters: &Value) -> Result<Vec<Value>, Error> {
        let mut found = Vec::new();
        let take = |consumer| {
            found.push(consumer);
            true
        };
        self.each_consumer(filters, take).await?;
        Ok(found)
    }

    /// Gives the consumers that fit the filters to `take`, page by page, until that says no.
    pub(crate) async fn each_consumer(
        &self,
        filters: &Value,
        mut take: impl FnMut(Value) -> bool,
    ) -> Result<(), Error> {
        let request = filtered(&format!("{EXTENSIONS}/consumers?limit=1000"), filters);
        let mut marker = String::new();
        loop {
            let page = match marker.as_str() {
                "" => request.clone(),
                marker => request.clone().query("marker", marker),
            };
            let mut answer = self.ask(page).await?;
            let page = match answer["consumers"].take() {
                Value::Array(page) => page,
                _ => Vec::new(),
            };
            let all_taken = page.into_iter().all(&mut take);
            // A page may be empty. One that leads back would have no end.
            match answer["next"].as_str() {
                Some(next) if all_taken && next > &*marker => marker = next.to_owned(),
                _ => return Ok(()),
            }
        }
    }

    /// The UUID of a provider that is given by its UUID, its name, or the beginning of its name.
    pub(crate) async fn provider(&self, given: &str) -> anyhow::Result<String> {
        let mut found = Vec::new();
        // Names may be UUIDs, as those of Ironic's nodes.
        if given.parse::<Uuid>().is_ok() {
            found = self.providers(json!({ "uuid": given })).await?;
        }
        if found.is_empty() {
            found = self.providers(json!({ "name": given })).await?;
        }
        if found.is_empty() {
            found = named(self.providers(Value::Null).await?, given);
        }
        let (count, names) = (found.len(), some(&found));
        match &found[..] {
            [one] => Ok(word(&one["uuid"])),
            [] if self.source.as_of.is_some() => {
                bail!("at that moment no provider had the UUID {given:?}, or a name that begins so")
            }
            [] => bail!("no provider has the UUID {given:?}, or a name that begins so"),
            _ => bail!("{given:?} is the beginning of {count} names: {names}"),
        }
    }
}

/// A request with the members of an object as parameters: those in a list each, and no empty ones.
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

/// The providers whose names begin so.
pub(crate) fn named(mut providers: Vec<Value>, prefix: &str) -> Vec<Value> {
    let begins_so = |name: &str| name.starts_with(prefix);
    providers.retain(|one| one["name"].as_str().is_some_and(begins_so));
    providers
}

/// A query as it can be sent: alone, or behind the `?` of a URI.
pub(crate) fn query(given: &str) -> String {
    let query = given.split_once('?').map_or(given, |(_, query)| query);
    utf8_percent_encode(query.trim(), NOT_IN_QUERIES).to_string()
}

/// What to say of an answer that no quorum confirmed lately.
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
        "there is no quorum: node {node} answers with what it has, which is {age}"
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
            .map(|at| json!({ "name": format!("cmp-{at:02}") }))
            .collect();
        let found = named(providers, "cmp-1");
        assert_eq!(found.len(), 10);
        assert_eq!(
            some(&found),
            "cmp-10, cmp-11, cmp-12, cmp-13, cmp-14, cmp-15, cmp-16, cmp-17, cmp-18, cmp-19"
        );
        let words = vec![json!("A"); 30];
        assert!(some(&words).ends_with("A, A and 20 more"));
    }
}
