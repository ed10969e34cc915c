//! The database compared with a `BTreeMap`: random operations, including operands, expiry, snapshots, flushes, compactions and reopens.

use std::{
    collections::BTreeMap,
    ops::{Bound, RangeBounds},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tamis::{
    Db, Durability, Filters, Keyspace, KeyspaceOptions, Layout, ManualClock, Merge, MergeOperator, Options,
    Scan, Snapshot, Views, WriteBatch,
};
use tamis_vfs::MemVfs;

use crate::support::{
    Cases, FILTERS, SplitMix64, change_options, filters, inline_options, open_with_clock, outside_table,
    rebuild_filters, small_keyspace, time_of,
};

/// The writes to each key since its last delete.
type Writes = BTreeMap<Vec<u8>, Written>;
/// The entries that a reader sees.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// See [`Writes`]. The operators of both keyspaces append, with this separator.
#[derive(Debug, Clone, Default)]
struct Written {
    put: Option<Vec<u8>>,
    expires_at: Option<SystemTime>,
    operands: Vec<Vec<u8>>,
}

const SEPARATOR: &[u8] = b"|";

impl Written {
    fn put(value: Vec<u8>) -> Self {
        Self { put: Some(value), ..Self::default() }
    }

    fn value_at(&self, time: SystemTime) -> Option<Vec<u8>> {
        let put = self.put.as_ref().filter(|_| self.expires_at.is_none_or(|at| at > time));
        let all: Vec<&[u8]> = put.into_iter().chain(&self.operands).map(Vec::as_slice).collect();
        (!all.is_empty()).then(|| all.join(SEPARATOR))
    }
}

fn model_at(writes: &Writes, time: SystemTime) -> Model {
    let entry = |(key, written): (&Vec<u8>, &Written)| Some((key.clone(), written.value_at(time)?));
    writes.iter().filter_map(entry).collect()
}

/// Appends, and cannot combine operands.
struct AppendEach;

impl Merge for AppendEach {
    fn merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let all: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        Ok(all.join(SEPARATOR))
    }
}

fn operators() -> [MergeOperator; 2] {
    [MergeOperator::append(SEPARATOR), MergeOperator::new("append each", AppendEach)]
}

fn options() -> Options {
    inline_options().merge_operators(vec![operators()[1].clone()])
}

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys that are prefixes of each other, with runs of 0x00 and 0xFF.
fn key(random: &mut SplitMix64) -> Vec<u8> {
    let length = 1 + random.below(6) as usize;
    let symbols = [0x00, 0x01, b'a', b'b', 0xFE, 0xFF];
    (0..length).map(|_| symbols[random.below(6) as usize]).collect()
}

fn value(random: &mut SplitMix64) -> Vec<u8> {
    let length = match random.below(50) {
        0 => 9_000,
        1..10 => 0,
        _ => random.below(120) as usize,
    };
    vec![random.next_u64() as u8; length]
}

fn bounds(random: &mut SplitMix64) -> Bounds {
    let mut bound = || match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(random)),
        _ => Bound::Excluded(key(random)),
    };
    (bound(), bound())
}

fn check_scan(mut scan: Scan, model: &Model, bounds: &Bounds, random: &mut SplitMix64) {
    let mut expected: Vec<_> = model.iter().filter(|(key, _)| bounds.contains(*key)).collect();
    // Steps from both ends until they meet.
    let style = random.below(3);
    while !expected.is_empty() {
        let is_front = style == 0 || style == 2 && random.below(2) == 0;
        let (step, want) = if is_front {
            let most = if random.below(4) == 0 { expected.len().min(60) } else { 1 };
            let skipped = random.below(most as u64) as usize;
            expected.drain(..skipped);
            (scan.nth(skipped), expected.remove(0))
        } else {
            (scan.next_back(), expected.pop().unwrap())
        };
        let (key, value) = step.expect("an entry is missing").unwrap();
        assert_eq!((&*key, &*value), (want.0.as_slice(), want.1.as_slice()), "front: {is_front}");
    }
    assert!(scan.next().is_none(), "an entry too many");
    assert!(scan.next_back().is_none(), "an entry too many at the back");
}

/// Walks a scan back and forth with seeks.
fn check_walk(mut scan: Scan, model: &Model, bounds: &Bounds, random: &mut SplitMix64) {
    let entries: Vec<_> = model.iter().filter(|(key, _)| bounds.contains(*key)).collect();
    // The entry that `move_next` returns next.
    let mut next = 0_usize;
    let mut is_on = false;
    for _ in 0..12 {
        match random.below(4) {
            0 => {
                let target = key(random);
                scan.seek(&target).unwrap();
                next = entries.partition_point(|(key, _)| **key < target);
                is_on = false;
            }
            1 => {
                let moved = scan.move_prev().unwrap();
                let wanted = if is_on { next.checked_sub(2) } else { next.checked_sub(1) };
                assert_eq!(moved, wanted.is_some());
                match wanted {
                    Some(index) => {
                        assert_eq!(scan.key(), entries[index].0.as_slice());
                        next = index + 1;
                    }
                    None => next = 0,
                }
                is_on = moved;
            }
            _ => {
                let moved = scan.move_next().unwrap();
                assert_eq!(moved, next < entries.len());
                if moved {
                    assert_eq!(scan.key(), entries[next].0.as_slice());
                    assert_eq!(scan.value(), entries[next].1.as_slice());
                    next += 1;
                }
                is_on = moved;
            }
        }
    }
}

/// As often none, automatic ones, and a row of [`FILTERS`].
fn other_filters(random: &mut SplitMix64) -> Filters {
    match random.below(3) {
        0 => Filters::none(),
        1 => Filters::auto([16.0, 0.5, 4.0][random.below(3) as usize]),
        _ => filters(FILTERS[random.below(FILTERS.len() as u64) as usize]),
    }
}

const TIERED: Layout = Layout::Tiered { runs_per_level: 2, space_amplification_percent: 150 };
const PARTITIONED: Layout = Layout::Partitioned { tables_per_partition: 4 };
const LAYOUTS: [Layout; 3] = [Layout::Leveled, TIERED, PARTITIONED];

struct World {
    /// The filters of the first tables: a row of [`FILTERS`], or automatic ones.
    filters: Filters,
    vfs: MemVfs,
    db: Option<Db>,
    clock: Arc<ManualClock>,
    writes: Vec<Writes>,
    snapshots: Vec<(Snapshot, Vec<Model>)>,
    table_count: u64,
    /// Of the keyspaces, when they are created.
    views: Views,
    /// Views that the closed handles have built and rebuilt.
    views_made: [u64; 2],
}

impl World {
    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// The entries that a reader of now sees.
    fn model(&self, index: usize) -> Model {
        model_at(&self.writes[index], time_of(&self.clock))
    }

    fn put(&mut self, index: usize, key: Vec<u8>, value: Vec<u8>) {
        self.writes[index].insert(key, Written::put(value));
    }

    fn put_until(&mut self, index: usize, key: Vec<u8>, value: Vec<u8>, time: SystemTime) {
        self.writes[index].insert(key, Written { expires_at: Some(time), ..Written::put(value) });
    }

    fn merge(&mut self, index: usize, key: Vec<u8>, operand: Vec<u8>) {
        self.writes[index].entry(key).or_default().operands.push(operand);
    }

    fn delete(&mut self, index: usize, key: &[u8]) {
        self.writes[index].remove(key);
    }

    /// A time in the next second.
    fn soon(&self, random: &mut SplitMix64) -> SystemTime {
        time_of(&self.clock) + Duration::from_millis(1 + random.below(1_000))
    }

    fn keyspace(&self, index: usize) -> Keyspace {
        let layout = [PARTITIONED, TIERED][index];
        let (filters, views) = (self.filters.clone(), self.views);
        let merge = Some(operators()[index].clone());
        let options = small_keyspace().filters(filters).layout(layout).views(views).merge(merge);
        let name = format!("k{index}");
        // An open may have changed the options since.
        self.db().keyspace(&name).or_else(|_| self.db().create_keyspace(&name, options)).unwrap()
    }

    fn step(&mut self, random: &mut SplitMix64) {
        let index = random.below(2) as usize;
        let keyspace = self.keyspace(index);
        match random.below(100) {
            0..26 => {
                let (key, value) = (key(random), value(random));
                keyspace.put(&key, &value).unwrap();
                self.put(index, key, value);
            }
            26..32 => {
                let (key, value, time) = (key(random), value(random), self.soon(random));
                keyspace.put_until(&key, &value, time).unwrap();
                self.put_until(index, key, value, time);
            }
            32..41 => {
                let (key, operand) = (key(random), value(random));
                keyspace.merge(&key, &operand).unwrap();
                self.merge(index, key, operand);
            }
            41 => self.clock.advance(Duration::from_millis(random.below(300))),
            42..49 => {
                let key = key(random);
                keyspace.delete(&key).unwrap();
                self.delete(index, &key);
            }
            49..52 => self.delete_range(index, random),
            52..60 => self.write_batch(random),
            60..75 => {
                let key = key(random);
                let found = keyspace.get(&key).unwrap();
                assert_eq!(found.as_deref(), self.model(index).get(&key).map(Vec::as_slice));
            }
            75..84 => {
                let bounds = bounds(random);
                let model = &self.model(index);
                check_scan(keyspace.range(bounds.clone()), model, &bounds, random);
                check_walk(keyspace.range(bounds.clone()), model, &bounds, random);
            }
            84..86 => {
                let prefix = key(random);
                let found: Vec<_> = keyspace.prefix(&prefix).map(|entry| entry.unwrap().0.to_vec()).collect();
                let model = &self.model(index);
                let expected: Vec<_> = model.keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
                assert_eq!(found, expected);
            }
            86..89 => {
                if self.snapshots.len() < 4 {
                    let models = vec![self.model(0), self.model(1)];
                    self.snapshots.push((self.db().snapshot(), models));
                }
            }
            89..92 => self.check_snapshot(index, random),
            92..94 => self.db().flush().unwrap(),
            94..96 => {
                let bounds = bounds(random);
                self.db().compact_range(&keyspace, bounds).unwrap();
            }
            96 if random.below(2) == 0 => self.reopen(Some(random)),
            96 => self.ingest(index, random),
            97 => match random.below(4) {
                0 | 1 => self.check_ranges(index, random),
                2 => _ = self.db().check_filters(&keyspace).unwrap(),
                _ => {
                    let row = FILTERS[random.below(FILTERS.len() as u64) as usize];
                    rebuild_filters(self.db(), &keyspace, (random.below(3) > 0).then_some(row));
                }
            },
            98 if random.below(2) == 0 => {
                let report = self.db().verify().unwrap();
                assert!(report.is_sound(), "{:?}", report.faults);
            }
            _ => {
                let keys: Vec<_> = (0..5).map(|_| key(random)).collect();
                let model = self.model(index);
                let found = keyspace.multi_get(&keys).unwrap();
                for (key, value) in keys.iter().zip(found) {
                    assert_eq!(value.as_deref(), model.get(key).map(Vec::as_slice));
                }
            }
        }
    }

    /// Several ranges at once.
    fn check_ranges(&self, index: usize, random: &mut SplitMix64) {
        let ranges: Vec<Bounds> = (0..random.below(6)).map(|_| bounds(random)).collect();
        for (scan, range) in self.keyspace(index).multi_range(ranges.clone()).into_iter().zip(&ranges) {
            check_scan(scan, &self.model(index), range, random);
        }
    }

    fn delete_range(&mut self, index: usize, random: &mut SplitMix64) {
        let keyspace = self.keyspace(index);
        match random.below(40) {
            0 => {
                keyspace.clear().unwrap();
                self.writes[index].clear();
            }
            1..13 => {
                let prefix = key(random);
                keyspace.delete_prefix(&prefix).unwrap();
                self.writes[index].retain(|key, _| !key.starts_with(&prefix));
            }
            13..16 => {
                let bounds = bounds(random);
                keyspace.delete_range(bounds.clone()).unwrap();
                self.writes[index].retain(|key, _| !bounds.contains(key));
            }
            _ => {
                let (one, other) = (key(random), key(random));
                let bounds =
                    (Bound::Included(one.clone().min(other.clone())), Bound::Excluded(one.max(other)));
                keyspace.delete_range(bounds.clone()).unwrap();
                self.writes[index].retain(|key, _| !bounds.contains(key));
            }
        }
    }

    fn write_batch(&mut self, random: &mut SplitMix64) {
        let mut batch = WriteBatch::new();
        for _ in 0..random.below(8) {
            let index = random.below(2) as usize;
            let keyspace = self.keyspace(index);
            let key = key(random);
            if random.below(3) == 0 {
                batch.delete(&keyspace, &key).unwrap();
                self.delete(index, &key);
            } else if random.below(6) == 0 {
                batch.delete_prefix(&keyspace, &key).unwrap();
                self.writes[index].retain(|other, _| !other.starts_with(&key));
            } else if random.below(3) == 0 {
                let operand = value(random);
                batch.merge(&keyspace, &key, &operand).unwrap();
                self.merge(index, key, operand);
            } else if random.below(4) == 0 {
                let (value, time) = (value(random), self.soon(random));
                batch.put_until(&keyspace, &key, &value, time).unwrap();
                self.put_until(index, key, value, time);
            } else {
                let value = value(random);
                batch.put(&keyspace, &key, &value).unwrap();
                self.put(index, key, value);
            }
        }
        let durability = [Durability::Deferred, Durability::Buffered, Durability::Synced];
        self.db().write_with(batch, durability[random.below(3) as usize]).unwrap();
    }

    fn check_snapshot(&mut self, index: usize, random: &mut SplitMix64) {
        if self.snapshots.is_empty() {
            return;
        }
        let chosen = random.below(self.snapshots.len() as u64) as usize;
        let keyspace = self.keyspace(index);
        let (snapshot, models) = &self.snapshots[chosen];
        let key = key(random);
        let found = snapshot.get(&keyspace, &key).unwrap();
        assert_eq!(found.as_deref(), models[index].get(&key).map(Vec::as_slice), "through a snapshot");
        let bounds = bounds(random);
        check_scan(snapshot.range(&keyspace, bounds.clone()), &models[index], &bounds, random);
        if random.below(3) == 0 {
            self.snapshots.swap_remove(chosen);
        }
    }

    /// Ingests tables of disjoint keys that were built outside of the store.
    fn ingest(&mut self, index: usize, random: &mut SplitMix64) {
        let keyspace = self.keyspace(index);
        let entries: BTreeMap<_, _> =
            (0..1 + random.below(40)).map(|_| (key(random), value(random))).collect();
        let mut tables = Vec::new();
        let mut rest: Vec<_> = entries.into_iter().collect();
        while !rest.is_empty() {
            let count = 1 + random.below(rest.len() as u64) as usize;
            self.table_count += 1;
            let mut table = keyspace.table_writer(outside_table(self.table_count)).unwrap();
            for (key, value) in rest.drain(..count) {
                match random.below(8) {
                    0 | 1 => {
                        table.delete(&key).unwrap();
                        self.delete(index, &key);
                    }
                    2 => {
                        table.merge(&key, &value).unwrap();
                        self.merge(index, key, value);
                    }
                    _ => {
                        table.put(&key, &value).unwrap();
                        self.put(index, key, value);
                    }
                }
            }
            tables.push(table.finish().unwrap().path);
        }
        self.db().ingest(&keyspace, &tables).unwrap();
    }

    fn note_views(&mut self) {
        let statistics = self.db().statistics();
        self.views_made[0] += statistics.views_built;
        self.views_made[1] += statistics.views_rebuilt;
    }

    /// Closes and opens the store, sometimes with other filters or another layout.
    fn reopen(&mut self, random: Option<&mut SplitMix64>) {
        self.snapshots.clear();
        let names = self.db().keyspace_names();
        self.note_views();
        self.db.take().unwrap().close().unwrap();
        let db = open_with_clock(&self.vfs, options(), &self.clock).unwrap();
        if let Some(random) = random
            && random.below(3) == 0
        {
            for name in names {
                let change = |options: KeyspaceOptions| match random.below(8) {
                    0 => options.views([Views::Auto, Views::On, Views::Off][random.below(3) as usize]),
                    layout @ 1..4 => options.layout(LAYOUTS[layout as usize - 1]),
                    _ => options.filters(other_filters(random)),
                };
                change_options(&db, &name, change).unwrap();
            }
        }
        self.db = Some(db);
    }
}

/// Returns the number of views that were built and rebuilt.
fn run(seed: u64, step_count: usize) -> [u64; 2] {
    let vfs = MemVfs::new();
    let clock = Arc::new(ManualClock::default());
    let db = open_with_clock(&vfs, options(), &clock).unwrap();
    // Every fourth seed; the other ones use all rows in turn.
    let filters = match seed % 4 {
        0 => Filters::auto([16.0, 0.5, 4.0][seed as usize / 4 % 3]),
        _ => filters(FILTERS[(seed - seed / 4 - 1) as usize % FILTERS.len()]),
    };
    let views = if seed.is_multiple_of(3) { Views::On } else { Views::Auto };
    println!("filters {filters:?}, views {views}");
    let mut world = World {
        filters,
        vfs,
        db: Some(db),
        clock,
        writes: vec![Writes::new(), Writes::new()],
        snapshots: Vec::new(),
        table_count: 0,
        views,
        views_made: [0; 2],
    };
    let mut random = SplitMix64::new(seed);
    for _ in 0..step_count {
        world.step(&mut random);
    }
    world.reopen(None);
    for index in 0..2 {
        let all = (Bound::Unbounded, Bound::Unbounded);
        check_scan(world.keyspace(index).range(all.clone()), &world.model(index), &all, &mut random);
    }
    println!("views built and rebuilt: {:?}", world.views_made);
    world.views_made
}

#[test]
fn random_operations_agree_with_a_map() {
    for seed in Cases::at_least(30) {
        println!("seed {seed}");
        let [built, rebuilt] = run(seed, 3_000);
        assert!(!seed.is_multiple_of(3) || built > 0 && rebuilt > 0, "{built} built, {rebuilt} rebuilt");
    }
}
