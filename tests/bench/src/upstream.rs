//! The reference: openstack-placement under uwsgi, on its own MariaDB.
//!
//! Five processes of 25 threads, as in upstream's performance job. The database has its defaults,
//! except for enough connections for these threads. All files are in a temporary directory that is
//! removed on drop.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use placement_client::Client;
use placement_tests::ports::Ports;
use tempfile::TempDir;

use crate::process_group::{Group, cpu_time_of, guarded, run};
use crate::progress;

const PROCESSES: &str = "5";
const THREADS: &str = "25";
/// Memory limit per process: enough for the largest clouds, and a limit for queries that would
/// otherwise use all memory.
const MEMORY_MAX_MIB: &str = "8192";
/// Processor time per second below which service and database count as idle.
const IDLE: Duration = Duration::from_millis(50);

pub(crate) struct Upstream {
    // Dropped in this order: the service before its database, both before their files.
    service: Group,
    database: Group,
    _directory: TempDir,
    port: u16,
    _ports: Ports,
}

impl Upstream {
    /// Starts the database and the service, from a Python venv with openstack-placement, PyMySQL
    /// and pyuwsgi.
    pub(crate) async fn start(venv: &Path) -> anyhow::Result<Self> {
        progress("starting openstack-placement under uwsgi on MariaDB");
        let directory = tempfile::Builder::new()
            .prefix("placement-upstream-")
            .tempdir()?;
        let ports = Ports::claim(1);
        let (database_port, port) = (ports.first(), ports.first() + 1);
        let database = start_database(directory.path(), database_port)?;
        database.wait_for_port(database_port).await?;
        let service = start_service(directory.path(), venv, database_port, port)?;
        let upstream = Self {
            service,
            database,
            _directory: directory,
            port,
            _ports: ports,
        };
        // Requests wait in the socket until the service can answer them.
        upstream.service.wait_for_port(port).await?;
        Ok(upstream)
    }

    /// A client of this service.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.servers()).expect("this is an endpoint")
    }

    /// URLs of the service.
    pub(crate) fn servers(&self) -> Vec<String> {
        vec![format!("http://127.0.0.1:{}", self.port)]
    }

    /// Process ids of the service and of its database.
    pub(crate) fn pids(&self) -> [u32; 2] {
        [self.service.pid(), self.database.pid()]
    }

    /// Waits until the service has finished the requests that a load abandoned at its end.
    pub(crate) async fn until_idle(&self) -> anyhow::Result<()> {
        let spent = || cpu_time_of(&self.pids());
        loop {
            let before = spent()?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            if spent()? - before < IDLE {
                return Ok(());
            }
        }
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
    run(&mut install)?;
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
            "[api]\nauth_strategy = noauth2\n[placement]\nrandomize_allocation_candidates = true\n[placement_database]\nconnection = \
             mysql+pymysql://placement:placement@127.0.0.1:{database_port}/placement?charset=utf8\n"
        ),
    )?;
    let mut sync = Command::new(venv.join("bin/placement-manage"));
    sync.env("OS_PLACEMENT_CONFIG_DIR", directory)
        .arg("--config-dir")
        .arg(directory)
        .args(["db", "sync"]);
    run(&mut sync)?;
    let mut command = guarded(&venv.join("bin/pyuwsgi").to_string_lossy());
    command
        .env("OS_PLACEMENT_CONFIG_DIR", directory)
        .args(["--master", "--need-app", "--disable-logging"])
        .args(["--module", "placement.wsgi.api:application"])
        .args(["--processes", PROCESSES, "--threads", THREADS])
        .args(["--buffer-size", "65535"])
        // A query whose result does not fit fails without affecting other processes.
        .args(["--limit-as", MEMORY_MAX_MIB])
        // As in devstack. uwsgi closes the connection after each answer; without this header, a
        // client that keeps connections open would use the closed one.
        .args(["--add-header", "Connection: close"])
        .arg("--virtualenv")
        .arg(venv)
        .args(["--http-socket", &format!("127.0.0.1:{port}")]);
    Group::start(command, directory.join("uwsgi.log"))
}

/// MariaDB refuses to run as root without this flag.
fn as_root() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() {
        &["--user=root"]
    } else {
        &[]
    }
}
