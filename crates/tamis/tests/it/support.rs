//! What the modules share: small options, a database in memory, random numbers from a seed.

use std::sync::Arc;

use tamis::{Db, KeyspaceOptions, Options, Runtime};
use tamis_vfs::{MemVfs, Vfs};

/// The folder of every database in memory.
pub(crate) const FOLDER: &str = "/db";

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Everything runs on the calling thread, in the same order every time.
pub(crate) fn inline_options() -> Options {
    Options { workers: 0, cache_bytes: 1 << 20, log_bytes_max: 1 << 20, ..Options::default() }
}

/// Small memtables and tables, so that few writes make many files.
pub(crate) fn small_keyspace() -> KeyspaceOptions {
    KeyspaceOptions {
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        size_ratio: 3,
        level0_runs: 2,
        ..KeyspaceOptions::default()
    }
}

pub(crate) fn open_in_memory(vfs: &MemVfs, options: Options) -> tamis::Result<Db> {
    let vfs: Arc<dyn Vfs> = Arc::new(vfs.clone());
    Db::open_on(vfs, FOLDER, options, Runtime::deterministic(7))
}
