//! The time of a read and of a digest on this machine: Table 1 of the paper, and digests by the length of the key.

use std::hint::black_box;

use md5::Md5;
use sha2::{Digest as _, Sha256};
use tamis::{Access, Clock as _, OsVfs, Vfs as _};
use tamis_filter::Digester;
use tamis_workload::SplitMix64;
use xxhash_rust::{xxh3::xxh3_64, xxh64::xxh64};

use super::murmur::murmur_hash_64a;
use tamis_bench::{BenchError, Context, Point, Row};

const PAGE_BYTES: usize = 4096;
/// Direct reads need a buffer at a multiple of the page size; one more page allows it.
const BUFFER_BYTES: usize = 2 * PAGE_BYTES;

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let page_count = point.integer("pages")?.max(1);
    let key: Vec<u8> = (0..point.integer("key_bytes")?).map(|index| index as u8).collect();
    let ns = match point.text("what")? {
        "read, direct" => file_read_ns(context, page_count, Access::Direct)?,
        "read, page cache" => file_read_ns(context, page_count, Access::Buffered)?,
        "read, memory" => memory_read_ns(context, page_count),
        "rapidhash" => {
            let digester = Digester::new(context.seed());
            hash_ns(context, &key, |key| digester.digest(key))
        }
        "XXH3" => hash_ns(context, &key, xxh3_64),
        "XXH64" => hash_ns(context, &key, |key| xxh64(key, 7)),
        "MD5" => hash_ns(context, &key, |key| Md5::digest(key)),
        "SHA-256" => hash_ns(context, &key, |key| Sha256::digest(key)),
        _ => hash_ns(context, &key, |key| murmur_hash_64a(key, 7)),
    };
    Ok(Row::new().with("ns", ns))
}

fn file_read_ns(context: &mut Context<'_>, page_count: u64, access: Access) -> Result<f64, BenchError> {
    let folder = context.scratch()?;
    let path = folder.path().join("pages");
    let bytes: Vec<u8> = (0..page_count as usize * PAGE_BYTES).map(|index| (index >> 7) as u8).collect();
    let failed = |error| BenchError::io(&path)(error);
    std::fs::write(&path, &bytes).map_err(failed)?;
    let file = OsVfs.open(&path, access).map_err(failed)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let start = buffer.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    let target = buffer.get_mut(start..start + PAGE_BYTES).unwrap_or_default();
    let mut random = SplitMix64::new(context.seed());
    let count = page_count.min(20_000);
    let begin = context.clock().now();
    for _ in 0..count {
        file.read_at(random.below(page_count) * PAGE_BYTES as u64, target).map_err(failed)?;
        black_box(&target);
    }
    Ok((context.clock().now() - begin).as_nanos() as f64 / count as f64)
}

/// Reads one word of a random page; its address depends on the previous read.
fn memory_read_ns(context: &Context<'_>, page_count: u64) -> f64 {
    let words = PAGE_BYTES / 8;
    let mut random = SplitMix64::new(context.seed());
    let pages: Vec<u64> = (0..page_count as usize * words).map(|_| random.next_u64()).collect();
    let mut place = 0_u64;
    let count = 1_000_000;
    let begin = context.clock().now();
    for step in 0..count {
        let index = (place.wrapping_add(step) % page_count) as usize * words;
        place = pages.get(index).copied().unwrap_or(0);
    }
    black_box(place);
    (context.clock().now() - begin).as_nanos() as f64 / count as f64
}

fn hash_ns<T>(context: &Context<'_>, key: &[u8], hash: impl Fn(&[u8]) -> T) -> f64 {
    let count = 200_000;
    let begin = context.clock().now();
    for _ in 0..count {
        black_box(hash(black_box(key)));
    }
    (context.clock().now() - begin).as_nanos() as f64 / f64::from(count)
}
