//! Stores of experiments: sizes, loading, and options.

use tamis::{KeyspaceOptions, Layout, Options};
use tamis_workload::{KeyForm, Workload};

use crate::{
    BenchError, Context, Needs, Row, Size,
    driver::{Drive, Script, Sink, Store, TamisOptions, TamisStore, Values, drive, settle},
    machine::Memory,
};

/// Entries of a store of the full size; the following settings are for this size.
const FULL_ENTRIES: u64 = 10_000_000;
const FULL_CACHE_BYTES: u64 = 512 << 20;
const FULL_MEMTABLE_BYTES: u64 = 64 << 20;
const FULL_TABLE_BYTES: u64 = 64 << 20;
/// Minimum size of memtables and tables of a keyspace.
const PART_BYTES_MIN: u64 = 64 << 10;
/// Length of the values of all stores.
pub const VALUE_BYTES: usize = 100;
/// Length of an encoded key.
const KEY_BYTES: u64 = 16;
/// Disk for data, log and compactions, as a multiple of the data.
const DISK_FACTOR: u64 = 4;
/// Memory per operation for the script and its generation.
const OPERATION_BYTES: u64 = 96;

/// Approximate share of the operations in the progress of a fill; the rest is settling.
pub(super) const FILL_SHARE: f64 = 0.7;

/// The encoding of all keys.
pub(super) const FORM: KeyForm = KeyForm::Hex;

/// Number of entries of a store of a size.
pub(super) fn entries(size: Size) -> u64 {
    size.pick(20_000, 1_000_000, FULL_ENTRIES)
}

/// Disk and memory for a store with this many entries.
pub(super) fn needs(entries: u64, operations: u64) -> Needs {
    Needs {
        disk_bytes: entries * (KEY_BYTES + VALUE_BYTES as u64) * DISK_FACTOR,
        memory_bytes: (entries + operations) * OPERATION_BYTES + scaled(entries, FULL_CACHE_BYTES),
    }
}

/// Scales a setting of the full store, so that the ratios of data, memtable, cache and table stay the same.
fn scaled(entries: u64, bytes: u64) -> u64 {
    (bytes as f64 * (entries as f64 / FULL_ENTRIES as f64)) as u64
}

/// Options for a store with this many entries.
pub(super) fn options(entries: u64, layout: Layout) -> TamisOptions {
    let part = |bytes: u64| scaled(entries, bytes).max(PART_BYTES_MIN);
    TamisOptions {
        options: Options::default().cache_bytes(part(FULL_CACHE_BYTES)),
        keyspace: KeyspaceOptions::default()
            .memtable_bytes(part(FULL_MEMTABLE_BYTES))
            .table_bytes(part(FULL_TABLE_BYTES))
            .layout(layout),
        durability: tamis::Durability::Buffered,
    }
}

/// The script that fills an empty store in the order of a fill workload.
pub(super) fn fill_script(workload: &Workload, entries: u64, threads: usize, seed: u64) -> Script {
    let operations = workload.operations(entries, entries, seed);
    if workload.is_sorted {
        Script::deal_chunks(&operations.sorted(FORM), FORM, threads)
    } else {
        Script::deal(operations, FORM, threads)
    }
}

/// Creates a store with `entries` entries, loaded in random order and settled.
pub(super) fn loaded(
    folder: &std::path::Path,
    entries: u64,
    layout: Layout,
    context: &mut Context<'_>,
) -> Result<TamisStore, BenchError> {
    let workload: Workload = "fillrandom".parse().map_err(BenchError::other)?;
    let script = fill_script(&workload, entries, 1, context.seed());
    let values = Values::new(VALUE_BYTES, context.seed());
    let store = TamisStore::open(folder, &options(entries, layout))?;
    context.part(0.0..FILL_SHARE, |context| drive(&store, &Drive::new(&script, &values), context))?;
    context.part(FILL_SHARE..1.0, |context| settle(&store, context))?;
    Ok(store)
}

/// Adds the current and the peak memory of the store, without the memory before it was opened.
pub(super) fn with_memory(row: Row, memory: &Memory) -> Row {
    row.with("resident_bytes", memory.now()).with("peak_resident_bytes", memory.peak())
}

/// Adds the size on disk, the space amplification and the settings of the store.
pub(super) fn with_space(row: Row, store: &dyn Store) -> Result<Row, BenchError> {
    let mut bytes = 0;
    if let Some(folder) = store.folder() {
        for entry in std::fs::read_dir(folder).map_err(BenchError::io(folder))? {
            // The file was deleted after the folder was listed.
            bytes += entry.and_then(|entry| entry.metadata()).map_or(0, |metadata| metadata.len());
        }
    }
    // Operations may have inserted or deleted entries.
    let entries = store.session(true)?.scan(b"", u64::MAX, &mut Sink::new(0))?;
    let user_bytes = entries * (KEY_BYTES + VALUE_BYTES as u64);
    Ok(row
        .with("entries_left", entries)
        .with("disk_bytes", bytes)
        .with("space_amplification", bytes as f64 / user_bytes.max(1) as f64)
        .with("configuration", store.configuration()))
}
