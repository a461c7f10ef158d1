//! A real Prometheus that scrapes real clusters, with rules of shortened durations.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use placement_client::{ApiRequest, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::ports::Ports;
use crate::program::Program;
use crate::wait::until_ok;

/// Scrape interval. A node without a leader needs a second to report that it is not ready.
const SCRAPE: &str = "2s";
/// Evaluation interval of the rules.
const EVERY: &str = "1s";

/// Scrape job for the nodes of a cluster.
pub struct Job {
    name: String,
    targets: Vec<String>,
    /// Directory of the certificates, if the targets require TLS.
    tls: Option<PathBuf>,
}

impl Job {
    /// Scrapes all nodes of a cluster, running or not.
    pub fn for_cluster(name: &str, cluster: &Cluster) -> Self {
        let targets = cluster
            .ids()
            .into_iter()
            .map(|id| cluster.place(id).admin());
        let authority = cluster.options().authority.as_ref();
        Self {
            tls: authority.map(|authority| authority.directory().to_owned()),
            ..Self::for_targets(name, targets.collect())
        }
    }

    /// Scrapes these addresses without TLS.
    pub fn for_targets(name: &str, targets: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            targets,
            tls: None,
        }
    }

    fn config(&self) -> Value {
        let mut config = json!({
            "job_name": self.name,
            "static_configs": [{"targets": self.targets}],
        });
        if let Some(tls) = &self.tls {
            config["scheme"] = json!("https");
            config["tls_config"] = json!({
                "ca_file": tls.join("ca.pem"),
                "cert_file": tls.join("admin-test.pem"),
                "key_file": tls.join("admin-test-key.pem"),
            });
        }
        config
    }
}

/// Shortens the durations in rules or expressions: `seconds` maps minutes to seconds. Steps of
/// subqueries become one second.
pub fn shorten_durations(text: &str, seconds: impl Fn(f64) -> f64) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut shortened = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let unit = |suffix, minutes: f64| {
            let number: f64 = word.strip_suffix(suffix)?.parse().ok()?;
            Some(number * minutes)
        };
        let units = [('s', 1.0 / 60.0), ('m', 1.0), ('h', 60.0), ('d', 1_440.0)];
        match units
            .into_iter()
            .find_map(|(suffix, minutes)| unit(suffix, minutes))
        {
            Some(_) if shortened.ends_with(':') => shortened.push_str(EVERY),
            Some(minutes) => shortened.push_str(&format!("{}s", seconds(minutes))),
            None => shortened.push_str(word),
        }
        let next = after.chars().next().map_or(0, char::len_utf8);
        shortened.push_str(&after[..next]);
        rest = &after[next..];
    }
    shortened
}

/// A Prometheus process; killed when dropped.
pub struct Prometheus {
    _process: Program,
    client: Client,
    directory: TempDir,
    _port: Ports,
}

impl Prometheus {
    /// Starts a Prometheus with these jobs and rules; `None` if it is not installed.
    ///
    /// # Panics
    /// If its files cannot be written.
    pub fn watch(jobs: &[Job], rules: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let jobs: Vec<_> = jobs.iter().map(Job::config).collect();
        let config = json!({
            "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": EVERY},
            "rule_files": ["alerts.yaml"],
            "scrape_configs": jobs,
        });
        fs::write(directory.path().join("alerts.yaml"), rules).unwrap();
        // JSON is valid YAML.
        fs::write(directory.path().join("config.yaml"), config.to_string()).unwrap();
        let port = Ports::claim(1);
        let address = format!("127.0.0.1:{}", port.first());
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let process = Command::new("prometheus")
            .current_dir(directory.path())
            .args(["--config.file=config.yaml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .ok()?;
        Some(Self {
            _process: Program(process),
            client: Client::new([format!("http://{address}")]).unwrap(),
            directory,
            _port: port,
        })
    }

    /// Sends a request and returns the data of the answer.
    ///
    /// # Errors
    /// If Prometheus does not answer or reports an error.
    pub async fn get(&self, request: ApiRequest) -> Result<Value, String> {
        let log = || fs::read_to_string(self.directory.path().join("log"));
        let answer = self
            .client
            .request_once(request)
            .await
            .map_err(|error| format!("{error}: {:?}", log()))?;
        let value: Value = serde_json::from_slice(&answer.body)
            .map_err(|error| format!("{error}: {:?}", answer.body))?;
        if value["status"] == "success" {
            Ok(value["data"].clone())
        } else {
            Err(value.to_string())
        }
    }

    /// Number of series that an expression returns.
    ///
    /// # Errors
    /// If Prometheus does not answer or reports an error.
    pub async fn series(&self, expression: &str) -> Result<usize, String> {
        let request = ApiRequest::get("/api/v1/query").query("query", expression);
        let found = self.get(request).await?;
        Ok(found["result"].as_array().map_or(1, Vec::len))
    }

    /// Firing alerts of a job, each with its distinguishing labels.
    ///
    /// # Errors
    /// If Prometheus does not answer or reports an error.
    pub async fn firing(&self, job: &str) -> Result<BTreeSet<String>, String> {
        let found = self.get(ApiRequest::get("/api/v1/alerts")).await?;
        let alerts = found["alerts"].as_array().cloned().unwrap_or_default();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        let of_job = firing.filter(|alert| alert["labels"]["job"] == job);
        let names = of_job.map(|alert| alert["labels"]["alertname"].as_str());
        Ok(names.map(|name| name.unwrap().to_owned()).collect())
    }

    /// Waits until all of these fire for a job.
    ///
    /// # Panics
    /// If they do not in time.
    pub async fn until_firing(&self, job: &str, alerts: &[&str]) {
        until_ok(&format!("{alerts:?} of {job} to fire"), async || {
            let firing = self.firing(job).await?;
            let fire = alerts.iter().all(|name| firing.contains(*name));
            fire.then_some(()).ok_or(format!("{firing:?}"))
        })
        .await;
    }

    /// Waits until none of these fires for a job.
    ///
    /// # Panics
    /// If one still fires after the time limit.
    pub async fn until_ended(&self, job: &str, alerts: &[&str]) {
        until_ok(&format!("{alerts:?} of {job} to end"), async || {
            let firing = self.firing(job).await?;
            let fires = alerts.iter().any(|name| firing.contains(*name));
            (!fires).then_some(()).ok_or(format!("{firing:?}"))
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::shorten_durations;

    #[test]
    fn only_durations_are_changed() {
        let rules = "for: 30s\nexpr: a{b=\"10m\"}[5m] offset 2d + (c)[7d:1h] > 14 * 86400 or d2 < 1e9 # 100 ms\n";
        assert_eq!(
            shorten_durations(rules, |minutes| minutes.clamp(4.0, 25.0)),
            "for: 4s\nexpr: a{b=\"10s\"}[5s] offset 25s + (c)[25s:1s] > 14 * 86400 or d2 < 1e9 # 100 ms\n"
        );
    }
}
