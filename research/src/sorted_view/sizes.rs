//! Sizes of views for the key and value sizes that Table 1 of the REMIX paper takes from published workloads.

use tamis::bench_internals::TableSetWriter;
use tamis_workload::SplitMix64;

use tamis_bench::{BenchError, Context, Point, Row};

const TABLE_COUNT: usize = 8;
const BITS_PER_KEY: f32 = 10.0;
/// Bytes of a key that differ between keys.
const DISTINCT_BYTES: usize = 8;

/// A key of this length: text that keys share, then a number.
fn key(number: u64, length: usize) -> Vec<u8> {
    let mut key = vec![b'k'; length.saturating_sub(DISTINCT_BYTES)];
    key.extend_from_slice(&number.to_be_bytes());
    key.truncate(length);
    key
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
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
