//! Costs of reads and writes in blocks, files and bytes: counted by the statistics, and by the recording file system if tables are
//! read through it.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use tamis::{Compression, Db, Filters, KeyRangeBounds, Keyspace, KeyspaceOptions, Options, Statistics};
use tamis_vfs::{Access, MemVfs, Operation, OperationKind, RecordVfs, Vfs};

use crate::support::{
    SplitMix64, filter_designs, filters, inline_options, key, open_in_memory, open_on, small_keyspace,
};

const BLOCK: u64 = 4096;

/// Databases on a recording file system; every open has a cold cache.
struct Bench {
    vfs: RecordVfs,
    access: Access,
    keyspace: KeyspaceOptions,
}

impl Bench {
    fn new(access: Access, keyspace: KeyspaceOptions) -> Self {
        Self { vfs: RecordVfs::new(Arc::new(MemVfs::new())), access, keyspace }
    }

    fn open(&self) -> (Db, Keyspace) {
        let options = Options::default().workers(0).table_access(self.access).cache_bytes(64 << 20);
        let vfs: Arc<dyn Vfs> = Arc::new(self.vfs.clone());
        let db = open_on(vfs, options).unwrap();
        let keyspace = db.get_or_create_keyspace("k", self.keyspace.clone()).unwrap();
        (db, keyspace)
    }

    /// The cost of `work`: data blocks by the statistics, and operations on tables by the file system.
    fn cost<R>(&self, db: &Db, work: impl FnOnce() -> R) -> (Cost, R) {
        let before = db.statistics();
        self.vfs.reset();
        let result = work();
        let after = db.statistics();
        let reads = self.vfs.tally_of(OperationKind::Read, ".table");
        let since = |count: fn(&Statistics) -> u64| count(&after) - count(&before);
        let cost = Cost {
            blocks: since(|statistics| statistics.blocks_read),
            bytes: since(|statistics| statistics.bytes_read),
            hits: since(|statistics| statistics.cache_hits),
            digests: since(|statistics| statistics.digests),
            checked: since(|statistics| statistics.reads.iter().map(|level| level.points.checked).sum()),
            rejected: since(|statistics| statistics.reads.iter().map(|level| level.points.rejected).sum()),
            opened: self.vfs.tally_of(OperationKind::Open, ".table").count,
            file_reads: reads.count,
            file_bytes: reads.bytes,
        };
        // For open tables the file system sees only reads of data blocks; some blocks are read together.
        if self.access != Access::Mapped && cost.opened == 0 {
            assert!(cost.file_reads <= cost.blocks && cost.file_bytes == cost.bytes, "{cost:?}");
        }
        (cost, result)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    blocks: u64,
    bytes: u64,
    hits: u64,
    digests: u64,
    checked: u64,
    rejected: u64,
    opened: u64,
    file_reads: u64,
    file_bytes: u64,
}

const ACCESSES: [Access; 3] = [Access::Buffered, Access::Direct, Access::Mapped];

fn value(number: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(number);
    (0..13).flat_map(|_| random.next_u64().to_le_bytes()).collect()
}

/// Memtables and tables that are large enough for all data of a test; nothing is merged without a call.
fn roomy() -> KeyspaceOptions {
    let filters = Filters::bits(10.0);
    KeyspaceOptions::default().memtable_bytes(64 << 20).level0_runs(64).filters(filters)
}

/// A store whose keys `0, 2, 4, ... 2 * count` are in `run_count` runs that all span the whole range.
fn with_runs(access: Access, count: u64, run_count: u64) -> Bench {
    let bench = Bench::new(access, roomy());
    fill_runs(&bench, count, run_count);
    bench
}

fn fill_runs(bench: &Bench, count: u64, run_count: u64) {
    let (db, keyspace) = bench.open();
    for run in 0..run_count {
        for number in (run..count).step_by(run_count as usize) {
            keyspace.put(key(2 * number), value(2 * number)).unwrap();
        }
        db.flush().unwrap();
    }
    let statistics = db.statistics();
    let of_keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap();
    assert_eq!(of_keyspace.levels[0].run_count as u64, run_count);
    assert_eq!(of_keyspace.levels.len(), 1);
    db.close().unwrap();
}

#[test]
fn a_get_of_a_present_key_reads_one_block_and_a_cached_one_none() {
    for access in ACCESSES {
        let bench = with_runs(access, 3_000, 1);
        let (db, keyspace) = bench.open();
        let (first, found) = bench.cost(&db, || keyspace.get(key(0)).unwrap());
        assert_eq!(found.unwrap(), &value(0));
        assert_eq!((first.blocks, first.bytes, first.opened, first.digests), (1, BLOCK, 1, 1), "{access:?}");
        let mut total = first.blocks;
        for number in (2..6_000).step_by(2) {
            let (cost, found) = bench.cost(&db, || keyspace.get(key(number)).unwrap());
            assert_eq!(found.unwrap(), &value(number));
            assert_eq!(
                (cost.blocks + cost.hits, cost.opened, cost.digests),
                (1, 0, 1),
                "{access:?} {number}"
            );
            total += cost.blocks;
            let (again, _) = bench.cost(&db, || keyspace.get(key(number)).unwrap());
            assert_eq!((again.blocks, again.hits, again.file_reads), (0, 1, 0), "{access:?} {number}");
        }
        // Each block was read once, and there are as many as the values need.
        assert!((80..110).contains(&total), "{access:?}: {total} blocks");
    }
}

#[test]
fn a_get_from_a_memtable_reads_no_block_and_computes_no_digest() {
    for access in ACCESSES {
        let bench = with_runs(access, 1_000, 2);
        let (db, keyspace) = bench.open();
        keyspace.get(key(0)).unwrap();
        keyspace.put(key(10), b"new").unwrap();
        keyspace.delete(key(12)).unwrap();
        for (number, expected) in [(10, Some(b"new".as_slice())), (12, None)] {
            let (cost, found) = bench.cost(&db, || keyspace.get(key(number)).unwrap());
            assert_eq!(found.as_deref(), expected);
            assert_eq!((cost.blocks, cost.hits, cost.digests, cost.checked, cost.opened), (0, 0, 0, 0, 0));
        }
    }
}

#[test]
fn an_absent_key_costs_no_block_without_a_false_positive() {
    for access in ACCESSES {
        let (bench, run_count) = (with_runs(access, 4_000, 4), 4);
        let (db, keyspace) = bench.open();
        keyspace.get(key(0)).unwrap();
        let mut wrong = 0;
        for number in (7..7_985).step_by(2) {
            let (cost, found) = bench.cost(&db, || keyspace.get(key(number)).unwrap());
            assert!(found.is_none());
            assert_eq!(cost.digests, 1, "one digest serves all runs");
            let passed = cost.checked - cost.rejected;
            assert_eq!(cost.blocks + cost.hits, passed, "only false positives read blocks");
            wrong += passed;
            assert_eq!(cost.checked, run_count);
        }
        let rate = wrong as f64 / (4_000.0 * run_count as f64);
        assert!(rate < 0.02, "{access:?}: {rate} false positives at 10 bits per key");
    }
}

#[test]
fn a_get_over_several_runs_computes_one_digest_and_stops_at_the_first_version() {
    let bench = with_runs(Access::Buffered, 4_000, 4);
    let (db, keyspace) = bench.open();
    let mut total = 0;
    for number in (0..8_000).step_by(2) {
        let (cost, found) = bench.cost(&db, || keyspace.get(key(number)).unwrap());
        assert_eq!(found.unwrap(), &value(number));
        assert_eq!(cost.digests, 1);
        assert_eq!(cost.blocks + cost.hits, cost.checked - cost.rejected);
        // The newest run is checked first: its keys cost one probe.
        if number / 2 % 4 == 3 {
            assert_eq!(cost.checked, 1);
        }
        total += cost.blocks + cost.hits;
    }
    assert!(total < 4_200, "{total} blocks for 4,000 gets");
}

/// The families that answer points from digests: alone, and several at different levels.
fn families() -> Vec<(Access, Filters, &'static [&'static str])> {
    fn row(
        access: Access,
        row: &str,
        names: &'static [&'static str],
    ) -> (Access, Filters, &'static [&'static str]) {
        (access, filters(row), names)
    }
    let mixed = |access| {
        let [first, deeper] = ["elastic@12", "blocked-bloom@10"].map(|name| vec![name.parse().unwrap()]);
        let filters = Filters::per_level([first, deeper]);
        (access, filters, ["elastic", "blocked-bloom"].as_slice())
    };
    vec![
        row(Access::Mapped, "elastic@12", &["elastic"]),
        row(Access::Buffered, "elastic@12", &["elastic"]),
        row(Access::Direct, "elastic:units=6@12", &["elastic"]),
        row(Access::Mapped, "blocked-bloom@10", &["blocked-bloom"]),
        row(Access::Buffered, "blocked-bloom:probes=7@10", &["blocked-bloom"]),
        row(Access::Mapped, "blocked-bloom@10 elastic@12", &["blocked-bloom", "elastic"]),
        row(Access::Buffered, "blocked-bloom@10 elastic@12", &["blocked-bloom", "elastic"]),
        mixed(Access::Mapped),
        mixed(Access::Buffered),
    ]
}

#[test]
fn a_lookup_computes_one_digest_for_all_families() {
    for (access, filters, names) in families() {
        let bench = Bench::new(access, roomy().filters(filters));
        fill_runs(&bench, 4_000, 4);
        let (db, keyspace) = bench.open();
        // All of it at the deepest level, and two runs above it.
        db.compact_range(&keyspace, ..).unwrap();
        for run in 0..2 {
            for number in (run..4_000).step_by(9) {
                keyspace.put(key(2 * number), value(number)).unwrap();
            }
            db.flush().unwrap();
        }
        let mut rejected = 0;
        for number in 4_001..6_000 {
            let (cost, found) = bench.cost(&db, || keyspace.get(key(number)).unwrap());
            assert_eq!(found.is_some(), number % 2 == 0);
            assert_eq!(cost.digests, 1, "{access:?} {names:?}: {cost:?}");
            assert!((1..=3).contains(&cost.checked));
            rejected += cost.rejected;
        }
        assert!(rejected > 3_000, "{access:?} {names:?}: {rejected}");
        let keys: Vec<_> = (1_001..1_400).map(key).collect();
        let (cost, _) = bench.cost(&db, || keyspace.multi_get(&keys).unwrap());
        assert_eq!(cost.digests, 399, "{access:?} {names:?}");
        let designs = filter_designs(&db, 1);
        for name in names {
            assert!(designs.iter().any(|filter| filter.starts_with(name)), "{name}: {designs:?}");
        }

        // A key that a memtable answers is not hashed, alone or in a batch.
        for number in 1_000..1_100 {
            keyspace.put(key(number), b"new").unwrap();
        }
        let keys: Vec<_> = (1_000..1_100).map(key).collect();
        let (cost, found) = bench.cost(&db, || keyspace.multi_get(&keys).unwrap());
        assert!(found.iter().all(|value| value.as_deref() == Some(b"new".as_slice())));
        assert_eq!(
            (cost.digests, cost.checked, cost.blocks, cost.hits),
            (0, 0, 0, 0),
            "{access:?} {names:?}"
        );
        let keys: Vec<_> = (1_050..1_150).map(key).collect();
        let (cost, _) = bench.cost(&db, || keyspace.multi_get(&keys).unwrap());
        assert_eq!(cost.digests, 50, "{access:?} {names:?}");
    }
}

#[test]
fn a_multi_get_costs_as_much_as_single_gets() {
    let bench = with_runs(Access::Buffered, 4_000, 4);
    let keys: Vec<_> = (0..200).map(|number| key(37 * number)).collect();
    let (db, keyspace) = bench.open();
    let (alone, found) =
        bench.cost(&db, || keys.iter().map(|key| keyspace.get(key).unwrap()).collect::<Vec<_>>());
    drop((db, keyspace));
    let (db, keyspace) = bench.open();
    let (together, values) = bench.cost(&db, || keyspace.multi_get(&keys).unwrap());
    assert_eq!(values, found);
    assert_eq!(together, alone);
    assert_eq!(together.digests, 200);
}

#[test]
fn without_filters_each_run_costs_a_block_and_no_digest() {
    let keyspace = roomy().filters(Filters::none());
    let bench = Bench::new(Access::Buffered, keyspace);
    let (db, keyspace) = bench.open();
    for run in 0..3 {
        for number in (run..300).step_by(3) {
            keyspace.put(key(2 * number), value(number)).unwrap();
        }
        db.flush().unwrap();
    }
    let (cost, found) = bench.cost(&db, || keyspace.get(key(301)).unwrap());
    assert!(found.is_none());
    assert_eq!((cost.blocks, cost.digests, cost.checked), (3, 0, 0));
}

#[test]
fn a_seek_reads_one_block_of_each_run_and_two_only_where_it_falls_between_them() {
    for access in ACCESSES {
        let bench = Bench::new(access, roomy());
        let mut random = SplitMix64::new(3);
        let mut sorted = BTreeSet::new();
        {
            let (db, keyspace) = bench.open();
            for _ in 0..4 {
                for _ in 0..1_000 {
                    let (number, length) = (random.below(1 << 30), random.below(200) as usize);
                    keyspace.put(key(number), vec![b'v'; length]).unwrap();
                    sorted.insert(key(number));
                }
                db.flush().unwrap();
            }
        }
        let (mut forward_total, mut backward_total, seek_count) = (0, 0, 60);
        for seek in 0..seek_count {
            // Every second target exists.
            let target = key(random.below(1 << 30));
            let target = match seek % 2 {
                0 => sorted.range(target.clone()..).next().unwrap_or(&target).clone(),
                _ => target,
            };
            let (db, keyspace) = bench.open();
            let ahead = || keyspace.range(target.clone()..).next().map(|entry| entry.unwrap().0.to_vec());
            let (forward, first) = bench.cost(&db, ahead);
            assert_eq!(first.as_ref(), sorted.range(target.clone()..).next());
            drop((db, keyspace));
            let (db, keyspace) = bench.open();
            let back =
                || keyspace.range(..=target.clone()).next_back().map(|entry| entry.unwrap().0.to_vec());
            let (backward, last) = bench.cost(&db, back);
            assert_eq!(last.as_ref(), sorted.range(..=target.clone()).next_back());
            assert!(forward.blocks <= 8 && backward.blocks <= 8, "{access:?}: {forward:?} {backward:?}");
            forward_total += forward.blocks;
            backward_total += backward.blocks;
        }
        let least = seek_count * 4;
        println!("{access:?}: {least} runs sought, {forward_total} and {backward_total} blocks");
        assert!(forward_total <= least * 105 / 100, "{access:?}: {forward_total} blocks");
        assert!(backward_total <= least * 108 / 100, "{access:?}: {backward_total} blocks");
    }
}

#[test]
fn a_seek_to_a_present_key_reads_one_block() {
    let bench = with_runs(Access::Buffered, 2_000, 1);
    for number in (0..4_000).step_by(74) {
        let (db, keyspace) = bench.open();
        let mut scan = keyspace.range(..);
        let (cost, ()) = bench.cost(&db, || {
            scan.seek(key(number)).unwrap();
            assert!(scan.move_next().unwrap());
        });
        assert_eq!(scan.key(), key(number));
        drop(scan);
        assert_eq!(db.statistics().blocks_read, 1, "{cost:?}");
    }
}

/// Steps through a range from the front, from the back, or from both.
fn walk<R: KeyRangeBounds>(keyspace: &Keyspace, range: R, style: usize) -> BTreeSet<Vec<u8>> {
    let mut scan = keyspace.range(range);
    let mut seen = BTreeSet::new();
    for turn in 0.. {
        let is_front = style == 0 || style == 2 && turn % 3 == 0;
        let Some(step) = (if is_front { scan.next() } else { scan.next_back() }) else { break };
        assert!(seen.insert(step.unwrap().0.to_vec()), "an entry came twice");
    }
    seen
}

#[test]
fn scans_read_each_block_once_in_both_directions() {
    for access in ACCESSES {
        let bench = with_runs(access, 3_000, 3);
        let mut costs = Vec::new();
        for style in 0..3 {
            let (db, keyspace) = bench.open();
            let (cost, seen) = bench.cost(&db, || walk(&keyspace, .., style));
            assert_eq!(seen, (0..3_000).map(|number| key(2 * number)).collect());
            assert_eq!(cost.opened, 3);
            // Where the ends meet, the long read of one may include blocks of the other.
            if style < 2 {
                assert_eq!(cost.bytes, cost.blocks * BLOCK, "{access:?}: a block was read twice");
            }
            // With direct access the sections after the data blocks share pages.
            if access == Access::Buffered && style < 2 {
                let reads = bench.vfs.operations();
                let reads = reads.iter().filter(|operation| {
                    operation.kind == OperationKind::Read && operation.file_name().ends_with(".table")
                });
                let mut places: Vec<_> = reads
                    .map(|read| (read.path.clone(), read.offset, read.offset + read.length_bytes))
                    .collect();
                places.sort();
                let is_apart = |pair: &[(_, u64, u64)]| pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1;
                assert!(places.windows(2).all(is_apart), "{access:?}: a part of a table was read twice");
            }
            let (again, _) = bench.cost(&db, || walk(&keyspace, .., style));
            assert_eq!((again.blocks, again.file_reads), (0, 0), "all blocks are in the cache");
            costs.push(cost.blocks);
        }
        assert!(costs.iter().all(|&blocks| blocks == costs[0]), "{access:?}: {costs:?}");
        assert!((80..110).contains(&costs[0]), "{access:?}: {costs:?}");
    }
}

#[test]
fn a_short_scan_reads_no_unused_blocks() {
    let bench = with_runs(Access::Buffered, 3_000, 1);
    for style in 0..2 {
        let (db, keyspace) = bench.open();
        // 20 entries of 117 bytes are in one block or in two.
        let (cost, seen) = bench.cost(&db, || walk(&keyspace, key(1_000)..key(1_040), style));
        assert_eq!(seen.len(), 20);
        assert!(cost.blocks <= 2, "{cost:?}");
        let (next, _) = bench.cost(&db, || walk(&keyspace, key(1_000)..=key(1_038), style));
        assert_eq!(next.blocks, 0);
    }
    // Nothing beyond the bounds is read, however long the range is.
    for access in ACCESSES {
        for count in [100, 500, 1_700] {
            for style in 0..2 {
                let (db, keyspace) = bench_of(access, &bench).open();
                let bench = bench_of(access, &bench);
                keyspace.get(key(0)).unwrap();
                let (cost, seen) =
                    bench.cost(&db, || walk(&keyspace, key(1_000)..key(1_000 + 2 * count), style));
                assert_eq!(seen.len() as u64, count);
                assert!(cost.bytes <= (count * 117 / BLOCK + 3) * BLOCK, "{access:?} {count}: {cost:?}");
                assert!(cost.bytes <= cost.blocks * BLOCK, "{access:?} {count}: {cost:?}");
            }
        }
    }
}

/// The same store, its tables read in another way.
fn bench_of(access: Access, bench: &Bench) -> Bench {
    Bench { vfs: bench.vfs.clone(), access, keyspace: bench.keyspace.clone() }
}

#[test]
fn whole_scans_and_compactions_read_many_blocks_at_once() {
    for access in [Access::Buffered, Access::Direct] {
        let bench = with_runs(access, 12_000, 2);
        let (db, keyspace) = bench.open();
        keyspace.get(key(0)).unwrap();
        keyspace.get(key(2)).unwrap();
        let (cost, seen) = bench.cost(&db, || walk(&keyspace, .., 0));
        assert_eq!(seen.len(), 12_000);
        // 1, 1, 2, 4, 8, 16, 32, 64, ... blocks of each run.
        assert!(cost.blocks > 340 && cost.file_reads <= 20, "{access:?}: {cost:?}");
        drop((db, keyspace));
        let (db, keyspace) = bench.open();
        let (cost, ()) = bench.cost(&db, || db.compact_range(&keyspace, ..).unwrap());
        assert!(db.statistics().compaction_bytes_read > 340 * BLOCK);
        // Each run: footer, directory, properties, index, a piece of the filter, and the blocks in two reads.
        assert!(cost.blocks > 340 && cost.file_reads <= 2 * 8, "{access:?}: {cost:?}");
    }
}

#[test]
fn first_and_last_read_one_block() {
    for access in ACCESSES {
        let bench = with_runs(access, 3_000, 3);
        let (db, keyspace) = bench.open();
        let (cost, first) = bench.cost(&db, || keyspace.first().unwrap().unwrap());
        assert_eq!(first.0, &key(0));
        assert_eq!((cost.blocks, cost.opened), (1, 1), "{access:?}");
        // The block is plain, so that no other one can have a version of the last key.
        let (cost, last) = bench.cost(&db, || keyspace.last().unwrap().unwrap());
        assert_eq!(last.0, &key(5_998));
        assert_eq!((cost.blocks, cost.opened), (1, 1), "{access:?}");
        let (cost, _) = bench.cost(&db, || (keyspace.first().unwrap(), keyspace.last().unwrap()));
        assert_eq!(cost.blocks, 0, "{access:?}");
    }
}

#[test]
fn ranges_that_are_empty_by_their_bounds_or_outside_of_all_tables_read_nothing() {
    let bench = with_runs(Access::Buffered, 3_000, 3);
    let (db, keyspace) = bench.open();
    let at = |text: &str| text.as_bytes().to_vec();
    let ranges = [
        (Bound::Unbounded, Bound::Excluded(key(0))),
        (Bound::Excluded(key(5_998)), Bound::Unbounded),
        (Bound::Included(at("l")), Bound::Included(at("z"))),
        (Bound::Included(at("a")), Bound::Excluded(at("key/"))),
        (Bound::Included(key(100)), Bound::Excluded(key(100))),
        (Bound::Excluded(key(100)), Bound::Excluded(key(100))),
        (Bound::Excluded(key(100)), Bound::Included(key(100))),
        (Bound::Included(key(200)), Bound::Included(key(100))),
        (Bound::Unbounded, Bound::Excluded(Vec::new())),
    ];
    for range in ranges {
        for style in 0..3 {
            let (cost, seen) = bench.cost(&db, || walk(&keyspace, range.clone(), style));
            assert!(seen.is_empty());
            assert_eq!((cost.blocks, cost.file_reads, cost.opened), (0, 0, 0), "{range:?}");
        }
    }
    for outside in [at("a"), at("z"), at("key"), key(6_000)] {
        let (cost, found) = bench.cost(&db, || keyspace.get(&outside).unwrap());
        assert!(found.is_none());
        assert_eq!((cost.blocks, cost.file_reads, cost.opened, cost.checked, cost.digests), (0, 0, 0, 0, 0));
    }
    // A scan that is not stepped reads nothing either.
    let (cost, _) = bench.cost(&db, || drop(keyspace.range(key(0)..)));
    assert_eq!(cost.opened, 0);
}

/// 120,000 entries in one level of many tables.
fn leveled() -> Bench {
    let options = KeyspaceOptions::default().memtable_bytes(2 << 20).table_bytes(256 << 10).level0_runs(2);
    let bench = Bench::new(Access::Buffered, options);
    let (db, keyspace) = bench.open();
    let mut batch = tamis::WriteBatch::new();
    for number in 0..120_000 {
        batch.put(&keyspace, key(2 * number), &value(number)[..40]).unwrap();
        if batch.len() == 1_000 {
            db.write(std::mem::take(&mut batch)).unwrap();
        }
    }
    db.compact_range(&keyspace, ..).unwrap();
    db.close().unwrap();
    bench
}

#[test]
fn open_reads_no_table_and_reads_open_only_the_tables_they_need() {
    let bench = leveled();
    bench.vfs.reset();
    let (db, keyspace) = bench.open();
    assert_eq!(bench.vfs.tally_of(OperationKind::Open, ".table").count, 0);
    assert_eq!(bench.vfs.tally_of(OperationKind::Read, ".table").count, 0);
    let read = bench.vfs.tally(OperationKind::Read).bytes;
    assert!(read < 64 << 10, "open read {read} bytes");
    assert_eq!(db.open_report().replayed_entries, 0);
    let statistics = db.statistics();
    let levels = &statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap().levels;
    let table_count: usize = levels.iter().map(|level| level.table_count).sum();
    assert!(table_count > 20, "{table_count} tables");
    assert_eq!(levels.iter().map(|level| level.entry_count).sum::<u64>(), 120_000);

    let (cost, found) = bench.cost(&db, || keyspace.get(key(100_000)).unwrap());
    assert!(found.is_some());
    assert_eq!((cost.opened, cost.blocks), (1, 1));
    let (cost, seen) = bench.cost(&db, || walk(&keyspace, key(50_000)..key(50_100), 0));
    assert_eq!(seen.len(), 50);
    assert_eq!(cost.opened, 1);
    assert!(cost.blocks <= 2);
    let (cost, seen) = bench.cost(&db, || walk(&keyspace, key(10_000)..key(40_000), 1));
    assert_eq!(seen.len(), 15_000);
    assert!((2..8).contains(&cost.opened), "{cost:?}");
    drop((db, keyspace));
    let (db, keyspace) = bench.open();
    let (cost, _) = bench.cost(&db, || (keyspace.first().unwrap(), keyspace.last().unwrap()));
    assert_eq!((cost.opened, cost.blocks), (2, 2));
}

#[test]
fn a_scan_does_not_open_the_table_after_its_upper_bound() {
    let bench = leveled();
    let (db, keyspace) = bench.open();
    let first = keyspace.first().unwrap().unwrap();
    for style in 0..2 {
        let (cost, seen) = bench.cost(&db, || walk(&keyspace, first.0.to_vec()..=key(20), style));
        assert_eq!(seen.len(), 11);
        assert_eq!(cost.opened, 0, "the first table is open already");
    }
}

/// Written blocks are compared with the blocks that a full scan reads.
#[test]
fn the_blocks_that_flushes_and_compactions_write_are_counted() {
    for compression in [Compression::None, Compression::Lz4] {
        let options = roomy().compression(vec![compression]);
        let bench = Bench::new(Access::Buffered, options);
        let (db, keyspace) = bench.open();
        let fill = |round: u64| {
            for number in 0..3_000 {
                keyspace.put(key(number), value(number + round)).unwrap();
            }
            db.flush().unwrap();
            db.statistics()
        };
        let blocks_of_walk = || {
            let (cost, seen) = bench.cost(&db, || walk(&keyspace, .., 0));
            assert!(seen.len() == 3_000 && cost.hits == 0, "{cost:?}");
            cost.blocks
        };
        let one = fill(0);
        assert!(one.flush_blocks_written > 80);
        assert_eq!((one.flush_blocks_written, one.compaction_blocks_written), (blocks_of_walk(), 0));
        let two = fill(1);
        assert!(two.flush_blocks_written > one.flush_blocks_written + 80);
        db.compact_range(&keyspace, ..).unwrap();
        let merged = db.statistics();
        assert_eq!(merged.flush_blocks_written, two.flush_blocks_written);
        assert_eq!(merged.compaction_blocks_written, blocks_of_walk());
    }
}

#[test]
fn tables_are_written_in_pieces_of_one_huge_page_each() {
    const PIECE: u64 = 2 << 20;
    let bench = Bench::new(Access::Mapped, roomy());
    let (db, keyspace) = bench.open();
    for number in 0..60_000 {
        keyspace.put(key(number), value(number)).unwrap();
    }
    bench.vfs.reset();
    db.flush().unwrap();
    let is_table = |operation: &Operation| {
        operation.kind == OperationKind::Append
            && operation.path.extension().is_some_and(|suffix| suffix == "tmp")
    };
    let mut appends: Vec<_> = bench.vfs.operations().into_iter().filter(is_table).collect();
    let last = appends.pop().unwrap();
    assert!(appends.len() >= 3 && last.offset == PIECE * appends.len() as u64);
    for (index, append) in appends.iter().enumerate() {
        assert_eq!((append.offset, append.length_bytes), (PIECE * index as u64, PIECE));
    }
}

#[test]
fn a_random_fill_writes_a_bounded_number_of_bytes() {
    let options = KeyspaceOptions::default().memtable_bytes(256 << 10).table_bytes(256 << 10);
    let bench = Bench::new(Access::Buffered, options);
    let (db, keyspace) = bench.open();
    bench.vfs.reset();
    let mut random = SplitMix64::new(5);
    for _ in 0..80_000 {
        let number = random.below(1 << 39);
        keyspace.put(format!("{number:012}"), &value(number)[..100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let statistics = db.statistics();
    assert_eq!(statistics.user_bytes_written, 80_000 * 112);
    // The statistics agree with the file system.
    let written = |suffix| bench.vfs.tally_of(OperationKind::Append, suffix).bytes;
    let tables = written(".table") + written(".tmp");
    assert_eq!(statistics.flush_bytes_written + statistics.compaction_bytes_written, tables);
    let log = written(".log") + written(".obsolete");
    assert!(statistics.log_bytes_written <= log && log < statistics.log_bytes_written + (64 << 10));
    let amplification = statistics.write_amplification();
    println!("write amplification {amplification:.2}");
    assert!(amplification < 6.5, "write amplification {amplification:.2}");
    assert!(statistics.trivial_moves < 1_000);
}

/// Eighteen bytes in addition to key and value: the smallest possible frame and batch of a single put.
#[test]
fn a_put_takes_little_more_than_its_key_and_value_in_the_log() {
    let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
    let keyspace = db.default_keyspace();
    let put = |count: u64| {
        let before = db.statistics().log_bytes_written;
        for number in 0..count {
            keyspace.put([number as u8; 16], [7; 100]).unwrap();
        }
        (db.statistics().log_bytes_written - before) as f64 / count as f64
    };
    assert_eq!(put(100), 131.0, "sequence numbers of one byte");
    assert_eq!(put(20_000).ceil(), 133.0, "and of three at most");
}

/// A range is counted without reading a block, and in a compacted store to within two blocks at each end.
#[test]
fn an_approximate_count_reads_no_block() {
    let memory = MemVfs::new();
    let options = inline_options().table_access(Access::Buffered);
    let db = open_on(Arc::new(memory), options).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for number in 0..20_000_u32 {
        keyspace.put(number.to_be_bytes(), [1; 50]).unwrap();
    }
    db.compact_range(&keyspace, ..).unwrap();
    for number in 20_000..20_100_u32 {
        keyspace.put(number.to_be_bytes(), [1; 50]).unwrap();
    }
    let before = db.statistics().blocks_read;
    for (lower, upper) in [(0, 20_000), (5_000, 5_001), (77, 19_000), (12_345, 15_000), (19_990, 20_050)] {
        let count = keyspace.approximate_count(u32::to_be_bytes(lower)..u32::to_be_bytes(upper)).unwrap();
        assert!(count.abs_diff(u64::from(upper - lower)) <= 200, "{lower} to {upper}: {count}");
    }
    assert_eq!(keyspace.approximate_count(20_010_u32.to_be_bytes()..=20_019_u32.to_be_bytes()).unwrap(), 10);
    assert_eq!(keyspace.approximate_count(..).unwrap(), 20_100);
    assert_eq!(keyspace.approximate_count(9_u32.to_be_bytes()..3_u32.to_be_bytes()).unwrap(), 0);
    assert_eq!(db.default_keyspace().approximate_count(..).unwrap(), 0);
    assert_eq!(db.statistics().blocks_read, before);
}

/// Range tombstones in a memtable and in a table, over older tables and the same memtable.
#[test]
fn counts_leave_out_deleted_ranges() {
    let memory = MemVfs::new();
    let db = open_on(Arc::new(memory), inline_options()).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for number in 0..20_000_u32 {
        keyspace.put(number.to_be_bytes(), [1; 50]).unwrap();
    }
    db.compact_range(&keyspace, ..).unwrap();
    let count = |range: std::ops::Range<u32>| {
        keyspace.approximate_count(range.start.to_be_bytes()..range.end.to_be_bytes()).unwrap()
    };
    let check = |range: std::ops::Range<u32>, expected: u64| {
        let found = count(range.clone());
        assert!(found.abs_diff(expected) <= 400, "{range:?}: {found}, expected {expected}");
    };
    keyspace.delete_range(5_000_u32.to_be_bytes()..10_000_u32.to_be_bytes()).unwrap();
    keyspace.delete_range(8_000_u32.to_be_bytes()..12_000_u32.to_be_bytes()).unwrap();
    for number in 6_000..6_100_u32 {
        keyspace.put(number.to_be_bytes(), [2; 50]).unwrap();
    }
    for _ in 0..2 {
        check(0..20_000, 13_100);
        check(4_000..9_000, 1_100);
        check(7_000..11_000, 0);
        check(11_000..13_000, 1_000);
        db.flush().unwrap();
    }
    keyspace.clear().unwrap();
    assert!(count(0..20_000) < 400);
}

/// A batch may have written to both keyspaces: its other half must survive together with the flushed one.
#[test]
fn a_flush_syncs_the_log_only_where_another_keyspace_has_entries_in_it() {
    let bench = Bench::new(Access::Buffered, KeyspaceOptions::default());
    let (db, keyspace) = bench.open();
    let flush = || {
        bench.vfs.reset();
        db.flush().unwrap();
        bench.vfs.tally_of(OperationKind::Sync, ".log").count
    };
    keyspace.put("key", "value").unwrap();
    assert_eq!(flush(), 0, "the other keyspace is empty");
    keyspace.put("key", "value").unwrap();
    db.put("key", "value").unwrap();
    assert_eq!(flush(), 0, "one edit installs the tables of both");
    keyspace.put("key", "value").unwrap();
    db.put("key", vec![1; 2 << 20]).unwrap();
    assert!(flush() > 0, "the large memtable is flushed alone, the other may hold a part of the same batch");
    keyspace.put("key", "value").unwrap();
    assert_eq!(flush(), 0, "the other keyspace has all in tables");
}

/// Two writers insert ascending keys, one following the other: only the ends of their memtables are merged, and reads return all
/// writes, deletes included. If a flush is finished before the slower writer reaches the next memtable, the end is not known: so the
/// test makes several tries.
#[test]
fn writers_nearly_in_key_order_merge_few_bytes() {
    let shares: Vec<f64> = (0..5).map(|_| merged_share_of_two_writers()).collect();
    assert!(shares.iter().any(|&share| share < 0.5), "bytes merged for each that was flushed: {shares:?}");
}

/// Fills and reads a store; returns the merged bytes per flushed byte.
fn merged_share_of_two_writers() -> f64 {
    const COUNT: u32 = 40_000;
    const LAG: u32 = 500;
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    let options = KeyspaceOptions::default().memtable_bytes(1 << 20).table_bytes(1 << 20);
    let keyspace = db.create_keyspace("near", options).unwrap();
    let key = |number: u32| number.to_be_bytes();
    let write = |number: u32| {
        keyspace.put(key(number), [number as u8; 200]).unwrap();
        if number.is_multiple_of(7) {
            keyspace.delete(key(number)).unwrap();
        }
    };
    for number in 0..COUNT + LAG {
        if number < COUNT && number.is_multiple_of(2) {
            write(number);
        }
        if number >= LAG && (number - LAG) % 2 == 1 {
            write(number - LAG);
        }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let statistics = db.statistics();
    for number in 0..COUNT {
        let expected = (!number.is_multiple_of(7)).then_some([number as u8; 200]);
        assert_eq!(keyspace.get(key(number)).unwrap().as_deref(), expected.as_ref().map(|value| &value[..]));
    }
    let there = (0..COUNT).filter(|number| !number.is_multiple_of(7));
    assert!(keyspace.range(..).map(|entry| entry.unwrap().0.to_vec()).eq(there.map(|n| key(n).to_vec())));
    assert!(statistics.flushes >= 8, "{} flushes", statistics.flushes);
    statistics.compaction_bytes_written as f64 / statistics.flush_bytes_written as f64
}
