//! Readers that take the stretches of runs get the entries of a sorted map, although versions of a key are in neighbouring tables.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{cmp::Reverse, collections::BTreeMap, ops::Bound, path::Path, sync::Arc};

use tamis_filter::Direction;
use tamis_vfs::{Access, Folder, MemVfs, Vfs};
use tamis_workload::SplitMix64;

use super::vec_cursor::Entry;
use crate::{
    cache::table::TableCache,
    cursor::{
        bounded::KeyRange, merge::MergeCursor, run::RunCursor, run_tables::RunTables, source::Source,
        stretch::Step, visible::VisibleCursor,
    },
    key::{Kind, ReadPoint, SEQUENCE_MAX, Sequence},
    options::{Compression, Options},
    table::{
        filter_plan::FilterPlan,
        properties::TableOrigin,
        writer::{TableOptions, TableWriter},
    },
    version::handle::{ObsoleteFiles, Table},
};

const RUNS: u64 = 3;
const KEYS: u64 = 6_000;
/// The sequence numbers of a run: two for each key.
const RUN_SEQUENCES: u64 = 2 * KEYS;

/// The key and the value of a visible entry.
type Found = (Vec<u8>, Vec<u8>);
/// The key and the sequence number of an entry, in the order of entries.
type Version = (Vec<u8>, Reverse<Sequence>);

fn key(number: u64) -> Vec<u8> {
    format!("key/{number:05}").into_bytes()
}

/// Runs of three tables. A key of which both have a version is the last one of a table and the first one of the next table.
struct Runs {
    cache: Arc<TableCache>,
    tables: Vec<Vec<Arc<Table>>>,
    entries: BTreeMap<Version, Option<Vec<u8>>>,
}

impl Runs {
    fn new(random: &mut SplitMix64) -> Self {
        let vfs = MemVfs::new();
        vfs.create_dir_all(Path::new("/db")).unwrap();
        let folder = Folder::open(&vfs, Path::new("/db")).unwrap();
        let options = Options::default().table_access(Access::Buffered);
        let cache = TableCache::new(&folder, &options, &Arc::default());
        let mut runs = Self { cache, tables: Vec::new(), entries: BTreeMap::new() };
        for run in 0..RUNS {
            let mut tables = vec![Vec::new()];
            // The keys of which two tables have a version; those of two runs may be the same.
            let shared = [KEYS / 3 + random.below(3), 2 * KEYS / 3 + random.below(3)];
            for number in 0..KEYS {
                // Newer runs first.
                let sequence = (RUNS - run) * RUN_SEQUENCES + 2 * number;
                let versions = match shared.contains(&number) {
                    true => vec![sequence + 1, sequence],
                    false if random.below(20) == 0 => vec![sequence],
                    false => vec![],
                };
                for (index, &sequence) in versions.iter().enumerate() {
                    let is_deleted = random.below(400) == 0;
                    let value = (!is_deleted).then(|| vec![b'v'; random.index(300)]);
                    if index > 0 {
                        tables.push(Vec::new());
                    }
                    runs.entries.insert((key(number), Reverse(sequence)), value.clone());
                    let kind = if is_deleted { Kind::Tombstone } else { Kind::Put };
                    let entry = Entry { key: key(number), sequence, kind, value: value.unwrap_or_default() };
                    tables.last_mut().unwrap().push(entry);
                }
            }
            let numbers = 10 * run + 1..;
            runs.tables
                .push(numbers.zip(tables).map(|(number, table)| write(&folder, number, &table)).collect());
        }
        runs
    }

    fn visible(&self, snapshot: Sequence, range: KeyRange) -> VisibleCursor<Source, Box<KeyRange>> {
        let run = |tables: &Vec<_>| Source::Run(RunCursor::new(RunTables::read_once(tables, &self.cache)));
        let merge = MergeCursor::new(self.tables.iter().map(run).collect());
        VisibleCursor::new(merge, ReadPoint::at(snapshot), Box::new(range))
    }

    /// The entries that a snapshot sees in a range.
    fn expected(&self, snapshot: Sequence, range: &KeyRange) -> Vec<Found> {
        let mut newest = BTreeMap::new();
        for ((key, Reverse(sequence)), value) in &self.entries {
            if *sequence <= snapshot && !range.is_below(key) && !range.is_above(key) {
                newest.entry(key).or_insert(value);
            }
        }
        let puts = newest.into_iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        puts.collect()
    }
}

fn write(folder: &Folder, number: u64, entries: &[Entry]) -> Arc<Table> {
    let options = TableOptions {
        block_bytes: 4096,
        compression: Compression::None,
        filters: FilterPlan::given(Vec::new()),
        filter_seed: 1,
        origin: TableOrigin::default(),
        is_direct: false,
        listener: None,
    };
    let mut writer = TableWriter::create(folder, number, options).unwrap();
    for Entry { key, sequence, kind, value } in entries {
        writer.add(key, *sequence, *kind, value).unwrap();
    }
    Table::new(writer.finish().unwrap(), None, &Arc::new(ObsoleteFiles::default()))
}

/// All entries in a direction, as a scan gets them, and how many of them are those of stretches.
fn walk(cursor: &mut VisibleCursor<Source, Box<KeyRange>>, direction: Direction) -> (Vec<Found>, usize) {
    let (mut found, mut in_stretches) = (Vec::new(), 0);
    match direction {
        Direction::Forward => cursor.seek_first().unwrap(),
        Direction::Backward => cursor.seek_last().unwrap(),
    }
    while cursor.is_valid() {
        found.push((cursor.key().to_vec(), cursor.value().to_vec()));
        let Some(mut stretch) = cursor.lend(direction) else {
            step(cursor, direction);
            continue;
        };
        let end = loop {
            match stretch.step(direction).unwrap() {
                Step::Moved => found.push((stretch.key().to_vec(), stretch.value().to_vec())),
                end => break end,
            }
            in_stretches += 1;
        };
        match end {
            Step::Left => cursor.leave(stretch).unwrap(),
            Step::Moved | Step::Ended => {
                cursor.give_back(stretch).unwrap();
                step(cursor, direction);
            }
        }
    }
    (found, in_stretches)
}

fn step(cursor: &mut VisibleCursor<Source, Box<KeyRange>>, direction: Direction) {
    match direction {
        Direction::Forward => cursor.next().unwrap(),
        Direction::Backward => cursor.prev().unwrap(),
    }
}

fn random_bound(random: &mut SplitMix64) -> Bound<Vec<u8>> {
    match random.below(3) {
        0 => Bound::Included(key(random.below(KEYS))),
        1 => Bound::Excluded(key(random.below(KEYS))),
        _ => Bound::Unbounded,
    }
}

#[test]
fn neighbouring_tables_of_merged_runs_share_keys() {
    let mut random = SplitMix64::new(31);
    let (mut all, mut in_stretches) = (0, 0);
    for _ in 0..8 {
        let runs = Runs::new(&mut random);
        for turn in 0..40 {
            let snapshot = match turn % 2 {
                0 => SEQUENCE_MAX,
                _ => RUN_SEQUENCES + random.below(RUNS * RUN_SEQUENCES),
            };
            let range = match turn {
                0 | 1 => KeyRange::ALL,
                _ => KeyRange { lower: random_bound(&mut random), upper: random_bound(&mut random) },
            };
            let expected = runs.expected(snapshot, &range);
            let mut cursor = runs.visible(snapshot, range);
            for direction in [Direction::Forward, Direction::Backward] {
                let (mut found, count) = walk(&mut cursor, direction);
                if direction == Direction::Backward {
                    found.reverse();
                }
                assert!(found == expected, "turn {turn}, {direction:?}");
                all += found.len();
                in_stretches += count;
            }
        }
    }
    assert!(10 * in_stretches > all, "{in_stretches} of {all} entries");
}
