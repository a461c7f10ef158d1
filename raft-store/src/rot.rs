//! Bits that turn on a simulated disk while the node does not run.

use std::io;
use std::path::Path;

use rand_openraft::rngs::StdRng;
use rand_openraft::{RngExt, SeedableRng};
use rocksdb::{Cache, IteratorMode, WriteBatch};

use crate::data_dir::STATE_DIR;
use crate::machine::{families, tables_of_the_state};
use crate::options::StoreOptions;
use crate::rocks;

/// Turns a bit of a row of the state in the data directory `dir`, in its key or in its value; which one
/// follows from `seed`. False if no row was flushed yet.
///
/// It turns where RocksDB's own checksums do not tell, as if it had turned before they were made: which
/// blocks there are depends on when RocksDB's threads run, which rows there are does not.
///
/// # Errors
/// The database cannot be read or written.
pub fn rot_row(dir: &Path, seed: u64) -> io::Result<bool> {
    let state = dir.join(STATE_DIR);
    if !rocks::is_there(&state) {
        return Ok(false);
    }
    let random = &mut StdRng::seed_from_u64(seed);
    let cache = Cache::new_lru_cache(1 << 20);
    let options = rocks::options(&StoreOptions::new(dir), &cache).map_err(io::Error::other)?;
    let database = rocks::open(&options, &state, &families()).map_err(io::Error::other)?;
    let mut rows = Vec::new();
    for table in tables_of_the_state() {
        let family = rocks::family(&database, table);
        for row in database.iterator_cf(family, IteratorMode::Start) {
            rows.push((family, row.map_err(io::Error::other)?));
        }
    }
    if rows.is_empty() {
        return Ok(false);
    }
    let (family, (key, value)) = rows.swap_remove(random.random_range(0..rows.len()));
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
