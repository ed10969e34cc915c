//! Times of the digest function and of XXH3, by key size: the comparison of `crates/tamis-filter/src/hash.rs`. The last column is
//! the latency: each key depends on the digest before.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use tamis_filter::Digester;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const KEY_COUNT: usize = 4096;
const ROUND_COUNT: usize = 50;

/// Minimum time of a call in nanoseconds, for keys that are adjacent in memory.
fn least_ns(key_bytes: usize, digest: impl Fn(&[u8]) -> u64) -> f64 {
    let bytes: Vec<u8> = (0..KEY_COUNT + key_bytes).map(|index| ((index * 0x9e37) >> 5) as u8).collect();
    let mut least = f64::INFINITY;
    for _ in 0..ROUND_COUNT {
        let start = Instant::now();
        let sum = bytes.windows(key_bytes).take(KEY_COUNT).fold(0, |sum, key| sum ^ digest(black_box(key)));
        black_box(sum);
        least = least.min(start.elapsed().as_nanos() as f64 / KEY_COUNT as f64);
    }
    least
}

/// Minimum time of a call if each key depends on the digest before.
fn least_chained_ns(key_bytes: usize, digest: impl Fn(&[u8]) -> u64) -> f64 {
    let bytes: Vec<u8> = (0..KEY_COUNT + key_bytes).map(|index| ((index * 0x9e37) >> 5) as u8).collect();
    let mut least = f64::INFINITY;
    let mut start_at = 0;
    for _ in 0..ROUND_COUNT {
        let start = Instant::now();
        for _ in 0..KEY_COUNT {
            let key = bytes.get(start_at..start_at + key_bytes).unwrap_or_default();
            start_at = digest(key) as usize % 16;
        }
        black_box(start_at);
        least = least.min(start.elapsed().as_nanos() as f64 / KEY_COUNT as f64);
    }
    least
}

fn main() {
    let digester = Digester::new(black_box(42));
    println!("| bytes | rapidhash v3 | XXH3 64 | rapidhash v3, chained |\n|---|---|---|---|");
    for key_bytes in [8, 16, 32, 64, 128, 256, 512, 1024] {
        let ours = least_ns(key_bytes, |key| digester.digest(key));
        let other = least_ns(key_bytes, |key| xxh3_64_with_seed(key, black_box(42)));
        let chained = least_chained_ns(key_bytes, |key| digester.digest(key));
        println!("| {key_bytes} | {ours:.1} | {other:.1} | {chained:.1} |");
    }
}
