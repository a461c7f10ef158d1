//! The reference itself: openstack-placement under uwsgi, on a MariaDB of its own.
//!
//! Five processes of 25 threads, as upstream's own performance job runs it; the database with its
//! defaults, but for as many connections as these threads want. All of it is in a temporary
//! directory and gone when this is dropped.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use placement_client::{ApiRequest, Client};
use placement_tests::node_process::log_tail;
use placement_tests::ports::Ports;
use placement_tests::process_cost::cpu_time_of_group;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::progress;

const PROCESSES: &str = "5";
const THREADS: &str = "25";
const READY_LIMIT: Duration = Duration::from_secs(120);
const NEWS: Duration = Duration::from_secs(10);

pub(super) struct Upstream {
    // Dropped in this order: the service before its database, both before their files.
    service: Group,
    database: Group,
    directory: TempDir,
    port: u16,
    _ports: Ports,
}

/// A process with all its children.
struct Group {
    leader: Child,
    log: PathBuf,
}

impl Upstream {
    /// Starts both from a Python venv that has openstack-placement, PyMySQL and pyuwsgi, and waits
    /// until the service answers.
    pub(super) async fn start(venv: &Path) -> anyhow::Result<Self> {
        progress("starting openstack-placement under uwsgi on MariaDB");
        let directory = tempfile::Builder::new()
            .prefix("placement-upstream-")
            .tempdir()?;
        let ports = Ports::claim(1);
        let (database_port, port) = (ports.first(), ports.first() + 1);
        let database = start_database(directory.path(), database_port)?;
        let service = async {
            wait_for_port(&database, database_port).await?;
            start_service(directory.path(), venv, database_port, port)
        }
        .await?;
        let upstream = Self {
            service,
            database,
            directory,
            port,
            _ports: ports,
        };
        upstream.wait_ready().await?;
        Ok(upstream)
    }

    /// A client of it.
    pub(super) fn client(&self) -> Client {
        Client::new([format!("http://127.0.0.1:{}", self.port)]).expect("this is an endpoint")
    }

    /// Processor time of the service and of its database so far.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        Ok(cpu_time_of_group(self.service.leader.id())?
            + cpu_time_of_group(self.database.leader.id())?)
    }

    async fn wait_ready(&self) -> anyhow::Result<()> {
        let client = self.client().with_attempt_timeout(Duration::from_secs(10));
        let started = Instant::now();
        let mut told = Instant::now();
        while started.elapsed() < READY_LIMIT {
            if client.request_once(ApiRequest::get("/")).await.is_ok() {
                return Ok(());
            }
            if told.elapsed() > NEWS {
                progress("waiting for openstack-placement");
                told = Instant::now();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!(
            "openstack-placement in {} does not answer:\n{}",
            self.directory.path().display(),
            log_tail(&self.service.log, 30)
        )
    }
}

fn start_database(directory: &Path, port: u16) -> anyhow::Result<Group> {
    let data = directory.join("database");
    let mut install = Command::new("mariadb-install-db");
    install
        .args(["--no-defaults", "--auth-root-authentication-method=normal"])
        .arg("--skip-test-db")
        .args(as_root())
        .arg(format!("--datadir={}", data.display()));
    run(&mut install)
        .context("MariaDB is in the Debian packages mariadb-server-core and mariadb-client-core")?;
    let first = directory.join("first.sql");
    std::fs::write(
        &first,
        "CREATE DATABASE placement CHARACTER SET utf8;\n\
         CREATE USER placement@127.0.0.1 IDENTIFIED BY 'placement';\n\
         GRANT ALL ON placement.* TO placement@127.0.0.1;\n",
    )?;
    let mut command = guarded("/usr/sbin/mariadbd");
    command
        .args(["--no-defaults", "--skip-name-resolve"])
        .args(as_root())
        .args(["--bind-address=127.0.0.1", "--max-connections=1024"])
        .arg(format!("--port={port}"))
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}/socket", directory.display()))
        .arg(format!("--init-file={}", first.display()));
    Group::start(command, directory.join("mariadbd.log"))
}

fn start_service(
    directory: &Path,
    venv: &Path,
    database_port: u16,
    port: u16,
) -> anyhow::Result<Group> {
    std::fs::write(
        directory.join("placement.conf"),
        format!(
            "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = \
             mysql+pymysql://placement:placement@127.0.0.1:{database_port}/placement?charset=utf8\n"
        ),
    )?;
    let mut sync = Command::new(venv.join("bin/placement-manage"));
    sync.env("OS_PLACEMENT_CONFIG_DIR", directory)
        .arg("--config-dir")
        .arg(directory)
        .args(["db", "sync"]);
    run(&mut sync)?;
    let mut command = guarded(venv.join("bin/pyuwsgi"));
    command
        .env("OS_PLACEMENT_CONFIG_DIR", directory)
        .args(["--master", "--need-app", "--disable-logging"])
        .args(["--module", "placement.wsgi.api:application"])
        .args(["--processes", PROCESSES, "--threads", THREADS])
        .args(["--buffer-size", "65535"])
        // As devstack has it. uwsgi closes the connection after each answer; unless it says so, a client
        // that keeps its connections runs into the closed one.
        .args(["--add-header", "Connection: close"])
        .arg("--virtualenv")
        .arg(venv)
        .args(["--http-socket", &format!("127.0.0.1:{port}")]);
    Group::start(command, directory.join("uwsgi.log"))
}

/// Runs a command to its end, which must be a good one.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let made = (command.output()).with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        made.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&made.stdout),
        String::from_utf8_lossy(&made.stderr)
    );
    Ok(())
}

/// MariaDB runs as root only if it is told to.
fn as_root() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() {
        &["--user=root"]
    } else {
        &[]
    }
}

/// A command whose process ends with this one, whatever ends it.
fn guarded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    if Path::new("/usr/bin/setpriv").exists() {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        return command;
    }
    Command::new(program)
}

async fn wait_for_port(group: &Group, port: u16) -> anyhow::Result<()> {
    let started = Instant::now();
    while started.elapsed() < READY_LIMIT {
        if tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_ok()
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("MariaDB does not listen:\n{}", log_tail(&group.log, 30))
}

impl Group {
    fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let file = File::create(&log)?;
        let leader = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { leader, log })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It may have ended; its pid stays its own until it is waited for.
        let _ = kill_process_group(Pid::from_child(&self.leader), Signal::KILL);
        let _ = self.leader.wait();
    }
}
