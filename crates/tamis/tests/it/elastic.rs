//! Elastic filters in a store: units are loaded where lookups have false positives, within the budget.

use std::path::PathBuf;

use tamis::{Db, Keyspace, KeyspaceOptions};
use tamis_vfs::{Access, MemVfs, Vfs};

use crate::support::{
    SplitMix64, filter_designs, filters, inline_options, key, open_in_memory, small_keyspace,
};

const KEY_COUNT: u64 = 40_000;

/// Even numbers, in one level of many tables.
fn fill(vfs: &MemVfs) {
    let db = open_in_memory(vfs, inline_options()).unwrap();
    let options = small_keyspace().filters(filters("elastic:units=4@12"));
    let keyspace = db.create_keyspace("k", options).unwrap();
    for number in 0..KEY_COUNT {
        keyspace.put(key(2 * number), [7; 40]).unwrap();
    }
    db.compact_range(&keyspace, ..).unwrap();
    drop(keyspace);
    db.close().unwrap();
}

fn open(vfs: &MemVfs, cache_bytes: u64) -> (Db, Keyspace) {
    let options =
        inline_options().table_access(Access::Buffered).cache_bytes(cache_bytes).cache_pinned_percent(100);
    let db = open_in_memory(vfs, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (db, keyspace)
}

fn false_reads(db: &Db) -> u64 {
    db.statistics().reads.iter().map(|level| level.points.false_positives).sum()
}

/// Looks up absent keys, nine of ten of them in the first tenth of the keys; returns the share of false-positive reads.
fn look_up(db: &Db, keyspace: &Keyspace, random: &mut SplitMix64, count: u64) -> f64 {
    let before = false_reads(db);
    for _ in 0..count {
        let width = if random.below(10) > 0 { KEY_COUNT / 10 } else { KEY_COUNT - 1 };
        assert!(keyspace.get(key(2 * random.below(width) + 1)).unwrap().is_none());
    }
    (false_reads(db) - before) as f64 / count as f64
}

/// Units in memory and units on disk, of the tables in order of their numbers.
fn units(db: &Db) -> (u64, u64) {
    let designs = filter_designs(db, 1);
    let parse = |design: &str| -> (u64, u64) {
        let words: Vec<&str> = design.split(' ').collect();
        assert_eq!((words[0], words[2], words[4]), ("elastic:", "of", "units"), "{design}");
        (words[1].parse().unwrap(), words[3].parse().unwrap())
    };
    designs.iter().map(|filter| parse(filter)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[test]
fn units_are_loaded_for_tables_with_false_positives() {
    let vfs = MemVfs::new();
    fill(&vfs);
    // With room for all, every unit is there.
    let (db, keyspace) = open(&vfs, 64 << 20);
    let all_rate = look_up(&db, &keyspace, &mut SplitMix64::new(1), 20_000);
    let (loaded, on_disk) = units(&db);
    assert!(loaded == on_disk && on_disk > 60, "{loaded} of {on_disk}");
    let pinned = db.statistics().cache_pinned_bytes;
    drop((db, keyspace));

    // Room for the indexes and half of the units.
    let unit_bytes = KEY_COUNT * 3 / 8;
    let budget = pinned - 2 * unit_bytes;
    let (db, keyspace) = open(&vfs, budget);
    let mut random = SplitMix64::new(2);
    let first = look_up(&db, &keyspace, &mut random, 2_000);
    look_up(&db, &keyspace, &mut random, 200_000);
    let learned = look_up(&db, &keyspace, &mut random, 50_000);
    let statistics = db.statistics();
    assert!(statistics.cache_pinned_bytes <= budget);
    let (loaded, _) = units(&db);
    assert!(loaded * 10 > on_disk * 3 && loaded < on_disk, "{loaded} of {on_disk}");
    println!("false-positive reads: {all_rate} with all units, {first} at first, {learned} learned");
    // A plain filter of the same memory, 6 bits per key, has a rate of 0.058.
    assert!(learned < 0.62 * 0.058, "{learned} after {first}, {all_rate} with all units");
    assert_eq!(statistics.corrupt_filters, 0);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn outputs_of_a_compaction_inherit_the_hotness_of_its_inputs() {
    let vfs = MemVfs::new();
    fill(&vfs);
    let (db, keyspace) = open(&vfs, 64 << 20);
    look_up(&db, &keyspace, &mut SplitMix64::new(1), 1_000);
    let pinned = db.statistics().cache_pinned_bytes;
    drop((db, keyspace));
    let (db, keyspace) = open(&vfs, pinned - KEY_COUNT * 6 / 8);
    let mut random = SplitMix64::new(2);
    look_up(&db, &keyspace, &mut random, 200_000);
    let before = look_up(&db, &keyspace, &mut random, 20_000);
    // Every table is written again.
    for number in (0..KEY_COUNT).step_by(50) {
        keyspace.put(key(2 * number), [8; 40]).unwrap();
    }
    db.compact_range(&keyspace, ..).unwrap();
    look_up(&db, &keyspace, &mut random, 5_000);
    let after = look_up(&db, &keyspace, &mut random, 20_000);
    assert!(
        after < 2.0 * before + 0.005,
        "{after} false-positive reads per lookup, {before} before the compaction"
    );
}

const TABLE_COUNT: usize = 100;
/// A unit of three bits a key is twelve lines.
const TABLE_KEYS: u64 = 2048;
const UNIT_COUNT: u32 = 4;
const UNIT_BYTES: u64 = TABLE_KEYS * 3 / 8;

fn key_of(table: usize, number: u64) -> Vec<u8> {
    format!("{table:02}/{number:012}").into_bytes()
}

/// A store of a hundred tables in one run, read into memory.
fn adjacent_tables(vfs: &MemVfs, filter: &str) -> (Db, Keyspace) {
    let db = open_in_memory(vfs, inline_options()).unwrap();
    // One block per table makes indexes small, so that filters take most of the memory.
    let options = KeyspaceOptions::default().block_bytes(64 << 10).filters(filters(filter));
    let keyspace = db.create_keyspace("k", options).unwrap();
    vfs.create_dir_all("/new".as_ref()).unwrap();
    let mut paths = Vec::new();
    for table in 0..TABLE_COUNT {
        let path = PathBuf::from(format!("/new/{table}.table"));
        let mut writer = keyspace.table_writer(&path).unwrap();
        for number in 0..TABLE_KEYS {
            writer.put(key_of(table, number << 20), b"").unwrap();
        }
        writer.finish().unwrap();
        paths.push(path);
    }
    db.ingest(&keyspace, &paths).unwrap();
    drop(keyspace);
    db.close().unwrap();
    open(vfs, 64 << 20)
}

/// Absent keys, their tables drawn by shares.
struct Lookups {
    cumulative: Vec<f64>,
    random: SplitMix64,
}

impl Lookups {
    fn new(shares: &[f64]) -> Self {
        let mut sum = 0.0;
        let cumulative = shares.iter().map(|share| {
            sum += share;
            sum
        });
        Self { cumulative: cumulative.collect(), random: SplitMix64::new(5) }
    }

    fn run(&mut self, keyspace: &Keyspace, count: u64) {
        for _ in 0..count {
            let place = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let place = place * self.cumulative[TABLE_COUNT - 1];
            let table = self.cumulative.partition_point(|sum| *sum <= place);
            let number = self.random.below((TABLE_KEYS - 1) << 20) | 1;
            assert!(keyspace.get(key_of(table, number)).unwrap().is_none());
        }
    }
}

/// The false-positive reads with the best choice of half of the units: each next unit goes to the table of which it
/// saves most reads.
fn least_false_reads(shares: &[f64], unit_fpr: f64) -> f64 {
    let mut loaded = vec![0; shares.len()];
    let reads = |table: usize, count: u32| shares[table] * unit_fpr.powi(count.cast_signed());
    for _ in 0..shares.len() * UNIT_COUNT as usize / 2 {
        let saving = |table: usize| reads(table, loaded[table]) - reads(table, loaded[table] + 1);
        let free = (0..shares.len()).filter(|table| loaded[*table] < UNIT_COUNT);
        let best = free.max_by(|left, right| saving(*left).total_cmp(&saving(*right))).unwrap();
        loaded[best] += 1;
    }
    loaded.iter().enumerate().map(|(table, count)| reads(table, *count)).sum()
}

/// A small version of the experiment `bloom-elastic`: half of the units fit, and the store chooses them.
#[test]
fn half_of_the_units_come_close_to_the_best_choice_and_scattered_lookups_lose_nothing() {
    let (elastic_vfs, plain_vfs) = (MemVfs::new(), MemVfs::new());
    let (db, keyspace) = adjacent_tables(&elastic_vfs, &format!("elastic:units={UNIT_COUNT}@12"));
    let (plain_db, plain_keyspace) = adjacent_tables(&plain_vfs, "blocked-bloom@6");
    for table in 0..TABLE_COUNT {
        assert!(keyspace.get(key_of(table, 1 << 20)).unwrap().is_some());
    }
    let all_units = UNIT_BYTES * u64::from(UNIT_COUNT) * TABLE_COUNT as u64;
    let index_bytes = db.statistics().cache_pinned_bytes - all_units;
    assert_eq!(units(&db), (400, 400));
    drop((db, keyspace));
    let skewed: Vec<f64> = (1..=TABLE_COUNT).map(|rank| (rank as f64).powf(-0.99)).collect();
    for (shares, most_of_plain) in [(skewed, 0.62), (vec![1.0; TABLE_COUNT], 1.03)] {
        let (db, keyspace) = open(&elastic_vfs, (index_bytes + all_units / 2).next_multiple_of(100));
        let mut lookups = Lookups::new(&shares);
        lookups.run(&keyspace, 150_000);
        let taught = false_reads(&db);
        let mut same = Lookups { cumulative: lookups.cumulative.clone(), random: lookups.random.clone() };
        lookups.run(&keyspace, 250_000);
        let learned = (false_reads(&db) - taught) as f64;
        let before = false_reads(&plain_db);
        same.run(&plain_keyspace, 250_000);
        let plain = (false_reads(&plain_db) - before) as f64;
        // Two units have the rate of a plain filter of their size.
        let unit_fpr = (plain / 250_000.0).sqrt();
        let expected = least_false_reads(&shares, unit_fpr);
        let optimum = expected / shares.iter().sum::<f64>() * 250_000.0;
        let (of_plain, of_optimum) = (learned / plain, learned / optimum);
        println!(
            "{of_plain:.3} of a plain filter's false-positive reads, {of_optimum:.3} of the best choice's"
        );
        assert!(of_plain <= most_of_plain, "{of_plain}");
        assert!(of_optimum <= 1.05, "{of_optimum}");
        assert!(db.statistics().cache_pinned_bytes <= index_bytes + all_units / 2 + 100);
        let (loaded, _) = units(&db);
        assert!(loaded <= 202, "{loaded} units, where indexes leave room for 200");
    }
}
