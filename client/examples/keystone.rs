//! Logs in with Keystone, and again when the token has expired.
//!
//!     OS_USERNAME=nova OS_PASSWORD=secret OS_PROJECT_NAME=service \
//!         cargo run --example keystone -- http://127.0.0.1:5000 http://127.0.0.1:8778

use std::env;
use std::time::Duration;

use anyhow::{Context, bail};
use placement_client::{ApiRequest, Client};
use serde_json::{Value, json};

/// Interval between two requests of this example.
const EVERY: Duration = Duration::from_secs(60);

/// A token of Keystone.
async fn log_in(keystone: Client, auth: Value) -> anyhow::Result<String> {
    let request = ApiRequest::post("/v3/auth/tokens").json(&json!({ "auth": auth }));
    let answer = keystone.call(request).await?;
    let token = answer.header("x-subject-token");
    Ok(token.context("Keystone sent no token")?.to_owned())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut addresses = env::args().skip(1);
    let Some(keystone) = addresses.next() else {
        bail!("expected the address of Keystone and those of nodes, such as http://127.0.0.1:8778");
    };
    let [user, password, project] =
        ["OS_USERNAME", "OS_PASSWORD", "OS_PROJECT_NAME"].map(|name| env::var(name).context(name));
    let domain = json!({"id": "default"});
    let user = json!({"name": user?, "domain": domain, "password": password?});
    let auth = json!({
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": project?, "domain": domain}},
    });
    let keystone = Client::new([keystone])?.with_token("");
    let client =
        Client::new(addresses)?.with_tokens(move || log_in(keystone.clone(), auth.clone()));
    loop {
        let classes = client.resource_classes().await?;
        println!("there are {} resource classes", classes.len());
        tokio::time::sleep(EVERY).await;
    }
}
