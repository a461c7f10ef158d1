//! The limits in Keystone, and what belongs to them: services and projects.

use std::collections::HashSet;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use http::StatusCode;
use placement_client::{ApiRequest, ApiResponse, Client, Trust};
use serde_json::{Value, json};

use crate::address::endpoint_and_path;
use crate::render::Misuse;

/// Longer answers are refused.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Maximum number of pages of a list.
const PAGES_MAX: usize = 10_000;
/// How to get a token for the whole system.
const TOKEN_COMMAND: &str = "`openstack --os-system-scope all token issue -f value -c id`";

/// The address of Keystone, and the login.
#[derive(Args)]
pub(crate) struct KeystoneArgs {
    /// URL of Keystone, for --plan.
    #[arg(long, value_name = "URL", env = "OS_AUTH_URL")]
    keystone: Option<String>,
    /// Token of Keystone for the whole system. Default: the command logs in as OS_USERNAME with
    /// OS_PASSWORD.
    #[arg(long, value_name = "TOKEN", env = "OS_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// PEM file with the certificate authorities of Keystone, for https. Default: those of this
    /// machine.
    #[arg(long, value_name = "FILE", env = "OS_CACERT")]
    keystone_cacert: Option<String>,
    /// Copy the limits of this region. Default: the only region that has limits.
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,
}

/// The answers of Keystone about limits.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) services: Vec<Value>,
    pub(crate) registered_limits: Vec<Value>,
    pub(crate) limits: Vec<Value>,
    /// The projects, if the limits of a parent apply to its children.
    pub(crate) projects: Option<Vec<Value>>,
}

/// A session with Keystone.
pub(crate) struct Keystone {
    client: Client,
    url: String,
}

impl Keystone {
    /// Logs in with the given token, or as the user in the variables of the environment.
    pub(crate) async fn log_in(args: &KeystoneArgs, timeout: Duration) -> anyhow::Result<Self> {
        let Some(url) = given(&args.keystone) else {
            let reason = "--plan needs the URL of Keystone: give --keystone or set OS_AUTH_URL";
            return Err(Misuse(reason.to_owned()).into());
        };
        let client = client(url, given(&args.keystone_cacert), timeout)
            .map_err(|error| Misuse(format!("{url:?} is not a URL of Keystone: {error:#}")))?;
        let variable = |name: &str| env::var(name).ok();
        Self::open(client, url, given(&args.token), variable).await
    }

    /// Logs in through this client, which has no token.
    pub(crate) async fn open(
        client: Client,
        url: &str,
        token: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut keystone = Self {
            client,
            url: url.to_owned(),
        };
        let (request, what) = match token {
            Some(token) => (own_token(token)?, "GET /auth/tokens"),
            None => {
                let request = ApiRequest::post("/auth/tokens").json(&login(variable)?);
                (request, "POST /auth/tokens")
            }
        };
        let answer = keystone.send(request, what).await?;
        check_scope(&parsed(&answer, what)?)?;
        let token = token.or_else(|| answer.header("x-subject-token"));
        let token = token.context("Keystone has sent no token")?;
        keystone.client = keystone.client.with_token(token);
        Ok(keystone)
    }

    /// Reads the limits of all services, and what is needed to understand them.
    pub(crate) async fn answers(&self) -> anyhow::Result<Answers> {
        let services = self.list("/services?type=compute", "services").await?;
        let registered_limits = self.list("/registered_limits", "registered_limits").await?;
        let limits = self.list("/limits", "limits").await?;
        let projects = if is_two_level(&self.get("/limits/model").await?)? {
            Some(self.list("/projects", "projects").await?)
        } else {
            None
        };
        Ok(Answers {
            services,
            registered_limits,
            limits,
            projects,
        })
    }

    /// The entries of a list, from all its pages.
    async fn list(&self, path: &str, name: &str) -> anyhow::Result<Vec<Value>> {
        let mut found = Vec::new();
        let mut asked = HashSet::new();
        let mut page = Some(path.to_owned());
        while let Some(this) = page {
            let about = || format!("Keystone's answer to GET {this}");
            let answer = self.get(&this).await?;
            let (entries, link) = entries(answer, name).with_context(about)?;
            found.extend(entries);
            page = match link {
                Some(link) => Some(next_page(path, &link).with_context(about)?),
                None => None,
            };
            asked.insert(this);
            let is_repeated = page.as_ref().is_some_and(|next| asked.contains(next));
            ensure!(
                !is_repeated && asked.len() < PAGES_MAX,
                "Keystone's answers to GET {path} do not end: {} pages were read",
                asked.len()
            );
        }
        Ok(found)
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let what = format!("GET {path}");
        let answer = self.send(ApiRequest::get(path), &what).await?;
        parsed(&answer, &what)
    }

    /// The answer to a request. An error does not keep the type of the client's errors, whose exit
    /// codes and advice are about nodes.
    async fn send(&self, request: ApiRequest, what: &str) -> anyhow::Result<ApiResponse> {
        let url = &self.url;
        let answer = self.client.request_at_most(request, ANSWER_BYTES_MAX).await;
        let (answer, is_longer) =
            answer.map_err(|error| anyhow!("Keystone at {url} does not answer: {error}"))?;
        if !answer.status.is_success() {
            let refusal = refusal(answer.status, &answer.body);
            bail!("Keystone at {url} refuses {what}: {refusal}");
        }
        ensure!(
            !is_longer,
            "Keystone's answer to {what} exceeds {ANSWER_BYTES_MAX} bytes"
        );
        Ok(answer)
    }
}

/// A value that is not empty. Files with variables often contain empty ones.
fn given(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

/// A client of version 3 of the API, without a token. `url` is with or without the version.
fn client(url: &str, ca_file: Option<&str>, timeout: Duration) -> anyhow::Result<Client> {
    let (endpoint, path) = endpoint_and_path(url)?;
    let trust = Trust {
        ca_file: ca_file.map(PathBuf::from),
        certificate: None,
    };
    let client = Client::trusting([endpoint], trust)?
        .with_prefix(&prefix(&path))
        .with_token("")
        .with_patience(timeout)
        .with_attempt_timeout(timeout);
    Ok(client)
}

/// The path of version 3 of the API.
pub(crate) fn prefix(path: &str) -> String {
    let path = path.trim_end_matches('/');
    format!("{}/v3", path.strip_suffix("/v3").unwrap_or(path))
}

/// A request for the description of a token.
fn own_token(token: &str) -> anyhow::Result<ApiRequest> {
    // An error message about the header would contain the token.
    ensure!(
        token.bytes().all(|byte| byte.is_ascii_graphic()),
        "the token for Keystone contains blanks or other characters that no token has"
    );
    let request = ApiRequest::get("/auth/tokens").header("x-auth-token", token);
    Ok(request.header("x-subject-token", token))
}

/// The body of a login with a password, with variables of OpenStack's client. The scope is always
/// the whole system: with the token of a project or domain, Keystone may list only its limits.
pub(crate) fn login(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Value> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let user = match (given("OS_USER_ID"), given("OS_USERNAME")) {
        (Some(id), _) => Some(json!({ "id": id })),
        (None, Some(name)) => {
            let domain = match (given("OS_USER_DOMAIN_ID"), given("OS_USER_DOMAIN_NAME")) {
                (None, Some(name)) => json!({ "name": name }),
                (id, _) => json!({ "id": id.as_deref().unwrap_or("default") }),
            };
            Some(json!({"name": name, "domain": domain}))
        }
        (None, None) => None,
    };
    let (Some(mut user), Some(password)) = (user, given("OS_PASSWORD")) else {
        let reason = format!(
            "--plan needs a login for Keystone: set OS_USERNAME and OS_PASSWORD, or OS_TOKEN to the output of \
             {TOKEN_COMMAND}"
        );
        return Err(Misuse(reason).into());
    };
    user["password"] = password.into();
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    Ok(json!({"auth": {"identity": identity, "scope": {"system": {"all": true}}}}))
}

/// Checks the description of a token. Keystone does not say that a list is not complete.
pub(crate) fn check_scope(answer: &Value) -> anyhow::Result<()> {
    ensure!(
        answer["token"]["system"]["all"].as_bool() == Some(true),
        "the token is not for the whole system, so Keystone may list only the limits of one project or domain: use a \
         token of {TOKEN_COMMAND}"
    );
    Ok(())
}

/// Why Keystone refuses a request.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = body["error"]["message"].as_str();
    let message = message.map_or(status.to_string(), |message| format!("{status}: {message}"));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("{message} (the user needs a role on the system, such as `reader`)")
        }
        _ => message,
    }
}

fn parsed(answer: &ApiResponse, what: &str) -> anyhow::Result<Value> {
    serde_json::from_slice(&answer.body)
        .with_context(|| format!("Keystone's answer to {what} is not JSON"))
}

/// Whether the limits of a parent apply to its children too.
pub(crate) fn is_two_level(answer: &Value) -> anyhow::Result<bool> {
    match answer["model"]["name"].as_str() {
        Some("flat") => Ok(false),
        Some("strict_two_level") => Ok(true),
        Some(other) => {
            bail!(
                "Keystone has the enforcement model {other:?}; known are flat and strict_two_level"
            )
        }
        None => bail!("Keystone's answer to GET /limits/model has no text \"name\" in \"model\""),
    }
}

/// The entries of a page, and the link to the next one.
pub(crate) fn entries(
    mut answer: Value,
    name: &str,
) -> anyhow::Result<(Vec<Value>, Option<String>)> {
    let Some(Value::Array(entries)) = answer.get_mut(name).map(Value::take) else {
        bail!("it has no list {name:?}");
    };
    let link = match &answer["links"]["next"] {
        Value::Null => None,
        Value::String(link) => Some(link.clone()),
        _ => bail!("\"next\" in \"links\" is not a text"),
    };
    let is_truncated = answer["truncated"].as_bool() == Some(true);
    ensure!(
        link.is_some() || !is_truncated,
        "Keystone has truncated the list {name:?}: raise `list_limit` in its configuration"
    );
    Ok((entries, link))
}

/// The path of the next page of the list at `path`. Only the query is taken from the link, so that
/// the token is never sent to another address.
pub(crate) fn next_page(path: &str, link: &str) -> anyhow::Result<String> {
    let list = path.split('?').next().unwrap_or(path);
    match link.split_once('?') {
        Some((place, query)) if place.ends_with(list) => Ok(format!("{list}?{query}")),
        _ => bail!("\"next\" in \"links\" is {link:?}, which is no page of {list}"),
    }
}
