//! Stores of experiments: how large, how loaded, and how they are opened.

use tamis::{KeyspaceOptions, Options};
use tamis_workload::{KeyForm, Workload};

use crate::{
    BenchError, Context, Needs, Row, Size,
    driver::{Drive, Latencies, Script, Store, TamisOptions, TamisStore, Values, drive, settle},
    machine::Memory,
};

/// Entries of a full store; the settings below belong to it.
const FULL_ENTRIES: u64 = 10_000_000;
const FULL_CACHE_BYTES: u64 = 512 << 20;
const FULL_MEMTABLE_BYTES: u64 = 64 << 20;
const FULL_TABLE_BYTES: u64 = 64 << 20;
/// The smallest memtable and table that a keyspace takes.
const PART_BYTES_MIN: u64 = 64 << 10;
/// Bytes of a value.
pub(super) const VALUE_BYTES: usize = 100;
/// Bytes of a key in its form.
const KEY_BYTES: u64 = 16;
/// Disk that compactions and the log take beside the data, as a multiple of it.
const DISK_FACTOR: u64 = 4;
/// Memory of an entry's operation before the clock starts, and of the drawing.
const OPERATION_BYTES: u64 = 96;

/// Which part of the progress of a fill is that of its operations, about; the rest is that of coming to rest.
pub(super) const FILL_SHARE: f64 = 0.7;

/// The form of all keys.
pub(super) const FORM: KeyForm = KeyForm::Hex;

/// How many entries a store of a size has.
pub(super) fn entries(size: Size) -> u64 {
    size.pick(20_000, 1_000_000, FULL_ENTRIES)
}

/// What a store of so many entries needs.
pub(super) fn needs(entries: u64, operations: u64) -> Needs {
    Needs {
        disk_bytes: entries * (KEY_BYTES + VALUE_BYTES as u64) * DISK_FACTOR,
        memory_bytes: (entries + operations) * OPERATION_BYTES + scaled(entries, FULL_CACHE_BYTES),
    }
}

/// A setting of the full store for one of so many entries: the ratios of data, memtable, cache and table stay.
fn scaled(entries: u64, bytes: u64) -> u64 {
    (bytes as f64 * (entries as f64 / FULL_ENTRIES as f64)) as u64
}

/// How a store of so many entries is opened.
pub(super) fn options(entries: u64) -> TamisOptions {
    let part = |bytes: u64| scaled(entries, bytes).max(PART_BYTES_MIN);
    TamisOptions {
        options: Options { cache_bytes: part(FULL_CACHE_BYTES), ..Options::default() },
        keyspace: KeyspaceOptions {
            memtable_bytes: part(FULL_MEMTABLE_BYTES),
            table_bytes: part(FULL_TABLE_BYTES),
            ..KeyspaceOptions::default()
        },
        durability: tamis::Durability::Buffered,
    }
}

/// What fills an empty store in the order of a fill workload.
pub(super) fn fill_script(workload: &Workload, entries: u64, threads: usize, seed: u64) -> Script {
    let operations = workload.operations(entries, entries, seed);
    if workload.is_sorted {
        Script::deal_stretches(&operations.sorted(FORM), FORM, threads)
    } else {
        Script::deal(operations, FORM, threads)
    }
}

/// A fill by a script: no warm-up, and every latency counts.
pub(super) fn fill<'a>(script: &'a Script, values: &'a Values) -> Drive<'a> {
    Drive { script, values, warm_up: 0, latencies: Latencies::Every, time_max: None, round: 0 }
}

/// A store with `entries` entries, loaded in random order and brought to rest.
pub(super) fn loaded(
    folder: &std::path::Path,
    entries: u64,
    context: &mut Context<'_>,
) -> Result<TamisStore, BenchError> {
    let workload: Workload = "fillrandom".parse().map_err(BenchError::other)?;
    let script = fill_script(&workload, entries, 1, context.seed());
    let values = Values::new(VALUE_BYTES, context.seed());
    let store = TamisStore::open(folder, &options(entries))?;
    context.part(0.0..FILL_SHARE, |context| drive(&store, &fill(&script, &values), context))?;
    context.part(FILL_SHARE..1.0, |context| settle(&store, context))?;
    Ok(store)
}

/// Adds what the store holds in memory, and held at most, beyond what the harness held before it was opened.
pub(super) fn with_memory(row: Row, memory: &Memory) -> Row {
    row.with("resident_bytes", memory.now()).with("peak_resident_bytes", memory.peak())
}

/// Adds what is left behind: bytes on disk for each byte of the entries that are there now, and the store's settings.
pub(super) fn with_space(row: Row, store: &dyn Store) -> Result<Row, BenchError> {
    let mut bytes = 0;
    if let Some(folder) = store.folder() {
        for entry in std::fs::read_dir(folder).map_err(BenchError::io(folder))? {
            // A file that was deleted since the folder was read counts no longer.
            bytes += entry.and_then(|entry| entry.metadata()).map_or(0, |metadata| metadata.len());
        }
    }
    // Operations may have inserted and deleted.
    let entries = store.session()?.scan(b"", u64::MAX)?;
    let user_bytes = entries * (KEY_BYTES + VALUE_BYTES as u64);
    Ok(row
        .with("entries_left", entries)
        .with("disk_bytes", bytes)
        .with("space_amplification", bytes as f64 / user_bytes.max(1) as f64)
        .with("configuration", store.configuration()))
}
