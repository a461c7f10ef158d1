//! Requests for the content of a partition.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::slice::from_ref;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use http::StatusCode;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use placement_client::{
    Admin, ApiRequest, ApiResponse, Client, Consistency, Error, Lines, Position, encode,
};
use placement_similar::similar;
use placement_wire::consumers::{Consumer, ConsumerPage};
use placement_wire::events::{Change, Entry};
use placement_wire::explain::Explained;
use placement_wire::upstream::{Provider, Providers};
use placement_words::Words;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use crate::EXAMINED_AFTER;
use crate::moment::earlier;
use crate::named::Named;
use crate::render::{Misuse, Output, first_names, pairs, text, warn};
use crate::survey::without_quorum;

/// Path prefix of the routes that other implementations of the API do not have.
pub(crate) const EXTENSIONS: &str = "/placementd/v1";
/// A local read of a state older than this causes a warning. Nodes ask the leader for its position
/// more often than this, so only the state of a node that cannot reach the leader is older.
const STALE: Duration = Duration::from_secs(5);
/// An answer that takes longer causes a warning if there is no quorum.
const LATE: Duration = Duration::from_secs(2);
/// Number of similar names of providers in a message.
const NEAREST: usize = 3;
/// Characters that must be escaped in a query (RFC 3986 section 3.4).
const NOT_IN_QUERIES: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
/// Parameters of `GET /allocation_candidates` that a suffix can make part of a group.
const OF_GROUPS: [&str; 4] = ["resources", "required", "member_of", "in_tree"];
/// The other parameters of `GET /allocation_candidates`.
const OF_QUERY: [&str; 4] = ["group_policy", "limit", "root_required", "same_subtree"];

/// A change of any kind, including kinds that only newer nodes know.
pub(crate) type AnyChange = Change<String, Value, Value>;
/// A log entry with changes of any kind.
pub(crate) type AnyEntry = Entry<'static, AnyChange>;

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
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The option of commands that can read an earlier state.
#[derive(Default, Args)]
#[command(next_help_heading = "Source")]
pub(crate) struct Moment {
    /// Read the state at an earlier time: a `Placement-Index` of a response or a change, a time
    /// such as 2026-11-27T06:00:00Z, or an age such as 90s, 15m, 12h or 7d.
    #[arg(long, global = true, value_name = "MOMENT", value_parser = earlier)]
    pub(crate) as_of: Option<String>,
}

/// The content of one partition, read from one node or from the first node that answers.
pub(crate) struct Content {
    pub(crate) admin: Admin,
    pub(crate) source: Source,
    /// The earlier state to read; `None`: the present one.
    pub(crate) as_of: Option<String>,
    pub(crate) timeout: Duration,
    api: Client,
    has_warned: Cell<bool>,
}

impl Content {
    pub(crate) async fn open(
        admin: Admin,
        source: Source,
        moment: Moment,
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
            as_of: moment.as_of,
            timeout,
            api,
            has_warned: Cell::new(false),
        })
    }

    /// Sends a request. Warns on standard error, once, if there is no quorum.
    pub(crate) async fn send(&self, request: ApiRequest) -> Result<ApiResponse, Error> {
        let answer = self.api.call(self.at_moment(request));
        let answer = self.with_advice(answer).await?;
        if let Some(warning) = unconfirmed(&answer.position())
            && !self.has_warned.replace(true)
        {
            warn(&warning);
        }
        Ok(answer)
    }

    /// The response to a request, line by line.
    pub(crate) async fn lines(&self, request: ApiRequest) -> Result<Lines, Error> {
        let lines = self.api.lines(self.at_moment(request));
        self.with_advice(lines).await
    }

    /// Waits for an answer. If there is none within [`LATE`] since there is no quorum, a warning
    /// names `--local`.
    async fn with_advice<T>(&self, answer: impl Future<Output = T>) -> T {
        let advice = async {
            if self.source.local || self.has_warned.get() {
                return pending::<Infallible>().await;
            }
            let late = Instant::now() + LATE;
            sleep(EXAMINED_AFTER).await;
            let advice = without_quorum(&self.admin, true).await;
            // An election may end by then.
            sleep_until(late).await;
            if let Some(advice) = advice {
                self.has_warned.set(true);
                warn(&advice);
            }
            pending().await
        };
        tokio::select! {
            biased;
            answer = answer => answer,
            never = advice => match never {},
        }
    }

    fn at_moment(&self, request: ApiRequest) -> ApiRequest {
        match &self.as_of {
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
            // A page may be empty. With a marker that does not advance, the loop would not end.
            match answer.next {
                Some(next) if all_taken && *next > *marker => marker = next.into_owned(),
                _ => return Ok(()),
            }
        }
    }

    /// Whether a consumer matches the filters.
    pub(crate) async fn has_consumer(&self, filters: &Value) -> Result<bool, Error> {
        let mut is_found = false;
        let take = |_| {
            is_found = true;
            false
        };
        self.each_consumer(filters, take).await?;
        Ok(is_found)
    }

    /// The message for a list without consumers, if one of the filters, given with their nouns,
    /// matches no consumer at all.
    pub(crate) async fn no_consumers(
        &self,
        filters: &[(&str, Option<&String>)],
    ) -> Result<Option<String>, Error> {
        for (noun, value) in filters {
            if let Some(value) = value
                && !self.has_consumer(&json!({ (*noun): value })).await?
            {
                return Ok(Some(none_has(noun, value)));
            }
        }
        Ok(None)
    }

    /// The error of a request, or a message about a wrong parameter or an unknown name in the query
    /// of candidates that has the same names.
    async fn error_in(&self, error: Error, query: &str) -> anyhow::Error {
        if error.status() != Some(StatusCode::BAD_REQUEST) {
            return error.into();
        }
        if let Some(wrong) = wrong_parameter(query) {
            return Misuse(wrong).into();
        }
        match self.unknown_names(query).await {
            Some(names) => anyhow!(names),
            None => error.into(),
        }
    }

    /// The answer to a request with the names in a query of candidates, or [`Self::error_in`].
    pub(crate) async fn checked<T>(
        &self,
        answer: Result<T, Error>,
        query: &str,
    ) -> anyhow::Result<T> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.error_in(error, query).await),
        }
    }

    /// The answer to a request that may have a resource class as a filter.
    pub(crate) async fn checked_class<T>(
        &self,
        answer: Result<T, Error>,
        class: Option<&str>,
    ) -> anyhow::Result<T> {
        match class {
            Some(class) => self.checked(answer, &one_unit(class)).await,
            None => Ok(answer?),
        }
    }

    /// A message about the names in a query of candidates, if one of them does not exist.
    pub(crate) async fn unknown_names(&self, query: &str) -> Option<String> {
        let path = format!("{EXTENSIONS}/explain?{query}");
        let answer: Explained<'_> = self.get(&path).await.ok()?;
        let unknown = answer.explanation.unknown.len();
        let names = Words(text).absent_names(&answer.explanation);
        let names: Vec<_> = names.take(unknown).collect();
        (unknown > 0).then(|| names.join("; "))
    }

    /// Finds a provider by UUID, name, or the beginning of its name, and returns its UUID. If
    /// several providers match, the only root among them is found.
    pub(crate) async fn provider(&self, given: &str) -> anyhow::Result<String> {
        self.find(given, one_provider).await
    }

    /// Like [`Self::provider`], but several providers that match may also be in one tree.
    pub(crate) async fn provider_of_tree(&self, given: &str) -> anyhow::Result<String> {
        self.find(given, |found| {
            one_tree(found).or_else(|| one_provider(found))
        })
        .await
    }

    async fn find(
        &self,
        given: &str,
        pick: impl Fn(&[Provider]) -> Option<&Provider>,
    ) -> anyhow::Result<String> {
        let mut found = Vec::new();
        // A name may be a UUID, as with Ironic nodes.
        if given.parse::<Uuid>().is_ok() {
            found = self.providers(json!({ "uuid": given })).await?;
        }
        if found.is_empty() {
            found = self.providers(json!({ "name": given })).await?;
        }
        let mut nearest = String::new();
        if found.is_empty() {
            found = self.providers(Value::Null).await?;
            nearest = similar_names(given, &found);
            found.retain(|one| one.name.starts_with(given));
        }
        if let Some(one) = pick(&found) {
            return Ok(text(&one.uuid));
        }
        found.sort_by_key(|one| one.parent_provider_uuid.is_some());
        let names = found.iter().map(|one| &*one.name);
        let (count, names) = (found.len(), first_names(names));
        match (count, &self.as_of) {
            (0, None) => {
                bail!("no provider has {given:?} as UUID or as the beginning of its name{nearest}")
            }
            (0, Some(_)) => bail!(
                "at that moment no provider had {given:?} as UUID or as the beginning of its name{nearest}"
            ),
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

/// A query of candidates for one unit of a class.
pub(crate) fn one_unit(class: &str) -> String {
    format!("resources={}:1", encode(class))
}

/// The names of providers that `given` probably means, as the end of a message; empty without such
/// names.
pub(crate) fn similar_names(given: &str, providers: &[Provider]) -> String {
    let names = providers.iter().map(|one| &*one.name);
    match &*similar(given, names, NEAREST) {
        [] => String::new(),
        nearest => format!("; similar: {}", first_names(nearest.iter().copied())),
    }
}

/// The message for a list without consumers, since no consumer has this value.
pub(crate) fn none_has(noun: &str, value: &str) -> String {
    format!("no consumers found: none has the {noun} {value:?}")
}

/// The only provider, or else the only root.
fn one_provider(found: &[Provider]) -> Option<&Provider> {
    if let [one] = found {
        return Some(one);
    }
    let mut roots = found
        .iter()
        .filter(|one| one.parent_provider_uuid.is_none());
    let root = roots.next()?;
    roots.next().is_none().then_some(root)
}

/// The first provider, if all are in the same tree.
fn one_tree(found: &[Provider]) -> Option<&Provider> {
    let first = found.first()?;
    let root = first.root_provider_uuid.as_ref()?;
    let mut all = found.iter();
    all.all(|one| one.root_provider_uuid.as_ref() == Some(root))
        .then_some(first)
}

/// The escaped query of candidates. Each word is `CLASS:AMOUNT`, a part of a query, or a URI with a
/// query after its `?`.
///
/// # Errors
/// A word is something else.
pub(crate) fn query(words: &[String]) -> anyhow::Result<String> {
    let (amounts, parts): (Vec<_>, Vec<_>) = words.iter().partition(|word| is_amounts(word));
    if let Some(part) = parts.iter().find(|part| !part.contains('=')) {
        let example = match part.to_uppercase() {
            upper if is_amounts(&upper) => upper,
            _ => "VCPU:1".to_owned(),
        };
        return Err(Misuse(format!(
            "{part:?} is not a query: use resources={example}, or just {example}"
        ))
        .into());
    }
    let amounts = amounts.iter().map(|one| one.as_str()).collect::<Vec<_>>();
    let resources = (!amounts.is_empty()).then(|| format!("resources={}", amounts.join(",")));
    let parts = parts.iter().map(|part| escaped(part));
    Ok(resources
        .into_iter()
        .chain(parts)
        .collect::<Vec<_>>()
        .join("&"))
}

/// Whether a word is `CLASS:AMOUNT`, or several of them with commas.
fn is_amounts(word: &str) -> bool {
    word.split(',').all(|one| {
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        one.split_once(':').is_some_and(|(class, amount)| {
            !class.is_empty() && class.chars().all(is_name) && amount.parse::<u64>().is_ok()
        })
    })
}

/// A message about the first parameter that candidates do not have.
fn wrong_parameter(query: &str) -> Option<String> {
    let is_known = |name: &str| {
        let of_group = OF_GROUPS.iter().any(|known| name.starts_with(known));
        of_group || OF_QUERY.contains(&name)
    };
    let parts = query.split('&').filter(|part| !part.is_empty());
    let mut names = parts.map(|part| part.split_once('=').map_or(part, |(name, _)| name));
    let wrong = names.find(|name| !is_known(name))?;
    Some(format!(
        "{wrong:?} is not a parameter of a query; known are {}, {}, and for further groups such as resources1",
        OF_GROUPS.join(", "),
        OF_QUERY.join(", ")
    ))
}

/// The escaped query. `given` is a query, or a URI with a query after its `?`.
pub(crate) fn escaped(given: &str) -> String {
    let query = given.split_once('?').map_or(given, |(_, query)| query);
    utf8_percent_encode(query.trim(), NOT_IN_QUERIES).to_string()
}

/// Warning about a response that no quorum has confirmed recently.
fn unconfirmed(position: &Position) -> Option<String> {
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
        let warning = unconfirmed(&position(None, Some(9.25), "local")).unwrap();
        assert!(
            warning.contains("node 2 answers") && warning.contains("at most 9.2s old"),
            "{warning}"
        );
        assert!(unconfirmed(&position(Some(2), Some(60.0), "local")).is_some());
        assert!(
            unconfirmed(&position(Some(1), None, "local"))
                .unwrap()
                .contains("unknown age")
        );
        assert_eq!(unconfirmed(&position(Some(1), Some(0.2), "local")), None);
        assert_eq!(unconfirmed(&position(None, None, "linearizable")), None);
    }

    #[test]
    fn queries_are_taken_out_of_uris() {
        for given in [
            "required=A&in_tree=a b",
            "/north/allocation_candidates?required=A&in_tree=a b",
        ] {
            assert_eq!(escaped(given), "required=A&in_tree=a%20b");
        }
        assert_eq!(escaped("resources=VCPU%3A1"), "resources=VCPU%3A1");
    }

    #[test]
    fn amounts_are_a_query() {
        let query = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            query(&words).map_err(|error| error.to_string())
        };
        for (words, expected) in [
            (&["VCPU:1"][..], "resources=VCPU:1"),
            (
                &["VCPU:1", "MEMORY_MB:512"],
                "resources=VCPU:1,MEMORY_MB:512",
            ),
            (
                &["VCPU:1,DISK_GB:2", "required=!A&limit=3"],
                "resources=VCPU:1,DISK_GB:2&required=!A&limit=3",
            ),
            (&["/p?resources=VCPU:1 "], "resources=VCPU:1"),
        ] {
            assert_eq!(query(words).as_deref(), Ok(expected));
        }
        for (word, example) in [
            ("vcpu:8", "use resources=VCPU:8, or just VCPU:8"),
            ("VCPU", "use resources=VCPU:1"),
            ("VCPU:x", "use resources=VCPU:1"),
            ("", "\"\" is not a query"),
        ] {
            let error = query(&["VCPU:1", word]).unwrap_err();
            assert!(error.contains(example), "{error}");
        }
    }

    #[test]
    fn unknown_parameters_of_a_query_are_named() {
        assert_eq!(wrong_parameter("resources=A:1&in_tree_X=u&limit=1&"), None);
        let wrong = wrong_parameter("resources=A:1&resource=B:1").unwrap();
        assert!(
            wrong.starts_with("\"resource\" is not a parameter of a query; known are resources, "),
            "{wrong}"
        );
    }

    fn provider(name: &str, root: &str) -> Provider {
        Provider {
            uuid: name.to_owned(),
            name: name.to_owned(),
            parent_provider_uuid: (name != root).then(|| root.to_owned()),
            root_provider_uuid: Some(root.to_owned()),
            ..Provider::default()
        }
    }

    #[test]
    fn beginning_of_a_host_s_name_is_the_host_and_not_its_children() {
        let picked = |found: &[(&str, &str)]| {
            let found: Vec<_> = (found.iter())
                .map(|(name, root)| provider(name, root))
                .collect();
            let uuid = |one: &Provider| one.uuid.clone();
            (one_provider(&found).map(uuid), one_tree(&found).map(uuid))
        };
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(picked(&[]), (None, None));
        assert_eq!(picked(&[("a_1", "a")]), (is("a_1"), is("a_1")));
        let host = [("a.b", "a.b"), ("a.b_1", "a.b")];
        assert_eq!(picked(&host), (is("a.b"), is("a.b")));
        assert_eq!(picked(&[("a_1", "a"), ("a_2", "a")]), (None, is("a_1")));
        assert_eq!(picked(&[("a", "a"), ("a_1", "b")]), (is("a"), None));
        assert_eq!(picked(&[("a1", "a1"), ("a2", "a2")]), (None, None));
    }

    #[test]
    fn many_names_are_bounded() {
        let names: Vec<_> = (10..20).map(|at| format!("cmp-{at}")).collect();
        assert_eq!(
            first_names(names.iter().map(String::as_str)),
            "cmp-10, cmp-11, cmp-12, cmp-13, cmp-14, cmp-15, cmp-16, cmp-17, cmp-18, cmp-19"
        );
        let words = ["A"; 30];
        assert!(first_names(words.into_iter()).ends_with("A, A and 20 more"));
    }
}
