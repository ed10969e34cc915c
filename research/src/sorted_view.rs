//! Sorted views of sets of tables, as in Section 5.1 of the REMIX paper: seeks, short scans and point reads through a view and without one,
//! and sizes.
//!
//! Each point of a view also measures the baseline on the same set with the same targets: a merge of the tables, for point reads the
//! tables one by one with their Bloom filters. The ratio of both is the figure to compare; the paper publishes ratios in its text.

use std::{hint::black_box, sync::Arc};

use tamis::{
    Clock as _,
    bench_internals::{Reader, SegmentSearch, SortedView, TableSet, TableSetWriter},
};
use tamis_workload::{KeySet, SplitMix64, operations::hex_digits};

use tamis_bench::{BenchError, Context, Point, Row};

/// Bytes of a value.
const VALUE_BYTES: usize = 100;
/// Consecutive keys in one table, with strong locality.
const STRONG_LOCALITY: usize = 64;
const BITS_PER_KEY: f32 = 10.0;
/// A set of tables; the folder is deleted with the last reference.
struct Loaded {
    set: TableSet,
    keys: Vec<u64>,
    _folder: tempfile::TempDir,
}

fn load(tables: u64, locality: &str, entries: u64, context: &mut Context<'_>) -> Result<Loaded, BenchError> {
    let folder = context.scratch()?;
    let keys = KeySet::Uniform.generate(entries as usize, context.seed());
    let mut random = SplitMix64::new(context.seed());
    let mut writer = TableSetWriter::create(folder.path(), tables as usize, BITS_PER_KEY)?;
    let mut value = [0; VALUE_BYTES];
    let mut table = 0;
    for (number, key) in keys.iter().enumerate() {
        if locality == "weak" || number % STRONG_LOCALITY == 0 {
            table = random.below(tables) as usize;
        }
        // Each table gets an entry, in small sets, too.
        if number < tables as usize {
            table = number;
        }
        tamis_workload::fill_value(random.next_u64(), &mut value);
        writer.add(table, &hex_digits(*key), &value)?;
        if number % 10_000 == 0 {
            context.progress(number as f64 / keys.len() as f64)?;
        }
    }
    // The paper's cache of 64 MB.
    let set = writer.finish(context.size().pick(8 << 20, 64 << 20, 64 << 20))?;
    Ok(Loaded { set, keys, _folder: folder })
}

/// The executor of the operations.
enum Access<'a> {
    Reader(Box<Reader>),
    Tables(&'a TableSet, bool),
}

impl<'a> Access<'a> {
    fn open(loaded: &'a Loaded, view: &SortedView, reader: &str) -> Result<Self, BenchError> {
        let through = |search| Ok(Self::Reader(Box::new(view.reader(search)?)));
        match reader {
            "view" => through(SegmentSearch::Blind),
            "view-full" => through(SegmentSearch::Full),
            "view-partial" => through(SegmentSearch::Partial),
            "merge" => Ok(Self::Reader(Box::new(loaded.set.merge()))),
            "bloom" => Ok(Self::Tables(&loaded.set, true)),
            "no-filter" => Ok(Self::Tables(&loaded.set, false)),
            other => Err(BenchError::other(format!("unknown reader: {other}"))),
        }
    }

    /// Executes an operation and returns the sum of the bytes that it read.
    fn execute(&mut self, operation: &str, key: &[u8]) -> Result<u64, BenchError> {
        match self {
            Self::Tables(set, uses_filters) => {
                Ok(set.get(key, *uses_filters)?.map_or(0, |value| value.len() as u64))
            }
            Self::Reader(reader) if operation == "get" => {
                Ok(reader.get(key)?.map_or(0, |value| value.len() as u64))
            }
            Self::Reader(reader) => {
                reader.seek(key)?;
                let mut sum = 0;
                let steps = if operation == "seek" { 0 } else { 50 };
                for _ in 0..steps {
                    let Some((key, value)) = reader.entry() else { break };
                    // The paper copies the entries to a buffer.
                    sum += black_box([key, value].concat()).len() as u64;
                    reader.move_next()?;
                }
                Ok(sum + reader.entry().map_or(0, |(key, _)| key.len() as u64))
            }
        }
    }
}

/// Time and blocks of operations.
struct Measured {
    mops: f64,
    blocks: f64,
    bytes: u64,
}

fn run(
    loaded: &Loaded,
    view: &SortedView,
    (reader, operation): (&str, &str),
    targets: &[[u8; 16]],
    context: &mut Context<'_>,
) -> Result<Measured, BenchError> {
    let mut bytes = 0;
    let mut pass = |targets: &[[u8; 16]], context: &mut Context<'_>| -> Result<f64, BenchError> {
        let mut access = Access::open(loaded, view, reader)?;
        let before = context.clock().now();
        for (number, target) in targets.iter().enumerate() {
            bytes += access.execute(operation, target)?;
            if number % 1_000 == 0 {
                context.progress(number as f64 / targets.len() as f64)?;
            }
        }
        Ok((context.clock().now() - before).as_nanos() as f64)
    };
    let (warm_up, _) = targets.split_at(targets.len() / 4);
    pass(warm_up, context)?;
    let blocks = loaded.set.blocks_used();
    let nanoseconds = pass(targets, context)?;
    let count = targets.len().max(1) as f64;
    Ok(Measured {
        mops: 1e3 * count / nanoseconds.max(1.0),
        blocks: (loaded.set.blocks_used() - blocks) as f64 / count,
        bytes,
    })
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (operation, reader, locality) =
        (point.text("operation")?, point.text("reader")?, point.text("locality")?);
    let tables = point.integer("tables")?;
    let entries = tables * point.integer("entries_per_table")?;
    let (segment, count) = (point.integer("segment")?, point.integer("count")?);
    let loaded: Arc<Loaded> = context
        .input(&format!("{tables} {locality} tables of {entries}"), |context| {
            context.part(0.0..0.5, |context| load(tables, locality, entries, context))
        })?;
    let name = format!("view of {segment} of {tables} {locality} tables of {entries}");
    let view: Arc<SortedView> = context.input(&name, |_| Ok(loaded.set.view(segment as usize)?))?;
    let mut random = SplitMix64::new(context.seed() ^ 1);
    let mut target = || match operation {
        "get" => {
            let number = random.below(loaded.keys.len() as u64) as usize;
            loaded.keys.get(number).copied().unwrap_or_default()
        }
        _ => random.next_u64(),
    };
    let targets: Vec<_> = (0..count).map(|_| hex_digits(target())).collect();
    let measured =
        context.part(0.5..0.8, |context| run(&loaded, &view, (reader, operation), &targets, context))?;
    let baseline = if operation == "get" { "bloom" } else { "merge" };
    let other =
        context.part(0.8..1.0, |context| run(&loaded, &view, (baseline, operation), &targets, context))?;
    if measured.bytes != other.bytes {
        let text = format!("{reader} read {} bytes, {baseline} {}", measured.bytes, other.bytes);
        return Err(BenchError::Other(text));
    }
    Ok(Row::new()
        .with("mops", measured.mops)
        .with("ratio_to_baseline", measured.mops / other.mops)
        .with("blocks_per_operation", measured.blocks)
        .with("view_bytes_per_entry", view.file_bytes() as f64 / entries.max(1) as f64))
}

/// Tables of the sets whose views are sized.
const TABLE_COUNT: usize = 8;
/// Bytes of a key that differ between keys.
const DISTINCT_BYTES: usize = 8;

/// A key of this length: text that keys share, then a number.
fn key(number: u64, length: usize) -> Vec<u8> {
    let mut key = vec![b'k'; length.saturating_sub(DISTINCT_BYTES)];
    key.extend_from_slice(&number.to_be_bytes());
    key.truncate(length);
    key
}

/// Sizes of views for the key and value sizes that Table 1 of the paper takes from published workloads.
pub(crate) fn measure_sizes(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, segment) = (point.integer("entries")?, point.integer("segment")?);
    let key_bytes = point.integer("key_bytes")? as usize;
    let value_bytes = point.integer("value_bytes")? as usize;
    let folder = context.scratch()?;
    let mut random = SplitMix64::new(context.seed());
    let mut numbers: Vec<u64> = (0..entries).map(|_| random.next_u64()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut writer = TableSetWriter::create(folder.path(), TABLE_COUNT, BITS_PER_KEY)?;
    for (place, number) in numbers.iter().enumerate() {
        let table = if place < TABLE_COUNT { place } else { random.below(TABLE_COUNT as u64) as usize };
        writer.add(table, &key(*number, key_bytes), &vec![1; value_bytes])?;
        if place % 10_000 == 0 {
            context.progress(place as f64 / numbers.len() as f64)?;
        }
    }
    let set = writer.finish(1 << 20)?;
    let view = set.view(segment as usize)?;
    let per_entry = |bytes: u64| bytes as f64 / set.entry_count().max(1) as f64;
    let (index_bytes, filter_bytes) = set.index_and_filter_bytes();
    Ok(Row::new()
        .with("view_bytes_per_entry", per_entry(view.file_bytes()))
        .with("index_bytes_per_entry", per_entry(index_bytes))
        .with("filter_bytes_per_entry", per_entry(filter_bytes))
        .with("share_of_data", view.file_bytes() as f64 / set.file_bytes().max(1) as f64))
}
