//! A store with the levels of the paper, and lookups in it with and without digest sharing.
//!
//! Each level is one run over the whole key range, and larger than the level above by the size ratio. A lookup of an absent key
//! probes the filters of all levels; a lookup of a present key probes those down to its level. Keys are random strings of the
//! given length; values fill the entries to the given size.
//!
//! The store always shares its digest. A lookup "without sharing" computes the digests of the other filters before the lookup:
//! the time is close to that of a store that does not share. Both kinds of lookups alternate in one process, in blocks of the
//! same keys, so that noise of the machine affects both. The measurement fails unless the statistics of the store count one
//! digest per lookup.

use std::{hint::black_box, sync::Arc};

use tamis::{Access, Clock as _, Db, Filters, Keyspace, KeyspaceOptions, Options, Statistics};
use tamis_filter::Digester;
use tamis_workload::SplitMix64;

use super::{cost_model::CostModel, murmur::murmur_hash_64a};
use crate::stores::put_all;
use tamis_bench::filter::median;
use tamis_bench::{BenchError, Context, OperationDigest, Point, Row};

/// Number of rounds; the result is the median over their blocks.
const ROUND_COUNT: usize = 15;
/// How often the store is opened, with [`ROUND_COUNT`] rounds each, because the addresses of the filters influence the times by
/// a nanosecond. With direct reads it is opened once.
const OPENING_COUNT: usize = 5;
/// Number of lookups after which the variants alternate.
const BLOCK_LOOKUPS: usize = 1000;
/// Number of keys whose digests are timed; they fit in the L1 cache.
const CACHED_KEYS: usize = 16;
/// Lookups of present and of absent keys to measure the time of a read; a twentieth of it with direct reads.
const READ_LOOKUPS: usize = 20_000;
/// Size of the cache in addition to filters and indexes.
const CACHE_BYTES: u64 = 1 << 20;

/// The parameters of a point.
#[derive(Debug, Clone, Copy)]
struct Shape {
    key_bytes: usize,
    entry_bytes: usize,
    level_count: u32,
    size_ratio: u64,
    entry_count: u64,
    bits_per_key: f64,
    /// Percentage of lookups of present keys.
    present_percent: u64,
    /// `memory` (mapped) or `direct`.
    device: &'static str,
    /// `own`: the hash of the store; `murmur`: the hash of the paper, computed in addition to that of the store.
    hash: &'static str,
}

impl Shape {
    fn from_point(point: &Point) -> Result<Self, BenchError> {
        Ok(Self {
            key_bytes: point.integer("key_bytes")? as usize,
            entry_bytes: point.integer("entry_bytes")? as usize,
            level_count: point.integer("levels")? as u32,
            size_ratio: point.integer("size_ratio")?,
            entry_count: point.integer("entries")?,
            bits_per_key: point.number("bits")?,
            present_percent: point.integer("present_percent")?,
            device: if point.text("device")? == "direct" { "direct" } else { "memory" },
            hash: if point.text("hash")? == "murmur" { "murmur" } else { "own" },
        })
    }

    /// Entries of each level, the smallest first.
    fn level_sizes(&self) -> Vec<u64> {
        let weight = |level: u32| self.size_ratio.saturating_pow(level) as f64;
        let sum: f64 = (0..self.level_count).map(weight).sum();
        let size = |level| ((self.entry_count as f64 * weight(level) / sum) as u64).max(2);
        (0..self.level_count).map(size).collect()
    }

    /// A name with all parameters that determine the files of the store.
    fn name(&self) -> String {
        let Self { key_bytes, entry_bytes, level_count, size_ratio, entry_count, bits_per_key, .. } = self;
        format!("levels {key_bytes} {entry_bytes} {level_count} {size_ratio} {entry_count} {bits_per_key}")
    }

    /// The key of a number; numbers below the number of entries are present.
    fn key(&self, number: u64, seed: u64, target: &mut Vec<u8>) {
        let mut random = SplitMix64::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed);
        let end = target.len() + self.key_bytes;
        while target.len() < end {
            target.extend_from_slice(&random.next_u64().to_be_bytes());
        }
        target.truncate(end);
    }
}

/// A loaded store; the folder is deleted with the last reference.
struct Loaded {
    folder: tempfile::TempDir,
    cache_bytes: u64,
}

fn load(shape: &Shape, context: &mut Context<'_>) -> Result<Loaded, BenchError> {
    let folder = context.scratch()?;
    let db = Db::open_with(folder.path(), Options::default().workers(0))?;
    let options = KeyspaceOptions::default()
        .memtable_bytes(4 << 30)
        .level0_runs(64)
        .filters(Filters::bits(shape.bits_per_key as f32));
    let keyspace = db.create_keyspace("levels", options)?;
    let (mut number, seed) = (0, context.seed());
    // The deepest level first: a later flush is newer.
    for size in shape.level_sizes().into_iter().rev() {
        // Every level spans the whole key range.
        for border in [0x00, 0xff] {
            keyspace.put(vec![border; shape.key_bytes], b"border")?;
        }
        let key = |place: usize| {
            let mut key = Vec::new();
            shape.key(number + place as u64, seed, &mut key);
            key
        };
        let value_bytes = shape.entry_bytes.saturating_sub(shape.key_bytes);
        let put = |context: &mut Context<'_>| {
            put_all((&db, &keyspace), (0..size as usize).map(key), value_bytes, context)
        };
        context.part(0.0..0.5, put)?;
        db.flush()?;
        number += size;
    }
    let entry_count: u64 = shape.level_sizes().iter().sum();
    // Filters, and one index entry per block.
    let cache_bytes = entry_count * (shape.bits_per_key as u64 / 8 + 2)
        + entry_count * shape.entry_bytes as u64 / 4096 * (shape.key_bytes as u64 + 32);
    drop(keyspace);
    db.close()?;
    Ok(Loaded { folder, cache_bytes })
}

/// Keys to look up one after the other, and the number of filters that each lookup probes.
struct Block {
    bytes: Vec<u8>,
    key_bytes: usize,
    asked: Vec<u32>,
}

impl Block {
    fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.bytes.chunks_exact(self.key_bytes).zip(self.asked.iter().copied())
    }

    /// Lookups of a shape, in blocks of [`BLOCK_LOOKUPS`].
    fn draw(shape: &Shape, seed: u64, count: usize) -> Vec<Self> {
        let sizes = shape.level_sizes();
        let total: u64 = sizes.iter().sum();
        let mut random = SplitMix64::new(seed ^ 0xa5a5);
        let mut block = |count: usize| {
            let mut block = Self { bytes: Vec::new(), key_bytes: shape.key_bytes, asked: Vec::new() };
            for _ in 0..count {
                let is_present = random.below(100) < shape.present_percent;
                let number = if is_present { random.below(total) } else { total + random.below(1 << 40) };
                shape.key(number, seed, &mut block.bytes);
                // Numbers were assigned from the deepest level upward.
                let mut end = 0;
                let deeper = sizes.iter().rev().position(|size| {
                    end += size;
                    number < end
                });
                block.asked.push(shape.level_count - deeper.map_or(0, |deeper| deeper as u32));
            }
            block
        };
        (0..count).step_by(BLOCK_LOOKUPS).map(|first| block(BLOCK_LOOKUPS.min(count - first))).collect()
    }
}

/// Digests in addition to the shared one of the store.
#[derive(Clone, Copy)]
enum ExtraDigests<'a> {
    None,
    /// The hash of the paper, once.
    MurmurOnce,
    /// The hash of the paper, once per probed filter.
    MurmurPerFilter,
    /// The hash of the store, once per probed filter except the first.
    OwnPerFilter(&'a Digester),
}

/// Number of variants: with and without sharing.
const VARIANT_COUNT: usize = 2;

fn repeat(count: u32, digest: impl Fn() -> u64) {
    for _ in 0..count {
        black_box(digest());
    }
}

/// Looks up the keys of a block; returns the number of present keys.
fn look_up_block(keyspace: &Keyspace, block: &Block, extra: ExtraDigests<'_>) -> Result<u64, BenchError> {
    let mut found = 0;
    for (key, asked) in block.iter() {
        match extra {
            ExtraDigests::None => {}
            ExtraDigests::MurmurOnce => repeat(1, || murmur_hash_64a(black_box(key), 7)),
            ExtraDigests::MurmurPerFilter => repeat(asked, || murmur_hash_64a(black_box(key), 7)),
            ExtraDigests::OwnPerFilter(digester) => {
                repeat(asked.saturating_sub(1), || digester.digest(black_box(key)))
            }
        }
        found += u64::from(keyspace.get(key)?.is_some());
    }
    Ok(found)
}

/// Lookups without measurement.
fn warm_up(keyspace: &Keyspace, lookups: &[Block]) -> Result<(), BenchError> {
    lookups.iter().try_for_each(|block| look_up_block(keyspace, block, ExtraDigests::None).map(drop))
}

fn count_of(lookups: &[Block]) -> usize {
    lookups.iter().map(|block| block.asked.len()).sum()
}

/// The cost of one variant.
#[derive(Default)]
struct VariantCost {
    /// Nanoseconds per lookup of each block.
    ns: Vec<f64>,
    digests: u64,
    asked: u64,
    false_positives: u64,
}

impl VariantCost {
    /// Records a block: the time per lookup, and the statistics before and after.
    fn record(&mut self, ns: f64, before: &Statistics, after: &Statistics) {
        let (asked, false_positives) = filter_counts(before, after);
        self.ns.push(ns);
        self.digests += after.digests - before.digests;
        self.asked += asked;
        self.false_positives += false_positives;
    }
}

/// Additional time of a variant over sharing per block, grouped by the variant that ran first on the block. The later variant
/// finds the keys in the CPU cache; each runs first equally often, so the mean of the medians is unbiased.
type ExtraTimes = [Vec<f64>; VARIANT_COUNT];

/// The costs of the variants, and the additional times.
type Measured = ([VariantCost; VARIANT_COUNT], [ExtraTimes; VARIANT_COUNT]);

fn mean_of_medians(more: &mut ExtraTimes) -> f64 {
    more.iter_mut().map(|differences| median(differences)).sum::<f64>() / VARIANT_COUNT as f64
}

/// Nanoseconds of an additional digest in a lookup. The key is in the CPU cache, as for every digest of a lookup except the
/// first: cache misses would hide a part of the time. Passing a key to the hash function and consuming the result costs a
/// third of the digest of a short key if it is not inlined, so the time of an empty loop is subtracted.
fn hash_ns(context: &Context<'_>, lookups: &[Block], hash: impl Fn(&[u8]) -> u64) -> f64 {
    let keys: Vec<&[u8]> =
        lookups.iter().flat_map(Block::iter).take(CACHED_KEYS).map(|(key, _)| key).collect();
    let repeats = count_of(lookups).div_ceil(CACHED_KEYS);
    let digests = (repeats * keys.len()).max(1) as f64;
    let mut rounds: Vec<f64> = (0..ROUND_COUNT)
        .map(|_| {
            let with = loop_ns(context, &keys, repeats, &hash);
            (with - loop_ns(context, &keys, repeats, |key| key.len() as u64)) / digests
        })
        .collect();
    median(&mut rounds)
}

fn loop_ns(context: &Context<'_>, keys: &[&[u8]], repeats: usize, of: impl Fn(&[u8]) -> u64) -> f64 {
    let start = context.clock().now();
    for _ in 0..repeats {
        for key in keys {
            black_box(of(black_box(key)));
        }
    }
    (context.clock().now() - start).as_nanos() as f64
}

/// Measures a point.
pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let shape = Shape::from_point(point)?;
    let loaded: Arc<Loaded> = context.input(&shape.name(), |context| load(&shape, context))?;
    let is_direct = shape.device == "direct";
    let cache_bytes = if is_direct { loaded.cache_bytes / 2 * 3 } else { CACHE_BYTES };
    let options = Options::default()
        .workers(0)
        .table_access(if is_direct { Access::Direct } else { Access::Mapped })
        .cache_bytes(cache_bytes)
        .cache_pinned_percent(if is_direct { 100 } else { 20 });
    let wanted = context.size().pick(2_000, 50_000, 200_000);
    let is_slow = is_direct && shape.present_percent > 0;
    let lookups = Block::draw(&shape, context.seed(), if is_slow { wanted / 10 } else { wanted });
    let read_count = if is_direct { READ_LOOKUPS / 20 } else { READ_LOOKUPS };
    let of = |present_percent| Block::draw(&Shape { present_percent, ..shape }, context.seed(), read_count);
    let read_lookups = [of(0), of(100)];
    let opening_count = if is_direct { 1 } else { OPENING_COUNT };
    let mut measured = Measured::default();
    let mut read_times = Vec::new();
    for opening in 0..opening_count {
        let db = Db::open_with(loaded.folder.path(), options.clone())?;
        let keyspace = db.keyspace("levels")?;
        measure_variants(context, &shape, &db, &keyspace, &lookups, &mut measured)?;
        read_times.push(read_ns(context, &keyspace, &read_lookups)?);
        context.progress(0.5 + 0.5 * (opening + 1) as f64 / opening_count as f64)?;
    }
    row(context, &shape, &lookups, opening_count * ROUND_COUNT, measured, median(&mut read_times))
}

/// The row of a point: the measurements and the values of the cost model.
fn row(
    context: &Context<'_>,
    shape: &Shape,
    lookups: &[Block],
    round_count: usize,
    measured: Measured,
    read_ns: f64,
) -> Result<Row, BenchError> {
    let ([mut shared, mut unshared], [_, mut saved]) = measured;
    let count = (count_of(lookups) * round_count) as f64;
    check_digests(count, &shared, &unshared)?;
    let asked = shared.asked as f64 / count;
    let saved = mean_of_medians(&mut saved);
    let (shared_ns, unshared_ns) = (median(&mut shared.ns), median(&mut unshared.ns));
    let digester = Digester::new(7);
    let hash_ns = match shape.hash {
        "murmur" => hash_ns(context, lookups, |key| murmur_hash_64a(key, 7)),
        _ => hash_ns(context, lookups, |key| digester.digest(key)),
    };
    let mut digest = OperationDigest::default();
    lookups.iter().flat_map(Block::iter).for_each(|(key, asked)| {
        digest.add_bytes(key);
        digest.add(u64::from(asked));
    });
    let present = shape.present_percent as f64 / 100.0;
    let model = CostModel {
        level_count: shape.level_count,
        size_ratio: shape.size_ratio,
        present,
        fpr: shared.false_positives as f64 / (count * (asked - present)).max(1.0),
        hash_ns,
        read_ns,
    };
    Ok(Row::new()
        .with("shared_ns", shared_ns)
        .with("unshared_ns", unshared_ns)
        .with("gain_percent", 100.0 * saved / unshared_ns)
        .with("hash_ns", hash_ns)
        .with("filters_asked", asked)
        .with("saved_ns", saved)
        .with("digests_shared", 1.0)
        .with("digests_unshared", asked)
        .with("false_reads", shared.false_positives as f64 / count)
        .with("hash_share_percent", 100.0 * asked * hash_ns / unshared_ns)
        .with("read_ns", model.read_ns)
        .with("model_filters", model.filters())
        .with("model_shared_ns", model.shared_ns())
        .with("model_unshared_ns", model.unshared_ns())
        .with("model_hash_share_percent", model.hash_share_percent())
        .with("model_saved_ns", (asked - 1.0) * hash_ns)
        .with("saved_by_model", saved / ((asked - 1.0) * hash_ns).max(1e-9))
        .with_digest(digest.finish()))
}

/// Nanoseconds that a read adds to a lookup: the difference between lookups of present and of absent keys, both with sharing.
/// It includes the search in the index and the block, and the copy of the value.
fn read_ns(
    context: &Context<'_>,
    keyspace: &Keyspace,
    [absent, present]: &[Vec<Block>; 2],
) -> Result<f64, BenchError> {
    // An untimed pass first, to load the mapped pages.
    warm_up(keyspace, present)?;
    let timed = |block: &Block, wanted: usize| -> Result<f64, BenchError> {
        let start = context.clock().now();
        let found = look_up_block(keyspace, block, ExtraDigests::None)?;
        let time = context.clock().now() - start;
        if found != wanted as u64 {
            return Err(BenchError::other(format!("found {found} keys, expected {wanted}")));
        }
        Ok(time.as_nanos() as f64 / block.asked.len().max(1) as f64)
    };
    let mut differences = Vec::new();
    for (absent, present) in absent.iter().zip(present) {
        let absent_ns = timed(absent, 0)?;
        differences.push(timed(present, present.asked.len())? - absent_ns);
    }
    Ok(median(&mut differences).max(0.0))
}

/// Checks that the store computes one digest per lookup. Keys between two tables of a run need none.
fn check_digests(count: f64, shared: &VariantCost, unshared: &VariantCost) -> Result<(), BenchError> {
    let is_once = |way: &VariantCost| way.digests as f64 <= count && way.digests as f64 >= 0.999 * count;
    if is_once(shared) && is_once(unshared) && unshared.asked == shared.asked {
        return Ok(());
    }
    let got = (shared.digests, unshared.digests);
    Err(BenchError::other(format!(
        "the store computed {got:?} digests in {count} lookups of {} filters",
        shared.asked
    )))
}

fn measure_variants(
    context: &Context<'_>,
    shape: &Shape,
    db: &Db,
    keyspace: &Keyspace,
    lookups: &[Block],
    measured: &mut Measured,
) -> Result<(), BenchError> {
    let digester = Digester::new(7);
    let extras = match shape.hash {
        "murmur" => [ExtraDigests::MurmurOnce, ExtraDigests::MurmurPerFilter],
        _ => [ExtraDigests::None, ExtraDigests::OwnPerFilter(&digester)],
    };
    // The first pass opens the tables and fills the caches.
    warm_up(keyspace, lookups)?;
    let (ways, more) = measured;
    let mut before = db.statistics();
    for round in 0..ROUND_COUNT {
        for (number, block) in lookups.iter().enumerate() {
            let first = (round + number) % VARIANT_COUNT;
            let mut times = [0.0; VARIANT_COUNT];
            for turn in 0..VARIANT_COUNT {
                let index = (first + turn) % VARIANT_COUNT;
                let extra = extras.get(index).copied().unwrap_or(ExtraDigests::None);
                let start = context.clock().now();
                let found = look_up_block(keyspace, block, extra)?;
                let time = context.clock().now() - start;
                black_box(found);
                let after = db.statistics();
                if let (Some(way), Some(ns)) = (ways.get_mut(index), times.get_mut(index)) {
                    *ns = time.as_nanos() as f64 / block.asked.len().max(1) as f64;
                    way.record(*ns, &before, &after);
                }
                before = after;
            }
            let [shared, ..] = times;
            for (more, time) in more.iter_mut().zip(times) {
                if let Some(more) = more.get_mut(first) {
                    more.push(time - shared);
                }
            }
        }
    }
    Ok(())
}

/// Numbers of probed filters and of false positives between two statistics.
fn filter_counts(before: &Statistics, after: &Statistics) -> (u64, u64) {
    let sum = |statistics: &Statistics, of: fn(&tamis::LevelReads) -> u64| -> u64 {
        statistics.reads.iter().map(of).sum()
    };
    let since = |of| sum(after, of) - sum(before, of);
    (since(|level| level.points.checked), false_reads(after) - false_reads(before))
}

/// Number of false-positive reads.
pub(super) fn false_reads(statistics: &Statistics) -> u64 {
    statistics.reads.iter().map(|level| level.points.false_positives).sum()
}
