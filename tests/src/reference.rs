//! The reference: openstack-placement on an SQLite database.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use placement_client::Client;
use tempfile::TempDir;

use crate::ports::Ports;
use crate::program::Program;
use crate::python::{environment, run};
use crate::wait::until_ok;

const FILL: &str = "import sqlite3, sys
sql, database = sys.stdin.read(), sqlite3.connect(sys.argv[1])
database.execute('PRAGMA synchronous = off')
if 'CREATE TABLE resource_providers' in sql:
    for [table] in database.execute(\"SELECT name FROM sqlite_master WHERE type = 'table'\").fetchall():
        database.execute(f'DROP TABLE {table}')
database.executescript(sql)
";

/// An SQLite file with openstack-placement's schema; removed when dropped.
pub struct Database {
    programs: PathBuf,
    directory: TempDir,
}

impl Database {
    /// Creates a database with its schema and runs this SQL on it. The packages are installed once
    /// below `installed_in`.
    ///
    /// # Panics
    /// If that fails.
    pub fn new(installed_in: &Path, sql: &str) -> Self {
        let programs = environment(
            installed_in,
            "placement-venv-16.0.0",
            &["openstack-placement==16.0.0"],
        )
        .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let database = Self {
            programs,
            directory,
        };
        let path = database.directory.path();
        let config = format!(
            "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///{}\nsync_on_startup = true\n",
            database.file().display()
        );
        std::fs::write(path.join("placement.conf"), config).unwrap();
        let mut sync = Command::new(database.programs.join("placement-manage"));
        run(sync.arg("--config-dir").arg(path).args(["db", "sync"])).unwrap();
        database.fill(sql);
        database
    }

    /// Runs SQL. If it creates tables, it replaces the whole database.
    fn fill(&self, sql: &str) {
        let filled = self.directory.path().join("filled.sql");
        std::fs::write(&filled, sql).unwrap();
        let mut fill = Command::new(self.programs.join("python"));
        let fill = fill.args(["-c", FILL]).arg(self.file());
        run(fill.stdin(std::fs::File::open(filled).unwrap())).unwrap();
    }

    /// Path of the database file.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("placement.db")
    }

    /// Dump of the database, as by `sqlite3 .dump`.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn dump(&self) -> String {
        let script =
            "import sqlite3, sys\nfor line in sqlite3.connect(sys.argv[1]).iterdump(): print(line)";
        let mut dump = Command::new(self.programs.join("python"));
        let dump = dump.env("PYTHONIOENCODING", "utf-8").args(["-c", script]);
        run(dump.arg(self.file())).unwrap()
    }

    /// Starts openstack-placement on the database.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn serve(self) -> Reference {
        // The service listens on three ports, like a cluster.
        let ports = Ports::claim(3);
        let serve = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/reference.py");
        let path = self.directory.path();
        let process = Command::new(self.programs.join("python"))
            .args([serve, "--serve", "--dir"])
            .arg(path)
            .args(["--base-port", &ports.first().to_string()])
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(path.join("log")).unwrap())
            .spawn()
            .unwrap();
        let reference = Reference {
            _process: Program(process),
            ports,
            database: self,
        };
        let client = reference.client();
        until_ok("openstack-placement", async || client.providers(&[]).await).await;
        reference
    }
}

/// A running openstack-placement; stopped when dropped.
pub struct Reference {
    _process: Program,
    ports: Ports,
    database: Database,
}

impl Reference {
    /// Starts openstack-placement on a [`Database::new`].
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(installed_in: &Path, sql: &str) -> Self {
        Database::new(installed_in, sql).serve().await
    }

    /// A client of the service.
    ///
    /// # Panics
    /// Never: the address is a valid endpoint.
    pub fn client(&self) -> Client {
        Client::new([format!("http://{}", self.address())]).unwrap()
    }

    /// Address of the first of its listeners.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.first())
    }

    /// Dump of its database.
    pub fn dump(&self) -> String {
        self.database.dump()
    }

    /// Replaces its database by the content of a dump. The service caches nothing between requests.
    ///
    /// # Panics
    /// If that fails.
    pub fn refill(&self, dump: &str) {
        self.database.fill(dump);
    }
}
