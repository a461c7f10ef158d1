//! Bit flips on a simulated disk while the node does not run.

use std::io;
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rocksdb::{DB, Direction, IteratorMode, Options, WriteBatch};

/// Flips a random bit in a row of the state in the data directory `dir`, in its key or its value,
/// chosen by `seed`. Returns false if no row has been flushed yet.
///
/// RocksDB's checksums do not detect the flip, as if it had happened before they were computed.
/// Flipping stored blocks would not be deterministic: the blocks depend on the timing of RocksDB's
/// threads, the rows do not.
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
    // Keys before the tag of the first table are not rows.
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
    // This write goes to RocksDB's own log, which is read at the next opening.
    database.write(batch).map_err(io::Error::other)?;
    Ok(true)
}
