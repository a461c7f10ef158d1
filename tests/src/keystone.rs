//! A real Keystone from PyPI, under uwsgi, on SQLite, with Fernet keys; and a stand-in.

mod identities;
pub mod stand_in;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use http::StatusCode;
use placement_client::{ApiRequest, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ports::Ports;
use crate::python;
use crate::wait::{PATIENCE, within};

const PACKAGES: [&str; 2] = ["keystone==30.0.0", "pyuwsgi==2.0.30.post1"];
const ADMIN_PASSWORD: &str = "the-first-admin";
/// Timeout of a request while Keystone starts; the request is then repeated. Each of its two
/// processes needs seconds of processor time to load.
const ANSWER: Duration = Duration::from_secs(60);
const REGION: &str = "RegionOne";

/// A Keystone with its data; removed when dropped.
pub struct Keystone {
    programs: PathBuf,
    directory: TempDir,
    port: u16,
    _ports: Ports,
    running: Option<Child>,
}

/// User and scope of a token.
#[derive(Debug, Clone, Copy)]
pub struct TokenRequest<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Password of the user.
    pub password: &'a str,
    /// `None` requests an unscoped token.
    pub project: Option<&'a str>,
}

impl TokenRequest<'static> {
    /// The admin of a new Keystone.
    pub const ADMIN: Self = Self {
        user: "admin",
        password: ADMIN_PASSWORD,
        project: Some("admin"),
    };
}

impl Drop for Keystone {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Keystone {
    /// Creates a Keystone and starts it. Its packages are installed once, below `installed_in`.
    pub async fn start(installed_in: &Path) -> anyhow::Result<Self> {
        let programs = python::environment(installed_in, "keystone-venv-30.0.0", &PACKAGES)?;
        let ports = Ports::claim(1);
        let mut keystone = Self {
            programs,
            directory: tempfile::tempdir()?,
            port: ports.first(),
            _ports: ports,
            running: None,
        };
        keystone.configure(3_600)?;
        keystone.manage("db_sync")?;
        let user = python::run(Command::new("id").arg("-un"))?;
        let group = python::run(Command::new("id").arg("-gn"))?;
        let keys = format!("fernet_setup --keystone-user {user} --keystone-group {group}");
        keystone.manage(&keys)?;
        let mut bootstrap = format!(
            "bootstrap --bootstrap-password {ADMIN_PASSWORD} --bootstrap-region-id {REGION}"
        );
        for interface in ["admin", "internal", "public"] {
            bootstrap += &format!(" --bootstrap-{interface}-url {}", keystone.url());
        }
        keystone.manage(&bootstrap)?;
        keystone.go_on().await?;
        Ok(keystone)
    }

    /// Sets the lifetime of tokens issued after the next start.
    pub fn configure(&self, token_seconds: u64) -> anyhow::Result<()> {
        let at = self.directory.path().display();
        let text = format!(
            "[DEFAULT]\nlog_file = {at}/keystone.log\n\
             [database]\nconnection = sqlite:///{at}/keystone.db\n\
             [fernet_tokens]\nkey_repository = {at}/fernet\n\
             [fernet_receipts]\nkey_repository = {at}/receipts\n\
             [credential]\nkey_repository = {at}/credential\n\
             [token]\nprovider = fernet\nexpiration = {token_seconds}\n"
        );
        fs::write(self.directory.path().join("keystone.conf"), text)?;
        Ok(())
    }

    fn manage(&self, line: &str) -> anyhow::Result<()> {
        let mut command = Command::new(self.programs.join("keystone-manage"));
        command.arg("--config-file");
        command.arg(self.directory.path().join("keystone.conf"));
        python::run(command.args(line.split_whitespace())).map(drop)
    }

    /// Starts it on its existing data.
    pub async fn go_on(&mut self) -> anyhow::Result<()> {
        let log = File::create(self.directory.path().join("uwsgi.log"))?;
        let child = Command::new(self.programs.join("uwsgi"))
            .env("OS_KEYSTONE_CONFIG_DIR", self.directory.path())
            .args(["--http-socket", &self.address()])
            .args(["--module", "keystone.wsgi.api:application"])
            // The default timeout drops a client that takes four seconds to send its request.
            .args(
                "--master --processes 2 --die-on-term --no-orphans --socket-timeout 60".split(' '),
            )
            // Otherwise uwsgi closes connections without notice, and a client that reuses one gets
            // a reset.
            .args(["--add-header", "Connection: close"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("uwsgi does not start")?;
        self.running = Some(child);
        let client = self.client();
        let answers = within(PATIENCE, async || {
            let client = client.clone().with_attempt_timeout(ANSWER);
            client.request_once(ApiRequest::get("/v3")).await
        });
        if answers.await.is_err() {
            let log = fs::read_to_string(self.directory.path().join("uwsgi.log"));
            bail!("Keystone does not answer: {}", log.unwrap_or_default());
        }
        Ok(())
    }

    /// Stops it and keeps its data.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let pid = rustix::process::Pid::from_child(&child);
            // The process may have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = child.wait();
        }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// URL of the identity API, version 3.
    pub fn url(&self) -> String {
        format!("http://{}/v3", self.address())
    }

    fn client(&self) -> Client {
        let client = Client::new([self.address()]).expect("the address is valid");
        // Each token request hashes a password, on a machine that may be busy.
        client.with_attempt_timeout(PATIENCE)
    }

    /// Issues a token for this user and scope.
    pub async fn token(&self, who: TokenRequest<'_>) -> anyhow::Result<String> {
        let scope = match who.project {
            Some(name) => json!({"project": {"name": name, "domain": {"id": "default"}}}),
            None => json!("unscoped"),
        };
        self.token_for(who, scope).await
    }

    /// Issues a system-scoped token; the user needs a role on the system.
    pub async fn system_token(&self, who: TokenRequest<'_>) -> anyhow::Result<String> {
        self.token_for(who, json!({"system": {"all": true}})).await
    }

    /// Creates an application credential with these access rules and issues a token for it.
    pub async fn restricted_token(
        &self,
        who: TokenRequest<'_>,
        rules: &Value,
    ) -> anyhow::Result<String> {
        let own = self.token(who).await?;
        let client = self.client().with_token(&own);
        let shown = ApiRequest::get("/v3/auth/tokens").header("x-subject-token", &own);
        let shown: Value = serde_json::from_slice(&client.request_once(shown).await?.body)?;
        let user = shown["token"]["user"]["id"].as_str().context("a user")?;
        let path = format!("/v3/users/{user}/application_credentials");
        let body = json!({"application_credential": {"name": "restricted", "access_rules": rules}});
        let made = client
            .request_once(ApiRequest::post(&path).json(&body))
            .await?;
        ensure!(made.status == StatusCode::CREATED, "{made:?}");
        let made: Value = serde_json::from_slice(&made.body)?;
        let made = &made["application_credential"];
        let used = json!({"id": made["id"], "secret": made["secret"]});
        self.token_by(json!({
            "identity": {"methods": ["application_credential"], "application_credential": used},
        }))
        .await
    }

    async fn token_for(&self, who: TokenRequest<'_>, scope: Value) -> anyhow::Result<String> {
        let domain = json!({"id": "default"});
        let user = json!({"name": who.user, "domain": domain, "password": who.password});
        let mut auth = json!({"identity": {"methods": ["password"], "password": {"user": user}}});
        auth["scope"] = scope;
        self.token_by(auth).await
    }

    async fn token_by(&self, auth: Value) -> anyhow::Result<String> {
        let question = ApiRequest::post("/v3/auth/tokens").json(&json!({"auth": auth}));
        let answer = self.client().request_once(question).await?;
        ensure!(answer.status == StatusCode::CREATED, "{answer:?}");
        let token = answer.headers.get("x-subject-token").context("a token")?;
        Ok(token.to_str()?.to_owned())
    }

    /// Revokes a token before it expires.
    pub async fn revoke(&self, token: &str) -> anyhow::Result<()> {
        let request = ApiRequest::delete("/v3/auth/tokens").header("x-subject-token", token);
        self.ask(request).await.map(drop)
    }

    /// Creates a project and users in it, each with one role. Returns the id of the project.
    pub async fn people(
        &self,
        project: &str,
        people: &[(TokenRequest<'_>, &str)],
    ) -> anyhow::Result<String> {
        let made = json!({"project": {"name": project, "domain_id": "default"}});
        let project = self.make("project", &made).await?;
        for (who, role) in people {
            let user = json!({"name": who.user, "password": who.password, "domain_id": "default"});
            let user = self.make("user", &json!({"user": user})).await?;
            let roles = ApiRequest::get(&format!("/v3/roles?name={role}"));
            let roles = self.ask(roles).await?;
            let role = roles["roles"][0]["id"].as_str().context("a role")?;
            let given = format!("/v3/projects/{project}/users/{user}/roles/{role}");
            self.ask(ApiRequest::put(&given)).await?;
        }
        Ok(project)
    }

    /// Registers placement endpoints in the catalog, one per region.
    pub async fn placement(&self, places: &[(&str, &str)]) -> anyhow::Result<()> {
        let body = json!({"service": {"type": "placement", "name": "placement"}});
        let service = self.make("service", &body).await?;
        for (region, url) in places {
            let body = json!({"region": {"id": region}});
            self.make("region", &body).await?;
            let endpoint = json!({
                "interface": "public", "url": url, "region_id": region, "service_id": service,
            });
            self.make("endpoint", &json!({"endpoint": endpoint}))
                .await?;
        }
        Ok(())
    }

    /// Registers limits of the service `compute`: a resource, its default, and its limit for a
    /// project.
    pub async fn limits(&self, project: &str, limits: &[(&str, i64, i64)]) -> anyhow::Result<()> {
        let body = json!({"service": {"type": "compute", "name": "nova"}});
        let service = self.make("service", &body).await?;
        let of = |resource: &str| json!({"service_id": service, "resource_name": resource});
        for (resource, default, own) in limits {
            let mut registered = of(resource);
            registered["default_limit"] = json!(default);
            let body = json!({"registered_limits": [registered]});
            let request = ApiRequest::post("/v3/registered_limits");
            self.ask(request.json(&body)).await?;
            let mut limit = of(resource);
            limit["resource_limit"] = json!(own);
            limit["project_id"] = json!(project);
            let body = json!({"limits": [limit]});
            self.ask(ApiRequest::post("/v3/limits").json(&body)).await?;
        }
        Ok(())
    }

    /// Creates a resource of this type and returns its id.
    async fn make(&self, what: &str, body: &Value) -> anyhow::Result<String> {
        let request = ApiRequest::post(&format!("/v3/{what}s")).json(body);
        let made = self.ask(request).await?;
        let id = made[what]["id"].as_str();
        Ok(id.context("the answer has no id")?.to_owned())
    }

    async fn ask(&self, request: ApiRequest) -> anyhow::Result<Value> {
        let token = self.token(TokenRequest::ADMIN).await?;
        let client = self.client().with_token(&token);
        let answer = client.request_once(request).await?;
        ensure!(answer.status.is_success(), "{answer:?}");
        Ok(serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }
}
