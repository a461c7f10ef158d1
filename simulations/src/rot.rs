//! Bits that turn on a simulated disk while the node does not run.

use std::io;
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rocksdb::{DB, Direction, IteratorMode, Options, WriteBatch};

/// Turns a bit of a row of the state in the data directory `dir`, in its key or in its value; which
/// one follows from `seed`. False if no row was flushed yet.
///
/// It turns where RocksDB's own checksums do not tell, as if it had turned before they were made:
/// which blocks there are depends on when RocksDB's threads run, which rows there are does not.
///
/// # Errors
/// The database cannot be read or written.
pub(crate) fn rot_row(dir: &Path, seed: u64) -> io::Result<bool> {
    let state = dir.join("state");
    if !state.join("CURRENT").exists() {
        return Ok(false);
    }
    let options = Options::default();
    let database = DB::open_cf(&options, &state, ["rows"]).map_err(io::Error::other)?;
    let family = database.cf_handle("rows").expect("it was opened");
    // Before the tag of the first table stands what is no row.
    let first = IteratorMode::From(&[1], Direction::Forward);
    let rows: Result<Vec<_>, _> = database.iterator_cf(family, first).collect();
    let mut rows = rows.map_err(io::Error::other)?;
    if rows.is_empty() {
        return Ok(false);
    }
    let random = &mut SmallRng::seed_from_u64(seed);
    let (key, value) = rows.swap_remove(random.random_range(0..rows.len()));
    let mut row = [&*key, &*value].concat();
    let bit = random.random_range(0..8 * row.len());
    row[bit / 8] ^= 1 << (bit % 8);
    let (turned_key, turned_value) = row.split_at(key.len());
    let mut batch = WriteBatch::default();
    batch.delete_cf(family, &key);
    batch.put_cf(family, turned_key, turned_value);
    // The state has no log of its own but this one, which the next opening reads.
    database.write(batch).map_err(io::Error::other)?;
    Ok(true)
}
