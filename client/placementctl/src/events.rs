//! `placementctl events --sql`: keeps a database of openstack-placement up to date.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use placement_client::{ApiRequest, Error};
use placement_wire::Dialect;
use placement_wire::events::Mark;

use crate::content::{Content, EXTENSIONS};
use crate::render::is_printed;
use crate::sql::{session, transaction};
use crate::watch::{Event, follow};

/// Interval at which the position is printed while nothing changes. Otherwise the database would
/// keep an old position, and the changes after it could become unavailable.
const APART: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct EventsArgs {
    /// SQL dialect of the database, for the client `mysql --skip-reconnect`, `psql`, or `sqlite3
    /// -bail`.
    #[arg(long, value_name = "DIALECT", value_parser = PossibleValuesParser::new(Dialect::ALL.map(Dialect::name))
        .try_map(|name| name.parse::<Dialect>()))]
    sql: Dialect,
    /// Position of the database: the token in its table `placementd_position`.
    #[arg(long, value_name = "TOKEN", value_parser = NonEmptyStringValueParser::new())]
    after: String,
}

pub(crate) async fn run(content: &Content, args: EventsArgs) -> anyhow::Result<()> {
    // `rewritten` includes values that were written without a change, because such a write also
    // updates timestamps and the roots of children.
    let request = ApiRequest::get(&format!("{EXTENSIONS}/events?rewritten=true"));
    let mut database = Database {
        dialect: args.sql,
        position: args.after.clone(),
        written: Instant::now(),
    };
    print(&session(args.sql))?;
    let take = async |_: &[u8], event: &Event| database.take(event).map(|()| true);
    let ended = follow(content, &request, args.after, take).await;
    let is_elsewhere = |error: &anyhow::Error| {
        let error = error.downcast_ref::<Error>().and_then(Error::status);
        error.is_some_and(|status| [410, 412].contains(&status.as_u16()))
    };
    match ended {
        Err(error) if is_elsewhere(&error) => Err(error.context(
            "the changes after the position of the database are not available at this node: another node may have them \
             (--node); otherwise fill an empty database from a new backup (placementd export)",
        )),
        ended => ended,
    }
}

/// Prints statements for the database client.
fn print(sql: &str) -> anyhow::Result<()> {
    if !is_printed(sql.as_bytes())? {
        bail!("the database client has exited; the database is at its last complete transaction");
    }
    Ok(())
}

/// Position of the followed database.
struct Database {
    dialect: Dialect,
    /// Token of the database after it has executed everything printed so far.
    position: String,
    /// When a position was last printed.
    written: Instant,
}

impl Database {
    fn take(&mut self, event: &Event) -> anyhow::Result<()> {
        let has_passed = self.written.elapsed() >= APART;
        let (token, entry) = match event {
            Event::Entry(entry) => (&entry.index, Some(entry)),
            Event::Mark(Mark::Progress(token)) if has_passed => (token, None),
            _ => return Ok(()),
        };
        if *token != self.position {
            let sql = transaction(self.dialect, (&self.position, token), entry)?;
            print(&sql)?;
            self.position = token.to_string();
            self.written = Instant::now();
        }
        Ok(())
    }
}
